//! What descriptors need of a device: its functions, its limits, and a call for each thing that is asked of it.

mod buffer;
mod driver;
mod facts;
mod record;
mod write;

pub(crate) use driver::{DescriptorDriver, NewDescriptorPool};
pub(crate) use facts::DescriptorExtensions;
pub(crate) use record::BindTarget;
