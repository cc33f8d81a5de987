//! Commits into descriptor buffers: bytes in the bound page, and offsets.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::area::{CommittedSet, SetArea};
use super::bound::{BoundBuffers, Own, PAGE};
use super::commit::{CommitTarget, push_stale};
use super::mask::{bits, runs};
use super::plan::{BindingPlan, SetPlan, offset_alignment};
use super::point::BindPointState;
use super::source::BinderSource;
use super::{Binder, CommitError};
use crate::counts::DescriptorKind;
use crate::descriptor::Descriptor;
use crate::driver::DescriptorDriver;
use crate::sizes::{DescriptorSizes, MAX_DESCRIPTOR_BYTES};
use sublet::upload::{AllocatorRef, Upload};
use sublet_engines::cast::{host_size, index, widen};

const MAX_SETS: usize = index(super::layout::MAX_SETS);

impl<A: AllocatorRef> Binder<A> {
    /// # Safety
    /// Same as [`Self::commit`].
    pub(super) unsafe fn commit_bytes(&mut self, target: CommitTarget) -> Result<(), CommitError> {
        let alignment = offset_alignment(&self.device).get();
        let most = BoundBuffers::most(&self.device);
        let Self { device, points, source, sizes, bound, usage, .. } = self;
        let (driver, at) = (device.driver(), target.point.at());
        let BinderSource::Pages(pages) = source else { return Ok(()) };
        let point = &mut points[at];
        if let Some(layout) = &point.layout {
            for set in bits(point.changed & !layout.push_mask()) {
                // SAFETY: the caller promises that the staged objects are live.
                unsafe { write_dirty(driver, sizes, &layout.plans()[set], &mut point.areas[set]) };
            }
        }
        let stale = point.refresh();
        let Some(layout) = &point.layout else { return Ok(()) };
        let (plans, push) = (layout.plans(), layout.push_mask());
        let mut next = *bound;
        for set in bits(stale & point.given) {
            let own = point.areas[set].given_buffer().map(|(own, _)| own);
            let is_new = |own: &Own| next.number(*own).is_none();
            if let Some(own) = own.filter(is_new) {
                if !next.add(own, most) {
                    return Err(CommitError::TooManyBuffers { most });
                }
            }
        }
        let in_page = |area: &SetArea| {
            let made = area.made;
            matches!(made, Some(CommittedSet::Bytes { buffer, .. }) if buffer == bound.page)
        };
        let in_pages = !push & !point.given;
        let mut fresh = point.changed & in_pages;
        for set in bits(point.rebind & in_pages) {
            if !in_page(&point.areas[set]) {
                fresh |= 1 << set;
            }
        }
        // Program buffers are bound together with a page. Some devices also need a page for push descriptors.
        let push_usage = vk::BufferUsageFlags::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT;
        let pushes = stale & push != 0 && usage.contains(push_usage);
        let needs_page = bound.page == vk::Buffer::null() && (pushes || next != *bound);
        if fresh != 0 || needs_page {
            let bytes = |sets: u32| bits(sets).map(|set| widen(plans[set].bytes)).sum::<u64>().max(alignment);
            let all = point.staged & in_pages;
            let mut room = pages.allocate(bytes(fresh), alignment).map_err(CommitError::Pages)?;
            if room.buffer != bound.page && fresh != all {
                // Binding another page unbinds the old one, so all staged sets move to the new page.
                fresh = all;
                room = pages.allocate(bytes(fresh), alignment).map_err(CommitError::Pages)?;
            }
            let mut begin = 0;
            for set in bits(fresh) {
                let area = &mut point.areas[set];
                // SAFETY: the range is large enough for all of these sets in order, and nothing else uses it.
                unsafe { copy(&area.bytes, room, begin) };
                area.set_made(CommittedSet::Bytes { buffer: room.buffer, offset: room.offset + begin });
                begin += widen(area.bytes.len());
            }
            next.page = room.buffer;
            next.address = room.address.unwrap_or(0).wrapping_sub(room.offset);
        }
        if next != *bound {
            // SAFETY: the caller promises that the command buffer is being recorded, and that the program's buffers are
            // live. Pages were created with descriptor usages.
            unsafe { next.bind(driver, target.commands, *usage) };
            *bound = next;
            for point in points.iter_mut() {
                point.unbind_all();
            }
        }
        // SAFETY: the caller promises that this thread alone records the command buffer and that the staged objects are
        // live; the bytes are in the bound buffers.
        unsafe { set_offsets(driver, target, &mut points[at], bound) };
        Ok(())
    }
}

/// Sets the offset of every stale set, or pushes its descriptors. Afterwards nothing is stale.
///
/// # Safety
/// The command buffer is being recorded by this thread alone. The staged objects are live, and their bytes are in the
/// bound buffers or are pushed.
unsafe fn set_offsets(
    driver: &DescriptorDriver,
    target: CommitTarget,
    point: &mut BindPointState,
    bound: &BoundBuffers,
) {
    let Some(layout) = &point.layout else { return };
    let (stale, push) = (point.stale(), layout.push_mask());
    let (mut buffers, mut offsets) = ([PAGE; MAX_SETS], [0; MAX_SETS]);
    for set in bits(stale & !push) {
        let area = &point.areas[set];
        match (area.given_buffer(), area.made) {
            (Some((own, offset)), _) => {
                buffers[set] = bound.number(own).unwrap_or(PAGE);
                offsets[set] = offset;
            }
            (None, Some(CommittedSet::Bytes { offset, .. })) => offsets[set] = offset,
            _ => {}
        }
    }
    for (first, count) in runs(stale & !push) {
        let run = first..first + count;
        let of_run = target.of(layout, first);
        // SAFETY: the caller promises that the command buffer is being recorded, and that the buffers are bound. The
        // offsets are aligned as the device requires, and the bytes of the sets follow them.
        unsafe { driver.cmd_set_offsets(&of_run, &buffers[run.clone()], &offsets[run]) };
    }
    // SAFETY: the caller's promise: the command buffer is being recorded by this thread alone. The staged objects are
    // live, and their bytes are in the bound buffers or are pushed.
    unsafe { push_stale(driver, target, point, stale) };
    (point.changed, point.rebind) = (0, 0);
}

/// Copies the bytes of a set to offset `begin` of the range.
///
/// # Safety
/// The bytes fit, and nothing else uses the range.
unsafe fn copy(bytes: &[u8], room: Upload, begin: u64) {
    // Cannot fail: `begin` is below the size of the range, which is mapped.
    let target = room.ptr.as_ptr().wrapping_add(host_size(begin).unwrap_or(0));
    // SAFETY: the caller promises that the bytes fit and that nobody else uses the range. It is mapped driver memory,
    // so it does not overlap Rust objects.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
}

/// Writes the bytes of all descriptors that were staged since the last call.
///
/// # Safety
/// The staged objects are live.
unsafe fn write_dirty(
    driver: &DescriptorDriver,
    sizes: &DescriptorSizes,
    plan: &SetPlan,
    area: &mut SetArea,
) {
    let SetArea { dirty, descriptors, bytes, .. } = area;
    dirty.drain(|element| {
        let at = plan.bindings.partition_point(|binding| binding.first_element + binding.elements <= element);
        let Some(binding) = plan.bindings.get(at).filter(|binding| !binding.is_inline()) else { return };
        let descriptor = &descriptors[index(element)];
        // SAFETY: the caller's promise: the staged objects are live.
        unsafe { write_one(driver, sizes, binding, element - binding.first_element, descriptor, bytes) };
    });
}

/// Writes the bytes of one descriptor.
///
/// # Safety
/// The objects in the descriptor are live.
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
    // SAFETY: the caller promises that the objects in the descriptor are live; `one` has the size that the device
    // reports for the type.
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
