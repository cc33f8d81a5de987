//! What descriptors need of a device: its functions, its limits, and a call for each thing that is asked of it.

mod buffer;
mod commands;
mod driver;
mod facts;
mod write;

pub(crate) use commands::BindTarget;
pub(crate) use driver::{DescriptorDriver, NewDescriptorPool};
pub(crate) use facts::DescriptorExtensions;
