//! Visible output equals the original's: errors, log lines, `{:?}`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Mutex;

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::trace::Trace;

const MIB: u64 = 1 << 20;

/// Compiles the same code with the original and with the stand-in.
macro_rules! program {
    ($name:ident, $krate:ident) => {
        mod $name {
            use super::*;
            use $krate::vulkan::{
                Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
            };
            use $krate::{AllocationReport, AllocationSizes, AllocatorDebugSettings, MemoryLocation};

            pub(crate) fn allocator(gpu: &Gpu, debug_settings: AllocatorDebugSettings) -> Allocator {
                Allocator::new(&AllocatorCreateDesc {
                    instance: gpu.instance().clone(),
                    device: gpu.device().clone(),
                    physical_device: gpu.physical_device(),
                    debug_settings,
                    buffer_device_address: false,
                    // This size is rounded up, which is logged.
                    allocation_sizes: AllocationSizes::new(4 * MIB, 4 * MIB - 1),
                })
                .unwrap()
            }

            fn desc(name: &str, size: u64, location: MemoryLocation) -> AllocationCreateDesc<'_> {
                AllocationCreateDesc {
                    name,
                    requirements: vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 },
                    location,
                    linear: true,
                    allocation_scheme: AllocationScheme::GpuAllocatorManaged,
                }
            }

            /// Returns the results of requests of all sizes and locations.
            pub(crate) fn answers(gpu: &Gpu) -> Vec<String> {
                let mut allocator = allocator(gpu, AllocatorDebugSettings::default());
                let mut answers = Vec::new();
                let mut live = Vec::new();
                for location in [
                    MemoryLocation::Unknown,
                    MemoryLocation::GpuOnly,
                    MemoryLocation::CpuToGpu,
                    MemoryLocation::GpuToCpu,
                ] {
                    for size in [4096, 9 * MIB, 10 * MIB, 1 << 60] {
                        // The request exceeds the heap. The original calls the driver only for this location.
                        if size == 1 << 60 && location == MemoryLocation::CpuToGpu {
                            continue;
                        }
                        let made = allocator.allocate(&desc("asked", size, location));
                        answers.push(match &made {
                            Ok(_) => "had".to_owned(),
                            Err(error) => format!("{error:?} {error}"),
                        });
                        live.extend(made.ok());
                    }
                }
                live.into_iter().for_each(|one| allocator.free(one).unwrap());
                answers
            }

            /// Returns all log lines and printed values.
            pub(crate) fn printed(gpu: &Gpu) -> Vec<String> {
                let mut settings = AllocatorDebugSettings::default();
                settings.log_memory_information = true;
                settings.log_allocations = true;
                settings.log_frees = true;
                let mut allocator = allocator(gpu, settings);
                let small = allocator.allocate(&desc("small", 4096, MemoryLocation::GpuOnly)).unwrap();
                let picture = AllocationCreateDesc {
                    linear: false,
                    ..desc("picture", 65_536, MemoryLocation::GpuOnly)
                };
                let picture = allocator.allocate(&picture).unwrap();
                let freed = allocator.allocate(&desc("freed", 4096, MemoryLocation::CpuToGpu)).unwrap();
                let large = allocator.allocate(&desc("large", 64 * MIB, MemoryLocation::GpuOnly)).unwrap();
                let said = [&small, &picture, &freed, &large].map(|one| format!("{one:?}"));
                let mut said = Vec::from(said);
                said.push(format!("{:#?}", Allocation::default()));
                for bytes in [0, 1, 1023, 1024, 1025, 1536, 123_456, 1_310_720, 5_000_000_000, 1 << 40] {
                    let report = AllocationReport { name: "one".to_owned(), offset: 0, size: bytes };
                    said.push(format!("{report:?}"));
                }
                allocator.free(freed).unwrap();
                allocator.free(Allocation::default()).unwrap();
                drop(allocator);
                drop((small, picture, large));
                said
            }
        }
    };
}

program!(theirs, original);
program!(ours, gpu_allocator);

#[test]
fn what_the_driver_answers_comes_to_the_same_error() {
    let results = [
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        vk::Result::ERROR_OUT_OF_HOST_MEMORY,
        vk::Result::ERROR_TOO_MANY_OBJECTS,
        vk::Result::ERROR_DEVICE_LOST,
        vk::Result::ERROR_INVALID_EXTERNAL_HANDLE,
        vk::Result::ERROR_UNKNOWN,
    ];
    let map = vk::Result::ERROR_MEMORY_MAP_FAILED;
    let failures =
        results.map(|result| ("vkAllocateMemory", result)).into_iter().chain([("vkMapMemory", map)]);
    for (call, result) in failures.chain(results.map(|result| ("vkMapMemory", result))) {
        for name in ["lavapipe", "nvidia-h200", "nvidia-gtx-1060"] {
            let failing = || {
                let gpu = Gpu::new(Profile::by_name(name).unwrap());
                gpu.faults().fail_always(call, result);
                gpu
            };
            assert_eq!(ours::answers(&failing()), theirs::answers(&failing()), "{name}: {call}: {result:?}");
        }
    }
}

#[test]
fn more_memory_objects_than_the_device_allows_are_the_same_error() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/vello.trace");
    let mut header = Trace::read(&std::fs::read(path).unwrap()).unwrap().header;
    header.max_memory_allocation_count = 2;
    let gpu = || header.simulated().build();
    let answers = ours::answers(&gpu());
    assert!(answers.iter().any(|answer| answer.contains("Internal") && answer.contains("TOO_MANY_OBJECTS")));
    assert_eq!(answers, theirs::answers(&gpu()));
}

/// Log lines: target, level and text.
struct Log(Mutex<Vec<String>>);

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}: {}", record.target(), record.level(), record.args());
        self.0.lock().unwrap().push(line);
    }

    fn flush(&self) {}
}

static LOG: Log = Log(Mutex::new(Vec::new()));

/// Removes values that vary between runs or that the stand-in does not have: handles, addresses, numbers of chunks and
/// blocks.
fn without_numbers(lines: &[String]) -> Vec<String> {
    let without = |line: &String| {
        let mut text = line.clone();
        for (from, until) in [
            ("device_memory: 0x", ", "),
            ("SendSyncPtr(0x", ")"),
            ("chunk_id: Some(", ")"),
            ("chunk_id: ", ",\n"),
            ("memory_block_index: ", "\n"),
            ("memory_block_index: ", ", "),
        ] {
            if let Some(at) = text.find(from) {
                if let Some(end) = text[at + from.len()..].find(until) {
                    let end = at
                        + from.len()
                        + end
                        + if from.starts_with("memory_block") { until.len() } else { 0 };
                    let kept = if from.starts_with("memory_block") { "" } else { from };
                    text.replace_range(at..end, kept);
                }
            }
        }
        text.split('\n').map(str::trim_start).collect::<Vec<_>>().join("\n")
    };
    lines.iter().map(without).collect()
}

#[test]
fn lines_of_the_log_and_what_is_printed_are_the_same() {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let mut found = Vec::new();
    let programs: [fn(&Gpu) -> Vec<String>; 2] = [ours::printed, theirs::printed];
    for printed in programs {
        LOG.0.lock().unwrap().clear();
        let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
        let said = without_numbers(&printed(&gpu));
        let mut logged = LOG.0.lock().unwrap().clone();
        // The original lists the allocations of a block in hash table order.
        let leaks = logged.iter().position(|line| line.contains("leak detected")).unwrap();
        logged[leaks..].sort();
        assert_eq!(logged.len() - leaks, 3, "{logged:#?}");
        found.push((said, without_numbers(&logged)));
    }
    let (ours, theirs) = (&found[0], &found[1]);
    assert_eq!(ours.0, theirs.0);
    assert_eq!(ours.1, theirs.1);
}
