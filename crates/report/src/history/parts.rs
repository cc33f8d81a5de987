//! The parts of a history.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use sublet::ResourceKind;
use sublet::trace::{MemoryNumber, ResourceNumber};

/// The `to` of parts that are live at the end of the recording.
pub(super) const NEVER: u32 = u32::MAX;

/// A point in time at which something changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct HistoryMoment {
    /// The number of calls up to and including it.
    pub(super) call: u64,
    /// Nanoseconds since the start of the recording.
    pub(super) time: u64,
}

/// One `VkDeviceMemory`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeldMemory {
    /// Index in the list of vectors.
    pub(super) vector: u32,
    /// Its number in the vector, or in a foreign recording.
    pub(super) number: u32,
    /// Index of its name in the texts, from 1; 0 without a name.
    pub(super) name: u32,
    pub(super) size: u64,
    pub(super) dedicated: bool,
    /// The moment from which it exists, and the first moment at which it does not.
    pub(super) from: u32,
    pub(super) to: u32,
}

/// An allocation at one place and with one name. A moved or renamed allocation has several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HistoryPlacement {
    /// The number of the allocation in the recording, or the [`ForeignId`] of a resource.
    pub(super) number: u64,
    /// Index in the list of memories.
    pub(super) memory: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) kind: ResourceKind,
    pub(super) usage: u64,
    /// Index of its name in the texts, from 1; 0 without a name.
    pub(super) name: u32,
    /// The same for the properties of an image.
    pub(super) note: u32,
    /// True for the first one of its allocation.
    pub(super) is_first: bool,
    /// The moment from which it exists, and the first moment at which it does not.
    pub(super) from: u32,
    pub(super) to: u32,
}

/// A sum of bytes of a heap, from a moment on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeapBytes {
    pub(super) moment: u32,
    pub(super) heap: u32,
    pub(super) bytes: u64,
}

/// The number of a resource, a plane, or all of a memory of a foreign program, in one number. The lowest four bits are
/// 0 for a resource, 1 and more for its planes, and 15 for a memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ForeignId(pub(super) u64);

impl ForeignId {
    pub(super) fn of(resource: ResourceNumber, plane: Option<u32>) -> Self {
        let plane = plane.map_or(0, |plane| u64::from(plane.min(13)) + 1);
        Self(resource.0.saturating_mul(16).saturating_add(plane))
    }

    pub(super) fn whole(memory: MemoryNumber) -> Self {
        Self(memory.0.saturating_mul(16).saturating_add(15))
    }

    /// Returns the range of a resource and its planes.
    pub(super) fn all_of(resource: ResourceNumber) -> RangeInclusive<Self> {
        Self::of(resource, None)..=Self::of(resource, Some(u32::MAX))
    }
}

/// Texts, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    all: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Texts {
    /// Returns the number of a text, from 1; 0 for no text.
    pub(super) fn number(&mut self, text: Option<&str>) -> u32 {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return 0 };
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.all.push(text.into());
        let number = u32::try_from(self.all.len()).unwrap_or(0);
        self.numbers.insert(text.into(), number);
        number
    }

    pub(super) fn all(&self) -> &[Box<str>] {
        &self.all
    }
}
