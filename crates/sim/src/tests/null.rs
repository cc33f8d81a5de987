//! The device that does nothing still answers as a driver would.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;
use crate::gpu::null::NullGpu;

#[test]
fn every_profile_answers() {
    for &profile in ALL {
        let gpu = NullGpu::new(profile);
        let device = gpu.device();
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
        for size in [1, 255, 256, 1000, 1 << 33] {
            let info = vk::BufferCreateInfo::default().size(size).usage(usage);
            let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
            let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
            assert!(needs.alignment.is_power_of_two());
            assert_eq!(needs.size, size.next_multiple_of(needs.alignment));
            assert_eq!(needs.memory_type_bits, profile.all_types());
            unsafe { device.destroy_buffer(buffer, None) };
        }
        let info = image_info(64, vk::ImageTiling::OPTIMAL);
        let image = unsafe { device.create_image(&info, None) }.unwrap();
        let flat = unsafe { device.get_image_memory_requirements(image) };
        assert_eq!(flat.size, (64 * 64 * 4_u64).next_multiple_of(flat.alignment));
        let memories = unsafe {
            let info = vk::MemoryAllocateInfo::default().allocation_size(1 << 40);
            [device.allocate_memory(&info, None).unwrap(), device.allocate_memory(&info, None).unwrap()]
        };
        assert_ne!(memories[0], memories[1]);
        let flags = vk::MemoryMapFlags::empty();
        let first = unsafe { device.map_memory(memories[0], 0, vk::WHOLE_SIZE, flags) }.unwrap();
        let later = unsafe { device.map_memory(memories[0], 4096, vk::WHOLE_SIZE, flags) }.unwrap();
        assert!(!first.is_null() && first.addr() % 4096 == 0);
        assert_eq!(later.addr() - first.addr(), 4096);
        unsafe { device.bind_image_memory(image, memories[0], 0) }.unwrap();
        unsafe { device.flush_mapped_memory_ranges(&[range(memories[0], 0, 64)]) }.unwrap();
        let properties =
            unsafe { gpu.instance().get_physical_device_memory_properties(gpu.physical_device()) };
        assert_eq!(properties.memory_types_as_slice().len(), profile.types.len());
    }
}

#[test]
fn functions_of_later_versions_answer_the_same() {
    let profile = ALL.iter().copied().find(|profile| profile.features.maintenance4).unwrap();
    let gpu = NullGpu::new(profile);
    assert!(gpu.api_version() >= vk::API_VERSION_1_3);
    let device = gpu.device();
    let info = vk::BufferCreateInfo::default().size(1234).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    let plain = unsafe { device.get_buffer_memory_requirements(buffer) };
    let mut dedicated = vk::MemoryDedicatedRequirements::default().prefers_dedicated_allocation(true);
    let mut out = vk::MemoryRequirements2::default().push_next(&mut dedicated);
    let asked = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer);
    unsafe { device.get_buffer_memory_requirements2(&asked, &mut out) };
    assert_eq!(
        (out.memory_requirements.size, out.memory_requirements.alignment),
        (plain.size, plain.alignment)
    );
    assert_eq!(dedicated.prefers_dedicated_allocation, vk::FALSE);
    let mut out = vk::MemoryRequirements2::default();
    let asked = vk::DeviceBufferMemoryRequirements::default().create_info(&info);
    unsafe { device.get_device_buffer_memory_requirements(&asked, &mut out) };
    assert_eq!(out.memory_requirements.size, plain.size);

    let info = image_info(64, vk::ImageTiling::OPTIMAL).mip_levels(7).array_layers(3);
    let image = unsafe { device.create_image(&info, None) }.unwrap();
    let plain = unsafe { device.get_image_memory_requirements(image) };
    assert_eq!(plain.size, (64 * 64 * 4 * 3 * 4 / 3_u64).next_multiple_of(plain.alignment));
    let mut out = vk::MemoryRequirements2::default();
    let asked = vk::ImageMemoryRequirementsInfo2::default().image(image);
    unsafe { device.get_image_memory_requirements2(&asked, &mut out) };
    assert_eq!(out.memory_requirements.size, plain.size);
    let mut out = vk::MemoryRequirements2::default();
    let asked = vk::DeviceImageMemoryRequirements::default().create_info(&info);
    unsafe { device.get_device_image_memory_requirements(&asked, &mut out) };
    assert_eq!(out.memory_requirements.size, plain.size);
    let bind = [vk::BindBufferMemoryInfo::default().buffer(buffer)];
    unsafe { device.bind_buffer_memory2(&bind) }.unwrap();
    let khr = ash::khr::maintenance4::Device::new(gpu.instance(), device);
    let mut again = vk::MemoryRequirements2::default();
    unsafe { khr.get_device_image_memory_requirements(&asked, &mut again) };
    assert_eq!(again.memory_requirements.size, plain.size);
}

#[test]
fn descriptor_pools_never_refuse_and_sets_are_all_different() {
    let gpu = NullGpu::new(profile("nvidia-h200"));
    let device = gpu.device();
    let layout = unsafe { device.create_descriptor_set_layout(&Default::default(), None) }.unwrap();
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1);
    let pool = unsafe { device.create_descriptor_pool(&info, None) }.unwrap();
    let layouts = [layout; 5];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    let mut sets = unsafe { device.allocate_descriptor_sets(&info) }.unwrap();
    sets.extend(unsafe { device.allocate_descriptor_sets(&info) }.unwrap());
    assert!(sets.iter().all(|set| *set != vk::DescriptorSet::null()));
    unsafe { device.free_descriptor_sets(pool, &sets[..1]) }.unwrap();
    unsafe { device.reset_descriptor_pool(pool, vk::DescriptorPoolResetFlags::empty()) }.unwrap();
    let pipeline = unsafe { device.create_pipeline_layout(&Default::default(), None) }.unwrap();
    let commands = vk::CommandBuffer::null();
    let point = vk::PipelineBindPoint::COMPUTE;
    unsafe { device.cmd_bind_descriptor_sets(commands, point, pipeline, 0, &sets, &[]) };
    unsafe { device.cmd_push_constants(commands, pipeline, vk::ShaderStageFlags::COMPUTE, 0, &[0; 4]) };
    unsafe { device.update_descriptor_sets(&[vk::WriteDescriptorSet::default()], &[]) };
    unsafe { device.destroy_pipeline_layout(pipeline, None) };
    unsafe { device.destroy_descriptor_pool(pool, None) };
    sets.sort_unstable();
    sets.dedup();
    assert_eq!(sets.len(), 10);
}

#[test]
fn bindings_of_layouts_have_room_in_descriptor_buffers() {
    for profile in ALL.iter().filter(|profile| profile.features.descriptor_buffer) {
        let limits = profile.limits.descriptor_buffer.unwrap();
        let gpu = NullGpu::new(profile);
        let functions = ash::ext::descriptor_buffer::Device::new(gpu.instance(), gpu.device());
        let counts = [(vk::DescriptorType::SAMPLER, 3), (vk::DescriptorType::STORAGE_BUFFER, 1000)];
        let binding = |(number, (kind, count)): (u32, (vk::DescriptorType, u32))| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind)
                .descriptor_count(count)
        };
        let bindings: Vec<_> = (0..).zip(counts).map(binding).collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let layouts =
            [0; 2].map(|_| unsafe { gpu.device().create_descriptor_set_layout(&info, None) }.unwrap());
        assert_ne!(layouts[0], layouts[1]);
        let size = unsafe { functions.get_descriptor_set_layout_size(layouts[0]) };
        let offsets = [0, 1].map(|binding| unsafe {
            functions.get_descriptor_set_layout_binding_offset(layouts[0], binding)
        });
        let wide = crate::facts::arithmetic::widen;
        assert!(offsets[1] - offsets[0] >= 3 * wide(limits.sampler));
        assert!(
            size - offsets[1] >= 1000 * wide(limits.storage_buffer) && size % limits.offset_alignment == 0
        );
        assert!(offsets.iter().all(|offset| offset % 256 == 0));
        let mut bytes = [7; 96];
        unsafe { functions.get_descriptor(&vk::DescriptorGetInfoEXT::default(), &mut bytes) };
        assert_eq!(bytes, [7; 96]);
        unsafe { gpu.device().destroy_descriptor_set_layout(layouts[0], None) };
    }
}

#[test]
fn what_it_replaces_exists() {
    for (pfn, _) in crate::driver::null::functions() {
        let name = pfn.strip_prefix("PFN_").unwrap();
        let entry = crate::driver::find(name).unwrap();
        assert_eq!(entry.offers[0].name, name);
        assert!(crate::driver::null::function(entry).is_some());
    }
}
