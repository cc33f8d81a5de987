//! The positions of levels and layers in the bytes of an image.
//!
//! ```text
//! image = plane, plane, ...            plane = layer, layer, ...
//! layer = level 0, level 1, ...        level = slice, slice, ...
//! slice = row, row, ...                row   = block, block, ..., padding up to whole tiles
//! ```
//!
//! Sizes saturate: an image too large for 64 bits is as large as 64 bits can say, and no memory holds it.

use ash::vk;

use super::ImageDescription;
use super::texel::{Aspect, FormatInfo, Plane};
use crate::facts::arithmetic::align_up;
use crate::facts::profiles::{Profile, Tile};

/// No image has more levels: the extents are `u32`.
const MAX_LEVELS: u32 = 32;

/// One level of one layer of one plane. Units: bytes, and blocks of texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelLayout {
    /// Its offset in the image.
    pub(crate) offset: u64,
    /// Its size.
    pub(crate) size: u64,
    /// From a row to the next.
    pub(crate) row_pitch: u64,
    /// From a slice to the next.
    pub(crate) depth_pitch: u64,
    /// From a layer to the next.
    pub(crate) array_pitch: u64,
    /// Texels across, down and deep.
    pub(crate) extent: [u32; 3],
    /// The plane's blocks.
    pub(crate) plane: Plane,
    /// How many samples of a texel lie beside each other, and above each other.
    pub(crate) samples: (u32, u32),
}

/// The layout of an image.
#[derive(Clone, Copy)]
pub(crate) struct ImageLayout<'a> {
    image: &'a ImageDescription,
    info: FormatInfo,
    tile: Tile,
}

impl<'a> ImageLayout<'a> {
    /// `None` if the driver does not know the format.
    pub(crate) fn new(profile: &Profile, image: &'a ImageDescription) -> Option<Self> {
        let info = FormatInfo::of(image.format)?;
        let compressed = info.planes()[0].block != (1, 1);
        let tile = if let Some(tile) = profile.images.compressed.filter(|_| compressed) {
            tile
        } else if image.tiling == vk::ImageTiling::OPTIMAL {
            let bytes = bare_size(&info, image);
            let tiles = &profile.images.tiles;
            *tile_of(tiles, bytes).or(tiles.first())?
        } else {
            profile.images.linear
        };
        Some(Self { image, info, tile })
    }

    /// With this tile, whatever the profile would choose.
    pub(crate) fn with_tile(tile: Tile, image: &'a ImageDescription) -> Option<Self> {
        Some(Self { image, info: FormatInfo::of(image.format)?, tile })
    }

    pub(crate) fn info(&self) -> &FormatInfo {
        &self.info
    }

    /// The alignment of the image.
    pub(crate) fn alignment(&self) -> u64 {
        self.tile.alignment
    }

    /// The size of the image.
    pub(crate) fn size(&self) -> u64 {
        (0..self.info.planes().len()).map(|plane| self.plane_size(plane)).fold(0, u64::saturating_add)
    }

    /// One aspect of one level of one layer. `None` if the image does not have it.
    pub(crate) fn level(
        &self,
        aspect: vk::ImageAspectFlags,
        level: u32,
        layer: u32,
    ) -> Option<(LevelLayout, Aspect)> {
        let aspect = self.info.aspect(aspect)?;
        if level >= self.levels() || layer >= self.image.array_layers.max(1) {
            return None;
        }
        let before: u64 = (0..aspect.plane).map(|plane| self.plane_size(plane)).fold(0, u64::saturating_add);
        let plane = self.info.planes()[aspect.plane];
        let mut offset = 0_u64;
        let mut found = self.extent_of(&plane, 0);
        for index in 0..=level {
            found = self.extent_of(&plane, index);
            if index < level {
                offset = offset.saturating_add(found.size);
            }
        }
        found.array_pitch = self.layer_size(&plane);
        found.offset =
            before.saturating_add(u64::from(layer).saturating_mul(found.array_pitch)).saturating_add(offset);
        Some((found, aspect))
    }

    fn levels(&self) -> u32 {
        self.image.mip_levels.clamp(1, MAX_LEVELS)
    }

    fn plane_size(&self, plane: usize) -> u64 {
        self.layer_size(&self.info.planes()[plane]).saturating_mul(u64::from(self.image.array_layers.max(1)))
    }

    /// All levels of one layer. With several layers, each starts at a whole tile of the first level.
    fn layer_size(&self, plane: &Plane) -> u64 {
        let bytes =
            (0..self.levels()).map(|level| self.extent_of(plane, level).size).fold(0, u64::saturating_add);
        if self.image.array_layers <= 1 {
            return bytes;
        }
        let blocks_down = self.blocks(plane, 0).1;
        round_up(bytes, self.tile.row_bytes.saturating_mul(self.tile_rows(blocks_down)))
    }

    /// Blocks of a level, across and down, with every sample counted.
    fn blocks(&self, plane: &Plane, level: u32) -> (u64, u64) {
        let extent = extent(self.image, plane, level);
        let samples = sample_grid(self.image.samples);
        (
            u64::from(extent[0].div_ceil(plane.block.0)) * u64::from(samples.0),
            u64::from(extent[1].div_ceil(plane.block.1)) * u64::from(samples.1),
        )
    }

    fn tile_rows(&self, rows: u64) -> u64 {
        rows.checked_next_power_of_two().unwrap_or(u64::MAX).clamp(self.tile.min_rows, self.tile.max_rows)
    }

    /// A level's size and pitches; its place is the caller's to fill in.
    fn extent_of(&self, plane: &Plane, level: u32) -> LevelLayout {
        let (across, down) = self.blocks(plane, level);
        let extent = extent(self.image, plane, level);
        let row_pitch = round_up(across.saturating_mul(plane.bytes), self.tile.row_bytes);
        let rows = round_up(down, self.tile_rows(down));
        let depth_pitch = row_pitch.saturating_mul(rows);
        LevelLayout {
            offset: 0,
            size: round_up(depth_pitch.saturating_mul(u64::from(extent[2])), self.tile.level_bytes),
            row_pitch,
            depth_pitch,
            array_pitch: 0,
            extent,
            plane: *plane,
            samples: sample_grid(self.image.samples),
        }
    }
}

/// The bytes of the first level of all planes without any rounding.
pub(crate) fn bare_size(info: &FormatInfo, image: &ImageDescription) -> u64 {
    info.planes().iter().map(|plane| bare(image, plane)).fold(0, u64::saturating_add)
}

/// The tile of an image of so many bytes: the last that begins there or before.
pub(crate) fn tile_of(tiles: &[Tile], bytes: u64) -> Option<&Tile> {
    tiles.iter().rfind(|tile| bytes >= tile.from)
}

/// The bytes of the first level of a plane without any rounding.
fn bare(image: &ImageDescription, plane: &Plane) -> u64 {
    let extent = extent(image, plane, 0);
    u64::from(extent[0].div_ceil(plane.block.0))
        .saturating_mul(u64::from(extent[1].div_ceil(plane.block.1)))
        .saturating_mul(plane.bytes)
        .saturating_mul(u64::from(extent[2]))
        .saturating_mul(u64::from(image.samples.as_raw().max(1)))
}

/// Texels of a level along one axis of an image that has `size` of them. Never zero.
pub(crate) fn level_size(size: u32, level: u32) -> u32 {
    size.checked_shr(level).unwrap_or(0).max(1)
}

/// Texels of a level of a plane. Never zero.
fn extent(image: &ImageDescription, plane: &Plane, level: u32) -> [u32; 3] {
    let at = |size: u32, divisor: u32| level_size(size, level).div_ceil(divisor);
    [
        at(image.extent.width, plane.divisor.0),
        at(image.extent.height, plane.divisor.1),
        at(image.extent.depth, 1),
    ]
}

/// How the samples of a texel are laid out, across and down.
fn sample_grid(samples: vk::SampleCountFlags) -> (u32, u32) {
    let log2 = samples.as_raw().max(1).trailing_zeros();
    (1 << log2.div_ceil(2), 1 << (log2 / 2))
}

fn round_up(value: u64, multiple: u64) -> u64 {
    align_up(value, multiple).unwrap_or(u64::MAX)
}
