//! Changes of sums.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::snapshot::{Located, Snapshot, Vector};
use sublet::{DetailedStatistics, Statistics};

/// Sums before and now.
///
/// ```
/// use sublet::Statistics;
/// use sublet_report::Change;
///
/// let mut change = Change::default();
/// change.before.allocation_bytes = 300;
/// change.now = Statistics { block_count: 1, block_bytes: 1000, allocation_count: 1, allocation_bytes: 100 };
/// assert_eq!((change.growth(), change.block_growth()), (-200, 1000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Change {
    /// The earlier sums.
    pub before: Statistics,
    /// The later sums.
    pub now: Statistics,
}

impl Change {
    /// Returns the bytes by which the allocations grew, negative if they shrank. Saturates.
    #[must_use]
    pub fn growth(&self) -> i64 {
        difference(self.before.allocation_bytes, self.now.allocation_bytes)
    }

    /// Returns the bytes by which blocks and dedicated memory grew, negative if they shrank. Saturates.
    #[must_use]
    pub fn block_growth(&self) -> i64 {
        difference(self.before.block_bytes, self.now.block_bytes)
    }
}

fn difference(before: u64, now: u64) -> i64 {
    let size = i64::try_from(now.abs_diff(before)).unwrap_or(i64::MAX);
    if now < before { -size } else { size }
}

impl Serialize for Change {
    /// Adds `growth` and `block_growth` to the fields.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut to = to.serialize_struct("Change", 4)?;
        to.serialize_field("before", &SerializedSums(&self.before))?;
        to.serialize_field("now", &SerializedSums(&self.now))?;
        to.serialize_field("growth", &self.growth())?;
        to.serialize_field("block_growth", &self.block_growth())?;
        to.end()
    }
}

struct SerializedSums<'a>(&'a Statistics);

impl Serialize for SerializedSums<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Statistics { block_count, block_bytes, allocation_count, allocation_bytes } = self.0;
        let mut to = to.serialize_struct("Statistics", 4)?;
        to.serialize_field("block_count", block_count)?;
        to.serialize_field("block_bytes", block_bytes)?;
        to.serialize_field("allocation_count", allocation_count)?;
        to.serialize_field("allocation_bytes", allocation_bytes)?;
        to.end()
    }
}

/// The change of a vector or pool. Two snapshots share a pool if its number, memory type and name are equal.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct VectorChange {
    /// Index of the memory type.
    pub memory_type: u32,
    /// Index of its heap. If the snapshots differ, that of the second.
    pub heap: u32,
    /// The number of the pool; `None` for a default vector.
    pub pool: Option<u32>,
    /// The pool's name.
    pub name: Option<Box<str>>,
    /// True if the first snapshot has it.
    pub was_there: bool,
    /// True if the second snapshot has it.
    pub is_there: bool,
    /// Its sums.
    pub change: Change,
}

/// The change of the allocations with one name.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[non_exhaustive]
pub struct NameChange {
    /// The name; `None` for allocations without a name.
    pub name: Option<Box<str>>,
    /// Number of allocations before.
    pub count_before: u64,
    /// Number of allocations now.
    pub count_now: u64,
    /// Their bytes before.
    pub bytes_before: u64,
    /// Their bytes now.
    pub bytes_now: u64,
}

impl NameChange {
    /// Returns the bytes by which they grew, negative if they shrank. Saturates.
    #[must_use]
    pub fn growth(&self) -> i64 {
        difference(self.bytes_before, self.bytes_now)
    }
}

pub(super) fn vectors(before: &Snapshot, now: &Snapshot) -> Vec<VectorChange> {
    fn key(vector: &Vector) -> (Option<u32>, u32, Option<&str>) {
        (vector.pool, vector.memory_type, vector.name.as_deref())
    }
    let change = |vector: &Vector, before: Option<&Vector>, now: Option<&Vector>| {
        let sums = |vector: Option<&Vector>| vector.map(|it| it.statistics().statistics).unwrap_or_default();
        VectorChange {
            memory_type: vector.memory_type,
            heap: vector.heap,
            pool: vector.pool,
            name: vector.name.clone(),
            was_there: before.is_some(),
            is_there: now.is_some(),
            change: Change { before: sums(before), now: sums(now) },
        }
    };
    let were: BTreeMap<_, _> = before.vectors.iter().map(|vector| (key(vector), vector)).collect();
    let are: BTreeMap<_, _> = now.vectors.iter().map(|vector| (key(vector), vector)).collect();
    let still =
        now.vectors.iter().map(|vector| change(vector, were.get(&key(vector)).copied(), Some(vector)));
    let is_gone = |vector: &&Vector| !are.contains_key(&key(vector));
    let gone = before.vectors.iter().filter(is_gone).map(|vector| change(vector, Some(vector), None));
    still.chain(gone).collect()
}

pub(super) fn heaps(was: &[DetailedStatistics], is: &[DetailedStatistics]) -> Vec<Change> {
    let mut changes = vec![Change::default(); was.len().max(is.len())];
    for (change, sums) in changes.iter_mut().zip(was) {
        change.before = sums.statistics;
    }
    for (change, sums) in changes.iter_mut().zip(is) {
        change.now = sums.statistics;
    }
    changes
}

pub(super) fn names(was: &[Located<'_>], is: &[Located<'_>]) -> Vec<NameChange> {
    let mut names = BTreeMap::<Option<&str>, NameChange>::new();
    for found in was {
        let sums = names.entry(found.entry.name.as_deref()).or_default();
        sums.count_before += 1;
        sums.bytes_before = sums.bytes_before.saturating_add(found.size);
    }
    for found in is {
        let sums = names.entry(found.entry.name.as_deref()).or_default();
        sums.count_now += 1;
        sums.bytes_now = sums.bytes_now.saturating_add(found.size);
    }
    let named = names.into_iter().map(|(name, sums)| NameChange { name: name.map(Into::into), ..sums });
    let mut names: Vec<NameChange> = named.collect();
    names.sort_by_key(|sums| Reverse(sums.bytes_now.abs_diff(sums.bytes_before)));
    names
}
