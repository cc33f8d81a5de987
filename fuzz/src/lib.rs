//! Parts that the fuzz targets share.
//!
//! A target that calls an interface gets its calls from the fuzzer as values of an enum, by `arbitrary`, so that a
//! failing input can be printed as a program. It compares the results with a model: [`Places`], and the simulated
//! driver.

mod choice;
mod device;
mod places;

pub use choice::{Alignment, Calls, Choice, Number};
pub use device::{Fault, MEMORY_CALLS, MEMORY_LIMIT, finished, gpu, silent};
pub use places::Places;
