//! Device memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use crate::objects::host_bytes::HostBytes;
use crate::objects::store::Store;

/// A `VkDeviceMemory`.
pub(crate) struct MemoryObject {
    pub(crate) info: MemoryInfo,
    pub(crate) heap: u32,
    pub(crate) properties: vk::MemoryPropertyFlags,
    pub(crate) store: Arc<Store>,
    /// Through the program's allocation callbacks, if it gave any.
    pub(crate) host: HostBytes,
    /// The mapped range: offset and end.
    pub(crate) mapped: Option<(u64, u64)>,
    /// The resources that are bound to it, by offset and handle.
    pub(crate) bindings: BTreeMap<(u64, u64), BoundResource>,
    /// True if two of `bindings` overlap, or once did: then the order of their ends is not the order of their starts.
    pub(crate) overlaps: bool,
    /// The device address of the memory.
    pub(crate) address: u64,
}

/// A resource in a memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundResource {
    pub(crate) end: u64,
    /// End of what the program asked for; what follows up to `end` is padding.
    pub(crate) used_end: u64,
    /// A buffer or an image with linear tiling.
    pub(crate) linear: bool,
    /// Created with `VK_IMAGE_CREATE_ALIAS_BIT`.
    pub(crate) alias: bool,
}

/// The request that a `VkDeviceMemory` was allocated with.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Size in bytes.
    pub size: u64,
    /// The memory type.
    pub type_index: u32,
    /// `VkMemoryDedicatedAllocateInfo::buffer`, or NULL.
    pub dedicated_buffer: vk::Buffer,
    /// `VkMemoryDedicatedAllocateInfo::image`, or NULL.
    pub dedicated_image: vk::Image,
    /// `VkMemoryPriorityAllocateInfoEXT::priority`, or what `vkSetDeviceMemoryPriorityEXT` set later.
    pub priority: Option<f32>,
    /// `VkMemoryAllocateFlagsInfo::flags`, as bits.
    pub flags: u32,
    /// `VkMemoryAllocateFlagsInfo::deviceMask`.
    pub device_mask: u32,
    /// `VkExportMemoryAllocateInfo::handleTypes`, as bits.
    pub export_handle_types: u32,
    /// The handle type that the memory was imported from, as a bit; 0 if it was not.
    pub import_handle_type: u32,
    /// The types of the structures in the `pNext` chain, in their order.
    pub chain: Vec<vk::StructureType>,
}

impl MemoryInfo {
    /// The kind of resource that the memory is dedicated to: [`BUFFER`](vk::ObjectType::BUFFER),
    /// [`IMAGE`](vk::ObjectType::IMAGE), or [`UNKNOWN`](vk::ObjectType::UNKNOWN) if it is not dedicated.
    pub fn dedicated_kind(&self) -> vk::ObjectType {
        if !self.dedicated_buffer.is_null() {
            vk::ObjectType::BUFFER
        } else if !self.dedicated_image.is_null() {
            vk::ObjectType::IMAGE
        } else {
            vk::ObjectType::UNKNOWN
        }
    }
}

impl std::fmt::Debug for MemoryInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryInfo")
            .field("size", &self.size)
            .field("type_index", &self.type_index)
            .field("dedicated_buffer", &self.dedicated_buffer)
            .field("dedicated_image", &self.dedicated_image)
            .field("priority", &self.priority)
            .field("flags", &format_args!("{:#x}", self.flags))
            .field("device_mask", &self.device_mask)
            .field("export_handle_types", &format_args!("{:#x}", self.export_handle_types))
            .field("import_handle_type", &format_args!("{:#x}", self.import_handle_type))
            .field("chain", &self.chain.iter().map(|kind| kind.as_raw()).collect::<Vec<_>>())
            .finish()
    }
}
