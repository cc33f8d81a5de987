//! Device addresses of buffers.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::driver::LiveDevice;

impl LiveDevice {
    /// Returns true if buffers can have addresses: the program enabled the feature, and the function exists.
    pub(crate) fn has_buffer_addresses(&self) -> bool {
        self.settings.buffer_device_address && self.functions.get_buffer_device_address.is_some()
    }

    /// `vkGetBufferDeviceAddress`, if [`Self::has_buffer_addresses`].
    ///
    /// # Safety
    /// `buffer` is a live buffer of this device with `SHADER_DEVICE_ADDRESS` usage, bound to memory that was allocated
    /// for it (VUID-VkBufferDeviceAddressInfo-buffer-02600, -02601).
    pub(crate) unsafe fn buffer_address(&self, buffer: vk::Buffer) -> Option<vk::DeviceAddress> {
        let function = self.functions.get_buffer_device_address;
        let function = function.filter(|_| self.settings.buffer_device_address)?;
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        // SAFETY: the caller promises a live buffer of this device with that usage, bound to memory; the settings say
        // that the feature is enabled (VUID-vkGetBufferDeviceAddress-bufferDeviceAddress-03324).
        Some(unsafe { function(self.device, &info) })
    }
}
