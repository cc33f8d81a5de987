//! Custom pools: blocks of one memory type with their own limits and algorithm.

mod facts;
mod scope;

use std::error::Error;
use std::fmt;

use crate::error::ForeignHandle;

pub(crate) use facts::{BlockSizing, NO_LIMIT, VectorConfig, VectorFacts};
pub use scope::{FreeScopeError, Scope, ScopeCreateInfo};

/// Identifies a custom pool of one allocator. [`create_pool`](crate::Allocator::create_pool) creates it,
/// [`destroy_pool`](crate::Allocator::destroy_pool) ends it.
///
/// Neither `Copy` nor `Clone`: a pool cannot be destroyed twice. Share it by reference.
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// let pool = allocator.create_pool(&PoolCreateInfo { block_size: 4 << 20, ..PoolCreateInfo::new(0) })?;
/// assert_eq!((pool.memory_type_index(), pool.block_size()), (0, 4 << 20));
/// // SAFETY: nothing was allocated in it.
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
