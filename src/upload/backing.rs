//! A mapped buffer: what a page is made of.
//!
//! Invariants:
//! - B1: while there is an allocation, it is mapped for as long as it lives, and `pointer` is valid for `size` bytes.
//! - B2: without one, `size` is 0.
//! - B3: nobody but the owner of the value gives out its bytes, and the owner gives each byte out once before the
//!   device is done with it.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use ash::vk;

use super::piece::Upload;
use crate::allocation::Allocation;
use crate::base::cast::{host_size, widen};
use crate::blocks::MappedPointer;

// SAFETY: a place is only named; every access through the pointer is argued where it happens.
unsafe impl Send for Upload {}
// SAFETY: as for `Send`.
unsafe impl Sync for Upload {}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Backing {
    pub(super) buffer: vk::Buffer,
    allocation: Option<Allocation>,
    pointer: MappedPointer,
    size: u64,
    address: Option<vk::DeviceAddress>,
    /// Bytes of the `VkDeviceMemory` that the allocation is in.
    pub(super) memory_size: u64,
    pub(super) memory_type: u32,
    /// Whether what the host writes is visible without a flush.
    pub(super) coherent: bool,
    /// Whether the preferred memory type had no room.
    pub(super) is_fallback: bool,
}

impl Backing {
    /// Where there is no buffer.
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

    /// `None`, and the allocation back, if it is not mapped or too small.
    ///
    /// # Safety
    /// The buffer is bound to the allocation, and nobody else uses either of them. If the allocation is mapped, it
    /// stays so until it is freed, which happens only after [`Self::take`].
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

    /// What is to be destroyed; nothing is left.
    pub(super) fn take(&mut self) -> Option<(vk::Buffer, Allocation)> {
        let Self { buffer, allocation, .. } = std::mem::replace(self, Self::GONE);
        allocation.map(|allocation| (buffer, allocation))
    }

    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The highest power of two that both the mapping and the address begin at a multiple of.
    pub(super) fn alignment(&self) -> u64 {
        let pointer = self.pointer.get().map_or(0, |pointer| widen(pointer.addr().get()));
        1 << (pointer | self.address.unwrap_or(0)).trailing_zeros().min(63)
    }

    pub(super) fn allocation(&self) -> Option<&Allocation> {
        self.allocation.as_ref()
    }

    /// What the caller gets of `size` bytes at `offset`.
    ///
    /// # Panics
    /// If they are not inside: the owner's books are wrong.
    #[inline]
    pub(super) fn upload(&self, offset: u64, size: u64) -> Upload {
        Upload {
            ptr: self.at(offset, size),
            buffer: self.buffer,
            offset,
            size,
            // An address plus what lies inside of the buffer does not overflow on a driver that keeps to its word.
            address: self.address.map(|address| address.wrapping_add(offset)),
        }
    }

    /// Where `size` bytes at `offset` are: in the mapping.
    #[inline]
    fn at(&self, offset: u64, size: u64) -> NonNull<u8> {
        assert!(
            offset <= self.size && size <= self.size - offset,
            "B3: bytes outside of a buffer were given out"
        );
        // B2: the assertion holds without a mapping for zero bytes at 0 only, and for those any address will do.
        self.pointer.at(offset).get().unwrap_or(NonNull::dangling())
    }

    /// Copies `source` to `upload`, which [`Self::upload`] made a moment ago.
    #[inline]
    pub(super) fn write<T: Copy>(&mut self, upload: &Upload, source: &[T]) {
        let bytes = size_of_val(source);
        let target = self.at(upload.offset, widen(bytes));
        // SAFETY: `at` checked that as many bytes are in the mapping (B1), which is the driver's memory and so does not
        // overlap what Rust owns. The copy is of bytes and takes padding as it is; `u8` has no alignment. Nobody else
        // uses the target: B3.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr().cast::<u8>(), target.as_ptr(), bytes) };
    }

    /// The bytes of `upload`, which [`Self::upload`] made a moment ago.
    #[inline]
    pub(super) fn bytes(&mut self, upload: &Upload) -> &mut [MaybeUninit<u8>] {
        let target = self.at(upload.offset, upload.size).cast::<MaybeUninit<u8>>();
        // `new` saw that all sizes inside of the buffer are sizes of the host.
        let length = host_size(upload.size).unwrap_or(0);
        // SAFETY: `at` checked that as many bytes are in the mapping (B1), for which nothing has to be initialised or
        // aligned. Nobody else uses them for as long as the borrow of `self` lasts: B3.
        unsafe { std::slice::from_raw_parts_mut(target.as_ptr(), length) }
    }
}
