//! Descriptor set layouts.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;
use ash::vk::DescriptorBindingFlags as Flags;
use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
use ash::vk::DescriptorType as Type;

use super::limits::DescriptorTotals;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::descriptors::names::{is_dynamic, type_name};
use crate::objects::descriptors::{LayoutBinding, SetLayoutDescription, SetLayoutObject};
use crate::objects::entry::{checked, on_device};
use crate::objects::features::EnabledFeatures;
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::state::{DeviceObject, DeviceState};

/// The bindings of a create-info, chain included.
///
/// # Safety
///
/// 1. `info` points to a valid structure.
/// 2. Its chain is valid, and so is what the chain points to.
unsafe fn read(info: &vk::DescriptorSetLayoutCreateInfo<'_>) -> Result<SetLayoutDescription, Broken> {
    // SAFETY: 1 of `read` (VUID-VkDescriptorSetLayoutCreateInfo-pBindings-parameter).
    let given = unsafe { chain::array(info.p_bindings, info.binding_count) };
    // SAFETY: 2 of `read` (VUID-VkDescriptorSetLayoutCreateInfo-pNext-pNext).
    let flags = unsafe { chain::find::<vk::DescriptorSetLayoutBindingFlagsCreateInfo<'_>>(info.p_next) };
    let flags: &[Flags] = match flags {
        // SAFETY: VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-parameter.
        Some(flags) => unsafe { chain::array(flags.p_binding_flags, flags.binding_count) },
        None => &[],
    };
    refuse_if!(!flags.is_empty() && flags.len() != given.len()
        => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-bindingCount-03002",
        "{} binding flags, {} bindings", flags.len(), given.len());
    // SAFETY: 2 of `read`.
    let lists = unsafe { mutable_lists(info.p_next) };
    let mut layout = SetLayoutDescription { flags: info.flags, bindings: BTreeMap::new() };
    for (position, given) in given.iter().enumerate() {
        let sampled =
            given.descriptor_type == Type::SAMPLER || given.descriptor_type == Type::COMBINED_IMAGE_SAMPLER;
        // SAFETY: VUID-VkDescriptorSetLayoutBinding-descriptorType-00282: as many samplers as descriptors.
        let immutable = unsafe { chain::array(given.p_immutable_samplers, given.descriptor_count) };
        let binding = LayoutBinding {
            kind: given.descriptor_type,
            count: given.descriptor_count,
            stages: given.stage_flags,
            flags: flags.get(position).copied().unwrap_or_default(),
            // Other types ignore them.
            immutable: if sampled { immutable.to_vec() } else { Vec::new() },
            mutable: if given.descriptor_type == Type::MUTABLE_EXT {
                lists.get(position).cloned().unwrap_or_default()
            } else {
                Vec::new()
            },
        };
        refuse_if!(layout.bindings.insert(given.binding, binding).is_some()
            => "VUID-VkDescriptorSetLayoutCreateInfo-binding-00279",
            "binding {} is there twice", given.binding);
    }
    Ok(layout)
}

/// The lists of a `VkMutableDescriptorTypeCreateInfoEXT` in a chain, each sorted.
///
/// # Safety
///
/// The chain is valid, and so is what it points to.
pub(crate) unsafe fn mutable_lists(next: *const std::ffi::c_void) -> Vec<Vec<Type>> {
    // SAFETY: the promise of `mutable_lists`: the chain is valid.
    let Some(info) = (unsafe { chain::find::<vk::MutableDescriptorTypeCreateInfoEXT<'_>>(next) }) else {
        return Vec::new();
    };
    // SAFETY: VUID-VkMutableDescriptorTypeCreateInfoEXT-pMutableDescriptorTypeLists-parameter.
    let lists = unsafe {
        chain::array(info.p_mutable_descriptor_type_lists, info.mutable_descriptor_type_list_count)
    };
    let list = |list: &vk::MutableDescriptorTypeListEXT<'_>| {
        // SAFETY: VUID-VkMutableDescriptorTypeListEXT-descriptorTypeCount-04597.
        let types = unsafe { chain::array(list.p_descriptor_types, list.descriptor_type_count) };
        let mut types = types.to_vec();
        types.sort_unstable();
        types.dedup();
        types
    };
    lists.iter().map(list).collect()
}

/// The first rule that a layout breaks.
fn check(device: &DeviceObject, state: &DeviceState, layout: &SetLayoutDescription) -> Result<(), Broken> {
    let push = layout.has(LayoutFlags::PUSH_DESCRIPTOR_KHR);
    let last = layout.bindings.last_key_value().map(|(&number, _)| number);
    for (&number, binding) in &layout.bindings {
        for &sampler in &binding.immutable {
            refuse_if!(!state.descriptors.samplers.contains_key(&sampler)
                => "VUID-VkDescriptorSetLayoutBinding-descriptorType-00282",
                "binding {number}: {}", state.missing(device, sampler));
        }
        refuse_if!(push && is_dynamic(binding.kind) => "VUID-VkDescriptorSetLayoutCreateInfo-flags-00280",
            "binding {number}: a dynamic buffer in a push descriptor set");
        refuse_if!(push && binding.kind == Type::INLINE_UNIFORM_BLOCK
            => "VUID-VkDescriptorSetLayoutCreateInfo-flags-02208",
            "binding {number}: an inline uniform block in a push descriptor set");
        refuse_if!(layout.has(LayoutFlags::DESCRIPTOR_BUFFER_EXT) && is_dynamic(binding.kind)
            => "VUID-VkDescriptorSetLayoutCreateInfo-flags-08000",
            "binding {number}: a dynamic buffer in a layout for descriptor buffers");
        if binding.kind == Type::INLINE_UNIFORM_BLOCK {
            check_inline(device, number, binding)?;
        }
        if binding.kind == Type::MUTABLE_EXT {
            check_mutable(device, push, number, binding)?;
        }
        check_flags(device, layout, number, binding, last)?;
    }
    let after = |binding: &LayoutBinding| binding.flags.contains(Flags::UPDATE_AFTER_BIND);
    let dynamic = |binding: &LayoutBinding| is_dynamic(binding.kind);
    refuse_if!(layout.bindings.values().any(after) && layout.bindings.values().any(dynamic)
        => "VUID-VkDescriptorSetLayoutCreateInfo-descriptorType-03001",
        "a binding with UPDATE_AFTER_BIND and a dynamic buffer in one layout");
    if push {
        let (total, limit) = (count(layout), device.gpu_state.descriptors.limits.max_push_descriptors);
        refuse_if!(total > u64::from(limit) => "VUID-VkDescriptorSetLayoutCreateInfo-flags-00281",
            "{total} push descriptors, and maxPushDescriptors is {limit}");
        refuse_if!(!device.has("VK_KHR_push_descriptor") && device.minor < 4
            => "VUID-VkDescriptorSetLayoutCreateInfo-flags-parameter",
            "PUSH_DESCRIPTOR is set, and VK_KHR_push_descriptor is not enabled");
    }
    let buffer = layout.has(LayoutFlags::DESCRIPTOR_BUFFER_EXT);
    refuse_if!(buffer && layout.has(LayoutFlags::UPDATE_AFTER_BIND_POOL)
        => "VUID-VkDescriptorSetLayoutCreateInfo-flags-08003",
        "DESCRIPTOR_BUFFER and UPDATE_AFTER_BIND_POOL do not go together");
    Ok(())
}

fn check_inline(device: &DeviceObject, number: u32, binding: &LayoutBinding) -> Result<(), Broken> {
    let limit = device.gpu_state.descriptors.limits.max_inline_uniform_block_size;
    let bytes = binding.count;
    refuse_if!(!device.features.inline_uniform_block
        => "VUID-VkDescriptorSetLayoutBinding-descriptorType-04604",
        "binding {number}: the feature inlineUniformBlock is not enabled");
    refuse_if!(bytes % 4 != 0 => "VUID-VkDescriptorSetLayoutBinding-descriptorType-02209",
        "binding {number}: {bytes} bytes are no multiple of 4");
    refuse_if!(bytes > limit => "VUID-VkDescriptorSetLayoutBinding-descriptorType-08004",
        "binding {number}: {bytes} bytes, and maxInlineUniformBlockSize is {limit}");
    Ok(())
}

fn check_mutable(
    device: &DeviceObject,
    push: bool,
    number: u32,
    binding: &LayoutBinding,
) -> Result<(), Broken> {
    refuse_if!(!device.features.mutable_descriptor_type
        => "VUID-VkDescriptorSetLayoutCreateInfo-descriptorType-04595",
        "binding {number}: the feature mutableDescriptorType is not enabled");
    refuse_if!(push => "VUID-VkDescriptorSetLayoutCreateInfo-flags-04591",
        "binding {number}: a mutable descriptor in a push descriptor set");
    refuse_if!(binding.mutable.is_empty() => "VUID-VkDescriptorSetLayoutCreateInfo-pBindings-07303",
        "binding {number}: a mutable descriptor without a list of types");
    let never = [
        (Type::MUTABLE_EXT, "VUID-VkMutableDescriptorTypeListEXT-pDescriptorTypes-04600"),
        (Type::UNIFORM_BUFFER_DYNAMIC, "VUID-VkMutableDescriptorTypeListEXT-pDescriptorTypes-04601"),
        (Type::STORAGE_BUFFER_DYNAMIC, "VUID-VkMutableDescriptorTypeListEXT-pDescriptorTypes-04602"),
        (Type::INLINE_UNIFORM_BLOCK, "VUID-VkMutableDescriptorTypeListEXT-pDescriptorTypes-04603"),
    ];
    for (kind, rule) in never {
        refuse_if!(binding.mutable.contains(&kind) => rule,
            "binding {number}: {} cannot be what a mutable descriptor becomes", type_name(kind));
    }
    Ok(())
}

fn check_flags(
    device: &DeviceObject,
    layout: &SetLayoutDescription,
    number: u32,
    binding: &LayoutBinding,
    last: Option<u32>,
) -> Result<(), Broken> {
    let flags = binding.flags;
    let enabled = &device.features;
    let after = flags.contains(Flags::UPDATE_AFTER_BIND);
    let variable = flags.contains(Flags::VARIABLE_DESCRIPTOR_COUNT);
    let push = layout.has(LayoutFlags::PUSH_DESCRIPTOR_KHR);
    let beyond =
        Flags::UPDATE_AFTER_BIND | Flags::UPDATE_UNUSED_WHILE_PENDING | Flags::VARIABLE_DESCRIPTOR_COUNT;
    refuse_if!(after && !layout.has(LayoutFlags::UPDATE_AFTER_BIND_POOL)
        => "VUID-VkDescriptorSetLayoutCreateInfo-flags-03000",
        "binding {number}: UPDATE_AFTER_BIND in a layout without UPDATE_AFTER_BIND_POOL");
    refuse_if!(push && flags.intersects(beyond)
        => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-flags-03003",
        "binding {number}: a push descriptor can have PARTIALLY_BOUND alone");
    refuse_if!(variable && last != Some(number)
        => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-03004",
        "binding {number}: VARIABLE_DESCRIPTOR_COUNT, and it is not the last binding");
    refuse_if!(after && !enabled.update_after_bind(binding.kind) => after_rule(binding.kind),
        "binding {number}: the device cannot update this type after it is bound, or was not asked to");
    refuse_if!(flags.contains(Flags::UPDATE_UNUSED_WHILE_PENDING)
            && !enabled.descriptor_binding_update_unused_while_pending
        => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingUpdateUnusedWhilePending-03012",
        "binding {number}: the feature descriptorBindingUpdateUnusedWhilePending is not enabled");
    refuse_if!(flags.contains(Flags::PARTIALLY_BOUND) && !enabled.descriptor_binding_partially_bound
        => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingPartiallyBound-03013",
        "binding {number}: the feature descriptorBindingPartiallyBound is not enabled");
    refuse_if!(variable && !enabled.descriptor_binding_variable_descriptor_count
        => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingVariableDescriptorCount-03014",
        "binding {number}: the feature descriptorBindingVariableDescriptorCount is not enabled");
    refuse_if!(variable && is_dynamic(binding.kind)
        => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-03015",
        "binding {number}: a dynamic buffer has no variable count");
    Ok(())
}

/// The rule that UPDATE_AFTER_BIND breaks for a type if the feature for that type is not enabled.
fn after_rule(kind: Type) -> &'static str {
    match kind {
        Type::UNIFORM_BUFFER => {
            "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingUniformBufferUpdateAfterBind-03005"
        }
        Type::SAMPLER | Type::COMBINED_IMAGE_SAMPLER | Type::SAMPLED_IMAGE => {
            "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingSampledImageUpdateAfterBind-03006"
        }
        Type::STORAGE_IMAGE => {
            "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingStorageImageUpdateAfterBind-03007"
        }
        Type::STORAGE_BUFFER => {
            "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingStorageBufferUpdateAfterBind-03008"
        }
        Type::UNIFORM_TEXEL_BUFFER => {
            "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingUniformTexelBufferUpdateAfterBind-03009"
        }
        Type::STORAGE_TEXEL_BUFFER => {
            "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingStorageTexelBufferUpdateAfterBind-03010"
        }
        Type::INLINE_UNIFORM_BLOCK => {
            "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingInlineUniformBlockUpdateAfterBind-02211"
        }
        _ => "VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-None-03011",
    }
}

/// The descriptors of a layout; an inline uniform block is one.
fn count(layout: &SetLayoutDescription) -> u64 {
    let each = |binding: &LayoutBinding| match binding.kind {
        Type::INLINE_UNIFORM_BLOCK => 1,
        _ => u64::from(binding.count),
    };
    layout.bindings.values().map(each).sum()
}

/// The layout of a create-info, or the rule that it breaks.
///
/// # Safety
///
/// 1. `info` is NULL or valid.
/// 2. Its chain is valid, and so is what it and its chain point to.
unsafe fn describe(
    device: &DeviceObject,
    info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    null: &'static str,
) -> Result<SetLayoutDescription, Broken> {
    // SAFETY: 1 of `describe`.
    let info = unsafe { chain::given(info, null) }?;
    // SAFETY: 2 of `describe`.
    let layout = unsafe { read(info) }?;
    check(device, &device.state.lock(), &layout)?;
    Ok(layout)
}

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_layout: *mut vk::DescriptorSetLayout,
) -> vk::Result {
    checked(device, "vkCreateDescriptorSetLayout", |device| {
        let null = "VUID-vkCreateDescriptorSetLayout-pCreateInfo-parameter";
        // SAFETY: VUID-vkCreateDescriptorSetLayout-pCreateInfo-parameter.
        let layout = Arc::new(unsafe { describe(device, p_info, null) }?);
        refuse_if!(!supported(device, &layout).0 => "VUID-vkCreateDescriptorSetLayout-support-09582",
            "{} descriptors are more than the device supports in a set", count(&layout));
        let insert = |state: &mut DeviceState, handle, host| {
            state.descriptors.layouts.insert(handle, SetLayoutObject { layout, host });
        };
        // SAFETY: 1: VUID-vkCreateDescriptorSetLayout-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateDescriptorSetLayout-pSetLayout-parameter.
        Ok(unsafe { host::create(device, callbacks, p_layout, insert) })
    })
}

destroys! {
    pub(crate) fn destroy(layout: vk::DescriptorSetLayout) = "vkDestroyDescriptorSetLayout",
    ["descriptorSetLayout-parameter", "descriptorSetLayout-00284", "descriptorSetLayout-00285"],
    |device, state, _| Some(state.descriptors.layouts.remove(&layout)?.host)
}

pub(crate) unsafe extern "system" fn support(
    device: vk::Device,
    p_info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    p_support: *mut vk::DescriptorSetLayoutSupport<'_>,
) {
    on_device(device, "vkGetDescriptorSetLayoutSupport", |device| {
        let null = "VUID-vkGetDescriptorSetLayoutSupport-pCreateInfo-parameter";
        // SAFETY: VUID-vkGetDescriptorSetLayoutSupport-pCreateInfo-parameter.
        let described = unsafe { describe(device, p_info, null) };
        // SAFETY: VUID-vkGetDescriptorSetLayoutSupport-pSupport-parameter.
        let Some(support) = (unsafe { p_support.as_mut() }) else {
            return;
        };
        // SAFETY: VUID-VkDescriptorSetLayoutSupport-pNext-pNext.
        let variable = unsafe {
            chain::find_mut::<vk::DescriptorSetVariableDescriptorCountLayoutSupport<'_>>(support.p_next)
        };
        let (supported, most) = match described {
            Ok(layout) => supported(device, &layout),
            Err((rule, text)) => {
                device.report(rule, text);
                (false, 0)
            }
        };
        support.supported = vk::Bool32::from(supported);
        if let Some(variable) = variable {
            variable.max_variable_descriptor_count = if supported { most } else { 0 };
        }
    });
}

/// Checks whether a set of a layout can be made, and the most descriptors that its variable binding may have.
fn supported(device: &DeviceObject, layout: &SetLayoutDescription) -> (bool, u32) {
    // The limits are for sets, not for descriptor buffers.
    if layout.has(LayoutFlags::DESCRIPTOR_BUFFER_EXT) {
        return (true, layout.variable().map_or(0, |_| u32::MAX));
    }
    let limits = &device.gpu_state.descriptors.limits;
    let indexing = EnabledFeatures::supported(&device.gpu_state).descriptor_indexing;
    let mut fixed = layout.clone();
    let variable = layout.variable().map(|(number, binding)| (number, binding.kind));
    if let Some((number, _)) = variable {
        fixed.bindings.remove(&number);
    }
    let totals = DescriptorTotals::of(std::iter::once(&fixed));
    let left = u64::from(limits.max_per_set_descriptors).checked_sub(count(&fixed));
    let Some(left) = left.filter(|_| totals.first_over(limits, indexing).is_none()) else {
        return (false, 0);
    };
    let Some((_, kind)) = variable else {
        return (true, 0);
    };
    let most = if kind == Type::INLINE_UNIFORM_BLOCK {
        limits.max_inline_uniform_block_size
    } else {
        let after = layout.has(LayoutFlags::UPDATE_AFTER_BIND_POOL);
        limits.most_in_a_set(kind, after).min(u32::try_from(left).unwrap_or(u32::MAX))
    };
    // A layout that asks for more cannot be made.
    let asked = layout.variable().map_or(0, |(_, binding)| binding.count);
    (asked <= most, most)
}
