//! Tests of the locks and the tokens, with real threads and with loom.

#[cfg(loom)]
mod modelled;
#[cfg(not(loom))]
mod stress;
#[cfg(not(loom))]
mod tokens;
