//! What descriptors need of a device: its functions, its limits, and one checked method for each call.

mod buffer;
mod commands;
mod driver;
mod facts;
mod heap;
pub mod heap_ffi;
mod write;

pub(crate) use commands::BindTarget;
pub(crate) use driver::{DescriptorDriver, NewDescriptorPool};
pub(crate) use facts::DescriptorExtensions;
