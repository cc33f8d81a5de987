//! Pure functions for all vectors: the number of blocks, the size of the next one, and which empty ones to destroy.

use sublet_engines::RegionId;

/// The limits of a vector's blocks, and the number of empty ones to keep.
///
/// ```
/// use sublet::vector::Policy;
/// let policy = Policy { empty_blocks_kept: 2, ..Policy::default() };
/// assert_eq!(policy.surplus(3, 10), 1);
/// assert_eq!(policy.surplus(3, 3), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Blocks that are created with the vector, and always stay.
    pub min_blocks: u32,
    /// The maximum number of blocks.
    pub max_blocks: u32,
    /// The maximum units (bytes, slots, grants) of all blocks.
    pub max_units: u64,
    /// The number of empty blocks that are kept indefinitely.
    pub empty_blocks_kept: u32,
    /// The number of empty blocks of oversize requests that are kept for similar requests.
    pub own_blocks_kept: u32,
    /// The number of `collect` calls after which an empty block above [`empty_blocks_kept`](Self::empty_blocks_kept) is
    /// destroyed. `Some(0)` destroys it at once, `None` keeps it until a trim.
    pub idle_collects: Option<u32>,
}

impl Default for Policy {
    /// No limits. Keeps one empty block, so that alternating allocations and frees at the edge of a block create no
    /// blocks.
    fn default() -> Self {
        Self {
            min_blocks: 0,
            max_blocks: u32::MAX,
            max_units: u64::MAX,
            empty_blocks_kept: 1,
            own_blocks_kept: 0,
            idle_collects: Some(0),
        }
    }
}

impl Policy {
    /// Exactly one block, which is created with the vector and stays.
    #[must_use]
    pub fn fixed() -> Self {
        Self { min_blocks: 1, max_blocks: 1, ..Self::default() }
    }

    /// Checks that the minimum does not exceed the maximum.
    ///
    /// ```
    /// use sublet::vector::{Policy, PolicyError};
    /// let policy = Policy { min_blocks: 5, max_blocks: 2, ..Policy::default() };
    /// assert_eq!(policy.check(), Err(PolicyError { min_blocks: 5, max_blocks: 2 }));
    /// ```
    ///
    /// # Errors
    /// [`PolicyError`] contains both.
    pub const fn check(&self) -> Result<(), PolicyError> {
        let Self { min_blocks, max_blocks, .. } = *self;
        if min_blocks > max_blocks { Err(PolicyError { min_blocks, max_blocks }) } else { Ok(()) }
    }

    /// The number of `empty` blocks, out of `blocks` in total, beyond those to keep.
    #[must_use]
    pub const fn surplus(&self, empty: u32, blocks: u32) -> u32 {
        surplus(empty, blocks, self.empty_blocks_kept, self.min_blocks)
    }

    /// The number of `empty` blocks of oversize requests beyond those to keep.
    #[must_use]
    pub const fn own_surplus(&self, empty: u32) -> u32 {
        empty.saturating_sub(self.own_blocks_kept)
    }

    /// Returns true if a block that has been empty since the collection `since` is idle after `collections`.
    #[must_use]
    pub fn is_idle(&self, since: u64, collections: u64) -> bool {
        self.idle_collects.is_some_and(|idle| collections.saturating_sub(since) >= u64::from(idle))
    }

    /// The number of `empty` blocks, out of `blocks` in total, that may be destroyed at most.
    #[must_use]
    pub const fn spare(&self, empty: u32, blocks: u32) -> u32 {
        surplus(empty, blocks, 0, self.min_blocks)
    }

    /// Returns true if a block of `units` may be created beside `blocks` with `have` units in total.
    #[must_use]
    pub const fn allows(&self, blocks: u32, have: u64, units: u64) -> bool {
        blocks < self.max_blocks && have <= self.max_units && units <= self.max_units - have
    }
}

/// The minimum number of blocks exceeds the maximum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PolicyError {
    /// The minimum.
    pub min_blocks: u32,
    /// The maximum.
    pub max_blocks: u32,
}

sublet_engines::errors! { struct PolicyError { min_blocks, max_blocks } =>
    "at least {min_blocks} blocks were asked for, and at most {max_blocks}"
}

/// The number of `empty` blocks, out of `blocks` in total, to destroy if `kept` of them and `min_blocks` of all stay.
#[inline]
#[must_use]
pub(crate) const fn surplus(empty: u32, blocks: u32, kept: u32, min_blocks: u32) -> u32 {
    let (beyond_kept, beyond_min) = (empty.saturating_sub(kept), blocks.saturating_sub(min_blocks));
    if beyond_kept < beyond_min { beyond_kept } else { beyond_min }
}

/// The empty block to destroy first: the smallest with at least `excess` units, else the largest, so that the kept ones
/// cost little; among equals the newest. The items are units and regions.
#[inline]
pub(crate) fn first_to_go(empty: impl Iterator<Item = (u64, RegionId)>, excess: u64) -> Option<RegionId> {
    // Below the excess the largest is best, above it the smallest.
    let rank = |&(units, region): &(u64, RegionId)| {
        let is_enough = units >= excess;
        (is_enough, if is_enough { u64::MAX - units } else { units }, region)
    };
    empty.max_by_key(rank).map(|(_, region)| region)
}

/// Growth that follows the units in use: a new block has a fraction of them, and so have the empty blocks that stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LiveGrowth {
    /// Usual sizes are multiples of this, and no block is smaller.
    pub(crate) step: u32,
    /// Only a larger request gets a larger block.
    pub(crate) cap: u64,
    /// A new block has up to the units in use, divided by this. So many unused units stay, too. Not 0.
    pub(crate) part: u32,
}

impl LiveGrowth {
    /// The number of steps that stay unused beyond that.
    const STEPS_KEPT: u64 = 2;
    /// Above two thirds of the cap, sizes grow slower by this factor: the last block is often nearly empty.
    const SLOWER: u64 = 4;
    /// The size of a block for a larger request is a multiple of a power of two: of about the units in use, divided by
    /// this, but of at least [`Self::LEAST_MULTIPLE`] and at most a step.
    const PART_OF_MULTIPLE: u64 = 64;
    const LEAST_MULTIPLE: u64 = 64 << 10;

    fn part(&self) -> u64 {
        self.part.into()
    }

    pub(crate) fn step(&self) -> u64 {
        self.step.into()
    }

    /// The size of a block for a request of `needed` units beside `live` ones.
    pub(crate) fn next(&self, needed: u64, live: u64) -> u64 {
        let part = live / self.part();
        let usual = part.min(self.cap / 2 + part / Self::SLOWER).min(self.cap).max(self.step());
        let usual = usual.checked_next_multiple_of(self.step()).unwrap_or(usual);
        if usual >= needed {
            return usual;
        }
        // Beside few units in use, a step is much to waste. Beside many, blocks of few sizes serve more requests.
        let multiple = (live / Self::PART_OF_MULTIPLE).max(Self::LEAST_MULTIPLE).min(self.step()).max(1);
        needed.checked_next_multiple_of(1 << multiple.ilog2()).unwrap_or(needed)
    }

    /// The units of all blocks beyond which empty ones are destroyed.
    pub(crate) fn bound(&self, live: u64) -> u64 {
        let kept = self.step() * Self::STEPS_KEPT;
        live.saturating_add(live / self.part()).saturating_add(kept)
    }

    /// The fewest live units whose [`Self::bound`] is at least `units`.
    pub(crate) fn live_of_bound(&self, units: u64) -> u64 {
        let beyond = units.saturating_sub(self.step() * Self::STEPS_KEPT);
        beyond - beyond / (self.part() + 1)
    }
}

/// The block that a block source proposes for a request without room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextBlock<C> {
    /// The capacity of the block.
    pub capacity: C,
    /// The capacity in units, for the limit: bytes, slots, grants.
    pub units: u64,
    /// True if it is made for one oversize request. It does not make later blocks larger, and is destroyed when empty,
    /// unless [`Policy::own_blocks_kept`] keeps it.
    pub own: bool,
}

/// The growth of blocks of units: from `first` by doubling to `preferred`.
///
/// ```
/// use sublet::vector::Growth;
/// let growth = Growth { first: 32, preferred: 256 };
/// let units = |needed, largest| growth.next(needed, largest).capacity;
/// assert_eq!((units(1, 0), units(1, 32), units(1, 256)), (32, 64, 256));
/// assert_eq!(units(20, 0), 64, "a request is to fill no more than half");
/// assert!(growth.next(300, 256).own, "an oversize request gets a block of its own");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// Units of the first block.
    pub first: u64,
    /// Units of a usual block: the maximum, except for oversize requests.
    pub preferred: u64,
}

impl Growth {
    /// All blocks have the same size.
    #[must_use]
    pub const fn fixed(units: u64) -> Self {
        Self { first: units, preferred: units }
    }

    /// The block for a request of `needed` units, if the largest usual block has `largest`.
    #[must_use]
    pub const fn next(&self, needed: u64, largest: u64) -> NextBlock<u64> {
        if needed > self.preferred {
            return NextBlock { capacity: needed, units: needed, own: true };
        }
        let units = grown(self.first, self.preferred, needed, largest);
        NextBlock { capacity: units, units, own: false }
    }
}

/// The size of the next block beside `blocks` ones: `first`, doubled for each of them, and at most `largest`.
#[must_use]
pub(crate) fn doubled(first: u64, largest: u64, blocks: u32) -> u64 {
    let factor = 1_u64.checked_shl(blocks).unwrap_or(u64::MAX);
    first.saturating_mul(factor).min(largest)
}

/// Doubles from `first` up to `preferred`, while a block of that size exists or the request would fill more than half.
#[must_use]
pub(crate) const fn grown(first: u64, preferred: u64, needed: u64, largest: u64) -> u64 {
    let mut size = if first == 0 { 1 } else { first };
    while size < preferred && (size <= largest || size < needed.saturating_mul(2)) {
        size = size.saturating_mul(2);
        if size > preferred {
            size = preferred;
        }
    }
    size
}
