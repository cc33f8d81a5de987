//! The common part of the stores with descriptor sets: sets of one layout in their own pool.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::Arc;

use ash::vk;

use super::super::device::DescriptorDevice;
use super::super::pool::{DescriptorPool, DescriptorPoolInfo};
use super::arrays::{HeapLayout, LayoutArrays, LayoutPurpose};
use super::create_info::CreateHeapError;

/// Sets of one layout in their own pool. Dropping the value leaks them, and `HeapLayout` warns about it.
#[derive(Debug)]
pub(super) struct HeapSets {
    pub(super) layout: Arc<HeapLayout>,
    pool: DescriptorPool,
    /// At least one.
    pub(super) all: Box<[vk::DescriptorSet]>,
}

impl HeapSets {
    /// Creates a pool with `copies` sets of the layout, each with this number of slots. On failure nothing is left
    /// behind; the layout is destroyed if it has no other owner.
    pub(super) fn create(
        device: &DescriptorDevice,
        arrays: &LayoutArrays,
        layout: Arc<HeapLayout>,
        name: &str,
        copies: u32,
        slots: u32,
    ) -> Result<Self, CreateHeapError> {
        match Self::allocate(device, arrays, &layout, name, copies, slots) {
            Ok((pool, all)) => Ok(Self { layout, pool, all }),
            Err(error) => {
                // SAFETY: the layout belongs to this device, and everything created from it here is destroyed.
                unsafe { layout.release(device) };
                Err(error)
            }
        }
    }

    fn allocate(
        device: &DescriptorDevice,
        arrays: &LayoutArrays,
        layout: &HeapLayout,
        name: &str,
        copies: u32,
        slots: u32,
    ) -> Result<(DescriptorPool, Box<[vk::DescriptorSet]>), CreateHeapError> {
        let mutable_types = if arrays.is_one() { arrays.vk_types() } else { Vec::new() };
        let flags = match arrays.purpose() {
            LayoutPurpose::UpdateAfterBind => vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
            LayoutPurpose::Classic | LayoutPurpose::Buffer => vk::DescriptorPoolCreateFlags::empty(),
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
            // SAFETY: both are live; the pool was created for such layouts, and nobody else uses it; and the layout has
            // at least that many slots.
            match unsafe { pool.allocate(device, layout.of_sets().handle(), variable) } {
                Ok(set) => sets.push(set),
                Err(error) => {
                    // SAFETY: no set of the pool was ever bound.
                    unsafe { pool.destroy(device) };
                    return Err(error.into());
                }
            }
        }
        Ok((pool, sets.into()))
    }

    /// # Safety
    /// The sets belong to this device, which is done with all submissions that use them.
    pub(super) unsafe fn destroy(self, device: &DescriptorDevice) {
        // SAFETY: the caller promises that the pool belongs to this device, which is done with its sets.
        unsafe { self.pool.destroy(device) };
        // SAFETY: the layout belongs to this device, and its sets are destroyed.
        unsafe { self.layout.release(device) };
    }
}
