//! Each finding in a program that needs its advice, and none in one that does not.

use ash::vk;
use sublet::trace::{
    Event, ForeignMemoryFlags, MemoryNumber, ResourceNumber, SparseBinding, Trace, TraceBuffer,
};
use sublet::{AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
use sublet_report::{FindingKind, FindingLimit, Findings, MemoryFinding, PresetOutcome};

use crate::watched::{Watched, any_trace};

const MIB: u64 = 1 << 20;
const LOCAL: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
const VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_VISIBLE;
const COHERENT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_COHERENT;
const VERTICES: vk::BufferUsageFlags = vk::BufferUsageFlags::VERTEX_BUFFER;

fn game() -> Watched {
    Watched::on("nvidia-rtx-5070-ti")
}

/// A block with one buffer that fills it.
fn full_block(game: &mut Watched, memory_type: u32, size: u64) -> (ResourceNumber, MemoryNumber) {
    let block = game.allocate(memory_type, size);
    let buffer = game.buffer(size, VERTICES);
    game.bind(buffer, block, 0);
    (buffer, block)
}

fn local(game: &Watched) -> u32 {
    game.type_with(LOCAL)
}

#[track_caller]
fn finding(game: &Watched, kind: FindingKind) -> MemoryFinding {
    let found = Findings::of(&game.trace);
    let kinds: Vec<_> = found.findings.iter().map(|finding| finding.kind).collect();
    found.findings.into_iter().find(|found| found.kind == kind).unwrap_or_else(|| panic!("{kinds:?}"))
}

#[track_caller]
fn has_no(game: &Watched, kind: FindingKind) {
    let found = Findings::of(&game.trace);
    assert!(found.findings.iter().all(|found| found.kind != kind), "{found}");
}

#[test]
fn nearly_empty_blocks_and_what_keeps_them_alive() {
    let mut game = game();
    let kind = local(&game);
    let block = game.allocate(kind, 64 * MIB);
    let texture = game.buffer(MIB, VERTICES);
    game.bind(texture, block, 32 * MIB);
    game.name(texture, "skybox");
    let found = finding(&game, FindingKind::NearlyEmpty);
    assert_eq!((found.bytes, found.count), (63 * MIB, 1));
    assert!(found.objects[0].about.contains("skybox"), "{found}");
    assert_eq!(&*found.objects[0].label, &*format!("memory {}", block.0));

    let half = game.buffer(32 * MIB, VERTICES);
    game.bind(half, block, 0);
    has_no(&game, FindingKind::NearlyEmpty);
}

#[test]
fn empty_blocks() {
    let mut game = game();
    let kind = local(&game);
    let (buffer, _) = full_block(&mut game, kind, 16 * MIB);
    has_no(&game, FindingKind::Empty);
    game.destroy(buffer);
    game.event(Event::Presented);
    assert_eq!(finding(&game, FindingKind::Empty).bytes, 16 * MIB);
}

/// The end is before the program frees everything, and not after.
#[test]
fn a_program_that_frees_everything_has_no_empty_blocks() {
    let mut game = game();
    let kind = local(&game);
    let (buffer, block) = full_block(&mut game, kind, 16 * MIB);
    game.destroy(buffer);
    game.free(block);
    game.event(Event::DeviceDestroyed);
    for kind in [FindingKind::Empty, FindingKind::Leak, FindingKind::NeverBound] {
        has_no(&game, kind);
    }
    let found = Findings::of(&game.trace);
    assert_eq!(found.at_end.reserved_bytes, 16 * MIB);
    assert!(found.presets.iter().all(|outcome| outcome.end_reserved_bytes >= 16 * MIB), "{found}");
}

/// Godot submits once more after it has destroyed most resources.
#[test]
fn a_program_that_submits_after_its_last_frame_is_judged_before_that() {
    let mut game = game();
    let kind = local(&game);
    let (kept, _) = full_block(&mut game, kind, 8 * MIB);
    let (buffer, block) = full_block(&mut game, kind, 16 * MIB);
    game.event(Event::Presented);
    game.destroy(kept);
    game.destroy(buffer);
    game.free(block);
    game.event(Event::Submitted { command_buffers: 1 });
    game.event(Event::Budget { heap: 0, budget: 64 * MIB, usage: MIB });
    game.event(Event::DeviceDestroyed);
    has_no(&game, FindingKind::Empty);
    let found = Findings::of(&game.trace);
    assert_eq!((found.at_end.reserved_bytes, found.at_end.used_bytes), (24 * MIB, 24 * MIB), "{found}");
}

#[test]
fn memory_that_is_never_bound() {
    let mut game = game();
    let kind = local(&game);
    for _ in 0..3 {
        let scratch = game.allocate(kind, 8 * MIB);
        game.free(scratch);
    }
    let one = game.allocate(kind, 8 * MIB);
    let found = finding(&game, FindingKind::NeverBound);
    assert_eq!((found.bytes, found.count), (8 * MIB, 4), "one at a time");
    let buffer = game.buffer(MIB, VERTICES);
    game.bind(buffer, one, 0);
    assert_eq!(finding(&game, FindingKind::NeverBound).count, 3);
}

#[test]
fn shared_memory_needs_no_resource() {
    let mut game = game();
    let (memory, flags) = (MemoryNumber(70), ForeignMemoryFlags::EXPORTABLE);
    game.event(Event::MemoryAllocated { memory, memory_type: 1, size: MIB, flags, resource: None });
    has_no(&game, FindingKind::NeverBound);
}

#[test]
fn one_allocation_for_each_resource() {
    let mut game = game();
    let kind = local(&game);
    for _ in 0..40 {
        let buffer = game.buffer(60 << 10, VERTICES);
        game.dedicate(kind, buffer, 64 << 10);
    }
    let found = finding(&game, FindingKind::OneEach);
    assert_eq!((found.count, found.bytes), (40, 40 * (4 << 10)));
    assert!(found.text.contains("4096"), "{found}");
    let all = Findings::of(&game.trace);
    assert_eq!(all.peak_memory_count, 40);
    let each = all.presets.iter().find(|it| it.preset == "one allocation each").unwrap();
    assert_eq!((each.driver_allocations, each.peak_reserved_bytes), (40, 40 * (60 << 10)));
    let own = &all.presets[0];
    assert_eq!((own.preset, own.driver_allocations), ("the program itself", 40));
    assert_eq!(own.peak_reserved_bytes, 40 * (64 << 10));
    assert!((own.driver_milliseconds - 40.0 * 0.25).abs() < 1e-9, "the least that a call takes");
    let blocks = all.presets.iter().find(|it| it.preset == "balanced").unwrap();
    assert!(blocks.driver_allocations <= 2 && blocks.driver_milliseconds < each.driver_milliseconds);
}

#[test]
fn resources_in_a_memory_type_that_does_not_suit_them() {
    let mut game = game();
    let slow = game.type_with(VISIBLE | COHERENT);
    let block = game.allocate(slow, 8 * MIB);
    let mesh = game.buffer(8 * MIB, VERTICES);
    game.bind(mesh, block, 0);
    let found = finding(&game, FindingKind::MemoryType);
    assert_eq!((found.bytes, found.count), (8 * MIB, 1));
    assert!(found.text.contains("DEVICE_LOCAL suits") || found.text.contains("DEVICE_LOCAL)"), "{found}");
    // A staging buffer belongs there.
    let mut game = self::game();
    let block = game.allocate(slow, 8 * MIB);
    game.map(block);
    let staging = game.buffer(8 * MIB, vk::BufferUsageFlags::TRANSFER_SRC);
    game.bind(staging, block, 0);
    has_no(&game, FindingKind::MemoryType);
}

#[test]
fn a_resource_that_allows_no_better_type_is_where_it_belongs() {
    let mut game = game();
    let slow = game.type_with(VISIBLE | COHERENT);
    let block = game.allocate(slow, 8 * MIB);
    let mesh = game.buffer(8 * MIB, VERTICES);
    game.requires(mesh, 8 * MIB, 1 << slow);
    game.bind(mesh, block, 0);
    has_no(&game, FindingKind::MemoryType);
}

#[test]
fn host_visible_memory_that_is_never_mapped() {
    let mut game = game();
    let visible = game.type_with(VISIBLE | COHERENT);
    let (_, block) = full_block(&mut game, visible, 4 * MIB);
    assert_eq!(finding(&game, FindingKind::NeverMapped).bytes, 4 * MIB);
    game.map(block);
    has_no(&game, FindingKind::NeverMapped);
}

#[test]
fn memory_without_coherence_that_is_never_flushed() {
    let mut game = game();
    game.trace.header.memory_types[1].flags = VISIBLE;
    let (_, memory) = full_block(&mut game, 1, MIB);
    has_no(&game, FindingKind::NeverSynchronized);
    game.map(memory);
    let found = finding(&game, FindingKind::NeverSynchronized);
    assert_eq!((found.bytes, found.count), (0, 1));
    game.event(Event::MemoryFlushed { memory, offset: 0, size: None });
    has_no(&game, FindingKind::NeverSynchronized);
}

#[test]
fn blocks_that_come_and_go_in_steady_state() {
    let mut game = game();
    let kind = local(&game);
    let frame = |game: &mut Watched| {
        let (buffer, block) = full_block(game, kind, MIB);
        game.event(Event::Presented);
        game.destroy(buffer);
        game.free(block);
    };
    for _ in 0..60 {
        frame(&mut game);
    }
    let found = finding(&game, FindingKind::Churn);
    assert!((28..=32).contains(&found.count), "half of them: {found}");
    assert!(found.text.contains("frame"), "{found}");
    // Warming up is no churn.
    for _ in 0..2000 {
        game.event(Event::Presented);
    }
    has_no(&game, FindingKind::Churn);
}

/// A later part of a recording begins with the live objects, and the program used its memory before.
#[test]
fn a_later_part_has_no_findings_about_what_happened_before() {
    let mut game = game();
    game.trace.header.memory_types[1].flags = VISIBLE;
    game.trace.header.part = 3;
    for number in 1..=40 {
        let (memory, flags) = (MemoryNumber(number), ForeignMemoryFlags::from_bits_retain(16 | 32 | 64));
        game.event(Event::MemoryAllocated { memory, memory_type: 1, size: MIB, flags, resource: None });
    }
    let seconds = std::time::Duration::from_secs;
    game.trace.records.iter_mut().for_each(|record| record.time = seconds(3600));
    for number in 1..=40 {
        game.event(Event::MemoryFreed { memory: MemoryNumber(number) });
    }
    game.event(Event::Presented);
    game.trace.records.iter_mut().skip(40).for_each(|record| record.time = seconds(3700));
    let kinds = [
        FindingKind::NeverBound,
        FindingKind::NeverMapped,
        FindingKind::NeverSynchronized,
        FindingKind::Churn,
    ];
    for kind in kinds {
        has_no(&game, kind);
    }
    let file = sublet::private::foreign_recording(&game.trace);
    let found = Findings::of(&Trace::read(&file).unwrap());
    assert_eq!(found.part, 3);
    assert!(found.to_string().contains("part 3 of a recording"), "{found}");
    for record in &mut game.trace.records {
        if let Event::MemoryAllocated { flags, .. } = &mut record.event {
            *flags = ForeignMemoryFlags::empty();
        }
    }
    assert_eq!(finding(&game, FindingKind::NeverBound).count, 40);
}

/// The calls for the objects with which a part begins belong to the part before.
#[test]
fn a_later_part_has_only_its_own_calls_of_the_driver() {
    let mut game = game();
    let kind = local(&game);
    let block = |game: &mut Watched| full_block(game, kind, 40 * MIB).1;
    let opening: Vec<_> = (0..8).map(|_| block(&mut game)).collect();
    game.trace.header.part = 2;
    game.trace.header.opening_records = game.trace.records.len().try_into().unwrap();
    block(&mut game);
    block(&mut game);
    game.free(opening[0]);
    assert_eq!(game.trace.resource_requests().header.opening_records, 8);
    let presets = Findings::of(&game.trace).presets;
    let of = |name| presets.iter().find(|it| it.preset == name).unwrap();
    for name in ["the program itself", "one allocation each"] {
        assert_eq!((of(name).driver_allocations, of(name).driver_frees), (2, 1), "{name}");
        assert_eq!((of(name).peak_reserved_bytes, of(name).peak_memory_count), (400 * MIB, 10), "{name}");
    }
    assert!((1..=2).contains(&of("balanced").driver_allocations), "{presets:?}");
    let costs = of("the program itself");
    assert!(costs.driver_milliseconds <= 2.0 * costs.longest_milliseconds + 1e-9, "{costs:?}");
}

#[test]
fn attachments_with_disjoint_lifetimes_are_candidates() {
    let mut game = game();
    let kind = local(&game);
    let (first, second) = (game.allocate(kind, 8 * MIB), game.allocate(kind, 4 * MIB));
    let shadow =
        game.image(8 * MIB, vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT | vk::ImageUsageFlags::SAMPLED);
    game.bind(shadow, first, 0);
    game.name(shadow, "shadow");
    game.destroy(shadow);
    let bloom = game.image(4 * MIB, vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::SAMPLED);
    game.bind(bloom, second, 0);
    let found = finding(&game, FindingKind::Aliasing);
    assert!(found.is_candidate && found.objects[0].about.contains("shadow"), "{found}");
    assert_eq!(found.bytes, 4 * MIB);
}

#[test]
fn attachments_that_live_together_or_reuse_memory_are_none() {
    let mut game = game();
    let kind = local(&game);
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::SAMPLED;
    for _ in 0..2 {
        let block = game.allocate(kind, 8 * MIB);
        let image = game.image(8 * MIB, usage);
        game.bind(image, block, 0);
    }
    has_no(&game, FindingKind::Aliasing);
    let mut game = self::game();
    for _ in 0..3 {
        let block = game.allocate(kind, 8 * MIB);
        let image = game.image(8 * MIB, usage);
        game.bind(image, block, 0);
        game.destroy(image);
        game.free(block);
    }
    has_no(&game, FindingKind::Aliasing);
}

#[test]
fn attachments_of_render_passes_are_candidates_for_lazy_memory() {
    let mut game = Watched::on("arm-mali-g52");
    game.trace.header.memory_types[0].flags = LOCAL | vk::MemoryPropertyFlags::LAZILY_ALLOCATED;
    let depth = game.image(2 * MIB, vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT);
    game.dedicate(1, depth, 2 * MIB);
    let sampled = game.image(4 * MIB, vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::SAMPLED);
    game.dedicate(1, sampled, 4 * MIB);
    let found = finding(&game, FindingKind::LazyAllocation);
    assert_eq!((found.is_candidate, found.bytes, found.count), (true, 2 * MIB, 1));
}

#[test]
fn budgets_failures_and_leaks() {
    let mut game = game();
    let kind = local(&game);
    game.event(Event::Budget { heap: 0, budget: 100 * MIB, usage: 90 * MIB });
    has_no(&game, FindingKind::OverBudget);
    game.event(Event::Budget { heap: 0, budget: 100 * MIB, usage: 130 * MIB });
    game.event(Event::Budget { heap: 0, budget: 100 * MIB, usage: 120 * MIB });
    assert_eq!(finding(&game, FindingKind::OverBudget).bytes, 30 * MIB);
    let result = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    game.event(Event::MemoryAllocationFailed { memory_type: kind, size: 900 * MIB, result });
    assert_eq!(finding(&game, FindingKind::AllocationFailed).count, 1);
    let (buffer, _) = full_block(&mut game, kind, 2 * MIB);
    game.name(buffer, "forgotten");
    has_no(&game, FindingKind::Leak);
    game.event(Event::DeviceDestroyed);
    let leak = finding(&game, FindingKind::Leak);
    assert_eq!((leak.bytes, leak.count), (2 * MIB, 2), "the memory and the buffer");
    assert!(leak.objects.iter().any(|object| object.label.contains("forgotten")), "{leak}");
}

/// The program keeps one small buffer in each of many blocks.
fn scattered() -> Watched {
    let mut game = game();
    let kind = local(&game);
    for _ in 0..12 {
        let block = game.allocate(kind, 16 * MIB);
        let buffer = game.buffer(MIB, VERTICES);
        game.bind(buffer, block, 0);
    }
    game
}

#[test]
fn what_sublet_and_defragmentation_would_take() {
    let game = scattered();
    let found = Findings::of(&game.trace);
    assert_eq!((found.at_peak.reserved_bytes, found.at_peak.used_bytes), (192 * MIB, 12 * MIB));
    let of = |kind| found.findings.iter().find(|finding| finding.kind == kind).unwrap().bytes;
    assert!(of(FindingKind::Preset) >= 150 * MIB, "{found}");
    assert!(of(FindingKind::Defragmentation) >= 150 * MIB, "{found}");
    assert!(found.findings.is_sorted_by_key(|it| (it.is_candidate, std::cmp::Reverse(it.bytes))));
}

/// Returns a recording of an allocator with blocks of which an eighth is in use.
fn own_recording() -> Trace {
    let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap());
    let info = AllocatorCreateInfo {
        preferred_large_heap_block_size: 32 * MIB,
        ..AllocatorCreateInfo::for_gpu(&gpu)
    };
    // SAFETY: the GPU outlives the allocator.
    #[expect(unsafe_code, reason = "a test with a simulated device")]
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    let file = TraceBuffer::new();
    allocator.start_recording(file.clone()).unwrap();
    let needs = vk::MemoryRequirements { size: 4 * MIB, alignment: 256, memory_type_bits: !0 };
    let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let all: Vec<_> = (0..64).map(|_| allocator.allocate_memory(&needs, &info).unwrap()).collect();
    let (kept, freed): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(at, _)| at % 8 == 0);
    for (_, allocation) in freed {
        // SAFETY: nothing was bound to it.
        #[expect(unsafe_code, reason = "a test with a simulated device")]
        unsafe { allocator.free_memory(allocation) }.unwrap();
    }
    allocator.set_current_frame_index(1);
    allocator.stop_recording().unwrap();
    for (_, allocation) in kept {
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "a test with a simulated device")]
        unsafe { allocator.free_memory(allocation) }.unwrap();
    }
    Trace::read(&file.bytes()).unwrap()
}

/// The planner of the library finds what it frees: blocks that are an eighth full.
#[test]
fn the_blocks_of_an_own_recording_are_judged_too() {
    let found = Findings::of(&own_recording());
    assert!(!found.is_foreign);
    let own = (found.presets[0].preset, found.presets[0].peak_reserved_bytes);
    assert_eq!(own, ("as recorded", found.at_peak.reserved_bytes));
    assert!(found.presets.len() >= 4);
    let of = |kind| found.findings.iter().find(|finding| finding.kind == kind);
    let moved = of(FindingKind::Defragmentation).unwrap();
    assert!(moved.bytes >= 192 * MIB, "{found}");
    assert!(of(FindingKind::NearlyEmpty).unwrap().count >= 6, "{found}");
}

/// Handles of the replay's device differ between runs, and mean nothing to the reader.
#[test]
fn two_runs_of_a_program_have_the_same_findings() {
    let (first, second) = (own_recording(), own_recording());
    let found = Findings::of(&first);
    assert_eq!(found.to_string(), Findings::of(&second).to_string());
    let nearly_empty = found.findings.iter().find(|finding| finding.kind == FindingKind::NearlyEmpty);
    let about = &nearly_empty.unwrap().objects[0].about;
    assert!(about.ends_with("kept alive by #0") || about.contains("kept alive by #8"), "{about}");
}

/// A dedicated allocation in each frame.
#[test]
fn an_allocator_that_churns_or_refuses_is_told_so() {
    let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap());
    // SAFETY: the GPU outlives the allocator.
    #[expect(unsafe_code, reason = "a test with a simulated device")]
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let file = TraceBuffer::new();
    allocator.start_recording(file.clone()).unwrap();
    let needs = |size| vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 };
    let info = AllocationCreateInfo {
        flags: AllocationCreateFlags::DEDICATED_MEMORY,
        ..AllocationCreateInfo::new(MemoryUsage::GpuOnly)
    };
    allocator.allocate_memory(&needs(1 << 60), &info).unwrap_err();
    for frame in 0..100 {
        allocator.set_current_frame_index(frame);
        let allocation = allocator.allocate_memory(&needs(MIB), &info).unwrap();
        // SAFETY: nothing was bound to it.
        #[expect(unsafe_code, reason = "a test with a simulated device")]
        unsafe { allocator.free_memory(allocation) }.unwrap();
    }
    allocator.stop_recording().unwrap();
    let mut trace = Trace::read(&file.bytes()).unwrap();
    for (micros, record) in (0..).zip(&mut trace.records) {
        record.time = std::time::Duration::from_micros(micros);
    }
    let found = Findings::of(&trace);
    let of = |kind| found.findings.iter().find(|finding| finding.kind == kind).unwrap();
    assert!((49..=51).contains(&of(FindingKind::Churn).count), "half of them: {found}");
    let refused = of(FindingKind::AllocationFailed);
    assert_eq!((refused.count, refused.objects[0].bytes), (1, 1 << 60));
}

#[test]
fn limits_are_read_and_judged() {
    let found = Findings::of(&scattered().trace);
    let breach = |limit: &str| limit.parse::<FindingLimit>().unwrap().breach(&found).map(|it| it.text);
    assert!(breach("waste=30%").unwrap().contains("94 %"));
    assert!(breach("waste=93.7%").is_some());
    assert_eq!((breach("waste=94%"), breach("leak"), breach("allocations=12")), (None, None, None));
    assert!(breach("allocations=11").unwrap().contains("12"));
    for text in [
        "",
        "waste",
        "waste=",
        "waste=30",
        "waste=-1%",
        "waste=1.23%",
        "leak=1",
        "allocations=many",
        "speed=1",
    ] {
        let error = text.parse::<FindingLimit>().unwrap_err();
        assert!(error.to_string().contains("waste=PERCENT%"), "{error}");
    }
    for text in ["waste=30%", "waste=0.5%", "leak", "allocations=0"] {
        assert_eq!(text.parse::<FindingLimit>().unwrap().to_string(), text);
    }
}

/// Findings are deterministic, and say all kinds by name.
#[test]
fn findings_are_the_same_as_data_and_as_text() {
    let found = Findings::of(&scattered().trace);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["findings"][0]["kind"], found.findings[0].kind.name());
    assert_eq!(json["presets"].as_array().unwrap().len(), found.presets.len());
    let text = found.to_string();
    assert!(found.findings.iter().all(|finding| text.contains(&*finding.text)), "{text}");
    assert_eq!(Findings::of(&scattered().trace), found);
    let guide = include_str!("../../../../src/guide/reports.md");
    for kind in FindingKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        assert!(guide.contains(&format!("`{}`", kind.name())), "{}", kind.name());
    }
}

/// A recording comes from anywhere.
#[test]
fn any_recording_has_findings() {
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..25 {
        let trace = any_trace(&mut random);
        let found = Findings::of(&trace);
        assert!(found.waste() <= 1.0 && !found.to_string().is_empty());
        let _ = PresetOutcome::all(&trace.resource_requests());
    }
}

/// The program does not state which parts of such memory are used.
#[test]
fn shared_memory_and_that_of_sparse_resources_is_no_waste() {
    let mut game = game();
    let kind = local(&game);
    let waste = |game: &Watched| Findings::of(&game.trace).waste();
    full_block(&mut game, kind, 2 * MIB);
    let sparse = game.allocate(kind, MIB);
    assert!(waste(&game) > 0.3);
    let binding = SparseBinding { memory: Some(sparse), size: 65536, ..SparseBinding::default() };
    game.event(Event::SparseBound { resource: ResourceNumber(9), binding: Box::new(binding) });
    let (memory, flags) = (MemoryNumber(99), ForeignMemoryFlags::IMPORTED);
    game.event(Event::MemoryAllocated { memory, memory_type: kind, size: MIB, flags, resource: None });
    assert_eq!(waste(&game), 0.0);
    game.event(Event::MemoryFreed { memory });
    game.allocate(kind, 4 * MIB);
    let sums = Findings::of(&game.trace).at_peak;
    assert_eq!((sums.reserved_bytes, sums.used_bytes), (7 * MIB, 3 * MIB));
}
