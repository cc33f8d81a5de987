//! A mapped buffer that backs a page.
//!
//! Invariants:
//! - B1: while there is an allocation, it stays mapped, and `pointer` is valid for `size` bytes.
//! - B2: without an allocation, `size` is 0.
//! - B3: only the owner of the value hands out its bytes, and hands out each byte once before the device is done with
//!   it.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use ash::vk;

use super::piece::Upload;
use crate::allocation::Allocation;
use crate::blocks::MappedPointer;
use sublet_engines::cast::{host_size, widen};

// SAFETY: the pointer is only an address; each access through it has its own safety comment.
unsafe impl Send for Upload {}
// SAFETY: as for `Send`.
unsafe impl Sync for Upload {}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct PageBacking {
    pub(super) buffer: vk::Buffer,
    allocation: Option<Allocation>,
    pointer: MappedPointer,
    size: u64,
    address: Option<vk::DeviceAddress>,
    /// The size of the `VkDeviceMemory` that contains the allocation.
    pub(super) memory_size: u64,
    pub(super) memory_type: u32,
    /// True if host writes are visible without a flush.
    pub(super) coherent: bool,
    /// True if the preferred memory type was full.
    pub(super) is_fallback: bool,
}

impl PageBacking {
    /// The value without a buffer.
    pub(super) const GONE: Self = Self {
        buffer: vk::Buffer::null(),
        allocation: None,
        pointer: MappedPointer::UNMAPPED,
        size: 0,
        address: None,
        memory_size: 0,
        memory_type: 0,
        coherent: true,
        is_fallback: false,
    };

    /// Returns the allocation in `Err` if it is not mapped or too small.
    ///
    /// # Safety
    /// The buffer is bound to the allocation, and nothing else uses either of them. If the allocation is mapped, it
    /// stays mapped until it is freed, which happens only after [`Self::take`].
    pub(super) unsafe fn new(
        buffer: vk::Buffer,
        allocation: Allocation,
        size: u64,
        address: Option<vk::DeviceAddress>,
        memory_size: u64,
    ) -> Result<Self, Allocation> {
        let fits = allocation.size() >= size && host_size(size).is_some();
        match allocation.mapped_pointer().filter(|_| fits) {
            Some(pointer) => Ok(Self {
                buffer,
                pointer: MappedPointer::new(pointer.cast()),
                allocation: Some(allocation),
                size,
                address,
                memory_size,
                ..Self::GONE
            }),
            None => Err(allocation),
        }
    }

    /// Takes the buffer and the allocation, for destruction.
    pub(super) fn take(&mut self) -> Option<(vk::Buffer, Allocation)> {
        let Self { buffer, allocation, .. } = std::mem::replace(self, Self::GONE);
        allocation.map(|allocation| (buffer, allocation))
    }

    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the largest power of two that divides both the mapped pointer and the device address.
    pub(super) fn alignment(&self) -> u64 {
        let pointer = self.pointer.get().map_or(0, |pointer| widen(pointer.addr().get()));
        1 << (pointer | self.address.unwrap_or(0)).trailing_zeros().min(63)
    }

    pub(super) fn allocation(&self) -> Option<&Allocation> {
        self.allocation.as_ref()
    }

    /// Describes `size` bytes at `offset`.
    ///
    /// # Panics
    /// If they are out of bounds, which is an error in the owner's state.
    #[inline]
    pub(super) fn upload(&self, offset: u64, size: u64) -> Upload {
        Upload {
            ptr: self.at(offset, size),
            buffer: self.buffer,
            offset,
            size,
            // Cannot overflow with a conforming driver: the sum is an address inside the buffer.
            address: self.address.map(|address| address.wrapping_add(offset)),
        }
    }

    /// Returns the host address of `size` bytes at `offset`.
    #[inline]
    fn at(&self, offset: u64, size: u64) -> NonNull<u8> {
        assert!(
            offset <= self.size && size <= self.size - offset,
            "B3: bytes outside of a buffer were given out"
        );
        // Without a mapping (B2), the assertion only passes for zero bytes at 0; any address is valid for those.
        self.pointer.at(offset).get().unwrap_or(NonNull::dangling())
    }

    /// Copies `source` to `upload`, which [`Self::upload`] has just created.
    #[inline]
    pub(super) fn write<T: Copy>(&mut self, upload: &Upload, source: &[T]) {
        let bytes = size_of_val(source);
        let target = self.at(upload.offset, widen(bytes));
        // SAFETY: `at` checked that the bytes are in the mapping (B1). That is driver memory, so it does not overlap
        // Rust objects. The copy is bytewise, so padding and alignment do not matter. Nothing else uses the target
        // (B3).
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr().cast::<u8>(), target.as_ptr(), bytes) };
    }

    /// Returns the bytes of `upload`, which [`Self::upload`] has just created.
    #[inline]
    pub(super) fn bytes(&mut self, upload: &Upload) -> &mut [MaybeUninit<u8>] {
        let target = self.at(upload.offset, upload.size).cast::<MaybeUninit<u8>>();
        // `new` checked that all sizes inside the buffer fit `usize`.
        let length = host_size(upload.size).unwrap_or(0);
        // SAFETY: `at` checked that the bytes are in the mapping (B1); `MaybeUninit<u8>` needs neither initialisation
        // nor alignment. Nothing else uses them while `self` is borrowed (B3).
        unsafe { std::slice::from_raw_parts_mut(target.as_ptr(), length) }
    }
}
