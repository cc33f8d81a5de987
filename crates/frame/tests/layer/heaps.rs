//! Vulkan's own descriptor heaps beside the descriptors of lists. Raw commands bind the heap.

use std::sync::Arc;

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateFlags, MemoryUsage};
use sublet_descriptors::{
    BindPoint, BindingMapping, BufferDescriptor, Descriptor, DescriptorDevice, DescriptorFeatures,
    DescriptorHeap, DescriptorKind, HeapCreateInfo, HeapKind, HeapMappings, MappingSource, NativeStore,
    heap_ffi,
};
use sublet_frame::track::Use;
use sublet_frame::{Buffer, Features, Frames, StorageAccess};

use crate::device::Device;
use crate::make::{begin_list, end_with};
use crate::paint::words;
use crate::{compute_pipeline, layout, open, parts};

/// The uniform buffer of the shader is push data, and its storage buffer is in a slot of the heap.
fn native_pipeline(device: &Device, heap: &Heap, slot: u32) -> vk::Pipeline {
    let code = words(include_bytes!("add.spv"));
    let module = vk::ShaderModuleCreateInfo::default().code(&code);
    let module = unsafe { device.device.create_shader_module(&module, None) }.unwrap();
    let stride = u32::try_from(heap.store().stride()).unwrap();
    let resources = heap_ffi::resource_type::UNIFORM_BUFFER;
    let numbers = heap_ffi::resource_type::READ_WRITE_STORAGE_BUFFER;
    let mut mappings = HeapMappings::new([
        BindingMapping { set: 0, binding: 0, count: 1, resources, source: MappingSource::PushData(0) },
        BindingMapping::array(0, 1, numbers, slot * stride, stride),
    ]);
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(c"main")
        .push_next(mappings.info());
    let mut flags =
        vk::PipelineCreateFlags2CreateInfoKHR::default().flags(heap_ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP);
    let info = vk::ComputePipelineCreateInfo::default().stage(stage).push_next(&mut flags);
    let none = vk::PipelineCache::null();
    let made = unsafe { device.device.create_compute_pipelines(none, &[info], None) }.unwrap()[0];
    unsafe { device.device.destroy_shader_module(module, None) };
    made
}

type Heap = DescriptorHeap<NativeStore<Arc<Allocator>>>;

/// Dispatches through the list's descriptors and through the heap in turn. Each adds to the numbers of the last one.
fn dispatches(
    frames: &mut Frames,
    descriptors: &DescriptorDevice,
    heap: &Heap,
    numbers: &Buffer,
    pipelines: [vk::Pipeline; 2],
) {
    let uniform = vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC;
    let kinds = [uniform, vk::DescriptorType::STORAGE_BUFFER];
    let layout = layout(frames, vk::ShaderStageFlags::COMPUTE, &kinds);
    let access = vk::AccessFlags2::SHADER_STORAGE_READ | vk::AccessFlags2::SHADER_STORAGE_WRITE;
    let shader = Use::buffer(vk::PipelineStageFlags2::COMPUTE_SHADER, access);
    for frame in 0..4_u32 {
        let mut list = begin_list(frames);
        list.fill_buffer(numbers, 0..256, frame).unwrap();
        let point = BindPoint::Compute;
        for step in 0..6_u32 {
            let more = [step, 0, 0, 0];
            if step % 2 == 0 {
                unsafe { list.bind_pipeline(point, pipelines[0], &layout) }.unwrap();
                list.bind_buffer(point, (0, 1, 0), numbers, 0..256, StorageAccess::ReadWrite).unwrap();
                list.bind_constants(point, (0, 0), &more).unwrap();
                unsafe { list.dispatch([1, 1, 1]) }.unwrap();
                continue;
            }
            unsafe { list.use_buffer(numbers, 0..256, shader) }.unwrap();
            let record = |device: &ash::Device, commands: vk::CommandBuffer| {
                unsafe { heap.store().cmd_bind(commands) };
                let bytes: Vec<u8> = more.iter().flat_map(|word| word.to_le_bytes()).collect();
                unsafe { descriptors.cmd_push_data(commands, 0, &bytes) };
                unsafe { device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipelines[1]) };
                unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
            };
            unsafe { list.raw(record) }.unwrap();
        }
        let read = list.read_buffer(numbers, 0..256).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        let expected = (0..6).fold(frame, |number, step| number * 3 + step);
        assert_eq!(read.bytes().unwrap(), expected.to_le_bytes().repeat(64));
    }
}

#[test]
fn the_validation_layer_reports_nothing_with_native_heaps() {
    let features = Features {
        synchronization2: true,
        timeline_semaphore: true,
        dynamic_rendering: true,
        ..Features::default()
    };
    let Some(device) = open(features) else { return };
    if !device.heaps {
        assert!(std::env::var_os("SUBLET_REQUIRE_NEWEST").is_none(), "{} has no heaps", device.name);
        eprintln!("skipped: {} has no descriptor heaps", device.name);
        assert_eq!(device.finish(), [""; 0]);
        return;
    }
    let descriptor_features = DescriptorFeatures::DESCRIPTOR_HEAP | DescriptorFeatures::BUFFER_DEVICE_ADDRESS;
    let (allocator, descriptors, mut frames) =
        parts(&device, features, AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS, descriptor_features);
    let ash = &device.device;
    let info = HeapCreateInfo {
        slots: 8,
        types: &[DescriptorKind::StorageBuffer],
        ..HeapCreateInfo::new(HeapKind::Resource)
    };
    let heap = NativeStore::new(&descriptors, Arc::clone(&allocator), &info).unwrap();
    let heap: Heap = DescriptorHeap::new(heap);
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default().size(256).usage(usage);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let numbers = unsafe { frames.create_buffer(&info, &auto) }.unwrap();
    let of_numbers = vk::BufferDeviceAddressInfo::default().buffer(numbers.handle());
    let address = unsafe { ash.get_buffer_device_address(&of_numbers) };
    let range = heap.allocate(3).unwrap();
    let descriptor = BufferDescriptor::new(numbers.handle(), 0, 256).with_buffer_address(address);
    let slot = unsafe { heap.write(range.id(), 2, &Descriptor::StorageBuffer(descriptor)) }.unwrap();
    let kinds = [vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC, vk::DescriptorType::STORAGE_BUFFER];
    let add = layout(&frames, vk::ShaderStageFlags::COMPUTE, &kinds);
    let by_sets = compute_pipeline(&device, add.handle(), include_bytes!("add.spv"));
    let by_heap = native_pipeline(&device, &heap, slot);
    dispatches(&mut frames, &descriptors, &heap, &numbers, [by_sets, by_heap]);
    drop((frames, numbers, add));
    [by_sets, by_heap].into_iter().for_each(|made| unsafe { ash.destroy_pipeline(made, None) });
    unsafe { heap.into_store().destroy() };
    drop(descriptors);
    assert!(Arc::try_unwrap(allocator).unwrap().destroy().is_empty());
    assert_eq!(device.finish(), [""; 0]);
}
