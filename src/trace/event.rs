//! The contents of a trace.

use std::time::Duration;

use super::asked::{Allocate, AllocateFailed};
use super::settings::{BeginDefragmentation, Existing, MoveOutcome, PoolSettings, ScopeSettings};
use crate::operations::operations;
use crate::record::encode::Operation;
use crate::record::header::Header;

/// An allocation of a trace. Allocations are numbered from 0 on, without gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AllocationNumber(pub u32);

/// A pool of a trace, numbered as allocations are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolNumber(pub u32);

/// A scope of a trace, numbered as allocations are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeNumber(pub u32);

/// A defragmentation of a trace, numbered as allocations are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DefragmentationNumber(pub u32);

/// A whole recording.
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
    /// The program, the device and the allocator.
    pub header: Header,
    /// The calls, in an order in which they may have happened: an allocation is recorded after it is made, and its end
    /// before it ends.
    pub records: Vec<Record>,
    /// How many calls were for allocations, pools and scopes that the trace does not know: because they were being made
    /// when the recording began, or because the C interface was used on the destination of a move. These calls are not
    /// among the records.
    pub strangers: u64,
}

/// One call.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The time since the recording began.
    pub time: Duration,
    /// The thread. Threads are numbered from 0 on, in the order of their first records.
    pub thread: u32,
    /// The call.
    pub event: Event,
}

impl Default for Record {
    fn default() -> Self {
        Self { time: Duration::ZERO, thread: 0, event: Event::Trim }
    }
}

/// The type that a field has in an event.
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

/// The allocation that a field names, if it names one.
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
    ) => {
        /// A call. Allocations that failed are recorded, too; of other calls only those that succeeded.
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
        }

        impl Event {
            /// The [names](Self::name) of all calls that this version of the library records.
            pub const NAMES: &'static [&'static str] = &[$($other_word,)* $($word),*];

            pub(super) fn operation(&self) -> Operation {
                match self {
                    $(Self::$other { .. } => Operation::$other,)*
                    $(Self::$name { .. } => Operation::$name,)*
                }
            }

            /// The allocation that a field of a call names.
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

impl Event {
    /// The allocation that a call is for.
    #[must_use]
    pub fn allocation(&self) -> Option<AllocationNumber> {
        match self {
            Self::Existing(existing) => Some(existing.allocation),
            Self::Allocate(allocate) => Some(allocate.allocation),
            Self::Move { allocation, .. } => Some(*allocation),
            _ => self.named(),
        }
    }

    /// The name of the call, in words.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.operation().word()
    }
}
