//! Blocks of which less than a quarter is in use.

use super::finding::{FindingKind, FindingObject, MemoryFinding};
use crate::cast::widen;
use crate::words::{bytes, count};

/// Smaller blocks are not worth a move.
const MIN_BLOCK: u64 = 1 << 20;
/// The most allocations or resources that a finding names as what keeps a block alive.
pub(super) const MAX_KEEPERS: usize = 3;

/// Returns true for a block of `size` bytes that is worth a move, and of which too few bytes are in use.
pub(super) fn is_nearly_empty(size: u64, used: u64) -> bool {
    size >= MIN_BLOCK && used < size / 4
}

/// Returns the finding of these blocks, each with its free bytes.
pub(super) fn finding(blocks: impl Iterator<Item = (u64, FindingObject)>) -> Option<MemoryFinding> {
    let (mut free, mut objects) = (0_u64, Vec::new());
    for (unused, block) in blocks {
        free = free.saturating_add(unused);
        objects.push(block);
    }
    let blocks = count(widen(objects.len()), "block");
    let text = format!("{blocks} with less than a quarter in use: {} free.", bytes(free));
    (!objects.is_empty()).then(|| MemoryFinding::new(FindingKind::NearlyEmpty, free, text, objects))
}
