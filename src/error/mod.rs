//! Errors, one type for each kind of operation. Each error reports what was requested and what was available. If a
//! driver call failed, its result is at the end of the chain of sources. An operation that fails changes nothing,
//! except that it may have freed empty memory.

mod access;
mod allocation;
mod allocator;
mod corruption;
mod defragment;
mod memory;
mod pool;
mod reserve;
mod resource;
mod sharing;

pub use access::{BindError, ForeignHandle, MapError};
pub use allocation::{AllocatePagesError, AllocationError, Contradiction};
pub use allocator::CreateAllocatorError;
pub use corruption::{CorruptionError, DamagedAllocation};
pub use defragment::BeginDefragmentationError;
pub use memory::MemoryError;
pub use pool::CreatePoolError;
pub use reserve::ReserveMemoryError;
pub use resource::{CreateError, FindMemoryTypeError};
pub use sharing::{AliasError, ExportError, HostImportError, PriorityError};
