//! The caller's handle of one allocation.

use std::error::Error;
use std::ffi::c_void;
use std::fmt;
use std::num::NonZeroU64;
use std::panic::Location;
use std::ptr::NonNull;

use ash::vk;

use crate::blocks::{AllocationKey, MappedPointer, kind_of, usage_of};
use crate::error::ForeignHandle;
use sublet_engines::cast::index;
use sublet_engines::{Key, Tag};

/// Bits of [`Allocation::flags`].
pub(crate) mod allocation_flags {
    /// The allocation has its own memory.
    pub(crate) const DEDICATED: u8 = 1;
    /// Persistently mapped.
    pub(crate) const MAPPED: u8 = 2;
    /// Mapping is allowed.
    pub(crate) const HOST_ACCESS: u8 = 4;
    /// The memory type is host-visible.
    pub(crate) const HOST_VISIBLE: u8 = 8;
    /// The memory type is host-visible and host access needs flushes.
    pub(crate) const NON_COHERENT: u8 = 16;
    /// The debug settings need a call before it is freed.
    pub(crate) const WATCHED: u8 = 32;
}

/// A piece of device memory. It is neither `Copy` nor `Clone`, so that a freed allocation cannot be used or freed
/// again.
///
/// [`Self::memory`], [`Self::offset`] and [`Self::size`] are plain loads, without a call into the allocator. Dropping
/// it does not free it, because only the program knows when the GPU is done with it. Allocations that are never freed
/// are reported by name when their pool or allocator is destroyed.
///
/// ```
/// # use sublet::*;
/// # use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let requirements = vk::MemoryRequirements { size: 1000, alignment: 256, memory_type_bits: !0 };
/// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
/// assert_eq!(allocation.size(), 1000);
/// assert_eq!(allocation.offset() % 256, 0);
/// assert!(size_of::<Allocation>() <= 64);
/// // SAFETY: nothing was ever bound to it.
/// unsafe { allocator.free_memory(allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an allocation that is dropped stays allocated: give it to `free_memory` or `destroy_buffer`/`destroy_image`"]
#[doc(alias = "DeviceAllocation")]
#[repr(C)]
pub struct Allocation {
    // The fields that freeing reads come first, so that they mostly share a cache line.
    pub(crate) key: Key,
    /// The number of the vector. `generation` is the use of that vector.
    pub(crate) vector: u32,
    pub(crate) generation: u32,
    /// The number of the allocator.
    pub(crate) allocator: u32,
    pub(crate) memory_type: u8,
    pub(crate) flags: u8,
    /// The shard that owns `key`.
    pub(crate) shard: u8,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) mapped: MappedPointer,
    pub(crate) user_data: u64,
}

const _: () = assert!(size_of::<Allocation>() <= 64);

impl Allocation {
    /// The device memory of this allocation. Others may share it: see [`Self::offset`].
    #[must_use]
    pub fn memory(&self) -> vk::DeviceMemory {
        self.memory
    }

    /// Bytes from the start of [`Self::memory`].
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The requested size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A unique id of the allocation, for programs that keep a table. No other allocation of the program, live or
    /// freed, has the same id (until 2^32 more were made in the same place). The id is constant, except that
    /// [`Move::complete`](crate::Move::complete) changes it to that of the new place. A [`MemoryMap`](crate::MemoryMap)
    /// shows it.
    #[must_use]
    pub fn id(&self) -> AllocationId {
        AllocationId {
            allocator: self.allocator,
            vector: self.vector,
            generation: self.generation,
            shard: self.shard,
            dedicated: self.is_dedicated(),
            key: self.key.0,
        }
    }

    /// Index of the memory type.
    #[must_use]
    pub fn memory_type_index(&self) -> u32 {
        u32::from(self.memory_type)
    }

    /// Returns true if the allocation has its own device memory.
    #[must_use]
    pub fn is_dedicated(&self) -> bool {
        self.has(allocation_flags::DEDICATED)
    }

    /// The mapped address of the first byte, if the allocation was made with
    /// [`MAPPED`](crate::AllocationCreateFlags::MAPPED) in host-visible memory.
    ///
    /// The pointer is valid until the allocation is freed. The device may access the same memory at any time, so
    /// accesses must be ordered with the device's work. Memory that is not host-coherent also needs flushes or
    /// invalidations.
    #[must_use]
    pub fn mapped_pointer(&self) -> Option<NonNull<c_void>> {
        self.mapped.get().map(NonNull::cast)
    }

    /// The caller's own number.
    #[must_use]
    pub fn user_data(&self) -> u64 {
        self.user_data
    }

    /// Changes the caller's own number. If the allocator tracks it, use
    /// [`set_allocation_user_data`](crate::Allocator::set_allocation_user_data) instead.
    #[doc(alias = "SetPrivateData")]
    pub fn set_user_data(&mut self, user_data: u64) {
        self.user_data = user_data;
    }

    /// Returns true if host writes must be flushed, and device writes invalidated: the memory is host-visible but not
    /// host-coherent.
    #[must_use]
    #[inline]
    pub fn needs_flush(&self) -> bool {
        self.has(allocation_flags::NON_COHERENT)
    }

    /// A copy of the handle. Passing the original to a cold path would force it into memory on the fast path too.
    #[inline(always)]
    pub(crate) fn copied(&self) -> Self {
        Self { ..*self }
    }

    #[inline]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(crate) fn live(&self) -> AllocationKey {
        AllocationKey {
            generation: self.generation,
            key: self.key,
            dedicated: self.has(allocation_flags::DEDICATED),
            shard: self.shard,
        }
    }
}

/// Identifies one allocation: see [`Allocation::id`].
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
/// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
/// let mut owners = std::collections::BTreeMap::from([(allocation.id(), "shadow atlas")]);
/// assert_eq!(owners.remove(&allocation.id()), Some("shadow atlas"));
/// # unsafe { allocator.free_memory(allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AllocationId {
    pub(crate) allocator: u32,
    pub(crate) vector: u32,
    pub(crate) generation: u32,
    pub(crate) shard: u8,
    pub(crate) dedicated: bool,
    pub(crate) key: NonZeroU64,
}

impl fmt::Display for AllocationId {
    /// Hexadecimal numbers separated by hyphens. Different ids have different texts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocator, vector, generation, shard, dedicated, key } = *self;
        let dedicated = u8::from(dedicated);
        write!(f, "{allocator:x}-{vector:x}-{generation:x}-{shard:x}-{dedicated}-{key:x}")
    }
}

impl Allocation {
    /// Describes the allocation in error messages.
    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, size, memory_type, .. } = *self;
        match self.is_dedicated() {
            true => write!(f, "the dedicated allocation of {size} bytes in memory type {memory_type}"),
            false => write!(f, "the allocation of {size} bytes at {offset} in memory type {memory_type}"),
        }
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("memory", &self.memory)
            .field("offset", &self.offset)
            .field("size", &self.size)
            .field("memory_type_index", &self.memory_type)
            .field("dedicated", &self.is_dedicated())
            .field("mapped", &self.mapped.is_mapped())
            .field("user_data", &self.user_data)
            .field("shard", &self.shard)
            .finish_non_exhaustive()
    }
}

/// All properties of an allocation, including its name and the size of its memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AllocationInfo {
    /// Index of the memory type.
    pub memory_type_index: u32,
    /// The device memory of the allocation.
    pub memory: vk::DeviceMemory,
    /// Bytes from the start of that memory.
    pub offset: u64,
    /// The requested size in bytes.
    pub size: u64,
    /// The address where it is persistently mapped.
    pub mapped_pointer: Option<NonNull<c_void>>,
    /// The caller's own number.
    pub user_data: u64,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The code location of the allocation, with [`Tracking::CALLER`](crate::Tracking::CALLER).
    pub caller: Option<&'static Location<'static>>,
    /// Bytes of the device memory: of the block, or of the dedicated memory.
    pub memory_size: u64,
    /// True if it has its own device memory.
    pub dedicated: bool,
}

/// The allocator did not recognize the allocation, which this error contains.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
/// # let another = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
/// // SAFETY: nothing was ever bound to it.
/// let error = unsafe { another.free_memory(allocation) }.unwrap_err();
/// // SAFETY: as above.
/// unsafe { allocator.free_memory(error.allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FreeError {
    /// The allocation that was not freed.
    pub allocation: Allocation,
    pub(crate) source: ForeignHandle,
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.allocation.describe(f)?;
        write!(f, " was not freed: {}", self.source)
    }
}

impl Error for FreeError {}

/// The kind of resource of an allocation, as far as known.
///
/// ```
/// use sublet::ResourceKind;
///
/// assert!(ResourceKind::ALL.contains(&ResourceKind::Buffer));
/// assert_eq!(ResourceKind::ImageOptimal.text(), "IMAGE_OPTIMAL");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[doc(alias = "AllocationMode")]
pub enum ResourceKind {
    /// It was allocated without a resource.
    Unknown,
    /// A buffer.
    Buffer,
    /// An image with unknown tiling, or with a DRM modifier.
    ImageUnknown,
    /// An image with linear tiling.
    ImageLinear,
    /// An image with optimal tiling.
    ImageOptimal,
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl ResourceKind {
    /// Every kind, in the order of their numbers in recordings.
    pub const ALL: [Self; 5] =
        [Self::Unknown, Self::Buffer, Self::ImageUnknown, Self::ImageLinear, Self::ImageOptimal];

    /// The name in VMA's statistics string.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Buffer => "BUFFER",
            Self::ImageUnknown => "IMAGE_UNKNOWN",
            Self::ImageLinear => "IMAGE_LINEAR",
            Self::ImageOptimal => "IMAGE_OPTIMAL",
        }
    }

    /// The number of the kind in tags and traces.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Buffer => 1,
            Self::ImageUnknown => 2,
            Self::ImageLinear => 3,
            Self::ImageOptimal => 4,
        }
    }

    /// The kind in a tag.
    pub(crate) fn of(tag: Tag) -> Self {
        Self::ALL.get(index(kind_of(tag))).copied().unwrap_or(Self::Unknown)
    }

    /// The usage in a tag.
    pub(crate) fn usage_in(tag: Tag) -> u32 {
        usage_of(tag)
    }
}

const _: () = {
    let mut at = 0;
    while at < ResourceKind::ALL.len() {
        assert!(index(ResourceKind::ALL[at].number()) == at, "a kind is where its number says");
        at += 1;
    }
};

/// An allocation that was still live when its pool or allocator was destroyed.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
/// let info = AllocationCreateInfo { name: Some("forgotten"), ..Default::default() };
/// let _lost = allocator.allocate_memory(&requirements, &info)?;
/// let leaks = allocator.destroy();
/// assert_eq!(leaks[0].to_string(), "\"forgotten\": UNKNOWN, 4096 bytes at 0, memory type 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Leak {
    /// The allocation's name.
    pub name: Option<Box<str>>,
    /// Bytes in its block, rounding included.
    pub size: u64,
    /// Its offset in its block, in bytes; 0 if it was dedicated.
    pub offset: u64,
    /// The kind of resource.
    pub kind: ResourceKind,
    /// True if it had its own device memory.
    pub dedicated: bool,
    /// Index of the memory type.
    pub memory_type_index: u32,
    /// The name of its pool, if any.
    pub pool: Option<Box<str>>,
    /// The [number](crate::Pool::number) of its pool; `None` if it was in the default memory of its type.
    pub pool_number: Option<u32>,
    /// The caller's own number, with [`Tracking::USER_DATA`](crate::Tracking::USER_DATA).
    pub user_data: Option<u64>,
    /// The code location of the allocation, with [`Tracking::CALLER`](crate::Tracking::CALLER).
    pub caller: Option<&'static Location<'static>>,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name:?}: ")?,
            None => f.write_str("(unnamed): ")?,
        }
        write!(f, "{}, {} bytes", self.kind, self.size)?;
        match self.dedicated {
            true => f.write_str(", dedicated")?,
            false => write!(f, " at {}", self.offset)?,
        }
        match (&self.pool, self.pool_number) {
            (Some(pool), _) => write!(f, " in the pool {pool:?}")?,
            (None, Some(number)) => write!(f, " in pool {number}")?,
            (None, None) => {}
        }
        write!(f, ", memory type {}", self.memory_type_index)?;
        match self.caller {
            Some(caller) => write!(f, ", allocated at {}:{}", caller.file(), caller.line()),
            None => Ok(()),
        }
    }
}
