//! Chapters to read, rather than items to look up.
//!
//! [`memory`] says what to ask for, [`pools`] how to have memory with limits of its own, [`moving`] how blocks become free of what still
//! lives, [`retirement`] when what the GPU uses may be freed, [`uploads`] how bytes get to the device,
//! [`descriptors`] what shaders are told of it,
//! [`c`] how to use the library from C and C++, [`differences`] what is not as in VMA, [`performance`] what costs what, and how
//! it came to cost no more, [`design`] why all this is as it is.
#![forbid(unsafe_code)]

#[doc = include_str!("memory.md")]
pub mod memory {}

#[doc = include_str!("pools.md")]
pub mod pools {}

#[doc = include_str!("moving.md")]
pub mod moving {}

#[doc = include_str!("retirement.md")]
pub mod retirement {}

#[doc = include_str!("descriptors.md")]
pub mod descriptors {}

#[doc = include_str!("uploads.md")]
pub mod uploads {}

#[doc = include_str!("c.md")]
pub mod c {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("differences.md")]
pub mod differences {}

#[doc = include_str!("design.md")]
pub mod design {}
