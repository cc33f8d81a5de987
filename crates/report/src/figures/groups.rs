//! Allocations that have something in common, and those that may have been forgotten.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use serde::Serialize;

use crate::comparison::Comparison;
use crate::snapshot::{Entry, Located, Snapshot};
use crate::words::file_and_line;
use sublet::Leak;

/// Allocations that have a name, a caller or a kind in common. Lists of groups have the one with the most bytes first.
///
/// ```
/// # use sublet::*; use sublet_report::{{Group, Snapshot}}; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// # let requirements = vk::MemoryRequirements { size: 1024, alignment: 4, memory_type_bits: !0 };
/// # let mut held = Vec::new();
/// for name in ["mesh", "texture", "mesh"] {
///     let info = AllocationCreateInfo { name: Some(name), ..Default::default() };
///     held.push(allocator.allocate_memory(&requirements, &info)?);
/// }
/// let snapshot = Snapshot::of(&allocator);
/// let groups = Group::by_name(snapshot.allocations());
/// assert_eq!((groups[0].label.as_deref(), groups[0].count, groups[0].bytes), (Some("mesh"), 2, 2048));
/// # for allocation in held { unsafe { allocator.free_memory(allocation) }?; }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// What they have in common; `None` for those that have none of it.
    pub label: Option<Box<str>>,
    /// How many they are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
}

impl Group {
    /// By name.
    ///
    /// # Complexity
    /// O(n log n) for n allocations, as of all these.
    ///
    /// ```
    /// # use sublet::*; use sublet_report::{{Group, Snapshot}};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// assert!(Group::by_name(Snapshot::of(&allocator).allocations()).is_empty());
    /// # Ok::<(), CreateAllocatorError>(())
    /// ```
    #[must_use]
    pub fn by_name<'a>(allocations: impl IntoIterator<Item = Located<'a>>) -> Vec<Self> {
        group(allocations.into_iter().map(|found| (found.entry.name.as_deref(), found.size)))
    }

    /// By the place in the code that allocated, with [`Tracking::CALLER`](sublet::Tracking::CALLER).
    ///
    /// ```
    /// # use sublet::*; use sublet_report::{{Group, Snapshot}};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// for group in Group::by_caller(Snapshot::of(&allocator).allocations()) {
    ///     println!("{}: {} bytes", group.label.as_deref().unwrap_or("(unknown)"), group.bytes);
    /// }
    /// # Ok::<(), CreateAllocatorError>(())
    /// ```
    #[must_use]
    pub fn by_caller<'a>(allocations: impl IntoIterator<Item = Located<'a>>) -> Vec<Self> {
        group(allocations.into_iter().map(|found| (found.entry.caller.as_deref(), found.size)))
    }

    /// By [kind](sublet::ResourceKind).
    ///
    /// ```
    /// # use sublet::*; use sublet_report::{{Group, Snapshot}};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let snapshot = Snapshot::of(&allocator);
    /// let images = Group::by_kind(snapshot.allocations()).into_iter().find(|it| it.label.as_deref() == Some("IMAGE_OPTIMAL"));
    /// assert!(images.is_none());
    /// # Ok::<(), CreateAllocatorError>(())
    /// ```
    #[must_use]
    pub fn by_kind<'a>(allocations: impl IntoIterator<Item = Located<'a>>) -> Vec<Self> {
        group(allocations.into_iter().map(|found| (Some(found.entry.kind.text()), found.size)))
    }

    /// Leaks, as [`Allocator::destroy`](sublet::Allocator::destroy) and
    /// [`Allocator::destroy_pool`](sublet::Allocator::destroy_pool) report them, by name.
    ///
    /// ```
    /// # use sublet::*; use sublet_report::Group; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let requirements = vk::MemoryRequirements { size: 1024, alignment: 4, memory_type_bits: !0 };
    /// let info = AllocationCreateInfo { name: Some("forgotten"), ..Default::default() };
    /// let _lost = allocator.allocate_memory(&requirements, &info)?;
    /// let groups = Group::leaks_by_name(&allocator.destroy());
    /// assert_eq!((groups[0].label.as_deref(), groups[0].bytes), (Some("forgotten"), 1024));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn leaks_by_name(leaks: &[Leak]) -> Vec<Self> {
        group(leaks.iter().map(|leak| (leak.name.as_deref(), leak.size)))
    }

    /// Leaks by the place in the code that allocated, with [`Tracking::CALLER`](sublet::Tracking::CALLER).
    ///
    /// ```
    /// assert!(sublet_report::Group::leaks_by_caller(&[]).is_empty());
    /// ```
    #[must_use]
    pub fn leaks_by_caller(leaks: &[Leak]) -> Vec<Self> {
        let callers: Vec<Option<String>> = leaks.iter().map(|leak| leak.caller.map(file_and_line)).collect();
        group(leaks.iter().zip(&callers).map(|(leak, caller)| (caller.as_deref(), leak.size)))
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
    // A stable sort: groups of the same size stay in the order of their labels.
    groups.sort_by_key(|group| Reverse(group.bytes));
    groups
}

/// What was allocated after the first snapshot, was there in every later one, and still is in the last: the longer the
/// row, the more likely a leak. Found as [`Comparison`] finds what is new.
///
/// [`Group::by_name`] and [`Group::by_caller`] make a list for people of it. Of fewer than two snapshots nothing is
/// suspected.
///
/// # Complexity
/// That of one comparison for each pair of neighbours.
///
/// ```
/// # use sublet::*; use sublet_report::{{Snapshot, suspected_leaks}}; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// # let requirements = vk::MemoryRequirements { size: 1024, alignment: 4, memory_type_bits: !0 };
/// # let allocate = |name| allocator.allocate_memory(&requirements, &AllocationCreateInfo { name: Some(name), ..Default::default() });
/// let mut levels = Vec::new();
/// let mut held = Vec::new();
/// for _ in 0..3 {
///     let level = allocate("level")?;
///     held.push(allocate("forgotten")?);
///     levels.push(Snapshot::of(&allocator));
///     unsafe { allocator.free_memory(level) }?;
/// }
/// let levels: Vec<&Snapshot> = levels.iter().collect();
/// let names: Vec<_> = suspected_leaks(&levels).iter().map(|found| found.entry.name.clone()).collect();
/// assert_eq!(names, [Some("forgotten".into())], "that of the second level, which outlived it");
/// # for allocation in held { unsafe { allocator.free_memory(allocation) }?; }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn suspected_leaks<'a>(snapshots: &[&'a Snapshot]) -> Vec<Located<'a>> {
    let [first, second, later @ ..] = snapshots else { return Vec::new() };
    let mut suspects = Comparison::new(first, second).new;
    let mut last = second;
    for next in later {
        let comparison = Comparison::new(last, next);
        // An entry of a snapshot is told by its address: there may be others that are equal.
        let known: BTreeSet<*const Entry> = suspects.iter().map(|found| ptr::from_ref(found.entry)).collect();
        let kept = comparison.kept.iter().filter(|(before, _)| known.contains(&ptr::from_ref(before.entry)));
        suspects = kept.map(|&(_, now)| now).collect();
        last = next;
    }
    suspects
}
