//! What a trace tells.
#![forbid(unsafe_code)]

use std::time::Duration;

use super::asked::{Allocate, AllocateFailed};
use super::settings::{BeginDefragmentation, Existing, MoveOutcome, PoolSettings, ScopeSettings};
use crate::record::header::Header;

/// An allocation of a trace: they are numbered from 0 on, without gaps.
///
/// ```
/// use sublet::trace::AllocationNumber;
/// assert!(AllocationNumber(0) < AllocationNumber(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AllocationNumber(pub u32);

/// A pool of a trace, numbered as allocations are.
///
/// ```
/// use sublet::trace::PoolNumber;
/// assert!(PoolNumber(0) < PoolNumber(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolNumber(pub u32);

/// A scope of a trace, numbered as allocations are.
///
/// ```
/// use sublet::trace::ScopeNumber;
/// assert!(ScopeNumber(0) < ScopeNumber(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeNumber(pub u32);

/// A defragmentation of a trace, numbered as allocations are.
///
/// ```
/// use sublet::trace::DefragmentationNumber;
/// assert!(DefragmentationNumber(0) < DefragmentationNumber(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DefragmentationNumber(pub u32);

/// All that was recorded.
///
/// ```
/// use sublet::trace::{Event, Record, Trace};
/// // As a test would write one.
/// let record = Record { event: Event::Frame { index: 7 }, ..Record::default() };
/// let trace = Trace { records: vec![record], ..Trace::default() };
/// assert_eq!(Trace::read(&trace.to_bytes())?, trace);
/// # Ok::<(), sublet::trace::ReadTraceError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// Of what.
    pub header: Header,
    /// The calls, in an order in which they may have happened: an allocation comes after it was made, and the end of one
    /// before it ended.
    pub records: Vec<Record>,
    /// Calls for allocations, pools and scopes that the trace does not know: those that were on their way when the recording
    /// began, and what is done with the place that a move of the C interface goes to. They are not among the records.
    pub strangers: u64,
}

/// One call.
///
/// ```
/// let record = sublet::trace::Record::default();
/// assert_eq!(record.thread, 0);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Since the recording began.
    pub time: Duration,
    /// Which thread, numbered from 0 on in the order in which the trace tells of them.
    pub thread: u32,
    /// What was called.
    pub event: Event,
}

impl Default for Record {
    fn default() -> Self {
        Self { time: Duration::ZERO, thread: 0, event: Event::Trim }
    }
}

/// What was called. Of allocations, those that failed are told, too; of other calls only those that succeeded.
///
/// ```
/// use sublet::trace::{AllocationNumber, Event};
/// let event = Event::Free { allocation: AllocationNumber(3) };
/// assert_eq!(event.allocation(), Some(AllocationNumber(3)));
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// An allocation that lived when the recording began. Such come first, after the pools and scopes that they are in.
    Existing(Box<Existing>),
    /// An allocation was made.
    Allocate(Box<Allocate>),
    /// An allocation was not made.
    AllocateFailed(Box<AllocateFailed>),
    /// An allocation is freed. Those that end with their pool or scope are not told one by one.
    Free {
        /// Which.
        allocation: AllocationNumber,
    },
    /// An allocation was mapped once more.
    Map {
        /// Which.
        allocation: AllocationNumber,
    },
    /// An allocation was unmapped once.
    Unmap {
        /// Which.
        allocation: AllocationNumber,
    },
    /// What the host wrote was made visible to the device. A call for several ranges is told as several.
    Flush {
        /// Of which allocation.
        allocation: AllocationNumber,
        /// Bytes from its start.
        offset: u64,
        /// Bytes, or `vk::WHOLE_SIZE`.
        size: u64,
    },
    /// What the device wrote was made visible to the host. A call for several ranges is told as several.
    Invalidate {
        /// Of which allocation.
        allocation: AllocationNumber,
        /// Bytes from its start.
        offset: u64,
        /// Bytes, or `vk::WHOLE_SIZE`.
        size: u64,
    },
    /// Bytes were copied into an allocation: mapped, written, flushed and unmapped in one call.
    CopyTo {
        /// Which.
        allocation: AllocationNumber,
        /// Bytes from its start.
        offset: u64,
        /// Bytes that were copied.
        size: u64,
    },
    /// Bytes were copied out of an allocation: mapped, invalidated, read and unmapped in one call.
    CopyFrom {
        /// Which.
        allocation: AllocationNumber,
        /// Bytes from its start.
        offset: u64,
        /// Bytes that were copied.
        size: u64,
    },
    /// An allocation got another name.
    SetName {
        /// Which.
        allocation: AllocationNumber,
        /// The name.
        name: Option<Box<str>>,
    },
    /// What the program keeps with an allocation was changed.
    SetUserData {
        /// Which.
        allocation: AllocationNumber,
        /// What it keeps now.
        user_data: u64,
    },
    /// The priority of a dedicated allocation was changed.
    SetPriority {
        /// Which.
        allocation: AllocationNumber,
        /// The priority.
        priority: f32,
    },
    /// A pool was made, or was there when the recording began.
    CreatePool {
        /// Which.
        pool: PoolNumber,
        /// What it was made with.
        settings: Box<PoolSettings>,
    },
    /// A pool is destroyed, with all that is in it.
    DestroyPool {
        /// Which.
        pool: PoolNumber,
    },
    /// A pool got another name.
    SetPoolName {
        /// Which.
        pool: PoolNumber,
        /// The name.
        name: Option<Box<str>>,
    },
    /// The priority of a pool's blocks was changed.
    SetPoolPriority {
        /// Which.
        pool: PoolNumber,
        /// The priority.
        priority: f32,
    },
    /// How many empty blocks a pool keeps was changed.
    SetPoolEmptyBlocksKept {
        /// Which.
        pool: PoolNumber,
        /// How many it keeps now.
        empty_blocks_kept: u32,
    },
    /// The thread asked for a part of a pool's blocks to itself, and has it.
    SettleInPool {
        /// Which.
        pool: PoolNumber,
    },
    /// A scope was made, or was there when the recording began.
    CreateScope {
        /// Which.
        scope: ScopeNumber,
        /// What it was made with.
        settings: Box<ScopeSettings>,
    },
    /// A scope is freed, with all that is in it.
    FreeScope {
        /// Which.
        scope: ScopeNumber,
    },
    /// A frame began.
    Frame {
        /// Its index, as the program said.
        index: u32,
    },
    /// What is empty was given back to the driver.
    Trim,
    /// How many empty blocks each memory type keeps was changed.
    SetEmptyBlocksKept {
        /// How many they keep now.
        empty_blocks_kept: u32,
    },
    /// The thread asked for a part of a memory type's blocks to itself, and has it.
    SettleInMemoryType {
        /// Index of the memory type.
        memory_type: u32,
    },
    /// A defragmentation began.
    BeginDefragmentation(Box<BeginDefragmentation>),
    /// A pass of a defragmentation began.
    BeginPass {
        /// Of which.
        defragmentation: DefragmentationNumber,
        /// How many moves were planned. With none, the defragmentation has found its end.
        moves: u32,
    },
    /// A move was resolved.
    Move {
        /// Of which defragmentation.
        defragmentation: DefragmentationNumber,
        /// What was to be moved.
        allocation: AllocationNumber,
        /// What became of it.
        outcome: MoveOutcome,
    },
    /// A pass is over: its moves are resolved.
    EndPass {
        /// Of which defragmentation.
        defragmentation: DefragmentationNumber,
    },
    /// A defragmentation ended.
    EndDefragmentation {
        /// Which.
        defragmentation: DefragmentationNumber,
    },
}

impl Event {
    /// The allocation that a call is for.
    ///
    /// ```
    /// use sublet::trace::{AllocationNumber, Event};
    /// let allocation = AllocationNumber(3);
    /// assert_eq!(Event::Map { allocation }.allocation(), Some(allocation));
    /// assert_eq!(Event::Trim.allocation(), None);
    /// ```
    #[must_use]
    pub fn allocation(&self) -> Option<AllocationNumber> {
        match self {
            Self::Existing(existing) => Some(existing.allocation),
            Self::Allocate(allocate) => Some(allocate.allocation),
            Self::Free { allocation }
            | Self::Map { allocation }
            | Self::Unmap { allocation }
            | Self::Flush { allocation, .. }
            | Self::Invalidate { allocation, .. }
            | Self::CopyTo { allocation, .. }
            | Self::CopyFrom { allocation, .. }
            | Self::SetName { allocation, .. }
            | Self::SetUserData { allocation, .. }
            | Self::SetPriority { allocation, .. }
            | Self::Move { allocation, .. } => Some(*allocation),
            _ => None,
        }
    }
}
