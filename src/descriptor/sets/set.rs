//! What the program holds: one set, by value, and its name.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;

use crate::descriptor::DescriptorCounts;

/// A set of [`PersistentSets`](super::PersistentSets). Neither `Copy` nor `Clone`: what was freed or
/// retired cannot be freed again.
///
/// It does not free itself when it is dropped, because only the program knows when the device is done with it.
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
/// # use sublet::descriptor::*;
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
    /// What Vulkan calls it. Do not keep it longer than this value; keep [`Self::id`] for that.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::DescriptorSet {
        self.handle
    }

    /// A name that may be copied and kept: [`PersistentSets::set`](super::PersistentSets::set) finds the set
    /// by it as long as the set is neither freed nor retired.
    #[inline]
    #[must_use]
    pub fn id(&self) -> DescriptorSetId {
        self.id
    }
}

/// Names a [`DescriptorSet`]: see [`DescriptorSet::id`]. No other set of the program has the same name, before or after
/// it.
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

/// A [`DescriptorSetId`] names no set any more: the set was freed or retired, or is another allocator's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StaleDescriptorSet {
    /// The name.
    pub id: DescriptorSetId,
}

impl fmt::Display for StaleDescriptorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DescriptorSetId { allocator, bucket, slot, generation } = self.id;
        write!(
            f,
            "descriptor set {slot} of bucket {bucket}, generation {generation}, of allocator {allocator} was freed or retired, \
             or is of another allocator"
        )
    }
}

impl Error for StaleDescriptorSet {}

/// A [`DescriptorSet`] was given to an allocator that it is not of. Nothing was changed, and here it is back.
#[derive(PartialEq, Eq, Debug)]
pub struct ForeignDescriptorSet {
    /// The set.
    pub set: DescriptorSet,
}

impl fmt::Display for ForeignDescriptorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DescriptorSetId { allocator, bucket, slot, .. } = self.set.id;
        write!(
            f,
            "descriptor set {slot} of bucket {bucket} is of allocator {allocator}, and was given to another one"
        )
    }
}

impl Error for ForeignDescriptorSet {}

/// Sets of one layout that were neither freed nor retired when their allocator was destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DescriptorSetLeak {
    /// The layout. It may be destroyed by now: for naming only.
    pub layout: vk::DescriptorSetLayout,
    /// What each of the sets held.
    pub counts: DescriptorCounts,
    /// How many sets.
    pub sets: u32,
}

impl fmt::Display for DescriptorSetLeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sets of the layout {:?} ({})", self.sets, self.layout, self.counts)
    }
}
