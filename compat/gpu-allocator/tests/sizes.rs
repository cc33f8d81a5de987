//! Compares reserved bytes with the original, for wgpu's block sizes and vello's requests.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use ash::vk;
use sublet::ResourceKind;
use sublet::sim::Gpu;
use sublet::trace::{Event, Trace};

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

            /// Reserved bytes while 33,000 KiB come and go beside 1 KiB, and the number of `vkAllocateMemory` calls.
            pub(crate) fn large_beside_small(gpu: &Gpu) -> (u64, u64) {
                let mut allocator = allocator(gpu, DEFAULT);
                let allocate = |allocator: &mut Allocator, size| {
                    let desc = AllocationCreateDesc {
                        name: "",
                        requirements: vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 },
                        location: MemoryLocation::CpuToGpu,
                        linear: true,
                        allocation_scheme: AllocationScheme::GpuAllocatorManaged,
                    };
                    allocator.allocate(&desc).unwrap()
                };
                let small = allocate(&mut allocator, 1 << 10);
                let mut most = 0;
                for _ in 0..100 {
                    let large = allocate(&mut allocator, 33_000 << 10);
                    most = most.max(allocator.capacity());
                    allocator.free(large).unwrap();
                }
                allocator.free(small).unwrap();
                (most, gpu.calls("vkAllocateMemory"))
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
    for (name, sizes, expected) in [
        ("vello", PERFORMANCE, [192, 192]),
        ("vello", MEMORY_USAGE, [180, 188]),
        ("vello", DEFAULT, [208, 256]),
        ("wgpu", PERFORMANCE, [64, 64]),
        ("wgpu", MEMORY_USAGE, [4, 4]),
        ("vk-graph", PERFORMANCE, [64, 64]),
        ("vk-graph", MEMORY_USAGE, [60, 88]),
    ] {
        let path = format!("{}/../../tests/traces/{name}.trace", env!("CARGO_MANIFEST_DIR"));
        let trace = Trace::read(&std::fs::read(path).unwrap()).unwrap();
        let gpu = || trace.header.simulated().build();
        let ours = ours::replay(&trace, &gpu(), sizes);
        let theirs = theirs::replay(&trace, &gpu(), sizes);
        assert_eq!([ours.most / MIB, theirs.most / MIB], expected, "{name} under {sizes:?}");
        assert!(ours.last <= theirs.last, "{name} under {sizes:?}: {ours:?}, {theirs:?}");
        if name == "vello" {
            assert_eq!(ours.last, theirs.last, "{sizes:?}");
        }
    }
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

/// A request above half a block enters the block that has room, as in the original.
#[test]
fn a_large_request_enters_the_block_of_a_small_one() {
    let gpu = || Gpu::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    let (ours, theirs) = (ours::large_beside_small(&gpu()), theirs::large_beside_small(&gpu()));
    assert_eq!((ours, theirs), ((64 * MIB, 1), (64 * MIB, 1)));
}
