#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "frame")]
pub mod compact;
#[cfg(feature = "frame")]
mod device;
#[cfg(feature = "frame")]
mod frame;
#[cfg(feature = "frame")]
#[doc = include_str!("frame/frames.md")]
pub mod frames {}
#[cfg(feature = "frame")]
mod list;
#[cfg(feature = "frame")]
mod resource;
pub mod track;

#[cfg(feature = "frame")]
pub use compact::{
    CompactError, CompactStep, Compactor, CompactorCreateInfo, CompactorStatistics, Moved, MovedResource,
    MovedView,
};
#[cfg(feature = "frame")]
pub use device::Features;
#[cfg(feature = "frame")]
pub use frame::{
    BarrierObserver, BeginError, CreateFramesError, FrameStatistics, Frames, FramesCreateInfo, OpenError,
    QueueInfo, SemaphorePoint, SubmitError, SubmitInfo, UnwrittenObserver,
};
#[cfg(feature = "frame")]
pub use list::{
    Attachment, CommandList, CreateLayoutError, ImageData, ImagePart, ImagePiece, ListError, PipelineLayout,
    Pitch, ReadBack, ReadError, RenderPassInfo, RenderingInfo, Resolve, StorageAccess, UploadPiece,
    ViewportInfo,
};
#[cfg(feature = "frame")]
pub use resource::{
    Buffer, CreateResourceError, FormatLayout, Image, SharedMemory, TransientImage, ViewError, ViewInfo,
    WriteError, format_aspects, format_layout,
};

/// Returns a simulated GPU that is never dropped, and frames on it, for documentation examples.
#[cfg(feature = "sim")]
#[must_use]
#[doc(hidden)]
pub fn doc_example() -> (&'static sublet::sim::Gpu, Frames) {
    frame::doc_example()
}
