//! Buffers, images, and their views.

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;

use crate::facts::format::{BufferDescription, ImageDescription, Requirements};
use crate::objects::host_bytes::HostBytes;
use crate::objects::store::Store;

/// The memory and the offset that a resource is bound to.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBinding {
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    /// The bytes of `memory`. They stay as long as a command may use them, whatever the program frees.
    pub(crate) store: Arc<Store>,
}

/// A `VkBuffer`.
pub(crate) struct BufferObject {
    pub(crate) description: BufferDescription,
    pub(crate) requirements: Requirements,
    pub(crate) bound: Option<MemoryBinding>,
    /// The places of its pages, if it is sparse.
    pub(crate) pages: Option<SparsePages>,
    /// Through the program's allocation callbacks, if it gave any: then it has to give some at destruction too.
    pub(crate) host: HostBytes,
    /// `VkExternalMemoryBufferCreateInfo::handleTypes`, as bits.
    pub(crate) external: u32,
    /// True if one family of queues owns it at a time.
    pub(crate) exclusive: bool,
    /// The count of submissions that are not done and name this buffer.
    pub(crate) in_use: u32,
}

impl BufferObject {
    /// Returns whether it has memory, or is sparse and may have pages anywhere.
    pub(crate) fn is_backed(&self) -> bool {
        self.bound.is_some() || self.pages.is_some()
    }
}

/// A `VkImage`.
pub(crate) struct ImageObject {
    pub(crate) description: ImageDescription,
    pub(crate) requirements: Requirements,
    pub(crate) bound: Option<MemoryBinding>,
    /// Through the program's allocation callbacks, if it gave any: then it has to give some at destruction too.
    pub(crate) host: HostBytes,
    /// `VkExternalMemoryImageCreateInfo::handleTypes`, as bits.
    pub(crate) external: u32,
    /// True if one family of queues owns it at a time.
    pub(crate) exclusive: bool,
    /// The count of submissions that are not done and name this image.
    pub(crate) in_use: u32,
}

/// A `VkBufferView`.
pub(crate) struct BufferView {
    pub(crate) buffer: vk::Buffer,
    /// Its offset in the buffer, and its size in bytes, or `VK_WHOLE_SIZE`.
    pub(crate) start: u64,
    pub(crate) size: u64,
}

/// A `VkImageView`.
pub(crate) struct ImageView {
    pub(crate) image: vk::Image,
    /// As the program gave it.
    pub(crate) range: vk::ImageSubresourceRange,
    pub(crate) format: vk::Format,
}

/// The memory behind a range of a sparse buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparseRange {
    pub(crate) size: u64,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
}

/// The ranges of a sparse buffer that are bound, by their offsets in it.
pub(crate) type SparsePages = BTreeMap<u64, SparseRange>;
