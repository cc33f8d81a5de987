//! Resources that destroy themselves: [`Buffer`] and [`Image`], and the memory that several of them share.

mod buffer;
mod error;
mod format;
mod image;
mod memory;

pub use self::buffer::Buffer;
pub use self::error::{CreateResourceError, ViewError};
pub use self::format::{FormatLayout, format_aspects, format_layout};
pub use self::image::{Image, ViewInfo};
pub use self::memory::SharedMemory;
