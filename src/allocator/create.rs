//! Creating buffers and images with their memory.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::borrow::Borrow;
use std::panic::Location;

use ash::vk;

use super::{Allocator, Resource};
use crate::allocation::{Allocation, FreeError};
use crate::create_info::{AllocationCreateFlags, AllocationCreateInfo};
use crate::device::{BufferOrImage, MemoryAllocateNext, ResourceRequirements, find_in_chain};
use crate::error::CreateError;

impl Allocator {
    /// Creates a buffer, allocates memory for it and binds it (unless [`DONT_BIND`](AllocationCreateFlags::DONT_BIND)).
    ///
    /// # Errors
    /// [`CreateError`] says which of the three steps failed. Nothing is left behind.
    ///
    /// # Safety
    /// `buffer_info` is valid for the device (VUID-vkCreateBuffer-pCreateInfo-parameter).
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let info = vk::BufferCreateInfo::default().size(1024).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
    /// let host = AllocationCreateInfo {
    ///     usage: MemoryUsage::Auto,
    ///     flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED,
    ///     ..Default::default()
    /// };
    /// // SAFETY: the create-info is valid.
    /// let (buffer, allocation) = unsafe { allocator.create_buffer(&info, &host) }?;
    /// assert!(allocation.mapped_pointer().is_some());
    /// // SAFETY: the device does not use it.
    /// unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    #[doc(alias = "CreateResource")]
    #[inline]
    pub unsafe fn create_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<(vk::Buffer, Allocation), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        unsafe { self.create_buffer_for(buffer_info, info, Location::caller()) }
    }

    /// [`Self::create_buffer`], with the code location that [`Tracking`](crate::Tracking) reports: for libraries that
    /// create buffers for their callers.
    ///
    /// # Errors
    /// Same as [`Self::create_buffer`].
    ///
    /// # Safety
    /// Same as [`Self::create_buffer`].
    #[inline(always)]
    pub unsafe fn create_buffer_for(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
        caller: &'static Location<'static>,
    ) -> Result<(vk::Buffer, Allocation), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let (buffer, resource) = unsafe { self.unbound_buffer(buffer_info) }?;
        // SAFETY: the buffer was created just now and these are its requirements.
        unsafe { self.allocate_and_bind(buffer, resource, || info, None, caller) }
    }

    /// Like [`Self::create_buffer`], in dedicated memory, with a chain for its `VkMemoryAllocateInfo`.
    ///
    /// # Errors
    /// See [`Self::create_buffer`]; [`TwoMemoryAllocateChains`](crate::Contradiction::TwoMemoryAllocateChains) if the
    /// pool has a chain as well.
    ///
    /// # Safety
    /// See [`Self::create_buffer`]. If the chain shares the memory, the create-info must declare it
    /// (VUID-vkBindBufferMemory-memory-02726, -02985).
    #[track_caller]
    pub unsafe fn create_dedicated_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
        next: MemoryAllocateNext,
    ) -> Result<(vk::Buffer, Allocation), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let (buffer, resource) = unsafe { self.unbound_buffer(buffer_info) }?;
        // SAFETY: the buffer was created just now and these are its requirements.
        unsafe { self.allocate_and_bind(buffer, resource, || info, Some(next), Location::caller()) }
    }

    /// Rejects buffers above the device's limit before the driver is called (VUID-VkBufferCreateInfo-size-06409).
    #[inline]
    pub(crate) fn check_buffer_size(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<(), CreateError> {
        let (size, max) = (buffer_info.size, self.device().max_buffer_size);
        if size > max { Err(CreateError::BufferTooLarge { size, max }) } else { Ok(()) }
    }

    /// The requirements and usage of a buffer for `buffer_info`. With maintenance4 this queries the driver directly,
    /// else it creates and destroys a buffer.
    ///
    /// # Safety
    /// `buffer_info` is valid for the device.
    pub(super) unsafe fn imagined_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<(ResourceRequirements, vk::BufferUsageFlags2KHR), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device, so that its chain is valid.
        let usage = unsafe { self.check_buffer(buffer_info) }?;
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let requirements = unsafe { self.device().requirements_for_buffer(buffer_info) };
        Ok((requirements.map_err(CreateError::Resource)?, usage))
    }

    /// The requirements of an image for `image_info`. See `imagined_buffer`.
    ///
    /// # Safety
    /// `image_info` is valid for the device.
    pub(super) unsafe fn imagined_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> Result<ResourceRequirements, CreateError> {
        check_image(image_info)?;
        // SAFETY: the caller's promise: `image_info` is valid for the device; it is not disjoint.
        unsafe { self.device().requirements_for_image(image_info) }.map_err(CreateError::Resource)
    }

    /// Rejects buffers that the allocator does not create, before the driver is called. All functions that create a
    /// buffer or query its requirements call this. Returns the buffer's usage.
    ///
    /// # Safety
    /// The chain of `buffer_info` is valid.
    #[inline]
    unsafe fn check_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<vk::BufferUsageFlags2KHR, CreateError> {
        if buffer_info.size == 0 {
            return Err(CreateError::ZeroExtent);
        }
        if buffer_info.flags.contains(vk::BufferCreateFlags::SPARSE_BINDING) {
            return Err(CreateError::Sparse);
        }
        self.check_buffer_size(buffer_info)?;
        // SAFETY: the caller upholds the contract of this function.
        let usage = unsafe { self.buffer_usage(buffer_info) };
        if usage.contains(vk::BufferUsageFlags2KHR::SHADER_DEVICE_ADDRESS)
            && !self.device().settings.buffer_device_address
        {
            return Err(CreateError::DeviceAddress);
        }
        Ok(usage)
    }

    /// Creates a buffer, and returns its requirements.
    ///
    /// # Safety
    /// `buffer_info` is valid for the device.
    #[inline]
    pub(crate) unsafe fn unbound_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<(vk::Buffer, Resource), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let (buffer, requirements, usage) = unsafe { self.bare_buffer(buffer_info) }?;
        Ok((buffer, Resource::buffer(requirements, buffer, Some(usage))))
    }

    /// [`Self::unbound_buffer`], returned in parts.
    ///
    /// # Safety
    /// See [`Self::unbound_buffer`].
    #[inline]
    pub(super) unsafe fn bare_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<(vk::Buffer, ResourceRequirements, vk::BufferUsageFlags2KHR), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device, so that its chain is valid.
        let usage = unsafe { self.check_buffer(buffer_info) }?;
        let device = self.device();
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let buffer = unsafe { device.create_buffer(buffer_info) }.map_err(CreateError::Resource)?;
        // SAFETY: the buffer was created just now.
        let requirements = unsafe { device.requirements(BufferOrImage::Buffer(buffer)) };
        Ok((buffer, requirements, usage))
    }

    /// The device address of a buffer's first byte (`vkGetBufferDeviceAddress`). Returns `None` unless the allocator
    /// was created with [`BUFFER_DEVICE_ADDRESS`](crate::AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS).
    ///
    /// # Safety
    /// The buffer is live and belongs to this device. It was created with `SHADER_DEVICE_ADDRESS` and is bound to
    /// memory (VUID-VkBufferDeviceAddressInfo-buffer-02600, -02601).
    #[must_use]
    pub unsafe fn buffer_address(&self, buffer: vk::Buffer) -> Option<vk::DeviceAddress> {
        // SAFETY: the caller upholds the contract of this function.
        unsafe { self.device().buffer_address(buffer) }
    }

    /// Creates an image, allocates memory for it and binds it (unless [`DONT_BIND`](AllocationCreateFlags::DONT_BIND)).
    ///
    /// # Errors
    /// [`CreateError`] says which of the three steps failed. Nothing is left behind. A disjoint image is rejected,
    /// because each of its planes needs its own memory; see [`CreateError::Disjoint`].
    ///
    /// # Safety
    /// `image_info` is valid for the device (VUID-vkCreateImage-pCreateInfo-parameter).
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let info = vk::ImageCreateInfo::default().image_type(vk::ImageType::TYPE_2D).format(vk::Format::R8G8B8A8_UNORM)
    ///     .extent(vk::Extent3D { width: 256, height: 256, depth: 1 }).mip_levels(1).array_layers(1)
    ///     .samples(vk::SampleCountFlags::TYPE_1).usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST);
    /// // SAFETY: the create-info is valid.
    /// let (image, allocation) = unsafe { allocator.create_image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    /// assert!(allocation.size() >= 256 * 256 * 4);
    /// // SAFETY: the device does not use it.
    /// unsafe { allocator.destroy_image(image, allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    #[doc(alias = "createTexture")]
    #[inline]
    pub unsafe fn create_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<(vk::Image, Allocation), CreateError> {
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let (image, resource) = unsafe { self.unbound_image(image_info) }?;
        // SAFETY: the image was created just now and these are its requirements.
        unsafe { self.allocate_and_bind(image, resource, || info, None, Location::caller()) }
    }

    /// Like [`Self::create_image`], in dedicated memory, with a chain for its `VkMemoryAllocateInfo`.
    ///
    /// # Errors
    /// See [`Self::create_image`]; [`TwoMemoryAllocateChains`](crate::Contradiction::TwoMemoryAllocateChains) if the
    /// pool has a chain as well.
    ///
    /// # Safety
    /// See [`Self::create_image`]. If the chain shares the memory, the create-info must declare it
    /// (VUID-vkBindImageMemory-memory-02728, -02989).
    #[track_caller]
    pub unsafe fn create_dedicated_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
        next: MemoryAllocateNext,
    ) -> Result<(vk::Image, Allocation), CreateError> {
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let (image, resource) = unsafe { self.unbound_image(image_info) }?;
        // SAFETY: the image was created just now and these are its requirements.
        unsafe { self.allocate_and_bind(image, resource, || info, Some(next), Location::caller()) }
    }

    /// Creates an image, and returns its requirements.
    ///
    /// # Safety
    /// `image_info` is valid for the device.
    #[inline]
    pub(crate) unsafe fn unbound_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> Result<(vk::Image, Resource), CreateError> {
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let (image, requirements) = unsafe { self.bare_image(image_info) }?;
        Ok((image, Resource::image(requirements, image, Some((image_info.usage, image_info.tiling)))))
    }

    /// [`Self::unbound_image`], returned in parts.
    ///
    /// # Safety
    /// See [`Self::unbound_image`].
    #[inline]
    pub(super) unsafe fn bare_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> Result<(vk::Image, ResourceRequirements), CreateError> {
        check_image(image_info)?;
        let device = self.device();
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let image = unsafe { device.create_image(image_info) }.map_err(CreateError::Resource)?;
        // SAFETY: the image was created just now, and is not disjoint.
        Ok((image, unsafe { device.requirements(BufferOrImage::Image(image)) }))
    }

    /// Allocates and binds memory: see [`Self::allocate`]. Destroys the resource if either fails.
    ///
    /// # Safety
    /// `handle` is new and not bound, and `resource` has its requirements.
    #[inline(always)]
    pub(super) unsafe fn allocate_and_bind<
        'i,
        H: Copy + Into<BufferOrImage>,
        I: Borrow<AllocationCreateInfo<'i>>,
    >(
        &self,
        handle: H,
        resource: Resource,
        info: impl Fn() -> I,
        next: Option<MemoryAllocateNext>,
        caller: &'static Location<'static>,
    ) -> Result<(H, Allocation), CreateError> {
        match self.allocate(resource, &info, next, caller) {
            Ok(allocation) => {
                // SAFETY: the allocation was made for these requirements, and the caller's promise: `handle` is not
                // bound.
                unsafe { self.bind_new(handle.into(), &allocation, info().borrow().flags) }?;
                Ok((handle, allocation))
            }
            Err(error) => {
                // SAFETY: the caller's promise: the resource is new, so nobody else uses it.
                unsafe { self.device().destroy(handle.into()) };
                Err(error.into())
            }
        }
    }

    /// Binds a new resource to its allocation, unless the flags forbid it.
    ///
    /// # Safety
    /// `handle` is new and not bound, and the allocation meets its requirements.
    #[inline(always)]
    pub(super) unsafe fn bind_new(
        &self,
        handle: BufferOrImage,
        allocation: &Allocation,
        flags: AllocationCreateFlags,
    ) -> Result<(), CreateError> {
        if !flags.contains(AllocationCreateFlags::DONT_BIND) {
            let (memory, offset) = (allocation.memory, allocation.offset);
            // SAFETY: the caller's promise: it is not bound, and the allocation meets its requirements. Nobody has
            // freed the memory.
            let bound = unsafe { self.device().bind(handle, memory, offset, std::ptr::null()) };
            if let Err(error) = bound {
                // SAFETY: the caller's promise: both are new, so nobody else uses them.
                unsafe { self.undo_new(handle, allocation.copied()) };
                return Err(CreateError::Bind(error));
            }
        }
        Ok(())
    }

    /// Destroys a resource that cannot be bound, and frees its memory.
    ///
    /// # Safety
    /// Nobody uses the resource or the allocation, and nobody else knows of them.
    #[cold]
    #[inline(never)]
    unsafe fn undo_new(&self, handle: BufferOrImage, allocation: Allocation) {
        // The resource is destroyed before the memory to which it may be bound.
        // SAFETY: the caller's promise: nobody uses it.
        unsafe { self.device().destroy(handle) };
        // SAFETY: the caller's promise: nobody uses it.
        unsafe { self.undo_memory(&allocation) };
    }

    /// Destroys a buffer and frees its memory. A null buffer is ignored.
    ///
    /// # Errors
    /// Returns the allocation if it belongs to another allocator, or if its pool was destroyed. The buffer is destroyed
    /// nonetheless.
    ///
    /// # Safety
    /// The buffer belongs to the allocator's device. The device no longer uses it (VUID-vkDestroyBuffer-buffer-00922)
    /// nor anything else that is bound to the memory.
    pub unsafe fn destroy_buffer(&self, buffer: vk::Buffer, allocation: Allocation) -> Result<(), FreeError> {
        // SAFETY: the caller's promise: the buffer is of the allocator's device, and the device no longer uses it nor
        // anything else that is bound to the memory.
        unsafe { self.device().destroy_buffer(buffer) };
        // SAFETY: the caller's promise: the buffer is of the allocator's device, and the device no longer uses it nor
        // anything else that is bound to the memory.
        unsafe { self.free_memory(allocation) }
    }

    /// Destroys an image and frees its memory. A null image is ignored.
    ///
    /// # Errors
    /// Returns the allocation if it belongs to another allocator, or if its pool was destroyed. The image is destroyed
    /// nonetheless.
    ///
    /// # Safety
    /// The image belongs to the allocator's device. The device no longer uses it (VUID-vkDestroyImage-image-01000) nor
    /// anything else that is bound to the memory.
    pub unsafe fn destroy_image(&self, image: vk::Image, allocation: Allocation) -> Result<(), FreeError> {
        // SAFETY: the caller's promise: the image is of the allocator's device, and the device no longer uses it nor
        // anything else that is bound to the memory.
        unsafe { self.device().destroy_image(image) };
        // SAFETY: the caller's promise: the image is of the allocator's device, and the device no longer uses it nor
        // anything else that is bound to the memory.
        unsafe { self.free_memory(allocation) }
    }

    /// The usage of a buffer. With maintenance5, a `VkBufferUsageFlags2CreateInfoKHR` in the chain takes precedence.
    ///
    /// # Safety
    /// The chain of `info` is valid.
    pub(crate) unsafe fn buffer_usage(&self, info: &vk::BufferCreateInfo<'_>) -> vk::BufferUsageFlags2KHR {
        if self.has_maintenance5() {
            // SAFETY: the caller's promise: the chain is valid, and nobody writes to it during this call.
            let usage = unsafe { find_in_chain::<vk::BufferUsageFlags2CreateInfoKHR<'_>>(info.p_next) };
            if let Some(usage) = usage {
                return usage.usage;
            }
        }
        vk::BufferUsageFlags2KHR::from_raw(u64::from(info.usage.as_raw()))
    }
}

/// Rejects images that the allocator does not create. See `Allocator::check_buffer`.
#[inline]
fn check_image(image_info: &vk::ImageCreateInfo<'_>) -> Result<(), CreateError> {
    let vk::Extent3D { width, height, depth } = image_info.extent;
    if [width, height, depth, image_info.mip_levels, image_info.array_layers].contains(&0) {
        return Err(CreateError::ZeroExtent);
    }
    if image_info.flags.contains(vk::ImageCreateFlags::SPARSE_BINDING) {
        return Err(CreateError::Sparse);
    }
    if image_info.flags.contains(vk::ImageCreateFlags::DISJOINT) {
        return Err(CreateError::Disjoint);
    }
    Ok(())
}

/// Creation for the C interface, which has its own create-infos: see [`Allocator::allocate`].
#[doc(hidden)]
pub trait CreateInside {
    /// # Safety
    /// See [`Allocator::create_buffer`].
    unsafe fn create_buffer_as<'i>(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: impl Fn() -> AllocationCreateInfo<'i>,
    ) -> Result<(vk::Buffer, Allocation), CreateError>;

    /// # Safety
    /// See [`Allocator::create_image`].
    unsafe fn create_image_as<'i>(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: impl Fn() -> AllocationCreateInfo<'i>,
    ) -> Result<(vk::Image, Allocation), CreateError>;
}

impl CreateInside for Allocator {
    #[inline(always)]
    unsafe fn create_buffer_as<'i>(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: impl Fn() -> AllocationCreateInfo<'i>,
    ) -> Result<(vk::Buffer, Allocation), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let (buffer, resource) = unsafe { self.unbound_buffer(buffer_info) }?;
        // SAFETY: the buffer was created just now and these are its requirements.
        unsafe { self.allocate_and_bind(buffer, resource, info, None, Location::caller()) }
    }

    #[inline(always)]
    unsafe fn create_image_as<'i>(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: impl Fn() -> AllocationCreateInfo<'i>,
    ) -> Result<(vk::Image, Allocation), CreateError> {
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let (image, resource) = unsafe { self.unbound_image(image_info) }?;
        // SAFETY: the image was created just now and these are its requirements.
        unsafe { self.allocate_and_bind(image, resource, info, None, Location::caller()) }
    }
}
