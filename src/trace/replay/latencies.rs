//! A histogram of durations, whose steps grow with the duration.

use std::fmt;
use std::time::Duration;

use sublet_engines::cast::{index, nanoseconds};

/// The number of steps per octave, as a power of two: a result exceeds the measured value by at most 1/32.
const STEP_BITS: u32 = 5;
const STEPS: u64 = 1 << STEP_BITS;
/// One bucket for each value below [`STEPS`], and for each step of the octaves above.
const BUCKETS: u32 = (64 - STEP_BITS + 1) << STEP_BITS;

/// The durations of one kind of call. Percentiles are accurate to 1/32; the minimum, the maximum and the sum are exact.
///
/// ```
/// use std::time::Duration;
/// use sublet::trace::Latencies;
///
/// let mut latencies = Latencies::default();
/// for nanoseconds in 1..=1000 {
///     latencies.add(Duration::from_nanos(nanoseconds));
/// }
/// assert_eq!((latencies.count(), latencies.max()), (1000, Duration::from_nanos(1000)));
/// let half = latencies.percentile(500);
/// assert!(half >= Duration::from_nanos(500) && half < Duration::from_nanos(520));
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Latencies {
    /// The number of calls in each bucket, up to the bucket of the longest call.
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Returns the bucket of a duration in nanoseconds.
fn bucket(nanoseconds: u64) -> u32 {
    let Some(octave) = nanoseconds.checked_ilog2().filter(|octave| *octave >= STEP_BITS) else {
        // Less than `STEPS`.
        return u32::try_from(nanoseconds).unwrap_or(0);
    };
    let shift = octave - STEP_BITS;
    // The leading bit is implied by the octave.
    let step = u32::try_from((nanoseconds >> shift) & (STEPS - 1)).unwrap_or(0);
    ((shift + 1) << STEP_BITS) + step
}

/// Returns the largest duration in a bucket.
fn last_of(bucket: u32) -> u64 {
    let (octave, step) = (bucket >> STEP_BITS, u64::from(bucket) & (STEPS - 1));
    match octave.checked_sub(1) {
        None => step,
        // Cannot overflow: the last bucket ends at `u64::MAX`.
        Some(shift) => ((STEPS + step) << shift) | ((1 << shift) - 1),
    }
}

impl Latencies {
    /// Adds one call.
    pub fn add(&mut self, took: Duration) {
        let nanoseconds = nanoseconds(took);
        let at = index(bucket(nanoseconds));
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, 0);
        }
        self.buckets[at] += 1;
        self.min = if self.count == 0 { nanoseconds } else { self.min.min(nanoseconds) };
        self.max = self.max.max(nanoseconds);
        self.count += 1;
        self.sum += u128::from(nanoseconds);
    }

    /// Adds all calls of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, more)| *own += more);
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the total duration of all calls.
    #[must_use]
    pub fn total(&self) -> Duration {
        const SECOND: u128 = 1_000_000_000;
        let seconds = u64::try_from(self.sum / SECOND).unwrap_or(u64::MAX);
        // A remainder of a second fits `u32`.
        Duration::new(seconds, u32::try_from(self.sum % SECOND).unwrap_or(0))
    }

    /// Returns the shortest duration; zero without calls.
    #[must_use]
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.min)
    }

    /// Returns the longest duration; zero without calls.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Returns the duration that `per_mille` of a thousand calls did not exceed, by the nearest rank. For example, 500
    /// returns the median, and one call in a thousand exceeds the result for 999. The result is at least the measured
    /// value, and at most 1/32 more. Zero without calls.
    ///
    /// # Complexity
    /// O(buckets), at most 1,920.
    #[must_use]
    pub fn percentile(&self, per_mille: u32) -> Duration {
        let rank = (u128::from(self.count) * u128::from(per_mille.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0_u128;
        for (bucket, count) in (0..BUCKETS).zip(&self.buckets) {
            seen += u128::from(*count);
            if seen >= rank {
                return Duration::from_nanos(last_of(bucket).min(self.max));
            }
        }
        Duration::from_nanos(self.max)
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("count", &self.count)
            .field("p50", &self.percentile(500))
            .field("p99", &self.percentile(990))
            .field("p99.9", &self.percentile(999))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_a_bucket_that_ends_close_above_it() {
        let mut random = fastrand::Rng::with_seed(11);
        let few = 0..5000;
        let powers = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let any = (0..20_000).map(|_| random.u64(..) >> random.u32(0..64));
        for number in few.chain(powers).chain(any).chain([u64::MAX]) {
            let bucket = bucket(number);
            assert!(bucket < BUCKETS, "{number}");
            let last = last_of(bucket);
            assert!(last >= number && last - number <= number / STEPS, "{number} is reported as {last}");
            if let Some(before) = bucket.checked_sub(1) {
                assert!(last_of(before) < number, "{number} is beyond the bucket before");
            }
        }
        assert_eq!(last_of(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank_as_in_a_sorted_list() {
        let mut random = fastrand::Rng::with_seed(12);
        for count in [1, 2, 3, 10, 999, 1000, 1001, 5000] {
            let mut list: Vec<u64> = (0..count).map(|_| random.u64(..) >> random.u32(30..60)).collect();
            let mut latencies = Latencies::default();
            list.iter().for_each(|value| latencies.add(Duration::from_nanos(*value)));
            list.sort_unstable();
            for per_mille in [1_u32, 500, 900, 990, 999, 1000] {
                let rank = (list.len() * index(per_mille)).div_ceil(1000).max(1) - 1;
                let (found, expected) = (latencies.percentile(per_mille), list[rank]);
                let found = u64::try_from(found.as_nanos()).unwrap();
                assert!(found >= expected && found - expected <= expected / STEPS, "{per_mille} of {count}");
            }
            assert_eq!(latencies.total(), Duration::from_nanos(list.iter().sum()));
            assert_eq!(latencies.min(), Duration::from_nanos(list[0]));
            assert_eq!(latencies.max(), Duration::from_nanos(*list.last().unwrap()));
        }
    }

    #[test]
    fn what_is_merged_counts_as_if_it_had_been_added() {
        let mut random = fastrand::Rng::with_seed(13);
        let (mut all, mut parts) = (Latencies::default(), [Latencies::default(), Latencies::default()]);
        for number in 0..3000_usize {
            let took = Duration::from_nanos(random.u64(..) >> random.u32(20..64));
            all.add(took);
            parts[number % 2].add(took);
        }
        let [mut one, other] = parts;
        one.merge(&other);
        one.merge(&Latencies::default());
        assert_eq!(one, all);
        let mut none = Latencies::default();
        none.merge(&all);
        assert_eq!(none, all);
        assert_eq!(Latencies::default().percentile(999), Duration::ZERO);
    }
}
