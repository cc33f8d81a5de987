//! Queues: submissions, the commands and kernels that they run, and the hazards between these.

mod execute;
pub(crate) mod judge;
pub(crate) mod kernel;
pub(crate) mod queue;
mod resample;
pub(crate) mod sparse;
pub(crate) mod sync;
