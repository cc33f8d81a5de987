//! Buffers and images of many kinds: created, bound, destroyed.

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags, MemoryUsage};
use sublet_examples::Context;

use crate::{Fixture, on_each_device};

const USAGES: [vk::BufferUsageFlags; 7] = [
    vk::BufferUsageFlags::TRANSFER_SRC,
    vk::BufferUsageFlags::TRANSFER_DST,
    vk::BufferUsageFlags::UNIFORM_BUFFER,
    vk::BufferUsageFlags::STORAGE_BUFFER,
    vk::BufferUsageFlags::INDEX_BUFFER,
    vk::BufferUsageFlags::VERTEX_BUFFER,
    vk::BufferUsageFlags::INDIRECT_BUFFER,
];
const HOST_ACCESS: [Flags; 5] = [
    Flags::empty(),
    Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
    Flags::HOST_ACCESS_SEQUENTIAL_WRITE.union(Flags::MAPPED),
    Flags::HOST_ACCESS_RANDOM.union(Flags::MAPPED),
    Flags::HOST_ACCESS_SEQUENTIAL_WRITE.union(Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD),
];

#[test]
fn buffers_of_every_usage_and_host_access() {
    on_each_device(|fixture| {
        let mut buffers = Vec::new();
        for usage in USAGES {
            for memory in [MemoryUsage::Auto, MemoryUsage::AutoPreferDevice, MemoryUsage::AutoPreferHost] {
                for flags in HOST_ACCESS {
                    for size in [1, 100, 65_536] {
                        let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::new(memory) };
                        let (buffer, allocation) = fixture.buffer(size, usage, &info);
                        // SAFETY: the buffer is live.
                        let needs =
                            unsafe { fixture.context.device().get_buffer_memory_requirements(buffer) };
                        assert!(allocation.size() >= size);
                        assert_eq!(allocation.offset() % needs.alignment, 0);
                        assert_ne!(needs.memory_type_bits & (1 << allocation.memory_type_index()), 0);
                        let visible = host_visible(fixture, allocation.memory_type_index());
                        let must_see = flags.intersects(Flags::HOST_ACCESS_MASK)
                            && !flags.contains(Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD);
                        assert!(visible || !must_see, "{usage:?} {memory:?} {flags:?}");
                        assert_eq!(allocation.mapped_pointer().is_some(), flags.contains(Flags::MAPPED));
                        buffers.push((buffer, allocation));
                    }
                }
            }
        }
        fixture.allocator.validate();
        buffers.into_iter().for_each(|buffer| fixture.destroy(buffer));
    });
}

fn host_visible(fixture: &Fixture<'_>, memory_type: u32) -> bool {
    fixture.host_visible_types().contains(&memory_type)
}

#[test]
fn images_of_many_kinds_beside_buffers() {
    on_each_device(|fixture| {
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let mut images = Vec::new();
        let mut buffers = Vec::new();
        for info in kinds_of_images().iter().filter(|info| has(fixture.context, info)) {
            for _ in 0..2 {
                let (image, allocation) = fixture.image(info, &auto);
                // SAFETY: the image is live.
                let needs = unsafe { fixture.context.device().get_image_memory_requirements(image) };
                assert_eq!(allocation.size(), needs.size);
                assert_eq!(allocation.offset() % needs.alignment, 0);
                assert_ne!(needs.memory_type_bits & (1 << allocation.memory_type_index()), 0);
                images.push((image, allocation));
                // Between the images, so that the two kinds are adjacent wherever possible.
                buffers.push(fixture.buffer(1_000, vk::BufferUsageFlags::STORAGE_BUFFER, &auto));
            }
        }
        assert!(images.len() >= 8, "most of these kinds are there on every device: {}", images.len());
        fixture.allocator.validate();
        images.into_iter().for_each(|image| fixture.destroy_image(image));
        buffers.into_iter().for_each(|buffer| fixture.destroy(buffer));
    });
}

/// The driver decides about a single request above `maxMemoryAllocationSize`. Layers from 2025 on report it, and only
/// this test accepts that message.
#[test]
fn more_than_one_allocation_may_have() {
    on_each_device(|fixture| {
        let size = fixture.allocator.max_memory_allocation_size().saturating_add(1);
        let memory = fixture.context.memory_properties();
        let heap_of = |at: u32| memory.memory_heaps[memory.memory_types[at as usize].heap_index as usize];
        let types = fixture.types_with(vk::MemoryPropertyFlags::empty());
        let roomy = types.into_iter().find(|&at| heap_of(at).size / 10 * 8 > size);
        let Some(memory_type) = roomy else { return };
        let requirements = vk::MemoryRequirements { size, alignment: 1, memory_type_bits: 1 << memory_type };
        match fixture.allocator.allocate_memory(&requirements, &AllocationCreateInfo::default()) {
            Ok(allocation) => {
                assert!(allocation.is_dedicated());
                // SAFETY: nothing was bound to it.
                unsafe { fixture.allocator.free_memory(allocation) }.unwrap();
            }
            Err(error) => assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, "{error}"),
        }
        for message in fixture.context.messages() {
            assert!(message.contains("UNASSIGNED-vkAllocateMemory-maxMemoryAllocationSize"), "{message}");
        }
    });
}

/// An image that every device supports.
pub(crate) fn plain(side: u32) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: side, height: side, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST)
}

fn kinds_of_images() -> Vec<vk::ImageCreateInfo<'static>> {
    use vk::{Extent3D, Format, ImageCreateFlags, ImageTiling, ImageType, ImageUsageFlags, SampleCountFlags};
    let target = ImageUsageFlags::COLOR_ATTACHMENT;
    vec![
        plain(1),
        plain(100).mip_levels(7),
        plain(256).array_layers(6).flags(ImageCreateFlags::CUBE_COMPATIBLE),
        plain(64).image_type(ImageType::TYPE_1D).extent(Extent3D { width: 300, height: 1, depth: 1 }),
        plain(64).image_type(ImageType::TYPE_3D).extent(Extent3D { width: 32, height: 16, depth: 8 }),
        plain(512).usage(target | ImageUsageFlags::SAMPLED),
        plain(512).usage(target).samples(SampleCountFlags::TYPE_4),
        plain(512).usage(target | ImageUsageFlags::TRANSIENT_ATTACHMENT),
        plain(200).format(Format::D16_UNORM).usage(ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT),
        plain(200).format(Format::D32_SFLOAT_S8_UINT).usage(ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT),
        plain(128).format(Format::R16G16B16A16_SFLOAT).usage(ImageUsageFlags::STORAGE),
        plain(128).format(Format::BC1_RGB_UNORM_BLOCK),
        plain(128).format(Format::ASTC_4X4_UNORM_BLOCK),
        plain(128).tiling(ImageTiling::LINEAR).usage(ImageUsageFlags::TRANSFER_SRC),
    ]
}

/// Returns true if the device supports such images.
fn has(context: &Context, info: &vk::ImageCreateInfo<'_>) -> bool {
    // SAFETY: the physical device belongs to the instance.
    let limits = unsafe {
        context.instance().get_physical_device_image_format_properties(
            context.physical_device(),
            info.format,
            info.image_type,
            info.tiling,
            info.usage,
            info.flags,
        )
    };
    limits.is_ok_and(|limits| {
        limits.sample_counts.contains(info.samples)
            && limits.max_mip_levels >= info.mip_levels
            && limits.max_array_layers >= info.array_layers
    })
}

#[test]
fn dedicated_memory() {
    on_each_device(|fixture| {
        for flags in [Flags::empty(), Flags::CAN_ALIAS] {
            let info = AllocationCreateInfo {
                flags: flags | Flags::DEDICATED_MEMORY,
                priority: 1.0,
                ..AllocationCreateInfo::new(MemoryUsage::Auto)
            };
            let buffer = fixture.buffer(5_000, vk::BufferUsageFlags::STORAGE_BUFFER, &info);
            let image = fixture.image(&plain(200), &info);
            for allocation in [&buffer.1, &image.1] {
                assert!(allocation.is_dedicated());
                assert_eq!(allocation.offset(), 0);
                let about = fixture.allocator.allocation_info(allocation).unwrap();
                assert!(about.dedicated && about.memory_size == allocation.size());
            }
            assert_ne!(buffer.1.memory(), image.1.memory());
            if let Some(gpu) = fixture.context.gpu() {
                // Memory that several resources may share is not dedicated to one of them. In Vulkan 1.0 the chain has
                // no dedicated structure.
                let is_named = flags.is_empty() && fixture.context.api_version() >= vk::API_VERSION_1_1;
                let memory = gpu.memory_info(buffer.1.memory()).unwrap();
                assert_eq!(memory.dedicated_buffer == buffer.0, is_named, "{memory:?}");
                let memory = gpu.memory_info(image.1.memory()).unwrap();
                assert_eq!(memory.dedicated_image == image.0, is_named, "{memory:?}");
            }
            fixture.destroy(buffer);
            fixture.destroy_image(image);
        }
    });
}

#[test]
fn lazily_allocated_attachments_where_there_are_some() {
    on_each_device(|fixture| {
        let info = AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated);
        let transient = plain(256)
            .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSIENT_ATTACHMENT);
        // SAFETY: every device supports such images.
        let created = unsafe { fixture.allocator.create_image(&transient, &info) };
        let lazy = fixture.types_with(vk::MemoryPropertyFlags::LAZILY_ALLOCATED);
        match created {
            Ok(image) => {
                assert!(lazy.contains(&image.1.memory_type_index()) && image.1.is_dedicated());
                fixture.destroy_image(image);
            }
            Err(error) => assert!(lazy.is_empty(), "{error:?}"),
        }
    });
}

#[test]
fn the_memory_type_that_is_foretold_is_the_one_that_is_taken() {
    on_each_device(|fixture| {
        for usage in USAGES {
            for flags in HOST_ACCESS {
                let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
                let sample = vk::BufferCreateInfo::default().size(1_000).usage(usage);
                // SAFETY: the create-info is valid.
                let foretold =
                    unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&sample, &info) };
                let buffer = fixture.buffer(1_000, usage, &info);
                assert_eq!(foretold, Ok(buffer.1.memory_type_index()));
                fixture.destroy(buffer);
            }
        }
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        // SAFETY: the create-info is valid.
        let foretold = unsafe { fixture.allocator.find_memory_type_index_for_image_info(&plain(64), &auto) };
        let image = fixture.image(&plain(64), &auto);
        assert_eq!(foretold, Ok(image.1.memory_type_index()));
        fixture.destroy_image(image);
    });
}

#[test]
fn several_buffers_bound_to_one_allocation() {
    on_each_device(|fixture| {
        let info = vk::BufferCreateInfo::default().size(4_096).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        let device = fixture.context.device();
        // SAFETY: the create-info is valid.
        let buffers: Vec<_> = (0..4).map(|_| unsafe { device.create_buffer(&info, None) }.unwrap()).collect();
        // SAFETY: the buffer is live.
        let needs = unsafe { device.get_buffer_memory_requirements(buffers[0]) };
        let stride = needs.size.next_multiple_of(needs.alignment);
        let all = vk::MemoryRequirements { size: stride * 4, ..needs };
        let info = AllocationCreateInfo {
            flags: Flags::CAN_ALIAS,
            ..AllocationCreateInfo::new(MemoryUsage::GpuOnly)
        };
        let allocation = fixture.allocator.allocate_memory(&all, &info).unwrap();
        for (&buffer, index) in buffers.iter().zip(0..) {
            // SAFETY: the buffer is not bound, and each range is aligned and large enough.
            unsafe { fixture.allocator.bind_buffer_memory(&allocation, stride * index, buffer) }.unwrap();
        }
        for buffer in buffers {
            // SAFETY: the device does not use it.
            unsafe { device.destroy_buffer(buffer, None) };
        }
        // SAFETY: the buffers are destroyed.
        unsafe { fixture.allocator.free_memory(allocation) }.unwrap();
    });
}

#[test]
fn memory_for_a_resource_that_the_program_created() {
    on_each_device(|fixture| {
        let gpu_only = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let device = fixture.context.device();
        // SAFETY: the create-info is valid.
        let image = unsafe { device.create_image(&plain(128), None) }.unwrap();
        // SAFETY: the image is live, and not disjoint.
        let allocation = unsafe { fixture.allocator.allocate_memory_for_image(image, &gpu_only) }.unwrap();
        // SAFETY: the memory was allocated for this image, which is not bound.
        unsafe { fixture.allocator.bind_image_memory(&allocation, 0, image) }.unwrap();
        fixture.destroy_image((image, allocation));

        let later =
            AllocationCreateInfo { flags: Flags::DONT_BIND, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
        let (buffer, allocation) = fixture.buffer(100, vk::BufferUsageFlags::INDEX_BUFFER, &later);
        // SAFETY: the memory was allocated for this buffer, which is not bound: the layer would report a second bind.
        unsafe { fixture.allocator.bind_buffer_memory(&allocation, 0, buffer) }.unwrap();
        fixture.destroy((buffer, allocation));
    });
}

#[test]
fn buffers_with_a_device_address() {
    on_each_device(|fixture| {
        if !fixture.context.allocator_flags().contains(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS)
            || fixture.context.api_version() < vk::API_VERSION_1_2
        {
            return;
        }
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
            let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
            let buffer = fixture.buffer(10_000, usage, &info);
            let query = vk::BufferDeviceAddressInfo::default().buffer(buffer.0);
            // SAFETY: the feature is enabled, and the buffer is bound and has the usage.
            assert_ne!(unsafe { fixture.context.device().get_buffer_device_address(&query) }, 0);
            fixture.destroy(buffer);
        }
    });
}
