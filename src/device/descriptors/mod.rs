//! What descriptors need of a device: its functions, its limits, and a call for each thing that is asked of it.

#![allow(dead_code, unused_imports, reason = "what binds and fills descriptors comes next")]

mod buffer;
mod driver;
mod facts;
mod record;
mod write;

pub(crate) use driver::{DescriptorDriver, NewDescriptorPool};
pub(crate) use facts::DescriptorFacts;
pub(crate) use record::BindTarget;
