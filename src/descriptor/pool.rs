//! One `VkDescriptorPool`: made from counts, reset, destroyed. Its owner decides which sets it holds.

use std::error::Error;
use std::ffi::CString;
use std::fmt;

use ash::vk;

use super::counts::{DescriptorCounts, DescriptorKind};
use super::device::DescriptorDevice;
use super::events::{PoolEvent, What, is_heard};
use super::features::DescriptorFeatures;
use super::quirks::DescriptorQuirks;
use crate::base::watch::Watch;
use crate::device::DriverError;
use crate::device::descriptors::NewDescriptorPool;

/// What a [`DescriptorPool`] is to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescriptorPoolInfo<'a> {
    pub(crate) max_sets: u32,
    pub(crate) counts: DescriptorCounts,
    /// `VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT`, `..._UPDATE_AFTER_BIND_BIT` and what else the program
    /// wants. What the driver's faults ask for is added.
    pub(crate) flags: vk::DescriptorPoolCreateFlags,
    /// The types that mutable descriptors may have, those of all layouts together; with none, all types.
    pub(crate) mutable_types: &'a [vk::DescriptorType],
    /// What debuggers show, and the number after it.
    pub(crate) name: &'a str,
    pub(crate) ordinal: u64,
}

/// A live `VkDescriptorPool`, with what it can hold. Not destroyed when it is dropped.
#[derive(Debug)]
#[must_use = "a pool lives until it is destroyed"]
pub(crate) struct DescriptorPool {
    handle: vk::DescriptorPool,
    max_sets: u32,
    counts: DescriptorCounts,
    /// Descriptors that count for the device's limit for update after bind.
    after_bind: u64,
}

impl DescriptorPool {
    /// Makes one, if the driver does. On failure nothing stays counted.
    pub(crate) fn create(
        device: &DescriptorDevice,
        info: &DescriptorPoolInfo<'_>,
    ) -> Result<Self, CreateDescriptorPoolError> {
        Self::try_create(device, info).inspect_err(|&error| {
            let descriptors = info.counts.total();
            PoolEvent { sets: info.max_sets, descriptors, what: What::Refused(error) }.happened();
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
        // One list for each size, empty but for mutable descriptors (VkMutableDescriptorTypeCreateInfoEXT).
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
        let watch = Watch::start(is_heard());
        let handle = device.driver().create_pool(&new).map_err(|source| {
            device.release_update_after_bind(after_bind);
            if after_bind != 0 && source.result == vk::Result::ERROR_FRAGMENTATION {
                let left = device.update_after_bind_left();
                return CreateDescriptorPoolError::UpdateAfterBindLimit { needed: after_bind, left, source };
            }
            let descriptors = counts.total();
            CreateDescriptorPoolError::Driver { sets: new.max_sets, descriptors, source }
        })?;
        let nanoseconds = watch.nanoseconds().unwrap_or(0);
        let pool = Self { handle, max_sets: new.max_sets, counts, after_bind };
        pool.set_name(device, info);
        pool.happened(What::Created { nanoseconds });
        Ok(pool)
    }

    /// Destroys it, and its sets with it.
    ///
    /// # Safety
    /// The pool is of this device, and the device is done with all sets of it
    /// (VUID-vkDestroyDescriptorPool-descriptorPool-00303).
    pub(crate) unsafe fn destroy(self, device: &DescriptorDevice) {
        // SAFETY: this value made the pool and goes with it; the caller promises that the pool is of this device, which
        // is done with its sets.
        unsafe { device.driver().destroy_pool(self.handle) };
        device.release_update_after_bind(self.after_bind);
        self.happened(What::Destroyed);
    }

    /// Emits an event about the pool, now or once no lock is held.
    pub(super) fn happened(&self, what: What) {
        PoolEvent { sets: self.max_sets, descriptors: self.counts.total(), what }.happened();
    }

    /// Its sets are gone, and it can hold as many as when it was new. With [`DescriptorQuirks::RESET_LEAKS`] destroy it
    /// instead.
    ///
    /// # Safety
    /// As for [`Self::destroy`] (VUID-vkResetDescriptorPool-descriptorPool-00313).
    pub(crate) unsafe fn reset(&mut self, device: &DescriptorDevice) -> Result<(), DriverError> {
        // SAFETY: the pool is live and borrowed exclusively; the caller promises that it is of this device, which is
        // done with its sets.
        unsafe { device.driver().reset_pool(self.handle) }
    }

    /// Allocates one set; `variable` is the count of the binding that has a variable one.
    ///
    /// # Safety
    /// 1. Nobody else uses the pool meanwhile, and it is of this device.
    /// 2. The layout is live, of this device, and has sets in pools with these flags
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

    /// Sets that it was made for.
    pub(crate) fn max_sets(&self) -> u32 {
        self.max_sets
    }

    /// Descriptors that it was made for: what was asked for, and more where Vulkan wants it rounded.
    pub(crate) fn counts(&self) -> &DescriptorCounts {
        &self.counts
    }

    fn set_name(&self, device: &DescriptorDevice, info: &DescriptorPoolInfo<'_>) {
        if info.name.is_empty() || !device.features().contains(DescriptorFeatures::DEBUG_UTILS) {
            return;
        }
        // C cannot show a name with a zero in it.
        let Ok(name) = CString::new(format!("{} {}", info.name, info.ordinal)) else { return };
        // SAFETY: the pool is live and known to nobody else; the create-info of the device
        // says that VK_EXT_debug_utils is enabled.
        unsafe { device.driver().set_name(self.handle, &name) };
    }
}

/// Whether the driver's answer to a request for sets is that the pool is full.
pub(super) fn is_exhausted(error: DriverError) -> bool {
    matches!(error.result, vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL)
}

/// Descriptors of a pool that count for `maxUpdateAfterBindDescriptorsInAllPools`, "the maximum number of descriptors
/// (summed over all descriptor types)": an inline uniform block is one, for its binding. Its bytes are memory: Mesa's
/// `anv_CreateDescriptorPool` only adds them to the size of a buffer, and `anv_GetDescriptorSetLayoutSupport` leaves such
/// bindings out.
fn after_bind(counts: &DescriptorCounts, flags: vk::DescriptorPoolCreateFlags) -> u64 {
    if flags.contains(vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND) { counts.total() } else { 0 }
}

/// Whether a pool of these counts leaves the device within its limit for update after bind.
///
/// Beyond it the pool can still be made. Vulkan only lets a driver refuse: pool creation "may fail with the error
/// `VK_ERROR_FRAGMENTATION`" (`VkDescriptorPoolCreateInfo`, `VkPhysicalDeviceDescriptorIndexingProperties`), and Mesa's
/// `anv_CreateDescriptorPool` does not look at the limit. So the limit decides which size is tried first, and the
/// driver decides what is refused.
pub(super) fn keeps_limit(
    device: &DescriptorDevice,
    counts: &DescriptorCounts,
    flags: vk::DescriptorPoolCreateFlags,
) -> bool {
    let needed = after_bind(counts, flags);
    needed == 0 || needed <= device.update_after_bind_left()
}

/// The counts as a pool may have them.
fn holdable(mut counts: DescriptorCounts) -> DescriptorCounts {
    // Bytes are in fours (VUID-VkDescriptorPoolSize-type-02218).
    let over = counts.get(DescriptorKind::InlineUniformBlock) % 4;
    if over != 0 {
        counts.put(&DescriptorCounts::new().with(DescriptorKind::InlineUniformBlock, 4 - over));
    }
    // A layout without descriptors has sets too, and until 2024 Vulkan required pools to have at least one size.
    if counts.iter().next().is_none() {
        counts.put(&DescriptorCounts::new().with(DescriptorKind::Sampler, 1));
    }
    counts
}

/// Types that extensions bring.
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

/// Why a `VkDescriptorPool` was not made. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateDescriptorPoolError {
    /// The driver's answer.
    Driver {
        /// Sets of the pool.
        sets: u32,
        /// Its descriptors, of all types.
        descriptors: u64,
        /// What it was.
        source: DriverError,
    },
    /// The driver refused more descriptors in pools whose sets are updated after they are bound
    /// (`maxUpdateAfterBindDescriptorsInAllPools`). Smaller pools may help, or trimming what is idle.
    UpdateAfterBindLimit {
        /// Descriptors of the pool.
        needed: u64,
        /// What the limit leaves.
        left: u64,
        /// The driver's answer.
        source: DriverError,
    },
    /// The pool is to hold descriptors of a type that comes with features that are not enabled.
    Unsupported {
        /// Those features.
        missing: DescriptorFeatures,
    },
}

impl fmt::Display for CreateDescriptorPoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver { sets, descriptors, source } => write!(
                f,
                "the driver did not make a descriptor pool of {sets} sets and {descriptors} descriptors: {source}"
            ),
            Self::UpdateAfterBindLimit { needed, left, source } => write!(
                f,
                "a pool of {needed} descriptors that are updated after they are bound: the limit of the device leaves \
                 {left}, and {source}"
            ),
            Self::Unsupported { missing } => {
                write!(f, "descriptors of a type that needs {missing:?}, which the program has not enabled")
            }
        }
    }
}

impl Error for CreateDescriptorPoolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Driver { source, .. } | Self::UpdateAfterBindLimit { source, .. } => source.source(),
            Self::Unsupported { .. } => None,
        }
    }
}
