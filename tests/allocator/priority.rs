//! Memory priorities, at allocation and later.

use ash::vk;
use sublet::sim::Gpu;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags, ForeignHandle, MemoryUsage,
    PoolCreateInfo, PriorityError,
};

use crate::common::*;

fn pageable(profile: &sublet::sim::Profile) -> bool {
    profile.features.pageable_device_local_memory
}

fn fixture(profile: &'static sublet::sim::Profile) -> Held<Fixture> {
    let gpu = Gpu::new(profile);
    let flags = enabled(&gpu) | AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY;
    Fixture::with(gpu, &Options { flags: Some(flags), ..Options::default() })
}

fn priority_of(fixture: &Fixture, memory: vk::DeviceMemory) -> Option<f32> {
    fixture.gpu.memory_info(memory).unwrap().priority
}

#[test]
fn a_dedicated_allocation_changes_its_priority() {
    on_profiles(having(pageable), |profile| {
        let fixture = fixture(profile);
        let info = AllocationCreateInfo {
            priority: 0.25,
            ..with_flags(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY)
        };
        let (alone, bystander) =
            (fixture.memory(KIB, 1, &info).unwrap(), fixture.memory(KIB, 1, &info).unwrap());
        assert_eq!(priority_of(&fixture, alone.memory()), Some(0.25));
        for priority in [1.0, 0.0, 0.5] {
            fixture.allocator.set_allocation_priority(&alone, priority).unwrap();
            assert_eq!(priority_of(&fixture, alone.memory()), Some(priority));
        }
        assert_eq!(priority_of(&fixture, bystander.memory()), Some(0.25));
        assert_eq!(fixture.gpu.calls("vkSetDeviceMemoryPriorityEXT"), 3);
        let shared = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
        let refused = fixture.allocator.set_allocation_priority(&shared, 1.0);
        assert_eq!(refused, Err(PriorityError::NotDedicated));
        for priority in [-0.1, 1.1, f32::NAN] {
            let refused = fixture.allocator.set_allocation_priority(&alone, priority);
            assert!(matches!(refused, Err(PriorityError::Priority { .. })));
        }
        let other = self::fixture(profile);
        let refused = other.allocator.set_allocation_priority(&alone, 1.0);
        assert_eq!(refused, Err(PriorityError::Foreign(ForeignHandle::Allocation)));
        assert_eq!(fixture.gpu.calls("vkSetDeviceMemoryPriorityEXT"), 3);
        fixture.free_all([alone, bystander, shared]);
    });
}

#[test]
fn a_pool_changes_the_priority_of_all_that_it_has_and_will_have() {
    on_profiles(having(pageable), |profile| {
        let fixture = fixture(profile);
        let info = PoolCreateInfo { priority: 0.25, ..PoolCreateInfo::new(0) };
        let (pool, bystander) = (fixture.pool(&info).unwrap(), fixture.pool(&info).unwrap());
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let alone = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..in_pool };
        let first = fixture.memory(KIB, 1, &in_pool).unwrap();
        let dedicated = fixture.memory(KIB, 1, &alone).unwrap();
        let elsewhere = fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&bystander)).unwrap();
        fixture.allocator.set_pool_priority(&pool, 1.0).unwrap();
        let large = fixture.memory_size(&first) / 2 + KIB;
        let second = fixture.memory(large, 1, &in_pool).unwrap();
        let third = fixture.memory(KIB, 1, &alone).unwrap();
        for memory in [&first, &dedicated, &second, &third] {
            assert_eq!(priority_of(&fixture, memory.memory()), Some(1.0));
        }
        assert_eq!(priority_of(&fixture, elsewhere.memory()), Some(0.25));
        let refused = fixture.allocator.set_pool_priority(&pool, 2.0);
        assert_eq!(refused, Err(PriorityError::Priority { priority: 2.0 }));
        let other = self::fixture(profile);
        assert_eq!(
            other.allocator.set_pool_priority(&pool, 1.0),
            Err(PriorityError::Foreign(ForeignHandle::Pool))
        );
        fixture.free_all([first, dedicated, elsewhere, second, third]);
        fixture.destroy_pool(pool);
        fixture.destroy_pool(bystander);
    });
}

#[test]
fn without_the_extension_or_its_flag() {
    on_every_profile(|profile| {
        // `enabled` does not include the flag.
        let fixture = Fixture::new(profile);
        let alone = with_flags(MemoryUsage::GpuOnly, Flags::DEDICATED_MEMORY);
        let memory = fixture.memory(KIB, 1, &alone).unwrap();
        assert_eq!(fixture.allocator.set_allocation_priority(&memory, 1.0), Err(PriorityError::NotEnabled));
        fixture.free(memory);
        drop(fixture);
        if !pageable(profile) {
            let fixture = self::fixture(profile);
            let memory = fixture.memory(KIB, 1, &alone).unwrap();
            assert_eq!(
                fixture.allocator.set_allocation_priority(&memory, 1.0),
                Err(PriorityError::NotEnabled)
            );
            fixture.free(memory);
        }
    });
}
