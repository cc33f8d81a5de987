//! Figures of arenas.
#![forbid(unsafe_code)]

/// What an [`UploadArena`](super::UploadArena) has and uses. Units: bytes, where it does not say otherwise.
///
/// `used + padding + tail + rest + free` is `reserved`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ArenaStatistics {
    /// Pages, with those of large requests.
    pub pages: usize,
    /// Pages that one large request has, or had.
    pub own_pages: usize,
    /// Pages that are free, of both kinds.
    pub free_pages: usize,
    /// Pages that recordings use which were flushed and are not collected.
    pub pages_in_flight: usize,
    /// Bytes of all pages.
    pub reserved: u64,
    /// The most that [`reserved`](Self::reserved) ever was.
    pub peak_reserved: u64,
    /// Pages in another memory type than [`UploadArena::memory_type_index`](super::UploadArena::memory_type_index),
    /// because there was no room in that one's heap.
    pub fallback_pages: usize,
    /// Bytes of those.
    pub fallback: u64,
    /// Bytes of free pages.
    pub free: u64,
    /// Bytes that were asked for and are not collected.
    pub used: u64,
    /// The most that [`used`](Self::used) was at any flush.
    pub peak_used: u64,
    /// Bytes lost to alignment, in pages that are not collected.
    pub padding: u64,
    /// Bytes lost behind the last upload of pages that are not collected.
    pub tail: u64,
    /// Bytes left in the page that uploads go to.
    pub rest: u64,
}
