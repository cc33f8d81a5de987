//! The memory of commits: sets that live for one recording, or descriptor pages.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::{BinderCreateInfo, CreateBinderError, PAGE_USAGE};
use crate::device::DescriptorDevice;
use crate::features::DescriptorFeatures;
use crate::models::BindingModel;
use crate::transient::{CollectPoolsError, TransientSets};
use sublet::retire::{ClockView, Ticket};
use sublet::upload::{AllocatorRef, FlushError, Oversize, UploadArena, UploadArenaCreateInfo};

pub(super) enum BinderSource<A: AllocatorRef> {
    Sets(Box<TransientSets>),
    Pages(Box<UploadArena<A>>),
}

/// Returns the usages of pages. They include push descriptors if the device requires a buffer for these.
pub(super) fn page_usage(device: &DescriptorDevice) -> vk::BufferUsageFlags {
    let push = DescriptorFeatures::PUSH_DESCRIPTOR | DescriptorFeatures::DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS;
    let needs_buffer = device.driver().facts.buffer.bufferless_push_descriptors == vk::FALSE;
    if device.features().contains(push) && needs_buffer {
        PAGE_USAGE | vk::BufferUsageFlags::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT
    } else {
        PAGE_USAGE
    }
}

/// Returns the maximum size of one buffer for descriptors.
fn reach(device: &DescriptorDevice) -> u64 {
    let properties = &device.driver().facts.buffer;
    let all = [
        properties.max_resource_descriptor_buffer_range,
        properties.max_sampler_descriptor_buffer_range,
        properties.resource_descriptor_buffer_address_space_size,
        properties.sampler_descriptor_buffer_address_space_size,
        properties.descriptor_buffer_address_space_size,
    ];
    // 0 is not a valid limit.
    all.into_iter().filter(|&limit| limit != 0).min().unwrap_or(u64::MAX)
}

impl<A: AllocatorRef> BinderSource<A> {
    /// # Safety
    /// Same as [`Binder::new`](super::Binder::new).
    pub(super) unsafe fn new(
        device: &DescriptorDevice,
        allocator: A,
        info: &BinderCreateInfo<'_>,
    ) -> Result<Self, CreateBinderError> {
        if device.model() != BindingModel::Buffer {
            return TransientSets::new(device, &info.sets)
                .map(Box::new)
                .map(Self::Sets)
                .map_err(CreateBinderError::Sets);
        }
        let pages = UploadArenaCreateInfo {
            page_size: info.page_size.min(reach(device)),
            usage: page_usage(device),
            device_address: true,
            // Only one page is bound, and all sets must be in it.
            oversize: Oversize::Error,
            memory_limit: info.memory_limit,
            share_pages: true,
            name: info.name,
            ..UploadArenaCreateInfo::default()
        };
        // SAFETY: descriptor buffers and their usages are enabled; the rest is the caller's promise.
        let pages = unsafe { UploadArena::new(allocator, &pages) };
        pages.map(Box::new).map(Self::Pages).map_err(CreateBinderError::Pages)
    }

    pub(super) fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        match self {
            Self::Sets(sets) => sets.flush(ticket).map_err(FlushError::MixedClocks),
            Self::Pages(pages) => pages.flush(ticket),
        }
    }

    pub(super) fn collect(&mut self, clock: &ClockView) -> Result<usize, CollectPoolsError> {
        match self {
            Self::Sets(sets) => sets.collect(clock),
            Self::Pages(pages) => pages.collect(clock).map_err(|other| CollectPoolsError {
                collected: other.collected,
                left: 0,
                source: None,
                other_clock: Some(other),
            }),
        }
    }

    /// # Safety
    /// The device no longer uses any set or page of this source.
    pub(super) unsafe fn destroy(self) {
        match self {
            // SAFETY: the caller's promise: the device no longer uses any of it.
            Self::Sets(sets) => unsafe { sets.destroy() },
            // SAFETY: the caller's promise: the device no longer uses any of it.
            Self::Pages(pages) => unsafe { pages.destroy() },
        }
    }
}
