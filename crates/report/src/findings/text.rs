//! Findings as text for a terminal.

use std::fmt;

use super::{Findings, MemoryFinding, MomentSums, PresetOutcome};
use crate::words::{bytes, clean, count, percent};

/// The most objects of a finding in a text.
const LISTED: usize = 5;

impl fmt::Display for MomentSums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} reserved in {}, {} used",
            bytes(self.reserved_bytes),
            count(self.memory_count, "memory object"),
            bytes(self.used_bytes)
        )
    }
}

impl fmt::Display for MemoryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let candidate = if self.is_candidate { "candidate, " } else { "" };
        let saved = match self.bytes {
            0 => String::new(),
            saved => format!(" ({candidate}saves {})", bytes(saved)),
        };
        writeln!(f, "{}{saved}", self.kind.name())?;
        writeln!(f, "  {}", self.text)?;
        writeln!(f, "  {}", self.advice)?;
        for object in self.objects.iter().take(LISTED) {
            let about = if object.about.is_empty() { "" } else { ", " };
            writeln!(f, "    {}: {}{about}{}", object.label, bytes(object.bytes), object.about)?;
        }
        let listed = self.objects.len().min(LISTED);
        match self.count.saturating_sub(crate::cast::widen(listed)) {
            0 => Ok(()),
            _ if listed == 0 => Ok(()),
            more => writeln!(f, "    and {more} more"),
        }
    }
}

impl fmt::Display for Findings {
    /// Writes the sums, each finding, and the table of presets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = if self.program.is_empty() { "A program" } else { &*self.program };
        writeln!(f, "{} on {}", clean(program), clean(&self.device))?;
        if self.part > 0 {
            writeln!(f, "  part {} of a recording: begins with the objects that were live then", self.part)?;
        }
        writeln!(f, "  peak: {}, {} unused", self.at_peak, percent(self.waste()))?;
        writeln!(f, "  end: {}", self.at_end)?;
        let limit = self.max_memory_allocation_count;
        writeln!(f, "  memory objects: at most {} of {limit}", self.peak_memory_count)?;
        if self.damaged_bytes > 0 {
            writeln!(f, "  damaged: {} bytes of the recording", self.damaged_bytes)?;
        }
        if self.findings.is_empty() {
            writeln!(f, "\nNo findings.")?;
        }
        for finding in &self.findings {
            write!(f, "\n{finding}")?;
        }
        if !self.presets.is_empty() {
            writeln!(f, "\nThe program, and its requests on Sublet")?;
        }
        self.presets.iter().try_for_each(|outcome| writeln!(f, "  {outcome}"))
    }
}

impl fmt::Display for PresetOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: peak {} in {}, end {}, driver: {} and {}, about {:.1} ms",
            self.preset,
            bytes(self.peak_reserved_bytes),
            count(self.peak_memory_count, "memory object"),
            bytes(self.end_reserved_bytes),
            count(self.driver_allocations, "allocation"),
            count(self.driver_frees, "free"),
            self.driver_milliseconds
        )?;
        match self.refused {
            0 => Ok(()),
            refused => write!(f, ", {refused} refused"),
        }
    }
}
