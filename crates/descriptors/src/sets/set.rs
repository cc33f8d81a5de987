//! A set that the program owns, and its id.

use std::fmt;

use ash::vk;

use crate::DescriptorCounts;

/// A set of [`PersistentSets`](super::PersistentSets). Neither `Copy` nor `Clone`, so that it cannot be freed or
/// retired twice.
///
/// Dropping it does not free the set, because only the program knows when the device is done with it.
///
/// ```
#[doc = example_setup!()]
/// // SAFETY: the layout is live.
/// let set = unsafe { sets.allocate(&layout) }?;
/// // Update it with vkUpdateDescriptorSets, bind it, submit; once the device is done with it:
/// // SAFETY: no submission uses the set.
/// unsafe { sets.free(set) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail
/// # use sublet_descriptors::*;
/// fn twice(sets: &PersistentSets, set: DescriptorSet) {
///     unsafe { sets.free(set) }.unwrap();
///     unsafe { sets.free(set) }.unwrap(); // moved already
/// }
/// ```
#[derive(PartialEq, Eq, Hash, Debug)]
#[must_use = "a set that is dropped stays allocated: give it to `free` or `retire`"]
#[doc(alias = "BindingSet")]
pub struct DescriptorSet {
    pub(super) handle: vk::DescriptorSet,
    pub(super) id: DescriptorSetId,
}

impl DescriptorSet {
    /// Returns the Vulkan handle. Do not keep the handle longer than this value; keep [`Self::id`] instead.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::DescriptorSet {
        self.handle
    }

    /// Returns an id that may be copied and stored. [`PersistentSets::set`](super::PersistentSets::set) returns the set
    /// for it, until the set is freed or retired.
    #[inline]
    #[must_use]
    pub fn id(&self) -> DescriptorSetId {
        self.id
    }
}

/// Identifies a [`DescriptorSet`]: see [`DescriptorSet::id`]. Ids are unique within the program and are never reused.
///
/// ```
#[doc = example_setup!()]
/// let set = unsafe { sets.allocate(&layout) }?;
/// let kept: DescriptorSetId = set.id();
/// // SAFETY: nothing was submitted with it.
/// unsafe { sets.free(set) }?;
/// let next = unsafe { sets.allocate(&layout) }?;
/// assert_ne!(kept, next.id(), "even if it is the same VkDescriptorSet");
/// # unsafe { sets.free(next) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DescriptorSetId {
    pub(super) allocator: u32,
    pub(super) bucket: u32,
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// The [`DescriptorSetId`] is stale: the set was freed or retired, or belongs to another allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StaleDescriptorSet {
    /// The stale id.
    pub id: DescriptorSetId,
}

sublet_engines::errors! { struct StaleDescriptorSet { id: DescriptorSetId { allocator, bucket, slot, generation } } =>
    "descriptor set {slot} of bucket {bucket}, generation {generation}, of allocator {allocator} was freed or \
     retired, or is of another allocator"
}

/// The [`DescriptorSet`] belongs to another allocator. Nothing was changed; the error returns the set.
#[derive(PartialEq, Eq, Debug)]
pub struct ForeignDescriptorSet {
    /// The set.
    pub set: DescriptorSet,
}

sublet_engines::errors! { struct ForeignDescriptorSet { set } =>
    "descriptor set {} of bucket {} is of allocator {}, and was given to another one"
    (set.id.slot, set.id.bucket, set.id.allocator)
}

/// Sets of one layout that were neither freed nor retired when their allocator was destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DescriptorSetLeak {
    /// The layout. It may be destroyed already; use it only for identification.
    pub layout: vk::DescriptorSetLayout,
    /// The counts of each set.
    pub counts: DescriptorCounts,
    /// The number of sets.
    pub sets: u32,
}

impl fmt::Display for DescriptorSetLeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sets of the layout {:?} ({})", self.sets, self.layout, self.counts)
    }
}
