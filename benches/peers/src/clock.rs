//! Time in nanoseconds, and the cost of a clock read.
#![expect(unsafe_code, reason = "reads the clock of the thread")]

use std::sync::OnceLock;
use std::time::Instant;

/// Returns the nanoseconds that this thread has run, without time in which it was preempted. `None` if the system does
/// not report it.
fn thread_time() -> Option<f64> {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock exists on every Linux, and `time` is valid for writes.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        (failed == 0).then_some(time.tv_sec as f64 * 1e9 + time.tv_nsec as f64)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Measures a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    ran: Option<f64>,
    from: Instant,
}

impl Stopwatch {
    #[inline]
    pub(crate) fn start() -> Self {
        Self { ran: thread_time(), from: Instant::now() }
    }

    /// Returns the nanoseconds since the start. On a busy machine, time of other processes does not count. A real
    /// driver may sleep, which does count.
    #[inline]
    pub(crate) fn stop(self, is_real: bool) -> f64 {
        let (elapsed, has_run) = (self.from.elapsed(), thread_time());
        match (self.ran, has_run) {
            (Some(ran), Some(has_run)) if !is_real => has_run - ran,
            _ => elapsed.as_nanos() as f64,
        }
    }
}

/// Returns the nanoseconds between two consecutive reads of the clock, measured once.
pub(crate) fn read_cost() -> f64 {
    static COST: OnceLock<f64> = OnceLock::new();
    *COST.get_or_init(|| {
        let mut reads: Vec<_> = (0..10_001).map(|_| Instant::now().elapsed().as_nanos()).collect();
        reads.sort_unstable();
        reads[reads.len() / 2] as f64
    })
}

/// Returns the nanoseconds between two points in time, without the cost of the clock.
#[inline]
pub(crate) fn single(from: Instant, to: Instant) -> f64 {
    (to.saturating_duration_since(from).as_nanos() as f64 - read_cost()).max(0.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_cost_of_the_clock_is_subtracted() {
        let from = Instant::now();
        let to = from + Duration::from_millis(1);
        assert_eq!(single(from, to), 1e6 - read_cost());
        assert_eq!(single(to, from), 0.0);
    }

    #[test]
    fn sleep_counts_with_a_real_driver_only() {
        if thread_time().is_none() {
            return;
        }
        let stopwatch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(20));
        assert!((0.0..10e6).contains(&stopwatch.stop(false)));
        assert!(stopwatch.stop(true) > 19e6);
    }
}
