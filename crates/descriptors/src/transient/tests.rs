//! Checks the state of the pools after every operation.
#![expect(unsafe_code, reason = "tests call Vulkan")]
#![allow(clippy::unwrap_used, reason = "a test")]

use ash::vk;

use super::*;
use crate::{DescriptorDeviceCreateInfo, DescriptorKind, DescriptorQuirks, SetLayout};
use sublet::retire::{Clock, Ticket};
use sublet_sim::profiles::Profile;
use sublet_sim::{DescriptorPoolPolicy, DescriptorQuirk, Gpu};

fn layout(gpu: &Gpu, kind: DescriptorKind, count: u32) -> SetLayout {
    let binding = vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(kind.to_vk())
        .descriptor_count(count)
        .stage_flags(vk::ShaderStageFlags::COMPUTE);
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(std::slice::from_ref(&binding));
    // SAFETY: the create-info is valid.
    let handle = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
    // SAFETY: the layout was created from this create-info.
    unsafe { SetLayout::new(handle, &info) }.unwrap()
}

#[test]
fn the_state_is_right_after_every_operation() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let policies = [
            DescriptorPoolPolicy::Strict,
            DescriptorPoolPolicy::CountsSets,
            DescriptorPoolPolicy::NeverRefuses,
        ];
        let faults = [DescriptorQuirk::empty(), DescriptorQuirk::SET_COUNT_SURVIVES_RESET];
        let fault = faults[random.usize(..2)];
        let gpu = Gpu::builder(Profile::by_name("nvidia-h200").unwrap())
            .descriptor_pools(policies[random.usize(..3)])
            .descriptor_quirks(fault)
            .build();
        let quirks = [DescriptorQuirks::empty(), DescriptorQuirks::RESET_LEAKS][random.usize(..2)];
        let info =
            DescriptorDeviceCreateInfo { quirks: Some(quirks), ..DescriptorDeviceCreateInfo::for_gpu(&gpu) };
        // SAFETY: instance and device outlive everything that is created from the value.
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let layouts = [
            layout(&gpu, DescriptorKind::UniformBuffer, 1),
            layout(&gpu, DescriptorKind::UniformBuffer, 7),
            layout(&gpu, DescriptorKind::StorageBuffer, 3),
        ];
        let info = TransientSetsCreateInfo {
            sets_per_pool: 6,
            share_pools: random.bool(),
            max_pools: random.usize(2..12),
            ..Default::default()
        };
        let mut sets = TransientSets::new(&device, &info).unwrap();
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let mut open: Vec<Ticket> = Vec::new();
        for _ in 0..500 {
            match random.u32(..20) {
                0..=12 => {
                    if random.u32(..20) == 0 {
                        let result = [vk::Result::ERROR_FRAGMENTED_POOL, vk::Result::ERROR_DEVICE_LOST];
                        gpu.faults().fail_nth("vkAllocateDescriptorSets", 0, result[random.usize(..2)]);
                    }
                    // SAFETY: the layout is live, and nothing uses the set.
                    let _ = unsafe { sets.allocate(&layouts[random.usize(..3)]) };
                }
                13..=14 => {
                    let ticket = clock.open(timeline);
                    sets.flush(ticket).unwrap();
                    open.push(ticket);
                }
                15..=16 if !open.is_empty() => {
                    clock.discard(open.swap_remove(random.usize(..open.len()))).unwrap();
                }
                17 => {
                    sets.trim();
                }
                18 => {
                    let _ = sets.reserve(2);
                }
                _ => {
                    if random.u32(..6) == 0 {
                        let result = vk::Result::ERROR_OUT_OF_HOST_MEMORY;
                        gpu.faults().fail_nth("vkResetDescriptorPool", 0, result);
                    }
                    let _ = sets.collect(&clock);
                }
            }
            sets.validate();
            let statistics = sets.statistics();
            assert!(statistics.pools <= info.max_pools, "seed {seed}: {statistics:?}");
            assert_eq!(u64::try_from(statistics.pools).unwrap(), gpu.live().descriptor_pools, "seed {seed}");
        }
        // With an unreported fault, a driver whose resets do not restore sets counts an overrun.
        assert!(!fault.is_empty() || gpu.descriptor_pool_overruns() == 0);
        // SAFETY: the device is idle.
        unsafe { sets.destroy() };
        assert_eq!(gpu.live().descriptor_pools, 0);
        for layout in &layouts {
            // SAFETY: nothing uses it.
            unsafe { gpu.device().destroy_descriptor_set_layout(layout.handle(), None) };
        }
        gpu.assert_silent();
    }
}
