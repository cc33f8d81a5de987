//! Compares reserved bytes with the original, for wgpu's block sizes and vello's requests.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use ash::vk;
use sublet::ResourceKind;
use sublet::sim::Gpu;
use sublet::trace::{DriverCost, Event, Trace};

const MIB: u64 = 1 << 20;

/// wgpu 30's sizes for its two hints: smallest and largest block, for the device and for the host.
const PERFORMANCE: [(u64, u64); 2] = [(128 * MIB, 256 * MIB), (64 * MIB, 128 * MIB)];
const MEMORY_USAGE: [(u64, u64); 2] = [(8 * MIB, 64 * MIB), (4 * MIB, 32 * MIB)];

/// Reserved bytes.
#[derive(Debug, PartialEq, Eq)]
struct Reserved {
    most: u64,
    /// After everything was freed.
    last: u64,
}

/// A step of a program. Freed allocations are numbered among the live ones: the last one takes the place of a freed one.
#[derive(Clone, Copy, Debug)]
enum Step {
    Allocate(u64),
    Free(usize),
}

/// The memory of a program, and its calls of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Outcome {
    most: u64,
    /// After everything was freed.
    last: u64,
    calls: usize,
    /// The modelled time of all calls that allocate.
    time: Duration,
}

impl Outcome {
    fn add_calls(&mut self, gpu: &Gpu) {
        for call in gpu.take_log() {
            let flags = gpu.profile().types[usize::try_from(call.asked.type_index).unwrap()].flags;
            self.calls += 1;
            self.time += DriverCost::of(flags).allocation(call.asked.size);
        }
    }
}

/// Compiles the same code with the original and with the stand-in.
macro_rules! player {
    ($name:ident, $krate:ident) => {
        mod $name {
            use super::*;
            use $krate::vulkan::{AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc};
            use $krate::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};

            pub(crate) fn allocator(gpu: &Gpu, [device, host]: [(u64, u64); 2]) -> Allocator {
                let sizes = AllocationSizes::new(device.0, host.0)
                    .with_max_device_memblock_size(device.1)
                    .with_max_host_memblock_size(host.1);
                Allocator::new(&AllocatorCreateDesc {
                    instance: gpu.instance().clone(),
                    device: gpu.device().clone(),
                    physical_device: gpu.physical_device(),
                    debug_settings: AllocatorDebugSettings::default(),
                    buffer_device_address: false,
                    allocation_sizes: sizes,
                })
                .unwrap()
            }

            /// Runs a program, and frees what it left.
            pub(crate) fn run(
                gpu: &Gpu,
                sizes: [(u64, u64); 2],
                location: MemoryLocation,
                program: &[Step],
            ) -> Outcome {
                gpu.log_allocations(true);
                let mut allocator = allocator(gpu, sizes);
                let (mut live, mut outcome) = (Vec::new(), Outcome::default());
                for step in program {
                    match *step {
                        Step::Allocate(size) => {
                            let desc = AllocationCreateDesc {
                                name: "",
                                requirements: vk::MemoryRequirements {
                                    size,
                                    alignment: 256,
                                    memory_type_bits: !0,
                                },
                                location,
                                linear: true,
                                allocation_scheme: AllocationScheme::GpuAllocatorManaged,
                            };
                            live.push(allocator.allocate(&desc).unwrap());
                        }
                        Step::Free(at) => allocator.free(live.swap_remove(at)).unwrap(),
                    }
                    outcome.most = outcome.most.max(allocator.capacity());
                }
                live.into_iter().for_each(|one| allocator.free(one).unwrap());
                outcome.last = allocator.capacity();
                drop(allocator);
                outcome.add_calls(gpu);
                outcome
            }

            /// Replays the program's requests to this interface.
            pub(crate) fn replay(trace: &Trace, gpu: &Gpu, sizes: [(u64, u64); 2]) -> Reserved {
                let mut allocator = allocator(gpu, sizes);
                let (mut live, mut most) = (BTreeMap::new(), 0);
                for record in &trace.records {
                    match &record.event {
                        Event::Allocate(asked) => {
                            let wanted = &asked.wanted;
                            let has = |flag| wanted.preferred_flags.contains(flag);
                            let location = match () {
                                () if has(vk::MemoryPropertyFlags::HOST_CACHED) => MemoryLocation::GpuToCpu,
                                () if has(vk::MemoryPropertyFlags::HOST_VISIBLE) => MemoryLocation::CpuToGpu,
                                () if has(vk::MemoryPropertyFlags::DEVICE_LOCAL) => MemoryLocation::GpuOnly,
                                () => MemoryLocation::Unknown,
                            };
                            let needs = &asked.resource;
                            let desc = AllocationCreateDesc {
                                name: "",
                                requirements: vk::MemoryRequirements {
                                    size: needs.size,
                                    alignment: needs.alignment,
                                    memory_type_bits: needs.memory_type_bits,
                                },
                                location,
                                linear: needs.kind == ResourceKind::Buffer,
                                allocation_scheme: AllocationScheme::GpuAllocatorManaged,
                            };
                            live.insert(asked.allocation, allocator.allocate(&desc).unwrap());
                        }
                        Event::Free { allocation } => {
                            allocator.free(live.remove(allocation).unwrap()).unwrap();
                        }
                        _ => {}
                    }
                    most = most.max(allocator.capacity());
                }
                live.into_values().for_each(|one| allocator.free(one).unwrap());
                Reserved { most, last: allocator.capacity() }
            }

            /// Fills blocks of each size, then frees their contents from the last to the first. Returns the reserved
            /// bytes after each step.
            pub(crate) fn comes_and_goes(gpu: &Gpu, sizes: [(u64, u64); 2], step: usize) -> Vec<u64> {
                let mut allocator = allocator(gpu, sizes);
                let mut reserved = Vec::new();
                for location in [MemoryLocation::GpuOnly, MemoryLocation::CpuToGpu, MemoryLocation::GpuToCpu]
                {
                    // A quarter of the first block. Blocks of any size hold a whole number of these.
                    let size = sizes[1].0.min(sizes[0].0) / 4;
                    let desc = AllocationCreateDesc {
                        name: "",
                        requirements: vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 },
                        location,
                        linear: true,
                        allocation_scheme: AllocationScheme::GpuAllocatorManaged,
                    };
                    let mut live: Vec<_> =
                        (0..24).map(|_| Some(allocator.allocate(&desc).unwrap())).collect();
                    reserved.push(allocator.capacity());
                    for first in 0..step {
                        for at in (first..live.len()).rev().filter(|at| at % step == first) {
                            allocator.free(live[at].take().unwrap()).unwrap();
                            reserved.push(allocator.capacity());
                        }
                    }
                }
                reserved
            }
        }
    };
}

player!(theirs, original);
player!(ours, gpu_allocator);

/// Sizes that a program may set.
const DEFAULT: [(u64, u64); 2] = [(256 * MIB, 256 * MIB), (64 * MIB, 64 * MIB)];

#[test]
fn what_programs_on_wgpu_ask_for_reserves_no_more_than_with_the_original() {
    let programs = [
        ("vello", PERFORMANCE, [192, 192]),
        ("vello", MEMORY_USAGE, [188, 188]),
        ("vello", DEFAULT, [256, 256]),
        ("wgpu", PERFORMANCE, [64, 64]),
        ("wgpu", MEMORY_USAGE, [4, 4]),
        ("vk-graph", PERFORMANCE, [64, 64]),
        ("vk-graph", MEMORY_USAGE, [60, 88]),
    ];
    let found = programs.map(|(name, sizes, _)| {
        let path = format!("{}/../../tests/traces/{name}.trace", env!("CARGO_MANIFEST_DIR"));
        let trace = Trace::read(&std::fs::read(path).unwrap()).unwrap();
        let gpu = || trace.header.simulated().build();
        let ours = ours::replay(&trace, &gpu(), sizes);
        let theirs = theirs::replay(&trace, &gpu(), sizes);
        assert!(ours.last <= theirs.last, "{name} under {sizes:?}: {ours:?}, {theirs:?}");
        [ours.most / MIB, theirs.most / MIB]
    });
    assert_eq!(found, programs.map(|(_, _, most)| most));
}

/// Frees device-local and host-visible memory in the worst order for an allocator that keeps the first empty block.
#[test]
fn what_stays_when_everything_is_freed_is_what_the_original_keeps() {
    for profile in sublet::sim::profiles::ALL {
        // The original's blocks do not fit heaps smaller than one block.
        if profile.heaps.iter().any(|heap| heap.size <= 1 << 30) {
            continue;
        }
        for sizes in [PERFORMANCE, MEMORY_USAGE] {
            for step in 1..4 {
                let ours = ours::comes_and_goes(&Gpu::new(profile), sizes, step);
                let theirs = theirs::comes_and_goes(&Gpu::new(profile), sizes, step);
                assert_eq!(ours, theirs, "{}: {sizes:?}, every {step}", profile.name);
            }
        }
    }
}

/// Runs a program with the stand-in and with the original.
fn both(profile: &str, sizes: [(u64, u64); 2], program: &[Step]) -> [Outcome; 2] {
    let gpu = || Gpu::new(sublet::sim::Profile::by_name(profile).unwrap());
    let ours = ours::run(&gpu(), sizes, gpu_allocator::MemoryLocation::GpuOnly, program);
    [ours, theirs::run(&gpu(), sizes, original::MemoryLocation::GpuOnly, program)]
}

/// The first request of a device of wgpu 30.
const ZEROES: Step = Step::Allocate(512 << 10);

/// Large requests enter blocks that have room, and get dedicated memory only where the original's do.
#[test]
fn large_requests_reserve_what_they_do_with_the_original() {
    let come_and_go = [Step::Allocate(33_000 << 10), Step::Free(1)];
    let beside: Vec<_> = iter::once(Step::Allocate(1 << 10)).chain(come_and_go.repeat(100)).collect();
    let [fifty, sixty_six] = [50, 66].map(|mib| Step::Allocate(mib * MIB));
    for (name, sizes, program, most, calls) in [
        ("33,000 KiB come and go beside 1 KiB", DEFAULT, &*beside, 64 * MIB, 1),
        ("wgpu: 50, 50 and 66 MiB", PERFORMANCE, &[ZEROES, fifty, fifty, sixty_six], 192 * MIB, 2),
        ("wgpu: 8.5 MiB", MEMORY_USAGE, &[ZEROES, Step::Allocate(17 * MIB / 2)], 25 * MIB / 2, 2),
    ] {
        // Its only memory type is host-visible.
        let [ours, theirs] = both("lavapipe", sizes, program);
        assert_eq!(ours, theirs, "{name}");
        assert_eq!((ours.most, ours.calls), (most, calls), "{name}");
    }
}

/// Programs with few blocks do the same as with the original. With many, single programs differ: the original takes the
/// last block that has room, and Sublet the smallest range.
#[test]
fn random_large_requests_reserve_no_more_than_with_the_original() {
    let programs = 32;
    // Mean MiB at the peak and at the end, and the calls of all programs.
    let cells = [
        (PERFORMANCE, true, [(592, 252, 117); 2]),
        (DEFAULT, true, [(512, 256, 71); 2]),
        (MEMORY_USAGE, false, [(436, 58, 2042), (450, 61, 2096)]),
    ];
    for (sizes, has_few, figures) in cells {
        let outcomes: Vec<_> = (0..programs).map(|seed| both("nvidia-h200", sizes, &random(seed))).collect();
        let differ = outcomes.iter().position(|[ours, theirs]| ours != theirs);
        assert!(differ.is_none() || !has_few, "{sizes:?}: program {differ:?}");
        let sums = outcomes.iter().fold([Outcome::default(); 2], |mut sums, outcomes| {
            for (sum, outcome) in sums.iter_mut().zip(outcomes) {
                sum.most += outcome.most;
                sum.last += outcome.last;
                sum.calls += outcome.calls;
                sum.time += outcome.time;
            }
            sums
        });
        let [ours, theirs] = sums;
        let is_worse = ours.most > theirs.most || ours.last > theirs.last || ours.time > theirs.time;
        assert!(!is_worse, "{sizes:?}: {sums:#?}");
        let mean = |bytes: u64| bytes / MIB / programs;
        assert_eq!(sums.map(|sum| (mean(sum.most), mean(sum.last), sum.calls)), figures, "{sizes:?}");
    }
}

/// Allocations of 2 to 70 MiB, 320 MiB at a time.
fn random(seed: u64) -> Vec<Step> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let (mut live, mut steps) = (vec![512 << 10], vec![ZEROES]);
    for _ in 0..200 {
        let size = (2 * MIB + next(68 * MIB)) & !255;
        if live.iter().sum::<u64>() + size > 320 * MIB || (live.len() > 4 && next(2) == 0) {
            let at = 1 + usize::try_from(next(u64::try_from(live.len() - 1).unwrap())).unwrap();
            live.swap_remove(at);
            steps.push(Step::Free(at));
        } else {
            live.push(size);
            steps.push(Step::Allocate(size));
        }
    }
    steps
}
