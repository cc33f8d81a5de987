//! The only module that calls `vk*` functions: the function tables, the limits, and one checked method for each call.

mod buffer;
mod commands;
mod facts;
mod functions;
mod heap;
mod sets;
mod write;

pub(crate) use commands::BindTarget;
pub(crate) use facts::DescriptorExtensions;
pub(crate) use sets::{DescriptorDriver, NewDescriptorPool};
