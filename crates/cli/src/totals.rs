//! Totals of a recording of any program, in one pass over it.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use sublet::trace::{Event, ForeignRecords};

use crate::files;
use crate::text::bytes;

/// Totals of a recording of any program. A later part counts only what it creates. Its peaks include what was live
/// before.
#[derive(Default, Debug, Serialize)]
pub(crate) struct WatchTotals {
    /// Calls that allocated memory.
    allocations: u64,
    /// Calls that failed to do so.
    refused: u64,
    /// The most `VkDeviceMemory` at one time, and their bytes at the time of the most bytes.
    peak_memories: usize,
    peak_reserved: u64,
    /// Created buffers and images.
    resources: u64,
    frames: u64,
    submissions: u64,
    device_lost: bool,
}

impl WatchTotals {
    /// Reads a recording. One that cannot be read has no totals.
    pub(crate) fn read(path: &Path) -> Self {
        let mut totals = Self::default();
        let Ok(content) = files::read(path) else { return totals };
        let Ok(records) = ForeignRecords::new(&content) else { return totals };
        let (mut live, mut reserved) = (HashMap::new(), 0_u64);
        let opening = records.header().opening_records;
        for (at, record) in (0..).zip(records) {
            // The others describe objects that the previous part had created.
            let is_new = at >= opening;
            match record.event {
                Event::MemoryAllocated { memory, size, .. } => {
                    totals.allocations += u64::from(is_new);
                    live.insert(memory, size);
                    reserved = reserved.saturating_add(size);
                    totals.peak_memories = totals.peak_memories.max(live.len());
                    totals.peak_reserved = totals.peak_reserved.max(reserved);
                }
                Event::MemoryFreed { memory } => {
                    reserved = reserved.saturating_sub(live.remove(&memory).unwrap_or(0));
                }
                Event::MemoryAllocationFailed { .. } => totals.refused += 1,
                Event::BufferCreated { .. } | Event::ImageCreated { .. } => {
                    totals.resources += u64::from(is_new);
                }
                Event::Presented => totals.frames += 1,
                Event::Submitted { .. } => totals.submissions += 1,
                Event::DeviceLost => totals.device_lost = true,
                _ => {}
            }
        }
        totals
    }
}

impl fmt::Display for WatchTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocations, peak_memories, resources, frames, submissions, .. } = self;
        write!(
            f,
            "{allocations} allocations, at most {peak_memories} at a time with {}, {resources} resources, \
             {submissions} submissions, {frames} frames",
            bytes(self.peak_reserved)
        )?;
        if self.refused > 0 {
            write!(f, ", {} allocations failed", self.refused)?;
        }
        if self.device_lost {
            write!(f, ", the device was lost")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sublet::private::foreign_recording;
    use sublet::trace::{ForeignMemoryFlags, MemoryNumber, Record, ResourceNumber, Trace};

    use super::*;

    #[test]
    fn a_part_does_not_count_the_objects_that_it_begins_with() {
        let buffer =
            |number| Event::BufferCreated { resource: ResourceNumber(number), size: 64, usage: 0, flags: 0 };
        let allocated = |number| Event::MemoryAllocated {
            memory: MemoryNumber(number),
            memory_type: 0,
            size: 4096,
            flags: ForeignMemoryFlags::empty(),
            resource: None,
        };
        let events = [buffer(1), buffer(2), allocated(1), buffer(9), allocated(5), allocated(6)];
        let records = events.map(|event| Record { event, ..Record::default() }).into();
        let mut trace = Trace { records, ..Trace::default() };
        (trace.header.part, trace.header.opening_records) = (2, 3);
        let path = std::env::temp_dir().join(format!("sublet-totals-{}.trace", std::process::id()));
        std::fs::write(&path, foreign_recording(&trace)).unwrap();
        let totals = WatchTotals::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!((totals.allocations, totals.resources), (2, 1));
        assert_eq!((totals.peak_memories, totals.peak_reserved), (3, 3 * 4096));
    }
}
