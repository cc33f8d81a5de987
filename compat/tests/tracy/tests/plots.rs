//! Runs the layer in a Tracy client on a simulated GPU. No profiler is needed, because the client accepts points
//! without one.

use ash::vk;
use sublet::{
    AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateFlags, AllocatorCreateInfo, sim,
};
use sublet_in_tracy::MemoryPlots;
use tracing_subscriber::layer::SubscriberExt as _;

const MIB: u64 = 1 << 20;

#[test]
fn memory_becomes_plots() {
    let plots = MemoryPlots::default();
    assert!(tracy_client::Client::is_running());
    let subscriber =
        tracing_subscriber::registry().with(tracing_tracy::TracyLayer::default()).with(plots.clone());
    tracing::subscriber::set_global_default(subscriber).expect("the first one");

    let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").expect("a known GPU"));
    let info = AllocatorCreateInfo::for_gpu(&gpu);
    let limits = vec![100 * MIB; gpu.profile().heaps.len()];
    let flags = info.flags - AllocatorCreateFlags::EXT_MEMORY_BUDGET;
    // SAFETY: the handles are live, and outlive the allocator.
    let allocator =
        unsafe { Allocator::new(&AllocatorCreateInfo { heap_size_limits: &limits, flags, ..info }) };
    let allocator = allocator.expect("an allocator");
    let info = AllocationCreateInfo {
        flags: AllocationCreateFlags::DEDICATED_MEMORY,
        memory_type_bits: 1,
        ..Default::default()
    };
    let requirements = vk::MemoryRequirements { size: 10 * MIB, alignment: 256, memory_type_bits: !0 };
    let heap = gpu.profile().types[0].heap;
    let point = |name: &str| plots.last().get(name).copied();
    let reserved = format!("heap {heap}: reserved");
    let share = format!("heap {heap}: share of the budget");

    let mut held = Vec::new();
    for count in 1..=8_u64 {
        held.push(allocator.allocate_memory(&requirements, &info).expect("there is room"));
        assert_eq!(point(&reserved), Some((count * 10 * MIB) as f64));
        assert_eq!(point("blocks"), Some(count as f64));
    }
    // The budget is 80 % of the limit, and it is exhausted.
    assert_eq!(point(&share), Some(100.0));
    for allocation in held {
        // SAFETY: nothing was ever bound to it.
        unsafe { allocator.free_memory(allocation) }.expect("it is this allocator's");
    }
    assert_eq!((point(&reserved), point("blocks")), (Some(0.0), Some(0.0)));
    assert_eq!(point(&share), Some(75.0), "the last time that a share was crossed");
    drop(allocator);
    assert!(gpu.finish().is_empty());
}
