//! Mip chains.

use ash::vk;

use super::{CommandList, ListError};
use crate::resource::Image;
use crate::track::Use;

impl CommandList {
    /// Makes mips 1 and up of all layers from mip 0, each from the one before by a linear blit; on a graphics queue.
    ///
    /// # Errors
    /// [`ListError::FormatFeatures`] if the format cannot be blitted with a linear filter, as compressed and integer
    /// formats cannot: their mips have to be [uploaded](Self::upload_image). Others: nothing was recorded.
    ///
    /// # Complexity
    /// O(mips), and one question to the driver.
    #[doc(alias = "GenerateMips")]
    pub fn generate_mips(&mut self, image: &Image) -> Result<(), ListError> {
        let facts = *image.facts();
        let needs = vk::FormatFeatureFlags::BLIT_SRC
            | vk::FormatFeatureFlags::BLIT_DST
            | vk::FormatFeatureFlags::SAMPLED_IMAGE_FILTER_LINEAR;
        // SAFETY: the physical device is of the instance, and both live as long as the core.
        let properties = unsafe {
            self.core.instance.get_physical_device_format_properties(self.core.physical_device, facts.format)
        };
        let has = match facts.tiling {
            vk::ImageTiling::LINEAR => properties.linear_tiling_features,
            _ => properties.optimal_tiling_features,
        };
        if !has.contains(needs) || facts.aspects != vk::ImageAspectFlags::COLOR {
            return Err(ListError::FormatFeatures { format: facts.format, needs, has });
        }
        if facts.samples != vk::SampleCountFlags::TYPE_1 {
            return Err(ListError::Samples { samples: facts.samples });
        }
        let target = Use::BLIT_TARGET.discard();
        for mip in 1..facts.mips {
            let layers = |mip_level| vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                mip_level,
                base_array_layer: 0,
                layer_count: facts.layers,
            };
            let corners = |mip| {
                let vk::Extent3D { width, height, depth } = facts.mip_extent(mip);
                // Extents are below 2^31 on every device.
                let [x, y, z] =
                    [width, height, depth].map(|texels| i32::try_from(texels).unwrap_or(i32::MAX));
                [vk::Offset3D::default(), vk::Offset3D { x, y, z }]
            };
            let region = vk::ImageBlit {
                src_subresource: layers(mip - 1),
                src_offsets: corners(mip - 1),
                dst_subresource: layers(mip),
                dst_offsets: corners(mip),
            };
            // SAFETY: both are whole mips of one image, whose format can be blitted with this filter.
            unsafe { self.blit(image, image, &[region], vk::Filter::LINEAR, target) }?;
        }
        Ok(())
    }
}
