//! The layer above a driver that does what no driver of this machine does: it loses devices, reports its own memory
//! and budgets, binds sparse memory.
#![allow(clippy::unwrap_used, reason = "a test")]

mod calls;
mod fake;
