//! What a trace tells.
#![forbid(unsafe_code)]

use std::time::Duration;

use super::asked::{Allocate, AllocateFailed};
use super::settings::{BeginDefragmentation, Existing, MoveOutcome, PoolSettings, ScopeSettings};
use crate::operations::operations;
use crate::record::encode::Operation;
use crate::record::header::Header;

/// An allocation of a trace: they are numbered from 0 on, without gaps.
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
    /// The calls, in an order in which they may have happened: an allocation comes after it was made, and the end of
    /// one before it ended.
    pub records: Vec<Record>,
    /// Calls for allocations, pools and scopes that the trace does not know: those that were on their way when the
    /// recording began, and what is done with the place that a move of the C interface goes to. They are not among the
    /// records.
    pub strangers: u64,
}

/// One call.
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

/// What an event has of a field.
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
            $($(#[$other_doc])* $other $shape,)*
            $($(#[$doc])* $name $({ $($(#[$field_doc])* $field: field!($kind),)* })?,)*
        }

        impl Event {
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

    /// What was called, in words.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.operation().word()
    }
}
