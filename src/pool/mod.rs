//! Custom pools: blocks of one memory type with their own limits and algorithm.

mod facts;
mod scope;

use std::error::Error;
use std::fmt;

use crate::error::ForeignHandle;

pub(crate) use facts::{BlockSizing, NO_LIMIT, VectorConfig, VectorFacts};
pub use scope::{FreeScopeError, Scope, ScopeCreateInfo};

/// A custom pool: blocks of one memory type, with their own sizes, limit and algorithm. The value identifies the pool
/// in its allocator, which owns the blocks.
///
/// [`create_pool`](crate::Allocator::create_pool) creates it, and [`destroy_pool`](crate::Allocator::destroy_pool) ends
/// it. [`AllocationCreateInfo::in_pool`](crate::AllocationCreateInfo::in_pool) allocates in it.
/// [`guide::pools`](crate::guide::pools) shows rings, stacks and limits.
///
/// Neither `Copy` nor `Clone`: a pool cannot be destroyed twice. Share it by reference.
///
/// ```
/// # use {ash::vk, sublet::*};
/// # let (gpu, allocator) = sublet::doc_example();
/// let info = vk::BufferCreateInfo::default().size(1024).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
/// let usage = AllocationCreateInfo::new(MemoryUsage::Auto);
/// // SAFETY: the create-info is valid.
/// let memory_type = unsafe { allocator.find_memory_type_index_for_buffer_info(&info, &usage) }?;
/// let create_info = PoolCreateInfo { block_size: 4 << 20, max_block_count: 2, ..PoolCreateInfo::new(memory_type) };
/// let pool = allocator.create_pool(&create_info)?;
/// // SAFETY: the create-info is valid.
/// let (buffer, memory) = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::in_pool(&pool)) }?;
/// assert_eq!(allocator.pool_statistics(&pool)?.block_bytes, 4 << 20);
/// // SAFETY: the device never used the buffer.
/// unsafe { allocator.destroy_buffer(buffer, memory) }?;
/// // SAFETY: the pool is empty.
/// unsafe { allocator.destroy_pool(pool) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a pool lives until it is given to `destroy_pool`, or until its allocator is destroyed"]
pub struct Pool {
    /// The number of the allocator that created it.
    pub(crate) allocator: u32,
    /// Distinguishes this use of the vector from earlier ones.
    pub(crate) generation: u32,
    pub(crate) number: u32,
    pub(crate) facts: VectorFacts,
}

impl Pool {
    /// The index of the pool's memory type.
    #[must_use]
    pub fn memory_type_index(&self) -> u32 {
        self.facts.config.memory_type
    }

    /// The pool's number in a [`MemoryMap`](crate::MemoryMap). No two pools have the same number at the same time.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Bytes of a block; of the largest block if the allocator chooses the sizes.
    #[must_use]
    pub fn block_size(&self) -> u64 {
        self.facts.config.block_size
    }
}

/// A pool was not destroyed, because another allocator created it. The error contains the pool.
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let another = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let pool = allocator.create_pool(&PoolCreateInfo::new(0))?;
/// // SAFETY: nothing was allocated in it.
/// let error = unsafe { another.destroy_pool(pool) }.unwrap_err();
/// // SAFETY: as above.
/// unsafe { allocator.destroy_pool(error.pool) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DestroyPoolError {
    /// The pool that was not destroyed.
    pub pool: Pool,
}

impl fmt::Display for DestroyPoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory_type = self.pool.facts.config.memory_type;
        let why = ForeignHandle::Pool;
        write!(f, "pool {} of memory type {memory_type} was not destroyed: {why}", self.pool.number)
    }
}

impl Error for DestroyPoolError {}
