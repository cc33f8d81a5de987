//! Pipelines and shader modules.

mod compute;
pub(crate) mod graphics;

pub(crate) use compute::ENTRIES;
