//! The objects of a foreign program.

use ash::vk;

/// The number of a `VkDeviceMemory` in a foreign recording, counted from 1. Numbers are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MemoryNumber(pub u64);

/// The number of a buffer or an image in a foreign recording, counted like memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ResourceNumber(pub u64);

bitflags::bitflags! {
    /// The kind of a foreign program's memory.
    ///
    /// ```
    /// use sublet::trace::ForeignMemoryFlags;
    /// let flags = ForeignMemoryFlags::DEDICATED | ForeignMemoryFlags::IMPORTED;
    /// assert_eq!(flags.bits(), 3);
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct ForeignMemoryFlags: u32 {
        /// It is dedicated to one resource.
        const DEDICATED = 1;
        /// It was imported from another process or API, or from memory of the host.
        const IMPORTED = 2;
        /// It may be exported.
        const EXPORTABLE = 4;
        /// It has a device address.
        const DEVICE_ADDRESS = 8;
        /// It was mapped before the part of a recording began that describes it.
        const WAS_MAPPED = 16;
        /// A range of it was flushed or invalidated before that.
        const WAS_SYNCHRONIZED = 32;
        /// A resource was bound to it before that.
        const WAS_BOUND = 64;
    }
}

/// The parameters of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForeignImage {
    /// Its format.
    pub format: vk::Format,
    /// Its width in texels.
    pub width: u32,
    /// Its height in texels.
    pub height: u32,
    /// Its depth in texels.
    pub depth: u32,
    /// Its mip levels.
    pub mip_levels: u32,
    /// Its array layers.
    pub array_layers: u32,
    /// Its samples for each texel.
    pub samples: u32,
    /// Its tiling. Each tiling with a DRM modifier is `vk::ImageTiling::DRM_FORMAT_MODIFIER_EXT`.
    pub tiling: vk::ImageTiling,
    /// Its usage.
    pub usage: vk::ImageUsageFlags,
    /// Its flags.
    pub flags: vk::ImageCreateFlags,
    /// Its type.
    pub image_type: vk::ImageType,
}

/// The memory requirements of a resource, or of a plane of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForeignRequirements {
    /// The plane of a disjoint image; `None` for all of the resource.
    pub plane: Option<u32>,
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes.
    pub alignment: u64,
    /// The memory types that the resource supports, one bit each.
    pub memory_type_bits: u32,
    /// The driver prefers dedicated memory for the resource.
    pub prefers_dedicated: bool,
    /// The driver requires dedicated memory for the resource.
    pub requires_dedicated: bool,
}

/// An object with a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ForeignObject {
    /// Device memory.
    Memory(MemoryNumber),
    /// A buffer or an image.
    Resource(ResourceNumber),
}

/// A range of a sparse resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SparseBinding {
    /// Bytes from the start of the resource.
    pub resource_offset: u64,
    /// Bytes of the range.
    pub size: u64,
    /// The memory; `None` if the range was unbound.
    pub memory: Option<MemoryNumber>,
    /// Bytes from the start of the memory.
    pub memory_offset: u64,
}

/// The driver's report on memory of an object that it manages by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriverMemoryReport {
    /// The kind of report.
    pub action: DriverMemoryAction,
    /// The driver's number of the memory.
    pub object: u64,
    /// The type of the object that uses it.
    pub object_type: vk::ObjectType,
    /// The size in bytes; 0 for frees.
    pub size: u64,
    /// Index of the heap.
    pub heap: u32,
}

/// The kind of a [`DriverMemoryReport`], as in `VkDeviceMemoryReportEventTypeEXT`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum DriverMemoryAction {
    /// Memory was allocated.
    #[default]
    Allocated,
    /// Memory was freed.
    Freed,
    /// Memory was imported.
    Imported,
    /// Imported memory was released.
    Unimported,
    /// An allocation failed.
    Failed,
}
