//! A snapshot as a file for trace viewers, with offsets as times.

use serde::Serialize;

use super::chrome::{ChromeEvents, Time};
use super::snapshot::{Entry, Snapshot};
use super::words::{bytes, clean, flags, flags_of, title};
use crate::cast::narrow;

/// Returns the snapshot as a file that [Perfetto](https://ui.perfetto.dev) and Chrome's `about:tracing` open. The
/// viewers can zoom, search and sum a selection.
///
/// Each memory type and pool is a process, and each block is one of its threads. Offsets are times: a microsecond is a
/// byte, a second is a MB. Allocations are slices with arguments; gaps are free. Each dedicated allocation has its own
/// thread. The process of the heaps has counters: size, budget, usage, bytes in blocks and bytes in use.
///
/// ```
/// use sublet_report::{Snapshot, perfetto};
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let mesh = allocate(&allocator, "mesh", 4096);
/// let json = perfetto(&Snapshot::of(&allocator));
/// let slice = r#"{"ph":"X","name":"mesh","cat":"allocation","ts":0,"pid":2,"tid":1,"dur":4096,"#;
/// assert!(json.contains(slice), "{json}");
/// ```
#[must_use]
pub fn perfetto(snapshot: &Snapshot) -> String {
    let mut events = ChromeEvents::new();
    heaps(&mut events, snapshot);
    for (vector, number) in snapshot.vectors.iter().zip(0..) {
        if vector.blocks.is_empty() && vector.dedicated.is_empty() {
            continue;
        }
        let pid: u32 = FIRST_VECTOR + number;
        let flags = flags_of(snapshot, vector.memory_type);
        events.process(pid, &format!("{} ({flags}, heap {})", title(vector), vector.heap), pid);
        for (block, tid) in vector.blocks.iter().zip(1..) {
            events.thread(pid, tid, &format!("block {} ({})", block.id, bytes(block.size)));
            for chunk in &block.chunks {
                if let Some(entry) = &chunk.allocation {
                    slice(&mut events, (pid, tid), chunk.offset, chunk.size, entry);
                }
            }
        }
        let first = 1 + narrow(vector.blocks.len());
        for (dedicated, tid) in vector.dedicated.iter().zip(first..) {
            events.thread(pid, tid, &format!("dedicated ({})", bytes(dedicated.size)));
            slice(&mut events, (pid, tid), 0, dedicated.size, &dedicated.allocation);
        }
    }
    events.finish(&MapMetadata {
        title: snapshot.title.as_deref(),
        device: snapshot.device.name.as_deref(),
        api_version: snapshot.device.api_version.as_deref(),
        time: "a microsecond is a byte",
    })
}

/// The process numbers of the heaps and of the first vector.
const HEAPS: u32 = 1;
const FIRST_VECTOR: u32 = 2;

#[derive(Serialize)]
struct MapMetadata<'a> {
    title: Option<&'a str>,
    device: Option<&'a str>,
    api_version: Option<&'a str>,
    time: &'a str,
}

/// Writes each counter at the start and at the end, because a line needs two points.
fn heaps(events: &mut ChromeEvents, snapshot: &Snapshot) {
    let blocks = snapshot.vectors.iter().flat_map(|vector| vector.blocks.iter().map(|block| block.size));
    let dedicated = snapshot.vectors.iter().flat_map(|vector| vector.dedicated.iter().map(|it| it.size));
    let end = blocks.chain(dedicated).max().unwrap_or(0).max(1);
    events.process(HEAPS, "Heaps", 0);
    let statistics = snapshot.statistics();
    for ((heap, sums), number) in snapshot.heaps.iter().zip(&statistics.memory_heaps).zip(0_u32..) {
        let flags = if heap.flags.is_empty() { String::new() } else { format!(" {}", flags(&heap.flags)) };
        for (what, value) in [
            ("size", heap.size),
            ("budget", heap.budget),
            ("usage", heap.usage),
            ("in blocks", sums.statistics.block_bytes),
            ("in use", sums.statistics.allocation_bytes),
        ] {
            let name = format!("heap {number}{flags}: {what}");
            events.counter(HEAPS, Time::Micros(0), &name, value);
            events.counter(HEAPS, Time::Micros(end), &name, value);
        }
    }
}

fn slice(events: &mut ChromeEvents, track: (u32, u32), offset: u64, size: u64, entry: &Entry) {
    #[derive(Serialize)]
    struct AllocationArguments<'a> {
        size: u64,
        offset: u64,
        #[serde(flatten)]
        entry: &'a Entry,
    }
    let name = entry.name.as_deref().map(clean).filter(|name| !name.is_empty());
    let name = name.as_deref().unwrap_or_else(|| entry.kind.text());
    let times = (Time::Micros(offset), Time::Micros(size));
    events.slice(track, times, "allocation", name, AllocationArguments { size, offset, entry });
}
