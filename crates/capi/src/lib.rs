//! The C interface: VMA's functions under their own names, with VMA's structures.
//!
//! `include/vk_mem_alloc.h` declares and documents it for C11 and C++17. `cargo build -p sublet-capi --release` builds
//! a static and a shared library. With `SUBLET_VMA_3_3=1` in the environment of the build, the two structures that grew
//! between VMA 3.3 and 3.4 have their old sizes. This is not a Cargo feature, because Cargo unites the features of all
//! dependents of a package.
//!
//! This package is not for Rust programs. The functions are public so that benches can call them.
//!
//! Each function relies on these conditions. The safety comments of this crate refer to them:
//!
//! - **C1** Handles are null where the header allows it, or came from this library, and are live. Most uses of a freed
//!   handle are detected, but nothing relies on that. Each function checks first that pools, contexts and allocations
//!   belong to the given allocator.
//! - **C2** While a call frees, renames, moves or destroys an object, no other call uses its handle. Only one thread at
//!   a time uses a virtual block, a defragmentation context, or the name of a pool.
//! - **C3** Pointers are null where the header allows it, or valid: for reads where C has `const`, for writes
//!   elsewhere, and for as many elements as the header says. Strings end with a zero. Vulkan's structures and handles
//!   meet Vulkan's valid usage and belong to the allocator's live device. The device no longer uses what is destroyed.
//!   Alignment is that of C.
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(non_snake_case, reason = "the functions have the names that C programs call them by")]

pub mod allocator;
pub mod defragmentation;
mod error_in_c;
mod functions;
mod guard;
mod log;
mod pointer_set;
pub mod pool;
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
