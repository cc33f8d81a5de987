//! Waiting without being woken.

use std::thread::sleep;
use std::time::Duration;

use super::atomic::{spin_loop, yield_now};

/// Rounds of spinning, each twice as long as the previous one: 63 pauses in total, some 1 to 3 microseconds.
const SPIN_ROUNDS: u32 = 6;
/// Rounds that yield the processor. Only threads of the same or a higher priority then run.
const YIELD_ROUNDS: u32 = 10;
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The state of one wait: from round to round it uses less of the processor's time and reacts later.
///
/// The sleeps let threads of a lower priority run. Each one is bounded: a millisecond, and the system's own delay.
#[derive(Debug, Default)]
pub(crate) struct SpinWait {
    round: u32,
}

impl SpinWait {
    /// Waits for one round, after a check by the caller failed.
    pub(crate) fn once(&mut self) {
        let round = self.round;
        self.round = round.saturating_add(1);
        if round < SPIN_ROUNDS {
            for _ in 0..1 << round {
                spin_loop();
            }
        } else if round < SPIN_ROUNDS + YIELD_ROUNDS {
            yield_now();
        } else {
            sleep(sleep_of(round - SPIN_ROUNDS - YIELD_ROUNDS));
        }
    }
}

fn sleep_of(round: u32) -> Duration {
    1_u32.checked_shl(round).map_or(LONGEST_SLEEP, |times| {
        SHORTEST_SLEEP.checked_mul(times).unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_to_a_bound() {
        let micros: Vec<u128> = (0..8).map(|round| sleep_of(round).as_micros()).collect();
        assert_eq!(micros, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(sleep_of(31), LONGEST_SLEEP);
        assert_eq!(sleep_of(u32::MAX), LONGEST_SLEEP);
    }

    #[test]
    fn waiting_for_ever_does_not_overflow() {
        let mut wait = SpinWait { round: u32::MAX - 1 };
        for _ in 0..3 {
            wait.once();
        }
        assert_eq!(wait.round, u32::MAX);
    }

    /// After sixteen rounds without a sleep, a waiting thread sleeps in every round.
    #[test]
    fn nobody_is_busy_for_ever() {
        let mut wait = SpinWait::default();
        let started = std::time::Instant::now();
        (0..SPIN_ROUNDS + YIELD_ROUNDS + 3).for_each(|_| wait.once());
        assert!(started.elapsed() >= Duration::from_micros(20 + 40 + 80));
    }
}
