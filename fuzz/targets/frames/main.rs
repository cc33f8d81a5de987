//! Frames as a sequence of calls, on a simulated device of any profile with checks for hazards. There are two `Frames`,
//! and each gets the lists and resources of the other one, too. Calls of the driver fail in between.
//!
//! Every byte that is read back is compared with a model on the host. After each program, the simulated device has
//! reported nothing, and nothing is left.
#![no_main]

mod call;
mod model;
mod program;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: call::Input| program::run(&input));
