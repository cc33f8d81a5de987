//! Runs the same random programs on VMA and on Sublet, on the same simulated devices.
//!
//! ```text
//!   generate -> program -> play -+-> vma_side     -> tap -> simulated device
//!                                +-> sublet_side  -> tap -> simulated device
//!                play compares the results and the logged calls of both; `SideMemory` has the memory of each
//!                a difference: explain -> one of differences, or the run fails with the shortest program found
//! ```
//!
//! While both hold the same memory (the same blocks, by owner, size and kind), everything is compared: placements,
//! every call of `vkAllocateMemory` with its chain, and budgets. After an intended difference the two may have
//! different blocks. Then only properties that do not depend on the blocks are compared.
//!
//! With `SUBLET_TRACE` in the environment, each compared allocation is printed.

mod command;
mod compact;
mod differences;
mod explain;
mod generate;
mod memory;
mod play;
mod program;
mod run;
mod side;
mod sublet_side;
mod tap;
#[cfg(test)]
mod tests;
mod vma_side;

pub(crate) use command::command;
