//! `vkGetDescriptorEXT`: the bytes of a descriptor.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::DescriptorType as Type;
use ash::vk::Handle as _;

use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::profiles::DescriptorBufferLimits;
use crate::memory::usage::buffer_limits;
use crate::memory::usage::no_descriptor_buffers;
use crate::objects::descriptor_table::Meaning;
use crate::objects::descriptors::names::buffer_needs;
use crate::objects::entry::on_device;
use crate::objects::state::{DeviceObject, DeviceState};

/// The most bytes that a descriptor of any driver has (section "Required Limits").
const MOST_BYTES: usize = 256;

/// The object that a program wants a descriptor of, copied out of the union that it passes.
enum RequestedDescriptor {
    Sampler(Option<vk::Sampler>),
    Image(Option<vk::DescriptorImageInfo>),
    Buffer(Option<(u64, u64, vk::Format)>),
    AccelerationStructure(u64),
}

pub(crate) unsafe extern "system" fn get(
    device: vk::Device,
    p_info: *const vk::DescriptorGetInfoEXT<'_>,
    size: usize,
    p_descriptor: *mut c_void,
) {
    on_device(device, "vkGetDescriptorEXT", |device| {
        // SAFETY: VUID-vkGetDescriptorEXT-pDescriptorInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            return device
                .report("VUID-vkGetDescriptorEXT-pDescriptorInfo-parameter", "pDescriptorInfo is NULL");
        };
        let mut bytes = [0; MOST_BYTES];
        let Some(bytes) = bytes.get_mut(..size) else {
            let text = format!("dataSize is {size}, and no descriptor has more than {MOST_BYTES} bytes");
            return device.report("VUID-vkGetDescriptorEXT-dataSize-08125", text);
        };
        // SAFETY: VUID-vkGetDescriptorEXT-pDescriptorInfo-parameter: what the type says is in the union.
        let asked = unsafe { asked(info) };
        let mut state = device.state.lock();
        if let Err((rule, text)) = write(device, &mut state, info.ty, &asked, bytes) {
            return device.report(rule, text);
        }
        drop(state);
        if p_descriptor.is_null() {
            return device.report("VUID-vkGetDescriptorEXT-pDescriptor-parameter", "pDescriptor is NULL");
        }
        // SAFETY: `dataSize` bytes may be written there: VUID-vkGetDescriptorEXT-pDescriptor-parameter. `bytes` is our
        // own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), p_descriptor.cast(), size) };
    });
}

/// # Safety
///
/// 1. The field of `info.data` that goes with `info.ty` is set.
/// 2. It is NULL, or what it points to is valid.
unsafe fn asked(info: &vk::DescriptorGetInfoEXT<'_>) -> RequestedDescriptor {
    match info.ty {
        Type::SAMPLER => {
            // SAFETY: 1 of `asked`.
            let sampler = unsafe { info.data.p_sampler };
            // SAFETY: 2 of `asked`.
            RequestedDescriptor::Sampler(unsafe { chain::input(sampler) }.copied())
        }
        Type::COMBINED_IMAGE_SAMPLER | Type::SAMPLED_IMAGE | Type::STORAGE_IMAGE | Type::INPUT_ATTACHMENT => {
            // SAFETY: 1 of `asked`: all four are a pointer to the same structure.
            let image = unsafe { info.data.p_sampled_image };
            // SAFETY: 2 of `asked`.
            RequestedDescriptor::Image(unsafe { chain::input(image) }.copied())
        }
        Type::ACCELERATION_STRUCTURE_KHR => {
            // SAFETY: 1 of `asked`.
            RequestedDescriptor::AccelerationStructure(unsafe { info.data.acceleration_structure })
        }
        Type::UNIFORM_TEXEL_BUFFER
        | Type::STORAGE_TEXEL_BUFFER
        | Type::UNIFORM_BUFFER
        | Type::STORAGE_BUFFER => {
            // SAFETY: 1 of `asked`: all four are a pointer to the same structure.
            let buffer = unsafe { info.data.p_storage_buffer };
            // SAFETY: 2 of `asked`.
            let buffer = unsafe { chain::input(buffer) };
            RequestedDescriptor::Buffer(buffer.map(|buffer| (buffer.address, buffer.range, buffer.format)))
        }
        // The caller refuses other types before it uses this value.
        _ => RequestedDescriptor::Sampler(None),
    }
}

/// Writes the bytes of a descriptor, all of `to`.
fn write(
    device: &DeviceObject,
    state: &mut DeviceState,
    kind: Type,
    asked: &RequestedDescriptor,
    to: &mut [u8],
) -> Result<(), Broken> {
    if !device.features.descriptor_buffer {
        return Err(no_descriptor_buffers("VUID-vkGetDescriptorEXT-None-08015"));
    }
    let limits = buffer_limits(device);
    let Some(size) = limits.size(kind) else {
        return Err(("VUID-VkDescriptorGetInfoEXT-type-08018", format!("type is {kind:?}")));
    };
    refuse_if!(to.len() != size => "VUID-vkGetDescriptorEXT-dataSize-08125",
        "dataSize is {}, and a descriptor of type {kind:?} has {size} bytes", to.len());
    let encoded = match asked {
        RequestedDescriptor::Sampler(sampler) => {
            let sampler = sampler.unwrap_or_default();
            check_sampler(device, state, sampler, "VUID-VkDescriptorGetInfoEXT-pSampler-parameter")?;
            state.descriptor_bytes.encode(Meaning::Sampler(sampler), to)
        }
        RequestedDescriptor::Image(image) => {
            let image = image.unwrap_or_default();
            check_image(device, state, kind, &image)?;
            write_image(state, &limits, kind, &image, to)
        }
        RequestedDescriptor::Buffer(buffer) => {
            let (address, range, format) = buffer.unwrap_or_default();
            check_buffer(device, state, kind, (address, range, format))?;
            state.descriptor_bytes.encode(Meaning::Buffer { kind, address, range }, to)
        }
        RequestedDescriptor::AccelerationStructure(address) => {
            state.descriptor_bytes.encode(Meaning::AccelerationStructure(*address), to)
        }
    };
    if encoded {
        Ok(())
    } else {
        let text = "the simulated device knows no more descriptors than 2^24".to_owned();
        Err(("SUBLET-descriptor-too-many", text))
    }
}

fn write_image(
    state: &mut DeviceState,
    limits: &DescriptorBufferLimits,
    kind: Type,
    image: &vk::DescriptorImageInfo,
    to: &mut [u8],
) -> bool {
    let (view, layout) = (image.image_view, image.image_layout);
    let combined = kind == Type::COMBINED_IMAGE_SAMPLER;
    if !combined || limits.single_array {
        let sampler = if combined { image.sampler } else { vk::Sampler::null() };
        return state.descriptor_bytes.encode(Meaning::Image { kind, view, sampler, layout }, to);
    }
    // The program moves the two parts into two arrays, so each is a descriptor of its own.
    let Some((first, second)) = to.split_at_mut_checked(limits.sampled_image) else { return false };
    state.descriptor_bytes.encode(Meaning::Image { kind, view, sampler: vk::Sampler::null(), layout }, first)
        && state.descriptor_bytes.encode(Meaning::Sampler(image.sampler), second)
}

fn check_sampler(
    device: &DeviceObject,
    state: &DeviceState,
    sampler: vk::Sampler,
    rule: &'static str,
) -> Result<(), Broken> {
    if state.descriptors.samplers.contains_key(&sampler) {
        return Ok(());
    }
    Err((rule, state.missing(device, sampler)))
}

fn check_image(
    device: &DeviceObject,
    state: &DeviceState,
    kind: Type,
    image: &vk::DescriptorImageInfo,
) -> Result<(), Broken> {
    let (null, unknown, unusable, usage) = match kind {
        Type::COMBINED_IMAGE_SAMPLER => (
            "VUID-VkDescriptorDataEXT-type-08034",
            "VUID-VkDescriptorGetInfoEXT-type-08020",
            "VUID-VkDescriptorGetInfoEXT-type-12216",
            vk::ImageUsageFlags::SAMPLED,
        ),
        Type::SAMPLED_IMAGE => (
            "VUID-VkDescriptorDataEXT-type-08035",
            "VUID-VkDescriptorGetInfoEXT-type-08022",
            "VUID-VkDescriptorGetInfoEXT-type-12217",
            vk::ImageUsageFlags::SAMPLED,
        ),
        Type::STORAGE_IMAGE => (
            "VUID-VkDescriptorDataEXT-type-08036",
            "VUID-VkDescriptorGetInfoEXT-type-08023",
            "VUID-VkDescriptorGetInfoEXT-type-12218",
            vk::ImageUsageFlags::STORAGE,
        ),
        _ => (
            "VUID-VkDescriptorGetInfoEXT-type-08021",
            "VUID-VkDescriptorGetInfoEXT-type-08021",
            "VUID-VkDescriptorGetInfoEXT-type-12219",
            vk::ImageUsageFlags::INPUT_ATTACHMENT,
        ),
    };
    if kind == Type::COMBINED_IMAGE_SAMPLER {
        check_sampler(device, state, image.sampler, "VUID-VkDescriptorGetInfoEXT-type-08019")?;
    }
    let view = image.image_view;
    refuse_if!(view.is_null() => null, "imageView is NULL, and the feature nullDescriptor is not enabled");
    let found = state.known(device, view, state.image_views.get(&view), unknown)?;
    let of = found.image;
    let usages = state.images.get(&of).map(|image| image.description.usage);
    match usages {
        Some(usages) if !usages.contains(usage) => {
            let text = format!("{} of {} has not the usage {usage:?}", state.name(view), state.name(of));
            Err((unusable, text))
        }
        Some(_) => Ok(()),
        None => Err((unknown, format!("{} shows {}, which is destroyed", state.name(view), state.name(of)))),
    }
}

fn check_buffer(
    device: &DeviceObject,
    state: &DeviceState,
    kind: Type,
    (address, range, format): (u64, u64, vk::Format),
) -> Result<(), Broken> {
    let limits = &device.profile().limits;
    let texels = kind == Type::UNIFORM_TEXEL_BUFFER || kind == Type::STORAGE_TEXEL_BUFFER;
    let (usage, alignment) = buffer_needs(kind, limits);
    let (unusable, misaligned) = match kind {
        Type::UNIFORM_BUFFER => {
            ("VUID-VkDescriptorGetInfoEXT-type-12220", "VUID-VkDescriptorGetInfoEXT-type-12265")
        }
        Type::STORAGE_BUFFER => {
            ("VUID-VkDescriptorGetInfoEXT-type-12221", "VUID-VkDescriptorGetInfoEXT-type-12266")
        }
        Type::UNIFORM_TEXEL_BUFFER => {
            ("VUID-VkDescriptorGetInfoEXT-type-12222", "VUID-VkDescriptorGetInfoEXT-type-12269")
        }
        _ => ("VUID-VkDescriptorGetInfoEXT-type-12223", "VUID-VkDescriptorGetInfoEXT-type-12270"),
    };
    refuse_if!(address == 0 => "VUID-VkDescriptorAddressInfoEXT-address-08043",
        "address is 0, and the feature nullDescriptor is not enabled");
    let Some(found) = state.locate(address, usage) else {
        let text = format!("no buffer with SHADER_DEVICE_ADDRESS lies at the address {address:#x}");
        return Err(("VUID-VkDescriptorAddressInfoEXT-None-08044", text));
    };
    let name = state.name(found.buffer);
    refuse_if!(range == vk::WHOLE_SIZE => "VUID-VkDescriptorAddressInfoEXT-nullDescriptor-08939",
        "range is WHOLE_SIZE, at {address:#x} in {name}");
    if range == 0 {
        return Err((
            "VUID-VkDescriptorAddressInfoEXT-range-08940",
            format!("range is 0, at {address:#x} in {name}"),
        ));
    }
    refuse_if!(range > found.left => "VUID-VkDescriptorAddressInfoEXT-range-08045",
        "range is {range}, and {name} has {} bytes from {address:#x} on", found.left);
    let usages = state.buffers.get(&found.buffer).map(|buffer| buffer.description.usage).unwrap_or_default();
    refuse_if!(!usages.contains(usage) => unusable, "{name} has not the usage {usage:?}");
    refuse_if!(!is_aligned(address, alignment.max(1)) => misaligned,
        "{address:#x} in {name} is no multiple of {alignment}");
    refuse_if!(texels && format == vk::Format::UNDEFINED => "VUID-VkDescriptorAddressInfoEXT-None-09508",
        "format is UNDEFINED, for {name}");
    Ok(())
}
