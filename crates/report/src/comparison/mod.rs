//! The comparison of two snapshots.

mod matching;
mod sums;

pub use matching::Matching;
pub use sums::{Change, NameChange, VectorChange};

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::snapshot::{Located, Snapshot};

/// The difference of two [`Snapshot`]s: new, gone and kept allocations, and the changes of the sums.
/// Snapshots from the same run match by [id](super::Entry::id); others match by place, size, kind and name.
/// [`Self::matching`] records which. By id, a moved allocation counts as gone and new, because defragmentation changes
/// its id. By place, an allocation that replaces an equal one at the same place counts as kept.
///
/// ```
/// use sublet_report::{Comparison, Matching, Snapshot};
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let (menu, font) = (allocate(&allocator, "menu", 1024), allocate(&allocator, "font", 1024));
/// let before = Snapshot::of(&allocator);
/// unsafe { allocator.free_memory(menu) }?;
/// let (level, tree) = (allocate(&allocator, "level", 1024), allocate(&allocator, "tree", 1024));
/// let now = Snapshot::of(&allocator);
///
/// let comparison = Comparison::new(&before, &now);
/// assert_eq!(comparison.matching, Matching::Ids);
/// assert_eq!((comparison.new.len(), comparison.gone.len(), comparison.kept.len()), (2, 1, 1));
/// assert_eq!(comparison.gone[0].entry.name.as_deref(), Some("menu"));
/// assert_eq!(comparison.total.growth(), 1024);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Comparison<'a> {
    /// The method by which allocations were matched.
    pub matching: Matching,
    /// Allocations only in the second snapshot, in its order.
    pub new: Vec<Located<'a>>,
    /// Allocations only in the first snapshot, in its order.
    pub gone: Vec<Located<'a>>,
    /// Allocations in both, before and now, in the order of the second.
    pub kept: Vec<(Located<'a>, Located<'a>)>,
    /// Vectors and pools: those of the second snapshot in its order, then those that are gone.
    pub vectors: Vec<VectorChange>,
    /// By heap, including heaps of only one snapshot.
    pub heaps: Vec<Change>,
    /// By name, the largest change first, including names without a change. Allocations without a name are one entry.
    pub names: Vec<NameChange>,
    /// The sum over all heaps.
    pub total: Change,
}

impl<'a> Comparison<'a> {
    /// Compares `now` with `before`.
    ///
    /// # Complexity
    /// O(n log n) for n allocations.
    #[must_use]
    pub fn new(before: &'a Snapshot, now: &'a Snapshot) -> Self {
        let was: Vec<Located<'a>> = before.allocations().collect();
        let is: Vec<Located<'a>> = now.allocations().collect();
        let is_one_run = before.run.is_some() && before.run == now.run;
        let (matching, pairs) = matching::pairs(is_one_run, &was, &is);
        let mut stayed = vec![false; was.len()];
        let (mut new, mut kept) = (Vec::new(), Vec::new());
        for (found, partner) in is.iter().zip(pairs) {
            match partner {
                Some(at) => {
                    stayed[at] = true;
                    kept.push((was[at], *found));
                }
                None => new.push(*found),
            }
        }
        let gone = was.iter().zip(&stayed).filter(|(_, stayed)| !**stayed).map(|(found, _)| *found).collect();
        let (sums_before, sums_now) = (before.statistics(), now.statistics());
        Self {
            matching,
            new,
            gone,
            kept,
            vectors: sums::vectors(before, now),
            heaps: sums::heaps(&sums_before.memory_heaps, &sums_now.memory_heaps),
            names: sums::names(&was, &is),
            total: Change { before: sums_before.total.statistics, now: sums_now.total.statistics },
        }
    }
}

impl Serialize for Comparison<'_> {
    /// Writes all fields. Of `kept`, writes only the count and the bytes.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct KeptSums {
            count: usize,
            bytes: u64,
        }
        let bytes = self.kept.iter().map(|(_, now)| now.size).sum();
        let mut to = to.serialize_struct("Comparison", 8)?;
        to.serialize_field("matching", &self.matching)?;
        to.serialize_field("total", &self.total)?;
        to.serialize_field("heaps", &self.heaps)?;
        to.serialize_field("vectors", &self.vectors)?;
        to.serialize_field("names", &self.names)?;
        to.serialize_field("new", &self.new)?;
        to.serialize_field("gone", &self.gone)?;
        to.serialize_field("kept", &KeptSums { count: self.kept.len(), bytes })?;
        to.end()
    }
}
