//! Sublet lets Vulkan device memory by the piece: it takes large `VkDeviceMemory` blocks from the driver and sublets
//! ranges of them.

mod base;
pub mod device;
pub mod metadata;
mod statistics;
mod virtual_block;

pub use base::sync::{Local, Shared, Threading};
pub use device::MemoryAllocateNext;
#[cfg(feature = "sim")]
pub use device::sim;
pub use metadata::Algorithm;
pub use statistics::{DetailedStatistics, Statistics};
pub use virtual_block::*;
