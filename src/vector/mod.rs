//! A vector of blocks for any block source: memory, descriptor pools, pages, your own heaps.
//!
//! It combines two traits. The engine, a [`Metadata`](crate::metadata::Metadata), divides the blocks. The block source,
//! a [`Backing`], defines what a block is and what a span of it becomes. The vector provides the common part:
//!
//! | the vector | the block source |
//! |---|---|
//! | finds room; creates a block if there is none, within the limits of [`Policy`] | creates blocks: [`create`](Backing::create) |
//! | gives an oversize request its own block, and does not make later blocks larger for it | chooses the size of a block: [`capacity_for`](Backing::capacity_for), with [`Growth`] |
//! | rolls back failures | makes an item of a span: [`realize`](Backing::realize), [`release`](Backing::release) |
//! | closes a block that refuses although it has room, and tries the next | reports it: [`Refusal::Exhausted`] |
//! | keeps empty blocks, up to a threshold and for a time | resets and destroys them: [`reset`](Backing::reset), [`destroy`](Backing::destroy) |
//! | frees grants that the GPU uses when their [ticket](crate::retire::Ticket) is done | |
//! | statistics, visiting, keys that detect misuse | |
//!
//! Freed units can be reused at once after [`free`](BlockVector::free), or when a ticket is done after
//! [`retire`](BlockVector::retire). Threads share a vector behind a lock.
//!
//! A block source may take its blocks from another vector, and that one from a third. [A
//! chapter](crate::guide::block_sources) shows both.
//!
//! ```
//! use sublet::metadata::{Alignment, RangeMetadata, Request, Span, Tlsf};
//! use sublet::vector::*;
//!
//! /// Blocks of host memory.
//! struct Bytes(Growth);
//!
//! impl<M: RangeMetadata> Backing<M> for Bytes {
//!     type Block = Vec<u8>;
//!     type Item = ();
//!     type Error = std::collections::TryReserveError;
//!
//!     fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
//!         Some(self.0.next(request.map_or(0, |request| request.size), limits.largest))
//!     }
//!     fn create(&self, capacity: &u64) -> Result<Vec<u8>, Self::Error> {
//!         let mut bytes = Vec::new();
//!         bytes.try_reserve_exact(*capacity as usize)?;
//!         bytes.resize(*capacity as usize, 0);
//!         Ok(bytes)
//!     }
//!     fn destroy(&self, _: Vec<u8>) {}
//!     fn realize(&self, _: &mut Vec<u8>, _: &Span) -> Result<(), Refusal<Self::Error>> {
//!         Ok(())
//!     }
//! }
//!
//! let source = Bytes(Growth { first: 1024, preferred: 4096 });
//! let mut vector = BlockVector::new(source, Tlsf::exact(1 << 20), Policy::default())?;
//! let request = |size| Request::new(size, Alignment::ONE);
//! let small = vector.allocate(&request(100))?;
//! let large = vector.allocate(&request(100_000))?;
//! let (block, span) = vector.block_mut(small.key())?;
//! block[span.offset as usize] = 7;
//! assert_eq!((vector.statistics().blocks, vector.statistics().own_blocks), (2, 1));
//! vector.free(large).unwrap();
//! assert_eq!(vector.statistics().blocks, 1, "the block of its own has gone");
//! # vector.free(small).unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backing;
mod grow;
pub(crate) mod hysteresis;
mod owned;
pub(crate) mod policy;
mod state;
#[cfg(test)]
mod tests;

pub use self::backing::{
    Backing, BlockInfo, GiveBackError, GrantOf, Granted, GrowthLimits, HandleError, Refusal, VectorError,
    VectorKey, VectorStatistics,
};
pub use self::owned::BlockVector;
pub use self::policy::{Growth, NextBlock, Policy, PolicyError};
