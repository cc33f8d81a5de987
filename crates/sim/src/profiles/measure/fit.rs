//! The tile whose arithmetic gives images the sizes that a driver gives them.
#![forbid(unsafe_code)]

use super::super::Tile;
use crate::format::{ImageDescription, tiled_size};

/// An image, and what size and alignment the driver says that it has, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Sized {
    pub(super) image: ImageDescription,
    pub(super) size: u64,
    pub(super) alignment: u64,
}

/// How many of the images are not as large with a tile as the driver has them, as far as `most`, and by how much all of
/// them are off, in millionths.
fn misses(tile: Tile, images: &[Sized], most: usize) -> Option<(usize, u64)> {
    let (mut count, mut off) = (0, 0_u64);
    for image in images {
        let size = tiled_size(tile, &image.image).unwrap_or(0);
        if size != image.size {
            count += 1;
            off = off.saturating_add(relative(size, image.size));
            if count > most {
                return None;
            }
        }
    }
    Some((count, off))
}

/// How far `size` is from `right`, in millionths of it.
fn relative(size: u64, right: u64) -> u64 {
    let millionths = u128::from(size.abs_diff(right)) * 1_000_000 / u128::from(right.max(1));
    u64::try_from(millionths).unwrap_or(u64::MAX)
}

/// How many of the images are as large with a tile as the driver has them.
pub(super) fn exact(tile: Tile, images: &[Sized]) -> usize {
    misses(tile, images, images.len()).map_or(0, |(count, _)| images.len() - count)
}

/// The best tile of all that there could be, powers of two that they are. Of equals the one with the least rounding.
///
/// # Complexity
///
/// Some 15,000 tiles are tried. Nearly all of them are out after a few images.
pub(super) fn tile(from: u64, alignment: u64, images: &[Sized]) -> Tile {
    let mut best = Tile { from, row_bytes: 1, min_rows: 1, max_rows: 1, level_bytes: 1, alignment };
    let mut least = misses(best, images, images.len()).unwrap_or((images.len(), u64::MAX));
    for level in 0..=16 {
        for row in 0..=16 {
            for low in 0..=9 {
                for high in low..=9 {
                    let tile = Tile {
                        from,
                        row_bytes: 1 << row,
                        min_rows: 1 << low,
                        max_rows: 1 << high,
                        level_bytes: 1 << level,
                        alignment,
                    };
                    if let Some(found) = misses(tile, images, least.0).filter(|found| *found < least) {
                        (best, least) = (tile, found);
                    }
                    if least.0 == 0 {
                        return best;
                    }
                }
            }
        }
    }
    best
}
