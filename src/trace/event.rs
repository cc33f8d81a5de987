//! The contents of a trace.

use std::time::Duration;

use ash::vk;

use super::asked::{Allocate, AllocateFailed};
use super::foreign::{
    DriverMemoryReport, ForeignImage, ForeignMemoryFlags, ForeignObject, ForeignRequirements, MemoryNumber,
    ResourceNumber, SparseBinding,
};
use super::settings::{BeginDefragmentation, Existing, MoveOutcome, PoolSettings, ScopeSettings};
use crate::operations::operations;
use crate::record::encode::Operation;
use crate::record::header::Header;

/// The number of an allocation in a trace, counted from 0 without gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AllocationNumber(pub u32);

/// The number of a pool in a trace, counted like allocations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolNumber(pub u32);

/// The number of a scope in a trace, counted like allocations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeNumber(pub u32);

/// The number of a defragmentation in a trace, counted like allocations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DefragmentationNumber(pub u32);

/// A complete recording.
///
/// ```
/// use sublet::trace::{Event, Trace, TraceBuffer};
/// # let (gpu, allocator) = sublet::doc_example();
/// let file = TraceBuffer::new();
/// allocator.start_recording(file.clone())?;
/// allocator.set_current_frame_index(7);
/// allocator.stop_recording()?;
/// let trace = Trace::read(&file.bytes())?;
/// assert_eq!(trace.records[0].event, Event::Frame { index: 7 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// The program, the device and the allocator.
    pub header: Header,
    /// The calls, in an order in which one thread could make them: an allocation is recorded after it was made, and a
    /// free before it is made.
    pub records: Vec<Record>,
    /// The number of calls for unknown allocations, pools and scopes. Those were being created when the recording
    /// began, or the C interface used the destination of a move. These calls are not in `records`.
    pub unknown_events: u64,
}

/// One call.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The time since the start of the recording.
    pub time: Duration,
    /// The thread number, counted from 0 in the order of first records.
    pub thread: u32,
    /// The call.
    pub event: Event,
}

impl Default for Record {
    fn default() -> Self {
        Self { time: Duration::ZERO, thread: 0, event: Event::Trim }
    }
}

/// The type of a field in an event.
macro_rules! field {
    (allocation) => { AllocationNumber };
    (freed) => { AllocationNumber };
    (pool) => { PoolNumber };
    (destroyed_pool) => { PoolNumber };
    (freed_scope) => { ScopeNumber };
    (defragmentation) => { DefragmentationNumber };
    (ended_defragmentation) => { DefragmentationNumber };
    (small) => { u32 };
    (long) => { u64 };
    (size) => { u64 };
    (float) => { f32 };
    (text) => { Option<Box<str>> };
}

/// The allocation that a field refers to, if any.
macro_rules! named {
    (allocation $field:ident) => {
        Some(*$field)
    };
    (freed $field:ident) => {
        Some(*$field)
    };
    ($kind:ident $field:ident) => {{
        let _ = $field;
        None
    }};
}

macro_rules! events {
    (
        { $($(#[$other_doc:meta])* $other:ident $other_code:literal $other_word:literal $shape:tt;)* }
        { $(
            $(#[$doc:meta])* $name:ident $code:literal $word:literal
            $({ $($(#[$field_doc:meta])* $field:ident: $kind:ident,)* })?;
        )* }
        { $($(#[$foreign_doc:meta])* $foreign:ident $foreign_code:literal $foreign_word:literal $({ $($foreign_fields:tt)* })?;)* }
    ) => {
        /// A call. Allocations are recorded even if they fail, other calls only if they succeed.
        ///
        /// ```
        /// use sublet::trace::{AllocationNumber, Event};
        /// let event = Event::Free { allocation: AllocationNumber(3) };
        /// assert_eq!(event.allocation(), Some(AllocationNumber(3)));
        /// ```
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$other_doc])* $other $shape,)*
            $($(#[$doc])* $name $({ $($(#[$field_doc])* $field: field!($kind),)* })?,)*
            $($(#[$foreign_doc])* $foreign $({ $($foreign_fields)* })?,)*
        }

        impl Event {
            /// The [names](Self::name) of all calls that this version of the library records. Those of foreign programs
            /// are not among them.
            pub const NAMES: &'static [&'static str] = &[$($other_word,)* $($word),*];

            pub(super) fn operation(&self) -> Operation {
                match self {
                    $(Self::$other { .. } => Operation::$other,)*
                    $(Self::$name { .. } => Operation::$name,)*
                    $(Self::$foreign { .. } => Operation::$foreign,)*
                }
            }

            /// Returns true for the calls of a foreign program: one that allocates its memory without this library.
            #[must_use]
            pub fn is_foreign(&self) -> bool {
                matches!(self, $(Self::$foreign { .. })|*)
            }

            /// Returns the allocation that a field of the call refers to.
            fn named(&self) -> Option<AllocationNumber> {
                match self {
                    $(Self::$name $({ $($field),* })? => None $($(.or(named!($kind $field)))*)?,)*
                    _ => None,
                }
            }
        }
    };
}
operations!(events);

impl Trace {
    /// Returns true if a layer recorded a program that allocates its memory without this library. Such a trace has
    /// only events for which [`Event::is_foreign`] is true, and [`Self::resource_requests`] turns it into one that can
    /// be replayed.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        // The two kinds of events have files of different versions, so the first event decides.
        self.records.first().is_some_and(|record| record.event.is_foreign())
    }
}

impl Event {
    /// Returns the allocation of the call.
    #[must_use]
    pub fn allocation(&self) -> Option<AllocationNumber> {
        match self {
            Self::Existing(existing) => Some(existing.allocation),
            Self::Allocate(allocate) => Some(allocate.allocation),
            Self::Move { allocation, .. } => Some(*allocation),
            _ => self.named(),
        }
    }

    /// Returns the name of the call.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.operation().word()
    }
}
