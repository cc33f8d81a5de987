//! A bucket has the pools of sets with the same counts, so that a freed set makes room for any other set of the bucket.
//! The registry finds the bucket of a shape.

use std::collections::HashMap;
use std::sync::OnceLock;

use ash::vk;

use super::error::AllocateDescriptorSetError;
use super::state::{BucketState, LayoutKey};
use crate::pool::DescriptorPool;
use crate::{DescriptorCounts, SetLayout};
use parking_lot::Mutex;
use sublet_engines::cast::index;

/// The common properties of all sets of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SetShape {
    /// Includes the variable count, so two sets of one layout are in the same bucket only if they have the same size.
    pub(super) counts: DescriptorCounts,
    /// True if a count is variable: drivers may lay out such sets differently.
    pub(super) variable: bool,
    /// The flags of the pools.
    pub(super) flags: vk::DescriptorPoolCreateFlags,
}

/// A validated request.
#[derive(Debug)]
pub(super) struct SetRequest<'a> {
    pub(super) layout: &'a SetLayout,
    pub(super) shape: SetShape,
    /// The variable count for the driver.
    pub(super) variable: Option<u32>,
}

impl<'a> SetRequest<'a> {
    /// `variable` is the caller's count. By default, a layout with a variable count gets its maximum.
    pub(super) fn new(
        layout: &'a SetLayout,
        variable: Option<u32>,
    ) -> Result<Self, AllocateDescriptorSetError> {
        use vk::{DescriptorPoolCreateFlags as PoolFlags, DescriptorSetLayoutCreateFlags as LayoutFlags};
        let flags = layout.flags();
        if layout.is_push_descriptor() || layout.is_descriptor_buffer() {
            return Err(AllocateDescriptorSetError::NotForSets { flags });
        }
        let most = layout.max_variable_count();
        match (variable, most) {
            (Some(asked), None) => return Err(AllocateDescriptorSetError::NoVariableBinding { asked }),
            (Some(asked), Some(most)) if asked > most => {
                return Err(AllocateDescriptorSetError::VariableCountTooHigh { asked, most });
            }
            _ => {}
        }
        let variable = variable.or(most);
        let mut pool_flags = PoolFlags::empty();
        if layout.is_update_after_bind() {
            pool_flags |= PoolFlags::UPDATE_AFTER_BIND;
        }
        if flags.contains(LayoutFlags::HOST_ONLY_POOL_EXT) {
            pool_flags |= PoolFlags::HOST_ONLY_EXT;
        }
        let counts = variable.map_or_else(|| layout.counts(), |count| layout.counts_with(count));
        Ok(Self {
            layout,
            shape: SetShape { counts, variable: variable.is_some(), flags: pool_flags },
            variable,
        })
    }

    pub(super) fn wanted(&self) -> LayoutKey {
        LayoutKey { layout: self.layout.id(), handle: self.layout.handle() }
    }
}

/// One bucket. Never moves. It is reused for another shape once it has no pools.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Vulkan requires external synchronisation of a pool (VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter, host
    /// synchronisation of `descriptorPool`), so its sets are allocated and freed under this lock. One lock covers all
    /// pools of a bucket, because choosing a pool needs the counts of all. The choice and the driver call together take
    /// less than 0.1 microseconds. No lock is taken under it, and events are emitted after it.
    pub(super) state: Mutex<BucketState<SetShape, DescriptorPool>>,
    /// Held while a pool is created, which takes a hundred times as long. Other threads continue with the existing
    /// pools; a thread that finds no set waits here, and then tries again. Taken before the registry and `state`; under
    /// the registry, it is only tried.
    pub(super) growing: Mutex<()>,
}

impl Bucket {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(BucketState::default()), growing: Mutex::new(()) }
    }
}

/// Buckets in the first segment of a table. Each further segment holds twice as many as the one before.
const FIRST_SEGMENT: u32 = 8;
/// 29 segments cover all indices of buckets, except the last few.
const SEGMENTS: usize = 29;

/// All buckets. A reference to a bucket needs no lock, because the table only grows and its elements never move.
#[derive(Debug, Default)]
pub(super) struct BucketTable([OnceLock<Box<[Bucket]>>; SEGMENTS]);

impl BucketTable {
    /// Returns the segment that contains `at`, and the index in it.
    #[inline]
    fn locate(at: u32) -> Option<(usize, usize)> {
        let from_first = at.checked_add(FIRST_SEGMENT)?;
        let segment = from_first.ilog2() - FIRST_SEGMENT.ilog2();
        Some((index(segment), index(from_first - (FIRST_SEGMENT << segment))))
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&Bucket> {
        let (segment, position) = Self::locate(at)?;
        self.0.get(segment)?.get()?.get(position)
    }

    /// Returns the bucket at `at`; `None` beyond the last segment. Segments are created in order, because the registry
    /// hands out indices in order.
    pub(super) fn get_or_make(&self, at: u32) -> Option<&Bucket> {
        let (segment, position) = Self::locate(at)?;
        let make = || (0..FIRST_SEGMENT << segment).map(|_| Bucket::new()).collect();
        self.0.get(segment)?.get_or_init(make).get(position)
    }

    /// Returns every existing bucket, in the order of indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Bucket> {
        self.0.iter().map_while(OnceLock::get).flatten()
    }
}

/// Maps shapes to buckets. Used only if the hint of a layout fails; never iterated.
#[derive(Debug, Default)]
pub(super) struct BucketRegistry {
    by_shape: HashMap<SetShape, u32>,
    /// Buckets without a shape.
    vacant: Vec<u32>,
    /// The number of buckets that were ever used.
    used: u32,
}

impl BucketRegistry {
    pub(super) fn find(&self, shape: &SetShape) -> Option<u32> {
        self.by_shape.get(shape).copied()
    }

    /// Returns a bucket for a new shape. The caller records it with [`Self::enter`].
    pub(super) fn next(&self) -> u32 {
        self.vacant.last().copied().unwrap_or(self.used)
    }

    pub(super) fn enter(&mut self, shape: SetShape, at: u32) {
        if self.vacant.pop().is_none() {
            self.used = at + 1;
        }
        self.by_shape.insert(shape, at);
    }

    pub(super) fn leave(&mut self, shape: &SetShape) {
        self.vacant.extend(self.by_shape.remove(shape));
    }

    /// Returns one more than the highest index of a bucket that was ever used.
    pub(super) fn used(&self) -> u32 {
        self.used
    }
}
