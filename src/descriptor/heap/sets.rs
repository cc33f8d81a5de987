//! What the stores made of descriptor sets have in common: layout, pool and sets.

use ash::vk;

use super::super::device::DescriptorDevice;
use super::super::pool::{DescriptorPool, DescriptorPoolInfo};
use super::arrays::{Arrays, Purpose};
use super::create_info::{CreateHeapError, HeapCreateInfo};
use crate::device::descriptors::BindTarget;

/// Sets of one layout in a pool of their own. Dropping the value leaks them, and `Arrays` warns of that.
#[derive(Debug)]
pub(super) struct HeapSets {
    pub(super) device: DescriptorDevice,
    pub(super) arrays: Arrays,
    pool: DescriptorPool,
    /// At least one.
    pub(super) all: Box<[vk::DescriptorSet]>,
}

impl HeapSets {
    /// Makes layout, pool and `copies` sets. Nothing is left on failure.
    pub(super) fn create(
        device: &DescriptorDevice,
        info: &HeapCreateInfo<'_>,
        purpose: Purpose,
        copies: u32,
    ) -> Result<Self, CreateHeapError> {
        let arrays = Arrays::create(device, info, purpose)?;
        match make_sets(device, info, &arrays, purpose, copies) {
            Ok((pool, all)) => Ok(Self { device: device.clone(), arrays, pool, all: all.into() }),
            Err(error) => {
                // SAFETY: the layout is of this device, and `make_sets` left nothing that was made from it.
                unsafe { arrays.destroy(device) };
                Err(error)
            }
        }
    }

    /// Binds one of the sets.
    ///
    /// # Safety
    /// The command buffer of `target` is being recorded by this thread alone, and its pipeline layout has the heap's
    /// layout as set number `target.set`.
    pub(super) unsafe fn cmd_bind(&self, copy: usize, target: &BindTarget) {
        // SAFETY: the set is live; the caller promises the rest.
        unsafe { self.device.driver().cmd_bind_sets(target, &[self.all[copy]], &[]) };
    }

    /// # Safety
    /// The device is done with all submissions that use the sets.
    pub(super) unsafe fn destroy(self) {
        // SAFETY: the pool is of this device, and the caller promises that the device is done with its sets.
        unsafe { self.pool.destroy(&self.device) };
        // SAFETY: the layout is of this device, its sets are gone, and the value goes with it.
        unsafe { self.arrays.destroy(&self.device) };
    }
}

/// A pool with `copies` sets of the layout. Nothing is left on failure.
fn make_sets(
    device: &DescriptorDevice,
    info: &HeapCreateInfo<'_>,
    arrays: &Arrays,
    purpose: Purpose,
    copies: u32,
) -> Result<(DescriptorPool, Vec<vk::DescriptorSet>), CreateHeapError> {
    let mutable_types = if arrays.is_one() { arrays.vk_types() } else { Vec::new() };
    let flags = match purpose {
        Purpose::UpdateAfterBind => vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
        Purpose::Classic | Purpose::Buffer => vk::DescriptorPoolCreateFlags::empty(),
    };
    let pool_info = DescriptorPoolInfo {
        max_sets: copies,
        counts: arrays.counts().times(copies),
        flags,
        mutable_types: &mutable_types,
        name: info.name,
        ordinal: 0,
    };
    let pool = DescriptorPool::create(device, &pool_info)?;
    let mut sets = Vec::new();
    for _ in 0..copies {
        // SAFETY: both are live; the pool was made for layouts like this one, and is nobody else's.
        match unsafe { device.driver().allocate_set(pool.handle(), arrays.layout()) } {
            Ok(set) => sets.push(set),
            Err(error) => {
                // SAFETY: no set of it was ever bound.
                unsafe { pool.destroy(device) };
                return Err(error.into());
            }
        }
    }
    Ok((pool, sets))
}
