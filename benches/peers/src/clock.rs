//! Time in nanoseconds, from the processor's own counter if it is steady, and the cost of a clock read.
#![expect(unsafe_code, reason = "reads the counter of the processor")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A point in time, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick(u64);

#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: every x86_64 processor has the instruction, and no system that Rust runs on forbids it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Returns the current time.
#[inline]
pub(crate) fn now() -> Tick {
    Tick(counter())
}

/// Returns the nanoseconds that this thread has run, without time in which it was preempted. `None` if the system does
/// not report it.
#[cfg(target_os = "linux")]
pub(crate) fn thread_time() -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Linux, and `time` is valid for writes.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (failed == 0).then_some(time.tv_sec as f64 * 1e9 + time.tv_nsec as f64)
}

/// Returns the nanoseconds that this thread has run. `None` if the system does not report it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_time() -> Option<f64> {
    None
}

/// Measures a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    ran: Option<f64>,
    from: Tick,
}

impl Stopwatch {
    #[inline]
    pub(crate) fn start() -> Self {
        Self { ran: thread_time(), from: now() }
    }

    /// Returns the nanoseconds since the start. On a busy machine, time of other processes does not count. A real
    /// driver may sleep, which does count.
    #[inline]
    pub(crate) fn stop(self, is_real: bool) -> f64 {
        let (to, has_run) = (now(), thread_time());
        match (self.ran, has_run) {
            (Some(ran), Some(has_run)) if !is_real => has_run - ran,
            _ => TickClock::get().between(self.from, to),
        }
    }
}

/// The conversion from ticks to nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickClock {
    nanoseconds_per_tick: f64,
    /// Nanoseconds between two consecutive reads.
    pub(crate) own: f64,
}

impl TickClock {
    /// Returns the clock, calibrated once.
    pub(crate) fn get() -> Self {
        static CLOCK: OnceLock<TickClock> = OnceLock::new();
        *CLOCK.get_or_init(Self::calibrate)
    }

    fn calibrate() -> Self {
        let (start, ticks) = (Instant::now(), now());
        while start.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let (end, passed) = (now(), start.elapsed());
        let nanoseconds_per_tick = passed.as_nanos() as f64 / (end.0 - ticks.0).max(1) as f64;
        let mut looks: Vec<u64> = (0..10_001)
            .map(|_| {
                let before = now();
                let after = now();
                after.0 - before.0
            })
            .collect();
        looks.sort_unstable();
        Self { nanoseconds_per_tick, own: looks[looks.len() / 2] as f64 * nanoseconds_per_tick }
    }

    /// Returns the nanoseconds between two ticks, including the clock's own cost.
    #[inline]
    pub(crate) fn between(self, from: Tick, to: Tick) -> f64 {
        to.0.saturating_sub(from.0) as f64 * self.nanoseconds_per_tick
    }

    /// Returns the nanoseconds between two ticks, without the clock's own cost.
    #[inline]
    pub(crate) fn single(self, from: Tick, to: Tick) -> f64 {
        (self.between(from, to) - self.own).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_system() {
        let clock = TickClock::get();
        let (start, from) = (Instant::now(), now());
        std::thread::sleep(Duration::from_millis(20));
        let (to, passed) = (now(), start.elapsed().as_nanos() as f64);
        let measured = clock.between(from, to);
        assert!((0.9..1.1).contains(&(measured / passed)), "{measured} of {passed}");
        assert!(clock.own < 1_000.0);
        assert_eq!(clock.single(to, from), 0.0);
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

    #[test]
    fn a_thread_that_sleeps_does_not_run() {
        let Some(before) = thread_time() else { return };
        std::thread::sleep(Duration::from_millis(20));
        let slept = thread_time().unwrap() - before;
        assert!((0.0..10e6).contains(&slept), "{slept}");
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        assert!(thread_time().unwrap() - before > slept);
    }
}
