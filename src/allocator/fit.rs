//! Checking where an allocation would go, without allocating.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::request::AllocationRequest;
use super::route::{CandidateVisitor, PlacementCandidate};
use super::{Allocator, Resource};
use crate::create_info::AllocationCreateInfo;
use crate::device::ResourceRequirements;
use crate::error::{AllocationError, CreateError};
use crate::statistics::{Fit, FitPlace};

/// A visitor that reports candidate placements without allocating.
struct FitVisitor;

impl FitVisitor {
    fn fit(candidate: &PlacementCandidate<'_>, place: FitPlace) -> Fit {
        let PlacementCandidate { allocator, facts, vector, .. } = *candidate;
        let context = &allocator.inner.context;
        let heap_index = context.heap_of(facts.config.memory_type);
        let level = context.budgets.level(heap_index);
        let (free_bytes, largest_free) = vector.free_bytes();
        Fit {
            memory_type_index: facts.config.memory_type,
            heap_index,
            place,
            within_budget: level.usage.saturating_add(place.new_bytes()) <= level.budget,
            usage: level.usage,
            budget: level.budget,
            free_bytes,
            largest_free,
        }
    }
}

impl CandidateVisitor for FitVisitor {
    type Answer = Fit;
    const ALLOCATES: bool = false;

    fn shared(&self, candidate: &PlacementCandidate<'_>) -> Result<Fit, AllocationError> {
        let PlacementCandidate { allocator, vector, ref request, search, .. } = *candidate;
        let place = match vector.foresee(&allocator.inner.context, request, search)? {
            0 => FitPlace::Block,
            size => FitPlace::NewBlock { size },
        };
        Ok(Self::fit(candidate, place))
    }

    // The caller has checked the limit on blocks.
    fn dedicated(&self, candidate: &PlacementCandidate<'_>, _by_name: bool) -> Result<Fit, AllocationError> {
        let context = &candidate.allocator.inner.context;
        let size = candidate.dedicated_size();
        context.budgets.check(
            context.heap_of(candidate.facts.config.memory_type),
            size,
            1,
            candidate.request.within_budget,
        )?;
        Ok(Self::fit(candidate, FitPlace::Dedicated { size }))
    }
}

impl Allocator {
    fn look(&self, resource: &Resource, info: &AllocationCreateInfo<'_>) -> Result<Fit, AllocationError> {
        self.visit_placements(&FitVisitor, &AllocationRequest::checked(resource, info)?)
    }

    /// Reports where an allocation would go: the memory type and heap, whether a block has room, the bytes to allocate
    /// from the driver, and whether they are within the budget. Changes nothing.
    ///
    /// The result is a snapshot: other threads may take the space, and the driver, which is not called, may refuse. It
    /// does not count unused memory of other threads' shards, nor empty blocks, although a failing allocation would
    /// reclaim both, and ignores the limit of mapped bytes. So do not rely on it; use it to decide what is worth trying,
    /// such as a smaller texture.
    ///
    /// # Errors
    /// The error that [`Self::allocate_memory`] would return, as far as known without the driver.
    ///
    /// # Complexity
    /// O(blocks), as for an allocation that finds no room, without the driver call.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    /// let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    /// let fit = allocator.would_fit(&requirements, &info)?;
    /// assert!(matches!(fit.place, FitPlace::NewBlock { .. }) && fit.within_budget);
    /// assert_eq!(allocator.statistics(), Statistics::default(), "nothing was allocated");
    ///
    /// let allocation = allocator.allocate_memory(&requirements, &info)?;
    /// assert_eq!(allocator.would_fit(&requirements, &info)?.place, FitPlace::Block);
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn would_fit(
        &self,
        requirements: &vk::MemoryRequirements,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Fit, AllocationError> {
        self.look(&Resource::unknown(ResourceRequirements::from(requirements)), info)
    }

    /// [`Self::would_fit`] for a buffer of `buffer_info`. With maintenance4 this queries the driver for the
    /// requirements, else it creates and destroys a buffer.
    ///
    /// # Errors
    /// The error that [`Self::create_buffer`] would return, as far as known.
    ///
    /// # Safety
    /// `buffer_info` is valid for the device (VUID-vkCreateBuffer-pCreateInfo-parameter).
    pub unsafe fn would_buffer_fit(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Fit, CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let (requirements, usage) = unsafe { self.imagined_buffer(buffer_info) }?;
        let resource = Resource::buffer(requirements, vk::Buffer::null(), Some(usage));
        Ok(self.look(&resource, info)?)
    }

    /// [`Self::would_fit`] for an image of `image_info`. With maintenance4 this queries the driver for the
    /// requirements, else it creates and destroys an image.
    ///
    /// # Errors
    /// The error that [`Self::create_image`] would return, as far as known.
    ///
    /// # Safety
    /// `image_info` is valid for the device (VUID-vkCreateImage-pCreateInfo-parameter), and its tiling is not that of a
    /// DRM modifier (VUID-VkDeviceImageMemoryRequirements-pCreateInfo-06776).
    pub unsafe fn would_image_fit(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Fit, CreateError> {
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let requirements = unsafe { self.imagined_image(image_info) }?;
        let tiled = Some((image_info.usage, image_info.tiling));
        let resource = Resource::image(requirements, vk::Image::null(), tiled);
        Ok(self.look(&resource, info)?)
    }
}
