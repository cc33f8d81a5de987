//! `vkUpdateDescriptorSets`, and the same through a template.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::DescriptorBindingFlags as Flags;

use super::write::WriteTarget;
use super::{copy, template, write};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::descriptors::contents::ContentsChange;
use crate::objects::entry::{checked, on_device};
use crate::objects::state::{DeviceObject, DeviceState};

pub(crate) unsafe extern "system" fn update(
    device: vk::Device,
    write_count: u32,
    p_writes: *const vk::WriteDescriptorSet<'_>,
    copy_count: u32,
    p_copies: *const vk::CopyDescriptorSet<'_>,
) {
    on_device(device, "vkUpdateDescriptorSets", |device| {
        // SAFETY: VUID-vkUpdateDescriptorSets-pDescriptorWrites-parameter.
        let writes = unsafe { chain::array(p_writes, write_count) };
        // SAFETY: VUID-vkUpdateDescriptorSets-pDescriptorCopies-parameter.
        let copies = unsafe { chain::array(p_copies, copy_count) };
        let mut state = device.state.lock();
        // Writes are checked independently of one another. If one breaks a rule, nothing is written.
        let mut all = Vec::with_capacity(writes.len());
        for info in writes {
            // SAFETY: VUID-vkUpdateDescriptorSets-pDescriptorWrites-parameter: valid structures, with what goes with
            // their types.
            let write = unsafe { write::read(info) };
            match set_changes(device, &state, info.dst_set, &write) {
                Ok(changes) => all.push((info.dst_set, changes)),
                Err((rule, text)) => device.report(rule, text),
            }
        }
        if all.len() < writes.len() {
            return;
        }
        for (set, changes) in all {
            state.apply(set, &changes);
        }
        for info in copies {
            let changes = copy::changes(device, &state, info).and_then(|changes| {
                let rule = "VUID-VkCopyDescriptorSet-dstSet-parameter";
                updatable(device, &state, info.dst_set, &changes, rule)?;
                Ok(changes)
            });
            match changes {
                Ok(changes) => state.apply(info.dst_set, &changes),
                Err((rule, text)) => device.report(rule, text),
            }
        }
    });
}

/// The changes that a write makes to a set, or the rule that it breaks.
fn set_changes(
    device: &DeviceObject,
    state: &DeviceState,
    handle: vk::DescriptorSet,
    write: &write::Write,
) -> Result<Vec<ContentsChange>, Broken> {
    let set = state.descriptors.sets.get(&handle);
    let set = state.known(device, handle, set, "VUID-VkWriteDescriptorSet-dstSet-00320")?;
    let changes = write::changes(device, state, WriteTarget::set(set), write)
        .map_err(|(rule, text)| (rule, format!("{}: {text}", state.name(handle))))?;
    updatable(device, state, handle, &changes, "VUID-VkWriteDescriptorSet-dstSet-00320")?;
    Ok(changes)
}

/// Checks whether a set may change now: its layout is alive, and no submission reads what changes.
fn updatable(
    device: &DeviceObject,
    state: &DeviceState,
    handle: vk::DescriptorSet,
    changes: &[ContentsChange],
    layout_rule: &'static str,
) -> Result<(), Broken> {
    let Some(set) = state.descriptors.sets.get(&handle) else {
        return Ok(());
    };
    if !state.descriptors.layouts.contains_key(&set.layout_handle) {
        let layout = state.name(set.layout_handle);
        let text = format!("{} is updated, and its layout {layout} is destroyed", state.name(handle));
        return Err((layout_rule, text));
    }
    if set.in_use == 0 {
        return Ok(());
    }
    for change in changes {
        let Some(binding) = set.layout.bindings.get(&change.binding()) else {
            continue;
        };
        let number = change.binding();
        let name = state.label(handle);
        refuse_if!(!binding.flags.intersects(Flags::UPDATE_AFTER_BIND | Flags::UPDATE_UNUSED_WHILE_PENDING)
            => "VUID-vkUpdateDescriptorSets-None-03047",
            "{name}, binding {number}, is updated, and a submission still uses it");
        if !binding.flags.contains(Flags::UPDATE_UNUSED_WHILE_PENDING) {
            let text = format!(
                "{name}, binding {number}, is updated after a submission that still uses it: \
                 UPDATE_AFTER_BIND ends there, without UPDATE_UNUSED_WHILE_PENDING"
            );
            device.report("SUBLET-update-while-pending", text);
            return Ok(());
        }
    }
    Ok(())
}

impl DeviceState {
    fn apply(&mut self, handle: vk::DescriptorSet, changes: &[ContentsChange]) {
        self.descriptors.versions += 1;
        let version = self.descriptors.versions;
        let Some(set) = self.descriptors.sets.get_mut(&handle) else {
            return;
        };
        let tolerant = Flags::UPDATE_AFTER_BIND | Flags::UPDATE_UNUSED_WHILE_PENDING;
        let harmless = changes.iter().all(|change| {
            let binding = set.layout.bindings.get(&change.binding());
            binding.is_some_and(|binding| binding.flags.intersects(tolerant))
        });
        if !harmless {
            set.version = version;
        }
        set.contents.apply(changes);
    }
}

pub(crate) unsafe extern "system" fn with_template(
    device: vk::Device,
    set: vk::DescriptorSet,
    template: vk::DescriptorUpdateTemplate,
    p_data: *const c_void,
) {
    checked(device, "vkUpdateDescriptorSetWithTemplate", |device| {
        let mut state = device.state.lock();
        let rule = "VUID-vkUpdateDescriptorSetWithTemplate-descriptorUpdateTemplate-parameter";
        let found = state.known(device, template, state.descriptors.templates.get(&template), rule)?;
        refuse_if!(p_data.is_null() => "VUID-vkUpdateDescriptorSetWithTemplate-pData-01685",
            "{}: pData is NULL", state.name(template));
        let rule = "VUID-vkUpdateDescriptorSetWithTemplate-descriptorSet-parameter";
        let target = state.known(device, set, state.descriptors.sets.get(&set), rule)?;
        refuse_if!(!found.is_for_set(&target.layout)
            => "VUID-vkUpdateDescriptorSetWithTemplate-descriptorSet-00358",
            "{} is not for the layout of {}", state.name(template), state.name(set));
        // SAFETY: VUID-vkUpdateDescriptorSetWithTemplate-pData-01685.
        let writes = unsafe { template::read(found, p_data) };
        let mut all = Vec::new();
        for write in &writes {
            all.extend(set_changes(device, &state, set, write)?);
        }
        state.apply(set, &all);
        Ok(())
    });
}
