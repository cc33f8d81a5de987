//! Errors of drivers and device profiles.

use ash::vk;
use sublet::device::MissingFunction;
use sublet::sim::profiles::{InvalidProfile, MeasureError, Profile, ReadProfileError};

use super::{DRIVER, RenderedError, each, rendered, saying};

pub(crate) fn all() -> Vec<RenderedError> {
    let mut all = vec![rendered(DRIVER), rendered(MissingFunction { name: "vkAllocateMemory" })];
    let api_version = vk::make_api_version(0, 2, 7, 0);
    all.push(rendered(InvalidProfile::ApiVersion { version: api_version }));
    all.extend(each([
        InvalidProfile::Name,
        InvalidProfile::DeviceName,
        InvalidProfile::HeapCount { count: 117 },
        InvalidProfile::TypeCount { count: 133 },
        InvalidProfile::EmptyHeap { heap: 13 },
        InvalidProfile::HeapOutOfRange { memory_type: 17, heap: 13, heaps: 12 },
        InvalidProfile::DeviceLocal { memory_type: 17, heap: 13 },
        InvalidProfile::NotPowerOfTwo { what: "granularity", value: 1003 },
        InvalidProfile::OutOfRange { what: "granularity", value: 1003, least: 1001, most: 1002 },
        InvalidProfile::UnknownTypes { what: "buffer_types", bits: 0b1010 },
        InvalidProfile::NoTypes { what: "buffer_types" },
        InvalidProfile::TileOrder,
        InvalidProfile::TileHeight,
        InvalidProfile::DescriptorBuffer,
    ]));
    let json = Profile::from_json("{\n \"format\": }").unwrap_err();
    all.push(saying(json, &["expected value at line 2 column 12"]));
    all.extend([
        rendered(ReadProfileError::OtherFormat),
        rendered(ReadProfileError::Version { version: Some(117) }),
        rendered(ReadProfileError::Version { version: None }),
        rendered(ReadProfileError::Invalid(InvalidProfile::EmptyHeap { heap: 13 })),
        rendered(MeasureError::Driver { call: "vkCreateDevice", result: vk::Result::ERROR_DEVICE_LOST }),
        rendered(MeasureError::NoQueue),
        rendered(MeasureError::Invalid(InvalidProfile::EmptyHeap { heap: 13 })),
    ]);
    all
}
