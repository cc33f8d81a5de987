//! The same random programs given to VMA and to Sublet, over the same simulated devices.

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
