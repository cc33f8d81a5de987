//! Subresources of the regions of a command.

use ash::vk;

use super::error::check_range;
use super::{CommandList, ListError};
use crate::resource::Image;
use crate::track::{Recorder, Subresources, Use, UseError};

pub(super) fn needs(image: &Image, needs: vk::ImageUsageFlags) -> Result<(), ListError> {
    let has = image.facts().usage;
    if has.contains(needs) { Ok(()) } else { Err(ListError::ImageUsage { needs, has }) }
}

/// Checks that the image has the mip, the layers and the aspects.
pub(super) fn check_layers(image: &Image, part: &vk::ImageSubresourceLayers) -> Result<(), ListError> {
    let (asked, has) = (part.aspect_mask, image.facts().all_aspects());
    if asked.is_empty() || !has.contains(asked) {
        return Err(ListError::Format { format: image.format(), aspect: asked });
    }
    let (mip, first) = (u64::from(part.mip_level), u64::from(part.base_array_layer));
    check_range("mips", mip, mip + 1, image.mips().into())?;
    let end = if part.layer_count == vk::REMAINING_ARRAY_LAYERS {
        image.layers().into()
    } else {
        first + u64::from(part.layer_count)
    };
    check_range("layers", first, end, image.layers().into())
}

fn layers(part: &vk::ImageSubresourceLayers) -> std::ops::Range<u32> {
    part.base_array_layer..part.base_array_layer.saturating_add(part.layer_count)
}

fn meets(a: &vk::ImageSubresourceLayers, b: &vk::ImageSubresourceLayers) -> bool {
    let (one, other) = (layers(a), layers(b));
    a.mip_level == b.mip_level
        && a.aspect_mask.intersects(b.aspect_mask)
        && one.start < other.end
        && other.start < one.end
}

/// Declares one use of each subresource, even if several regions overlap it.
pub(super) fn declare(
    recorder: &mut Recorder,
    image: &Image,
    regions: impl Iterator<Item = (vk::ImageSubresourceLayers, Use)> + Clone,
) -> Result<(), UseError> {
    let regions = regions.map(|(part, usage)| {
        // Planes share one state. Depth and stencil do so without separate layouts.
        let aspects = image.tracked(&Subresources::ALL.aspects(part.aspect_mask)).aspects;
        let aspect_mask = if image.core().aspects_apart { aspects } else { image.aspects() };
        (vk::ImageSubresourceLayers { aspect_mask, ..part }, usage)
    });
    for (at, (part, usage)) in regions.clone().enumerate() {
        let whole = Subresources::ALL.mips(part.mip_level..part.mip_level + 1).aspects(part.aspect_mask);
        let mut before = regions.clone().take(at).map(|(before, _)| before);
        if !before.any(|before| meets(&before, &part)) {
            recorder.use_image(image.id(), &whole.layers(layers(&part)), usage)?;
            continue;
        }
        for layer in layers(&part).start..layers(&part).end.min(image.layers()) {
            let single = vk::ImageSubresourceLayers { base_array_layer: layer, layer_count: 1, ..part };
            if !regions.clone().take(at).any(|(before, _)| meets(&before, &single)) {
                recorder.use_image(image.id(), &whole.clone().layers(layer..layer + 1), usage)?;
            }
        }
    }
    Ok(())
}

impl CommandList {
    /// Checks and keeps an image of a transfer.
    pub(super) fn transfer_image(
        &mut self,
        image: &Image,
        usage: vk::ImageUsageFlags,
        parts: impl Iterator<Item = vk::ImageSubresourceLayers>,
    ) -> Result<(), ListError> {
        self.outside()?;
        needs(image, usage)?;
        for part in parts {
            check_layers(image, &part)?;
        }
        self.keep_image(image)
    }
}
