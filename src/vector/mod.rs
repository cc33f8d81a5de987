//! One vector of blocks for every landlord: memory, descriptor pools, pages, heaps of your own.
//!
//! Two traits meet in it. The engine, a [`Metadata`](crate::metadata::Metadata), divides the blocks. The landlord, a
//! [`Backing`], says what a block is and what a span of it becomes. The vector has what is the same for all of them:
//!
//! | the vector | the landlord |
//! |---|---|
//! | finds room; makes a block where there is none, and never more than [`Policy`] allows | makes one: [`create`](Backing::create) |
//! | gives an oversize request a block of its own, and later blocks are no larger for it | says how large a block is: [`capacity_for`](Backing::capacity_for), with [`Growth`] |
//! | rolls back whatever fails | makes an item of a span: [`realize`](Backing::realize), [`release`](Backing::release) |
//! | seals a block that refuses although it has room, and tries the next | says so: [`Refusal::Exhausted`] |
//! | keeps empty blocks, up to a threshold and for a time | makes them as new: [`reset`](Backing::reset), [`destroy`](Backing::destroy) |
//! | takes back what the GPU uses when its [ticket](crate::retire::Ticket) is done | |
//! | statistics, walking, plans to empty a block, handles that are found out | |
//!
//! Two questions are the landlord's to answer. **Who touches a block?** One thread has a [`BlockVector`]; several have a
//! [`SharedBlockVector`], which makes blocks without the lock that the others need. **When is what was given back used
//! again?** At once after [`free`](BlockVector::free); when a ticket is done after [`retire`](BlockVector::retire).
//!
//! A landlord may take its blocks out of another vector, and that one out of a third.
//! [A chapter](crate::guide::landlords) writes both traits.
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
//!     fn capacity_for(&self, request: Option<&Request>, outlook: &Outlook) -> Option<NextBlock<u64>> {
//!         Some(self.0.next(request.map_or(0, |request| request.size), outlook.largest))
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
//! let landlord = Bytes(Growth { first: 1024, preferred: 4096 });
//! let mut vector = BlockVector::new(landlord, Tlsf::exact(1 << 20), Policy::default())?;
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
mod books;

mod grow;
mod owned;
mod plan;
pub(crate) mod policy;
mod shared;
#[cfg(test)]
mod tests;

pub use self::backing::{
    Backing, BlockInfo, GiveBackError, GrantOf, Granted, HandleError, Outlook, Refusal, VectorError,
    VectorKey, VectorStatistics,
};
pub use self::owned::BlockVector;
pub use self::plan::{EmptyingPlan, PlannedMove};
pub use self::policy::{Growth, NextBlock, Policy, PolicyError};
pub use self::shared::SharedBlockVector;
