//! Figures of frames.
#![forbid(unsafe_code)]

/// What [`Frames`](super::Frames) have and did. Counts are since they were made, where it does not say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FrameStatistics {
    /// Frames that were begun.
    pub frames: u64,
    /// Lists that were begun.
    pub lists: u64,
    /// Calls of `vkQueueSubmit` with lists in them.
    pub submissions: u64,
    /// Calls of `vkCmdPipelineBarrier`, in lists and in front of them.
    pub barrier_calls: u64,
    /// Barriers in those calls.
    pub barriers: u64,
    /// Command buffers in front of submissions: those whose first list had to wait for what came before.
    pub fronts: u64,
    /// Submissions to other queues that gave resources away.
    pub releases: u64,
    /// Semaphores between queues that were waited for.
    pub waits: u64,
    /// Command pools that there are now.
    pub pools: u64,
    /// Pools and semaphores that wait for the device now.
    pub in_flight: usize,
    /// Sets of tools (a binder, a recorder) that there are now: of each family of queues as many as its lists were open at
    /// once, lately.
    pub tools: u64,
    /// Bytes of upload pages.
    pub upload_bytes: u64,
}
