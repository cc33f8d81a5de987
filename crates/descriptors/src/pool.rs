//! One `VkDescriptorPool`: created from counts, reset, destroyed. Its owner decides which sets it holds.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::ffi::CString;
use std::time::Instant;

use ash::vk;

use super::counts::{DescriptorCounts, DescriptorKind};
use super::device::DescriptorDevice;
use super::events::{PoolEvent, PoolEventKind, is_heard};
use super::features::DescriptorFeatures;
use super::quirks::DescriptorQuirks;
use crate::driver::NewDescriptorPool;
use sublet::device::DriverError;
use sublet_engines::cast::nanoseconds;

/// The parameters of a [`DescriptorPool`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescriptorPoolInfo<'a> {
    pub(crate) max_sets: u32,
    pub(crate) counts: DescriptorCounts,
    /// `VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT`, `..._UPDATE_AFTER_BIND_BIT` and other flags of the program.
    /// Flags for driver faults are added.
    pub(crate) flags: vk::DescriptorPoolCreateFlags,
    /// The types that mutable descriptors may have, over all layouts; empty means all types.
    pub(crate) mutable_types: &'a [vk::DescriptorType],
    /// The name for debuggers, followed by `ordinal`.
    pub(crate) name: &'a str,
    pub(crate) ordinal: u64,
}

/// A live `VkDescriptorPool` with its capacity. Dropping it does not destroy the pool.
#[derive(Debug)]
#[must_use = "a pool lives until it is destroyed"]
pub(crate) struct DescriptorPool {
    handle: vk::DescriptorPool,
    max_sets: u32,
    counts: DescriptorCounts,
    /// The descriptors that count towards the device's update-after-bind limit.
    after_bind: u64,
}

impl DescriptorPool {
    /// Creates a pool. On failure, the device's count of update-after-bind descriptors is unchanged.
    pub(crate) fn create(
        device: &DescriptorDevice,
        info: &DescriptorPoolInfo<'_>,
    ) -> Result<Self, CreateDescriptorPoolError> {
        Self::try_create(device, info).inspect_err(|&error| {
            let descriptors = info.counts.total();
            PoolEvent { sets: info.max_sets, descriptors, what: PoolEventKind::Refused(error) }.happened();
        })
    }

    fn try_create(
        device: &DescriptorDevice,
        info: &DescriptorPoolInfo<'_>,
    ) -> Result<Self, CreateDescriptorPoolError> {
        let counts = holdable(info.counts);
        check_features(device, &counts)?;
        let mut flags = info.flags;
        if device.quirks().contains(DescriptorQuirks::RESET_KEEPS_SET_COUNT) {
            flags |= vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
        }
        let mut sizes = [vk::DescriptorPoolSize::default(); DescriptorKind::ALL.len()];
        // One list for each size, empty except for mutable descriptors (VkMutableDescriptorTypeCreateInfoEXT).
        let mut lists = [vk::MutableDescriptorTypeListEXT::default(); DescriptorKind::ALL.len()];
        let mut used = 0;
        for ((size, list), (kind, count)) in sizes.iter_mut().zip(&mut lists).zip(counts.iter()) {
            *size = vk::DescriptorPoolSize::default().ty(kind.to_vk()).descriptor_count(count);
            if kind == DescriptorKind::Mutable {
                *list = list.descriptor_types(info.mutable_types);
            }
            used += 1;
        }
        let has_lists = counts.get(DescriptorKind::Mutable) != 0 && !info.mutable_types.is_empty();
        let new = NewDescriptorPool {
            max_sets: info.max_sets.max(1),
            sizes: &sizes[..used],
            flags,
            inline_uniform_bindings: counts.inline_uniform_bindings(),
            mutable_types: if has_lists { &lists[..used] } else { &[] },
        };
        let after_bind = after_bind(&counts, flags);
        device.take_update_after_bind(after_bind);
        // Reading the clock costs time, so it is read only for an event.
        let started = is_heard().then(Instant::now);
        let handle = device.driver().create_pool(&new).map_err(|source| {
            device.release_update_after_bind(after_bind);
            if after_bind != 0 && source.result == vk::Result::ERROR_FRAGMENTATION {
                let left = device.update_after_bind_left();
                return CreateDescriptorPoolError::UpdateAfterBindLimit { needed: after_bind, left, source };
            }
            let descriptors = counts.total();
            CreateDescriptorPoolError::Driver { sets: new.max_sets, descriptors, source }
        })?;
        let nanoseconds = started.map_or(0, |started| nanoseconds(started.elapsed()));
        let pool = Self { handle, max_sets: new.max_sets, counts, after_bind };
        pool.set_name(device, info);
        pool.happened(PoolEventKind::Created { nanoseconds });
        Ok(pool)
    }

    /// Destroys the pool with its sets.
    ///
    /// # Safety
    /// The pool belongs to this device, and the device is done with all its sets
    /// (VUID-vkDestroyDescriptorPool-descriptorPool-00303).
    pub(crate) unsafe fn destroy(self, device: &DescriptorDevice) {
        // SAFETY: this consumes the value that created the pool; the caller promises that the pool belongs to this
        // device, which is done with its sets.
        unsafe { device.driver().destroy_pool(self.handle) };
        device.release_update_after_bind(self.after_bind);
        self.happened(PoolEventKind::Destroyed);
    }

    /// Emits an event about the pool, now or once no lock is held.
    pub(super) fn happened(&self, what: PoolEventKind) {
        PoolEvent { sets: self.max_sets, descriptors: self.counts.total(), what }.happened();
    }

    /// Frees all sets and restores the full capacity. With [`DescriptorQuirks::RESET_LEAKS`], destroy the pool instead.
    ///
    /// # Safety
    /// Same as [`Self::destroy`] (VUID-vkResetDescriptorPool-descriptorPool-00313).
    pub(crate) unsafe fn reset(&mut self, device: &DescriptorDevice) -> Result<(), DriverError> {
        // SAFETY: the pool is live and borrowed exclusively; the caller promises that it belongs to this device, which
        // is done with its sets.
        unsafe { device.driver().reset_pool(self.handle) }
    }

    /// Allocates one set; `variable` is the count of the variable binding.
    ///
    /// # Safety
    /// 1. Nobody else uses the pool meanwhile, and it belongs to this device.
    /// 2. The layout is live, belongs to this device, and its sets may come from pools with these flags
    ///    (VUID-VkDescriptorSetAllocateInfo-pSetLayouts-03044).
    /// 3. The layout allows the variable count
    ///    (VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-pSetLayouts-03046).
    pub(crate) unsafe fn allocate(
        &self,
        device: &DescriptorDevice,
        layout: vk::DescriptorSetLayout,
        variable: Option<u32>,
    ) -> Result<vk::DescriptorSet, DriverError> {
        match variable {
            // SAFETY: the pool is live; clauses 1 and 2.
            None => unsafe { device.driver().allocate_set(self.handle, layout) },
            // SAFETY: the pool is live; clauses 1 to 3.
            Some(count) => unsafe { device.driver().allocate_variable_set(self.handle, layout, count) },
        }
    }

    #[inline]
    pub(crate) fn handle(&self) -> vk::DescriptorPool {
        self.handle
    }

    /// Returns the number of sets that the pool was created for.
    pub(crate) fn max_sets(&self) -> u32 {
        self.max_sets
    }

    /// Returns the counts that the pool was created for: the request, rounded up if Vulkan requires it.
    pub(crate) fn counts(&self) -> &DescriptorCounts {
        &self.counts
    }

    fn set_name(&self, device: &DescriptorDevice, info: &DescriptorPoolInfo<'_>) {
        if info.name.is_empty() || !device.features().contains(DescriptorFeatures::DEBUG_UTILS) {
            return;
        }
        // A C string cannot contain a zero byte.
        let Ok(name) = CString::new(format!("{} {}", info.name, info.ordinal)) else { return };
        // SAFETY: the pool is live and nothing else has its handle; the create-info of the device says that
        // VK_EXT_debug_utils is enabled.
        unsafe { device.driver().set_name(self.handle, &name) };
    }
}

/// Returns true if the error means that the pool is full.
pub(super) fn is_exhausted(error: DriverError) -> bool {
    matches!(error.result, vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL)
}

/// Returns the descriptors of a pool that count towards `maxUpdateAfterBindDescriptorsInAllPools`, "the maximum number
/// of descriptors (summed over all descriptor types)". An inline uniform block counts as one, for its binding. Its
/// bytes are memory: Mesa's `anv_CreateDescriptorPool` only adds them to the size of a buffer, and
/// `anv_GetDescriptorSetLayoutSupport` skips such bindings.
fn after_bind(counts: &DescriptorCounts, flags: vk::DescriptorPoolCreateFlags) -> u64 {
    if flags.contains(vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND) { counts.total() } else { 0 }
}

/// Returns true if a pool of these counts stays within the device's update-after-bind limit.
///
/// A pool beyond the limit may still succeed: Vulkan only permits the driver to fail with `VK_ERROR_FRAGMENTATION`
/// (`VkDescriptorPoolCreateInfo`, `VkPhysicalDeviceDescriptorIndexingProperties`), and Mesa's
/// `anv_CreateDescriptorPool` ignores the limit. So the limit only decides which size is tried first.
pub(super) fn keeps_limit(
    device: &DescriptorDevice,
    counts: &DescriptorCounts,
    flags: vk::DescriptorPoolCreateFlags,
) -> bool {
    let needed = after_bind(counts, flags);
    needed == 0 || needed <= device.update_after_bind_left()
}

/// Adjusts the counts to valid ones.
fn holdable(mut counts: DescriptorCounts) -> DescriptorCounts {
    // Bytes must be a multiple of 4 (VUID-VkDescriptorPoolSize-type-02218).
    let over = counts.get(DescriptorKind::InlineUniformBlock) % 4;
    if over != 0 {
        counts.put(&DescriptorCounts::new().with(DescriptorKind::InlineUniformBlock, 4 - over));
    }
    // A layout without descriptors also has sets, and until 2024 Vulkan required at least one size for each pool.
    if counts.iter().next().is_none() {
        counts.put(&DescriptorCounts::new().with(DescriptorKind::Sampler, 1));
    }
    counts
}

/// Checks the types of extensions.
fn check_features(
    device: &DescriptorDevice,
    counts: &DescriptorCounts,
) -> Result<(), CreateDescriptorPoolError> {
    let has = |kind| counts.get(kind) != 0;
    let mut needed = DescriptorFeatures::empty();
    needed.set(DescriptorFeatures::INLINE_UNIFORM_BLOCK, has(DescriptorKind::InlineUniformBlock));
    needed.set(DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE, has(DescriptorKind::Mutable));
    let missing = needed - device.features();
    if missing.is_empty() { Ok(()) } else { Err(CreateDescriptorPoolError::Unsupported { missing }) }
}

/// The `VkDescriptorPool` could not be created. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateDescriptorPoolError {
    /// The driver failed.
    Driver {
        /// The number of sets in the pool.
        sets: u32,
        /// The number of descriptors of all types.
        descriptors: u64,
        /// The driver's error.
        source: DriverError,
    },
    /// The driver rejected more descriptors in update-after-bind pools (`maxUpdateAfterBindDescriptorsInAllPools`).
    /// Smaller pools, or trimming idle ones, may help.
    UpdateAfterBindLimit {
        /// The number of descriptors in the pool.
        needed: u64,
        /// The remaining descriptors below the limit.
        left: u64,
        /// The driver's error.
        source: DriverError,
    },
    /// The pool needs a descriptor type whose features are not enabled.
    Unsupported {
        /// The missing features.
        missing: DescriptorFeatures,
    },
}

sublet_engines::errors! { CreateDescriptorPoolError:
    Driver { sets, descriptors, source } =>
        "the driver did not make a descriptor pool of {sets} sets and {descriptors} descriptors: {source}",
        source;
    UpdateAfterBindLimit { needed, left, source } =>
        "a pool of {needed} descriptors that are updated after they are bound: the limit of the device leaves \
         {left}, and {source}", source;
    Unsupported { missing } => "descriptors of a type that needs {missing:?}, which the program has not enabled";
}
