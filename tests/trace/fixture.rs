//! Shared fixture: an allocator on a simulated GPU, and its trace.

use std::collections::BTreeSet;

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::trace::{AllocationNumber, Event, Trace, TraceBuffer};
use sublet::{Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

pub fn gpu() -> Gpu {
    Gpu::new(Profile::by_name("intel-uhd-630").unwrap())
}

pub fn allocator(gpu: &Gpu) -> Allocator {
    allocator_with(gpu, |_| {})
}

pub fn allocator_with(gpu: &Gpu, change: impl FnOnce(&mut AllocatorCreateInfo<'_>)) -> Allocator {
    let mut info = AllocatorCreateInfo::for_gpu(gpu);
    change(&mut info);
    // SAFETY: in every test the GPU outlives the allocator.
    unsafe { Allocator::new(&info) }.unwrap()
}

/// Runs `program` and returns its trace.
pub fn recorded(allocator: &Allocator, program: impl FnOnce()) -> Trace {
    let buffer = TraceBuffer::new();
    allocator.start_recording(buffer.clone()).unwrap();
    program();
    let summary = allocator.stop_recording().unwrap();
    let bytes = buffer.bytes();
    assert_eq!(summary.bytes, u64::try_from(bytes.len()).unwrap());
    let trace = Trace::read(&bytes).unwrap();
    check(&trace);
    trace
}

pub fn events(trace: &Trace) -> Vec<Event> {
    trace.records.iter().map(|record| record.event.clone()).collect()
}

/// Checks invariants of every trace: times do not decrease, and no object is named before it exists or after its end.
pub fn check(trace: &Trace) {
    let mut live = BTreeSet::new();
    for pair in trace.records.windows(2) {
        assert!(pair[0].time <= pair[1].time);
    }
    for record in &trace.records {
        match &record.event {
            Event::Existing(existing) => assert!(live.insert(existing.allocation)),
            Event::Allocate(made) => assert!(live.insert(made.allocation)),
            Event::Free { allocation } => assert!(live.remove(allocation)),
            event => assert!(event.allocation().is_none_or(|allocation| live.contains(&allocation))),
        }
    }
    let numbers: BTreeSet<_> = trace
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Allocate(made) => Some(made.allocation),
            Event::Existing(existing) => Some(existing.allocation),
            _ => None,
        })
        .collect();
    let count = u32::try_from(numbers.len()).unwrap();
    assert!(numbers.into_iter().eq((0..count).map(AllocationNumber)));
}

pub fn requirements(size: u64) -> vk::MemoryRequirements {
    vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 }
}

pub fn allocate(allocator: &Allocator, size: u64) -> Allocation {
    let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    allocator.allocate_memory(&requirements(size), &info).unwrap()
}

pub fn host(allocator: &Allocator, size: u64) -> Allocation {
    let info = AllocationCreateInfo::new(MemoryUsage::CpuOnly);
    allocator.allocate_memory(&requirements(size), &info).unwrap()
}

pub fn free(allocator: &Allocator, allocation: Allocation) {
    // SAFETY: nothing was bound to it.
    unsafe { allocator.free_memory(allocation) }.unwrap();
}
