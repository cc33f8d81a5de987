//! The modelled time of the driver's calls of memory, so that few large blocks can be compared with many small ones.

use std::time::Duration;

use ash::vk;

const MIB: u64 = 1 << 20;

/// The sizes of the tables, in bytes.
const SIZES: [u64; 4] = [MIB, 16 * MIB, 64 * MIB, 256 * MIB];

/// A kind of memory, which determines the time that the driver takes to allocate or free a block. Replays compare
/// allocators by it, and [`Allocator::maintain`](crate::Allocator::maintain) bounds it.
///
/// ```
/// use ash::vk::MemoryPropertyFlags;
/// use sublet::trace::DriverCost;
///
/// let [device, host] = [MemoryPropertyFlags::DEVICE_LOCAL, MemoryPropertyFlags::HOST_VISIBLE].map(DriverCost::of);
/// assert!(host.allocation(16 << 20) > 9 * device.allocation(16 << 20));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverCost {
    /// Memory of the device.
    DeviceLocal,
    /// Host memory that is not cached.
    Uncached,
    /// Host memory that is cached.
    Cached,
}

impl DriverCost {
    /// Returns the kind of a memory type.
    #[must_use]
    pub fn of(flags: vk::MemoryPropertyFlags) -> Self {
        match flags {
            flags if flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL) => Self::DeviceLocal,
            flags if flags.contains(vk::MemoryPropertyFlags::HOST_CACHED) => Self::Cached,
            _ => Self::Uncached,
        }
    }

    /// The bytes of a block that [`Self::allocation`] takes at most about 1.5 ms for. For memory of the device, twice as
    /// much would still take 1.3 ms, but 2 ms beside other work, and single calls 6 ms.
    pub(crate) const fn largest_cheap(self) -> u64 {
        match self {
            Self::DeviceLocal => 32 * MIB,
            Self::Cached => 8 * MIB,
            Self::Uncached => 4 * MIB,
        }
    }

    /// Returns the modelled time of `vkAllocateMemory`, from medians on an H200 with driver 580.
    #[must_use]
    pub fn allocation(self, bytes: u64) -> Duration {
        interpolated(
            bytes,
            match self {
                Self::DeviceLocal => [250, 540, 1_300, 4_100],
                Self::Uncached => [660, 5_000, 18_000, 77_000],
                Self::Cached => [150, 2_100, 14_000, 58_000],
            },
        )
    }

    /// Returns the modelled time of `vkFreeMemory`, from medians on an H200 with driver 580 that executes other work.
    #[must_use]
    pub fn free(self, bytes: u64) -> Duration {
        interpolated(
            bytes,
            match self {
                Self::DeviceLocal => [150, 320, 1_650, 5_270],
                Self::Uncached => [1_270, 2_860, 7_570, 24_800],
                Self::Cached => [1_760, 2_590, 4_000, 13_300],
            },
        )
    }
}

/// Linear between the sizes of the table and beyond the last, and constant below the first. The table has microseconds.
fn interpolated(bytes: u64, table: [u64; 4]) -> Duration {
    let [first, ..] = SIZES;
    if bytes <= first {
        return Duration::from_micros(table[0]);
    }
    let at = SIZES.iter().position(|&size| bytes <= size).unwrap_or(SIZES.len() - 1);
    let (low, high) = (SIZES[at - 1], SIZES[at]);
    let (from, to) = (table[at - 1], table[at]);
    // In 128 bits, nothing overflows.
    let more = u128::from(bytes - low) * u128::from((to - from) * 1_000) / u128::from(high - low);
    Duration::from_nanos((from * 1_000).saturating_add(u64::try_from(more).unwrap_or(u64::MAX)))
}

/// The modelled time that driver calls between frames may take. The first one may exceed it, because otherwise it would
/// never be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBudget {
    most: Duration,
    spent: Duration,
}

impl TimeBudget {
    pub(crate) const fn new(most: Duration) -> Self {
        Self { most, spent: Duration::ZERO }
    }

    pub(crate) fn admits(&self, cost: Duration) -> bool {
        self.spent.is_zero() || self.spent.saturating_add(cost) <= self.most
    }

    pub(crate) fn spend(&mut self, cost: Duration) {
        self.spent = self.spent.saturating_add(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_table_and_linear_between_them() {
        let of = |kind: DriverCost, mib: u64| kind.allocation(mib * MIB).as_micros();
        assert_eq!(
            [0, 1, 16, 64, 256].map(|mib| of(DriverCost::Uncached, mib)),
            [660, 660, 5_000, 18_000, 77_000]
        );
        assert_eq!(of(DriverCost::DeviceLocal, 40), 920);
        assert_eq!(of(DriverCost::Cached, 448), 102_000, "as between 64 and 256");
        assert_eq!(DriverCost::DeviceLocal.free(64 * MIB), Duration::from_micros(1_650));
        assert!(DriverCost::Uncached.allocation(u64::MAX) > Duration::from_secs(1), "nothing overflows");
    }

    #[test]
    fn memory_is_classified_by_its_flags() {
        use vk::MemoryPropertyFlags as Flags;
        let of = DriverCost::of;
        assert_eq!(of(Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE), DriverCost::DeviceLocal);
        assert_eq!(of(Flags::HOST_VISIBLE | Flags::HOST_CACHED), DriverCost::Cached);
        assert_eq!(of(Flags::HOST_VISIBLE), DriverCost::Uncached);
    }

    #[test]
    fn only_the_first_call_may_exceed_the_time() {
        let mut time = TimeBudget::new(Duration::from_micros(10));
        assert!(time.admits(Duration::from_secs(1)));
        time.spend(Duration::from_micros(6));
        assert!(time.admits(Duration::from_micros(4)) && !time.admits(Duration::from_micros(5)));
    }
}
