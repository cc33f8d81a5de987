//! The arguments of subscribers.

use ash::vk;
use sublet::retire::Ticket;

use crate::resource::{Buffer, Image, ViewInfo};

/// A resource that has moved. Its old handles live until earlier submissions are done with them. Do not record commands
/// with them any more.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Moved<'a> {
    /// The resource.
    pub resource: MovedResource<'a>,
    /// The ticket of the submission that copies.
    pub ticket: Ticket,
}

/// A buffer or an image that has moved.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum MovedResource<'a> {
    /// A buffer.
    Buffer {
        /// The buffer, with its new handle.
        buffer: &'a Buffer,
        /// The old handle.
        old: vk::Buffer,
    },
    /// An image.
    Image {
        /// The image, with its new handle.
        image: &'a Image,
        /// The old handle.
        old: vk::Image,
        /// The old and new views.
        views: &'a [MovedView],
    },
}

/// A view of an image that has moved.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MovedView {
    /// Its parameters.
    pub info: ViewInfo,
    /// The old view.
    pub old: vk::ImageView,
    /// The new view.
    pub new: vk::ImageView,
}
