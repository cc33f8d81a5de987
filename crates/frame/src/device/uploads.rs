//! Upload memory: pages that all lists of a family share, and chunks of them that one list fills without a lock.
//!
//! A list gets a ticket of a private clock with its first chunk. The ticket is done when the objects that the list
//! keeps are dropped: the device is done with the list, or the list was never submitted. So a page waits for each list
//! with bytes in it, in any order of submission.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use sublet::Allocator;
use sublet::retire::{Clock, Ticket, TimelineId, TooManyTimelines};
use sublet::upload::{Alignments, FlushError, Upload, UploadArena, UploadArenaCreateInfo};

use super::KeptObject;
use crate::list::ListError;

/// Bytes of a list's first chunk. Each further chunk is as large as all previous ones together, up to a fraction of a
/// page.
const FIRST_CHUNK: u64 = 4096;
const CHUNKS_OF_A_PAGE: u64 = 8;

type FrameArena = UploadArena<Arc<Allocator>>;

/// See the [module](self).
pub(crate) struct Uploads {
    allocator: Arc<Allocator>,
    info: UploadArenaCreateInfo<'static>,
    clock: Clock,
    timeline: TimelineId,
    /// One arena for each family, because one family owns the buffer. Created on first use. No lock is taken under its
    /// lock, which is held while the allocator creates, flushes or frees a page.
    arenas: Box<[Mutex<Option<FrameArena>>]>,
}

/// Releases the uploads of a list when it is dropped.
pub(crate) struct UploadGuard {
    uploads: Arc<Uploads>,
    ticket: Ticket,
}

impl Drop for UploadGuard {
    fn drop(&mut self) {
        // The ticket was opened for the list and never submitted.
        let _ = self.uploads.clock.discard(self.ticket);
    }
}

#[derive(Default)]
pub(crate) struct UploadChunks {
    /// `None` before the first chunk.
    ticket: Option<Ticket>,
    /// The rest of the current chunk.
    current: Option<Upload>,
    taken: u64,
    /// All chunks, to be flushed at submission.
    all: Vec<Upload>,
    /// Alignments of the arena, and the largest that it supports.
    alignments: Option<(Alignments, u64)>,
}

/// Removes the first bytes of an upload.
fn skip(upload: &mut Upload, bytes: u64) {
    let within = bytes.min(upload.size);
    // SAFETY: `within` is at most the size of the upload, for which the pointer is valid.
    upload.ptr = unsafe { upload.ptr.add(usize::try_from(within).unwrap_or(0)) };
    upload.offset += within;
    upload.size -= within;
    upload.address = upload.address.map(|address| address.wrapping_add(within));
}

impl UploadChunks {
    /// Resets for another list. The guard of the previous list keeps its chunks.
    pub(crate) fn forget(&mut self) {
        (self.ticket, self.current, self.taken) = (None, None, 0);
        self.all.clear();
    }

    /// Takes aligned bytes from the current chunk. Returns `None` if it has too few.
    fn take(&mut self, size: u64, alignment: u64) -> Option<Upload> {
        let rest = self.current.as_mut()?;
        let padding = rest.offset.checked_next_multiple_of(alignment)? - rest.offset;
        if size == 0 || padding.checked_add(size)? > rest.size {
            return None;
        }
        skip(rest, padding);
        let mut piece = *rest;
        piece.size = size;
        skip(rest, size);
        Some(piece)
    }
}

impl Uploads {
    pub(crate) fn new(
        allocator: &Arc<Allocator>,
        info: UploadArenaCreateInfo<'static>,
        families: usize,
    ) -> Result<Self, TooManyTimelines> {
        let clock = Clock::new();
        let timeline = clock.add_timeline()?;
        // Chunks of different lists share a page.
        let info = UploadArenaCreateInfo { share_pages: true, ..info };
        let arenas = (0..families).map(|_| Mutex::new(None)).collect();
        Ok(Self { allocator: Arc::clone(allocator), info, clock, timeline, arenas })
    }

    /// Returns the number of collections after which idle objects are freed; `None` if they never are.
    pub(crate) fn idle_collects(&self) -> Option<u32> {
        self.info.idle_collects
    }

    /// Bytes of a page, at most. Larger uploads would get memory of their own from the driver each time.
    pub(crate) fn page_size(&self) -> u64 {
        self.info.page_size
    }

    /// Allocates bytes for a list, until the objects that it keeps are dropped. [`flush`](Self::flush) makes them
    /// visible.
    pub(crate) fn allocate(
        self: &Arc<Self>,
        family: usize,
        chunks: &mut UploadChunks,
        kept: &mut Vec<KeptObject>,
        size: u64,
        align: impl Fn(&Alignments) -> u64,
    ) -> Result<Upload, ListError> {
        if let Some((alignments, most)) = &chunks.alignments {
            let alignment = align(alignments);
            if alignment <= *most {
                if let Some(piece) = chunks.take(size, alignment) {
                    return Ok(piece);
                }
            }
        }
        let mut slot = self.arenas[family].lock();
        let arena = self.arena(&mut slot)?;
        let (alignments, page_size) = (arena.alignments(), arena.page_size());
        let alignment = align(&alignments);
        let chunk =
            chunks.taken.clamp(FIRST_CHUNK, (page_size / CHUNKS_OF_A_PAGE).max(FIRST_CHUNK)).min(page_size);
        let small = size > 0 && size <= chunk / 2 && alignment <= arena.max_alignment();
        // Two lists never share an atom of non-coherent memory.
        let (bytes, apart) = match small {
            true => (chunk, alignment.max(alignments.any)),
            false if alignment.is_power_of_two() => (size, alignment.max(alignments.any)),
            false => (size, alignment),
        };
        let padded = bytes.checked_next_multiple_of(alignments.any).unwrap_or(bytes);
        let bytes = if padded > page_size && bytes <= page_size { bytes } else { padded };
        let made = arena.allocate(bytes, apart).map_err(ListError::Upload)?;
        let ticket = *chunks.ticket.get_or_insert_with(|| {
            let ticket = self.clock.open(self.timeline);
            kept.push(KeptObject::Uploads(UploadGuard { uploads: Arc::clone(self), ticket }));
            ticket
        });
        // All tickets belong to this clock.
        let _ = arena.keep(ticket);
        chunks.alignments = Some((alignments, arena.max_alignment()));
        chunks.taken = chunks.taken.saturating_add(bytes);
        chunks.all.push(made);
        drop(slot);
        if small {
            chunks.current = Some(made);
            if let Some(piece) = chunks.take(size, alignment) {
                return Ok(piece);
            }
        }
        let mut piece = made;
        piece.size = size;
        Ok(piece)
    }

    fn arena<'a>(&self, slot: &'a mut Option<FrameArena>) -> Result<&'a mut FrameArena, ListError> {
        match slot {
            Some(arena) => Ok(arena),
            slot => {
                // SAFETY: the creator of the frames guarantees the usage. Lists use the uploads, and keep a guard until
                // the device is done with them. Only guards complete tickets. There is no pool.
                let made = unsafe { UploadArena::new(Arc::clone(&self.allocator), &self.info) };
                Ok(slot.insert(made.map_err(ListError::CreateUploads)?))
            }
        }
    }

    /// Makes the uploads of a list visible to the device.
    pub(crate) fn flush(&self, family: usize, chunks: &UploadChunks) -> Result<(), FlushError> {
        if chunks.all.is_empty() {
            return Ok(());
        }
        self.arenas[family].lock().as_mut().map_or(Ok(()), |arena| arena.make_visible(&chunks.all))
    }

    fn locked(&self) -> impl Iterator<Item = MutexGuard<'_, Option<FrameArena>>> {
        self.arenas.iter().map(|arena| arena.lock())
    }

    /// Collects the pages that no list needs any more.
    pub(crate) fn collect(&self) {
        for mut slot in self.locked() {
            // All tickets belong to this clock.
            let _ = slot.as_mut().map(|arena| arena.collect(&self.clock));
        }
    }

    /// Destroys the pages that no list uses. Returns their bytes.
    pub(crate) fn trim(&self) -> u64 {
        self.collect();
        self.locked().map(|mut slot| slot.as_mut().map_or(0, |arena| arena.trim())).sum()
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.locked().map(|slot| slot.as_ref().map_or(0, |arena| arena.statistics().reserved)).sum()
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        // Each guard holds an `Arc` of this value, so no guard is left and all tickets are done.
        self.collect();
    }
}
