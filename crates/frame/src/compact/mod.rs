#![doc = include_str!("compact.md")]

mod compactor;
mod error;
mod info;
mod moved;
mod transfer;

pub use self::compactor::Compactor;
pub use self::error::CompactError;
pub use self::info::{CompactStep, CompactorCreateInfo, CompactorStatistics};
pub use self::moved::{Moved, MovedResource, MovedView};
