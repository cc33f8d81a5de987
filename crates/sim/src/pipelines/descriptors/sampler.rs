//! Samplers: only what descriptors need of them.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::facts::arithmetic::widen;
use crate::objects::descriptors::Sampler;
use crate::objects::entry::on_device;
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::state::DeviceState;

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::SamplerCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_sampler: *mut vk::Sampler,
) -> vk::Result {
    on_device(device, "vkCreateSampler", |device| {
        if p_info.is_null() {
            return device.refuse("VUID-vkCreateSampler-pCreateInfo-parameter", "pCreateInfo is NULL");
        }
        let limit = device.gpu_state.descriptors.limits.max_sampler_allocation_count;
        if widen(device.state.lock().descriptors.samplers.len()) >= u64::from(limit) {
            let text = format!("there are {limit} samplers, and that is maxSamplerAllocationCount");
            device.report("VUID-vkCreateSampler-maxSamplerAllocationCount-04110", text);
            return vk::Result::ERROR_TOO_MANY_OBJECTS;
        }
        let insert = |state: &mut DeviceState, handle, host| {
            state.descriptors.samplers.insert(handle, Sampler { host });
        };
        // SAFETY: 1: VUID-vkCreateSampler-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateSampler-pSampler-parameter.
        unsafe { host::create(device, callbacks, p_sampler, insert) }
    })
}

destroys! {
    pub(crate) fn destroy(sampler: vk::Sampler) = "vkDestroySampler",
    ["sampler-parameter", "sampler-01083", "sampler-01084"],
    |device, state, _| Some(state.descriptors.samplers.remove(&sampler)?.host)
}
