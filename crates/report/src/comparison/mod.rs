//! Two snapshots beside one another.
#![forbid(unsafe_code)]

mod matching;
mod sums;

pub use matching::Matching;
pub use sums::{Change, NameChange, VectorChange};

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::snapshot::{Located, Snapshot};

/// What two [`Snapshot`]s have in common and what not: which allocations are new, gone or kept, and how the sums
/// changed.
///
/// Which allocation of the one is which of the other is told by their [ids](super::Entry::id), if both snapshots are of
/// the same run of a program; else by where they lie, their sizes, kinds and names: [`Self::matching`] says which. By
/// ids, what defragmentation moved is gone and new, because a move gives it another id; by places, what was freed and
/// allocated again in the same place is kept.
///
/// ```
/// # use sublet::*; use sublet_report::{{Comparison, Matching, Snapshot}}; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// # let requirements = vk::MemoryRequirements { size: 1024, alignment: 4, memory_type_bits: !0 };
/// # let allocate = |name| allocator.allocate_memory(&requirements, &AllocationCreateInfo { name: Some(name), ..Default::default() });
/// let (menu, font) = (allocate("menu")?, allocate("font")?);
/// let before = Snapshot::of(&allocator);
/// unsafe { allocator.free_memory(menu) }?;
/// let (level, tree) = (allocate("level")?, allocate("tree")?);
/// let now = Snapshot::of(&allocator);
///
/// let comparison = Comparison::new(&before, &now);
/// assert_eq!(comparison.matching, Matching::Ids);
/// assert_eq!((comparison.new.len(), comparison.gone.len(), comparison.kept.len()), (2, 1, 1));
/// assert_eq!(comparison.gone[0].entry.name.as_deref(), Some("menu"));
/// assert_eq!(comparison.total.growth(), 1024);
/// # for allocation in [font, level, tree] { unsafe { allocator.free_memory(allocation) }?; }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Comparison<'a> {
    /// How allocations were recognised.
    pub matching: Matching,
    /// What is in the second snapshot alone, in its order.
    pub new: Vec<Located<'a>>,
    /// What is in the first snapshot alone, in its order.
    pub gone: Vec<Located<'a>>,
    /// What is in both, as it was and as it is, in the order of the second.
    pub kept: Vec<(Located<'a>, Located<'a>)>,
    /// By vector and pool: those of the second snapshot in its order, then those that are gone.
    pub vectors: Vec<VectorChange>,
    /// By heap. Heaps that only one snapshot has are there as well.
    pub heaps: Vec<Change>,
    /// By name, what changed most first; allocations without a name are together. Names of which nothing changed are
    /// there too.
    pub names: Vec<NameChange>,
    /// In all.
    pub total: Change,
}

impl<'a> Comparison<'a> {
    /// What became of `before`.
    ///
    /// # Complexity
    /// O(n log n) for n allocations.
    ///
    /// ```
    /// # use sublet::*; use sublet_report::{{Comparison, Snapshot}};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let (before, now) = (Snapshot::of(&allocator), Snapshot::of(&allocator));
    /// let comparison = Comparison::new(&before, &now);
    /// assert!(comparison.new.is_empty() && comparison.gone.is_empty());
    /// # Ok::<(), CreateAllocatorError>(())
    /// ```
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
    /// What was kept is a number of allocations and of bytes; all else as it is.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Kept {
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
        to.serialize_field("kept", &Kept { count: self.kept.len(), bytes })?;
        to.end()
    }
}
