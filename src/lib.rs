//! Sublet lets Vulkan device memory by the piece: it takes large `VkDeviceMemory` blocks from the driver and sublets
//! ranges of them.

mod allocation;
mod allocator;
mod base;
mod blocks;
mod create_info;
pub mod device;
mod error;
mod memory_type;
pub mod metadata;
mod pool;
mod resource;
mod statistics;
mod virtual_block;

pub use allocation::{Allocation, AllocationInfo, FreeError, Leak, ResourceKind};
pub use allocator::{Allocator, AllocatorCreateInfo, HeapBudget, LocalAllocator, Mapping};
pub use base::sync::{Local, Shared, Threading};
pub use create_info::{
    AllocationCreateFlags, AllocationCreateInfo, AllocatorCreateFlags, MemoryUsage, PoolCreateFlags,
    PoolCreateInfo,
};
pub use device::MemoryAllocateNext;
#[cfg(feature = "sim")]
pub use device::sim;
pub use error::{
    AllocatePagesError, AllocationError, BindError, Contradiction, CreateAllocatorError, CreateError,
    CreatePoolError, FindMemoryTypeError, ForeignHandle, MapError, MemoryError,
};
pub use memory_type::NoMemoryType;
pub use metadata::Algorithm;
pub use pool::{DestroyPoolError, Pool};
pub use statistics::{DetailedStatistics, Statistics};
pub use virtual_block::*;
