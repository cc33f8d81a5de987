//! Lifetime scopes: pools of every memory type, for what ends together.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::sync::OnceLock;

use super::Pool;

/// How a [`Scope`] is to be made.
///
/// ```
/// let info = sublet::ScopeCreateInfo { name: Some("level 3"), ..Default::default() };
/// assert_eq!(info.block_size, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScopeCreateInfo<'a> {
    /// Shown in maps, and in leak reports if the scope is never freed. Copied.
    pub name: Option<&'a str>,
    /// Bytes of each block; 0 lets the allocator choose and change sizes, and allows dedicated allocations in the
    /// scope.
    pub block_size: u64,
    /// Priority of the blocks, 0.0 to 1.0, where VK_EXT_memory_priority is enabled.
    pub priority: f32,
}

impl Default for ScopeCreateInfo<'_> {
    fn default() -> Self {
        Self { name: None, block_size: 0, priority: 0.5 }
    }
}

/// What ends together: a level, a document, a frame graph. Allocations of any usage are made in it; when it is freed
/// they are all gone at once, however many they are, and its blocks go back to the driver together.
///
/// It is a pool for each memory type that is needed, made when it is. Made by
/// [`create_scope`](crate::Allocator::create_scope), ended by [`free_scope`](crate::Allocator::free_scope). Neither
/// `Copy` nor `Clone`: a scope cannot be freed twice. Share it by reference: any number of threads may allocate in it.
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
    /// Which allocator made it.
    pub(crate) allocator: u32,
    /// What a trace calls it.
    #[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
    pub(crate) number: u32,
    pub(crate) name: Option<Box<str>>,
    pub(crate) block_size: u64,
    pub(crate) priority: f32,
    /// By memory type.
    pub(crate) pools: Box<[OnceLock<Pool>]>,
}

impl Scope {
    /// The pool that the scope has in a memory type, if anything was ever allocated there: for its statistics or its
    /// map.
    #[must_use]
    pub fn pool(&self, memory_type_index: u32) -> Option<&Pool> {
        self.pools.get(usize::try_from(memory_type_index).ok()?)?.get()
    }
}

/// The allocator did not make the scope, which is given back.
#[derive(Debug)]
pub struct FreeScopeError {
    /// What was to be freed.
    pub scope: Scope,
}

impl fmt::Display for FreeScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope.name {
            Some(name) => write!(f, "the scope \"{name}\" was not freed")?,
            None => f.write_str("the scope was not freed")?,
        }
        f.write_str(": it is of another allocator")
    }
}

impl Error for FreeScopeError {}
