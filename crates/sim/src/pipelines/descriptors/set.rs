//! Descriptor sets: allocation from a pool, and freeing.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;
use ash::vk::DescriptorPoolCreateFlags as PoolFlags;
use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
use ash::vk::Handle as _;

use crate::facts::arithmetic::{index, narrow, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::profiles::pool_policy::DescriptorQuirk;
use crate::objects::descriptors::capacity::{NeededCapacity, TakenCapacity};
use crate::objects::descriptors::contents::Contents;
use crate::objects::descriptors::{DescriptorPoolObject, DescriptorSetObject, SetLayoutDescription};
use crate::objects::entry::checked;
use crate::objects::handle_map::HandleSet;
use crate::objects::state::{DeviceObject, DeviceState};

/// Allocations from a pool after which a driver with [`DescriptorQuirk::FRAGMENTS`] gives up.
const FRAGMENTED_AFTER: u64 = 128;

/// A set that a call asks for.
struct RequestedSet {
    layout: Arc<SetLayoutDescription>,
    handle: vk::DescriptorSetLayout,
    variable: u32,
}

/// # Safety
///
/// `info` is valid with its chain and what it points to.
unsafe fn read(
    device: &DeviceObject,
    state: &DeviceState,
    info: &vk::DescriptorSetAllocateInfo<'_>,
) -> Result<Vec<RequestedSet>, Broken> {
    // SAFETY: VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter.
    let layouts = unsafe { chain::array(info.p_set_layouts, info.descriptor_set_count) };
    // SAFETY: VUID-VkDescriptorSetAllocateInfo-pNext-pNext.
    let counts =
        unsafe { chain::find::<vk::DescriptorSetVariableDescriptorCountAllocateInfo<'_>>(info.p_next) };
    let counts: &[u32] = match counts {
        // SAFETY: VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-pDescriptorCounts-parameter.
        Some(counts) => unsafe { chain::array(counts.p_descriptor_counts, counts.descriptor_set_count) },
        None => &[],
    };
    let Some(pool) = state.descriptors.pools.get(&info.descriptor_pool) else {
        let text = state.missing(device, info.descriptor_pool);
        return Err(("VUID-VkDescriptorSetAllocateInfo-descriptorPool-parameter", text));
    };
    refuse_if!(layouts.is_empty() => "VUID-VkDescriptorSetAllocateInfo-descriptorSetCount-arraylength",
        "descriptorSetCount is 0");
    refuse_if!(!counts.is_empty() && counts.len() != layouts.len()
        => "VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-descriptorSetCount-03045",
        "{} variable counts, {} sets", counts.len(), layouts.len());
    let mut wanted = Vec::with_capacity(layouts.len());
    for (position, &handle) in layouts.iter().enumerate() {
        let name = state.label(handle);
        let Some(found) = state.descriptors.layouts.get(&handle) else {
            let text = state.missing(device, handle);
            return Err(("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter", text));
        };
        let layout = Arc::clone(&found.layout);
        check_layout(pool, &layout).map_err(|(rule, text)| (rule, format!("{name} {text}")))?;
        // Without a count, a variable binding has no descriptors.
        let variable = counts.get(position).copied().filter(|_| layout.variable().is_some()).unwrap_or(0);
        let most = layout.variable().map_or(0, |(_, binding)| binding.count);
        if variable > most {
            let text = format!("{variable} descriptors in the variable binding of {name}, which has {most}");
            let rule = "VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-pSetLayouts-03046";
            return Err((rule, text));
        }
        wanted.push(RequestedSet { layout, handle, variable });
    }
    Ok(wanted)
}

/// Checks whether sets of a layout may come from a pool. The text of the error follows the layout's name.
fn check_layout(pool: &DescriptorPoolObject, layout: &SetLayoutDescription) -> Result<(), Broken> {
    let after = pool.flags.contains(PoolFlags::UPDATE_AFTER_BIND);
    let host_only = pool.flags.contains(PoolFlags::HOST_ONLY_EXT);
    let (rule, text) = if layout.has(LayoutFlags::PUSH_DESCRIPTOR_KHR) {
        ("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-00308", "is for push descriptors")
    } else if layout.has(LayoutFlags::UPDATE_AFTER_BIND_POOL) && !after {
        let text = "has UPDATE_AFTER_BIND_POOL, and the pool was created without UPDATE_AFTER_BIND";
        ("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-03044", text)
    } else if layout.has(LayoutFlags::HOST_ONLY_POOL_EXT) && !host_only {
        let text = "has HOST_ONLY_POOL, and the pool was created without HOST_ONLY";
        ("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-04610", text)
    } else if layout.has(LayoutFlags::DESCRIPTOR_BUFFER_EXT) {
        ("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-08009", "is for descriptor buffers")
    } else {
        return Ok(());
    };
    Err((rule, text.to_owned()))
}

/// Why a driver does not allocate.
enum AllocateRefusal {
    Result(vk::Result),
    /// A broken rule: Vulkan 1.0 has no result for a full pool, so that asking for too much is an error of the program.
    Broken(Broken),
}

/// Takes the parts for all sets, or none.
fn take_room(
    device: &DeviceObject,
    pool: &mut DescriptorPoolObject,
    wanted: &[RequestedSet],
) -> Result<Vec<TakenCapacity>, AllocateRefusal> {
    let behaviour = &device.gpu_state.descriptors;
    let fragments = behaviour.quirks.contains(DescriptorQuirk::FRAGMENTS);
    if fragments && pool.freed > 0 && pool.allocated >= FRAGMENTED_AFTER {
        return Err(AllocateRefusal::Result(vk::Result::ERROR_FRAGMENTED_POOL));
    }
    let mut all = Vec::with_capacity(wanted.len());
    let mut past = 0;
    for set in wanted {
        let has_set = pool.capacity.has_set();
        match pool.capacity.take(&NeededCapacity::of(&set.layout, set.variable), behaviour.policy) {
            Some((taken, over)) => {
                past += over;
                all.push(taken);
            }
            None => {
                for taken in &all {
                    pool.capacity.give_back(taken);
                }
                return Err(refusal(device, has_set));
            }
        }
    }
    behaviour.overrun(past);
    pool.allocated += widen(all.len());
    Ok(all)
}

fn refusal(device: &DeviceObject, has_set: bool) -> AllocateRefusal {
    if device.minor > 0 || device.has("VK_KHR_maintenance1") {
        return AllocateRefusal::Result(vk::Result::ERROR_OUT_OF_POOL_MEMORY);
    }
    // VK_KHR_maintenance1 gave drivers a result to refuse with.
    let (rule, what) = if has_set {
        ("VUID-VkDescriptorSetAllocateInfo-apiVersion-07896", "descriptors")
    } else {
        ("VUID-VkDescriptorSetAllocateInfo-apiVersion-07895", "sets")
    };
    AllocateRefusal::Broken((rule, format!("the pool has not so many {what} left")))
}

pub(crate) unsafe extern "system" fn allocate(
    device: vk::Device,
    p_info: *const vk::DescriptorSetAllocateInfo<'_>,
    p_sets: *mut vk::DescriptorSet,
) -> vk::Result {
    let result = checked(device, "vkAllocateDescriptorSets", |device| {
        let rule = "VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter";
        // SAFETY: VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter.
        let info = unsafe { chain::given(p_info, rule) }?;
        let mut state = device.state.lock();
        // SAFETY: as above, with the chain and the arrays.
        let wanted = unsafe { read(device, &state, info) }?;
        let handles = match state.allocate_sets(device, info.descriptor_pool, wanted) {
            Ok(handles) => handles,
            Err(AllocateRefusal::Result(result)) => return Ok(result),
            Err(AllocateRefusal::Broken((rule, text))) => {
                return Err((rule, format!("{}: {text}", state.name(info.descriptor_pool))));
            }
        };
        // SAFETY: `pDescriptorSets` has `descriptorSetCount` elements:
        // VUID-vkAllocateDescriptorSets-pDescriptorSets-parameter.
        unsafe { write_handles(&handles, p_sets) };
        Ok(vk::Result::SUCCESS)
    });
    if result != vk::Result::SUCCESS {
        // SAFETY: VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter.
        let count = unsafe { chain::input(p_info) }.map_or(0, |info| info.descriptor_set_count);
        let nothing = vec![vk::DescriptorSet::null(); index(count)];
        // A call that fails leaves NULL in all of them.
        // SAFETY: as above.
        unsafe { write_handles(&nothing, p_sets) };
    }
    result
}

/// # Safety
///
/// `out` is NULL, or valid for writes of `handles.len()` handles.
unsafe fn write_handles(handles: &[vk::DescriptorSet], out: *mut vk::DescriptorSet) {
    let mut count = narrow(handles.len());
    if !out.is_null() {
        // SAFETY: `count` is a local; the promise of `write_handles`: `out` has space for as many handles.
        let _ = unsafe { chain::list(handles, &raw mut count, out) };
    }
}

impl DeviceState {
    fn allocate_sets(
        &mut self,
        device: &DeviceObject,
        pool: vk::DescriptorPool,
        wanted: Vec<RequestedSet>,
    ) -> Result<Vec<vk::DescriptorSet>, AllocateRefusal> {
        let Some(found) = self.descriptors.pools.get_mut(&pool) else {
            return Err(AllocateRefusal::Result(vk::Result::ERROR_UNKNOWN));
        };
        let taken = take_room(device, found, &wanted)?;
        let mut handles = Vec::with_capacity(taken.len());
        for (wanted, taken) in wanted.into_iter().zip(taken) {
            let handle = device.gpu_state.handle::<vk::DescriptorSet>();
            found.sets.insert(handle);
            let contents = Contents::new(&wanted.layout);
            let set = DescriptorSetObject {
                pool,
                layout: wanted.layout,
                layout_handle: wanted.handle,
                variable: wanted.variable,
                contents,
                version: 0,
                taken,
                in_use: 0,
            };
            self.descriptors.sets.insert(handle, set);
            handles.push(handle);
        }
        Ok(handles)
    }

    /// The rule that freeing a set to a pool breaks, if any.
    fn may_free(
        &self,
        device: &DeviceObject,
        pool: vk::DescriptorPool,
        handle: vk::DescriptorSet,
    ) -> Result<(), Broken> {
        let name = self.label(handle);
        let set = self.descriptors.sets.get(&handle);
        let set = self.known(device, handle, set, "VUID-vkFreeDescriptorSets-pDescriptorSets-00310")?;
        refuse_if!(set.pool != pool => "VUID-vkFreeDescriptorSets-pDescriptorSets-parent",
            "{name} is of {}, and not of {}", self.name(set.pool), self.name(pool));
        refuse_if!(set.in_use > 0 => "VUID-vkFreeDescriptorSets-pDescriptorSets-00309",
            "{name} is freed, and a submission still uses it");
        Ok(())
    }
}

pub(crate) unsafe extern "system" fn free(
    device: vk::Device,
    pool: vk::DescriptorPool,
    count: u32,
    p_sets: *const vk::DescriptorSet,
) -> vk::Result {
    checked(device, "vkFreeDescriptorSets", |device| {
        // SAFETY: VUID-vkFreeDescriptorSets-pDescriptorSets-00310.
        let handles = unsafe { chain::array(p_sets, count) };
        let mut state = device.state.lock();
        let name = state.label(pool);
        let found = state.descriptors.pools.get(&pool);
        let found = state.known(device, pool, found, "VUID-vkFreeDescriptorSets-descriptorPool-parameter")?;
        refuse_if!(!found.flags.contains(PoolFlags::FREE_DESCRIPTOR_SET)
            => "VUID-vkFreeDescriptorSets-descriptorPool-00312",
            "{name} was created without FREE_DESCRIPTOR_SET");
        let handles = || handles.iter().copied().filter(|handle| !handle.is_null());
        let mut seen = HandleSet::default();
        let mut right = true;
        for handle in handles() {
            let once = if seen.insert(handle) {
                state.may_free(device, pool, handle)
            } else {
                let text = format!("{} is there twice", state.name(handle));
                Err(("VUID-vkFreeDescriptorSets-pDescriptorSets-00310", text))
            };
            if let Err((rule, text)) = once {
                device.report(rule, text);
                right = false;
            }
        }
        if !right {
            return Ok(vk::Result::ERROR_VALIDATION_FAILED_EXT);
        }
        for handle in handles() {
            state.names.remove(&handle.as_raw());
            let descriptors = &mut state.descriptors;
            let set = descriptors.sets.remove(&handle);
            if let (Some(set), Some(pool)) = (set, descriptors.pools.get_mut(&pool)) {
                pool.sets.remove(handle);
                pool.freed += 1;
                pool.capacity.give_back(&set.taken);
            }
        }
        Ok(vk::Result::SUCCESS)
    })
}
