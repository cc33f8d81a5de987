//! Events about blocks, dedicated memory, refusals and budgets.

use ash::vk;
use sublet::sim::Gpu;
use sublet::sim::profiles::{self, Profile};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateFlags,
    AllocatorCreateInfo, MaintainInfo, MemoryUsage, PoolCreateInfo, ScopeCreateInfo,
};

use crate::collect::{Seen, heard, names};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn gpu() -> Gpu {
    Gpu::new(Profile::by_name("nvidia-rtx-5070-ti").unwrap())
}

pub(crate) fn allocator(gpu: &Gpu) -> Allocator {
    // SAFETY: instance and device are live, and outlive the allocator.
    unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(gpu)) }.unwrap()
}

pub(crate) fn requirements(size: u64) -> vk::MemoryRequirements {
    vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 }
}

/// Returns a host-visible and host-coherent memory type.
pub(crate) fn host_type(gpu: &Gpu) -> u32 {
    let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let at = gpu.profile().types.iter().position(|kind| kind.flags.contains(wanted)).unwrap();
    u32::try_from(at).unwrap()
}

fn free(allocator: &Allocator, allocation: sublet::Allocation) {
    // SAFETY: nothing was bound to it.
    unsafe { allocator.free_memory(allocation) }.unwrap();
}

fn own() -> AllocationCreateInfo<'static> {
    AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..Default::default() }
}

pub(crate) fn blocks() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let allocation = allocator.allocate_memory(&requirements(KIB), &Default::default()).unwrap();
    let map = allocator.memory_map();
    assert_eq!(map.statistics().total.statistics.allocation_count, 1);
    free(&allocator, allocation);
    allocator.set_current_frame_index(1);
    assert!(allocator.trim() > 0);
    let scope =
        allocator.create_scope(&ScopeCreateInfo { name: Some("level"), ..Default::default() }).unwrap();
    let _freed_with_it =
        allocator.allocate_memory(&requirements(KIB), &AllocationCreateInfo::in_scope(&scope)).unwrap();
    // SAFETY: nothing was bound to its allocations.
    unsafe { allocator.free_scope(scope) }.unwrap();
}

pub(crate) fn ahead() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    allocator.reserve(0, MIB).unwrap();
    allocator.maintain(&MaintainInfo::default());
}

pub(crate) fn refusals() {
    let gpu = gpu();
    // VMA's rule, by which a block for 100 MiB would have more.
    let info = AllocatorCreateInfo {
        preferred_large_heap_block_size: 256 * MIB,
        ..AllocatorCreateInfo::for_gpu(&gpu)
    };
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    let info = PoolCreateInfo {
        block_size: MIB,
        max_block_count: 1,
        name: Some("meshes"),
        ..PoolCreateInfo::new(host_type(&gpu))
    };
    let pool = allocator.create_pool(&info).unwrap();
    let in_pool = AllocationCreateInfo::in_pool(&pool);
    let first = allocator.allocate_memory(&requirements(MIB), &in_pool).unwrap();
    allocator.allocate_memory(&requirements(KIB), &in_pool).unwrap_err();
    free(&allocator, first);
    // SAFETY: the pool is empty.
    unsafe { allocator.destroy_pool(pool) }.unwrap();
    gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    allocator.allocate_memory(&requirements(100 * MIB), &Default::default()).unwrap_err();
}

/// The driver has no memory until the empty block of a pool is freed.
pub(crate) fn relief() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(host_type(&gpu)) };
    let pool = allocator.create_pool(&info).unwrap();
    let first = allocator.allocate_memory(&requirements(MIB), &AllocationCreateInfo::in_pool(&pool)).unwrap();
    free(&allocator, first);
    let beside = AllocationCreateInfo { memory_type_bits: 1 << host_type(&gpu), ..own() };
    gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let dedicated = allocator.allocate_memory(&requirements(KIB), &beside).unwrap();
    free(&allocator, dedicated);
    // SAFETY: the pool is empty.
    unsafe { allocator.destroy_pool(pool) }.unwrap();
}

pub(crate) fn dedicated() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let chosen = allocator.allocate_memory(&requirements(KIB), &own()).unwrap();
    free(&allocator, chosen);
    let large = requirements(200 * MIB);
    let chosen = allocator.allocate_memory(&large, &Default::default()).unwrap();
    free(&allocator, chosen);
    gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let shared = allocator.allocate_memory(&large, &Default::default()).unwrap();
    assert!(!shared.is_dedicated());
    free(&allocator, shared);
}

/// Creates an allocator that limits the first heap to `limit` bytes and does not query budgets.
fn limited(gpu: &Gpu, limit: u64) -> Allocator {
    let info = AllocatorCreateInfo::for_gpu(gpu);
    let flags = info.flags - AllocatorCreateFlags::EXT_MEMORY_BUDGET;
    let heap = gpu.profile().types[0].heap;
    let mut limits = vec![vk::WHOLE_SIZE; gpu.profile().heaps.len()];
    limits[usize::try_from(heap).unwrap()] = limit;
    // SAFETY: instance and device are live, and outlive the allocator.
    unsafe { Allocator::new(&AllocatorCreateInfo { flags, heap_size_limits: &limits, ..info }) }.unwrap()
}

pub(crate) fn budgets() {
    let gpu = gpu();
    let allocator = limited(&gpu, 100 * MIB);
    let info = AllocationCreateInfo { memory_type_bits: 1, ..own() };
    let take = || allocator.allocate_memory(&requirements(10 * MIB), &info).unwrap();
    let mut held: Vec<_> = (0..9).map(|_| take()).collect();
    held.drain(5..).for_each(|allocation| free(&allocator, allocation));
    held.into_iter().for_each(|allocation| free(&allocator, allocation));
}

/// Reaches three quarters of the device's allocation limit.
pub(crate) fn allocation_count() {
    let few = |profile: &&&Profile| profile.limits.max_memory_allocation_count == 4096;
    let gpu = Gpu::new(profiles::ALL.iter().find(few).unwrap());
    let allocator = allocator(&gpu);
    let held: Vec<_> =
        (0..3073).map(|_| allocator.allocate_memory(&requirements(KIB), &own()).unwrap()).collect();
    let large = requirements(gpu.profile().heaps[0].size / 8);
    let large = allocator
        .allocate_memory(&large, &AllocationCreateInfo { memory_type_bits: 1, ..Default::default() });
    for allocation in held.into_iter().chain(large) {
        free(&allocator, allocation);
    }
}

/// Exceeds the device's allocation limit by one. The simulated driver grants it.
pub(crate) fn above_limit() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let allocator = allocator(&gpu);
    let info = AllocationCreateInfo { memory_type_bits: 1 << 1, ..Default::default() };
    let limit = gpu.profile().limits.max_memory_allocation_size;
    for size in [limit, limit + 1] {
        let allocation = allocator.allocate_memory(&requirements(size), &info).unwrap();
        free(&allocator, allocation);
    }
}

fn of<'a>(seen: &'a [Seen], name: &str) -> Vec<&'a Seen> {
    seen.iter().filter(|seen| seen.name() == name).collect()
}

#[test]
fn a_block_is_emitted_with_the_figures_that_a_plot_needs() {
    let seen = heard(blocks);
    let expected = [
        "grow",
        "block_created",
        "memory_map",
        "frame_begun",
        "trim",
        "destroy_block",
        "block_destroyed",
        "trimmed",
        "grow",
        "block_created",
        "destroy_block",
        "block_destroyed",
        "scope_freed",
    ];
    assert_eq!(names(&seen), expected);
    let (created, destroyed) = (of(&seen, "block_created"), of(&seen, "block_destroyed"));
    for (created, destroyed) in created.iter().zip(&destroyed) {
        let size = created.number("size");
        assert!(size >= MIB);
        assert_eq!((created.number("blocks"), destroyed.number("blocks")), (1, 0));
        assert_eq!((created.number("heap_bytes"), destroyed.number("heap_bytes")), (size, 0));
        assert_eq!(created.get("dedicated"), "false");
    }
    assert_eq!((created[0].get("pool"), created[1].get("pool")), ("", "level"));
    assert_eq!(destroyed[1].get("pool"), "level", "the pool's name, although the pool is gone");
    assert_eq!(of(&seen, "trimmed")[0].number("bytes"), created[0].number("size"));
}

#[test]
fn the_time_that_the_driver_took_is_told() {
    let seen = heard(|| {
        let gpu = gpu();
        gpu.faults().delay("vkAllocateMemory", std::time::Duration::from_millis(5));
        gpu.faults().delay("vkFreeMemory", std::time::Duration::from_millis(10));
        let allocator = allocator(&gpu);
        let allocation = allocator.allocate_memory(&requirements(KIB), &own()).unwrap();
        free(&allocator, allocation);
    });
    // There is no upper limit: on a busy machine, a call may take any time.
    assert!(of(&seen, "block_created")[0].number("nanoseconds") >= 5_000_000);
    assert!(of(&seen, "block_destroyed")[0].number("nanoseconds") >= 10_000_000);
}

#[test]
fn a_refusal_says_why_and_what_is_tried_next() {
    let seen = heard(refusals);
    let exhausted = of(&seen, "pool_exhausted");
    assert_eq!(exhausted.len(), 1);
    assert_eq!((exhausted[0].get("pool"), exhausted[0].number("max_blocks")), ("meshes", 1));
    assert_eq!((exhausted[0].number("size"), exhausted[0].number("free")), (KIB, 0));
    let refused = of(&seen, "block_refused");
    assert!(refused.iter().all(|seen| seen.get("reason") == "driver"));
    assert!(refused.iter().all(|seen| seen.get("result") == "ERROR_OUT_OF_DEVICE_MEMORY"));
    // The sizes halve until only dedicated memory is left to try.
    let sizes: Vec<_> = refused.iter().map(|seen| (seen.number("size"), seen.get("next_size"))).collect();
    assert_eq!(sizes[0].1, (sizes[0].0 / 2).to_string());
    assert!(
        sizes.windows(2).all(|pair| pair[0].1.is_empty() || pair[0].1 == pair[1].0.to_string()),
        "{sizes:?}"
    );
    assert_eq!(of(&seen, "dedicated_chosen")[0].get("reason"), "no_block");
    let fallback = of(&seen, "memory_type_fallback");
    assert!(!fallback.is_empty() && fallback[0].get("from") != fallback[0].get("to"));
    assert_eq!(of(&seen, "allocation_failed").len(), 2, "in the pool, and in all memory types");
}

#[test]
fn a_limit_is_told_from_the_driver_s_answer() {
    let reasons = |limit, flags| {
        let seen = heard(|| {
            let gpu = gpu();
            let allocator = limited(&gpu, limit);
            let info = AllocationCreateInfo { memory_type_bits: 1, flags, ..Default::default() };
            let held = allocator.allocate_memory(&requirements(6 * MIB), &info).unwrap();
            allocator.allocate_memory(&requirements(6 * MIB), &info).unwrap_err();
            free(&allocator, held);
        });
        let refused = of(&seen, "block_refused");
        assert!(refused.iter().all(|seen| seen.get("result").is_empty()), "the driver was not asked");
        refused.iter().map(|seen| seen.get("reason").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(reasons(10 * MIB, Flags::DEDICATED_MEMORY), ["heap_limit"]);
    assert_eq!(reasons(14 * MIB, Flags::DEDICATED_MEMORY | Flags::WITHIN_BUDGET), ["over_budget"]);
}

#[test]
fn why_an_allocation_has_memory_of_its_own_is_told() {
    let seen = heard(dedicated);
    let reasons: Vec<_> = of(&seen, "dedicated_chosen").iter().map(|seen| seen.get("reason")).collect();
    assert_eq!(reasons, ["flag", "large", "large"]);
    let declined = of(&seen, "dedicated_declined");
    assert_eq!((declined.len(), declined[0].get("reason")), (1, "refused"));

    let reason = |profile: &str, info: AllocationCreateInfo<'_>, debug| {
        let seen = heard(|| {
            let gpu = Gpu::new(Profile::by_name(profile).unwrap());
            let create = AllocatorCreateInfo { debug, ..AllocatorCreateInfo::for_gpu(&gpu) };
            // SAFETY: instance and device are live, and outlive the allocator.
            let allocator = unsafe { Allocator::new(&create) }.unwrap();
            let image = vk::ImageCreateInfo::default()
                .image_type(vk::ImageType::TYPE_2D)
                .format(vk::Format::R8G8B8A8_UNORM)
                .extent(vk::Extent3D { width: 2048, height: 2048, depth: 1 })
                .mip_levels(1)
                .array_layers(1)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSIENT_ATTACHMENT);
            // SAFETY: the create-info is valid.
            let (image, allocation) = unsafe { allocator.create_image(&image, &info) }.unwrap();
            // SAFETY: the device never used it.
            unsafe { allocator.destroy_image(image, allocation) }.unwrap();
        });
        of(&seen, "dedicated_chosen").first().map(|seen| seen.get("reason").to_owned())
    };
    let auto = || AllocationCreateInfo::new(MemoryUsage::Auto);
    let always = sublet::DebugSettings { always_dedicated: true, ..Default::default() };
    assert_eq!(reason("lavapipe", auto(), always).as_deref(), Some("always_dedicated"));
    let lazy = AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated);
    assert_eq!(reason("arm-mali-g52", lazy, Default::default()).as_deref(), Some("lazily_allocated"));
    let prefers = profiles::ALL.iter().find(|profile| {
        reason(profile.name, auto(), Default::default()).as_deref() == Some("driver_prefers")
    });
    assert!(prefers.is_some(), "a driver that prefers dedicated memory for what is rendered to");
}

#[test]
fn a_size_above_the_limit_of_one_allocation_is_told() {
    let seen = heard(above_limit);
    let emitted = of(&seen, "allocation_above_limit");
    let limit = Profile::by_name("nvidia-h200").unwrap().limits.max_memory_allocation_size;
    assert_eq!((emitted.len(), emitted[0].number("size"), emitted[0].number("limit")), (1, limit + 1, limit));
    assert_eq!((emitted[0].number("memory_type"), *emitted[0].metadata.level()), (1, tracing::Level::WARN));
}

#[test]
fn a_budget_is_told_once_for_each_crossing() {
    let seen = heard(budgets);
    let emitted: Vec<_> = seen.iter().filter(|seen| seen.metadata.target() == "sublet::budget").collect();
    let emitted: Vec<_> =
        emitted.iter().map(|seen| (seen.name(), seen.number("share"), seen.number("usage") / MIB)).collect();
    // The budget is 80 % of the limit of 100 MiB.
    let expected = [
        ("budget_near", 80, 70),
        ("budget_near", 90, 80),
        ("budget_passed", 100, 90),
        ("budget_eased", 100, 80),
        ("budget_eased", 90, 70),
        ("budget_eased", 80, 60),
    ];
    assert_eq!(emitted, expected);
}

#[test]
fn the_driver_s_budget_is_looked_at_once_a_frame() {
    let seen = heard(|| {
        let gpu = gpu();
        let allocator = allocator(&gpu);
        // Uses the smallest heap.
        let heaps = gpu.profile().heaps;
        let heap_of = |memory_type: &usize| usize::try_from(gpu.profile().types[*memory_type].heap).unwrap();
        let types = 0..gpu.profile().types.len();
        let memory_type = types.min_by_key(|memory_type| heaps[heap_of(memory_type)].size).unwrap();
        let info = AllocationCreateInfo { memory_type_bits: 1 << memory_type, ..own() };
        let level = allocator.heap_budgets()[heap_of(&memory_type)];
        let most = level.budget - level.usage;
        let held = allocator.allocate_memory(&requirements(most - most % MIB), &info).unwrap();
        for frame in 0..100 {
            allocator.set_current_frame_index(frame);
            let _ = allocator.heap_budgets();
        }
        free(&allocator, held);
    });
    let near = of(&seen, "budget_near");
    assert_eq!((near.len(), near[0].number("share")), (1, 90));
    assert_eq!(of(&seen, "frame_begun").len(), 100);
    assert_eq!(of(&seen, "budget_eased").len(), 1);
}

#[test]
fn the_limit_of_allocations_is_told_once_and_dedicated_memory_is_spared_then() {
    let seen = heard(allocation_count);
    let near = of(&seen, "allocation_count_near");
    assert_eq!((near.len(), near[0].number("live"), near[0].number("limit")), (1, 3073, 4096));
    let declined = of(&seen, "dedicated_declined");
    assert_eq!((declined.len(), declined[0].get("reason")), (1, "allocation_count"));
}
