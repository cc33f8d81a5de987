//! Regions of copies between buffers and images.

use ash::vk;

use super::ListError;
use super::error::{check_multiple, check_range};
use super::staging::ImagePart;
use crate::resource::{FormatLayout, Image, format_layout};
use crate::track::Use;

#[derive(Clone)]
pub(super) struct CopyRegion {
    layout: FormatLayout,
    pub(super) layers: vk::ImageSubresourceLayers,
    offset: vk::Offset3D,
    extent: vk::Extent3D,
    /// Bytes of a row of blocks, rows of a slice, number of slices.
    pub(super) row_bytes: u64,
    pub(super) rows: u64,
    pub(super) slices: u64,
    /// True if it covers its subresources.
    whole: bool,
}

impl CopyRegion {
    pub(super) fn of(
        image: &Image,
        ImagePart { mip, layers, aspect, offset, extent }: &ImagePart,
    ) -> Result<Self, ListError> {
        let (mip, aspect, offset) = (*mip, *aspect, *offset);
        let facts = image.facts();
        if facts.samples != vk::SampleCountFlags::TYPE_1 {
            return Err(ListError::Samples { samples: facts.samples });
        }
        let unknown = ListError::Format { format: facts.format, aspect };
        let layout = format_layout(facts.format, aspect).ok_or(unknown)?;
        check_range("mips", mip.into(), u64::from(mip) + 1, facts.mips.into())?;
        check_range("layers", layers.start.into(), layers.end.into(), facts.layers.into())?;
        let size = facts.mip_extent(mip);
        let axes = [
            ("columns", offset.x, size.width, layout.block_width, extent.map(|extent| extent.width)),
            ("rows", offset.y, size.height, layout.block_height, extent.map(|extent| extent.height)),
            ("slices", offset.z, size.depth, 1, extent.map(|extent| extent.depth)),
        ];
        let mut found = [0; 3];
        for ((what, start, size, block, asked), found) in axes.into_iter().zip(&mut found) {
            let start = u64::try_from(start).unwrap_or(u64::MAX);
            let end = asked.map_or(size.into(), |asked| start.saturating_add(asked.into()));
            check_range(what, start, end, size.into())?;
            check_multiple(what, start, block.into())?;
            if end != u64::from(size) {
                check_multiple(what, end, block.into())?;
            }
            // Fits, because it is at most `size`.
            *found = u32::try_from(end - start).unwrap_or(u32::MAX);
        }
        let extent = vk::Extent3D { width: found[0], height: found[1], depth: found[2] };
        let count = layers.end - layers.start;
        Ok(Self {
            layout,
            layers: vk::ImageSubresourceLayers {
                aspect_mask: aspect,
                mip_level: mip,
                base_array_layer: layers.start,
                layer_count: count,
            },
            offset,
            extent,
            row_bytes: layout.row_bytes(extent.width),
            rows: layout.blocks(extent.width, extent.height).1.into(),
            slices: u64::from(extent.depth) * u64::from(count),
            whole: extent == size && aspect == facts.aspects,
        })
    }

    /// Returns the tightly packed size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.row_bytes.saturating_mul(self.rows).saturating_mul(self.slices)
    }

    /// Returns the copy from or to tightly packed bytes at `buffer_offset`.
    pub(super) fn copy(&self, buffer_offset: u64) -> vk::BufferImageCopy {
        vk::BufferImageCopy {
            buffer_offset,
            buffer_row_length: 0,
            buffer_image_height: 0,
            image_subresource: self.layers,
            image_offset: self.offset,
            image_extent: self.extent,
        }
    }

    pub(super) fn usage(&self) -> Use {
        if self.whole { Use::COPY_TARGET.discard() } else { Use::COPY_TARGET }
    }

    /// Returns the alignment of the offset in the buffer (VUID-vkCmdCopyBufferToImage-dstImage-07975, -07978).
    pub(super) fn alignment(&self, copy: u64) -> u64 {
        least_common_multiple(self.layout.block_bytes, copy.max(4))
    }

    /// Returns the texels as a part of the image.
    pub(super) fn part(&self) -> ImagePart {
        let layers = &self.layers;
        ImagePart {
            mip: layers.mip_level,
            layers: layers.base_array_layer..layers.base_array_layer + layers.layer_count,
            aspect: layers.aspect_mask,
            offset: self.offset,
            extent: Some(self.extent),
        }
    }

    /// Calls `f` with parts of rows of blocks that have at most `bytes` each, and with their offsets in the tightly
    /// packed bytes. The region stays whole if the queue copies only whole subresources or several slices at once. A
    /// part of a single step of the granularity may be larger.
    pub(super) fn divide(&self, granularity: vk::Extent3D, bytes: u64, mut f: impl FnMut(u64, Self)) {
        let is_whole = granularity.width == 0 || (granularity.depth > 1 && self.extent.depth > 1);
        if is_whole || self.bytes() <= bytes {
            return f(0, self.clone());
        }
        let block_height = self.layout.block_height;
        let step = granularity.height.max(1);
        let fit = u32::try_from(bytes / self.row_bytes).unwrap_or(u32::MAX);
        let height = (fit / step).max(1).saturating_mul(step).saturating_mul(block_height);
        let mut packed = 0;
        for slice in 0..self.slices {
            let layer = u32::try_from(slice / u64::from(self.extent.depth)).unwrap_or(0);
            let z = i32::try_from(slice % u64::from(self.extent.depth)).unwrap_or(0);
            let mut row = 0;
            while row < self.extent.height {
                let height = height.min(self.extent.height - row);
                let part = Self {
                    layers: vk::ImageSubresourceLayers {
                        base_array_layer: self.layers.base_array_layer + layer,
                        layer_count: 1,
                        ..self.layers
                    },
                    offset: vk::Offset3D {
                        y: self.offset.y.saturating_add_unsigned(row),
                        z: self.offset.z + z,
                        ..self.offset
                    },
                    extent: vk::Extent3D { height, depth: 1, ..self.extent },
                    rows: height.div_ceil(block_height).into(),
                    slices: 1,
                    whole: false,
                    ..self.clone()
                };
                row += height;
                let size = part.bytes();
                f(packed, part);
                packed = packed.saturating_add(size);
            }
        }
    }
}

fn least_common_multiple(a: u64, power_of_two: u64) -> u64 {
    let common = 1 << a.trailing_zeros().min(power_of_two.trailing_zeros());
    a / common * power_of_two
}

/// Checks the granularity of the queue, in blocks (VUID-vkCmdCopyBufferToImage-imageOffset-07738).
pub(super) fn check_granularity(
    size: vk::Extent3D,
    region: &CopyRegion,
    granularity: vk::Extent3D,
) -> Result<(), ListError> {
    let vk::Extent3D { width, height, depth } = granularity;
    if region.extent == size || (width, height, depth) == (1, 1, 1) {
        return Ok(());
    }
    if width == 0 {
        // The queue copies only whole subresources.
        let needed = ListError::OutOfRange {
            what: "columns",
            start: 0,
            end: region.extent.width.into(),
            size: size.width.into(),
        };
        return Err(needed);
    }
    let FormatLayout { block_width, block_height, .. } = region.layout;
    let axes = [
        ("the column", region.offset.x, region.extent.width, size.width, width * block_width),
        ("the row", region.offset.y, region.extent.height, size.height, height * block_height),
        ("the slice", region.offset.z, region.extent.depth, size.depth, depth),
    ];
    for (what, offset, count, size, step) in axes {
        let start = u64::try_from(offset).unwrap_or(0);
        check_multiple(what, start, step.into())?;
        let end = start + u64::from(count);
        if end != u64::from(size) {
            check_multiple(what, end, step.into())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn extent(width: u32, height: u32, depth: u32) -> vk::Extent3D {
        vk::Extent3D { width, height, depth }
    }

    /// The granularity counts blocks; the edge of a mip is always allowed.
    #[test]
    fn queues_copy_multiples_of_their_granularity() {
        let block = format_layout(vk::Format::ASTC_8X5_UNORM_BLOCK, vk::ImageAspectFlags::COLOR);
        let texel = format_layout(vk::Format::R8_UNORM, vk::ImageAspectFlags::COLOR);
        let check = |layout: Option<FormatLayout>, granularity, (x, y, z), extent| {
            let region = CopyRegion {
                layout: layout.expect("a known format"),
                layers: vk::ImageSubresourceLayers::default(),
                offset: vk::Offset3D { x, y, z },
                extent,
                row_bytes: 1,
                rows: 1,
                slices: 1,
                whole: false,
            };
            check_granularity(vk::Extent3D { width: 100, height: 50, depth: 9 }, &region, granularity)
        };
        let misaligned = |what, given, alignment| Err(ListError::Misaligned { what, given, alignment });
        let (all, any, some) = (extent(0, 0, 0), extent(1, 1, 1), extent(2, 4, 3));
        for (granularity, offset, size, expected) in [
            (any, (8, 5, 1), extent(8, 5, 1), Ok(())),
            (some, (16, 20, 3), extent(32, 20, 6), Ok(())),
            (some, (16, 20, 3), extent(84, 30, 6), Ok(())),
            (some, (8, 20, 3), extent(24, 20, 6), misaligned("the column", 8, 16)),
            (some, (16, 20, 3), extent(8, 20, 6), misaligned("the column", 24, 16)),
            (some, (16, 5, 3), extent(16, 35, 6), misaligned("the row", 5, 20)),
            (some, (16, 20, 3), extent(16, 15, 6), misaligned("the row", 35, 20)),
            (some, (16, 20, 1), extent(16, 20, 8), misaligned("the slice", 1, 3)),
            (some, (16, 20, 3), extent(16, 20, 4), misaligned("the slice", 7, 3)),
            (all, (0, 0, 0), extent(100, 50, 9), Ok(())),
            (
                all,
                (0, 0, 0),
                extent(96, 50, 9),
                Err(ListError::OutOfRange { what: "columns", start: 0, end: 96, size: 100 }),
            ),
        ] {
            assert_eq!(check(block, granularity, offset, size), expected, "{offset:?}, {size:?}");
        }
        // Texels are blocks of one.
        assert_eq!(check(texel, some, (2, 4, 0), extent(2, 4, 3)), Ok(()));
        assert_eq!(check(texel, some, (3, 4, 0), extent(1, 4, 3)), misaligned("the column", 3, 2));
    }

    #[test]
    fn multiples_are_common_and_least() {
        for a in 1..40_u64 {
            for shift in 0..6 {
                let power = 1 << shift;
                let expected = (1..).map(|n| n * a).find(|n| n % power == 0);
                assert_eq!(Some(least_common_multiple(a, power)), expected);
            }
        }
    }
}
