//! The 30 bits that an engine stores for an allocation: enough to report it and to move it.
//!
//! ```text
//!   bit   29  27 26     23 22                    0
//!        | kind | alignment |        usage        |
//! ```
//!
//! No kind is all ones, so no allocation has the tag of a leased range.

use sublet_engines::Alignment;
use sublet_engines::Tag;

/// Bits for the usage of the buffer or image.
const USAGE_BITS: u32 = 23;
/// Bits for the alignment.
const ALIGNMENT_BITS: u32 = 4;
/// The lowest bit of the kind.
const KIND_SHIFT: u32 = USAGE_BITS + ALIGNMENT_BITS;
/// Alignments up to two to this power share one step.
const LEAST_LOG2: u32 = 4;
/// The step for 512 KiB and everything above.
const LAST_STEP: u32 = (1 << ALIGNMENT_BITS) - 1;
const LEAST_MASK: u64 = (1 << LEAST_LOG2) - 1;
const LAST: u64 = 1 << (LEAST_LOG2 + LAST_STEP);
/// The kinds that are linear resources: buffers, and images with linear tiling.
const LINEAR: [u32; 2] = [1, 3];

const _: () = assert!((7 << KIND_SHIFT) | ((1 << KIND_SHIFT) - 1) == Tag::MASK);

/// Packs a kind, at most 6, and a usage.
#[inline]
pub(crate) const fn tag_of(kind: u32, usage: u32) -> Tag {
    Tag((kind << KIND_SHIFT) | (usage & ((1 << USAGE_BITS) - 1)))
}

/// The kind in a tag.
pub(crate) const fn kind_of(tag: Tag) -> u32 {
    tag.0 >> KIND_SHIFT
}

/// The lowest 23 bits of the usage in a tag.
pub(crate) const fn usage_of(tag: Tag) -> u32 {
    tag.0 & ((1 << USAGE_BITS) - 1)
}

/// Adds the requested alignment to a tag. It is stored nowhere else.
#[inline]
pub(crate) const fn with_alignment(tag: Tag, alignment: Alignment) -> Tag {
    // Branchless, because every allocation runs this. Small alignments round up to the least step. The bit of `LAST`
    // bounds `trailing_zeros` for larger ones.
    let encoded = ((alignment.get() + LEAST_MASK) & !LEAST_MASK) | LAST;
    Tag(tag.0 | (encoded.trailing_zeros() - LEAST_LOG2) << USAGE_BITS)
}

/// Returns an alignment that is at least the requested one, for the memory at `offset`: 16 if less was requested. If
/// the request may exceed 512 KiB, returns the alignment of `offset`.
pub(crate) const fn alignment_of(tag: Tag, offset: u64) -> Alignment {
    let step = tag.0 >> USAGE_BITS & LAST_STEP;
    if step < LAST_STEP {
        return Alignment::from_log2(step + LEAST_LOG2);
    }
    let offered = offset.trailing_zeros();
    Alignment::from_log2(if offered < 63 { offered } else { 63 })
}

/// Returns true if the resource must share no granularity page with linear resources.
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
                assert!(tag.0 < Tag::MASK, "the tag of a lease");
                // The offset has the requested alignment.
                let encoded = alignment_of(tag, 3 << log2).get().trailing_zeros();
                assert_eq!(encoded, log2.max(4));
            }
        }
    }

    #[test]
    fn a_usage_does_not_run_into_the_alignment() {
        assert_eq!(tag_of(2, u32::MAX), Tag(2 << 27 | 0x7f_ffff));
    }

    #[test]
    fn the_start_of_a_block_is_as_aligned_as_can_be() {
        let encoded_log2 = |log2, offset| {
            alignment_of(with_alignment(tag_of(0, 0), Alignment::from_log2(log2)), offset)
                .get()
                .trailing_zeros()
        };
        assert_eq!((encoded_log2(20, 0), encoded_log2(19, 1 << 19), encoded_log2(18, 1 << 30)), (63, 19, 18));
    }

    #[test]
    fn buffers_and_linear_images_share_pages() {
        let whole: Vec<_> = (0..=4).map(|kind| needs_whole_pages(tag_of(kind, 0))).collect();
        assert_eq!(whole, [true, false, true, false, true]);
    }
}
