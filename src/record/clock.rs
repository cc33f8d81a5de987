//! A clock that takes a few nanoseconds to read, and points that relate its ticks to nanoseconds.

use std::time::Instant;

use super::chunk::TimePoint;
use sublet_engines::cast::nanoseconds;

/// Reads the CPU's time stamp counter. CPUs of the last fifteen years count at a constant rate, independent of their
/// frequency. On others, the point in each chunk bounds the error.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "reads the counter of the processor")]
#[inline(always)]
pub(super) fn ticks() -> u64 {
    // SAFETY: every x86_64 CPU has the instruction. An operating system could disable it, but none with Vulkan does.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns the nanoseconds since the first call.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub(super) fn ticks() -> u64 {
    static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    nanoseconds(FIRST.get_or_init(Instant::now).elapsed())
}

/// The start of a recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) ticks: u64,
    instant: Instant,
}

impl Start {
    pub(super) fn now() -> Self {
        Self { instant: Instant::now(), ticks: ticks() }
    }

    /// Returns the current time on both clocks, at least the tick `last`.
    pub(super) fn point(&self, last: u64) -> TimePoint {
        let nanoseconds = nanoseconds(self.instant.elapsed());
        TimePoint { ticks: ticks().max(last).saturating_sub(self.ticks), nanoseconds }
    }
}
