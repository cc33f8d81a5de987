//! A clock that is read in a few nanoseconds, and what tells how fast it goes.

use std::time::Instant;

use super::chunk::Point;
use crate::base::cast::nanoseconds;

/// What the processor's counter of cycles, or of the cycles that it would have at its nominal speed, stands at. All
/// processors of the last fifteen years count at one rate, whatever their speed; for others, points in each chunk keep
/// the error small.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) fn ticks() -> u64 {
    // SAFETY: every x86_64 processor has the instruction. An operating system may forbid it to programs; those that
    // Vulkan runs on do not.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Nanoseconds since the first question.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub(super) fn ticks() -> u64 {
    static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    nanoseconds(FIRST.get_or_init(Instant::now).elapsed())
}

/// When a recording began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) ticks: u64,
    instant: Instant,
}

impl Start {
    pub(super) fn now() -> Self {
        Self { instant: Instant::now(), ticks: ticks() }
    }

    /// This moment on both clocks; on that of the ticks not before `last`.
    pub(super) fn point(&self, last: u64) -> Point {
        let nanoseconds = nanoseconds(self.instant.elapsed());
        Point { ticks: ticks().max(last).saturating_sub(self.ticks), nanoseconds }
    }
}
