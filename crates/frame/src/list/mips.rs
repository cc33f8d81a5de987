//! Generation of mip chains.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::Arc;

use ash::vk;

use super::downsample::{self, GROUP, MipSets};
use super::part;
use super::{CommandList, ListError};
use crate::resource::{Image, ViewInfo};
use crate::track::{Subresources, Use};

const BLITTED: vk::ImageUsageFlags = vk::ImageUsageFlags::from_raw(
    vk::ImageUsageFlags::TRANSFER_SRC.as_raw() | vk::ImageUsageFlags::TRANSFER_DST.as_raw(),
);
const DISPATCHED: vk::ImageUsageFlags = vk::ImageUsageFlags::from_raw(
    vk::ImageUsageFlags::SAMPLED.as_raw() | vk::ImageUsageFlags::STORAGE.as_raw(),
);

impl CommandList {
    /// Generates mips 1 and up of all layers, each from the previous mip. Uses linear blits, or a compute shader with
    /// the same result if blits are not possible.
    ///
    /// | | blits | shader |
    /// |---|---|---|
    /// | queue | graphics | compute |
    /// | usage of the image | `TRANSFER_SRC` and `TRANSFER_DST` | `SAMPLED` and `STORAGE` |
    /// | format | color that can be blitted and filtered | four components of 8 bits (`UNORM`, `SNORM`), or of 16 or 32 (`SFLOAT`), or one of 32 (`SFLOAT`) |
    /// | image | any | two-dimensional, including layers and cubes |
    ///
    /// After the shader, the list rebinds the compute pipeline of [`bind_pipeline`](Self::bind_pipeline) and its
    /// descriptors. A pipeline bound within [`raw`](Self::raw) is not rebound. On a simulated GPU the kernel is
    /// `sublet_mips`.
    ///
    /// # Errors
    /// See [`ListError`]: the missing queue flag, usage or [`ListError::FormatFeatures`] for blits, or for the shader
    /// if blits are impossible. [Upload](Self::upload_image) the mips of other formats, for example compressed and
    /// integer ones. Nothing was recorded.
    ///
    /// # Complexity
    /// O(mips), and one query of the driver. The shader creates a descriptor pool in each call.
    #[doc(alias = "GenerateMips")]
    pub fn generate_mips(&mut self, image: &Image) -> Result<(), ListError> {
        self.outside()?;
        let facts = *image.facts();
        // SAFETY: the physical device belongs to the instance, and both outlive the core.
        let properties = unsafe {
            self.core.instance.get_physical_device_format_properties(self.core.physical_device, facts.format)
        };
        let has = match facts.tiling {
            vk::ImageTiling::LINEAR => properties.linear_tiling_features,
            _ => properties.optimal_tiling_features,
        };
        if facts.samples != vk::SampleCountFlags::TYPE_1 {
            return Err(ListError::Samples { samples: facts.samples });
        }
        let features = |needs| {
            let enough = has.contains(needs) && facts.aspects == vk::ImageAspectFlags::COLOR;
            if enough { Ok(()) } else { Err(ListError::FormatFeatures { format: facts.format, needs, has }) }
        };
        let filtered = vk::FormatFeatureFlags::BLIT_SRC
            | vk::FormatFeatureFlags::BLIT_DST
            | vk::FormatFeatureFlags::SAMPLED_IMAGE_FILTER_LINEAR;
        let blits = self
            .needs_queue(vk::QueueFlags::GRAPHICS)
            .and_then(|()| features(filtered))
            .and_then(|()| part::needs(image, BLITTED));
        let Err(missing) = blits else { return self.blit_mips(image) };
        if facts.image_type != vk::ImageType::TYPE_2D || !downsample::is_known(facts.format) {
            return Err(missing);
        }
        let stored = vk::FormatFeatureFlags::SAMPLED_IMAGE | vk::FormatFeatureFlags::STORAGE_IMAGE;
        let dispatches = self
            .needs_queue(vk::QueueFlags::COMPUTE)
            .and_then(|()| features(stored))
            .and_then(|()| part::needs(image, DISPATCHED));
        match dispatches {
            Ok(()) => self.dispatch_mips(image),
            Err(_) if matches!(missing, ListError::ImageUsage { .. }) => Err(missing),
            Err(other) => Err(other),
        }
    }

    fn blit_mips(&mut self, image: &Image) -> Result<(), ListError> {
        let facts = *image.facts();
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
            // SAFETY: both are whole mips of one image, and its format supports blits with this filter.
            unsafe { self.blit(image, image, &[region], vk::Filter::LINEAR, target) }?;
        }
        Ok(())
    }

    fn dispatch_mips(&mut self, image: &Image) -> Result<(), ListError> {
        let facts = *image.facts();
        if facts.mips < 2 {
            return Ok(());
        }
        // Keeping the image first pins its current views.
        self.keep_image(image)?;
        let core = Arc::clone(&self.core);
        let device = core.api.device();
        let view = |mip| {
            let part = Subresources::ALL.mips(mip..mip + 1);
            let (view_type, format) = (vk::ImageViewType::TYPE_2D_ARRAY, facts.format);
            // SAFETY: every two-dimensional image, including cubes, supports an array view of its layers.
            unsafe { image.view_with(&ViewInfo { view_type, format, part }) }
        };
        let views = (0..facts.mips).map(view).collect::<Result<Vec<_>, _>>();
        let views = views.map_err(|error| self.core.or_lost(ListError::View(error)))?;
        let pairs: Vec<_> = views.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        let (pipeline, layout) = {
            let mut made = core.downsampler.lock();
            // SAFETY: the device belongs to the core and outlives it.
            let pipeline = unsafe { made.pipeline(device, facts.format) }
                .map_err(|error| core.or_lost(ListError::Driver(error)))?;
            (pipeline, made.layout)
        };
        // SAFETY: the pipeline was created above, and the list keeps the image with its views.
        let (pool, sets) =
            unsafe { MipSets::new(&core, &pairs) }.map_err(|error| core.or_lost(ListError::Driver(error)))?;
        self.keep(pool);
        let stages = vk::PipelineStageFlags2::COMPUTE_SHADER;
        let (commands, point) = (self.commands(), vk::PipelineBindPoint::COMPUTE);
        for (mip, set) in (1..).zip(sets) {
            let part = |mip| Subresources::ALL.mips(mip..mip + 1);
            self.declare(|recorder| {
                recorder.use_image(image.id(), &part(mip - 1), Use::sampled(stages))?;
                recorder.use_image(image.id(), &part(mip), Use::storage_write(stages).discard())
            })?;
            self.flush()?;
            let vk::Extent3D { width, height, .. } = facts.mip_extent(mip);
            // SAFETY: the list is being recorded for a compute queue; the pipeline lives as long as the core.
            unsafe { device.cmd_bind_pipeline(commands, point, pipeline) };
            // SAFETY: the set matches the layout, and is kept until the list is done.
            unsafe { device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]) };
            let [x, y] = [width, height].map(|texels| texels.div_ceil(GROUP));
            // SAFETY: the barriers have transitioned both mips to the layouts of the set. Image sizes keep the number
            // of groups within the limits of every device.
            unsafe { device.cmd_dispatch(commands, x, y, facts.layers) };
        }
        self.rebind_compute();
        Ok(())
    }
}
