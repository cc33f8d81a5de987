//! A mapped buffer that begins at an aligned address: the memory of stores that hold bytes.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::panic::Location;
use std::ptr::NonNull;

use ash::vk;

use super::super::device::DescriptorDevice;
use super::create_info::CreateHeapError;
use sublet::Allocation;
use sublet::upload::AllocatorRef;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};
use sublet_engines::cast::host_size;

/// The parameters of a [`MappedBuffer`].
pub(super) struct BufferWish<'a> {
    /// The size in bytes, from the aligned address on.
    pub(super) bytes: u64,
    /// The alignment of the address: a power of two.
    pub(super) alignment: u64,
    pub(super) usage: vk::BufferUsageFlags,
    /// Empty for no name.
    pub(super) name: &'a str,
    pub(super) caller: &'static Location<'static>,
}

/// A mapped buffer of an allocator, in device memory if that can be mapped. It is written, and read only when a heap
/// grows, because reads of mapped memory are slow.
#[derive(Debug)]
pub(super) struct MappedBuffer {
    buffer: vk::Buffer,
    allocation: Allocation,
    /// A multiple of the alignment.
    address: vk::DeviceAddress,
    /// The mapped byte at that address.
    mapped: NonNull<u8>,
    bytes: u64,
}

// SAFETY: the pointer refers to memory that stays mapped until `destroy` frees the allocation, and any thread may write
// it. The callers of `put` promise that no two threads write the same byte at once. All other fields are `Send`.
unsafe impl Send for MappedBuffer {}
// SAFETY: as above.
unsafe impl Sync for MappedBuffer {}

impl MappedBuffer {
    /// Creates the buffer. Leaves nothing behind on failure.
    ///
    /// # Safety
    /// The allocator belongs to the same `VkDevice`, the size is not zero, and the usages belong to enabled features.
    pub(super) unsafe fn create(
        device: &DescriptorDevice,
        allocator: &impl AllocatorRef,
        wish: &BufferWish<'_>,
    ) -> Result<Self, CreateHeapError> {
        let &BufferWish { bytes, alignment, usage, name, caller } = wish;
        let allocator = allocator.allocator();
        // Extra space, so that an aligned address exists in the buffer.
        let absurd = CreateHeapError::Absurd { size: bytes, needed: u64::MAX };
        let Some(size) = bytes.checked_add(alignment - 1) else { return Err(absurd) };
        let buffer_info = vk::BufferCreateInfo::default()
            .size(size)
            .usage(usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        let wanted = AllocationCreateInfo {
            flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED,
            // Every device has coherent memory for buffers (VkMemoryRequirements), so there is nothing to flush.
            required_flags: vk::MemoryPropertyFlags::HOST_COHERENT,
            preferred_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL,
            name: (!name.is_empty()).then_some(name),
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        // SAFETY: the create-info is valid: the caller promises a non-zero size, and usages of enabled features.
        let (buffer, allocation) = unsafe { allocator.create_buffer_for(&buffer_info, &wanted, caller) }?;
        // SAFETY: the buffer is live, was created with the usage, is bound to memory, and belongs to this device (the
        // caller's promise).
        let found = unsafe { device.driver().buffer_address(buffer) };
        // Guards against a driver that reports less memory than the size of the buffer.
        let mapped = allocation.mapped_pointer().filter(|_| allocation.size() >= size);
        let address = found
            .as_ref()
            .ok()
            .and_then(|&start| if start == 0 { None } else { start.checked_next_multiple_of(alignment) });
        let (Some(address), Some(mapped)) = (address, mapped) else {
            // SAFETY: the buffer was just created by this allocator.
            let destroyed = unsafe { allocator.destroy_buffer(buffer, allocation) };
            debug_assert!(destroyed.is_ok());
            return Err(found.err().map_or(absurd, CreateHeapError::Missing));
        };
        // Less than the alignment, so within the extra space.
        let skipped = found.ok().and_then(|start| host_size(address - start)).unwrap_or(0);
        // SAFETY: the mapping has `size` bytes, and `skipped` is smaller.
        let mapped = unsafe { mapped.cast::<u8>().add(skipped) };
        Ok(Self { buffer, allocation, address, mapped, bytes })
    }

    pub(super) fn address(&self) -> vk::DeviceAddress {
        self.address
    }

    /// Returns the host address of a byte, counted from the aligned address.
    pub(super) fn pointer(&self, at: usize) -> Option<NonNull<u8>> {
        NonNull::new(self.mapped.as_ptr().wrapping_add(at))
    }

    /// Writes bytes, from `at` on.
    ///
    /// # Safety
    /// They are inside the buffer, and nobody else writes or reads there meanwhile.
    #[inline]
    pub(super) unsafe fn put(&self, at: usize, bytes: &[u8]) {
        debug_assert!(sublet_engines::cast::widen(at + bytes.len()) <= self.bytes);
        // SAFETY: the caller promises that the position is in the mapping.
        let target = unsafe { self.mapped.add(at) };
        // SAFETY: the caller promises the same for all bytes, and that nobody else accesses them. The source is not
        // mapped memory.
        unsafe { target.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }

    /// Copies `bytes` bytes of another buffer, from `from` on, to `at`.
    ///
    /// # Safety
    /// Both buffers contain the ranges, and nobody writes either meanwhile.
    pub(super) unsafe fn copy_from(&self, at: usize, other: &Self, from: usize, bytes: usize) {
        // SAFETY: the caller promises that the position is in the mapping.
        let target = unsafe { self.mapped.add(at) };
        // SAFETY: as above.
        let source = unsafe { other.mapped.add(from) };
        // SAFETY: the caller promises that both mappings contain the ranges, and that nobody writes them. They are
        // distinct buffers.
        unsafe { target.copy_from_nonoverlapping(source, bytes) };
    }

    /// # Safety
    /// The allocator made the buffer, and the device is done with it.
    pub(super) unsafe fn destroy(self, allocator: &impl AllocatorRef) {
        // SAFETY: the caller promises that the device is done with it; this consumes the value.
        let destroyed = unsafe { allocator.allocator().destroy_buffer(self.buffer, self.allocation) };
        debug_assert!(destroyed.is_ok(), "both are of this allocator");
    }
}
