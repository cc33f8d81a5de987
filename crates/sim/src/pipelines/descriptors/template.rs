//! Descriptor update templates: where in the program's data the descriptors of a set are.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;

use super::write::{Values, Write};
use crate::facts::arithmetic::index;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::descriptors::names::{DescriptorFamily, family};
use crate::objects::descriptors::{
    PipelineLayoutDescription, SetLayoutDescription, Template, TemplateTarget,
};
use crate::objects::entry::checked;
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::host_bytes::HostBytes;
use crate::objects::state::{DeviceObject, DeviceState};

impl Template {
    pub(crate) fn is_for_set(&self, layout: &SetLayoutDescription) -> bool {
        matches!(&self.target, TemplateTarget::Set(own) if **own == *layout)
    }

    /// The point that it pushes descriptors to, if it was made to push them to this set of a compatible layout.
    pub(crate) fn pushes_to(
        &self,
        layout: &PipelineLayoutDescription,
        set: u32,
    ) -> Option<vk::PipelineBindPoint> {
        match &self.target {
            TemplateTarget::Push { point, layout: own, set: number }
                if *number == set && own.compatible(layout, set) =>
            {
                Some(*point)
            }
            _ => None,
        }
    }
}

/// The writes that a template finds in the program's data.
///
/// # Safety
///
/// `data` is not NULL, and has at the offsets of the template's entries what their types say.
pub(crate) unsafe fn read(template: &Template, data: *const c_void) -> Vec<Write> {
    let data = data.cast::<u8>();
    let entry = |entry: &vk::DescriptorUpdateTemplateEntry| {
        let count = index(entry.descriptor_count);
        let at = |position: usize| data.wrapping_add(entry.offset).wrapping_add(position * entry.stride);
        let values = match family(entry.descriptor_type) {
            DescriptorFamily::Buffer => {
                let one = |position| {
                    // SAFETY: the promise of `read` (VUID-vkUpdateDescriptorSetWithTemplate-pData-01685).
                    unsafe { at(position).cast::<vk::DescriptorBufferInfo>().read_unaligned() }
                };
                Values::Buffers((0..count).map(one).collect())
            }
            DescriptorFamily::Texels => {
                let one = |position| {
                    // SAFETY: as above.
                    unsafe { at(position).cast::<vk::BufferView>().read_unaligned() }
                };
                Values::Texels((0..count).map(one).collect())
            }
            DescriptorFamily::Image => {
                let one = |position| {
                    // SAFETY: as above.
                    unsafe { at(position).cast::<vk::DescriptorImageInfo>().read_unaligned() }
                };
                Values::Images((0..count).map(one).collect())
            }
            DescriptorFamily::Inline => {
                // SAFETY: as above; the bytes of a block lie together, whatever the stride.
                Values::Bytes(unsafe { chain::array(at(0), entry.descriptor_count) }.to_vec())
            }
            DescriptorFamily::Other => Values::Missing,
        };
        Write {
            binding: entry.dst_binding,
            element: entry.dst_array_element,
            kind: entry.descriptor_type,
            count: entry.descriptor_count,
            values,
        }
    };
    template.entries.iter().map(entry).collect()
}

/// # Safety
///
/// `info` is NULL or valid with what it points to.
unsafe fn describe(
    device: &DeviceObject,
    state: &DeviceState,
    info: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
) -> Result<Template, Broken> {
    // SAFETY: the promise of `describe`: NULL or valid.
    let info = unsafe { chain::given(info, "VUID-vkCreateDescriptorUpdateTemplate-pCreateInfo-parameter") }?;
    // SAFETY: VUID-VkDescriptorUpdateTemplateCreateInfo-pDescriptorUpdateEntries-parameter.
    let entries =
        unsafe { chain::array(info.p_descriptor_update_entries, info.descriptor_update_entry_count) };
    if entries.is_empty() {
        let text = "there are no entries".to_owned();
        let rule = "VUID-VkDescriptorUpdateTemplateCreateInfo-descriptorUpdateEntryCount-arraylength";
        return Err((rule, text));
    }
    let (target, layout) = if info.template_type == vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET {
        let handle = info.descriptor_set_layout;
        let Some(found) = state.descriptors.layouts.get(&handle) else {
            let text = state.missing(device, handle);
            return Err(("VUID-VkDescriptorUpdateTemplateCreateInfo-templateType-00350", text));
        };
        (TemplateTarget::Set(Arc::clone(&found.layout)), Arc::clone(&found.layout))
    } else {
        push_target(device, state, info)?
    };
    for entry in entries {
        refuse_if!(!layout.bindings.contains_key(&entry.dst_binding)
            => "VUID-VkDescriptorUpdateTemplateEntry-dstBinding-00354",
            "the layout has no binding {}", entry.dst_binding);
    }
    Ok(Template { entries: entries.to_vec(), target, host: HostBytes::default() })
}

fn push_target(
    device: &DeviceObject,
    state: &DeviceState,
    info: &vk::DescriptorUpdateTemplateCreateInfo<'_>,
) -> Result<(TemplateTarget, Arc<SetLayoutDescription>), Broken> {
    let handle = info.pipeline_layout;
    let Some(layout) = state.descriptors.pipeline_layout(handle) else {
        let text = state.missing(device, handle);
        return Err(("VUID-VkDescriptorUpdateTemplateCreateInfo-templateType-00352", text));
    };
    let push = vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
    match layout.set(info.set).filter(|set| set.has(push)) {
        Some(set) => {
            let target = TemplateTarget::Push {
                point: info.pipeline_bind_point,
                layout: Arc::clone(layout),
                set: info.set,
            };
            Ok((target, Arc::clone(set)))
        }
        None => {
            let text = format!("set {} of {} is not for push descriptors", info.set, state.name(handle));
            Err(("VUID-VkDescriptorUpdateTemplateCreateInfo-templateType-00353", text))
        }
    }
}

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_template: *mut vk::DescriptorUpdateTemplate,
) -> vk::Result {
    checked(device, "vkCreateDescriptorUpdateTemplate", |device| {
        // SAFETY: VUID-vkCreateDescriptorUpdateTemplate-pCreateInfo-parameter.
        let template = unsafe { describe(device, &device.state.lock(), p_info) }?;
        let insert = |state: &mut DeviceState, handle, host| {
            state.descriptors.templates.insert(handle, Template { host, ..template });
        };
        // SAFETY: 1: VUID-vkCreateDescriptorUpdateTemplate-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateDescriptorUpdateTemplate-pDescriptorUpdateTemplate-parameter.
        Ok(unsafe { host::create(device, callbacks, p_template, insert) })
    })
}

destroys! {
    pub(crate) fn destroy(template: vk::DescriptorUpdateTemplate) = "vkDestroyDescriptorUpdateTemplate",
    ["descriptorUpdateTemplate-parameter", "descriptorSetLayout-00356", "descriptorSetLayout-00357"],
    |device, state, _| Some(state.descriptors.templates.remove(&template)?.host)
}
