//! Tracks the uses of resources and derives barriers.
#![forbid(unsafe_code)]
#![doc = include_str!("states.md")]

mod aliasing;
mod batch;
mod error;
mod global;
mod id;
mod intervals;
mod local;
mod recorder;
mod sync;
mod usage;

#[cfg(feature = "frame")]
pub(crate) use batch::old_stages;
pub use batch::{BarrierBatch, BarrierBatch1};
pub use error::{ResolveError, StateError, UseError};
#[cfg(feature = "sim")]
#[doc(hidden)]
pub use global::join_states_above;
pub use global::{BufferInfo, Global, ImageInfo, Queue, Release, Submission, Wait};
pub use id::{BufferId, ImageId, MemoryRange, ResourceId};
#[cfg(feature = "sim")]
#[doc(hidden)]
pub use intervals::steps;
pub use recorder::{Recorder, Split};
pub use usage::{Subresources, Use};
