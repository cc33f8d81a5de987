//! Calls on descriptors, pipelines and render passes.

pub(crate) mod descriptor_buffer;
pub(crate) mod descriptor_heap;
pub(crate) mod descriptors;
pub(crate) mod passes;
pub(crate) mod pipeline;
