//! Runs a program for hours: levels that come and go, eight threads that stream, defragmentation, shrinking budgets and
//! lost devices. Shows the progress, and plots host memory, device memory and frame times. The plots must be flat, and
//! nothing may be left.
//!
//! `cargo run --release -p sublet-shader-examples --example soak -- --hours 4`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use ash::vk;
use indicatif::{ProgressBar, ProgressStyle};
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateInfo,
    DefragmentationInfo, MemoryUsage, ScopeCreateInfo, sim,
};
use sublet_examples::{Arguments, Context, Random, Result, bytes, count, heading, note};

/// Threads that stream.
const THREADS: u64 = 8;
/// Frames of a session. Each session has its own allocator.
const FRAMES: u32 = 100;
/// Columns of the plots.
const COLUMNS: u128 = 60;

fn main() -> ExitCode {
    let help = "
  --hours HOURS     how long it runs: a minute by default
  --minutes MINUTES the same in minutes
  --seed NUMBER     the first session's seed";
    sublet_examples::run_with(help, arguments, |context, (length, seed)| soak(context, length, seed))
}

fn arguments(arguments: &mut Arguments) -> Result<(Duration, u64)> {
    let hours = arguments.value("--hours")?.map(|hours| hours.parse::<f64>()).transpose()?;
    let minutes = arguments.value("--minutes")?.map(|minutes| minutes.parse::<f64>()).transpose()?;
    let seed = arguments.value("--seed")?.map_or(Ok(1), |seed| seed.parse())?;
    let minutes = hours.map(|hours| hours * 60.0).or(minutes).unwrap_or(1.0);
    Ok((Duration::try_from_secs_f64(minutes * 60.0)?, seed))
}

/// The figures of one column of the plots: the largest of its sessions.
#[derive(Clone, Copy, Default)]
struct Column {
    host: u64,
    device: u64,
    slowest: u64,
}

fn soak(context: &Context, length: Duration, first_seed: u64) -> Result<()> {
    let started = Instant::now();
    let bar = ProgressBar::new(length.as_secs());
    let style = "{elapsed_precise} {wide_bar} {eta_precise} left, {msg}";
    bar.set_style(ProgressStyle::with_template(style)?);
    let mut columns: Vec<Column> = Vec::new();
    let mut sessions = 0;
    while started.elapsed() < length || sessions < 4 {
        let reached = session(context, first_seed + sessions)?;
        lose_a_device(first_seed + sessions)?;
        sessions += 1;
        let part = started.elapsed().as_millis() * COLUMNS / length.as_millis().max(1);
        let at = usize::try_from(part.min(COLUMNS - 1))?;
        if columns.len() <= at {
            columns.resize(at + 1, Column::default());
        }
        let column = &mut columns[at];
        column.host = column.host.max(reached.host);
        column.device = column.device.max(reached.device);
        column.slowest = column.slowest.max(reached.slowest);
        bar.set_position(started.elapsed().as_secs());
        bar.set_message(format!("{} sessions, seed {}", count(sessions), first_seed + sessions));
    }
    bar.finish_and_clear();
    heading("What was used");
    note(&format!(
        "{} sessions of {FRAMES} frames with {THREADS} threads, seeds {first_seed} to {}.",
        count(sessions),
        first_seed + sessions - 1
    ));
    let micros = |micros| format!("{} µs", count(micros));
    show("host memory", columns.iter().map(|column| column.host), bytes);
    show("device memory", columns.iter().map(|column| column.device), bytes);
    show("slowest frame", columns.iter().map(|column| column.slowest), micros);
    flat(&columns)
}

/// Prints the plot of the values that are known.
fn show(name: &str, values: impl Iterator<Item = u64>, text: impl Fn(u64) -> String) {
    let values: Vec<_> = values.filter(|&value| value > 0).collect();
    let most = values.iter().copied().max().unwrap_or(0);
    note(&format!("{name:<14} {} at most {}", plot(&values, most), text(most)));
}

/// Draws a bar for each value.
fn plot(values: &[u64], most: u64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |&value: &u64| BARS[usize::try_from(value * 7 / most.max(1)).unwrap_or(0)];
    values.iter().map(bar).collect()
}

/// Fails if memory of the host grows: compares the second quarter with the last one.
fn flat(columns: &[Column]) -> Result<()> {
    let hosts: Vec<_> = columns.iter().map(|column| column.host).filter(|&host| host > 0).collect();
    let quarter = hosts.len() / 4;
    if quarter == 0 {
        return Ok(());
    }
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
    let (early, late) = (most(&hosts[quarter..2 * quarter]), most(&hosts[hosts.len() - quarter..]));
    if late > early + early / 4 + (16 << 20) {
        return Err(format!("host memory grew from {} to {}", bytes(early), bytes(late)).into());
    }
    Ok(())
}

/// Returns the resident bytes of the process; 0 if the system does not report them.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}

/// A program from the first allocation to the last: its threads stream while levels change.
fn session(context: &Context, seed: u64) -> Result<Column> {
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    let reached = std::thread::scope(|scope| {
        let allocator = &allocator;
        let streams: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || stream(allocator, seed * THREADS + thread)))
            .collect();
        let reached = frames(context, allocator, seed);
        for stream in streams {
            stream.join().map_err(|_| "a thread panicked")??;
        }
        reached
    })?;
    allocator.validate();
    let left = allocator.destroy();
    if !left.is_empty() {
        return Err(format!("{} allocations are left", left.len()).into());
    }
    Ok(reached)
}

/// Requirements of memory for the host.
fn needs(size: u64) -> vk::MemoryRequirements {
    vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 }
}

fn host() -> AllocationCreateInfo<'static> {
    AllocationCreateInfo { flags: Flags::MAPPED, ..AllocationCreateInfo::new(MemoryUsage::CpuToGpu) }
}

/// Writes a mark into an allocation.
fn mark(allocator: &Allocator, allocation: &mut Allocation, mark: u64) -> Result<()> {
    Ok(allocator.copy_to_allocation(&mark.to_le_bytes(), allocation, 0)?)
}

/// Compares the mark, and frees the allocation.
fn check_and_free(allocator: &Allocator, allocation: Allocation, mark: u64) -> Result<()> {
    let mut found = [0; 8];
    allocator.copy_from_allocation(&allocation, 0, &mut found)?;
    if u64::from_le_bytes(found) != mark {
        return Err("another allocation was written here".into());
    }
    // SAFETY: nothing was bound to it.
    Ok(unsafe { allocator.free_memory(allocation) }?)
}

/// Allocates and frees beside the frames. Each allocation has a mark of its own.
fn stream(allocator: &Allocator, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut live: Vec<(Allocation, u64)> = Vec::new();
    for number in 0..2_000 {
        if live.len() < 20 || random.within(0..2) == 0 && live.len() < 200 {
            let mut allocation = allocator.allocate_memory(&needs(random.within(16..60_000)), &host())?;
            let own = seed << 32 | number;
            mark(allocator, &mut allocation, own)?;
            live.push((allocation, own));
        } else {
            let (allocation, own) = live.swap_remove(random.index(live.len()));
            check_and_free(allocator, allocation, own)?;
        }
    }
    live.into_iter().try_for_each(|(allocation, own)| check_and_free(allocator, allocation, own))
}

/// Marks the user data of allocations that frames own and may move. The other bits are the index.
const MOVABLE: u64 = 1 << 63;

/// The frames of a session: levels, defragmentation, and budgets that shrink and grow.
fn frames(context: &Context, allocator: &Allocator, seed: u64) -> Result<Column> {
    let mut random = Random::new(seed);
    let mut reached = Column::default();
    let mut kept: Vec<Option<Allocation>> = Vec::new();
    for frame in 0..FRAMES {
        let started = Instant::now();
        allocator.set_current_frame_index(frame);
        if let (Some(gpu), 0) = (context.gpu(), frame % 10) {
            let size = gpu.profile().heaps[0].size;
            gpu.faults().set_budget(0, size / (1 + random.within(0..8)), size / 16);
        }
        for _ in 0..20 {
            let mut allocation = allocator.allocate_memory(&needs(random.within(16..200_000)), &host())?;
            let index = u64::try_from(kept.len())?;
            mark(allocator, &mut allocation, index)?;
            allocation.set_user_data(MOVABLE | index);
            kept.push(Some(allocation));
        }
        for _ in 0..18 {
            let at = random.index(kept.len());
            if let Some(allocation) = kept[at].take() {
                check_and_free(allocator, allocation, u64::try_from(at)?)?;
            }
        }
        match frame % 20 {
            5 => level(context, allocator, &mut random)?,
            10 => defragment(allocator, &mut kept)?,
            15 => drop(allocator.trim()),
            _ => {}
        }
        reached.device = reached.device.max(allocator.statistics().block_bytes);
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        reached.slowest = reached.slowest.max(micros);
    }
    if let Some(gpu) = context.gpu() {
        gpu.faults().clear();
    }
    for (at, allocation) in (0..).zip(kept) {
        allocation.map_or(Ok(()), |allocation| check_and_free(allocator, allocation, at))?;
    }
    reached.host = resident();
    Ok(reached)
}

/// A level: buffers of a scope that are freed at once.
fn level(context: &Context, allocator: &Allocator, random: &mut Random) -> Result<()> {
    let level = allocator.create_scope(&ScopeCreateInfo { name: Some("level"), ..Default::default() })?;
    let mut buffers = Vec::new();
    for _ in 0..50 {
        let info = vk::BufferCreateInfo::default()
            .size(random.within(64..1 << 20))
            .usage(vk::BufferUsageFlags::VERTEX_BUFFER);
        // SAFETY: the create-info is valid. The allocation is freed with the scope.
        let (buffer, _) = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::in_scope(&level)) }?;
        buffers.push(buffer);
    }
    for buffer in buffers {
        // SAFETY: the device never used it.
        unsafe { context.device().destroy_buffer(buffer, None) };
    }
    // SAFETY: everything that was bound to it is destroyed.
    unsafe { allocator.free_scope(level) }?;
    Ok(())
}

/// Moves what frames own, and leaves what the threads own.
fn defragment(allocator: &Allocator, kept: &mut [Option<Allocation>]) -> Result<()> {
    let info = DefragmentationInfo { max_bytes_per_pass: 1 << 20, ..Default::default() };
    let mut defragmentation = allocator.begin_defragmentation(&info)?;
    for _ in 0..4 {
        let Some(pass) = defragmentation.begin_pass() else { break };
        for planned in pass {
            let Some(own) = planned.user_data().filter(|data| data & MOVABLE != 0) else { continue };
            let at = usize::try_from(own & !MOVABLE)?;
            let Some(allocation) = &mut kept[at] else { return Err("a freed allocation moves".into()) };
            // SAFETY: nothing is bound to it.
            unsafe { planned.complete(allocation) }.map_err(|error| error.to_string())?;
            // Nothing was copied.
            mark(allocator, allocation, own & !MOVABLE)?;
        }
    }
    defragmentation.end();
    Ok(())
}

/// A simulated device is lost in the middle of a program. Everything is freed all the same.
fn lose_a_device(seed: u64) -> Result<()> {
    let names: Vec<_> = sim::Profile::names().collect();
    let mut random = Random::new(seed);
    let profile = sim::Profile::by_name(names[random.index(names.len())]).ok_or("no such profile")?;
    let gpu = sim::Gpu::new(profile);
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    let mut live = Vec::new();
    let lost_at = random.within(0..100);
    for number in 0..100 {
        if number == lost_at {
            gpu.faults().lose_device();
        }
        live.extend(allocator.allocate_memory(&needs(random.within(16..1 << 22)), &host()));
    }
    for allocation in live {
        // SAFETY: nothing was bound to it.
        unsafe { allocator.free_memory(allocation) }?;
    }
    let left = allocator.destroy();
    if left.is_empty() && gpu.live().is_empty() { Ok(()) } else { Err("a lost device keeps memory".into()) }
}
