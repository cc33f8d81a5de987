//! Errors of uses, submissions and state changes.

use std::error::Error;
use std::fmt;

use super::global::Queue;
use super::id::ResourceId;

/// An error of declaring a use. Earlier uses stay recorded; reset or drop the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UseError {
    /// The range is empty or outside of the resource.
    OutOfRange {
        /// The resource.
        resource: ResourceId,
    },
    /// The use of an image has the layout `UNDEFINED`.
    NoLayout {
        /// The resource.
        resource: ResourceId,
    },
    /// One command uses a range twice, and one of the uses writes or needs another layout. Declare both as one use, `a
    /// | b`, or call [`flush`](super::Recorder::flush) between two commands.
    Twice {
        /// The resource.
        resource: ResourceId,
    },
    /// A split dependency of the range is not joined yet. Call [`join`](super::Recorder::join) first.
    Split {
        /// The resource.
        resource: ResourceId,
    },
    /// The list has used another resource in the same slot: one of the two is destroyed.
    Destroyed {
        /// The resource.
        resource: ResourceId,
    },
    /// The list has not used the image before, so its earlier state is not known.
    NotUsed {
        /// The resource.
        resource: ResourceId,
    },
    /// The resource belongs to another [`Global`](super::Global) than the queue of the list.
    OtherGlobal {
        /// The resource.
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
                    "one command uses {resource:?} twice with conflicting accesses or layouts: declare one use"
                )
            }
            Self::Split { resource } => write!(f, "a split dependency of {resource:?} is not joined"),
            Self::Destroyed { resource } => {
                write!(f, "{resource:?}, or its successor in this list, is destroyed")
            }
            Self::NotUsed { resource } => {
                write!(f, "the list has not used {resource:?} yet: declare that use first")
            }
            Self::OtherGlobal { resource } => {
                write!(f, "{resource:?} belongs to another `Global` than the queue of the list")
            }
        }
    }
}

impl Error for UseError {}

/// An error of [`Global::resolve`](super::Global::resolve). The states are unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// A list uses a resource that was removed.
    Destroyed {
        /// The index of the list.
        list: usize,
        /// The resource.
        resource: ResourceId,
    },
    /// A list uses a frozen resource in a way other than it was frozen for, or a resource that shares its memory.
    Frozen {
        /// The index of the list.
        list: usize,
        /// The frozen resource.
        resource: ResourceId,
    },
    /// A list contains a split dependency without its join.
    Split {
        /// The index of the list.
        list: usize,
        /// The resource.
        resource: ResourceId,
    },
    /// A list was recorded for another queue.
    WrongQueue {
        /// The index of the list.
        list: usize,
    },
    /// The queue belongs to another [`Global`](super::Global).
    OtherQueue {
        /// The queue.
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
                "list {list} uses frozen {resource:?} in another way, or a resource that shares its memory: thaw it first"
            ),
            Self::Split { list, resource } => {
                write!(f, "list {list} has a split dependency of {resource:?} that is not joined")
            }
            Self::WrongQueue { list } => write!(f, "list {list} was recorded for another queue"),
            Self::OtherQueue { queue } => write!(f, "{queue:?} belongs to another `Global`"),
        }
    }
}

impl Error for ResolveError {}

/// An error of removing a resource or changing its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// The resource was removed, or a compactor has replaced it.
    Destroyed {
        /// The resource.
        resource: ResourceId,
    },
    /// The resource belongs to another [`Global`](super::Global).
    OtherGlobal {
        /// The resource.
        resource: ResourceId,
    },
    /// The queue belongs to another [`Global`](super::Global).
    OtherQueue {
        /// The queue.
        queue: Queue,
    },
    /// The resource cannot be frozen: a part is in another layout, or its last write is not visible to the use.
    NotVisible {
        /// The resource.
        resource: ResourceId,
    },
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destroyed { resource } => write!(f, "{resource:?} is destroyed"),
            Self::OtherGlobal { resource } => write!(f, "{resource:?} belongs to another `Global`"),
            Self::OtherQueue { queue } => write!(f, "{queue:?} belongs to another `Global`"),
            Self::NotVisible { resource } => write!(
                f,
                "{resource:?} cannot be frozen: first submit a list that declares the frozen use for the whole resource"
            ),
        }
    }
}

impl Error for StateError {}
