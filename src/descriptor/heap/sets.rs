//! What the stores made of descriptor sets have in common: sets of one layout in a pool of their own.

use ash::vk;

use super::super::device::DescriptorDevice;
use super::super::pool::{DescriptorPool, DescriptorPoolInfo};
use super::arrays::{Arrays, Purpose};
use super::create_info::CreateHeapError;

/// Sets of one layout in a pool of their own. Dropping the value leaks them, and `Arrays` warns of that.
#[derive(Debug)]
pub(super) struct HeapSets {
    pool: DescriptorPool,
    /// At least one.
    pub(super) all: Box<[vk::DescriptorSet]>,
}

impl HeapSets {
    /// Makes a pool with `copies` sets of the layout, each with so many slots. Nothing is left on failure.
    pub(super) fn create(
        device: &DescriptorDevice,
        arrays: &Arrays,
        name: &str,
        purpose: Purpose,
        copies: u32,
        slots: u32,
    ) -> Result<Self, CreateHeapError> {
        let mutable_types = if arrays.is_one() { arrays.vk_types() } else { Vec::new() };
        let flags = match purpose {
            Purpose::UpdateAfterBind => vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
            Purpose::Classic | Purpose::Buffer => vk::DescriptorPoolCreateFlags::empty(),
        };
        let pool_info = DescriptorPoolInfo {
            max_sets: copies,
            counts: arrays.counts(slots).times(copies),
            flags,
            mutable_types: &mutable_types,
            name,
            ordinal: 0,
        };
        let pool = DescriptorPool::create(device, &pool_info)?;
        let variable = arrays.may_grow().then_some(slots);
        let mut sets = Vec::new();
        for _ in 0..copies {
            // SAFETY: both are live; the pool was made for layouts like this one, and is nobody else's; and the layout
            // has that many slots at least.
            match unsafe { pool.allocate(device, arrays.layout(), variable) } {
                Ok(set) => sets.push(set),
                Err(error) => {
                    // SAFETY: no set of it was ever bound.
                    unsafe { pool.destroy(device) };
                    return Err(error.into());
                }
            }
        }
        Ok(Self { pool, all: sets.into() })
    }

    /// # Safety
    /// The sets are of this device, which is done with all submissions that use them.
    pub(super) unsafe fn destroy(self, device: &DescriptorDevice) {
        // SAFETY: the caller promises that the pool is of this device, which is done with its sets.
        unsafe { self.pool.destroy(device) };
    }
}
