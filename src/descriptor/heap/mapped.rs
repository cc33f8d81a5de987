//! A mapped buffer that begins at an aligned address: where the stores keep bytes.

use std::panic::Location;
use std::ptr::NonNull;

use ash::vk;

use super::super::device::DescriptorDevice;
use super::create_info::CreateHeapError;
use crate::allocation::Allocation;
use crate::base::cast::host_size;
use crate::create_info::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};
use crate::upload::AllocatorRef;

/// What a [`MappedBuffer`] is to be.
pub(super) struct BufferWish<'a> {
    /// Bytes from the aligned address on.
    pub(super) bytes: u64,
    /// Of the address: a power of two.
    pub(super) alignment: u64,
    pub(super) usage: vk::BufferUsageFlags,
    /// None if it is empty.
    pub(super) name: &'a str,
    pub(super) caller: &'static Location<'static>,
}

/// A buffer of an allocator, mapped, and in the GPU's own memory where that can be mapped. It is written, and read when
/// a heap grows alone: what is mapped is slow to read.
#[derive(Debug)]
pub(super) struct MappedBuffer {
    buffer: vk::Buffer,
    allocation: Allocation,
    /// A multiple of the alignment.
    address: vk::DeviceAddress,
    /// Where the byte at that address is mapped.
    mapped: NonNull<u8>,
    bytes: u64,
}

// SAFETY: the pointer is to memory that is mapped for as long as the allocation lives, which `destroy` alone ends; and
// any thread may write it. The callers of `put` promise that no two write one byte at a time. Everything else is `Send`.
unsafe impl Send for MappedBuffer {}
// SAFETY: as above.
unsafe impl Sync for MappedBuffer {}

impl MappedBuffer {
    /// Makes the buffer. Nothing is left on failure.
    ///
    /// # Safety
    /// The allocator is of the same `VkDevice`, the size is not zero, and the usages are those of features that are
    /// enabled.
    pub(super) unsafe fn create(
        device: &DescriptorDevice,
        allocator: &impl AllocatorRef,
        wish: &BufferWish<'_>,
    ) -> Result<Self, CreateHeapError> {
        let &BufferWish { bytes, alignment, usage, name, caller } = wish;
        let allocator = allocator.allocator();
        // Room to start at an aligned address, wherever the buffer is.
        let absurd = CreateHeapError::Absurd { size: bytes, needed: u64::MAX };
        let Some(size) = bytes.checked_add(alignment - 1) else { return Err(absurd) };
        let buffer_info = vk::BufferCreateInfo::default()
            .size(size)
            .usage(usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        let wanted = AllocationCreateInfo {
            flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED,
            // Every device has such memory for buffers (VkMemoryRequirements): so there is nothing to flush.
            required_flags: vk::MemoryPropertyFlags::HOST_COHERENT,
            preferred_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL,
            name: (!name.is_empty()).then_some(name),
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        // SAFETY: the create-info is valid: the caller promises a size that is not zero, and usages that are enabled.
        let (buffer, allocation) = unsafe { allocator.create_buffer_for(&buffer_info, &wanted, caller) }?;
        // SAFETY: the buffer is live, of this device (the caller's promise), made for it, and memory is bound to it.
        let found = unsafe { device.driver().buffer_address(buffer) };
        // A driver that asks for less memory than the buffer has bytes is not believed.
        let mapped = allocation.mapped_pointer().filter(|_| allocation.size() >= size);
        let address = found
            .as_ref()
            .ok()
            .and_then(|&start| if start == 0 { None } else { start.checked_next_multiple_of(alignment) });
        let (Some(address), Some(mapped)) = (address, mapped) else {
            // SAFETY: the buffer was made just now, by this allocator.
            let destroyed = unsafe { allocator.destroy_buffer(buffer, allocation) };
            debug_assert!(destroyed.is_ok());
            return Err(found.err().map_or(absurd, CreateHeapError::Missing));
        };
        // Below the alignment, and so within the room that was added.
        let skipped = found.ok().and_then(|start| host_size(address - start)).unwrap_or(0);
        // SAFETY: the mapping has `size` bytes, and `skipped` is less.
        let mapped = unsafe { mapped.cast::<u8>().add(skipped) };
        Ok(Self { buffer, allocation, address, mapped, bytes })
    }

    pub(super) fn address(&self) -> vk::DeviceAddress {
        self.address
    }

    /// Where a byte is mapped, counted from the address.
    pub(super) fn pointer(&self, at: usize) -> Option<NonNull<u8>> {
        NonNull::new(self.mapped.as_ptr().wrapping_add(at))
    }

    /// Writes bytes, from `at` on.
    ///
    /// # Safety
    /// They lie in the buffer, and nobody else writes or reads there meanwhile.
    #[inline]
    pub(super) unsafe fn put(&self, at: usize, bytes: &[u8]) {
        debug_assert!(crate::base::cast::widen(at + bytes.len()) <= self.bytes);
        // SAFETY: the place is in the mapping: the caller's promise.
        let target = unsafe { self.mapped.add(at) };
        // SAFETY: as above for all of the bytes, which nobody else writes; and what is written is not mapped.
        unsafe { target.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }

    /// Copies bytes of another buffer, from `from` on, to `at`.
    ///
    /// # Safety
    /// Both have the bytes, and nobody writes either meanwhile.
    pub(super) unsafe fn copy_from(&self, at: usize, other: &Self, from: usize, bytes: usize) {
        // SAFETY: the place is in the mapping: the caller's promise.
        let target = unsafe { self.mapped.add(at) };
        // SAFETY: as above.
        let source = unsafe { other.mapped.add(from) };
        // SAFETY: both mappings have the bytes, which nobody writes: the caller's promise. They are two buffers.
        unsafe { target.copy_from_nonoverlapping(source, bytes) };
    }

    /// # Safety
    /// The allocator made the buffer, and the device is done with it.
    pub(super) unsafe fn destroy(self, allocator: &impl AllocatorRef) {
        // SAFETY: the device is done with it: the caller's promise; and the value goes with it.
        let destroyed = unsafe { allocator.allocator().destroy_buffer(self.buffer, self.allocation) };
        debug_assert!(destroyed.is_ok(), "both are of this allocator");
    }
}
