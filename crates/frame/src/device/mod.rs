//! The device behind frames, lists and resources. Only this module waits, submits, and creates objects other than
//! resources.

mod api;
mod context;
mod core;
mod features;
mod idle;
mod passes;
mod submitter;
mod uploads;

pub(crate) use self::api::{Api, SubmitSemaphore};
pub(crate) use self::context::{CommandPool, ContextInfo, KeptObject, ListContext, ReadGuard, binds_buffers};
pub(crate) use self::core::{
    DeviceCore, DeviceCounters, LostDevice, QueueData, QueueFamily, RetiredDeviceObject,
};
pub use self::features::Features;
pub(crate) use self::idle::Idle;
pub(crate) use self::passes::{
    DEPTH_STENCIL, FramebufferInfo, KeptLayouts, MOST_COLORS, PassAttachment, PassInfo, RESOLVES,
    RenderPasses, SLOTS, Shared,
};
pub(crate) use self::submitter::{SubmissionState, Submitter};
pub(crate) use self::uploads::{UploadChunks, UploadGuard, Uploads};
