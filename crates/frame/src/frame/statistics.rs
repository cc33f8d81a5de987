//! Statistics of frames.

/// Counters of [`Frames`](super::Frames), since creation unless noted otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FrameStatistics {
    /// Ended frames.
    pub frames: u64,
    /// Opened lists.
    pub lists: u64,
    /// Calls of `vkQueueSubmit` with lists.
    pub submissions: u64,
    /// Calls of `vkCmdPipelineBarrier`, in lists and preambles.
    pub barrier_calls: u64,
    /// Barriers in these calls.
    pub barriers: u64,
    /// Command buffers with barriers before the first list of a submission.
    pub preambles: u64,
    /// Submissions to other queues that release ownership.
    pub releases: u64,
    /// Semaphore waits between queues.
    pub waits: u64,
    /// Current number of command pools.
    pub pools: u64,
    /// Current number of pools and semaphores that wait for the device.
    pub in_flight: usize,
    /// Current number of list contexts (a recorder and a binder). For each queue family, the recent maximum of open
    /// lists.
    pub contexts: u64,
    /// Current bytes of upload pages.
    pub upload_bytes: u64,
}
