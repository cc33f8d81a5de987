//! Aliasing resources in existing memory, and binds with an offset and a `pNext` chain.

use ash::vk;
use sublet::sim::Gpu;
use sublet::{
    AliasError, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags, BindError,
    CreateError, FindMemoryTypeError, ForeignHandle, MemoryUsage,
};

use crate::common::*;

fn storage(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::STORAGE_BUFFER)
}

#[test]
fn several_resources_share_an_allocation() {
    on_every_gpu(|fixture| {
        fixture.gpu.allow_aliasing(true);
        let memory = fixture.memory(MIB, 64 * KIB, &AllocationCreateInfo::new(MemoryUsage::GpuOnly)).unwrap();
        let at = 128 * KIB;
        let buffers = [0, 64 * KIB].map(|offset| {
            // SAFETY: the create-info is valid, and the device never uses the buffer.
            unsafe { fixture.allocator.create_aliasing_buffer(&memory, offset, &storage(100 * KIB)) }.unwrap()
        });
        // SAFETY: as above.
        let image = unsafe {
            fixture.allocator.create_aliasing_image(&memory, at, &square(64, vk::ImageUsageFlags::SAMPLED))
        };
        // A memory type that supports buffers need not support images.
        let is_there = match image {
            Ok(image) => {
                // SAFETY: the device does not use it.
                unsafe { fixture.gpu.device().destroy_image(image, None) };
                true
            }
            Err(error) => {
                assert!(matches!(error, CreateError::Alias(AliasError::MemoryType { .. })), "{error:?}");
                false
            }
        };
        assert!(is_there || fixture.profile().types.len() > 1);
        assert_eq!(fixture.gpu.live().buffers, 2);
        for buffer in buffers {
            // SAFETY: the device does not use it.
            unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
        }
        fixture.free(memory);
    });
}

/// Every rejected request leaves nothing behind and makes no invalid call to the driver.
#[test]
fn places_that_cannot_be() {
    on_every_gpu(|fixture| {
        let other = Fixture::new(fixture.profile());
        let memory =
            fixture.memory(64 * KIB, 4 * KIB, &AllocationCreateInfo::new(MemoryUsage::GpuOnly)).unwrap();
        let alias = |fixture: &Fixture, offset, info: &vk::BufferCreateInfo<'_>| {
            // SAFETY: the create-info is valid.
            unsafe { fixture.allocator.create_aliasing_buffer(&memory, offset, info) }.unwrap_err()
        };
        let out_of_range = |error: CreateError| {
            let CreateError::Alias(AliasError::OutOfRange { offset, allocation_size, .. }) = error else {
                panic!("{error:?}");
            };
            assert_eq!(allocation_size, 64 * KIB);
            offset
        };
        assert_eq!(out_of_range(alias(&fixture, 64 * KIB, &storage(4))), 64 * KIB);
        assert_eq!(out_of_range(alias(&fixture, u64::MAX, &storage(4))), u64::MAX);
        assert_eq!(out_of_range(alias(&fixture, 32 * KIB, &storage(33 * KIB))), 32 * KIB);
        assert_eq!(out_of_range(alias(&fixture, 0, &storage(64 * KIB + 1))), 0);
        let odd = alias(&fixture, 1, &storage(4));
        let at = memory.offset() + 1;
        assert!(
            matches!(odd, CreateError::Alias(AliasError::Alignment { offset, .. }) if offset == at),
            "{odd:?}"
        );
        assert_eq!(alias(&fixture, 0, &storage(0)), CreateError::ZeroExtent);
        let foreign = CreateError::Alias(AliasError::Foreign(ForeignHandle::Allocation));
        assert_eq!(alias(&other, 0, &storage(4)), foreign);
        let flat = vk::Extent3D { width: 16, height: 0, depth: 1 };
        let image_info = square(16, vk::ImageUsageFlags::SAMPLED).extent(flat);
        // SAFETY: the allocator rejects the extent before it calls the driver.
        let image = unsafe { fixture.allocator.create_aliasing_image(&memory, 0, &image_info) };
        assert_eq!(image.unwrap_err(), CreateError::ZeroExtent);
        // SAFETY: the create-info is valid.
        let image = unsafe {
            fixture.allocator.create_aliasing_image(&memory, 0, &square(1024, vk::ImageUsageFlags::SAMPLED))
        };
        assert!(matches!(image, Err(CreateError::Alias(_))));
        fixture.free(memory);
    });
}

#[test]
fn a_bind_that_fails_destroys_what_was_created() {
    on_every_gpu(|fixture| {
        let memory = fixture.memory(MIB, 64 * KIB, &AllocationCreateInfo::new(MemoryUsage::GpuOnly)).unwrap();
        fixture.gpu.faults().fail_nth("vkBindBufferMemory", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        // SAFETY: the create-info is valid.
        let error =
            unsafe { fixture.allocator.create_aliasing_buffer(&memory, 0, &storage(KIB)) }.unwrap_err();
        assert!(matches!(error, CreateError::Bind(_)));
        assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        fixture.gpu.faults().fail_nth("vkCreateBuffer", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        // SAFETY: as above.
        let error =
            unsafe { fixture.allocator.create_aliasing_buffer(&memory, 0, &storage(KIB)) }.unwrap_err();
        assert!(matches!(error, CreateError::Resource(_)));
        assert_eq!(fixture.gpu.live().buffers, 0);
        fixture.free(memory);
    });
}

#[test]
fn an_address_needs_its_flag_here_too() {
    on_profiles(having(|profile| profile.features.buffer_device_address), |profile| {
        let gpu = Gpu::new(profile);
        let flags = enabled(&gpu) - AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS;
        let fixture = Fixture::with(gpu, &Options { flags: Some(flags), ..Options::default() });
        let memory = fixture.memory(KIB, 256, &AllocationCreateInfo::default()).unwrap();
        let info = storage(64).usage(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        // SAFETY: the create-info is valid.
        let error = unsafe { fixture.allocator.create_aliasing_buffer(&memory, 0, &info) }.unwrap_err();
        assert_eq!(error, CreateError::DeviceAddress);
        fixture.free(memory);
    });
}

/// A chain uses `vkBind*Memory2`, and is rejected if the device lacks that call.
#[test]
fn a_chain_for_binding() {
    on_profiles(having(|profile| profile.api_version >= vk::API_VERSION_1_1), |profile| {
        let group = vk::BindBufferMemoryDeviceGroupInfo::default();
        let image_group = vk::BindImageMemoryDeviceGroupInfo::default();
        let old = Gpu::builder(profile)
            .api_version(vk::API_VERSION_1_0)
            .extension("VK_KHR_get_memory_requirements2")
            .extension("VK_KHR_dedicated_allocation")
            .build();
        let fixtures = [Fixture::new(profile), Fixture::with(old, &Options::default())];
        for (fixture, has_call) in fixtures.into_iter().zip([true, false]) {
            let info = with_flags(MemoryUsage::Auto, Flags::DONT_BIND);
            let (buffer, memory) = fixture.buffer(KIB, vk::BufferUsageFlags::STORAGE_BUFFER, &info).unwrap();
            let next = std::ptr::from_ref(&group).cast();
            // SAFETY: the memory was allocated for the buffer, the buffer is not bound, and the chain is valid.
            let bound = unsafe { fixture.allocator.bind_buffer_memory2(&memory, 0, buffer, next) };
            let (image, image_memory) =
                fixture.image(&square(16, vk::ImageUsageFlags::SAMPLED), &info).unwrap();
            let next = std::ptr::from_ref(&image_group).cast();
            // SAFETY: as above.
            let image_bound = unsafe { fixture.allocator.bind_image_memory2(&image_memory, 0, image, next) };
            if has_call {
                assert_eq!((bound, image_bound), (Ok(()), Ok(())));
                assert_eq!(fixture.gpu.calls("vkBindBufferMemory2"), 1);
                assert_eq!(fixture.gpu.calls("vkBindImageMemory2"), 1);
            } else {
                let error = bound.unwrap_err();
                assert_eq!(error, BindError::ExtensionNotPresent);
                assert_eq!(image_bound, Err(BindError::ExtensionNotPresent));
                assert_eq!(error.vk_result(), vk::Result::ERROR_EXTENSION_NOT_PRESENT);
            }
            fixture.destroy_buffer((buffer, memory));
            fixture.destroy_image((image, image_memory));
        }
    });
}

/// Each plane of a disjoint image needs its own memory, so the request is rejected before anything is created.
#[test]
fn disjoint_images() {
    on_every_gpu(|fixture| {
        let info = square(16, vk::ImageUsageFlags::SAMPLED).flags(vk::ImageCreateFlags::DISJOINT);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        assert_eq!(fixture.image(&info, &auto).unwrap_err(), CreateError::Disjoint);
        // SAFETY: the request is rejected before the driver is called.
        let found = unsafe { fixture.allocator.find_memory_type_index_for_image_info(&info, &auto) };
        assert_eq!(found.unwrap_err(), FindMemoryTypeError::Disjoint);
        assert_eq!(fixture.gpu.calls("vkCreateImage"), 0);
    });
}
