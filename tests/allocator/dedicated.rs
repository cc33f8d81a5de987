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

fn memory_info(fixture: &Fixture, allocation: &sublet::Allocation) -> MemoryInfo {
    fixture.gpu.memory_info(allocation.memory()).unwrap()
}

#[test]
fn asked_for() {
    on_every_gpu(|fixture| {
        let own = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY);
        let first = fixture.buffer(100, TRANSFER, &own).unwrap();
        let second = fixture.buffer(100, TRANSFER, &own).unwrap();
        for (buffer, allocation) in [&first, &second] {
            assert!(allocation.is_dedicated());
            assert_eq!(allocation.offset(), 0);
            let info = memory_info(&fixture, allocation);
            assert_eq!(info.size, allocation.size(), "not a byte more than the requirements say");
            let known = vk::api_version_minor(fixture.gpu.api_version()) > 0;
            assert_eq!(info.dedicated_buffer, if known { *buffer } else { vk::Buffer::null() });
            assert!(fixture.allocator.allocation_info(allocation).unwrap().dedicated);
        }
        assert_ne!(first.1.memory(), second.1.memory());
        fixture.validate();
        fixture.destroy_buffer(first);
        fixture.destroy_buffer(second);
        assert_eq!(fixture.gpu.live().memories, 0, "nothing of it is kept");
    });
}

#[test]
fn images_too() {
    on_every_gpu(|fixture| {
        let own = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY);
        let image = fixture.image(&square(64, vk::ImageUsageFlags::SAMPLED), &own).unwrap();
        let info = memory_info(&fixture, &image.1);
        let known = vk::api_version_minor(fixture.gpu.api_version()) > 0;
        assert_eq!(info.dedicated_image, if known { image.0 } else { vk::Image::null() });
        assert!(info.dedicated_buffer == vk::Buffer::null());
        assert!(image.1.is_dedicated());
        fixture.destroy_image(image);
    });
}

#[test]
fn preferred_by_the_driver() {
    on_profiles(
        having(|profile| profile.images.prefers_dedicated_target_from.is_some_and(|from| from <= 16 * MIB)),
        |profile| {
            let fixture = Fixture::new(profile);
            let target = square(2048, vk::ImageUsageFlags::COLOR_ATTACHMENT);
            let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
            let image = fixture.image(&target, &auto).unwrap();
            assert!(image.1.size() <= 64 * MIB, "not for its size");
            assert!(image.1.is_dedicated());
            assert_eq!(memory_info(&fixture, &image.1).dedicated_image, image.0);
            let small = fixture.image(&square(16, vk::ImageUsageFlags::COLOR_ATTACHMENT), &auto).unwrap();
            assert!(!small.1.is_dedicated(), "the driver does not prefer it for small ones");
            // A preference is not a requirement: if the driver refuses dedicated memory, the resource goes into a
            // block.
            let again = fixture.image(&target, &auto).unwrap();
            fixture.destroy_image(again);
            fixture.gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            let refused = fixture.image(&target, &auto).unwrap();
            assert!(!refused.1.is_dedicated());
            fixture.destroy_image(refused);
            let never = with_flags(MemoryUsage::Auto, Flags::NEVER_ALLOCATE);
            fixture.gpu.reset_calls();
            let shared = fixture.image(&target, &never).unwrap();
            assert!(!shared.1.is_dedicated());
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
            for image in [image, small, shared] {
                fixture.destroy_image(image);
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
            let fixture = Fixture::new(profile);
            let mut external = vk::ExternalMemoryImageCreateInfo::default()
                .handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
            let info = square(16, vk::ImageUsageFlags::SAMPLED).push_next(&mut external);
            for flags in [Flags::empty(), Flags::CAN_ALIAS] {
                let image = fixture.image(&info, &with_flags(MemoryUsage::Auto, flags)).unwrap();
                assert!(image.1.is_dedicated());
                assert_eq!(memory_info(&fixture, &image.1).dedicated_image, image.0, "with {flags:?}");
                fixture.destroy_image(image);
            }
            let never = with_flags(MemoryUsage::Auto, Flags::NEVER_ALLOCATE);
            let before = fixture.snapshot();
            let error = fixture.image(&info, &never).unwrap_err();
            assert!(
                matches!(
                    error,
                    sublet::CreateError::Allocation(sublet::AllocationError::Contradiction(
                        sublet::Contradiction::DedicatedNeverAllocate
                    ))
                ),
                "{error:?}"
            );
            assert_eq!(fixture.snapshot(), before);
        },
    );
}

#[test]
fn larger_than_half_a_block() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let half = fixture.block_size(memory_type) / 2;
            let above = fixture.memory(half + 1, 1, &in_type(memory_type)).unwrap();
            assert!(above.is_dedicated(), "type {memory_type}");
            assert_eq!(fixture.memory_size(&above), half + 1);
            fixture.free(above);
            let exact = fixture.memory(half, 1, &in_type(memory_type)).unwrap();
            assert!(!exact.is_dedicated(), "type {memory_type}");
            fixture.free(exact);
            fixture.allocator.trim();
            // A size that no block can hold results in exactly one driver call.
            fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            fixture.gpu.reset_calls();
            assert!(fixture.memory(2 * half + 32, 1, &in_type(memory_type)).is_err());
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
            fixture.gpu.faults().clear();
            // If the driver refuses a dedicated allocation, the request falls back to a block if one can hold it.
            if fixture.profile().limits.buffer_image_granularity == 1 {
                fixture.gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
                let shared = fixture.memory(half + 1, 1, &in_type(memory_type)).unwrap();
                assert!(!shared.is_dedicated());
                assert!((half + 1..=2 * half).contains(&fixture.memory_size(&shared)));
                fixture.free(shared);
                fixture.allocator.trim();
            }
        }
    });
}

#[test]
fn as_the_last_resort() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            fixture.gpu.faults().fail_above(MIB);
            let own = fixture.memory(MIB, 1, &in_type(memory_type)).unwrap();
            assert!(own.is_dedicated(), "type {memory_type}");
            let in_managed_pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
            let pooled = fixture.memory(MIB, 1, &AllocationCreateInfo::in_pool(&in_managed_pool)).unwrap();
            assert!(pooled.is_dedicated());
            fixture.free_all([own, pooled]);
            fixture.destroy_pool(in_managed_pool);
            fixture.gpu.faults().clear();
        }
    });
}

#[test]
fn not_preferred_when_few_allocations_are_left() {
    on_profiles(having(|profile| profile.limits.max_memory_allocation_count == 4096), |profile| {
        let fixture = Fixture::new(profile);
        // Use the largest heap, which holds many such allocations.
        let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
        let half = fixture.block_size(memory_type) / 2;
        let big = fixture.memory(half, 1, &in_type(memory_type)).unwrap();
        let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let mut held: Vec<_> = (0..4096 / 4 * 3 - 1).map(|_| fixture.memory(KIB, 1, &own).unwrap()).collect();
        // Exactly three quarters of the limit are in use: the preference still applies.
        assert_eq!(fixture.gpu.live().memories, 3072);
        let preferred = fixture.memory(half + 256, 1, &in_type(memory_type)).unwrap();
        assert!(preferred.is_dedicated());
        fixture.free(preferred);
        held.push(fixture.memory(KIB, 1, &own).unwrap());
        // One more allocation exceeds three quarters, so the request goes to a block.
        let shared = fixture.memory(half + 256, 1, &in_type(memory_type)).unwrap();
        assert!(!shared.is_dedicated());
        held.push(shared);
        // An explicit `DEDICATED_MEMORY` flag still applies.
        held.push(fixture.memory(KIB, 1, &own).unwrap());
        assert!(held.last().unwrap().is_dedicated());
        held.push(big);
        fixture.free_all(held);
    });
}

/// Returns the expected chain, in order, of an allocator with everything enabled.
fn expected(fixture: &Fixture, device_address: bool, dedicated: bool) -> Vec<Chained> {
    let flags = enabled(&fixture.gpu);
    let mut chain = Vec::new();
    if flags.contains(AllocatorCreateFlags::EXT_MEMORY_PRIORITY) {
        chain.push(Chained::MEMORY_PRIORITY_ALLOCATE_INFO_EXT);
    }
    if device_address && flags.contains(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS) {
        chain.push(Chained::MEMORY_ALLOCATE_FLAGS_INFO);
    }
    if dedicated && vk::api_version_minor(fixture.gpu.api_version()) > 0 {
        chain.push(Chained::MEMORY_DEDICATED_ALLOCATE_INFO);
    }
    chain
}

#[test]
fn chains_of_blocks() {
    on_every_gpu(|fixture| {
        let priority = AllocationCreateInfo { priority: 0.9, ..in_type(0) };
        let shared = fixture.memory(KIB, 1, &priority).unwrap();
        assert!(!shared.is_dedicated());
        let info = memory_info(&fixture, &shared);
        assert_eq!(info.chain, expected(&fixture, true, false));
        if fixture.profile().features.memory_priority {
            assert_eq!(info.priority, Some(0.5), "a block is for many, and has no priority of one of them");
        }
        assert_eq!(
            info.flags & 2 != 0,
            fixture.profile().features.buffer_device_address,
            "bit 1 is DEVICE_ADDRESS"
        );
        fixture.free(shared);
    });
}

#[test]
fn chains_of_dedicated_allocations() {
    on_every_gpu(|fixture| {
        let own =
            AllocationCreateInfo { priority: 0.9, ..with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY) };
        let check = |info: &MemoryInfo, device_address, dedicated| {
            assert_eq!(info.chain, expected(&fixture, device_address, dedicated));
            assert_eq!(info.priority, fixture.profile().features.memory_priority.then_some(0.9));
        };
        let plain = fixture.buffer(KIB, TRANSFER, &own).unwrap();
        check(&memory_info(&fixture, &plain.1), false, true);
        fixture.destroy_buffer(plain);

        if fixture.profile().features.buffer_device_address {
            let usage = TRANSFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
            let addressed = fixture.buffer(KIB, usage, &own).unwrap();
            check(&memory_info(&fixture, &addressed.1), true, true);
            fixture.destroy_buffer(addressed);
        }

        let image = fixture.image(&square(16, vk::ImageUsageFlags::SAMPLED), &own).unwrap();
        check(&memory_info(&fixture, &image.1), false, true);
        fixture.destroy_image(image);

        let unknown = AllocationCreateInfo { usage: MemoryUsage::Unknown, ..own };
        let memory = fixture.memory(KIB, 1, &unknown).unwrap();
        check(&memory_info(&fixture, &memory), true, false);
        fixture.free(memory);

        let alias = AllocationCreateInfo { flags: own.flags | Flags::CAN_ALIAS, ..own };
        let aliased = fixture.buffer(KIB, TRANSFER, &alias).unwrap();
        let info = memory_info(&fixture, &aliased.1);
        check(&info, false, false);
        assert!(info.dedicated_buffer == vk::Buffer::null());
        fixture.destroy_buffer(aliased);
    });
}

#[test]
fn memory_for_a_buffer_that_the_program_made() {
    on_every_gpu(|fixture| {
        let info = vk::BufferCreateInfo::default().size(KIB).usage(TRANSFER);
        // SAFETY: the create-info is valid.
        let buffer = unsafe { fixture.gpu.device().create_buffer(&info, None) }.unwrap();
        let own = with_flags(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY);
        // SAFETY: the buffer is live.
        let allocation = unsafe { fixture.allocator.allocate_memory_for_buffer(buffer, &own) }.unwrap();
        // The allocator does not know the buffer's usage, so it assumes that the buffer needs an address.
        assert_eq!(memory_info(&fixture, &allocation).chain, expected(&fixture, true, true));
        // SAFETY: the memory was allocated for the buffer, which is not bound.
        unsafe { fixture.allocator.bind_buffer_memory(&allocation, 0, buffer) }.unwrap();
        fixture.destroy_buffer((buffer, allocation));

        // SAFETY: the create-info is valid.
        let image =
            unsafe { fixture.gpu.device().create_image(&square(16, vk::ImageUsageFlags::SAMPLED), None) }
                .unwrap();
        // SAFETY: the image is live.
        let allocation = unsafe { fixture.allocator.allocate_memory_for_image(image, &own) }.unwrap();
        assert_eq!(memory_info(&fixture, &allocation).chain, expected(&fixture, false, true));
        // SAFETY: the memory was allocated for the image, which is not bound.
        unsafe { fixture.allocator.bind_image_memory(&allocation, 0, image) }.unwrap();
        fixture.destroy_image((image, allocation));
    });
}

#[test]
fn pools_have_a_chain_and_a_priority_of_their_own() {
    on_profiles(having(|profile| profile.features.external_memory), |profile| {
        let fixture = Fixture::new(profile);
        let export = vk::ExportMemoryAllocateInfo::default()
            .handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
        let info = PoolCreateInfo {
            priority: 0.25,
            // SAFETY: `export` lives until the pool is destroyed, and the extension is enabled.
            memory_allocate_next: unsafe { MemoryAllocateNext::new(std::ptr::from_ref(&export).cast()) },
            ..PoolCreateInfo::new(0)
        };
        let pool = fixture.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo { priority: 0.9, ..AllocationCreateInfo::in_pool(&pool) };
        let shared = fixture.memory(KIB, 1, &in_pool).unwrap();
        let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..in_pool };
        let own = fixture.memory(KIB, 1, &own).unwrap();
        for allocation in [&shared, &own] {
            let info = memory_info(&fixture, allocation);
            let mut chain = expected(&fixture, true, false);
            chain.push(Chained::EXPORT_MEMORY_ALLOCATE_INFO);
            assert_eq!(info.chain, chain);
            assert_eq!(info.priority, profile.features.memory_priority.then_some(0.25));
            assert_ne!(info.export_handle_types, 0);
        }
        assert!(own.is_dedicated() && !shared.is_dedicated());
        fixture.free_all([shared, own]);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn nothing_is_chained_that_is_not_enabled() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let flags = Some(AllocatorCreateFlags::empty());
        let fixture = Fixture::with(gpu, &Options { flags, ..Options::default() });
        let own = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY);
        let buffer = fixture.buffer(KIB, TRANSFER, &own).unwrap();
        let core = vk::api_version_minor(fixture.gpu.api_version()) > 0;
        let chain = if core { vec![Chained::MEMORY_DEDICATED_ALLOCATE_INFO] } else { Vec::new() };
        assert_eq!(memory_info(&fixture, &buffer.1).chain, chain);
        let shared = fixture.memory(KIB, 1, &in_type(0)).unwrap();
        assert_eq!(memory_info(&fixture, &shared).chain, []);
        fixture.free(shared);
        fixture.destroy_buffer(buffer);
    });
}

#[test]
fn lazily_allocated_memory_is_dedicated() {
    on_profiles(having(|profile| profile.types.iter().any(|kind| kind.flags.contains(LAZY))), |profile| {
        let fixture = Fixture::new(profile);
        let usage = vk::ImageUsageFlags::TRANSIENT_ATTACHMENT | vk::ImageUsageFlags::COLOR_ATTACHMENT;
        let lazily = AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated);
        let image = fixture.image(&square(64, usage), &lazily).unwrap();
        assert!(image.1.is_dedicated());
        assert!(fixture.properties(image.1.memory_type_index()).contains(LAZY));
        fixture.destroy_image(image);
    });
}

/// The driver's preference applies even if an existing block has free space.
#[test]
fn a_preference_counts_where_a_block_has_room() {
    let prefers = |profile: &Profile| profile.images.prefers_dedicated_target_from.is_some();
    on_profiles(having(prefers), |profile| {
        let fixture = Fixture::with(Gpu::new(profile), &Options::vma());
        let info = AllocationCreateInfo::new(MemoryUsage::Auto);
        let target = square(1024, vk::ImageUsageFlags::COLOR_ATTACHMENT);
        // SAFETY: the create-info is valid.
        let memory_type = unsafe { fixture.allocator.find_memory_type_index_for_image_info(&target, &info) };
        let kept = fixture.memory(KIB, 1, &in_type(memory_type.unwrap())).unwrap();
        let target = fixture.image(&target, &info).unwrap();
        assert_eq!(target.1.memory_type_index(), kept.memory_type_index());
        assert!(fixture.memory_size(&kept) >= target.1.size() * 2, "there is room");
        assert!(target.1.is_dedicated());
        fixture.destroy_image(target);
        fixture.free(kept);
    });
}

/// Memory requested with `DEDICATED_MEMORY` does not count as a block of a pool with a limit, so freeing it permits no
/// further block.
#[test]
fn freeing_what_does_not_count_makes_no_room() {
    on_every_gpu(|fixture| {
        let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
        let info = PoolCreateInfo { max_block_count: 1, ..PoolCreateInfo::new(memory_type) };
        let pool = fixture.pool(&info).unwrap();
        let plain = AllocationCreateInfo::in_pool(&pool);
        let named = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..plain };
        // A request above the block size is dedicated, and counts.
        let large = fixture.memory(fixture.block_size(memory_type) + 1, 1, &plain).unwrap();
        assert!(large.is_dedicated());
        for _ in 0..2 {
            let other = fixture.memory(KIB, 1, &named).unwrap();
            fixture.free(other);
            let error = fixture.memory(KIB, 1, &plain).unwrap_err();
            let is_full = matches!(error, AllocationError::Full { block_count: 1, max_block_count: 1, .. });
            assert!(is_full, "{error:?}");
        }
        fixture.free(large);
        let block = fixture.memory(KIB, 1, &plain).unwrap();
        fixture.free(block);
        fixture.destroy_pool(pool);
    });
}
