//! Importing memory of the program.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::panic::Location;
use std::ptr::NonNull;

use ash::vk;

use super::Allocator;
use crate::allocation::Allocation;
use crate::create_info::AllocationCreateInfo;
use crate::device::{BufferOrImage, MemoryAllocateNext, ResourceRequirements};
use crate::error::HostImportError;
use sublet_engines::cast::widen;

impl Allocator {
    /// Returns `minImportedHostPointerAlignment` in bytes, for [`import_host_buffer`](Self::import_host_buffer): mostly
    /// the size of a page. `None` if VK_EXT_external_memory_host is not enabled.
    #[must_use]
    pub fn host_import_alignment(&self) -> Option<u64> {
        self.device().host_pointer_alignment()
    }

    /// Creates a buffer whose bytes are those of host memory (VK_EXT_external_memory_host), without a copy. For
    /// long-lived sources of uploads, such as a mapped file or the arena of a decoder: import them once, and copy from
    /// the buffer many times. The import pins the pages, which costs about 50 µs per MiB on an NVIDIA H200.
    ///
    /// Address and size of the memory are multiples of [`host_import_alignment`](Self::host_import_alignment). The
    /// memory type is host-coherent: bytes that the host writes before a submission are visible to it. The allocation
    /// is not mapped, because the program has a pointer to the memory. Destroy both with
    /// [`destroy_buffer`](Self::destroy_buffer), which unpins the pages and frees nothing of the program.
    ///
    /// # Errors
    /// See [`HostImportError`]; nothing is left behind.
    ///
    /// # Safety
    /// 1. `buffer_info` is valid for the device, and its chain has no `VkExternalMemoryBufferCreateInfo`.
    /// 2. `memory` is host memory that stays valid for reads and writes until the buffer is destroyed
    ///    (VUID-VkImportMemoryHostPointerInfoEXT-handleType-01750). The driver may reject a file that is mapped only
    ///    for reading.
    /// 3. The host does not write bytes while the device reads them, and accesses none that the device writes.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// use std::alloc::{Layout, alloc, dealloc};
    /// use std::ptr::NonNull;
    ///
    /// let alignment = allocator.host_import_alignment().ok_or("no VK_EXT_external_memory_host")?;
    /// let layout = Layout::from_size_align(1 << 20, usize::try_from(alignment)?)?;
    /// // SAFETY: the size is not zero.
    /// let arena = NonNull::new(unsafe { alloc(layout) }).ok_or("no memory")?;
    /// let info = vk::BufferCreateInfo::default().size(1 << 20).usage(vk::BufferUsageFlags::TRANSFER_SRC);
    /// let memory = NonNull::slice_from_raw_parts(arena, layout.size());
    /// // SAFETY: the create-info is valid, and the memory outlives the buffer.
    /// let (buffer, allocation) = unsafe { allocator.import_host_buffer(&info, memory, Some("arena")) }?;
    /// // Decode into the arena, and record copies from the buffer.
    ///
    /// // SAFETY: the device does not use the buffer.
    /// unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    /// // SAFETY: allocated with this layout.
    /// unsafe { dealloc(arena.as_ptr(), layout) };
    /// # gpu.assert_silent();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub unsafe fn import_host_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        memory: NonNull<[u8]>,
        name: Option<&str>,
    ) -> Result<(vk::Buffer, Allocation), HostImportError> {
        let device = self.device();
        let alignment = device.host_pointer_alignment().ok_or(HostImportError::NotEnabled)?;
        let (address, size) = (widen(memory.cast::<u8>().addr().get()), widen(memory.len()));
        if address % alignment != 0 || size % alignment != 0 {
            return Err(HostImportError::Misaligned { address, size, alignment });
        }
        // SAFETY: the caller's promise: host memory. The alignment was checked.
        let types = unsafe { device.host_pointer_types(memory.cast()) };
        let types = types.ok_or(HostImportError::NotEnabled)?.map_err(HostImportError::Driver)?;

        let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
        external.p_next = buffer_info.p_next;
        let declared = vk::BufferCreateInfo { p_next: std::ptr::from_ref(&external).cast(), ..*buffer_info };
        // SAFETY: the caller's promise: the create-info is valid, also with this structure in its chain.
        let (buffer, mut resource) = unsafe { self.unbound_buffer(&declared) }?;
        let wanted = resource.requirements;
        let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let is_coherent = |(_, kind): &(u32, &vk::MemoryType)| kind.property_flags.contains(coherent);
        let known = (0..device.memory.memory_type_count).zip(&device.memory.memory_types);
        let both = types & wanted.memory_type_bits;
        let bits = known.filter(is_coherent).fold(0, |bits, (index, _)| bits | both & 1 << index);
        let error = if wanted.size > size {
            Some(HostImportError::TooSmall { needed: wanted.size, given: size })
        } else if bits == 0 {
            Some(HostImportError::MemoryTypes { host: types, buffer: wanted.memory_type_bits })
        } else {
            None
        };
        if let Some(error) = error {
            // SAFETY: the buffer was created just now, and nobody else knows of it.
            unsafe { device.destroy(BufferOrImage::Buffer(buffer)) };
            return Err(error);
        }
        resource.requirements = ResourceRequirements { size, memory_type_bits: bits, ..wanted };
        let pointer = memory.cast().as_ptr();
        let import = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(kind).host_pointer(pointer);
        // SAFETY: the chain lives until the memory is allocated, and the extension is enabled.
        let next = unsafe { MemoryAllocateNext::new(std::ptr::from_ref(&import).cast()) };
        let info = AllocationCreateInfo { name, ..AllocationCreateInfo::default() };
        // SAFETY: the buffer was created just now. The requirements are its own, for larger memory of fewer types.
        Ok(unsafe { self.allocate_and_bind(buffer, resource, || &info, Some(next), Location::caller()) }?)
    }
}
