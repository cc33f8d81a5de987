//! The only floor where an offset meets a `VkDeviceMemory`: vectors of blocks, dedicated memory, mappings and budgets.

mod block_vector;
mod budget;
mod dedicated;
mod device_block;
mod growth;
mod mapped_pointer;
mod news;
mod tag;
mod vector_config;

pub(crate) use block_vector::{
    BeginError, BlockVector, Compaction, Effort, Emptied, Extent, Grant, Live, PassBudget, Planned, Record,
    Totals, VectorRequest, Visited,
};
pub(crate) use budget::Budgets;
pub(crate) use device_block::{DeviceContext, ReturnedBlock};
pub(crate) use mapped_pointer::MappedPointer;
pub(crate) use news::tell_all_levels;
#[cfg(feature = "trace")]
pub(crate) use tag::alignment_of;
#[allow(unused_imports, reason = "for reports")]
pub(crate) use tag::usage_of;
pub(crate) use tag::{kind_of, needs_whole_pages, tag_of, with_alignment};
pub(crate) use vector_config::{NO_LIMIT, VectorConfig, VectorFacts};
