//! Figures of arenas.

/// The pages of an [`UploadArena`](super::UploadArena) and their use. Units: bytes, unless stated otherwise.
///
/// `used + padding + tail + rest + free` is `reserved`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ArenaStatistics {
    /// All pages, including those of large requests.
    pub pages: usize,
    /// Pages that serve, or served, one large request.
    pub own_pages: usize,
    /// Free pages of both kinds.
    pub free_pages: usize,
    /// Pages that are flushed and not yet collected.
    pub pages_in_flight: usize,
    /// Bytes of all pages.
    pub reserved: u64,
    /// The maximum of [`reserved`](Self::reserved) so far.
    pub peak_reserved: u64,
    /// Pages in another memory type than [`UploadArena::memory_type_index`](super::UploadArena::memory_type_index),
    /// because that heap was full.
    pub fallback_pages: usize,
    /// The size of the fallback pages.
    pub fallback: u64,
    /// Bytes of free pages.
    pub free: u64,
    /// Requested bytes that are not collected yet.
    pub used: u64,
    /// The maximum of [`used`](Self::used) at any flush.
    pub peak_used: u64,
    /// Bytes lost to alignment, in pages that are not collected.
    pub padding: u64,
    /// Bytes lost after the last upload of pages that are not collected.
    pub tail: u64,
    /// Bytes left in the current page.
    pub rest: u64,
}
