//! Recording: the bytes of a trace, and the way that they take from the calls of a program to a sink.
//!
//! This room knows numbers and bytes, and not what an allocation is: the allocator above fills in what it was asked,
//! and [`trace`](crate::trace), which reads the bytes again, is above that. The format is described there.
//!
//! ```text
//!   call ──> record ─> payload ─full─> queue ──> writer's thread ──> sink
//!             ^ clock,   ^ under one     │ bounded: when all payloads wait,
//!               thread     lock          v the call waits, too
//!                        spare payloads <┘
//! ```
//!
//! - R1: a record is put under one lock, whoever calls: the order of the file is an order that all threads agree on.
//! - R2: a payload that is not full is sent on its way four times a second, so that little is lost when a program ends
//!   suddenly.
//! - R3: a sink that fails or panics ends the recording, and nothing else; who stops it is told.

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
