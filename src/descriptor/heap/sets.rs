//! What the stores made of descriptor sets have in common: sets of one layout in a pool of their own.

use std::sync::Arc;

use ash::vk;

use super::super::device::DescriptorDevice;
use super::super::pool::{DescriptorPool, DescriptorPoolInfo};
use super::arrays::{Arrays, HeapLayout, Purpose};
use super::create_info::CreateHeapError;

/// Sets of one layout in a pool of their own. Dropping the value leaks them, and `HeapLayout` warns of that.
#[derive(Debug)]
pub(super) struct HeapSets {
    pub(super) layout: Arc<HeapLayout>,
    pool: DescriptorPool,
    /// At least one.
    pub(super) all: Box<[vk::DescriptorSet]>,
}

impl HeapSets {
    /// Makes a pool with `copies` sets of the layout, each with so many slots. On failure nothing is left, the layout
    /// included if nobody else has it.
    pub(super) fn create(
        device: &DescriptorDevice,
        arrays: &Arrays,
        layout: Arc<HeapLayout>,
        name: &str,
        copies: u32,
        slots: u32,
    ) -> Result<Self, CreateHeapError> {
        match Self::allocate(device, arrays, &layout, name, copies, slots) {
            Ok((pool, all)) => Ok(Self { layout, pool, all }),
            Err(error) => {
                // SAFETY: the layout is of this device, and nothing that was made from it here is left.
                unsafe { layout.release(device) };
                Err(error)
            }
        }
    }

    fn allocate(
        device: &DescriptorDevice,
        arrays: &Arrays,
        layout: &HeapLayout,
        name: &str,
        copies: u32,
        slots: u32,
    ) -> Result<(DescriptorPool, Box<[vk::DescriptorSet]>), CreateHeapError> {
        let mutable_types = if arrays.is_one() { arrays.vk_types() } else { Vec::new() };
        let flags = match arrays.purpose() {
            Purpose::UpdateAfterBind => vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
            Purpose::Classic | Purpose::Buffer => vk::DescriptorPoolCreateFlags::empty(),
        };
        let pool_info = DescriptorPoolInfo {
            max_sets: copies,
            counts: layout.of_sets().counts_with(slots).times(copies),
            flags,
            mutable_types: &mutable_types,
            name,
            ordinal: 0,
        };
        let pool = DescriptorPool::create(device, &pool_info)?;
        let variable = arrays.is_variable().then_some(slots);
        let mut sets = Vec::new();
        for _ in 0..copies {
            // SAFETY: both are live; the pool was made for layouts like this one, and is nobody else's; and the layout
            // has that many slots at least.
            match unsafe { pool.allocate(device, layout.of_sets().handle(), variable) } {
                Ok(set) => sets.push(set),
                Err(error) => {
                    // SAFETY: no set of it was ever bound.
                    unsafe { pool.destroy(device) };
                    return Err(error.into());
                }
            }
        }
        Ok((pool, sets.into()))
    }

    /// # Safety
    /// The sets are of this device, which is done with all submissions that use them.
    pub(super) unsafe fn destroy(self, device: &DescriptorDevice) {
        // SAFETY: the caller promises that the pool is of this device, which is done with its sets.
        unsafe { self.pool.destroy(device) };
        // SAFETY: the layout is of this device, and the sets that had it are gone.
        unsafe { self.layout.release(device) };
    }
}
