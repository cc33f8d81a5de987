//! The path of an allocation: the numbered lists in `src/allocator/route.rs` match the source and the driver's calls,
//! and the number of functions on the path does not grow. `cargo test --test path -- --nocapture` lists them.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

mod driver;
mod source;
