//! How arenas are to be made.
#![forbid(unsafe_code)]

use std::sync::Arc;

use ash::vk;

use crate::pool::Pool;

/// What becomes of a request that is larger than a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Oversize {
    /// It is refused, and nothing is made.
    Error,
    /// It gets a page of its own, which goes when its recording is done, unless
    /// [`own_pages_kept`](UploadArenaCreateInfo::own_pages_kept) says otherwise.
    #[default]
    OwnPage,
}

/// Which memory uploads are written to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum UploadMemory {
    /// The device's own memory if the host can write all of it: there is a host-visible type in a device-local heap of
    /// more than 256 MiB (a resizable BAR), or all heaps are device-local. Else the host's. What the device only copies
    /// from, because no usage but a transfer is asked for, stays in the host's memory.
    #[default]
    Auto,
    /// The device's own memory wherever there is any that the host can write, and be it the 256 MiB of a small BAR.
    PreferDevice,
    /// The host's memory wherever there is any that is not the device's.
    PreferHost,
}

/// How an [`UploadArena`](super::UploadArena) is to be made.
#[derive(Clone, Debug)]
pub struct UploadArenaCreateInfo<'a> {
    /// Bytes of a page, rounded up to `nonCoherentAtomSize`. A page should hold what one command buffer uploads.
    pub page_size: u64,
    /// What the pages' buffers are used for.
    pub usage: vk::BufferUsageFlags,
    /// Whether uploads have device addresses: adds `SHADER_DEVICE_ADDRESS`, and needs an allocator with
    /// [`BUFFER_DEVICE_ADDRESS`](crate::AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS).
    pub device_address: bool,
    /// What becomes of requests that are larger than a page.
    pub oversize: Oversize,
    /// Bytes that all pages together may have.
    pub memory_limit: Option<u64>,
    /// Which memory the pages are in. The pool decides if there is one.
    pub memory: UploadMemory,
    /// Where pages come from; `None` for a linear pool of the arena's own. Arenas that share one share its blocks.
    pub pool: Option<Arc<Pool>>,
    /// Pages in a block (a `VkDeviceMemory`) of the arena's own pool; 0 stands for 1.
    pub pages_per_block: u32,
    /// Free pages that are kept however long nobody needs them.
    pub pages_kept: u32,
    /// Free pages beyond these go when nobody has needed them for so many calls of
    /// [`collect`](super::UploadArena::collect); `None` keeps all.
    pub idle_collects: Option<u32>,
    /// Free pages of large requests that are kept for others as large.
    pub own_pages_kept: u32,
    /// Whether what a flush leaves of the current page is used under the next ticket. Else the next recording begins on
    /// another page, and the rest is wasted until the page is collected.
    pub share_pages: bool,
    /// Shown in maps and leak reports.
    pub name: Option<&'a str>,
}

impl Default for UploadArenaCreateInfo<'_> {
    /// Pages of 2 MiB for everything that a device reads in version 1.0.
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
