//! Resources with shared ownership, [`Buffer`] and [`Image`], and memory that several of them share.

mod body;
mod buffer;
mod error;
mod format;
mod image;
mod memory;
mod transient;
mod write;

pub(crate) use self::body::{Body, BufferClass, CurrentBody, ImageClass, ResourceClass, c_name};
pub use self::buffer::Buffer;
pub(crate) use self::buffer::WeakBuffer;
pub use self::error::{CreateResourceError, ViewError};
pub(crate) use self::format::is_integer;
pub use self::format::{FormatLayout, format_aspects, format_layout};
pub use self::image::{Image, ViewInfo};
pub(crate) use self::image::{ImageFacts, WeakImage};
pub use self::memory::SharedMemory;
pub(crate) use self::memory::{FoundResource, Movables};
pub use self::transient::TransientImage;
pub(crate) use self::transient::create as create_transient_images;
pub use self::write::WriteError;
