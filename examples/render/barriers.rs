//! The barriers of a frame, out of the table of passes. Where images share memory, the first use of one waits for the
//! last use of every other, be it in this frame or in the one before.

use ash::vk;

use crate::attachments::Attachments;
use crate::passes::{Pass, Use};

impl Use {
    pub(crate) fn usage(self) -> vk::ImageUsageFlags {
        match self {
            Self::Depth => vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT,
            Self::Colour | Self::Blend => vk::ImageUsageFlags::COLOR_ATTACHMENT,
            Self::Sampled => vk::ImageUsageFlags::SAMPLED,
            Self::Copied => vk::ImageUsageFlags::TRANSFER_SRC,
        }
    }

    pub(crate) fn layout(self) -> vk::ImageLayout {
        match self {
            Self::Depth => vk::ImageLayout::DEPTH_STENCIL_ATTACHMENT_OPTIMAL,
            Self::Colour | Self::Blend => vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL,
            Self::Sampled => vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL,
            Self::Copied => vk::ImageLayout::TRANSFER_SRC_OPTIMAL,
        }
    }

    fn stages(self) -> vk::PipelineStageFlags {
        match self {
            Self::Depth => {
                vk::PipelineStageFlags::EARLY_FRAGMENT_TESTS | vk::PipelineStageFlags::LATE_FRAGMENT_TESTS
            }
            Self::Colour | Self::Blend => vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT,
            Self::Sampled => vk::PipelineStageFlags::FRAGMENT_SHADER,
            Self::Copied => vk::PipelineStageFlags::TRANSFER,
        }
    }

    fn reads(self) -> vk::AccessFlags {
        match self {
            Self::Depth => vk::AccessFlags::DEPTH_STENCIL_ATTACHMENT_READ,
            Self::Colour => vk::AccessFlags::empty(),
            Self::Blend => vk::AccessFlags::COLOR_ATTACHMENT_READ,
            Self::Sampled => vk::AccessFlags::SHADER_READ,
            Self::Copied => vk::AccessFlags::TRANSFER_READ,
        }
    }

    fn writes(self) -> vk::AccessFlags {
        match self {
            Self::Depth => vk::AccessFlags::DEPTH_STENCIL_ATTACHMENT_WRITE,
            Self::Colour | Self::Blend => vk::AccessFlags::COLOR_ATTACHMENT_WRITE,
            Self::Sampled | Self::Copied => vk::AccessFlags::empty(),
        }
    }
}

/// What must be done before a pass begins: one command.
#[derive(Default)]
pub(crate) struct Barrier {
    from: vk::PipelineStageFlags,
    to: vk::PipelineStageFlags,
    images: Vec<vk::ImageMemoryBarrier<'static>>,
}

impl Barrier {
    /// What `pass` has to wait for.
    pub(crate) fn before(pass: Pass, attachments: &Attachments) -> Self {
        let mut barrier = Self::default();
        for (at, attachment) in attachments.table.iter().enumerate() {
            let Some(now) = attachment.used_in(pass) else { continue };
            let earlier = attachment.uses.iter().take_while(|(other, _)| *other < pass);
            let (old, before) = match earlier.last() {
                // Reads do not wait for reads.
                Some(&(_, Use::Sampled)) if now == Use::Sampled => continue,
                Some(&(_, earlier)) => (earlier.layout(), vec![earlier]),
                // Nothing that was there is kept, and whoever had the memory is done with it.
                None => (vk::ImageLayout::UNDEFINED, attachments.last_uses(at)),
            };
            let mut writes = vk::AccessFlags::empty();
            for earlier in before {
                barrier.from |= earlier.stages();
                writes |= earlier.writes();
            }
            barrier.to |= now.stages();
            let image = vk::ImageMemoryBarrier::default()
                .src_access_mask(writes)
                .dst_access_mask(now.reads() | now.writes())
                .old_layout(old)
                .new_layout(now.layout())
                .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                .image(attachments.images[at])
                .subresource_range(vk::ImageSubresourceRange {
                    aspect_mask: attachment.aspect(),
                    level_count: 1,
                    layer_count: 1,
                    ..Default::default()
                });
            barrier.images.push(image);
        }
        barrier
    }

    pub(crate) fn record(&self, device: &ash::Device, commands: vk::CommandBuffer) {
        if self.images.is_empty() {
            return;
        }
        let none = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is being recorded, outside of a render pass, and the images are in the layouts
        // that the table says.
        unsafe { device.cmd_pipeline_barrier(commands, self.from, self.to, none, &[], &[], &self.images) };
    }
}
