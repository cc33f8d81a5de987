//! The same random programs given to VMA and to Sublet, over the same simulated devices.
//!
//! ```text
//!   generate -> program -> play -+-> vma_side     -> tap -> simulated device
//!                                +-> sublet_side  -> tap -> simulated device
//!                play compares what both answer and what both taps have seen; books say what each holds
//!                a difference: explain -> one of differences, or the run fails with the shortest program found
//! ```
//!
//! While both hold the same memory (the same blocks, by owner, size and kind), everything is compared: the place, every
//! call of `vkAllocateMemory` with its chain, the budgets. Once a difference that is meant has left them with other
//! blocks, what does not depend on them is.
//!
//! With `SUBLET_TRACE` in the environment each allocation is printed as it is compared.

mod books;
mod command;
mod compact;
mod differences;
mod explain;
mod generate;
mod play;
mod program;
#[cfg(test)]
mod rows;
mod run;
mod side;
mod sublet_side;
mod tap;
#[cfg(test)]
mod tests;
mod vma_side;

pub(crate) use command::command;
