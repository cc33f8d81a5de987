//! What subscribers are told.
#![forbid(unsafe_code)]

use ash::vk;
use sublet::retire::Ticket;

use crate::resource::{Buffer, Image, ViewInfo};

/// A resource that has moved, for who keeps handles, views or addresses of it elsewhere. Its old ones may be in use by
/// what was submitted, and live for as long; from now on nothing may be recorded with them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Moved<'a> {
    /// What has moved.
    pub resource: MovedResource<'a>,
    /// Of the submission that copies.
    pub ticket: Ticket,
}

/// A buffer or an image that has moved. It names what took over.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum MovedResource<'a> {
    /// A buffer.
    Buffer {
        /// With its new handle.
        buffer: &'a Buffer,
        /// The old handle.
        old: vk::Buffer,
    },
    /// An image.
    Image {
        /// With its new handle.
        image: &'a Image,
        /// The old handle.
        old: vk::Image,
        /// The views that the image had, and those that it has instead.
        views: &'a [MovedView],
    },
}

/// A view of an image that has moved.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MovedView {
    /// What it shows.
    pub info: ViewInfo,
    /// The old view.
    pub old: vk::ImageView,
    /// The new one.
    pub new: vk::ImageView,
}
