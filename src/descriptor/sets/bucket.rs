//! Buckets: the sets that have the same counts, so that a free place fits every set of the bucket, and what finds a
//! bucket.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use ash::vk;

use super::books::{Books, LayoutKey};
use super::error::AllocateDescriptorSetError;
use crate::base::sync::Mutex;
use crate::descriptor::pool::DescriptorPool;
use crate::descriptor::{DescriptorCounts, SetLayout};

/// What all sets of a bucket have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shape {
    /// A variable count is part of them, so that two sets of one layout are of one bucket just if they are of one size.
    pub(super) counts: DescriptorCounts,
    /// A count is variable: drivers may lay out such sets differently.
    pub(super) variable: bool,
    /// Of the pools.
    pub(super) flags: vk::DescriptorPoolCreateFlags,
}

/// What is asked for, checked.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) layout: &'a SetLayout,
    pub(super) shape: Shape,
    /// The variable count for the driver.
    pub(super) variable: Option<u32>,
}

impl<'a> Ask<'a> {
    /// `variable` is the caller's count; without one a layout with a variable count gets all that it allows.
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
            shape: Shape { counts, variable: variable.is_some(), flags: pool_flags },
            variable,
        })
    }

    pub(super) fn wanted(&self) -> LayoutKey {
        LayoutKey { layout: self.layout.id(), handle: self.layout.handle() }
    }
}

/// One bucket. Never moves, and is used again for another shape once it has no pools.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Also what Vulkan wants: a pool is used by one thread at a time
    /// (VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter, host synchronisation of `descriptorPool`), so its sets
    /// are allocated and freed under this lock. One lock for all pools of a bucket, and not one for each: which pool
    /// serves is decided by looking at all of them, and that and the call together take less than 0.1 microseconds.
    pub(super) books: Mutex<Books<Shape, DescriptorPool>>,
    /// Held while a pool is made, which takes a hundred times as long. Other threads go on with the pools there are; one
    /// that finds no set waits here, and then looks again.
    pub(super) growing: Mutex<()>,
}

impl Bucket {
    pub(super) fn new() -> Self {
        Self { books: Mutex::new(Books::default()), growing: Mutex::new(()) }
    }
}

/// Which bucket is whose. Looked into only where a layout's hint does not help; never walked.
#[derive(Debug, Default)]
pub(super) struct Registry {
    by_shape: HashMap<Shape, u32>,
    /// Buckets without a shape.
    vacant: Vec<u32>,
    /// Buckets that were ever used.
    used: u32,
}

impl Registry {
    pub(super) fn find(&self, shape: &Shape) -> Option<u32> {
        self.by_shape.get(shape).copied()
    }

    /// A bucket for a shape that has none. It is entered with [`Self::enter`].
    pub(super) fn next(&self) -> u32 {
        self.vacant.last().copied().unwrap_or(self.used)
    }

    pub(super) fn enter(&mut self, shape: Shape, at: u32) {
        if self.vacant.pop().is_none() {
            self.used = at + 1;
        }
        self.by_shape.insert(shape, at);
    }

    pub(super) fn leave(&mut self, shape: &Shape) {
        self.vacant.extend(self.by_shape.remove(shape));
    }

    /// One more than the highest bucket that was ever used.
    pub(super) fn used(&self) -> u32 {
        self.used
    }
}
