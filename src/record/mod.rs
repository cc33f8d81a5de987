//! Writes recordings: encodes the calls of a program, and passes the bytes to a sink.
//!
//! This module handles numbers and bytes. It does not depend on the allocator, which provides the values.
//! [`trace`](crate::trace) decodes the bytes, and documents the format.
//!
//! ```text
//!   call ──> record ─> payload ─full─> queue ──> writer's thread ──> sink
//!             ^ clock,   ^ under one     │ bounded: when all payloads wait,
//!               thread     lock          v the call waits, too
//!                        spare payloads <┘
//! ```
//!
//! - R1: every thread adds its records under one lock, so the file has one order for all threads.
//! - R2: a partial payload is sent to the sink four times a second, so that a program that ends suddenly loses little.
//! - R3: a sink that fails or panics ends the recording, and affects nothing else. Stopping the recording returns the
//!   error.

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
