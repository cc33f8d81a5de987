//! Samplers, as far as a descriptor needs one.

use ash::vk;
use ash::vk::Handle as _;

use crate::arithmetic::widen;
use crate::chain;
use crate::entry::{call, on_device};
use crate::host::{self, HostBytes};
use crate::resource::check_callbacks;

/// A `VkSampler`.
pub(crate) struct Sampler {
    host: HostBytes,
}

pub(super) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::SamplerCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_sampler: *mut vk::Sampler,
) -> vk::Result {
    on_device(device, call!("vkCreateSampler"), |device| {
        if p_info.is_null() {
            device.report("VUID-vkCreateSampler-pCreateInfo-parameter", "pCreateInfo is NULL".to_owned());
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        }
        let limit = device.hub.descriptors.limits.max_sampler_allocation_count;
        if widen(device.state.lock().descriptors.samplers.len()) >= u64::from(limit) {
            let text = format!("there are {limit} samplers, and that is maxSamplerAllocationCount");
            device.report("VUID-vkCreateSampler-maxSamplerAllocationCount-04110", text);
            return vk::Result::ERROR_TOO_MANY_OBJECTS;
        }
        // SAFETY: VUID-vkCreateSampler-pAllocator-parameter; no lock is held.
        let host = match unsafe { host::take(callbacks) } {
            Ok(host) => host,
            Err(error) => return error,
        };
        let handle = device.hub.handle();
        device.state.lock().descriptors.samplers.insert(handle, Sampler { host });
        // SAFETY: VUID-vkCreateSampler-pSampler-parameter.
        unsafe { chain::output(p_sampler, handle) };
        vk::Result::SUCCESS
    })
}

pub(super) unsafe extern "system" fn destroy(
    device: vk::Device,
    sampler: vk::Sampler,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, call!("vkDestroySampler"), |device| {
        if sampler.is_null() {
            return;
        }
        let mut state = device.state.lock();
        let name = state.label(sampler);
        state.names.remove(&sampler.as_raw());
        let Some(found) = state.descriptors.samplers.remove(&sampler) else {
            let text = format!("{name} {}", device.hub.fate(sampler));
            device.report("VUID-vkDestroySampler-sampler-parameter", text);
            return;
        };
        let rules = ["VUID-vkDestroySampler-sampler-01083", "VUID-vkDestroySampler-sampler-01084"];
        check_callbacks(device, &name, found.host.is_some(), !callbacks.is_null(), rules);
        drop(state);
        // SAFETY: VUID-vkDestroySampler-pAllocator-parameter; no lock is held, and the object is out of the books.
        unsafe { host::give_back(callbacks, found.host) };
    });
}
