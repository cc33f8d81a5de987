//! The only layer that maps an offset to a `VkDeviceMemory`: vectors of blocks, dedicated memory, mappings and budgets.

mod block_vector;
mod budget;
mod dedicated;
mod device_block;
mod events;
mod growth;
mod mapped_pointer;
mod tag;

pub(crate) use block_vector::{
    AllocationKey, Annotation, BeginVectorError, BlockLack, BlockSearch, Effort, Emptied, Extent, Grant,
    MaintenanceWish, MemoryBlockVector, PassBudget, Planned, VectorCompaction, VectorRequest, VectorTotals,
    Visited,
};
pub(crate) use budget::Budgets;
pub(crate) use device_block::{DeviceContext, ReturnedBlock};
pub(crate) use events::emit_all_levels;
pub(crate) use mapped_pointer::MappedPointer;
#[cfg(feature = "trace")]
pub(crate) use tag::alignment_of;
#[allow(unused_imports, reason = "for reports")]
pub(crate) use tag::usage_of;
pub(crate) use tag::{kind_of, needs_whole_pages, tag_of, with_alignment};
