//! rlsf: TLSF for host memory. It stores headers in the memory that it divides, so it gets real memory. Only pages with
//! headers are ever touched.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::{Peer, PeerMode};
use crate::script::PeerRequest;

/// Up to 4 GiB minus a granule.
type RlsfEngine = rlsf::Tlsf<'static, u32, u32, 27, 32>;

/// Maximum capacity.
const MAX_CAPACITY: u64 = 3 << 30;
const PAGE: usize = 4096;

/// An engine.
pub(super) struct Rlsf {
    tlsf: RlsfEngine,
    memory: NonNull<u8>,
    layout: Layout,
    live: u64,
}

/// Address and alignment.
pub(super) struct RlsfAllocation {
    pointer: NonNull<u8>,
    alignment: usize,
}

// SAFETY: it is an address of valid memory that no thread owns.
unsafe impl Send for RlsfAllocation {}

impl Rlsf {
    pub(super) fn new(shape: PeerMode) -> Result<Option<Self>, String> {
        let PeerMode::Engine { capacity } = shape else { return Ok(None) };
        if capacity > 2 * MAX_CAPACITY {
            // A benchmark should not use this much real memory.
            return Ok(None);
        }
        let size = capacity.min(MAX_CAPACITY) as usize;
        let layout = Layout::from_size_align(size, PAGE).map_err(|error| error.to_string())?;
        // SAFETY: the layout is not empty. `System` bypasses the counting allocator, because this memory stands for
        // device memory.
        let memory = unsafe { System.alloc(layout) };
        let memory = NonNull::new(memory).ok_or("no memory for rlsf to divide")?;
        // SAFETY: allocated only for this peer, and freed after its last use.
        let pool = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().cast::<MaybeUninit<u8>>(), size) };
        let mut tlsf = RlsfEngine::new();
        tlsf.insert_free_block(pool);
        Ok(Some(Self { tlsf, memory, layout, live: 0 }))
    }
}

impl Peer for Rlsf {
    type Allocation = RlsfAllocation;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<RlsfAllocation> {
        let (size, alignment) = (request.size as usize, request.alignment as usize);
        let pointer = self.tlsf.allocate(Layout::from_size_align(size, alignment).ok()?)?;
        self.live += 1;
        Some(RlsfAllocation { pointer, alignment })
    }

    #[inline]
    fn free(&mut self, held: RlsfAllocation) {
        self.live -= 1;
        // SAFETY: allocated from it with this alignment.
        unsafe { self.tlsf.deallocate(held.pointer, held.alignment) };
    }

    fn live(&self) -> Option<u64> {
        Some(self.live)
    }

    fn capacity(&self) -> Option<u64> {
        Some(self.layout.size() as u64)
    }

    fn finish(self) -> Result<(), String> {
        let Self { memory, layout, live, .. } = self;
        // SAFETY: allocated with this layout; the engine that divided it is not used again.
        unsafe { System.dealloc(memory.as_ptr(), layout) };
        if live == 0 { Ok(()) } else { Err(format!("rlsf still has {live} allocations")) }
    }
}
