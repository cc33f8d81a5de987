//! The safe interface as a sequence of calls, on a simulated device of any profile. Calls of the driver fail in between,
//! and any handle may be passed to an allocator that does not own it.
//!
//! After each program, no range overlaps another one, the statistics are the sums of the live allocations, the
//! simulated device has reported nothing, and nothing is left.
#![no_main]

mod call;
mod moves;
mod program;
mod virtual_ranges;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: call::Input| program::run(&input));
