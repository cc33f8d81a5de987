//! What the library tells through `tracing`: what the guide promises comes, when nobody should be told anything nothing
//! comes, and who listens may use the allocator.
#![allow(clippy::unwrap_used, reason = "a test")]

mod collect;
mod memory;
mod promise;
mod quiet;
mod reentry;
mod sets;
mod source;
mod table;
