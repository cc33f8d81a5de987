//! Uploads by the host alone: VK_EXT_host_image_copy.

use ash::{ext, vk};
use sublet::{Allocation, AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_examples::{Context, Result};

use crate::{Source, TARGET, image_info};

/// An image that the host writes to without commands.
pub(crate) struct HostImage<'a> {
    functions: ext::host_image_copy::Device,
    allocator: &'a Allocator,
    image: vk::Image,
    memory: Option<Allocation>,
}

impl<'a> HostImage<'a> {
    /// Returns `None` if the device does not support it.
    pub(crate) fn new(context: &Context, allocator: &'a Allocator) -> Result<Option<Self>> {
        if !context.enabled().is_some_and(|enabled| enabled.host_image_copy) {
            return Ok(None);
        }
        let functions = ext::host_image_copy::Device::new(context.instance(), context.device());
        let info = image_info().usage(vk::ImageUsageFlags::HOST_TRANSFER_EXT | vk::ImageUsageFlags::SAMPLED);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let (image, memory) = unsafe { allocator.create_image(&info, &auto) }?;
        let range = vk::ImageSubresourceRange::default()
            .aspect_mask(vk::ImageAspectFlags::COLOR)
            .level_count(1)
            .layer_count(1);
        let transition = vk::HostImageLayoutTransitionInfoEXT::default()
            .image(image)
            .new_layout(vk::ImageLayout::GENERAL)
            .subresource_range(range);
        let host_image = Self { functions, allocator, image, memory: Some(memory) };
        unsafe { host_image.functions.transition_image_layout(&[transition]) }?;
        Ok(Some(host_image))
    }

    pub(crate) fn round(&self, source: &mut Source) -> Result<()> {
        let from = source.chunk(TARGET);
        let part =
            vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1);
        let regions = [vk::MemoryToImageCopyEXT {
            p_host_pointer: source.bytes[from..].as_ptr().cast(),
            image_subresource: part,
            image_extent: image_info().extent,
            ..Default::default()
        }];
        let info = vk::CopyMemoryToImageInfoEXT::default()
            .dst_image(self.image)
            .dst_image_layout(vk::ImageLayout::GENERAL)
            .regions(&regions);
        Ok(unsafe { self.functions.copy_memory_to_image(&info) }?)
    }
}

impl Drop for HostImage<'_> {
    fn drop(&mut self) {
        let memory = self.memory.take();
        memory.map(|memory| unsafe { self.allocator.destroy_image(self.image, memory) });
    }
}
