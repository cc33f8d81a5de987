//! How a recording is written: the bytes of a trace, and their way from the calls of a program to a sink.
//!
//! This module knows numbers and bytes, and not what an allocation is: the allocator above fills in the values.
//! [`trace`](crate::trace) reads the bytes again, and describes the format.
//!
//! ```text
//!   call ──> record ─> payload ─full─> queue ──> writer's thread ──> sink
//!             ^ clock,   ^ under one     │ bounded: when all payloads wait,
//!               thread     lock          v the call waits, too
//!                        spare payloads <┘
//! ```
//!
//! - R1: every thread puts its records under one lock, so that all threads agree on the order of the file.
//! - R2: a payload that is not full is sent to the sink four times a second, so that a program that ends suddenly loses
//!   little.
//! - R3: a sink that fails or panics ends the recording, and nothing else. Stopping the recording returns the error.

pub(crate) mod bytes;
pub(crate) mod chunk;
mod clock;
mod crc;
pub(crate) mod encode;
pub(crate) mod error;
pub(crate) mod failure;
pub(crate) mod header;
mod payload;
pub(crate) mod raw;
pub(crate) mod recorder;
mod thread;
mod writer;
