//! Creation and destruction of a binder.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use super::bound::BoundBuffers;
use super::point::BindPointState;
use super::source::{self, BinderSource};
use super::{Binder, BinderCreateInfo, CreateBinderError, DescriptorDevice, DescriptorSizes};
use sublet::upload::AllocatorRef;

impl<A: AllocatorRef> Binder<A> {
    /// Creates a binder without sets and pages.
    ///
    /// # Errors
    /// [`CreateBinderError`] if the binder cannot create sets or descriptor pages, for example because the allocator
    /// was created without device addresses.
    ///
    /// # Safety
    /// 1. The allocator belongs to the same device.
    /// 2. Only recordings whose ticket is passed to the next [`flush`](Self::flush) use the results of commits. A clock
    ///    that is passed to the binder reports a ticket as done only if the device is done with its recording, or will
    ///    never receive it.
    pub unsafe fn new(
        device: &DescriptorDevice,
        allocator: A,
        info: &BinderCreateInfo<'_>,
    ) -> Result<Self, CreateBinderError> {
        Ok(Self {
            device: device.clone(),
            points: std::array::from_fn(|_| BindPointState::default()),
            // SAFETY: the caller keeps the promises of `BinderSource::new`, which are the same.
            source: unsafe { BinderSource::new(device, allocator, info) }?,
            sizes: DescriptorSizes::of(device),
            bound: BoundBuffers::NOTHING,
            usage: source::page_usage(device),
            offsets: Vec::new(),
        })
    }

    /// Destroys everything that the binder created.
    ///
    /// # Safety
    /// The device no longer uses anything that the binder created (VUID-vkDestroyDescriptorPool-descriptorPool-00303,
    /// VUID-vkDestroyBuffer-buffer-00922).
    pub unsafe fn destroy(self) {
        // SAFETY: the caller's promise: the device no longer uses any of it.
        unsafe { self.source.destroy() };
    }
}
