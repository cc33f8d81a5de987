//! A device whose calls do nothing.

pub(crate) mod descriptor_buffer;
pub(crate) mod descriptors;
mod device;

#[cfg(test)]
pub(crate) use device::functions;
pub(crate) use device::{Replacement, descriptor_limits, do_nothing, function, handle, replacements};
