//! Commands that bind sets, descriptors and offsets.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;

use ash::vk;

use super::sets::DescriptorDriver;
use sublet_engines::cast::narrow;

/// The bind target in a pipeline layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BindTarget {
    pub(crate) commands: vk::CommandBuffer,
    pub(crate) bind_point: vk::PipelineBindPoint,
    pub(crate) layout: vk::PipelineLayout,
    /// The first set.
    pub(crate) set: u32,
}

impl DescriptorDriver {
    /// `vkCmdBindDescriptorSets`.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, the sets fit the layout from `target.set` on
    /// (VUID-vkCmdBindDescriptorSets-pDescriptorSets-00358), and the offsets fit the sets' dynamic descriptors
    /// (-dynamicOffsetCount-00359).
    #[inline]
    pub(crate) unsafe fn cmd_bind_sets(
        &self,
        target: &BindTarget,
        sets: &[vk::DescriptorSet],
        dynamic_offsets: &[u32],
    ) {
        // SAFETY: the caller promises that this thread alone records the command buffer, and that sets and offsets fit
        // the layout.
        unsafe {
            (self.functions.cmd_bind_descriptor_sets)(
                target.commands,
                target.bind_point,
                target.layout,
                target.set,
                narrow(sets.len()),
                sets.as_ptr(),
                narrow(dynamic_offsets.len()),
                dynamic_offsets.as_ptr(),
            );
        }
    }

    /// Returns true if the device has push descriptors.
    pub(crate) fn has_push_descriptors(&self) -> bool {
        self.functions.cmd_push_descriptor_set.is_some()
    }

    /// `vkCmdPushDescriptorSetKHR`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, the layout's set is one of push descriptors
    /// (VUID-vkCmdPushDescriptorSet-set-00365), and the writes are valid (-pDescriptorWrites-06494).
    pub(crate) unsafe fn cmd_push(&self, target: &BindTarget, writes: &[vk::WriteDescriptorSet<'_>]) {
        let Some(push) = self.functions.cmd_push_descriptor_set else { return };
        // SAFETY: the caller's promise: the command buffer is being recorded by this thread alone, the layout's set is
        // one of push descriptors, and the writes are valid.
        unsafe {
            push(
                target.commands,
                target.bind_point,
                target.layout,
                target.set,
                narrow(writes.len()),
                writes.as_ptr(),
            );
        }
    }

    /// Returns true if templates can write push descriptors.
    pub(crate) fn has_push_templates(&self) -> bool {
        self.has_templates() && self.functions.cmd_push_descriptor_set_with_template.is_some()
    }

    /// `vkCmdPushDescriptorSetWithTemplateKHR`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// Same as [`Self::cmd_push`]; the template was made for push descriptors of this layout and set, and `data` holds
    /// everything that it reads (VUID-vkCmdPushDescriptorSetWithTemplate-pData-01686).
    pub(crate) unsafe fn cmd_push_with_template(
        &self,
        target: &BindTarget,
        template: vk::DescriptorUpdateTemplate,
        data: *const c_void,
    ) {
        let Some(push) = self.functions.cmd_push_descriptor_set_with_template else { return };
        // SAFETY: the caller promises that this thread alone records the command buffer, that the template was made for
        // push descriptors of this layout and set, and that `data` holds what it reads.
        unsafe { push(target.commands, template, target.layout, target.set, data) };
    }

    /// `vkCmdBindDescriptorBuffersEXT`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, and the infos are valid
    /// (VUID-vkCmdBindDescriptorBuffersEXT-pBindingInfos-parameter).
    pub(crate) unsafe fn cmd_bind_buffers(
        &self,
        commands: vk::CommandBuffer,
        infos: &[vk::DescriptorBufferBindingInfoEXT<'_>],
    ) {
        let Some(bind) = self.functions.cmd_bind_descriptor_buffers else { return };
        // SAFETY: the caller's promise: the command buffer is being recorded by this thread alone, and the infos are
        // valid.
        unsafe { bind(commands, narrow(infos.len()), infos.as_ptr()) };
    }

    /// `vkCmdSetDescriptorBufferOffsetsEXT` for sets from `target.set` on. Does nothing if the function is missing.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, both slices have the same length, and their content
    /// is valid (VUID-vkCmdSetDescriptorBufferOffsetsEXT-pOffsets-08061, -pBufferIndices-08065).
    #[inline]
    pub(crate) unsafe fn cmd_set_offsets(&self, target: &BindTarget, buffers: &[u32], offsets: &[u64]) {
        let Some(set_offsets) = self.functions.cmd_set_descriptor_buffer_offsets else { return };
        debug_assert_eq!(buffers.len(), offsets.len());
        // SAFETY: the caller's promise: the command buffer is being recorded by this thread alone, both slices have the
        // same length, and their content is valid.
        unsafe {
            set_offsets(
                target.commands,
                target.bind_point,
                target.layout,
                target.set,
                narrow(offsets.len()),
                buffers.as_ptr(),
                offsets.as_ptr(),
            );
        }
    }
}
