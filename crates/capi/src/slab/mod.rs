//! The objects behind `VmaAllocation`.

mod handles;
#[cfg(test)]
mod tests;

pub(crate) use handles::{HandleSlab, HandleSlot};
