//! The locks and the tokens under real threads, and under loom.
#![forbid(unsafe_code)]

#[cfg(loom)]
mod modelled;
#[cfg(not(loom))]
mod stress;
#[cfg(not(loom))]
mod tokens;
