//! Plots of memory: a `tracing` subscriber that turns the library's events into series of points.
//!
//! `cargo run --example plots`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage};
use sublet_examples::{Context, Random, Result, Table, bytes, count, heading, note};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{self, Layer, SubscriberExt as _};

fn main() -> ExitCode {
    sublet_examples::run(plots)
}

/// A point of a plot.
#[derive(Clone, Copy)]
struct Point {
    at: Duration,
    value: u64,
}

/// Stores the points of each plot.
#[derive(Clone)]
struct Plots {
    started: Instant,
    series: Arc<Mutex<BTreeMap<String, Vec<Point>>>>,
}

impl Plots {
    fn new() -> Self {
        Self { started: Instant::now(), series: Arc::default() }
    }

    fn plot(&self, name: String, value: u64) {
        let point = Point { at: self.started.elapsed(), value };
        self.series.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().push(point);
    }

    fn series(&self) -> BTreeMap<String, Vec<Point>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The numeric fields of an event.
#[derive(Default)]
struct Figures(BTreeMap<&'static str, u64>);

impl Visit for Figures {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: tracing::Subscriber> Layer<S> for Plots {
    fn on_event(&self, event: &tracing::Event<'_>, _: layer::Context<'_, S>) {
        let mut figures = Figures::default();
        event.record(&mut figures);
        let of = |field| figures.0.get(field).copied();
        // Names and fields of events are part of the library's public interface: see `guide::debugging`.
        match (event.metadata().target(), of("heap"), of("heap_bytes"), of("blocks")) {
            ("sublet::block", Some(heap), Some(heap_bytes), Some(blocks)) => {
                self.plot(format!("heap {heap}, bytes"), heap_bytes);
                self.plot("blocks".to_owned(), blocks);
                self.plot("nanoseconds in the driver".to_owned(), of("nanoseconds").unwrap_or(0));
            }
            ("sublet::budget", Some(heap), ..) => {
                if let (Some(usage), Some(budget)) = (of("usage"), of("budget")) {
                    // A heap without a budget counts as full.
                    let share = usage.saturating_mul(100).checked_div(budget).unwrap_or(100);
                    self.plot(format!("heap {heap}, % of the budget"), share);
                }
            }
            _ => {}
        }
    }
}

fn plots(context: &Context) -> Result<()> {
    let plots = Plots::new();
    let subscriber = tracing_subscriber::registry().with(plots.clone());
    // A program would set it for all threads: `tracing::subscriber::set_global_default`.
    tracing::subscriber::with_default(subscriber, || work(context))?;

    heading("What was plotted");
    let mut table = Table::new(&["plot", ">points", ">highest", "from first to last"]);
    for (name, points) in plots.series() {
        let highest = points.iter().map(|point| point.value).max().unwrap_or(0);
        let shown = if name.ends_with("bytes") { bytes(highest) } else { count(highest) };
        table.row([&name, &count(points.len()), &shown, &curve(&points, highest)]);
    }
    table.print();
    note("An event reports when a heap passes 80, 90 or 100 % of its budget, up or down.");
    Ok(())
}

/// Loads a level, streams for a while, and leaves the level.
fn work(context: &Context) -> Result<()> {
    // 64 MiB of each heap: small enough to be exceeded.
    let limits = vec![64 << 20; usize::try_from(context.memory_properties().memory_heap_count)?];
    let info = AllocatorCreateInfo {
        heap_size_limits: &limits,
        preferred_large_heap_block_size: 8 << 20,
        ..context.allocator_info()
    };
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&info) }?;
    let mut random = Random::new(7);
    let mut live = Vec::new();
    for frame in 0..60_u32 {
        allocator.set_current_frame_index(frame);
        for _ in 0..6 {
            let size = 64 * 1024 * random.within(1..9);
            let usage = vk::BufferUsageFlags::VERTEX_BUFFER;
            let buffer_info = vk::BufferCreateInfo::default().size(size).usage(usage);
            // SAFETY: the create-info is valid.
            live.push(unsafe {
                allocator.create_buffer(&buffer_info, &AllocationCreateInfo::new(MemoryUsage::Auto))
            }?);
        }
        let keep = if frame < 40 { 205 } else { 0 };
        while live.len() > keep {
            let (buffer, allocation) = live.swap_remove(0);
            // SAFETY: the device never used it.
            unsafe { allocator.destroy_buffer(buffer, allocation) }?;
        }
    }
    allocator.trim();
    Ok(())
}

/// Returns the points as a row of bars.
fn curve(points: &[Point], highest: u64) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = points.len().min(48);
    let at = |column: usize| points[column * (points.len() - 1) / width.saturating_sub(1).max(1)];
    let bar = |point: Point| BARS[usize::try_from(point.value * 8 / highest.max(1)).unwrap_or(8).min(8)];
    let last = points.last().map_or(0, |point| point.at.as_millis());
    (0..width).map(|column| bar(at(column))).chain(format!("  {last} ms").chars()).collect()
}
