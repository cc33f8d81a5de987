//! Blocks that are created and freed in the second half of a recording.

use std::time::Duration;

use super::finding::{FindingKind, MemoryFinding};
use crate::words::{bytes, count};

/// The least number of allocations in the second half of a recording that counts as churn.
const MIN_CHURN: u64 = 16;

/// The driver's memory in the second half of a recording.
#[derive(Clone, Copy, Default)]
pub(super) struct Churn {
    pub(super) allocated: u64,
    pub(super) allocated_bytes: u64,
    pub(super) freed: u64,
    pub(super) frames: u64,
}

impl Churn {
    /// Returns the finding of a recording of this length.
    pub(super) fn finding(self, time: Duration) -> Option<MemoryFinding> {
        if self.allocated.min(self.freed) < MIN_CHURN {
            return None;
        }
        let frames = match self.frames {
            0 => String::new(),
            frames => format!(" in {}", count(frames, "frame")),
        };
        let text = format!(
            "In the second half of the {:.1} s of the recording, the program created {} with {}, and freed {}{frames}.",
            time.as_secs_f64(),
            count(self.allocated, "memory object"),
            bytes(self.allocated_bytes),
            count(self.freed, "memory object"),
        );
        Some(MemoryFinding::of_many(FindingKind::Churn, 0, self.allocated, text, Vec::new()))
    }
}
