//! The allocator's own resources, kept until the device is done with them.

mod error;
mod resources;
mod timelines;

pub use self::error::{CollectError, TimelineError};
pub use self::resources::RetiredResources;
