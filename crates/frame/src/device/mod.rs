//! The device behind frames, lists and resources: what they all share, and the only place that waits, submits and
//! makes objects that are no resources.

mod api;
mod core;
mod features;
mod idle;
mod passes;
mod submitter;
mod tools;
mod uploads;

pub(crate) use self::api::{Api, Point};
pub(crate) use self::core::{Core, Counts, Family, LostDevice, QueueData, Retired};
pub use self::features::Features;
pub(crate) use self::idle::Idle;
pub(crate) use self::passes::{
    DEPTH_STENCIL, FramebufferInfo, Layouts, MOST_COLORS, PassAttachment, PassInfo, RESOLVES, RenderPasses,
    SLOTS, Shared,
};
pub(crate) use self::submitter::{Books, Submitter};
pub(crate) use self::tools::{Kept, Pool, ReadGuard, ToolInfo, Tools, binds_buffers};
pub(crate) use self::uploads::{Chunks, UploadGuard, Uploads};
