//! Allocations.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ptr::NonNull;

use ash::vk;

/// A range of memory, or nothing: see [`is_null`](Self::is_null).
///
/// It implements [`presser::Slab`], which panics if the memory is not mapped.
#[derive(Default)]
pub struct Allocation {
    pub(super) inner: Option<AllocationInner>,
    pub(super) name: Option<Box<str>>,
}

/// The contents of an allocation.
pub(super) struct AllocationInner {
    pub(super) memory: sublet::Allocation,
    pub(super) id: NonZeroU64,
    pub(super) properties: vk::MemoryPropertyFlags,
    /// True if the scheme requested dedicated memory.
    pub(super) dedicated: bool,
}

/// Prints the same as the original, except `memory_block_index`: blocks have no numbers here.
impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.as_ref();
        let memory_type = inner.map(|inner| usize::try_from(inner.memory.memory_type_index()));
        f.debug_struct("Allocation")
            .field("chunk_id", &self.chunk_id())
            .field("offset", &self.offset())
            .field("size", &self.size())
            .field("memory_type_index", &memory_type.and_then(Result::ok).unwrap_or(usize::MAX))
            .field("device_memory", &inner.map_or(vk::DeviceMemory::null(), |inner| inner.memory.memory()))
            .field("mapped_ptr", &self.mapped_ptr().map(SendSyncPtr))
            .field("dedicated_allocation", &self.is_dedicated())
            .field("memory_properties", &self.memory_properties())
            .field("name", &self.name)
            .finish()
    }
}

/// Prints a pointer under the original's type name.
#[derive(Debug)]
#[allow(dead_code, reason = "the field is printed")]
struct SendSyncPtr(NonNull<c_void>);

impl Allocation {
    /// Returns the mapped memory as a slab without checks. `None` if it is not mapped, or larger than `isize::MAX`
    /// bytes.
    pub fn try_as_mapped_slab(&mut self) -> Option<MappedAllocationSlab<'_>> {
        let mapped_ptr = self.mapped_ptr()?.cast().as_ptr();
        let size = slab_size(self.size())?;
        Some(MappedAllocationSlab { _borrowed: PhantomData, mapped_ptr, size })
    }

    /// Returns Sublet's allocation. `None` if there is no memory.
    pub fn as_sublet(&self) -> Option<&sublet::Allocation> {
        self.inner.as_ref().map(|inner| &inner.memory)
    }

    /// Returns a number that is unique among the allocator's live allocations. `None` if there is no memory.
    pub fn chunk_id(&self) -> Option<NonZeroU64> {
        self.inner.as_ref().map(|inner| inner.id)
    }

    /// Returns the properties of its memory type.
    pub fn memory_properties(&self) -> vk::MemoryPropertyFlags {
        self.inner.as_ref().map_or(vk::MemoryPropertyFlags::empty(), |inner| inner.properties)
    }

    /// Returns the `VkDeviceMemory` of the allocation.
    ///
    /// # Safety
    /// Resources that are bound to the memory lie within this allocation, and are destroyed before it.
    pub unsafe fn memory(&self) -> vk::DeviceMemory {
        self.inner.as_ref().map_or(vk::DeviceMemory::null(), |inner| inner.memory.memory())
    }

    /// Returns true if an [`AllocationScheme`](super::AllocationScheme) requested dedicated memory. For the actual
    /// placement see [`as_sublet`](Self::as_sublet).
    pub fn is_dedicated(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.dedicated)
    }

    /// Returns the offset in the memory, in bytes.
    pub fn offset(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.memory.offset())
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.memory.size())
    }

    /// Returns the mapped address. `None` if the memory is not host-visible.
    pub fn mapped_ptr(&self) -> Option<NonNull<c_void>> {
        self.inner.as_ref()?.memory.mapped_pointer()
    }

    /// Returns the mapped bytes.
    pub fn mapped_slice(&self) -> Option<&[u8]> {
        let (pointer, size) = (self.mapped_ptr()?, slab_size(self.size())?);
        // SAFETY: the memory is mapped while the allocation lives, and these bytes belong to it. The caller ensures
        // that nothing writes them meanwhile, including the device. The original interface is not `unsafe` here.
        Some(unsafe { std::slice::from_raw_parts(pointer.cast().as_ptr(), size) })
    }

    /// Returns the mapped bytes for writing.
    pub fn mapped_slice_mut(&mut self) -> Option<&mut [u8]> {
        let (pointer, size) = (self.mapped_ptr()?, slab_size(self.size())?);
        // SAFETY: as above, and the allocation is borrowed mutably.
        Some(unsafe { std::slice::from_raw_parts_mut(pointer.cast().as_ptr(), size) })
    }

    /// Returns true if there is no memory, as after `default`.
    pub fn is_null(&self) -> bool {
        self.inner.is_none()
    }
}

/// Returns the size if it is valid for a slice.
fn slab_size(size: u64) -> Option<usize> {
    usize::try_from(size).ok().filter(|&size| isize::try_from(size).is_ok())
}

/// The mapped memory of an [`Allocation`], from [`Allocation::try_as_mapped_slab`].
pub struct MappedAllocationSlab<'a> {
    _borrowed: PhantomData<&'a mut Allocation>,
    mapped_ptr: *mut u8,
    size: usize,
}

// SAFETY: the pointer refers to this many mapped bytes of one allocation, which is borrowed mutably while this value
// lives; the size is at most `isize::MAX`.
unsafe impl presser::Slab for MappedAllocationSlab<'_> {
    fn base_ptr(&self) -> *const u8 {
        self.mapped_ptr
    }

    fn base_ptr_mut(&mut self) -> *mut u8 {
        self.mapped_ptr
    }

    fn size(&self) -> usize {
        self.size
    }
}

// SAFETY: as above; an allocation that is not mapped, or too large, panics before it is used.
unsafe impl presser::Slab for Allocation {
    fn base_ptr(&self) -> *const u8 {
        self.mapped_ptr().expect("tried to use a non-mapped Allocation as a Slab").cast().as_ptr()
    }

    fn base_ptr_mut(&mut self) -> *mut u8 {
        self.mapped_ptr().expect("tried to use a non-mapped Allocation as a Slab").cast().as_ptr()
    }

    fn size(&self) -> usize {
        slab_size(Allocation::size(self))
            .expect("tried to use an Allocation with size > isize::MAX as a Slab")
    }
}
