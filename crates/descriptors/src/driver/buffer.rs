//! VK_EXT_descriptor_buffer: the layout and the bytes of descriptors in memory.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::sets::DescriptorDriver;
use sublet::Allocator;
use sublet::device::MissingFunction;

impl DescriptorDriver {
    /// Returns true if both belong to the same `VkDevice`.
    pub(crate) fn is_of(&self, allocator: &Allocator) -> bool {
        self.device == allocator.device_handle()
    }

    /// Returns the first function of VK_EXT_descriptor_buffer that the device lacks.
    pub(crate) fn missing_for_descriptor_buffer(&self) -> Option<MissingFunction> {
        let functions = &self.functions;
        let needed = [
            (functions.get_descriptor_set_layout_size.is_none(), "vkGetDescriptorSetLayoutSizeEXT"),
            (
                functions.get_descriptor_set_layout_binding_offset.is_none(),
                "vkGetDescriptorSetLayoutBindingOffsetEXT",
            ),
            (functions.get_descriptor.is_none(), "vkGetDescriptorEXT"),
            (functions.cmd_bind_descriptor_buffers.is_none(), "vkCmdBindDescriptorBuffersEXT"),
            (functions.cmd_set_descriptor_buffer_offsets.is_none(), "vkCmdSetDescriptorBufferOffsetsEXT"),
            (self.functions.get_buffer_device_address.is_none(), "vkGetBufferDeviceAddress"),
        ];
        needed.into_iter().find_map(|(missing, name)| missing.then_some(MissingFunction { name }))
    }

    /// `vkGetDescriptorSetLayoutSizeEXT`, in bytes; 0 if the function is missing.
    ///
    /// # Safety
    /// The layout is live, and was made with VK_DESCRIPTOR_SET_LAYOUT_CREATE_DESCRIPTOR_BUFFER_BIT_EXT
    /// (VUID-vkGetDescriptorSetLayoutSizeEXT-layout-08012).
    pub(crate) unsafe fn set_layout_size(&self, layout: vk::DescriptorSetLayout) -> u64 {
        let Some(query) = self.functions.get_descriptor_set_layout_size else { return 0 };
        let mut size = 0;
        // SAFETY: the device is live; the caller promises a live layout made for descriptor buffers.
        unsafe { query(self.device, layout, &mut size) };
        size
    }

    /// `vkGetDescriptorSetLayoutBindingOffsetEXT`, in bytes; 0 if the function is missing.
    ///
    /// # Safety
    /// Same as [`Self::set_layout_size`], and the layout has the binding.
    pub(crate) unsafe fn binding_offset(&self, layout: vk::DescriptorSetLayout, binding: u32) -> u64 {
        let Some(query) = self.functions.get_descriptor_set_layout_binding_offset else { return 0 };
        let mut offset = 0;
        // SAFETY: the device is live; the caller promises a live layout made for descriptor buffers, which has the
        // binding.
        unsafe { query(self.device, layout, binding, &mut offset) };
        offset
    }

    /// `vkGetDescriptorEXT`: writes the bytes of one descriptor. Does nothing if the function is missing.
    ///
    /// # Safety
    /// The info is valid, and `bytes` has the length that the device reports for the descriptor type
    /// (VUID-vkGetDescriptorEXT-dataSize-08125).
    pub(crate) unsafe fn descriptor_bytes(&self, info: &vk::DescriptorGetInfoEXT<'_>, bytes: &mut [u8]) {
        let Some(get) = self.functions.get_descriptor else { return };
        // SAFETY: the device is live; the caller promises a valid info and `bytes` of the length of its type.
        unsafe { get(self.device, info, bytes.len(), bytes.as_mut_ptr().cast()) };
    }
}
