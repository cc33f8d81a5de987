//! Recording: the bytes of a trace, and the way that they take from the calls of a program to a sink.
//!
//! This room knows numbers and bytes, and not what an allocation is: the allocator above fills in what it was asked, and
//! [`trace`](crate::trace), which reads the bytes again, is above that. The format is described there.
#![forbid(unsafe_code)]

pub(crate) mod bytes;
pub(crate) mod chunk;
mod crc;
pub(crate) mod encode;
pub(crate) mod failure;
pub(crate) mod header;
pub(crate) mod raw;
