//! Groups of allocations, and suspected leaks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use serde::Serialize;

use crate::comparison::Comparison;
use crate::snapshot::{Entry, Located, Snapshot};

/// Allocations with the same name, caller or kind. Lists of groups begin with the one that has the most bytes.
///
/// ```
/// use sublet_report::{Group, Snapshot};
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let held = ["mesh", "texture", "mesh"].map(|name| allocate(&allocator, name, 1024));
/// let snapshot = Snapshot::of(&allocator);
/// let groups = Group::by_name(snapshot.allocations());
/// assert_eq!((groups[0].label.as_deref(), groups[0].count, groups[0].bytes), (Some("mesh"), 2, 2048));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// The name, caller or kind; `None` for the allocations without one.
    pub label: Option<Box<str>>,
    /// Number of allocations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
}

impl Group {
    /// Groups allocations by name.
    ///
    /// # Complexity
    /// O(n log n) for n allocations, as for the other groupings.
    #[must_use]
    pub fn by_name<'a>(allocations: impl IntoIterator<Item = Located<'a>>) -> Vec<Self> {
        group(allocations.into_iter().map(|found| (found.entry.name.as_deref(), found.size)))
    }

    /// Groups allocations by caller (`file:line`), which [`Tracking::CALLER`](sublet::Tracking::CALLER) records.
    #[must_use]
    pub fn by_caller<'a>(allocations: impl IntoIterator<Item = Located<'a>>) -> Vec<Self> {
        group(allocations.into_iter().map(|found| (found.entry.caller.as_deref(), found.size)))
    }

    /// Groups allocations by [kind](sublet::ResourceKind).
    #[must_use]
    pub fn by_kind<'a>(allocations: impl IntoIterator<Item = Located<'a>>) -> Vec<Self> {
        group(allocations.into_iter().map(|found| (Some(found.entry.kind.text()), found.size)))
    }
}

fn group<'a>(allocations: impl Iterator<Item = (Option<&'a str>, u64)>) -> Vec<Group> {
    let mut groups = BTreeMap::<Option<&str>, Group>::new();
    for (label, size) in allocations {
        let group = groups.entry(label).or_default();
        group.count += 1;
        group.bytes = group.bytes.saturating_add(size);
        group.largest = group.largest.max(size);
    }
    let labelled = groups.into_iter().map(|(label, group)| Group { label: label.map(Into::into), ..group });
    let mut groups: Vec<Group> = labelled.collect();
    // The sort is stable: groups of equal size stay in the order of their labels.
    groups.sort_by_key(|group| Reverse(group.bytes));
    groups
}

/// Returns allocations that are new in the second snapshot and still live in all later ones. More snapshots make a leak
/// more likely. [`Comparison`] describes how allocations are matched.
///
/// [`Group::by_name`] and [`Group::by_caller`] summarise the result. With fewer than two snapshots the result is empty.
///
/// # Complexity
/// One comparison for each pair of neighbours.
///
/// ```
/// use sublet_report::{Snapshot, suspected_leaks};
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let mut snapshots = Vec::new();
/// for _ in 0..3 {
///     let level = allocate(&allocator, "level", 1024);
///     let _lost = allocate(&allocator, "forgotten", 1024);
///     snapshots.push(Snapshot::of(&allocator));
///     unsafe { allocator.free_memory(level) }?;
/// }
/// let snapshots: Vec<&Snapshot> = snapshots.iter().collect();
/// let names: Vec<_> = suspected_leaks(&snapshots).iter().map(|found| found.entry.name.clone()).collect();
/// assert_eq!(names, [Some("forgotten".into())], "that of the second level, which outlived it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn suspected_leaks<'a>(snapshots: &[&'a Snapshot]) -> Vec<Located<'a>> {
    let [first, second, later @ ..] = snapshots else { return Vec::new() };
    let mut suspects = Comparison::new(first, second).new;
    let mut last = second;
    for next in later {
        let comparison = Comparison::new(last, next);
        // By address, because entries may be equal.
        let known: BTreeSet<*const Entry> = suspects.iter().map(|found| ptr::from_ref(found.entry)).collect();
        let kept = comparison.kept.iter().filter(|(before, _)| known.contains(&ptr::from_ref(before.entry)));
        suspects = kept.map(|&(_, now)| now).collect();
        last = next;
    }
    suspects
}
