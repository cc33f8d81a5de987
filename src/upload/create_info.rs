//! Parameters of arenas.

use std::sync::Arc;

use ash::vk;

use crate::pool::Pool;

/// The handling of a request that is larger than a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Oversize {
    /// The request fails, and nothing is created.
    Error,
    /// The request gets its own page, which is destroyed when its recording is done, unless
    /// [`own_pages_kept`](UploadArenaCreateInfo::own_pages_kept) keeps it.
    #[default]
    OwnPage,
}

/// The memory that uploads are written to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum UploadMemory {
    /// Device memory if the host can write all of it, otherwise host memory. The host can if a device-local heap of
    /// more than 256 MiB has a host-visible type (a resizable BAR), or if all heaps are device-local. Uploads that the
    /// device only copies from (only transfer usages are set) are in host memory.
    #[default]
    Auto,
    /// Device memory if the host can write any of it, even the 256 MiB of a small BAR.
    PreferDevice,
    /// Host memory, if there is any that is not device-local.
    PreferHost,
}

/// Parameters of an [`UploadArena`](super::UploadArena).
#[derive(Clone, Debug)]
pub struct UploadArenaCreateInfo<'a> {
    /// The size of a page in bytes, rounded up to `nonCoherentAtomSize`. A page should hold the uploads of one command
    /// buffer.
    pub page_size: u64,
    /// The usages of the pages' buffers.
    pub usage: vk::BufferUsageFlags,
    /// If true, uploads have device addresses: adds `SHADER_DEVICE_ADDRESS`, and needs an allocator with
    /// [`BUFFER_DEVICE_ADDRESS`](crate::AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS).
    pub device_address: bool,
    /// The handling of requests that are larger than a page.
    pub oversize: Oversize,
    /// The maximum size of all pages together, in bytes.
    pub memory_limit: Option<u64>,
    /// The memory of the pages. Ignored if `pool` is set.
    pub memory: UploadMemory,
    /// The pool that pages come from; `None` for the arena's own linear pool. Arenas with the same pool share its
    /// blocks.
    pub pool: Option<Arc<Pool>>,
    /// The number of pages in a block (a `VkDeviceMemory`) of the arena's own pool; 0 means 1.
    pub pages_per_block: u32,
    /// The number of free pages that are always kept.
    pub pages_kept: u32,
    /// Free pages beyond `pages_kept` are destroyed after being idle for this many calls of
    /// [`collect`](super::UploadArena::collect); `None` keeps all.
    pub idle_collects: Option<u32>,
    /// The number of free pages of large requests that are kept for similar requests.
    pub own_pages_kept: u32,
    /// If true, the rest of the current page is used under the next ticket after a flush. Otherwise the next recording
    /// begins on another page, and the rest is wasted until the page is collected.
    pub share_pages: bool,
    /// The name in memory maps and leak reports.
    pub name: Option<&'a str>,
}

impl Default for UploadArenaCreateInfo<'_> {
    /// Pages of 2 MiB, with all buffer usages that a device reads in Vulkan 1.0.
    fn default() -> Self {
        Self {
            page_size: 2 << 20,
            usage: vk::BufferUsageFlags::TRANSFER_SRC
                | vk::BufferUsageFlags::UNIFORM_BUFFER
                | vk::BufferUsageFlags::STORAGE_BUFFER
                | vk::BufferUsageFlags::INDEX_BUFFER
                | vk::BufferUsageFlags::VERTEX_BUFFER
                | vk::BufferUsageFlags::INDIRECT_BUFFER,
            device_address: false,
            oversize: Oversize::default(),
            memory_limit: None,
            memory: UploadMemory::default(),
            pool: None,
            pages_per_block: 1,
            pages_kept: 2,
            idle_collects: Some(120),
            own_pages_kept: 0,
            share_pages: false,
            name: None,
        }
    }
}
