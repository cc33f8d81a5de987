//! A segment: the part of a mapped file that one thread writes.
#![expect(unsafe_code, reason = "writes into a mapped file")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::MmapRaw;
use sublet::private::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, narrow};

/// A segment and the mapping that contains it. The mapping ends with its last segment.
///
/// I1: `offset + SEGMENT_BYTES` is within the mapping, `offset` is a multiple of `SEGMENT_BYTES`, and no other segment
/// has this offset in this mapping. Only `take` of the file creates segments.
#[derive(Debug)]
pub(super) struct WatchSegment {
    map: Arc<MmapRaw>,
    offset: usize,
}

impl WatchSegment {
    /// Takes the segment at a multiple of `SEGMENT_BYTES`. `None` if the mapping ends before it. The caller ensures
    /// that no other segment has the same offset.
    pub(super) fn new(map: &Arc<MmapRaw>, offset: usize) -> Option<Self> {
        let end = offset.checked_add(SEGMENT_BYTES)?;
        (end <= map.len() && offset % SEGMENT_BYTES == 0).then(|| Self { map: Arc::clone(map), offset })
    }

    /// Copies bytes to a position in the segment. Bytes beyond its end are not written.
    #[inline]
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= SEGMENT_BYTES);
        debug_assert!(fits, "a record crosses the end of its segment");
        if !fits {
            return;
        }
        // SAFETY: I1 and the check above: the position is within the mapping.
        let place = unsafe { self.map.as_mut_ptr().add(self.offset + at) };
        // SAFETY: the range is within the mapping, `bytes` is memory of this process, and by I1 and `&mut self` no
        // other thread writes the range. Other processes may read it, which does not concern this one.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Publishes the records that end at `end`, counted from the start of the segment.
    #[inline]
    pub(super) fn commit(&mut self, end: usize) {
        let committed = narrow(end.saturating_sub(SEGMENT_HEADER_BYTES));
        // SAFETY: I1: the position is within the mapping.
        let place = unsafe { self.map.as_mut_ptr().add(self.offset + 4) };
        // SAFETY: the mapping is aligned to pages and the offset to segments, so the address is aligned to four bytes.
        // Within this process, only this segment accesses it.
        let length = unsafe { AtomicU32::from_ptr(place.cast()) };
        length.store(committed.to_le(), Ordering::Release);
    }
}
