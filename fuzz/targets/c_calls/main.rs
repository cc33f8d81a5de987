//! The C interface as a sequence of calls, on a simulated device of any profile. Handles are null, or live and of either
//! of two allocators. Structures have any content that C can express.
//!
//! After each program, no range overlaps another one, the statistics are the sums of the live allocations, the
//! simulated device has reported nothing, and nothing is left.
#![no_main]

mod call;
mod program;

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: program::set_up(), |input: call::Input| program::run(&input));
