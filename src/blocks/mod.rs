//! The only floor where an offset meets a `VkDeviceMemory`: vectors of blocks, dedicated memory, mappings and budgets.

mod block_vector;
mod budget;
mod dedicated;
mod device_block;
mod growth;
mod mapping;

pub(crate) use block_vector::{
    BlockVector, Grant, Live, PlainRequest, Record, Totals, VectorRequest, Visited,
};
pub(crate) use budget::Budgets;
pub(crate) use device_block::DeviceContext;
pub(crate) use growth::{ChainPointer, VectorConfig};
pub(crate) use mapping::MappedPointer;
