//! Scopes: pools of every memory type, for allocations that end together.

use std::error::Error;
use std::fmt;
use std::sync::OnceLock;

use super::Pool;

/// Parameters of a [`Scope`].
///
/// ```
/// let info = sublet::ScopeCreateInfo { name: Some("level 3"), ..Default::default() };
/// assert_eq!(info.block_size, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScopeCreateInfo<'a> {
    /// Shown in memory maps, and in leak reports if the scope is never freed. Copied.
    pub name: Option<&'a str>,
    /// Bytes of each block; 0 lets the allocator choose and change sizes, and allows dedicated allocations in the
    /// scope.
    pub block_size: u64,
    /// Priority of the blocks, 0.0 to 1.0, if VK_EXT_memory_priority is enabled.
    pub priority: f32,
}

impl Default for ScopeCreateInfo<'_> {
    fn default() -> Self {
        Self { name: None, block_size: 0, priority: 0.5 }
    }
}

/// The memory of allocations that end together: a level, a document, a frame graph. It takes allocations of any usage.
/// Freeing it frees all of them at once, however many there are, and frees its blocks.
///
/// It has one pool for each memory type, created on first use. [`create_scope`](crate::Allocator::create_scope) creates
/// a scope, [`free_scope`](crate::Allocator::free_scope) ends it. Neither `Copy` nor `Clone`: a scope cannot be freed
/// twice. Share it by reference: any number of threads may allocate in it.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// let level = allocator.create_scope(&ScopeCreateInfo { name: Some("level 1"), ..Default::default() })?;
/// let info = vk::BufferCreateInfo::default().size(65_536).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
/// let in_level = AllocationCreateInfo { usage: MemoryUsage::Auto, ..AllocationCreateInfo::in_scope(&level) };
/// let mut buffers = Vec::new();
/// for _ in 0..100 {
///     // The create-info is valid. The allocation need not be kept: its scope ends it.
///     let (buffer, _) = unsafe { allocator.create_buffer(&info, &in_level) }?;
///     buffers.push(buffer);
/// }
/// // The device is done with the level.
/// for buffer in buffers {
///     unsafe { gpu.device().destroy_buffer(buffer, None) };
/// }
/// let freed = unsafe { allocator.free_scope(level) }?;
/// assert_eq!((freed.allocation_count, allocator.statistics().block_count), (100, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a scope lives until it is given to `free_scope`, or until its allocator is destroyed"]
pub struct Scope {
    /// The number of the allocator that created it.
    pub(crate) allocator: u32,
    /// Its number in a trace.
    #[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
    pub(crate) number: u32,
    pub(crate) name: Option<Box<str>>,
    pub(crate) block_size: u64,
    pub(crate) priority: f32,
    /// By memory type.
    pub(crate) pools: Box<[OnceLock<Pool>]>,
}

impl Scope {
    /// The scope's pool in a memory type, for its statistics or its map. `None` if nothing was ever allocated there.
    #[must_use]
    pub fn pool(&self, memory_type_index: u32) -> Option<&Pool> {
        self.pools.get(usize::try_from(memory_type_index).ok()?)?.get()
    }
}

/// A scope was not freed, because another allocator created it. The error contains the scope.
#[derive(Debug)]
pub struct FreeScopeError {
    /// The scope that was not freed.
    pub scope: Scope,
}

impl fmt::Display for FreeScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope.name {
            Some(name) => write!(f, "the scope {name:?} was not freed")?,
            None => f.write_str("the scope was not freed")?,
        }
        f.write_str(": it is of another allocator")
    }
}

impl Error for FreeScopeError {}
