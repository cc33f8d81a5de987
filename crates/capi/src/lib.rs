//! The C interface: VMA's functions under their own names, with VMA's structures.
//!
//! `include/vk_mem_alloc.h` declares and documents it for C11 and C++17. `cargo build -p sublet-capi --release` makes
//! both libraries of it. With `SUBLET_VMA_3_3=1` in the environment of the build, the two structures that grew between
//! VMA 3.3 and 3.4 have their old sizes. That is no feature of Cargo, because Cargo unites the features of all
//! dependents of a package.
//!
//! Nothing here is meant for Rust: the functions are public so that benches can call them.
//!
//! What each function relies on, and every proof in here refers to:
//!
//! - **C1** Handles are null where the header allows it, or came from this library, and are live. A handle that was
//!   freed is mostly noticed, and nothing relies on that. That pools, contexts and allocations belong to the allocator
//!   that they are given with is checked before anything is done with them.
//! - **C2** While a call frees, renames, moves or destroys what a handle is of, no other call uses the handle. A virtual
//!   block, a defragmentation context, and the name of a pool are used by one thread at a time.
//! - **C3** Pointers are null where the header allows it, or valid for what they are of: for reads where C has `const`,
//!   for writes elsewhere, for as many elements as the header says; strings end with a zero. Vulkan's structures and
//!   handles meet Vulkan's valid usage and belong to the allocator's device, which lives, and the device no longer uses
//!   what is destroyed. Alignment is that of C.
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(non_snake_case, reason = "the functions have the names that C programs call them by")]

pub mod allocator;
pub mod defragmentation;
mod functions;
mod guard;
mod held;
mod log;
pub mod pool;
mod refusal;
mod settings;
#[cfg(feature = "sim")]
mod simulated;
pub mod slab;
mod types;
pub mod virtual_block;

pub use functions::*;
pub use log::LogFunction;
#[cfg(feature = "sim")]
pub use simulated::*;
pub use types::*;
