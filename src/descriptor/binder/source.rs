//! What a commit takes its memory from: sets that live for one recording, or pages of descriptors.

use ash::vk;

use super::{BinderCreateInfo, CreateBinderError, PAGE_USAGE};
use crate::descriptor::device::DescriptorDevice;
use crate::descriptor::features::DescriptorFeatures;
use crate::descriptor::models::BindingModel;
use crate::descriptor::transient::{CollectError, TransientSets};
use crate::retire::{ClockView, Ticket};
use crate::upload::{AllocatorRef, FlushError, Oversize, UploadArena, UploadArenaCreateInfo};

pub(super) enum Source<A: AllocatorRef> {
    Sets(Box<TransientSets>),
    Pages(Box<UploadArena<A>>),
}

/// The usages of pages. Push descriptors are in pages if the device wants that.
pub(super) fn page_usage(device: &DescriptorDevice) -> vk::BufferUsageFlags {
    let push = DescriptorFeatures::PUSH_DESCRIPTOR | DescriptorFeatures::DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS;
    let needs_buffer = device.driver().facts.buffer.bufferless_push_descriptors == vk::FALSE;
    if device.features().contains(push) && needs_buffer {
        PAGE_USAGE | vk::BufferUsageFlags::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT
    } else {
        PAGE_USAGE
    }
}

/// The most bytes of one buffer that the device reaches.
fn reach(device: &DescriptorDevice) -> u64 {
    let properties = &device.driver().facts.buffer;
    let all = [
        properties.max_resource_descriptor_buffer_range,
        properties.max_sampler_descriptor_buffer_range,
        properties.resource_descriptor_buffer_address_space_size,
        properties.sampler_descriptor_buffer_address_space_size,
        properties.descriptor_buffer_address_space_size,
    ];
    // 0 is no limit that a driver may have.
    all.into_iter().filter(|&limit| limit != 0).min().unwrap_or(u64::MAX)
}

impl<A: AllocatorRef> Source<A> {
    /// # Safety
    /// As [`Binder::new`](super::Binder::new).
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
            // One page is bound, and all sets are in it.
            oversize: Oversize::Error,
            memory_limit: info.memory_limit,
            share_pages: true,
            name: info.name,
            ..UploadArenaCreateInfo::default()
        };
        // SAFETY: descriptor buffers are enabled, and so are their usages; the rest is the caller's promise.
        let pages = unsafe { UploadArena::new(allocator, &pages) };
        pages.map(Box::new).map(Self::Pages).map_err(CreateBinderError::Pages)
    }

    pub(super) fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        match self {
            Self::Sets(sets) => sets.flush(ticket).map_err(FlushError::MixedClocks),
            Self::Pages(pages) => pages.flush(ticket),
        }
    }

    pub(super) fn collect(&mut self, clock: &ClockView) -> Result<usize, CollectError> {
        match self {
            Self::Sets(sets) => sets.collect(clock),
            Self::Pages(pages) => pages.collect(clock).map_err(|other| CollectError {
                collected: other.collected,
                left: 0,
                source: None,
                other_clock: Some(other),
            }),
        }
    }

    /// # Safety
    /// The device no longer uses anything of it.
    pub(super) unsafe fn destroy(self) {
        match self {
            // SAFETY: the caller's promise: the device uses nothing of it any more.
            Self::Sets(sets) => unsafe { sets.destroy() },
            // SAFETY: the caller's promise: the device uses nothing of it any more.
            Self::Pages(pages) => unsafe { pages.destroy() },
        }
    }
}
