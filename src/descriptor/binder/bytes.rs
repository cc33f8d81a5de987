//! Committing into descriptor buffers: bytes in the bound page, and offsets.

use ash::vk;

use super::area::{Area, Made};
use super::commit::{Target, push_stale};
use super::mask::{bits, runs};
use super::plan::{BindingPlan, SetPlan, offset_alignment};
use super::source::Source;
use super::{Binder, CommitError};
use crate::base::cast::{host_size, index, widen};
use crate::descriptor::counts::DescriptorKind;
use crate::descriptor::descriptor::Descriptor;
use crate::descriptor::sizes::{DescriptorSizes, MAX_DESCRIPTOR_BYTES};
use crate::device::descriptors::DescriptorDriver;
use crate::upload::{AllocatorRef, Upload};

const MAX_SETS: usize = index(super::layout::MAX_SETS);

/// The page that is bound in the command buffer. Always the first of the bound buffers.
const PAGE: u32 = 0;

impl<A: AllocatorRef> Binder<A> {
    /// # Safety
    /// As [`Self::commit`].
    pub(super) unsafe fn commit_bytes(&mut self, target: Target) -> Result<(), CommitError> {
        let alignment = offset_alignment(&self.device);
        let Self { device, points, source, sizes, page, usage, .. } = self;
        let (driver, at) = (device.driver(), target.point.at());
        let Source::Pages(pages) = source else { return Ok(()) };
        let point = &mut points[at];
        let Some(layout) = &point.layout else { return Ok(()) };
        let (plans, push) = (layout.plans(), layout.push_mask());
        for set in bits(point.changed & !push) {
            // SAFETY: what is staged is live: the caller's promise.
            unsafe { write_dirty(driver, sizes, &plans[set], &mut point.areas[set]) };
        }
        let in_page = |area: &Area, page: vk::Buffer| matches!(area.made, Some(Made::Bytes { buffer, .. }) if buffer == page);
        for set in bits(point.changed) {
            if point.areas[set].is_as_made() {
                point.changed &= !(1 << set);
            }
        }
        let mut fresh = point.changed & !push;
        for set in bits(point.rebind & !push) {
            if !in_page(&point.areas[set], *page) {
                fresh |= 1 << set;
            }
        }
        let all = point.staged & !push;
        let bytes = |mask: u32| bits(mask).map(|set| widen(plans[set].bytes)).sum::<u64>();
        // Push descriptors need a page on some devices, too.
        let pushes = point.stale() & push != 0;
        let push_usage = vk::BufferUsageFlags::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT;
        let needs_page = *page == vk::Buffer::null() && pushes && usage.contains(push_usage);
        if fresh != 0 || needs_page {
            let mut room =
                pages.allocate(bytes(fresh).max(alignment), alignment).map_err(CommitError::Pages)?;
            if room.buffer != *page && fresh != all {
                // Another page is to be bound, and then nothing of the old one is. All that is staged goes to the new page; what
                // was never staged does not.
                fresh = all;
                room = pages.allocate(bytes(fresh).max(alignment), alignment).map_err(CommitError::Pages)?;
            }
            let mut begin = 0;
            for set in bits(fresh) {
                let area = &mut point.areas[set];
                // SAFETY: the room is for all of these sets, one behind the other, and nobody else has it.
                unsafe { copy(&area.bytes, room, begin) };
                area.set_made(Made::Bytes { buffer: room.buffer, offset: room.offset + begin });
                begin += widen(area.bytes.len());
            }
            if room.buffer != *page {
                // SAFETY: the command buffer is being recorded: the caller's promise. The page was made for descriptors.
                unsafe { bind_page(driver, target.commands, &room, *usage) };
                *page = room.buffer;
                for point in points.iter_mut() {
                    point.unbind_all();
                }
            }
        }
        let point = &mut points[at];
        let Some(layout) = &point.layout else { return Ok(()) };
        let stale = point.stale();
        let mut offsets = [0; MAX_SETS];
        for set in bits(stale & !push) {
            if let Some(Made::Bytes { offset, .. }) = point.areas[set].made {
                offsets[set] = offset;
            }
        }
        for (first, count) in runs(stale & !push) {
            let run = first..first + count;
            // SAFETY: the command buffer is being recorded: the caller's promise. The page is bound, and the offsets are multiples of
            // what the device wants, with the bytes of the sets behind them.
            unsafe {
                driver.cmd_set_offsets(
                    &target.of(layout, first),
                    &[PAGE; MAX_SETS][run.clone()],
                    &offsets[run],
                )
            };
        }
        // SAFETY: the caller's own promise.
        unsafe { push_stale(driver, target, point, stale) };
        (point.changed, point.rebind) = (0, 0);
        Ok(())
    }
}

/// Copies the bytes of a set to `begin` of the room.
///
/// # Safety
/// They fit, and nobody else uses the room.
unsafe fn copy(bytes: &[u8], room: Upload, begin: u64) {
    // Less than the room's size, which is one of the host's.
    let target = room.ptr.as_ptr().wrapping_add(host_size(begin).unwrap_or(0));
    // SAFETY: the caller's own promise; the room is in the driver's memory, which nothing of Rust's overlaps.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
}

/// Makes the bytes of the descriptors that were staged since the last time.
///
/// # Safety
/// What is staged is live.
unsafe fn write_dirty(driver: &DescriptorDriver, sizes: &DescriptorSizes, plan: &SetPlan, area: &mut Area) {
    let Area { dirty, descriptors, bytes, .. } = area;
    dirty.drain(|element| {
        let at = plan.bindings.partition_point(|binding| binding.first_element + binding.elements <= element);
        let Some(binding) = plan.bindings.get(at).filter(|binding| !binding.is_inline()) else { return };
        let descriptor = &descriptors[index(element)];
        // SAFETY: the caller's own promise.
        unsafe { write_one(driver, sizes, binding, element - binding.first_element, descriptor, bytes) };
    });
}

/// Makes the bytes of one descriptor.
///
/// # Safety
/// What it names is live.
unsafe fn write_one(
    driver: &DescriptorDriver,
    sizes: &DescriptorSizes,
    binding: &BindingPlan,
    element: u32,
    descriptor: &Descriptor,
    bytes: &mut [u8],
) {
    let size = sizes.get(descriptor.kind()).and_then(host_size).unwrap_or(0);
    let mut one = [0; MAX_DESCRIPTOR_BYTES];
    let one = &mut one[..size];
    // SAFETY: what the descriptor names is live: the caller's promise; there are as many bytes as the device says for its type.
    let written = descriptor.with_get_info(|info| unsafe { driver.descriptor_bytes(info, one) });
    debug_assert!(written.is_ok(), "it was staged, and so has what is wanted");
    let (at, stride) = (binding.bytes.offset, binding.bytes.stride);
    let element = index(element);
    let Some((image, sampler)) = binding.bytes.split else {
        bytes[at + element * stride..][..size].copy_from_slice(one);
        return;
    };
    let (first, second) = one.split_at(image.min(size));
    let samplers = at + index(binding.count) * image;
    bytes[at + element * image..][..first.len()].copy_from_slice(first);
    let length = sampler.min(second.len());
    bytes[samplers + element * sampler..][..length].copy_from_slice(&second[..length]);
    debug_assert!(descriptor.kind() == DescriptorKind::CombinedImageSampler);
}

/// Binds the page that `room` is in.
///
/// # Safety
/// The command buffer is being recorded by this thread alone, and the buffer was made for descriptors and for device addresses.
unsafe fn bind_page(
    driver: &DescriptorDriver,
    commands: vk::CommandBuffer,
    room: &Upload,
    usage: vk::BufferUsageFlags,
) {
    let address = room.address.unwrap_or(0).wrapping_sub(room.offset);
    let mut handle = vk::DescriptorBufferBindingPushDescriptorBufferHandleEXT::default().buffer(room.buffer);
    let info = vk::DescriptorBufferBindingInfoEXT::default().address(address).usage(usage);
    let has_push = usage.contains(vk::BufferUsageFlags::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT);
    // SAFETY: the caller's own promise: the address is that of the buffer, which has these usages.
    unsafe {
        driver.cmd_bind_buffers(commands, &[if has_push { info.push_next(&mut handle) } else { info }])
    };
}
