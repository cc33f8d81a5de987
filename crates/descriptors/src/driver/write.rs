//! Writes into sets, with structures or templates.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;

use ash::vk;

use super::functions::check;
use super::sets::DescriptorDriver;
use sublet::device::{DriverError, MissingFunction};
use sublet_engines::cast::narrow;

impl DescriptorDriver {
    /// `vkUpdateDescriptorSets`.
    ///
    /// # Safety
    /// The writes and copies are valid, and the device does not use the descriptors that they change, except those
    /// created with update-after-bind (VUID-vkUpdateDescriptorSets-None-03047).
    pub(crate) unsafe fn update_sets(
        &self,
        writes: &[vk::WriteDescriptorSet<'_>],
        copies: &[vk::CopyDescriptorSet<'_>],
    ) {
        // SAFETY: the device is live; the caller promises valid writes and copies, and that the device does not use
        // what they change unless that is allowed.
        unsafe {
            (self.functions.update_descriptor_sets)(
                self.device,
                narrow(writes.len()),
                writes.as_ptr(),
                narrow(copies.len()),
                copies.as_ptr(),
            );
        }
    }

    /// Returns true if the device has update templates.
    pub(crate) fn has_templates(&self) -> bool {
        self.functions.create_descriptor_update_template.is_some()
            && self.functions.destroy_descriptor_update_template.is_some()
            && self.functions.update_descriptor_set_with_template.is_some()
    }

    /// `vkCreateDescriptorUpdateTemplate`. `None` if the device has no templates.
    ///
    /// # Safety
    /// The create-info is valid (VUID-vkCreateDescriptorUpdateTemplate-pCreateInfo-parameter).
    pub(crate) unsafe fn create_template(
        &self,
        info: &vk::DescriptorUpdateTemplateCreateInfo<'_>,
    ) -> Result<Option<vk::DescriptorUpdateTemplate>, DriverError> {
        if !self.has_templates() {
            return Ok(None);
        }
        let Some(create) = self.functions.create_descriptor_update_template else { return Ok(None) };
        let mut template = vk::DescriptorUpdateTemplate::null();
        // SAFETY: the device is live; the caller promises a valid create-info.
        let result = unsafe { create(self.device, info, std::ptr::null(), &mut template) };
        check("vkCreateDescriptorUpdateTemplate", result)?;
        Ok(Some(template))
    }

    /// `vkDestroyDescriptorUpdateTemplate`.
    ///
    /// # Safety
    /// The template came from [`Self::create_template`], and is destroyed once.
    pub(crate) unsafe fn destroy_template(&self, template: vk::DescriptorUpdateTemplate) {
        let Some(destroy) = self.functions.destroy_descriptor_update_template else { return };
        // SAFETY: the caller promises a template of this device that is destroyed once.
        unsafe { destroy(self.device, template, std::ptr::null()) };
    }

    /// `vkUpdateDescriptorSetWithTemplate`.
    ///
    /// # Safety
    /// The template came from [`Self::create_template`] and fits the set's layout, `data` holds everything that it
    /// reads (VUID-vkUpdateDescriptorSetWithTemplate-pData-01685), and the device does not use the set.
    #[inline]
    pub(crate) unsafe fn update_with_template(
        &self,
        set: vk::DescriptorSet,
        template: vk::DescriptorUpdateTemplate,
        data: *const c_void,
    ) {
        let Some(update) = self.functions.update_descriptor_set_with_template else { return };
        // SAFETY: the caller promises a template that fits the set's layout, data that it can read, and a set that the
        // device does not use.
        unsafe { update(self.device, set, template, data) };
    }

    /// `vkGetBufferDeviceAddress`.
    ///
    /// # Errors
    /// If the device lacks the function.
    ///
    /// # Safety
    /// The buffer is live, was made with VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, memory is bound to it, and the
    /// feature bufferDeviceAddress is enabled (VUID-vkGetBufferDeviceAddress-bufferDeviceAddress-03324).
    pub(crate) unsafe fn buffer_address(
        &self,
        buffer: vk::Buffer,
    ) -> Result<vk::DeviceAddress, MissingFunction> {
        let missing = MissingFunction { name: "vkGetBufferDeviceAddress" };
        let query = self.functions.get_buffer_device_address.ok_or(missing)?;
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        // SAFETY: the device is live; the caller promises a live buffer with that usage, bound to memory, and that the
        // feature is enabled.
        Ok(unsafe { query(self.device, &info) })
    }
}
