//! The names of lanes and recordings: what is in their bits.
#![forbid(unsafe_code)]

use std::fmt;
use std::num::NonZeroU64;

/// A ticket, from the lowest bit: the lane, the clock, the serial. The serial is highest so that tickets are in the
/// order in which they were opened.
const LANE_BITS: u32 = 6;
const CLOCK_BITS: u32 = 10;
const SERIAL_BITS: u32 = 48;
const _: () = assert!(LANE_BITS + CLOCK_BITS + SERIAL_BITS == u64::BITS);
/// A lane's name is the low bits of its tickets.
const NAME_BITS: u32 = LANE_BITS + CLOCK_BITS;
const _: () = assert!(NAME_BITS == u16::BITS);

/// Lanes that a ticket can name.
pub(super) const MAX_LANES: usize = 1 << LANE_BITS;
/// The ids of clocks start again after so many.
pub(super) const CLOCKS: u16 = 1 << CLOCK_BITS;
/// Serials are below.
pub(super) const SERIALS: u64 = 1 << SERIAL_BITS;

/// A queue, or anything else that counts its submissions up on its own.
///
/// Made by [`Clock::add_lane`](super::Clock::add_lane). Says which clock it is of: another clock refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(u16);

impl LaneId {
    pub(super) const fn new(clock: u16, lane: u8) -> Self {
        debug_assert!(clock < CLOCKS && lane < (1 << LANE_BITS));
        // A `u8` is widened without loss.
        #[allow(clippy::as_conversions, reason = "`From` is not const")]
        Self(clock << LANE_BITS | lane as u16)
    }

    /// Lanes are counted from zero, in the order in which they were added: an index for the caller's own array of
    /// semaphores.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0) % MAX_LANES
    }

    #[inline]
    pub(super) const fn clock(self) -> u16 {
        self.0 >> LANE_BITS
    }
}

impl fmt::Debug for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LaneId").field(&self.index()).finish()
    }
}

/// One recording on one lane: eight bytes, to be kept beside everything that the recording uses.
///
/// Made by [`Clock::open`](super::Clock::open) and [`Clock::begin_frame`](super::Clock::begin_frame). The tickets of
/// one clock are ordered as they were opened, on all lanes. There are 2^48 for each clock: enough for eight years at a
/// million a second.
///
/// A ticket says which clock it is of, in ten bits. Clocks that were made one after another are told apart; two whose
/// making lies 1,024 clocks, or a multiple of that, apart are not.
///
/// ```
/// let clock = sublet::retire::Clock::new();
/// let lane = clock.add_lane()?;
/// let (first, second) = (clock.open(lane), clock.open(lane));
/// assert!(first < second);
/// assert_eq!(first.lane(), lane);
/// assert_eq!(size_of::<Option<sublet::retire::Ticket>>(), 8);
/// # Ok::<(), sublet::retire::TooManyLanes>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(NonZeroU64);

impl Ticket {
    /// `None` if the serials are used up, or zero.
    pub(super) fn new(serial: u64, lane: LaneId) -> Option<Self> {
        if serial >= SERIALS || serial == 0 {
            return None;
        }
        NonZeroU64::new(serial << NAME_BITS | u64::from(lane.0)).map(Self)
    }

    /// The lane that the recording is for.
    #[inline]
    #[must_use]
    pub fn lane(self) -> LaneId {
        #[allow(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "the low bits are what is wanted"
        )]
        LaneId(self.0.get() as u16)
    }

    #[inline]
    pub(crate) fn is_of_same_clock(self, other: Self) -> bool {
        self.lane().clock() == other.lane().clock()
    }

    #[inline]
    pub(super) const fn serial(self) -> u64 {
        self.0.get() >> NAME_BITS
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("lane", &self.lane().index()).field("serial", &self.serial()).finish()
    }
}
