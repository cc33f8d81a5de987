//! Dedicated allocations: when a resource gets one, and the contents of its `pNext` chain.

use ash::vk;
use ash::vk::StructureType as Chained;
use sublet::sim::profiles::Profile;
use sublet::sim::{Gpu, MemoryInfo};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, AllocatorCreateFlags,
    MemoryAllocateNext, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

const TRANSFER: vk::BufferUsageFlags = vk::BufferUsageFlags::TRANSFER_DST;

fn memory_info(rig: &Rig, allocation: &sublet::Allocation) -> MemoryInfo {
    rig.gpu.memory_info(allocation.memory()).unwrap()
}

#[test]
fn asked_for() {
    on_every_gpu(|rig| {
        let own = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY);
        let first = rig.buffer(100, TRANSFER, &own).unwrap();
        let second = rig.buffer(100, TRANSFER, &own).unwrap();
        for (buffer, allocation) in [&first, &second] {
            assert!(allocation.is_dedicated());
            assert_eq!(allocation.offset(), 0);
            let info = memory_info(&rig, allocation);
            assert_eq!(info.size, allocation.size(), "not a byte more than the requirements say");
            let known = vk::api_version_minor(rig.gpu.api_version()) > 0;
            assert_eq!(info.dedicated_buffer, if known { *buffer } else { vk::Buffer::null() });
            assert!(rig.allocator.allocation_info(allocation).unwrap().dedicated);
        }
        assert_ne!(first.1.memory(), second.1.memory());
        rig.validate();
        rig.destroy_buffer(first);
        rig.destroy_buffer(second);
        assert_eq!(rig.gpu.live().memories, 0, "nothing of it is kept");
    });
}

#[test]
fn images_too() {
    on_every_gpu(|rig| {
        let own = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY);
        let image = rig.image(&square(64, vk::ImageUsageFlags::SAMPLED), &own).unwrap();
        let info = memory_info(&rig, &image.1);
        let known = vk::api_version_minor(rig.gpu.api_version()) > 0;
        assert_eq!(info.dedicated_image, if known { image.0 } else { vk::Image::null() });
        assert!(info.dedicated_buffer == vk::Buffer::null());
        assert!(image.1.is_dedicated());
        rig.destroy_image(image);
    });
}

#[test]
fn preferred_by_the_driver() {
    on_profiles(
        having(|profile| profile.images.prefers_dedicated_target_from.is_some_and(|from| from <= 16 * MIB)),
        |profile| {
            let rig = Rig::new(profile);
            let target = square(2048, vk::ImageUsageFlags::COLOR_ATTACHMENT);
            let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
            let image = rig.image(&target, &auto).unwrap();
            assert!(image.1.size() <= 64 * MIB, "not for its size");
            assert!(image.1.is_dedicated());
            assert_eq!(memory_info(&rig, &image.1).dedicated_image, image.0);
            let small = rig.image(&square(16, vk::ImageUsageFlags::COLOR_ATTACHMENT), &auto).unwrap();
            assert!(!small.1.is_dedicated(), "the driver does not prefer it for small ones");
            // A preference is not a requirement: if the driver refuses dedicated memory, the resource goes into a
            // block.
            let again = rig.image(&target, &auto).unwrap();
            rig.destroy_image(again);
            rig.gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            let refused = rig.image(&target, &auto).unwrap();
            assert!(!refused.1.is_dedicated());
            rig.destroy_image(refused);
            let never = with_flags(MemoryUsage::Auto, Flags::NEVER_ALLOCATE);
            rig.gpu.reset_calls();
            let shared = rig.image(&target, &never).unwrap();
            assert!(!shared.1.is_dedicated());
            assert_eq!(rig.gpu.calls("vkAllocateMemory"), 0);
            for image in [image, small, shared] {
                rig.destroy_image(image);
            }
        },
    );
}

#[test]
fn required_by_the_driver() {
    on_profiles(
        having(|profile| {
            profile.images.external_requires_dedicated
                && profile.features.external_memory
                && vk::api_version_minor(profile.api_version) > 0
        }),
        |profile| {
            let rig = Rig::new(profile);
            let mut external = vk::ExternalMemoryImageCreateInfo::default()
                .handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
            let info = square(16, vk::ImageUsageFlags::SAMPLED).push_next(&mut external);
            for flags in [Flags::empty(), Flags::CAN_ALIAS] {
                let image = rig.image(&info, &with_flags(MemoryUsage::Auto, flags)).unwrap();
                assert!(image.1.is_dedicated());
                assert_eq!(memory_info(&rig, &image.1).dedicated_image, image.0, "with {flags:?}");
                rig.destroy_image(image);
            }
            let never = with_flags(MemoryUsage::Auto, Flags::NEVER_ALLOCATE);
            let before = rig.snapshot();
            let error = rig.image(&info, &never).unwrap_err();
            assert!(
                matches!(
                    error,
                    sublet::CreateError::Allocation(sublet::AllocationError::Contradiction(
                        sublet::Contradiction::DedicatedNeverAllocate
                    ))
                ),
                "{error:?}"
            );
            assert_eq!(rig.snapshot(), before);
        },
    );
}

#[test]
fn larger_than_half_a_block() {
    on_every_gpu(|rig| {
        for memory_type in rig.types() {
            let half = rig.block_size(memory_type) / 2;
            let above = rig.memory(half + 1, 1, &in_type(memory_type)).unwrap();
            assert!(above.is_dedicated(), "type {memory_type}");
            assert_eq!(rig.memory_size(&above), half + 1);
            rig.free(above);
            let exact = rig.memory(half, 1, &in_type(memory_type)).unwrap();
            assert!(!exact.is_dedicated(), "type {memory_type}");
            rig.free(exact);
            rig.allocator.trim();
            // A size that no block can hold results in exactly one driver call.
            rig.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            rig.gpu.reset_calls();
            assert!(rig.memory(2 * half + 32, 1, &in_type(memory_type)).is_err());
            assert_eq!(rig.gpu.calls("vkAllocateMemory"), 1);
            rig.gpu.faults().clear();
            // If the driver refuses a dedicated allocation, the request falls back to a block if one can hold it.
            if rig.profile().limits.buffer_image_granularity == 1 {
                rig.gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
                let shared = rig.memory(half + 1, 1, &in_type(memory_type)).unwrap();
                assert!(!shared.is_dedicated());
                assert_eq!(rig.memory_size(&shared), 2 * half);
                rig.free(shared);
                rig.allocator.trim();
            }
        }
    });
}

#[test]
fn as_the_last_resort() {
    on_every_gpu(|rig| {
        for memory_type in rig.types() {
            rig.gpu.faults().fail_above(MIB);
            let own = rig.memory(MIB, 1, &in_type(memory_type)).unwrap();
            assert!(own.is_dedicated(), "type {memory_type}");
            let in_managed_pool = rig.pool(&PoolCreateInfo::new(memory_type)).unwrap();
            let pooled = rig.memory(MIB, 1, &AllocationCreateInfo::in_pool(&in_managed_pool)).unwrap();
            assert!(pooled.is_dedicated());
            rig.free_all([own, pooled]);
            rig.destroy_pool(in_managed_pool);
            rig.gpu.faults().clear();
        }
    });
}

#[test]
fn not_preferred_when_few_allocations_are_left() {
    on_profiles(having(|profile| profile.limits.max_memory_allocation_count == 4096), |profile| {
        let rig = Rig::new(profile);
        // Use the largest heap, which holds many such allocations.
        let memory_type = rig.types().into_iter().max_by_key(|&at| rig.heap_size(at)).unwrap();
        let half = rig.block_size(memory_type) / 2;
        let big = rig.memory(half, 1, &in_type(memory_type)).unwrap();
        let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let mut held: Vec<_> = (0..4096 / 4 * 3 - 1).map(|_| rig.memory(KIB, 1, &own).unwrap()).collect();
        // Exactly three quarters of the limit are in use: the preference still applies.
        assert_eq!(rig.gpu.live().memories, 3072);
        let preferred = rig.memory(half + 256, 1, &in_type(memory_type)).unwrap();
        assert!(preferred.is_dedicated());
        rig.free(preferred);
        held.push(rig.memory(KIB, 1, &own).unwrap());
        // One more allocation exceeds three quarters, so the request goes to a block.
        let shared = rig.memory(half + 256, 1, &in_type(memory_type)).unwrap();
        assert!(!shared.is_dedicated());
        held.push(shared);
        // An explicit `DEDICATED_MEMORY` flag still applies.
        held.push(rig.memory(KIB, 1, &own).unwrap());
        assert!(held.last().unwrap().is_dedicated());
        held.push(big);
        rig.free_all(held);
    });
}

/// Returns the expected chain, in order, of an allocator with everything enabled.
fn expected(rig: &Rig, device_address: bool, dedicated: bool) -> Vec<Chained> {
    let flags = enabled(&rig.gpu);
    let mut chain = Vec::new();
    if flags.contains(AllocatorCreateFlags::EXT_MEMORY_PRIORITY) {
        chain.push(Chained::MEMORY_PRIORITY_ALLOCATE_INFO_EXT);
    }
    if device_address && flags.contains(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS) {
        chain.push(Chained::MEMORY_ALLOCATE_FLAGS_INFO);
    }
    if dedicated && vk::api_version_minor(rig.gpu.api_version()) > 0 {
        chain.push(Chained::MEMORY_DEDICATED_ALLOCATE_INFO);
    }
    chain
}

#[test]
fn chains_of_blocks() {
    on_every_gpu(|rig| {
        let priority = AllocationCreateInfo { priority: 0.9, ..in_type(0) };
        let shared = rig.memory(KIB, 1, &priority).unwrap();
        assert!(!shared.is_dedicated());
        let info = memory_info(&rig, &shared);
        assert_eq!(info.chain, expected(&rig, true, false));
        if rig.profile().features.memory_priority {
            assert_eq!(info.priority, Some(0.5), "a block is for many, and has no priority of one of them");
        }
        assert_eq!(
            info.flags & 2 != 0,
            rig.profile().features.buffer_device_address,
            "bit 1 is DEVICE_ADDRESS"
        );
        rig.free(shared);
    });
}

#[test]
fn chains_of_dedicated_allocations() {
    on_every_gpu(|rig| {
        let own =
            AllocationCreateInfo { priority: 0.9, ..with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY) };
        let check = |info: &MemoryInfo, device_address, dedicated| {
            assert_eq!(info.chain, expected(&rig, device_address, dedicated));
            assert_eq!(info.priority, rig.profile().features.memory_priority.then_some(0.9));
        };
        let plain = rig.buffer(KIB, TRANSFER, &own).unwrap();
        check(&memory_info(&rig, &plain.1), false, true);
        rig.destroy_buffer(plain);

        if rig.profile().features.buffer_device_address {
            let usage = TRANSFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
            let addressed = rig.buffer(KIB, usage, &own).unwrap();
            check(&memory_info(&rig, &addressed.1), true, true);
            rig.destroy_buffer(addressed);
        }

        let image = rig.image(&square(16, vk::ImageUsageFlags::SAMPLED), &own).unwrap();
        check(&memory_info(&rig, &image.1), false, true);
        rig.destroy_image(image);

        let unknown = AllocationCreateInfo { usage: MemoryUsage::Unknown, ..own };
        let memory = rig.memory(KIB, 1, &unknown).unwrap();
        check(&memory_info(&rig, &memory), true, false);
        rig.free(memory);

        let alias = AllocationCreateInfo { flags: own.flags | Flags::CAN_ALIAS, ..own };
        let aliased = rig.buffer(KIB, TRANSFER, &alias).unwrap();
        let info = memory_info(&rig, &aliased.1);
        check(&info, false, false);
        assert!(info.dedicated_buffer == vk::Buffer::null());
        rig.destroy_buffer(aliased);
    });
}

#[test]
fn memory_for_a_buffer_that_the_program_made() {
    on_every_gpu(|rig| {
        let info = vk::BufferCreateInfo::default().size(KIB).usage(TRANSFER);
        // SAFETY: the create-info is valid.
        let buffer = unsafe { rig.gpu.device().create_buffer(&info, None) }.unwrap();
        let own = with_flags(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY);
        // SAFETY: the buffer is live.
        let allocation = unsafe { rig.allocator.allocate_memory_for_buffer(buffer, &own) }.unwrap();
        // The allocator does not know the buffer's usage, so it assumes that the buffer needs an address.
        assert_eq!(memory_info(&rig, &allocation).chain, expected(&rig, true, true));
        // SAFETY: the memory was allocated for the buffer, which is not bound.
        unsafe { rig.allocator.bind_buffer_memory(&allocation, 0, buffer) }.unwrap();
        rig.destroy_buffer((buffer, allocation));

        // SAFETY: the create-info is valid.
        let image = unsafe { rig.gpu.device().create_image(&square(16, vk::ImageUsageFlags::SAMPLED), None) }
            .unwrap();
        // SAFETY: the image is live.
        let allocation = unsafe { rig.allocator.allocate_memory_for_image(image, &own) }.unwrap();
        assert_eq!(memory_info(&rig, &allocation).chain, expected(&rig, false, true));
        // SAFETY: the memory was allocated for the image, which is not bound.
        unsafe { rig.allocator.bind_image_memory(&allocation, 0, image) }.unwrap();
        rig.destroy_image((image, allocation));
    });
}

#[test]
fn pools_have_a_chain_and_a_priority_of_their_own() {
    on_profiles(having(|profile| profile.features.external_memory), |profile| {
        let rig = Rig::new(profile);
        let export = vk::ExportMemoryAllocateInfo::default()
            .handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
        let info = PoolCreateInfo {
            priority: 0.25,
            // SAFETY: `export` lives until the pool is destroyed, and the extension is enabled.
            memory_allocate_next: unsafe { MemoryAllocateNext::new(std::ptr::from_ref(&export).cast()) },
            ..PoolCreateInfo::new(0)
        };
        let pool = rig.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo { priority: 0.9, ..AllocationCreateInfo::in_pool(&pool) };
        let shared = rig.memory(KIB, 1, &in_pool).unwrap();
        let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..in_pool };
        let own = rig.memory(KIB, 1, &own).unwrap();
        for allocation in [&shared, &own] {
            let info = memory_info(&rig, allocation);
            let mut chain = expected(&rig, true, false);
            chain.push(Chained::EXPORT_MEMORY_ALLOCATE_INFO);
            assert_eq!(info.chain, chain);
            assert_eq!(info.priority, profile.features.memory_priority.then_some(0.25));
            assert_ne!(info.export_handle_types, 0);
        }
        assert!(own.is_dedicated() && !shared.is_dedicated());
        rig.free_all([shared, own]);
        rig.destroy_pool(pool);
    });
}

#[test]
fn nothing_is_chained_that_is_not_enabled() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let flags = Some(AllocatorCreateFlags::empty());
        let rig = Rig::with(gpu, &Options { flags, ..Options::default() });
        let own = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY);
        let buffer = rig.buffer(KIB, TRANSFER, &own).unwrap();
        let core = vk::api_version_minor(rig.gpu.api_version()) > 0;
        let chain = if core { vec![Chained::MEMORY_DEDICATED_ALLOCATE_INFO] } else { Vec::new() };
        assert_eq!(memory_info(&rig, &buffer.1).chain, chain);
        let shared = rig.memory(KIB, 1, &in_type(0)).unwrap();
        assert_eq!(memory_info(&rig, &shared).chain, []);
        rig.free(shared);
        rig.destroy_buffer(buffer);
    });
}

#[test]
fn lazily_allocated_memory_is_dedicated() {
    on_profiles(having(|profile| profile.types.iter().any(|kind| kind.flags.contains(LAZY))), |profile| {
        let rig = Rig::new(profile);
        let usage = vk::ImageUsageFlags::TRANSIENT_ATTACHMENT | vk::ImageUsageFlags::COLOR_ATTACHMENT;
        let lazily = AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated);
        let image = rig.image(&square(64, usage), &lazily).unwrap();
        assert!(image.1.is_dedicated());
        assert!(rig.properties(image.1.memory_type_index()).contains(LAZY));
        rig.destroy_image(image);
    });
}

/// The driver's preference applies even if an existing block has free space.
#[test]
fn a_preference_counts_where_a_block_has_room() {
    let prefers = |profile: &Profile| profile.images.prefers_dedicated_target_from.is_some();
    on_profiles(having(prefers), |profile| {
        let rig = Rig::new(profile);
        let info = AllocationCreateInfo::new(MemoryUsage::Auto);
        let target = square(1024, vk::ImageUsageFlags::COLOR_ATTACHMENT);
        // SAFETY: the create-info is valid.
        let memory_type = unsafe { rig.allocator.find_memory_type_index_for_image_info(&target, &info) };
        let kept = rig.memory(KIB, 1, &in_type(memory_type.unwrap())).unwrap();
        let target = rig.image(&target, &info).unwrap();
        assert_eq!(target.1.memory_type_index(), kept.memory_type_index());
        assert!(rig.memory_size(&kept) >= target.1.size() * 2, "there is room");
        assert!(target.1.is_dedicated());
        rig.destroy_image(target);
        rig.free(kept);
    });
}

/// Memory requested with `DEDICATED_MEMORY` does not count as a block of a pool with a limit, so freeing it permits no
/// further block.
#[test]
fn freeing_what_does_not_count_makes_no_room() {
    on_every_gpu(|rig| {
        let memory_type = rig.types().into_iter().max_by_key(|&at| rig.heap_size(at)).unwrap();
        let info = PoolCreateInfo { max_block_count: 1, ..PoolCreateInfo::new(memory_type) };
        let pool = rig.pool(&info).unwrap();
        let plain = AllocationCreateInfo::in_pool(&pool);
        let named = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..plain };
        // A request above the block size is dedicated, and counts.
        let large = rig.memory(rig.block_size(memory_type) + 1, 1, &plain).unwrap();
        assert!(large.is_dedicated());
        for _ in 0..2 {
            let other = rig.memory(KIB, 1, &named).unwrap();
            rig.free(other);
            let error = rig.memory(KIB, 1, &plain).unwrap_err();
            let is_full = matches!(error, AllocationError::Full { block_count: 1, max_block_count: 1, .. });
            assert!(is_full, "{error:?}");
        }
        rig.free(large);
        let block = rig.memory(KIB, 1, &plain).unwrap();
        rig.free(block);
        rig.destroy_pool(pool);
    });
}
