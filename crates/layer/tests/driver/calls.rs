//! The test, and the calls that it makes.
#![allow(unsafe_code, reason = "calls Vulkan")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "the handles are those of the driver below")]

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use ash::vk::{self, Handle as _};
use sublet::trace::{DriverMemoryAction, Event, MemoryNumber, ResourceNumber, SparseBinding, Trace};

use super::fake::{self, Below};

/// Sets the environment of the layer. Only this test runs in this process.
fn watch() -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{}.trace", std::process::id()));
    let _ = std::fs::remove_file(&path);
    fake::watch(&path);
    path
}

/// Reads a recording with the library's reader.
fn events(path: &Path) -> Vec<Event> {
    let trace = Trace::read(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(trace.header.device_id, 7);
    std::fs::remove_file(path).unwrap();
    trace.records.into_iter().map(|record| record.event).collect()
}

/// One test, because the environment is that of the process.
#[test]
fn calls_that_drivers_of_this_machine_do_not_make() {
    let first = watch();
    lost_device();
    let found = events(&first);
    let lost = found.iter().filter(|event| matches!(event, Event::DeviceLost));
    assert_eq!(lost.count(), 1, "{found:?}");
    assert_eq!(found.iter().filter(|event| matches!(event, Event::Submitted { .. })).count(), 1);

    fake::EXTENSIONS.lock().unwrap().push(ash::ext::device_memory_report::NAME);
    let below = Below::layer(&[]);
    assert_eq!(*fake::ENABLED.lock().unwrap(), ["VK_EXT_device_memory_report"]);
    fake::report(4096);
    // The program's own memory is not the driver's.
    below.allocate_and_free();
    let freed = vk::DeviceMemoryReportEventTypeEXT::FREE;
    fake::report_event(freed, vk::ObjectType::PIPELINE, 77);
    below.destroy();
    let found = events(&first.with_file_name(format!("driver-{}-2.trace", std::process::id())));
    let sizes: Vec<_> = found
        .iter()
        .filter_map(|event| match event {
            Event::DriverMemory { report } => {
                assert_eq!(report.object_type, vk::ObjectType::PIPELINE);
                Some((report.action, report.size))
            }
            _ => None,
        })
        .collect();
    let (allocated, freed) = (DriverMemoryAction::Allocated, DriverMemoryAction::Freed);
    assert_eq!(
        sizes,
        [(allocated, 1 << 16), (allocated, 4096), (freed, 0), (allocated, 1 << 20)],
        "during the creation, the life and the end of the device"
    );
    assert_eq!(found.last(), Some(&Event::DeviceDestroyed));

    // The driver refuses the report, and then a device.
    fake::LINKS.lock().unwrap().clear();
    fake::REFUSED.store(1, Ordering::Relaxed);
    Below::layer(&[]).destroy();
    assert_eq!(*fake::ENABLED.lock().unwrap(), [""; 0]);
    assert_eq!(*fake::LINKS.lock().unwrap(), [true, true], "each call has the link of the next layer");
    let _ = events(&first.with_file_name(format!("driver-{}-3.trace", std::process::id())));
    fake::EXTENSIONS.lock().unwrap().clear();

    sparse();
    let found = events(&first.with_file_name(format!("driver-{}-4.trace", std::process::id())));
    let binds: Vec<_> = found
        .iter()
        .filter_map(|event| match event {
            Event::SparseBound { resource, binding } => Some((*resource, **binding)),
            _ => None,
        })
        .collect();
    let bound = SparseBinding {
        resource_offset: 65_536,
        size: 65_536,
        memory: Some(MemoryNumber(1)),
        memory_offset: 128,
    };
    let unbound = SparseBinding { memory: None, memory_offset: 0, ..bound };
    assert_eq!(binds, [(ResourceNumber(1), bound), (ResourceNumber(1), unbound)]);
    budgets(&first);
    losses(&first);
    partly_bound();
    let found = events(&first.with_file_name(format!("driver-{}-11.trace", std::process::id())));
    let bound = found.iter().filter_map(|event| match event {
        Event::Bound { resource, offset, .. } => Some((resource.0, *offset)),
        _ => None,
    });
    assert_eq!(bound.collect::<Vec<_>>(), [(1, 0), (3, 4), (4, 2)], "each that succeeded");
    exported();
    let found = events(&first);
    assert!(matches!(
        found[..],
        [Event::MemoryAllocated { .. }, Event::MemoryFreed { .. }, Event::DeviceDestroyed]
    ));
}

/// Finds the layer in its library as Android's loader does, and records a device.
fn exported() {
    type ListLayers = unsafe extern "system" fn(*mut u32, *mut vk::LayerProperties) -> vk::Result;
    let test = std::env::current_exe().unwrap();
    let name = libloading::library_filename("sublet_layer");
    let library = unsafe { libloading::Library::new(test.parent().unwrap().join(name)) }.unwrap();
    let list = unsafe { library.get::<ListLayers>(b"vkEnumerateInstanceLayerProperties") }.unwrap();
    let of_device = unsafe {
        library.get::<vk::PFN_vkEnumerateDeviceLayerProperties>(b"vkEnumerateDeviceLayerProperties")
    };
    let of_device = of_device.unwrap();
    let none = vk::PhysicalDevice::null();
    let mut count = 0;
    assert_eq!(unsafe { list(&mut count, std::ptr::null_mut()) }, vk::Result::SUCCESS);
    assert_eq!(count, 1);
    let mut layers = [vk::LayerProperties::default(); 2];
    assert_eq!(unsafe { list(&mut count, &mut layers[0]) }, vk::Result::SUCCESS);
    assert_eq!(unsafe { of_device(none, &mut count, &mut layers[1]) }, vk::Result::SUCCESS);
    let described = layers.map(|layer| (layer.layer_name, layer.description, layer.spec_version));
    assert_eq!(described[0], described[1], "a layer for devices, too");
    let name = c"VK_LAYER_SUBLET_memory";
    assert_eq!(layers[0].layer_name_as_c_str(), Ok(name));
    count = 0;
    assert_eq!(unsafe { list(&mut count, &mut layers[0]) }, vk::Result::INCOMPLETE);

    let extensions = unsafe {
        library.get::<vk::PFN_vkEnumerateDeviceExtensionProperties>(b"vkEnumerateDeviceExtensionProperties")
    };
    let of_instance = unsafe {
        library
            .get::<vk::PFN_vkEnumerateInstanceExtensionProperties>(b"vkEnumerateInstanceExtensionProperties")
    };
    let (extensions, of_instance) = (extensions.unwrap(), of_instance.unwrap());
    let missing = vk::Result::ERROR_LAYER_NOT_PRESENT;
    for (asked, result) in [(name.as_ptr(), vk::Result::SUCCESS), (c"other".as_ptr(), missing)] {
        count = 7;
        let said = unsafe { extensions(none, asked, &mut count, std::ptr::null_mut()) };
        assert_eq!((said, count), (result, if result == missing { 7 } else { 0 }));
        assert_eq!(unsafe { of_instance(asked, &mut count, std::ptr::null_mut()) }, result);
    }
    let get = unsafe { library.get::<vk::PFN_vkGetInstanceProcAddr>(b"vkGetInstanceProcAddr") }.unwrap();
    let get_of_device =
        unsafe { library.get::<vk::PFN_vkGetDeviceProcAddr>(b"vkGetDeviceProcAddr") }.unwrap();
    let below = Below::exported(*get, *get_of_device);
    below.allocate_and_free();
    below.destroy();
}

/// Budgets are recorded if the driver has them.
fn budgets(first: &Path) {
    let below = Below::layer(&[]);
    below.query_budget();
    below.submit();
    below.destroy();
    let number = |number| first.with_file_name(format!("driver-{}-{number}.trace", std::process::id()));
    let without = events(&number(5));
    assert!(
        !without.iter().any(|event| matches!(event, Event::Budget { .. })),
        "the driver does not know budgets"
    );
    fake::EXTENSIONS.lock().unwrap().push(ash::ext::memory_budget::NAME);
    let below = Below::layer(&[]);
    for _ in 0..3 {
        below.submit();
    }
    below.query_budget();
    below.destroy();
    let found = events(&number(6));
    let known = Event::Budget { heap: 0, budget: 1 << 29, usage: 1 << 20 };
    let count = found.iter().filter(|&event| *event == known).count();
    // Of the first submission, perhaps of a later one, and of the program's query.
    assert!((2..=4).contains(&count), "{found:?}");
}

fn lost_device() {
    let below = Below::layer(&[]);
    let submits = [vk::SubmitInfo::default()];
    unsafe { below.device.queue_submit(below.queue, &submits, vk::Fence::null()) }.unwrap();
    let lost = unsafe { below.device.queue_submit(below.queue, &submits, vk::Fence::from_raw(1)) };
    assert_eq!(lost, Err(vk::Result::ERROR_DEVICE_LOST));
    assert_eq!(unsafe { below.device.device_wait_idle() }, Err(vk::Result::ERROR_DEVICE_LOST));
    below.destroy();
}

/// The first call that reports the loss may be any of these.
fn losses(first: &Path) {
    type LosingCall = fn(&Below) -> vk::Result;
    let calls: [LosingCall; 4] = [
        |below| {
            let acquire: vk::PFN_vkAcquireNextImage2KHR = below.function(c"vkAcquireNextImage2KHR");
            let info = vk::AcquireNextImageInfoKHR::default();
            unsafe { acquire(below.device.handle(), &info, &mut 0) }
        },
        |below| {
            let flags = vk::QueryResultFlags::empty();
            let pool = vk::QueryPool::null();
            unsafe { below.device.get_query_pool_results(pool, 0, &mut [0_u32], flags) }.unwrap_err()
        },
        |below| {
            let value = unsafe { below.device.get_semaphore_counter_value(vk::Semaphore::null()) };
            value.unwrap_err()
        },
        |below| unsafe { below.device.get_event_status(vk::Event::null()) }.unwrap_err(),
    ];
    for (number, call) in (7..).zip(calls) {
        let below = Below::layer(&[]);
        assert_eq!(call(&below), vk::Result::ERROR_DEVICE_LOST);
        below.destroy();
        let path = first.with_file_name(format!("driver-{}-{number}.trace", std::process::id()));
        assert_eq!(events(&path), [Event::DeviceLost, Event::DeviceDestroyed], "{number}");
    }
}

/// One of several binds fails. A call without statuses records none, because Vulkan does not say which succeeded.
fn partly_bound() {
    let below = Below::layer(&[]);
    let info = vk::BufferCreateInfo::default().size(64);
    let buffers = [(); 3].map(|()| unsafe { below.device.create_buffer(&info, None) }.unwrap());
    let info = vk::ImageCreateInfo::default();
    let images = [(); 2].map(|()| unsafe { below.device.create_image(&info, None) }.unwrap());
    let info = vk::MemoryAllocateInfo::default().allocation_size(1 << 20);
    let memory = unsafe { below.device.allocate_memory(&info, None) }.unwrap();
    let at = |buffer, offset| {
        vk::BindBufferMemoryInfo::default().buffer(buffer).memory(memory).memory_offset(offset)
    };
    let unknown = [at(buffers[0], 8), at(buffers[1], 1)];
    assert!(unsafe { below.device.bind_buffer_memory2(&unknown) }.is_err());

    let mut results = [vk::Result::default(); 3];
    let [one, two, three] = &mut results;
    let mut statuses = [one, two, three].map(|result| vk::BindMemoryStatusKHR::default().result(result));
    let [one, two, three] = &mut statuses;
    let binds = [
        at(buffers[0], 0).push_next(one),
        at(buffers[1], 1).push_next(two),
        at(buffers[2], 4).push_next(three),
    ];
    assert!(unsafe { below.device.bind_buffer_memory2(&binds) }.is_err());

    let mut results = [vk::Result::default(); 2];
    let [one, two] = &mut results;
    let mut statuses = [one, two].map(|result| vk::BindMemoryStatusKHR::default().result(result));
    let [one, two] = &mut statuses;
    let at =
        |image, offset| vk::BindImageMemoryInfo::default().image(image).memory(memory).memory_offset(offset);
    let binds = [at(images[0], 2).push_next(one), at(images[1], 3).push_next(two)];
    assert!(unsafe { below.device.bind_image_memory2(&binds) }.is_err());
    below.destroy();
}

fn sparse() {
    let below = Below::layer(&[]);
    let info = vk::BufferCreateInfo::default().size(1 << 20).flags(vk::BufferCreateFlags::SPARSE_BINDING);
    let buffer = unsafe { below.device.create_buffer(&info, None) }.unwrap();
    let info = vk::MemoryAllocateInfo::default().allocation_size(1 << 20);
    let memory = unsafe { below.device.allocate_memory(&info, None) }.unwrap();
    for memory in [memory, vk::DeviceMemory::null()] {
        let range = [vk::SparseMemoryBind {
            resource_offset: 65_536,
            size: 65_536,
            memory,
            memory_offset: 128,
            flags: vk::SparseMemoryBindFlags::empty(),
        }];
        let bind = [vk::SparseBufferMemoryBindInfo::default().buffer(buffer).binds(&range)];
        let info = [vk::BindSparseInfo::default().buffer_binds(&bind)];
        unsafe { below.device.queue_bind_sparse(below.queue, &info, vk::Fence::null()) }.unwrap();
    }
    below.destroy();
}
