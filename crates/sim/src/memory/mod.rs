//! Calls on memory, buffers and images.

pub(crate) mod allocate;
pub(crate) mod bind;
pub(crate) mod describe;
pub(crate) mod external;
pub(crate) mod mapping;
mod memory_chain;
pub(crate) mod requirements;
pub(crate) mod resource;
pub(crate) mod usage;
