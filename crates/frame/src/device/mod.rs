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

pub(crate) use self::api::{Api, Point};
pub(crate) use self::context::{ContextInfo, Kept, ListContext, Pool, ReadGuard, binds_buffers};
pub(crate) use self::core::{Core, Counts, Family, LostDevice, QueueData, Retired};
pub use self::features::Features;
pub(crate) use self::idle::Idle;
pub(crate) use self::passes::{
    DEPTH_STENCIL, FramebufferInfo, Layouts, MOST_COLORS, PassAttachment, PassInfo, RESOLVES, RenderPasses,
    SLOTS, Shared,
};
pub(crate) use self::submitter::{SubmissionState, Submitter};
pub(crate) use self::uploads::{Chunks, UploadGuard, Uploads};
