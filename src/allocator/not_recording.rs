//! Replaces `recording` in builds without the feature `trace`: records nothing.

use super::recorded_call::RecordedCall;
use super::{Allocator, AllocatorCreateInfo, AllocatorInner, Resource};
use crate::allocation::Allocation;
use crate::create_info::AllocationCreateInfo;
use crate::error::AllocationError;
use crate::pool::Scope;

/// An empty recording state.
#[derive(Debug)]
pub(super) struct Recording;

impl Recording {
    pub(super) fn new(_: &AllocatorCreateInfo<'_>) -> Self {
        Self
    }
}

impl AllocatorInner {
    pub(super) fn finish_recording(&self) {
        let Recording = self.recording;
    }
}

impl Allocator {
    #[inline(always)]
    pub(super) fn record_allocation(
        &self,
        _: &Resource,
        _: &AllocationCreateInfo<'_>,
        _: bool,
        _: &Result<Allocation, AllocationError>,
    ) {
    }

    #[inline(always)]
    pub(super) fn record_free(&self, _: &Allocation) {}

    #[inline(always)]
    pub(crate) fn record(&self, _: RecordedCall<'_>) {}

    #[inline(always)]
    pub(super) fn next_scope(&self) -> u32 {
        0
    }

    #[inline(always)]
    pub(super) fn next_defragmentation(&self) -> u32 {
        0
    }

    #[inline(always)]
    pub(super) fn know_scope(&self, _: &Scope) {}

    #[inline(always)]
    pub(super) fn forget_scope(&self, _: &Scope) {}
}
