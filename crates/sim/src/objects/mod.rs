//! The objects behind the handles, and the steps that all calls on them share. Calls are in the layers above.

pub(crate) mod address;
pub(crate) mod commands;
pub(crate) mod descriptor_table;
pub(crate) mod descriptors;
pub(crate) mod entry;
pub(crate) mod faults;
pub(crate) mod features;
pub(crate) mod handle_map;
pub(crate) mod heaps;
pub(crate) mod host;
pub(crate) mod host_bytes;
pub(crate) mod kernels;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod passes;
pub(crate) mod pipelines;
pub(crate) mod queues;
pub(crate) mod registry;
pub(crate) mod resources;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod sync;
