//! The bit layout of timeline ids and tickets.

use std::fmt;
use std::num::NonZeroU64;

/// The fields of a ticket, from the lowest bit: timeline, clock, serial. The serial is highest, so tickets sort in the
/// order in which they were opened.
const TIMELINE_BITS: u32 = 6;
const CLOCK_BITS: u32 = 10;
const SERIAL_BITS: u32 = 48;
const _: () = assert!(TIMELINE_BITS + CLOCK_BITS + SERIAL_BITS == u64::BITS);
/// A `TimelineId` holds the low bits of its tickets.
const NAME_BITS: u32 = TIMELINE_BITS + CLOCK_BITS;
const _: () = assert!(NAME_BITS == u16::BITS);

/// The number of timelines that a ticket can name.
pub(super) const MAX_TIMELINES: usize = 1 << TIMELINE_BITS;
/// Clock ids wrap at this number.
pub(super) const CLOCKS: u16 = 1 << CLOCK_BITS;
/// The upper bound of serials (exclusive).
pub(super) const SERIALS: u64 = 1 << SERIAL_BITS;

/// Identifies a timeline: a queue, or anything else with its own counter of submissions.
///
/// Created by [`Clock::add_timeline`](super::Clock::add_timeline). Contains the id of its clock, so another clock
/// rejects it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimelineId(u16);

impl TimelineId {
    pub(super) const fn new(clock: u16, timeline: u8) -> Self {
        debug_assert!(clock < CLOCKS && timeline < (1 << TIMELINE_BITS));
        // Widening a `u8` is lossless.
        #[allow(clippy::as_conversions, reason = "`From` is not const")]
        Self(clock << TIMELINE_BITS | timeline as u16)
    }

    /// The index of the timeline, counted from zero in the order of creation. Use it as an index into an array of
    /// semaphores.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0) % MAX_TIMELINES
    }

    #[inline]
    pub(super) const fn clock(self) -> u16 {
        self.0 >> TIMELINE_BITS
    }
}

impl fmt::Debug for TimelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimelineId").field(&self.index()).finish()
    }
}

/// Identifies a recording on a timeline. Eight bytes; store it with every resource that the recording uses.
///
/// Created by [`Clock::open`](super::Clock::open) and [`Clock::begin_frame`](super::Clock::begin_frame). The tickets of
/// one clock sort in the order in which they were opened, across all timelines. Each clock has 2^48: enough for eight
/// years at a million a second.
///
/// A ticket contains ten bits for the id of its clock, so ids repeat after 1,024 clocks. Tickets of two clocks with the
/// same id cannot be distinguished.
///
/// ```
/// let clock = sublet::retire::Clock::new();
/// let timeline = clock.add_timeline()?;
/// let (first, second) = (clock.open(timeline), clock.open(timeline));
/// assert!(first < second);
/// assert_eq!(first.timeline(), timeline);
/// assert_eq!(size_of::<Option<sublet::retire::Ticket>>(), 8);
/// # Ok::<(), sublet::retire::TooManyTimelines>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(NonZeroU64);

impl Ticket {
    /// Returns `None` if the serial is zero or too large.
    pub(super) fn new(serial: u64, timeline: TimelineId) -> Option<Self> {
        if serial >= SERIALS || serial == 0 {
            return None;
        }
        NonZeroU64::new(serial << NAME_BITS | u64::from(timeline.0)).map(Self)
    }

    /// The timeline of the recording.
    #[inline]
    #[must_use]
    pub fn timeline(self) -> TimelineId {
        #[allow(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "the low bits are what is wanted"
        )]
        TimelineId(self.0.get() as u16)
    }

    #[inline]
    pub(crate) fn is_of_same_clock(self, other: Self) -> bool {
        self.timeline().clock() == other.timeline().clock()
    }

    #[inline]
    pub(super) const fn serial(self) -> u64 {
        self.0.get() >> NAME_BITS
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("timeline", &self.timeline().index())
            .field("serial", &self.serial())
            .finish()
    }
}
