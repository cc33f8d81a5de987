//! Finds the tile that gives images the sizes that a driver reports.

use super::super::Tile;
use crate::facts::format::{ImageDescription, tiled_size};

/// An image, with the size and the alignment that the driver reports, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Sized {
    pub(crate) image: ImageDescription,
    pub(crate) size: u64,
    pub(crate) alignment: u64,
}

/// The count of images, up to `most`, whose size with a tile differs from the driver's, and the sum of the errors in
/// millionths.
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

/// The count of images that have the driver's size with a tile.
pub(crate) fn exact(tile: Tile, images: &[Sized]) -> usize {
    misses(tile, images, images.len()).map_or(0, |(count, _)| images.len() - count)
}

/// The best of all possible tiles, whose sides are powers of two. Among equals, the one that rounds least.
///
/// # Complexity
///
/// It tries some 15,000 tiles, and drops nearly all of them after a few images.
pub(crate) fn tile(from: u64, alignment: u64, images: &[Sized]) -> Tile {
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
