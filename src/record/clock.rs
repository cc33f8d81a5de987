//! A clock that takes a few nanoseconds to read, and the points that relate it to real time.

use std::time::Instant;

use super::chunk::Point;
use crate::base::cast::nanoseconds;

/// The processor's counter of cycles at its nominal speed. All processors of the last fifteen years count at one rate,
/// whatever their speed. For others, the point in each chunk keeps the error small.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "reads the counter of the processor")]
#[inline(always)]
pub(super) fn ticks() -> u64 {
    // SAFETY: every x86_64 processor has the instruction. An operating system may forbid it to programs; those that
    // Vulkan runs on do not.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Nanoseconds since the first call.
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

    /// This moment on both clocks, not before the tick `last`.
    pub(super) fn point(&self, last: u64) -> Point {
        let nanoseconds = nanoseconds(self.instant.elapsed());
        Point { ticks: ticks().max(last).saturating_sub(self.ticks), nanoseconds }
    }
}
