//! When descriptor pools refuse.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::super::pool_policy::DescriptorPoolPolicy;
use super::probe::Probe;

/// The count of sets that the pool is made for.
const SETS: u32 = 4;
/// The count of sets beyond that which are tried: a driver that allocates them allocates any number.
const BEYOND: u32 = 64;

/// Finds the rule by filling a pool that is made for a few sets and one descriptor. Vulkan lets a driver go past both,
/// and asks it to say so when it does not (`VK_ERROR_OUT_OF_POOL_MEMORY`).
///
/// A driver that cannot even make such a pool counts as strict. So does one of Vulkan 1.0, which must not refuse.
pub(crate) fn measure(probe: &Probe<'_>) -> DescriptorPoolPolicy {
    if !probe.may_overfill_pools() {
        return DescriptorPoolPolicy::Strict;
    }
    sets_until_refusal(probe.device()).map_or(DescriptorPoolPolicy::Strict, |count| match count {
        _ if count < SETS => DescriptorPoolPolicy::Strict,
        _ if count < BEYOND => DescriptorPoolPolicy::CountsSets,
        _ => DescriptorPoolPolicy::NeverRefuses,
    })
}

/// The count of sets of one descriptor that a pool for one descriptor yields, up to [`BEYOND`].
fn sets_until_refusal(device: &ash::Device) -> Result<u32, vk::Result> {
    let bindings = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
        .descriptor_count(1)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the create-info is valid, and what it points to is live.
    let layout = unsafe { device.create_descriptor_set_layout(&info, None) }?;
    let sizes =
        [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::UNIFORM_BUFFER).descriptor_count(1)];
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(SETS).pool_sizes(&sizes);
    // SAFETY: the create-info is valid, and what it points to is live.
    let pool = unsafe { device.create_descriptor_pool(&info, None) };
    let count = pool.map(|pool| {
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: pool and layout are live, and nobody else uses the pool.
        let refused = (0..BEYOND).find(|_| unsafe { device.allocate_descriptor_sets(&info) }.is_err());
        // SAFETY: nothing uses the sets.
        unsafe { device.destroy_descriptor_pool(pool, None) };
        refused.unwrap_or(BEYOND)
    });
    // SAFETY: its sets are gone.
    unsafe { device.destroy_descriptor_set_layout(layout, None) };
    count
}
