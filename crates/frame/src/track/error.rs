//! What can be wrong with a use, a submission or a name.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use super::global::Queue;
use super::id::ResourceId;

/// Why a list cannot take a use. What it took before stays, and the list has to be reset or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UseError {
    /// The range is empty or outside of the resource.
    OutOfRange {
        /// What was to be used.
        resource: ResourceId,
    },
    /// An image was to be used in the layout `UNDEFINED`.
    NoLayout {
        /// What was to be used.
        resource: ResourceId,
    },
    /// One command uses a range twice, and one of the uses writes or needs another layout. Give both as one use,
    /// `a | b`; or call [`flush`](super::Recorder::flush) between two commands.
    Twice {
        /// What was to be used.
        resource: ResourceId,
    },
    /// The first half of a dependency is recorded for the range, and the second is not: call
    /// [`join`](super::Recorder::join) first.
    Split {
        /// What was to be used.
        resource: ResourceId,
    },
    /// The list has used another resource under the same slot: one of the two is destroyed.
    Destroyed {
        /// What was to be used.
        resource: ResourceId,
    },
    /// The list has not used the image before, so that it is not known what it was before it was left so.
    NotUsed {
        /// What was left.
        resource: ResourceId,
    },
    /// The resource is of another [`Global`](super::Global) than the queue that the list is for.
    OtherGlobal {
        /// What was to be used.
        resource: ResourceId,
    },
}

impl fmt::Display for UseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { resource } => write!(f, "the range is empty or outside of {resource:?}"),
            Self::NoLayout { resource } => write!(f, "the use of {resource:?} names no layout"),
            Self::Twice { resource } => {
                write!(
                    f,
                    "one command uses {resource:?} twice, in ways that exclude each other: declare one use"
                )
            }
            Self::Split { resource } => write!(f, "a dependency of {resource:?} is begun and not joined"),
            Self::Destroyed { resource } => {
                write!(f, "{resource:?}, or its successor in this list, is destroyed")
            }
            Self::NotUsed { resource } => {
                write!(f, "the list has not used {resource:?} before: declare that use first")
            }
            Self::OtherGlobal { resource } => {
                write!(f, "{resource:?} is of another `Global` than the list's queue")
            }
        }
    }
}

impl Error for UseError {}

/// Why lists cannot be submitted. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// A list uses a resource that has been removed.
    Destroyed {
        /// The index of the list.
        list: usize,
        /// What it uses.
        resource: ResourceId,
    },
    /// A list uses a frozen resource in another way, or something that shares its memory.
    Frozen {
        /// The index of the list.
        list: usize,
        /// What is frozen.
        resource: ResourceId,
    },
    /// A list has begun a dependency and not joined it.
    Split {
        /// The index of the list.
        list: usize,
        /// What it is about.
        resource: ResourceId,
    },
    /// A list was recorded for another queue.
    WrongQueue {
        /// The index of the list.
        list: usize,
    },
    /// The queue is of another [`Global`](super::Global).
    OtherQueue {
        /// What was named.
        queue: Queue,
    },
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destroyed { list, resource } => {
                write!(f, "list {list} uses {resource:?}, which is destroyed")
            }
            Self::Frozen { list, resource } => write!(
                f,
                "list {list} uses {resource:?}, which is frozen, in another way than it was frozen for, or memory of it"
            ),
            Self::Split { list, resource } => {
                write!(f, "list {list} has begun a dependency of {resource:?} and not joined it")
            }
            Self::WrongQueue { list } => write!(f, "list {list} was recorded for another queue"),
            Self::OtherQueue { queue } => write!(f, "{queue:?} is of another `Global`"),
        }
    }
}

impl Error for ResolveError {}

/// Why a resource cannot be removed, frozen, or told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// It has been removed before, or another resource has taken its place.
    Destroyed {
        /// What was named.
        resource: ResourceId,
    },
    /// It is of another [`Global`](super::Global).
    OtherGlobal {
        /// What was named.
        resource: ResourceId,
    },
    /// The queue is of another [`Global`](super::Global).
    OtherQueue {
        /// What was named.
        queue: Queue,
    },
    /// It cannot be frozen: some of it is in another layout, or its last write is not visible to the use.
    NotVisible {
        /// What was named.
        resource: ResourceId,
    },
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destroyed { resource } => write!(f, "{resource:?} is destroyed"),
            Self::OtherGlobal { resource } => write!(f, "{resource:?} is of another `Global`"),
            Self::OtherQueue { queue } => write!(f, "{queue:?} is of another `Global`"),
            Self::NotVisible { resource } => write!(
                f,
                "{resource:?} cannot be frozen: submit a list that uses all of it as it will be used from then on"
            ),
        }
    }
}

impl Error for StateError {}
