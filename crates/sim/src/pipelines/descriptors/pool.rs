//! Descriptor pools: creation, reset and destruction.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;
use ash::vk::DescriptorPoolCreateFlags as Flags;
use ash::vk::DescriptorType as Type;
use ash::vk::Handle as _;

use super::layout::mutable_lists;
use crate::facts::arithmetic::widen;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::profiles::pool_policy::{DescriptorPoolPolicy, DescriptorQuirk};
use crate::objects::descriptors::DescriptorPoolObject;
use crate::objects::descriptors::capacity::PoolCapacity;
use crate::objects::entry::checked;
use crate::objects::handle_map::HandleSet;
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::host_bytes::HostBytes;
use crate::objects::state::{DeviceObject, DeviceState};

/// # Safety
///
/// `info` is NULL, or valid with its chain and what it points to.
unsafe fn describe(
    device: &DeviceObject,
    info: *const vk::DescriptorPoolCreateInfo<'_>,
) -> Result<DescriptorPoolObject, Broken> {
    // SAFETY: the promise of `describe`: NULL or valid.
    let info = unsafe { chain::given(info, "VUID-vkCreateDescriptorPool-pCreateInfo-parameter") }?;
    refuse_if!(info.max_sets == 0 => "VUID-VkDescriptorPoolCreateInfo-descriptorPoolOverallocation-09227",
        "maxSets is 0");
    // SAFETY: VUID-VkDescriptorPoolCreateInfo-pPoolSizes-parameter.
    let sizes = unsafe { chain::array(info.p_pool_sizes, info.pool_size_count) };
    for size in sizes {
        refuse_if!(size.descriptor_count == 0 => "VUID-VkDescriptorPoolSize-descriptorCount-00302",
            "descriptorCount of {:?} is 0", size.ty);
        refuse_if!(size.ty == Type::INLINE_UNIFORM_BLOCK && size.descriptor_count % 4 != 0
            => "VUID-VkDescriptorPoolSize-type-02218",
            "{} bytes of inline uniform blocks are no multiple of 4", size.descriptor_count);
        refuse_if!(size.ty == Type::MUTABLE_EXT && !device.features.mutable_descriptor_type
            => "VUID-VkDescriptorPoolCreateInfo-mutableDescriptorType-04608",
            "a mutable type, and the feature mutableDescriptorType is not enabled");
    }
    let over = Flags::ALLOW_OVERALLOCATION_SETS_NV | Flags::ALLOW_OVERALLOCATION_POOLS_NV;
    refuse_if!(info.flags.intersects(over) => "VUID-VkDescriptorPoolCreateInfo-flags-09228",
        "the feature descriptorPoolOverallocation is not there");
    if info.flags.contains(Flags::HOST_ONLY_EXT) {
        let enabled = device.features.mutable_descriptor_type;
        refuse_if!(!enabled => "VUID-VkDescriptorPoolCreateInfo-flags-04609",
            "HOST_ONLY is set, and the feature mutableDescriptorType is not enabled");
        refuse_if!(info.flags.contains(Flags::UPDATE_AFTER_BIND)
            => "VUID-VkDescriptorPoolCreateInfo-flags-04607",
            "HOST_ONLY and UPDATE_AFTER_BIND do not go together");
    }
    // SAFETY: VUID-VkDescriptorPoolCreateInfo-pNext-pNext.
    let lists = unsafe { mutable_lists(info.p_next) };
    check_lists(&lists, sizes)?;
    // SAFETY: as above.
    let inline = unsafe { chain::find::<vk::DescriptorPoolInlineUniformBlockCreateInfo<'_>>(info.p_next) };
    let inline = inline.map_or(0, |inline| inline.max_inline_uniform_block_bindings);
    Ok(DescriptorPoolObject {
        flags: info.flags,
        capacity: PoolCapacity::new(info.max_sets, sizes, &lists, inline),
        sets: HandleSet::default(),
        allocated: 0,
        freed: 0,
        leaked: 0,
        host: HostBytes::default(),
    })
}

/// Two lists of mutable types in one pool are equal, or have no type in common.
fn check_lists(lists: &[Vec<Type>], sizes: &[vk::DescriptorPoolSize]) -> Result<(), Broken> {
    let mutable = || lists.iter().zip(sizes).filter(|(_, size)| size.ty == Type::MUTABLE_EXT);
    for (one, _) in mutable() {
        for (other, _) in mutable() {
            refuse_if!(one != other && one.iter().any(|kind| other.contains(kind))
                => "VUID-VkDescriptorPoolCreateInfo-pPoolSizes-04787",
                "the lists of mutable types {one:?} and {other:?} have some in common");
        }
    }
    Ok(())
}

impl DescriptorPoolObject {
    fn updates_after_bind(&self) -> bool {
        self.flags.contains(Flags::UPDATE_AFTER_BIND)
    }
}

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::DescriptorPoolCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_pool: *mut vk::DescriptorPool,
) -> vk::Result {
    checked(device, "vkCreateDescriptorPool", |device| {
        // SAFETY: VUID-vkCreateDescriptorPool-pCreateInfo-parameter.
        let mut pool = unsafe { describe(device, p_info) }?;
        // SAFETY: VUID-vkCreateDescriptorPool-pAllocator-parameter; no lock is held.
        pool.host = match unsafe { host::take(callbacks) } {
            Ok(host) => host,
            Err(error) => return Ok(error),
        };
        let mut state = device.state.lock();
        if pool.updates_after_bind() && !state.take_after_bind(device, pool.capacity.descriptors()) {
            drop(state);
            // SAFETY: as above; the object was never inserted.
            unsafe { host::give_back(callbacks, pool.host) };
            return Ok(vk::Result::ERROR_FRAGMENTATION);
        }
        let handle = device.gpu_state.handle();
        state.descriptors.pools.insert(handle, pool);
        // SAFETY: VUID-vkCreateDescriptorPool-pDescriptorPool-parameter.
        unsafe { chain::output(p_pool, handle) };
        Ok(vk::Result::SUCCESS)
    })
}

impl DeviceState {
    /// Takes descriptors from those that all pools together may have with UPDATE_AFTER_BIND. Past the limit, a driver
    /// may refuse the pool (section "Limits", `maxUpdateAfterBindDescriptorsInAllPools`); one that never refuses does
    /// not, and a program may ask.
    fn take_after_bind(&mut self, device: &DeviceObject, count: u64) -> bool {
        let behaviour = &device.gpu_state.descriptors;
        let limit = u64::from(behaviour.limits.max_update_after_bind_descriptors_in_all_pools);
        let sum = self.descriptors.update_after_bind + count;
        if sum > limit && behaviour.policy != DescriptorPoolPolicy::NeverRefuses {
            return false;
        }
        self.descriptors.update_after_bind = sum;
        true
    }

    /// Returns whether a submission that is not done uses a set of a pool.
    fn pool_in_use(&self, pool: &DescriptorPoolObject) -> bool {
        let mut sets = pool.sets.iter().filter_map(|set| self.descriptors.sets.get(&set));
        sets.any(|set| set.in_use > 0)
    }

    /// Forgets sets and their names.
    fn forget_sets(&mut self, sets: &HandleSet<vk::DescriptorSet>) {
        for set in sets.iter() {
            self.names.remove(&set.as_raw());
            self.descriptors.sets.remove(&set);
        }
    }
}

destroys! {
    pub(crate) fn destroy(pool: vk::DescriptorPool) = "vkDestroyDescriptorPool",
    ["descriptorPool-parameter", "descriptorPool-00304", "descriptorPool-00305"],
    |device, state, name| {
        let found = state.descriptors.pools.remove(&pool)?;
        if state.pool_in_use(&found) {
            let text = format!("{name} is destroyed, and a submission still uses one of its sets");
            device.report("VUID-vkDestroyDescriptorPool-descriptorPool-00303", text);
        }
        state.forget_sets(&found.sets);
        if found.updates_after_bind() {
            state.descriptors.update_after_bind -= found.capacity.descriptors();
        }
        device.gpu_state.descriptors.end_leak(found.leaked);
        Some(found.host)
    }
}

pub(crate) unsafe extern "system" fn reset(
    device: vk::Device,
    pool: vk::DescriptorPool,
    _: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    checked(device, "vkResetDescriptorPool", |device| {
        let mut state = device.state.lock();
        let name = state.label(pool);
        let found = state.descriptors.pools.get(&pool);
        let found =
            state.known(device, pool, found, "VUID-vkResetDescriptorPool-descriptorPool-parameter")?;
        refuse_if!(state.pool_in_use(found) => "VUID-vkResetDescriptorPool-descriptorPool-00313",
            "{name} is reset, and a submission still uses one of its sets");
        let quirks = device.gpu_state.descriptors.quirks;
        let mut sets = HandleSet::default();
        if let Some(found) = state.descriptors.pools.get_mut(&pool) {
            let keeps_count = quirks.contains(DescriptorQuirk::SET_COUNT_SURVIVES_RESET)
                && !found.flags.contains(Flags::FREE_DESCRIPTOR_SET);
            found.capacity.reset(!keeps_count);
            found.allocated = 0;
            found.freed = 0;
            sets = std::mem::take(&mut found.sets);
            if quirks.contains(DescriptorQuirk::RESET_LEAKS) {
                found.leaked += widen(sets.len());
                device.gpu_state.descriptors.leak(widen(sets.len()));
            }
        }
        state.forget_sets(&sets);
        Ok(vk::Result::SUCCESS)
    })
}
