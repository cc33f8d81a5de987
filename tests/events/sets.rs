//! Events of descriptor pools and sets.

use ash::vk;
use sublet::sim::Gpu;
use sublet_descriptors::{DescriptorDevice, DescriptorDeviceCreateInfo, SetLayout};

/// Creates a device and a layout of one uniform buffer. The caller destroys the layout's handle.
pub(crate) fn device_and_layout(gpu: &Gpu) -> (DescriptorDevice, SetLayout) {
    // SAFETY: instance and device outlive the objects created from the value.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(gpu)) }.unwrap();
    let binding = vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
        .descriptor_count(1)
        .stage_flags(vk::ShaderStageFlags::COMPUTE);
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(std::slice::from_ref(&binding));
    // SAFETY: the create-info is valid.
    let handle = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
    // SAFETY: the layout was created from this create-info.
    let layout = unsafe { SetLayout::new(handle, &info) }.unwrap();
    (device, layout)
}
