//! A large attachment: the driver prefers dedicated memory for it.

use ash::vk;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};

use crate::kept::{Kept, image};
use sublet_examples::{Result, bytes, note};

pub(crate) fn run(kept: &mut Kept<'_>) -> Result<()> {
    note("DEDICATED_MEMORY asks for a VkDeviceMemory per resource; drivers that prefer one get it unasked.");
    let target = image(1920, 1080, vk::Format::R16G16B16A16_SFLOAT)
        .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::SAMPLED);
    let info = AllocationCreateInfo {
        flags: AllocationCreateFlags::DEDICATED_MEMORY,
        // With VK_EXT_memory_priority, this stays in video memory when memory is scarce.
        priority: 1.0,
        name: Some("scene colour"),
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    // SAFETY: the create-info is valid, and every Vulkan device can render to this format.
    let (image, allocation) = unsafe { kept.allocator.create_image(&target, &info) }?;
    let about = kept.allocator.allocation_info(&allocation)?;
    note(&format!(
        "  \"{}\", 1920 x 1080, 4 x f16: {} in type {}, dedicated: {}, offset {} of a memory of {}",
        about.name.as_deref().unwrap_or("(unnamed)"),
        bytes(about.size),
        about.memory_type_index,
        about.dedicated,
        about.offset,
        bytes(about.memory_size),
    ));
    kept.images.push((image, allocation));
    Ok(())
}
