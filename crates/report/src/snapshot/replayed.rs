//! Snapshots of a replayed recording.

use std::collections::HashMap;

use super::Snapshot;
use sublet::Allocator;
use sublet::trace::{Event, Header, Replay, Trace};

impl Snapshot {
    /// Takes a snapshot of the allocator of a replay. The id of an allocation is its number in the recording, as `#7`,
    /// so that snapshots of two moments match exactly, although each is of another replay.
    ///
    /// ```
    /// # use sublet::*; use sublet::trace::*;
    /// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// use sublet_report::Snapshot;
    ///
    /// # let file = TraceBuffer::new();
    /// # allocator.start_recording(file.clone())?;
    /// # let mesh = allocate(&allocator, "mesh", 4096);
    /// # allocator.stop_recording()?;
    /// # let bytes = file.bytes();
    /// // `bytes` is the content of a recorded file.
    /// let trace = Trace::read(&bytes)?;
    /// let snapshot = trace.header.with_allocator(|_gpu, allocator| {
    ///     let mut replay = Replay::new(&trace, allocator);
    ///     while replay.step().is_some() {}
    ///     Snapshot::of_replay(&trace, &replay, allocator)
    /// })?;
    /// assert_eq!(snapshot.allocations().next().unwrap().entry.id.as_deref(), Some("#0"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_replay(trace: &Trace, replay: &Replay<'_>, allocator: &Allocator) -> Self {
        let map = allocator.memory_map();
        let mut snapshot = Self::new(allocator, &map);
        let number_of = |event: &Event| match event {
            Event::Existing(_) | Event::Allocate(_) => event.allocation(),
            _ => None,
        };
        let numbers = trace.records.iter().filter_map(|record| number_of(&record.event));
        let place = |number| replay.allocation(number).map(|info| ((info.memory, info.offset), number));
        let numbers: HashMap<_, _> = numbers.filter_map(place).collect();
        let id =
            |memory, offset| numbers.get(&(memory, offset)).map(|number| format!("#{}", number.0).into());
        for (vector, of_map) in snapshot.vectors.iter_mut().zip(&map.vectors) {
            for (block, of_map) in vector.blocks.iter_mut().zip(&of_map.blocks) {
                for chunk in &mut block.chunks {
                    let offset = chunk.offset;
                    if let Some(entry) = &mut chunk.allocation {
                        entry.id = id(of_map.memory, offset);
                    }
                }
            }
            for (dedicated, of_map) in vector.dedicated.iter_mut().zip(&of_map.dedicated) {
                dedicated.allocation.id = id(of_map.memory, 0);
            }
        }
        let Header { program, process, started, .. } = &trace.header;
        snapshot.run = Some(format!("recording of {program}, process {process}, {started}").into());
        snapshot
    }
}
