//! Images that share memory because a frame uses them at different times.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::cmp::Reverse;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ash::vk;
use sublet::device::DriverError;
use sublet::{AllocationCreateInfo, CreateError, MemoryUsage};

use super::{CreateResourceError, Image, SharedMemory};
use crate::device::DeviceCore;

/// An image that a frame uses only for some steps: see
/// [`Frames::create_transient_images`](crate::Frames::create_transient_images).
#[derive(Clone, Debug)]
#[doc(alias = "CreatePlacedResource")]
pub struct TransientImage<'a> {
    /// The creation parameters.
    pub info: vk::ImageCreateInfo<'a>,
    /// The first and the last step of the frame that use it. The program numbers its passes. Other images may use the
    /// memory before and after these steps.
    pub steps: RangeInclusive<u32>,
}

/// # Safety
/// See [`Frames::create_transient_images`](crate::Frames::create_transient_images).
#[track_caller]
pub(crate) unsafe fn create(
    core: &Arc<DeviceCore>,
    images: &[TransientImage<'_>],
    allocation: &AllocationCreateInfo<'_>,
) -> Result<Vec<Image>, CreateResourceError> {
    let lazily = AllocationCreateInfo {
        name: allocation.name,
        ..AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated)
    };
    let mut made: Vec<Option<Image>> = Vec::with_capacity(images.len());
    // Images of one heap have a memory type in common.
    let mut heaps: Vec<(u32, Vec<TransientNeeds>)> = Vec::new();
    for (at, image) in images.iter().enumerate() {
        let in_tiles = image.info.usage.contains(vk::ImageUsageFlags::TRANSIENT_ATTACHMENT);
        // SAFETY: the caller's promise. If there is no lazily allocated memory left, the image shares other memory.
        made.push(in_tiles.then(|| unsafe { Image::create(core, &image.info, &lazily) }.ok()).flatten());
        if made[at].is_some() {
            continue;
        }
        // SAFETY: the caller's promise.
        let needs = unsafe { requirements(core, &image.info) }?;
        let wanted = TransientNeeds { at, needs, steps: image.steps.clone() };
        match heaps.iter_mut().find(|(types, _)| types & needs.memory_type_bits != 0) {
            Some((types, heap)) => {
                *types &= needs.memory_type_bits;
                heap.push(wanted);
            }
            None => heaps.push((needs.memory_type_bits, vec![wanted])),
        }
    }
    for (memory_type_bits, heap) in heaps {
        let (offsets, size) = pack(&heap);
        let alignment = heap.iter().map(|wanted| wanted.needs.alignment).max().unwrap_or(1);
        let needs = vk::MemoryRequirements { size, alignment, memory_type_bits };
        let memory = core.allocator.allocate_memory(&needs, allocation).map_err(CreateError::Allocation)?;
        let memory = SharedMemory::new(Arc::clone(core), memory);
        for (wanted, offset) in heap.iter().zip(offsets) {
            // SAFETY: the caller's promise; the memory is not dedicated.
            made[wanted.at] =
                Some(unsafe { Image::create_in(core, &memory, offset, &images[wanted.at].info) }?);
        }
    }
    Ok(made.into_iter().flatten().collect())
}

/// Returns the memory requirements. Creates a temporary image, as Vulkan 1.0 has no query without one.
///
/// # Safety
/// `info` is valid for the device.
unsafe fn requirements(
    core: &DeviceCore,
    info: &vk::ImageCreateInfo<'_>,
) -> Result<vk::MemoryRequirements, CreateError> {
    let device = core.api.device();
    // SAFETY: the caller's promise.
    let image = unsafe { device.create_image(info, None) }
        .map_err(|result| CreateError::Resource(DriverError { call: "vkCreateImage", result }))?;
    // SAFETY: the image is live.
    let needs = unsafe { device.get_image_memory_requirements(image) };
    // SAFETY: the image was never shared.
    unsafe { device.destroy_image(image, None) };
    Ok(needs)
}

struct TransientNeeds {
    at: usize,
    needs: vk::MemoryRequirements,
    steps: RangeInclusive<u32>,
}

/// Returns the offset of each image and the total size. Places the largest first, each at the lowest offset that is
/// free during its steps. Saturates on overflow, and the allocation then fails.
///
/// # Complexity
/// O(n² log n).
fn pack(wanted: &[TransientNeeds]) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&at| (Reverse(wanted[at].needs.size), at));
    let mut placed: Vec<Option<[u64; 2]>> = vec![None; wanted.len()];
    for at in order {
        let TransientNeeds { needs, steps, .. } = &wanted[at];
        let together =
            |other: &TransientNeeds| other.steps.start() <= steps.end() && steps.start() <= other.steps.end();
        let beside = wanted.iter().zip(&placed).filter(|(other, _)| together(other));
        let mut beside: Vec<[u64; 2]> = beside.filter_map(|(_, place)| *place).collect();
        beside.sort_unstable();
        let mut offset = 0_u64;
        for [from, to] in beside {
            if offset.saturating_add(needs.size) <= from {
                break;
            }
            let aligned = to.checked_next_multiple_of(needs.alignment.max(1)).unwrap_or(u64::MAX);
            offset = offset.max(aligned);
        }
        placed[at] = Some([offset, offset.saturating_add(needs.size)]);
    }
    let size = placed.iter().flatten().map(|place| place[1]).max().unwrap_or(0);
    (placed.into_iter().flatten().map(|place| place[0]).collect(), size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(size: u64, alignment: u64, steps: RangeInclusive<u32>) -> TransientNeeds {
        TransientNeeds {
            at: 0,
            needs: vk::MemoryRequirements { size, alignment, memory_type_bits: 1 },
            steps,
        }
    }

    #[test]
    fn images_with_disjoint_steps_share() {
        let all = [wanted(100, 1, 0..=1), wanted(60, 16, 1..=2), wanted(90, 1, 2..=3), wanted(8, 4, 3..=3)];
        // The second overlaps the first and the third in time. The fourth overlaps only the third.
        assert_eq!(pack(&all), (vec![0, 112, 0, 92], 172));
        assert_eq!(pack(&[]), (vec![], 0));
    }

    #[test]
    fn a_gap_between_two_is_used() {
        let all = [wanted(50, 1, 0..=0), wanted(40, 1, 0..=1), wanted(30, 1, 1..=1), wanted(20, 1, 1..=2)];
        // The second is above the first. Below it, the two others follow the first in time.
        assert_eq!(pack(&all), (vec![0, 50, 0, 30], 90));
    }

    #[test]
    fn sizes_without_bound_do_not_wrap() {
        let all = [wanted(u64::MAX, 4096, 0..=1), wanted(4096, 0, 1..=1)];
        assert_eq!(pack(&all).1, u64::MAX);
    }
}
