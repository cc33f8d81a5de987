//! The driver's own times: calls of memory, and submissions while another thread makes such calls.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ash::vk;

use crate::clock;
use crate::gpu::{Driver, TestGpu};
use crate::gpu_work::GpuWork;
use crate::statistics::{Percentiles, median, number};
use crate::table::AlignedTable;

/// Memory objects that are live at once, so that the driver does not reuse the last one.
const LIVE: u64 = 4;
/// The longest time of frames beside one kind of calls.
const LONGEST: Duration = Duration::from_millis(1500);

/// Returns the tables of single calls, and of submissions beside a thread that calls.
pub(crate) fn tables(driver: &Driver, quick: bool, tell: impl Fn(&str)) -> Result<Vec<AlignedTable>, String> {
    let gpu = TestGpu::new(driver, None)?;
    let mut times = AlignedTable::new(
        &format!("Times of {}", gpu.description()),
        "Milliseconds of vkAllocateMemory and vkFreeMemory: while the device has nothing to do / while it works.",
        ["memory type", "MiB", "allocate", "free"],
    );
    let sizes: &[u64] = if quick { &[1, 4] } else { &[1, 4, 8, 16, 32, 64, 256] };
    let milliseconds = |[idle, busy]: [f64; 2]| format!("{} / {}", number(idle / 1e6), number(busy / 1e6));
    for (memory_type, flags) in kinds(&gpu) {
        for &size in sizes {
            tell(&format!("driver: {size} MiB of type {memory_type}"));
            let found = calls(&gpu, memory_type, size << 20, if quick { 2 } else { 15 })?;
            let cells = [describe(memory_type, flags), size.to_string()].into_iter();
            times.row(cells.chain(found.map(milliseconds)));
        }
    }
    let mut tables = vec![times];
    if gpu.is_real() {
        let mut table = AlignedTable::new(
            "Submissions beside calls of memory",
            "Microseconds of vkQueueSubmit in a thread that submits and waits, while another one allocates and frees \
             one memory object at a time.",
            ["beside", "MiB", "submit p50", "p99"],
        );
        let sizes: &[u64] = if quick { &[1] } else { &[4, 16, 64, 256] };
        let some = kinds(&gpu).into_iter().flat_map(|(memory_type, flags)| {
            sizes.iter().map(move |size| (describe(memory_type, flags), Some((memory_type, size << 20))))
        });
        for (title, other) in std::iter::once(("nothing".to_owned(), None)).chain(some) {
            tell(&format!("driver: frames beside {title}"));
            let submit = beside(&gpu, other, if quick { 50 } else { 600 })?;
            let size = other.map_or(String::new(), |(_, size)| (size >> 20).to_string());
            let times = [submit.p50, submit.p99].map(|time| number(time / 1000.0));
            table.row([title, size].into_iter().chain(times));
        }
        tables.push(table);
    }
    Ok(tables)
}

fn describe(memory_type: u32, flags: vk::MemoryPropertyFlags) -> String {
    let named = [
        (vk::MemoryPropertyFlags::DEVICE_LOCAL, "device"),
        (vk::MemoryPropertyFlags::HOST_VISIBLE, "host"),
        (vk::MemoryPropertyFlags::HOST_CACHED, "cached"),
    ];
    let names: Vec<_> =
        named.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| *name).collect();
    format!("{memory_type}: {}", names.join(", "))
}

/// Returns the first memory type of each combination of flags.
fn kinds(gpu: &TestGpu) -> Vec<(u32, vk::MemoryPropertyFlags)> {
    let memory = gpu.memory();
    let mut kinds: Vec<(u32, vk::MemoryPropertyFlags)> = Vec::new();
    for (number, it) in (0..).zip(memory.memory_types_as_slice()) {
        let flags = it.property_flags;
        let is_usual = !flags.is_empty() && !flags.contains(vk::MemoryPropertyFlags::PROTECTED);
        if is_usual && !kinds.iter().any(|(_, known)| *known == flags) {
            kinds.push((number, flags));
        }
    }
    kinds
}

fn allocate(gpu: &TestGpu, memory_type: u32, size: u64) -> Result<vk::DeviceMemory, String> {
    let info = vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(memory_type);
    // SAFETY: the device is live, and the type is one of its own.
    let memory = unsafe { gpu.device().allocate_memory(&info, None) };
    memory.map_err(|error| format!("{size} bytes of type {memory_type}: {error}"))
}

fn free(gpu: &TestGpu, memory: vk::DeviceMemory) {
    // SAFETY: no device uses it.
    unsafe { gpu.device().free_memory(memory, None) };
}

/// Returns the medians of allocations and of frees in nanoseconds, each while the GPU is idle and while it works.
fn calls(gpu: &TestGpu, memory_type: u32, size: u64, rounds: u64) -> Result<[[f64; 2]; 2], String> {
    let said = |error| format!("the work for the GPU: {error}");
    let mut found = [[0.0; 2]; 2];
    for (at, is_beside) in [false, true].into_iter().enumerate() {
        let work = if is_beside && gpu.is_real() {
            Some(GpuWork::new(gpu, Duration::from_millis(4))?)
        } else {
            None
        };
        let timed = |samples: &mut Vec<f64>, call: &mut dyn FnMut()| {
            work.as_ref().map_or(Ok(()), GpuWork::submit).map_err(said)?;
            let from = Instant::now();
            call();
            samples.push(clock::single(from, Instant::now()));
            work.as_ref().map_or(Ok(()), GpuWork::wait).map_err(said)
        };
        let mut held = std::collections::VecDeque::new();
        let (mut allocations, mut frees) = (Vec::new(), Vec::new());
        for _ in 0..rounds + LIVE {
            timed(&mut allocations, &mut || held.push_back(allocate(gpu, memory_type, size)))?;
            if held.len() as u64 > LIVE {
                let oldest = held.pop_front().transpose()?;
                timed(&mut frees, &mut || oldest.into_iter().for_each(|memory| free(gpu, memory)))?;
            }
        }
        for memory in held {
            free(gpu, memory?);
        }
        found[0][at] = median(&allocations).unwrap_or_default();
        found[1][at] = median(&frees).unwrap_or_default();
    }
    Ok(found)
}

/// Measures `vkQueueSubmit` in at most so many frames, while another thread allocates and frees memory of this type and
/// size. Returns nanoseconds.
fn beside(gpu: &TestGpu, other: Option<(u32, u64)>, frames: u64) -> Result<Percentiles, String> {
    let said = |error| format!("the work for the GPU: {error}");
    let work = GpuWork::new(gpu, Duration::ZERO)?;
    let is_done = AtomicBool::new(false);
    let start = Instant::now();
    let mut samples = Vec::new();
    let (ran, called) = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            while let (Some((memory_type, size)), false) = (other, is_done.load(Ordering::Relaxed)) {
                free(gpu, allocate(gpu, memory_type, size)?);
            }
            Ok::<(), String>(())
        });
        let mut ran = Ok(());
        for _ in 0..frames {
            let from = Instant::now();
            ran = work.submit().map_err(said);
            samples.push(clock::single(from, Instant::now()) as f32);
            ran = ran.and_then(|()| work.wait().map_err(said));
            if ran.is_err() || start.elapsed() > LONGEST {
                break;
            }
        }
        is_done.store(true, Ordering::Relaxed);
        (ran, caller.join().map_err(|_| "a thread panicked".to_owned()))
    });
    ran?;
    called??;
    Ok(Percentiles::of(&mut samples).unwrap_or_default())
}
