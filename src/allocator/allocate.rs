//! Memory that the program binds itself: allocated for given requirements, or for an existing resource.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::panic::Location;

use ash::vk;

use super::{Allocator, Resource};
use crate::allocation::{Allocation, FreeError, ResourceKind, allocation_flags};
use crate::create_info::AllocationCreateInfo;
use crate::device::{BufferOrImage, ResourceRequirements};
use crate::error::{AllocatePagesError, AllocationError, ForeignHandle};

impl Allocator {
    /// Allocates memory for requirements, without a resource.
    ///
    /// # Errors
    /// See [`AllocationError`]. The three `Auto` usages need a resource: use [`Self::allocate_memory_for_buffer`] or
    /// [`Self::create_buffer`] with them.
    ///
    /// # Complexity
    /// O(1) while a block has room, or O(log n) with
    /// [`STRATEGY_MIN_OFFSET`](crate::AllocationCreateFlags::STRATEGY_MIN_OFFSET). Calls the driver if no block has
    /// room, the memory is dedicated, or a block must be mapped.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::new(MemoryUsage::GpuOnly))?;
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[track_caller]
    #[doc(alias = "createHeap")]
    pub fn allocate_memory(
        &self,
        requirements: &vk::MemoryRequirements,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Allocation, AllocationError> {
        self.allocate(
            Resource::unknown(ResourceRequirements::from(requirements)),
            || info,
            None,
            Location::caller(),
        )
    }

    /// Allocates memory of a known resource kind, for a resource that the program creates and binds itself.
    ///
    /// The kind decides what may share a page of `bufferImageGranularity`. [`ResourceKind::Unknown`] takes whole pages,
    /// as [`Self::allocate_memory`] does. [`ResourceKind::Buffer`] and [`ResourceKind::ImageLinear`] take only the
    /// bytes.
    ///
    /// # Errors
    /// See [`Self::allocate_memory`].
    ///
    /// # Safety
    /// Only resources of this kind are bound to the memory.
    #[track_caller]
    pub unsafe fn allocate_memory_of_kind(
        &self,
        requirements: &vk::MemoryRequirements,
        kind: ResourceKind,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Allocation, AllocationError> {
        self.allocate(
            Resource::of_kind(ResourceRequirements::from(requirements), kind),
            || info,
            None,
            Location::caller(),
        )
    }

    /// Allocates memory for several requirements: all of it, or none.
    ///
    /// `infos` has one element for each of `requirements`, or a single one for all.
    ///
    /// # Errors
    /// [`AllocatePagesError`] names the element that failed; nothing stays allocated.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let small = vk::MemoryRequirements { size: 4096, alignment: 4096, memory_type_bits: !0 };
    /// let large = vk::MemoryRequirements { size: 65_536, ..small };
    /// let pages = allocator.allocate_memory_pages(&[small, large], &[AllocationCreateInfo::default()])?;
    /// assert_eq!(pages[1].size(), 65_536);
    /// for page in pages {
    ///     // SAFETY: nothing was ever bound to it.
    ///     unsafe { allocator.free_memory(page) }?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn allocate_memory_pages(
        &self,
        requirements: &[vk::MemoryRequirements],
        infos: &[AllocationCreateInfo<'_>],
    ) -> Result<Vec<Allocation>, AllocatePagesError> {
        if infos.len() != 1 && infos.len() != requirements.len() {
            return Err(AllocatePagesError::Lengths {
                requirements: requirements.len(),
                create_infos: infos.len(),
            });
        }
        let mut pages = Vec::with_capacity(requirements.len());
        for ((index, requirements), info) in requirements.iter().enumerate().zip(infos.iter().cycle()) {
            match self.allocate_memory(requirements, info) {
                Ok(page) => pages.push(page),
                Err(error) => {
                    for page in pages.into_iter().rev() {
                        // SAFETY: nobody else has seen the allocation.
                        unsafe { self.undo_memory(&page) };
                    }
                    return Err(AllocatePagesError::Element { index, error });
                }
            }
        }
        Ok(pages)
    }

    /// Allocates memory for a buffer without binding it.
    ///
    /// # Errors
    /// See [`AllocationError`]. The `Auto` usages fail, because the buffer's usage is not known here;
    /// [`Self::create_buffer`] knows it.
    ///
    /// # Safety
    /// `buffer` is a live buffer of the allocator's device.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::TRANSFER_DST);
    /// # let buffer = unsafe { gpu.device().create_buffer(&info, None) }?;
    /// // SAFETY: the buffer was made on this device.
    /// let allocation =
    ///     unsafe { allocator.allocate_memory_for_buffer(buffer, &AllocationCreateInfo::new(MemoryUsage::GpuOnly)) }?;
    /// // SAFETY: the buffer is not bound yet.
    /// unsafe { allocator.bind_buffer_memory(&allocation, 0, buffer) }?;
    /// # unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub unsafe fn allocate_memory_for_buffer(
        &self,
        buffer: vk::Buffer,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Allocation, AllocationError> {
        // SAFETY: the caller's promise: `buffer` is a live buffer of the allocator's device.
        let requirements = unsafe { self.inner.context.device.requirements(BufferOrImage::Buffer(buffer)) };
        self.allocate(Resource::buffer(requirements, buffer, None), || info, None, Location::caller())
    }

    /// Allocates memory for an image without binding it.
    ///
    /// # Errors
    /// See [`AllocationError`]. The `Auto` usages fail, because the image's usage is not known here;
    /// [`Self::create_image`] knows it.
    ///
    /// # Safety
    /// `image` is a live image of the allocator's device and not disjoint.
    #[track_caller]
    pub unsafe fn allocate_memory_for_image(
        &self,
        image: vk::Image,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Allocation, AllocationError> {
        // SAFETY: the caller's promise: `image` is a live image of the allocator's device and not disjoint.
        let requirements = unsafe { self.inner.context.device.requirements(BufferOrImage::Image(image)) };
        self.allocate(Resource::image(requirements, image, None), || info, None, Location::caller())
    }

    /// Frees an allocation. Its block may be freed as well.
    ///
    /// # Errors
    /// Returns the allocation if it belongs to another allocator, or if its pool was destroyed.
    ///
    /// # Safety
    /// The device no longer uses the memory, and resources that are bound to it are not used again
    /// (VUID-vkFreeMemory-memory-00677).
    ///
    /// Any thread may free an allocation.
    ///
    /// # Complexity
    /// O(1), and a driver call if a block is freed.
    #[inline]
    pub unsafe fn free_memory(&self, allocation: Allocation) -> Result<(), FreeError> {
        // Reads fields one by one and copies the whole handle only on error. The caller has just written it in pieces,
        // so a wide load would stall on store forwarding, and the key lookup with it. For the same reason this does not
        // call `free_in_place`, which needs a copy.
        self.before_free(&allocation);
        match self.take_back(&allocation) {
            Ok(()) => Ok(()),
            Err(source) => Err(FreeError { allocation: allocation.copied(), source }),
        }
    }

    /// [`Self::free_memory`] by reference, for programs that keep allocations in a table or free them in `Drop`.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the allocation belongs to another allocator, or if its pool was destroyed.
    ///
    /// # Safety
    /// See [`Self::free_memory`]. After a successful call the allocation is not used again.
    #[inline]
    pub unsafe fn free_in_place(&self, allocation: &Allocation) -> Result<(), ForeignHandle> {
        self.before_free(allocation);
        self.take_back(allocation)
    }

    /// Informs recordings and debug settings of an allocation that is about to be freed.
    #[inline(always)]
    pub(super) fn before_free(&self, allocation: &Allocation) {
        self.record_free(allocation);
        if allocation.has(allocation_flags::WATCHED) {
            self.unwatch(&allocation.copied());
        }
    }

    /// Returns the range to its vector.
    #[inline(always)]
    pub(super) fn take_back(&self, allocation: &Allocation) -> Result<(), ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        vector.free(&self.inner.context, allocation.live(), allocation.has(allocation_flags::MAPPED))
    }

    /// Frees an allocation for an operation that failed. Also frees a block that was made for it.
    ///
    /// # Safety
    /// See [`Self::free_memory`].
    #[cold]
    pub(crate) unsafe fn undo_memory(&self, allocation: &Allocation) {
        self.before_free(allocation);
        let mapped = allocation.has(allocation_flags::MAPPED);
        let undone = self
            .vector_of(allocation)
            .and_then(|vector| vector.undo(&self.inner.context, allocation.live(), mapped));
        debug_assert!(undone.is_ok());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::AllocatorCreateInfo;
    use super::*;
    use crate::create_info::AllocationCreateFlags as Flags;
    use crate::engine::FAST_CALLS;

    /// Explicit properties and names leave the fast path, but use the engine's fast path. Names are kept on every path.
    #[test]
    fn explicit_properties_and_names_use_the_engines_fast_path() {
        let gpu = sublet_sim::Gpu::new(sublet_sim::Profile::by_name("lavapipe").unwrap());
        let info =
            AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
        // SAFETY: the GPU outlives the allocator.
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        let requirements = vk::MemoryRequirements { size: 100, alignment: 1, memory_type_bits: !0 };
        let ordinary = AllocationCreateInfo::default();
        let named = AllocationCreateInfo { name: Some("kept"), ..ordinary };
        let visible = vk::MemoryPropertyFlags::HOST_VISIBLE;
        let (mapped, smallest) = (Flags::MAPPED, Flags::STRATEGY_MIN_MEMORY);
        let random = Flags::HOST_ACCESS_RANDOM;
        let cases = [
            named,
            ordinary,
            AllocationCreateInfo { required_flags: visible, ..ordinary },
            AllocationCreateInfo { preferred_flags: visible, ..ordinary },
            named,
            AllocationCreateInfo { required_flags: visible, ..named },
            // Its block is not mapped yet.
            AllocationCreateInfo { flags: mapped | random, ..named },
            AllocationCreateInfo { flags: smallest, ..named },
            AllocationCreateInfo { flags: smallest | Flags::NEVER_ALLOCATE, ..named },
        ]
        .map(|info| {
            FAST_CALLS.set(0);
            let allocation = allocator.allocate_memory(&requirements, &info).unwrap();
            let looks = FAST_CALLS.get();
            assert_eq!(allocator.allocation_info(&allocation).unwrap().name.as_deref(), info.name);
            (looks, allocation)
        });
        // The first allocation creates the block.
        assert_eq!(cases[1..].iter().map(|case| case.0).collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1, 0, 0]);
        for (_, allocation) in cases {
            // SAFETY: nothing uses the memory.
            unsafe { allocator.free_memory(allocation) }.unwrap();
        }
    }
}
