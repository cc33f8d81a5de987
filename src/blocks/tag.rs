//! What an engine carries for an allocation, in 30 bits: enough to report it, and to move it.
//!
//! ```text
//!   bit   29  27 26     23 22                    0
//!        | kind | alignment |        usage        |
//! ```
//!
//! No kind is all ones, so that no allocation has the tag of a loan.
#![forbid(unsafe_code)]

use crate::base::align::Alignment;
use crate::metadata::Tag;

/// Bits for the usage of the buffer or image.
const USAGE_BITS: u32 = 23;
/// Bits for the alignment.
const ALIGNMENT_BITS: u32 = 4;
/// Where the kind begins.
const KIND_SHIFT: u32 = USAGE_BITS + ALIGNMENT_BITS;
/// Alignments up to 2 to the power of this are not told apart.
const LEAST_LOG2: u32 = 4;
/// The step that stands for 512 KiB and everything above.
const LAST_STEP: u32 = (1 << ALIGNMENT_BITS) - 1;
const LEAST_MASK: u64 = (1 << LEAST_LOG2) - 1;
const LAST: u64 = 1 << (LEAST_LOG2 + LAST_STEP);
/// The kinds that are linear resources: buffers, and images with linear tiling.
const LINEAR: [u32; 2] = [1, 3];

const _: () = assert!((7 << KIND_SHIFT) | ((1 << KIND_SHIFT) - 1) == Tag::MASK);

/// Kind, up to 6, and usage.
#[inline]
pub(crate) const fn tag_of(kind: u32, usage: u32) -> Tag {
    Tag((kind << KIND_SHIFT) | (usage & ((1 << USAGE_BITS) - 1)))
}

/// The kind in a tag.
pub(crate) const fn kind_of(tag: Tag) -> u32 {
    tag.0 >> KIND_SHIFT
}

/// The usage in a tag: the lowest 23 bits of it.
pub(crate) const fn usage_of(tag: Tag) -> u32 {
    tag.0 & ((1 << USAGE_BITS) - 1)
}

/// A tag that also says at which alignment the memory was asked for: nobody else keeps it.
#[inline]
pub(crate) const fn with_alignment(tag: Tag, alignment: Alignment) -> Tag {
    // As bits, which every allocation pays for: the least alignment is rounded up to, and the last step is a bit that
    // comes before all above it.
    let told = ((alignment.get() + LEAST_MASK) & !LEAST_MASK) | LAST;
    Tag(tag.0 | (told.trailing_zeros() - LEAST_LOG2) << USAGE_BITS)
}

/// An alignment that is not below the one that the memory at `offset` was asked for with: 16 where it was less, and
/// where it may be above 512 KiB, the one that `offset` has.
pub(crate) const fn alignment_of(tag: Tag, offset: u64) -> Alignment {
    let step = tag.0 >> USAGE_BITS & LAST_STEP;
    if step < LAST_STEP {
        return Alignment::from_log2(step + LEAST_LOG2);
    }
    let offered = offset.trailing_zeros();
    Alignment::from_log2(if offered < 63 { offered } else { 63 })
}

/// Whether it is one of those that share no granularity page with linear resources.
#[inline]
pub(crate) fn needs_whole_pages(tag: Tag) -> bool {
    !LINEAR.contains(&(tag.0 >> KIND_SHIFT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        for kind in 0..=6 {
            for log2 in 0..64 {
                let tag = with_alignment(tag_of(kind, 0x7f_ffff), Alignment::from_log2(log2));
                assert_eq!((kind_of(tag), usage_of(tag)), (kind, 0x7f_ffff));
                assert!(tag.0 < Tag::MASK, "the tag of a loan");
                // At an offset that the alignment has given.
                let told = alignment_of(tag, 3 << log2).get().trailing_zeros();
                assert_eq!(told, log2.max(4));
            }
        }
    }

    #[test]
    fn a_usage_does_not_run_into_the_alignment() {
        assert_eq!(tag_of(2, u32::MAX), Tag(2 << 27 | 0x7f_ffff));
    }

    #[test]
    fn the_start_of_a_block_is_as_aligned_as_can_be() {
        let told = |log2, offset| {
            alignment_of(with_alignment(tag_of(0, 0), Alignment::from_log2(log2)), offset)
                .get()
                .trailing_zeros()
        };
        assert_eq!((told(20, 0), told(19, 1 << 19), told(18, 1 << 30)), (63, 19, 18));
    }

    #[test]
    fn buffers_and_linear_images_share_pages() {
        let whole: Vec<_> = (0..=4).map(|kind| needs_whole_pages(tag_of(kind, 0))).collect();
        assert_eq!(whole, [true, false, true, false, true]);
    }
}
