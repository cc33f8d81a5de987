//! The device calls for descriptors: functions, limits, and one checked method for each call.

mod buffer;
mod commands;
mod driver;
mod facts;
mod heap;
mod write;

pub(crate) use commands::BindTarget;
pub(crate) use driver::{DescriptorDriver, NewDescriptorPool};
pub(crate) use facts::DescriptorExtensions;
