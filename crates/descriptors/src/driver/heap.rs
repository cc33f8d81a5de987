//! VK_EXT_descriptor_heap: writes descriptors to host memory, binds heaps, pushes data.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::functions::{HeapFunctions, check};
use super::sets::DescriptorDriver;
use sublet::device::DriverError;
use sublet_engines::cast::narrow;
use sublet_vk::descriptor_heap as ffi;

impl DescriptorDriver {
    /// The functions; `None` if the extension is not enabled.
    fn heap(&self) -> Option<&HeapFunctions> {
        self.heap.as_ref()
    }

    /// `vkWriteResourceDescriptorsEXT`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// Both slices have the same non-zero length, the infos are valid (VUID-VkResourceDescriptorInfoEXT-type-11210 and
    /// those that follow), and each range is large enough for a descriptor of its type
    /// (VUID-vkWriteResourceDescriptorsEXT-size-11207).
    pub(crate) unsafe fn write_resources(
        &self,
        infos: &[ffi::ResourceDescriptorInfoEXT],
        to: &[ffi::HostAddressRangeEXT],
    ) -> Result<(), DriverError> {
        debug_assert_eq!(infos.len(), to.len());
        let Some(functions) = self.heap() else { return Ok(()) };
        // SAFETY: the device is live, and the feature is enabled because the functions are present
        // (VUID-vkWriteResourceDescriptorsEXT-descriptorHeap-11206). The rest is the caller's promise.
        let result = unsafe {
            (functions.write_resource_descriptors)(
                self.device,
                narrow(infos.len()),
                infos.as_ptr(),
                to.as_ptr(),
            )
        };
        check("vkWriteResourceDescriptorsEXT", result)
    }

    /// `vkWriteSamplerDescriptorsEXT`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// Both slices have the same non-zero length, the infos are valid, without conversions
    /// (VUID-vkWriteSamplerDescriptorsEXT-pSamplers-11204), and each range is large enough for a descriptor
    /// (-size-11203).
    pub(crate) unsafe fn write_samplers(
        &self,
        infos: &[vk::SamplerCreateInfo<'_>],
        to: &[ffi::HostAddressRangeEXT],
    ) -> Result<(), DriverError> {
        debug_assert_eq!(infos.len(), to.len());
        let Some(functions) = self.heap() else { return Ok(()) };
        // SAFETY: as in `write_resources`.
        let result = unsafe {
            (functions.write_sampler_descriptors)(
                self.device,
                narrow(infos.len()),
                infos.as_ptr(),
                to.as_ptr(),
            )
        };
        check("vkWriteSamplerDescriptorsEXT", result)
    }

    /// `vkCmdBindResourceHeapEXT`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, and the info is valid
    /// (VUID-vkCmdBindResourceHeapEXT-pBindInfo-11232 and those that follow).
    pub(crate) unsafe fn cmd_bind_resource_heap(
        &self,
        commands: vk::CommandBuffer,
        info: &ffi::BindHeapInfoEXT,
    ) {
        let Some(functions) = self.heap() else { return };
        // SAFETY: the caller's promise.
        unsafe { (functions.cmd_bind_resource_heap)(commands, info) };
    }

    /// `vkCmdBindSamplerHeapEXT`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// Same as [`Self::cmd_bind_resource_heap`] (VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11223 and those that follow).
    pub(crate) unsafe fn cmd_bind_sampler_heap(
        &self,
        commands: vk::CommandBuffer,
        info: &ffi::BindHeapInfoEXT,
    ) {
        let Some(functions) = self.heap() else { return };
        // SAFETY: the caller's promise.
        unsafe { (functions.cmd_bind_sampler_heap)(commands, info) };
    }

    /// `vkCmdPushDataEXT`. Does nothing if the function is missing.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone. Offset and length are multiples of 4
    /// (VUID-VkPushDataInfoEXT-offset-11418, -data-11419), and the end is within `maxPushDataSize` (-offset-11243).
    pub(crate) unsafe fn cmd_push_data(&self, commands: vk::CommandBuffer, offset: u32, data: &[u8]) {
        let Some(functions) = self.heap() else { return };
        let data = ffi::HostAddressRangeConstEXT { address: data.as_ptr().cast(), size: data.len() };
        let info = ffi::PushDataInfoEXT { offset, data, ..Default::default() };
        // SAFETY: the caller's promise.
        unsafe { (functions.cmd_push_data)(commands, &info) };
    }
}
