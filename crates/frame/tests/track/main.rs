//! Tests the tracker against a judge that knows only the specification.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test")]

mod costs;
mod faults;
mod foreign;
mod judge;
mod minimal;
mod program;
mod random;
mod revoke;
mod states;

/// Number of programs for each test, set by `SUBLET_CASES`.
fn cases() -> u64 {
    std::env::var("SUBLET_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500)
}
