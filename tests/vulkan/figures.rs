//! The allocator's own figures: budgets, statistics, trim.

use ash::vk;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, Allocator, AllocatorCreateFlags,
    AllocatorCreateInfo, CreateError, MemoryError, MemoryUsage, Statistics,
};

use crate::{on_each_context, on_each_device};

const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;

#[test]
fn budgets_follow_what_is_taken_and_given_back() {
    on_each_device(|fixture| {
        fixture.allocator.set_current_frame_index(0);
        let before = fixture.allocator.heap_budgets();
        assert_eq!(before.len(), fixture.context.memory_properties().memory_heap_count as usize);
        assert!(before.iter().all(|heap| heap.budget > 0 && heap.statistics == Statistics::default()));
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let buffers: Vec<_> = (0..16).map(|_| fixture.buffer(1 << 20, STORAGE, &auto)).collect();
        let memory_type = buffers[0].1.memory_type_index() as usize;
        let heap = fixture.context.memory_properties().memory_types[memory_type].heap_index as usize;
        let during = fixture.allocator.heap_budgets();
        assert_eq!(during[heap].statistics.allocation_count, 16);
        assert!(during[heap].statistics.allocation_bytes >= 16 << 20);
        assert!(during[heap].statistics.block_bytes >= during[heap].statistics.allocation_bytes);
        assert!(during[heap].usage >= before[heap].usage + (16 << 20), "{during:?}");
        let types = fixture.allocator.memory_type_statistics();
        assert_eq!(types[memory_type], during[heap].statistics);
        assert_eq!(fixture.allocator.calculate_statistics().total.statistics, types[memory_type]);

        buffers.into_iter().for_each(|buffer| fixture.destroy(buffer));
        let kept = fixture.allocator.heap_budgets()[heap].statistics;
        assert_eq!(kept.allocation_count, 0);
        assert_eq!(fixture.allocator.trim(), kept.block_bytes, "all that was kept is given back");
        assert_eq!(fixture.allocator.heap_budgets()[heap].statistics, Statistics::default());
        assert_eq!(fixture.allocator.trim(), 0);
    });
}

#[test]
fn within_budget_is_kept_on_every_path() {
    on_each_context(|context| {
        let limits = vec![16 << 20; context.memory_properties().memory_heap_count as usize];
        let info = AllocatorCreateInfo { heap_size_limits: &limits, ..context.allocator_info() };
        // SAFETY: the context created the handles, and outlives the allocator.
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        let buffer_info = vk::BufferCreateInfo::default().size(1 << 20).usage(STORAGE);
        for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
            let within = AllocationCreateInfo {
                flags: flags | Flags::WITHIN_BUDGET,
                ..AllocationCreateInfo::new(MemoryUsage::GpuOnly)
            };
            let mut buffers = Vec::new();
            let refused = loop {
                // SAFETY: the create-info is valid.
                match unsafe { allocator.create_buffer(&buffer_info, &within) } {
                    Ok(buffer) => buffers.push(buffer),
                    Err(error) => break error,
                }
            };
            let by_budget = matches!(
                refused,
                CreateError::Allocation(AllocationError::Memory(
                    MemoryError::OverBudget { .. } | MemoryError::HeapLimit { .. }
                ))
            );
            assert!(by_budget, "{refused:?}");
            for (heap, limit) in allocator.heap_budgets().iter().zip(&limits) {
                // If the budget is an estimate, it is stricter than the limit.
                assert!(heap.statistics.block_bytes <= heap.budget && heap.budget <= *limit, "{heap:?}");
            }
            // The heaps held at least the limit of one of them, apart from rounding to blocks. A driver's own figures
            // also include other tests of this process.
            let by_driver = context.allocator_info().flags.contains(AllocatorCreateFlags::EXT_MEMORY_BUDGET);
            assert!(by_driver || buffers.len() >= 8, "{}", buffers.len());
            for (buffer, allocation) in buffers {
                // SAFETY: the device does not use it.
                unsafe { allocator.destroy_buffer(buffer, allocation) }.unwrap();
            }
            allocator.trim();
        }
    });
}

#[test]
fn what_nobody_maps_any_more_is_unmapped_by_trim() {
    on_each_device(|fixture| {
        let host = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_RANDOM,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        let stays = fixture.buffer(1_000, STORAGE, &host);
        let mapped = fixture.buffer(
            1_000,
            STORAGE,
            &AllocationCreateInfo { flags: host.flags | Flags::MAPPED, ..host },
        );
        assert_eq!(stays.1.memory(), mapped.1.memory());
        let mappings = || fixture.context.gpu().map(|gpu| gpu.live().mapped);
        fixture.allocator.trim();
        assert!(mappings().is_none_or(|count| count == 1), "somebody has it mapped");
        fixture.destroy(mapped);
        fixture.allocator.trim();
        assert!(mappings().is_none_or(|count| count == 0), "nobody has it mapped");
        fixture.destroy(stays);
    });
}
