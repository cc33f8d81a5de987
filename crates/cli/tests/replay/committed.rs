//! The committed traces.
//!
//! The first five were recorded on lavapipe (Mesa 22.3.6, LLVM 15), the next three on an NVIDIA H200 (driver 580.159.04).
//! The layer recorded the others on lavapipe, and Chromium on its SwiftShader. `wgpu`, `vello` and `vk-graph` use
//! gpu-allocator, and were recorded through `compat/gpu-allocator` as a patch, with its feature `trace`:
//!
//! ```toml
//! gpu-allocator = { version = "0.28", features = ["trace"] }
//! [patch.crates-io]
//! gpu-allocator = { path = "sublet/compat/gpu-allocator" }
//! ```
//!
//! Each covers a whole run, from the creation of its allocator or device to its end; a signal ended
//! SuperTuxKart:
//!
//! | trace | program | memory use | command |
//! |---|---|---|---|
//! | `wgpu` | `compat/tests/wgpu`: wgpu 30.0.1 | 100 frames of textures, storage and read-back buffers that live for a frame, with wgpu's own staging buffers | `cargo test --manifest-path compat/tests/wgpu/Cargo.toml` |
//! | `vello` | vello 0.11.0 on wgpu 30.0.1, a scene of 20 to 320 shapes with images and clips in 60 frames, at three sizes | large buffers that grow on demand, targets and pictures that live for a frame | a `main` of 110 lines around `Renderer::render_to_texture` |
//! | `vk-graph` | vk-graph 0.14.8, a world of 600 chunks streamed by three threads | textures with mip levels, vertices, indices and staging, freed on other threads than they were allocated on; leased scratch buffers | a `main` of 120 lines around `Image::create`, `Buffer::create_from_slice`, `LazyPool`, `HashPool` |
//! | `frames` | `examples/shaders/frames` | uploads through an arena, retired materials, buffers mapped and read back for 1,000 frames | `cargo run -p sublet-shader-examples --example frames` |
//! | `tour` | `examples/tour` | pools of all kinds, including linear ones, thousands of small buffers, levels, render targets, a rejected allocation | `cargo run --example tour` |
//! | `render` | `examples/shaders/render` | a few large images, attachments that share memory, a staging ring | `cargo run --release -p sublet-shader-examples --example render` |
//! | `defragment` | `examples/defragment` | buffers and images; many are freed, and the rest move in five passes | `cargo run --release --example defragment` |
//! | `level` | `examples/level` | the contents of a level, in scopes that are freed at once | `cargo run --release --example level` |
//! | `supertuxkart` | SuperTuxKart 1.4, which uses VMA | textures, meshes and dynamic buffers of a race, 373 frames | `sublet watch -- supertuxkart --render-driver=vulkan --windowed --screensize=320x240 --no-sound --benchmark --track=sandtrack` |
//! | `chromium` | Chromium 156 with ANGLE | 90 frames of WebGL, with textures that live for 20 frames | `sublet watch -- chromium --headless=new --use-gl=angle --use-angle=vulkan PAGE` |
//! | `ffmpeg` | FFmpeg 5.1 with libplacebo 4.208 | frames of a video that are scaled: exported and dedicated memory, and buffers that live for a frame | `sublet watch -- ffmpeg -init_hw_device vulkan=v:0 -vf format=yuv420p,hwupload,libplacebo=w=1280:h=720,hwdownload ...` |
//! | `egui` | egui-wgpu 0.37.0 on wgpu 30.0.2 | text and pictures in 120 frames at three sizes: a target for each frame, vertex buffers that grow | a `main` of 60 lines around `Renderer::render` |
//! | `wgpu-resize` | wgpu 30.0.2 | 120 frames: multisampled targets that are resized, textures of 64 KiB to 4 MiB that live for 24 frames | a `main` of 90 lines |
//! | `cubecl` | cubecl 0.11.3 on wgpu 30.0.2 | gradient descent in 6 runs of 20 batches, with buffers of 256 KiB to 16 MiB | a `main` of 30 lines around a kernel |
//!
//! The threads of the last six are merged into one, and zeros at the end are cut off. Both make their files smaller.
//!
//! To record one again, set `SUBLET_TRACE=NAME.trace` for its command, then run
//! `SUBLET_BLESS=1 cargo test --test replay`. The `main` functions of `vello`, `vk-graph`, `egui`, `wgpu-resize` and
//! `cubecl` are not in this repository.

use std::fs;

use serde_json::json;
use sublet::sim::{Gpu, Profile};
use sublet::trace::{CallKind, Event, Replay, ReplayReport, Trace};
use sublet::{Allocator, AllocatorCreateInfo};

use crate::expected::blessed;
use crate::outcome::result;
use crate::{folder, traces};

/// Devices very different from the recorded one: one with a small heap for host and device, one with lazily allocated
/// memory, one with a coarse granularity.
const OTHERS: [&str; 3] = ["nvidia-gtx-1060", "arm-mali-g52", "swiftshader"];

/// Maximum size of a committed trace.
const MAX_BYTES: usize = 1 << 20;

/// The requests of a recording. Those of a program that the layer recorded are its resources.
fn requests(bytes: &[u8]) -> Trace {
    let trace = Trace::read(bytes).unwrap();
    if trace.is_foreign() { trace.resource_requests() } else { trace }
}

fn on_the_recorded_device(trace: &Trace) -> ReplayReport {
    let gpu = trace.header.simulated().build();
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&trace.header.create_info(&gpu)) }.unwrap();
    let mut replay = Replay::new(trace, &allocator);
    while replay.step().is_some() {}
    allocator.validate();
    let report = replay.finish();
    assert_eq!(allocator.statistics().allocation_count, 0, "the replay frees what the program left");
    drop(allocator);
    gpu.assert_silent();
    report
}

fn on_another(trace: &Trace, name: &str) -> ReplayReport {
    let gpu = Gpu::new(Profile::by_name(name).unwrap());
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let report = Replay::new(trace, &allocator).finish();
    allocator.validate();
    assert!(allocator.destroy().is_empty());
    gpu.assert_silent();
    report
}

#[test]
fn every_trace_comes_to_what_is_expected_of_it_on_its_own_device_and_on_others() {
    let traces = traces();
    assert!(traces.len() >= 3, "traces of three programs at least");
    for (name, bytes) in &traces {
        assert!(bytes.len() < MAX_BYTES, "{name} has {} bytes", bytes.len());
        let trace = requests(bytes);
        let recorded = on_the_recorded_device(&trace);
        let mut found = json!({
            "device": &*trace.header.device_name,
            "program": &*trace.header.program,
            "threads": threads(&trace),
            "recorded device": result(&recorded),
        });
        for other in OTHERS {
            found[other] = result(&on_another(&trace, other));
        }
        blessed(&folder().join(format!("{name}.json")), &found);
    }
}

fn threads(trace: &Trace) -> usize {
    let mut threads: Vec<u32> = trace.records.iter().map(|record| record.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    threads.len()
}

#[test]
fn on_the_device_that_it_was_recorded_on_nothing_is_refused_that_was_granted() {
    for (name, bytes) in traces() {
        let trace = requests(&bytes);
        assert_eq!(trace.unknown_events, 0, "{name} is of a whole run");
        let report = on_the_recorded_device(&trace);
        assert_eq!((report.refused, report.unknown, report.other_memory_type), (0, 0, 0), "{name}");
        assert_eq!(report.granted_after_all, 0, "{name}");
        let count = |of: fn(&Event) -> bool| trace.records.iter().filter(|record| of(&record.event)).count();
        let asked = count(|event| {
            matches!(event, Event::Allocate(_) | Event::AllocateFailed(_) | Event::Existing(_))
        });
        assert_eq!(report.call(CallKind::Allocate).made, u64::try_from(asked).unwrap(), "{name}");
        assert_eq!(report.call(CallKind::Free).failed, 0, "{name}");
    }
}

#[test]
fn a_replay_is_the_same_on_every_run() {
    for (name, bytes) in traces() {
        let trace = requests(&bytes);
        let first = result(&on_the_recorded_device(&trace));
        assert_eq!(result(&on_the_recorded_device(&trace)), first, "{name}");
    }
}

#[test]
fn every_expected_result_has_its_trace() {
    let names: Vec<String> = traces().into_iter().map(|(name, _)| name).collect();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(names.contains(&stem), "{} is of no trace", path.display());
        let known = path.extension().is_some_and(|extension| extension == "trace" || extension == "json");
        assert!(known, "{} does not belong there", path.display());
    }
    let described = include_str!("committed.rs");
    for name in names {
        assert!(described.contains(&format!("`{name}`")), "the head of this file says what {name} is of");
    }
}
