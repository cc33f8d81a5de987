//! Facts that no call changes: formats, profiles of GPUs, extensions, and the form of rules.

pub(crate) mod arithmetic;
pub(crate) mod broken;
pub(crate) mod chain;
pub(crate) mod extensions;
pub mod format;
pub(crate) mod machine;
pub mod profiles;

pub(crate) use sublet_vk::descriptor_heap as ffi;
