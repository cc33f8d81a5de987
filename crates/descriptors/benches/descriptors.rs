//! Measures the overhead of transient sets over the driver's own call. The device's calls do nothing, so all of the
//! time is overhead.
//!
//! `cargo bench --bench descriptors`. Times are for one set. `driver` calls `vkAllocateDescriptorSets` through the
//! function pointer, as a program without a library does. `transient` allocates from transient sets. `alone` never
//! resets. `with_reset` has recordings of 1,000 sets, and resets their pools after each.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets the unexpected is to fail")]

use ash::vk;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sublet::retire::Clock;
use sublet::sim::{NullGpu, profiles::Profile};
use sublet_descriptors::{
    DescriptorCounts, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorKind, PoolSizing, SetLayout,
    TransientSets, TransientSetsCreateInfo,
};

/// Sets per recording.
const SETS: u32 = 1000;

fn main() {
    divan::main();
}

struct Fixture {
    gpu: NullGpu,
    device: DescriptorDevice,
    layout: SetLayout,
}

impl Fixture {
    fn new() -> Self {
        let gpu = NullGpu::new(Profile::by_name("nvidia-h200").unwrap());
        let info = DescriptorDeviceCreateInfo::new(
            gpu.instance(),
            gpu.device(),
            gpu.physical_device(),
            gpu.api_version(),
        );
        // SAFETY: instance and device outlive everything made from the value.
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let kinds = [(vk::DescriptorType::UNIFORM_BUFFER, 2), (vk::DescriptorType::SAMPLED_IMAGE, 7)];
        let bindings: Vec<_> = (0..)
            .zip(kinds)
            .map(|(number, (kind, count))| {
                let binding = vk::DescriptorSetLayoutBinding::default().binding(number);
                binding.descriptor_type(kind).descriptor_count(count).stage_flags(vk::ShaderStageFlags::ALL)
            })
            .collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the create-info is valid; the device does nothing with layouts.
        let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
        Self { gpu, device, layout }
    }

    /// Allocates the sets of one recording without a library.
    fn raw_sets(&self) {
        let (function, device) =
            (self.gpu.device().fp_v1_0().allocate_descriptor_sets, self.gpu.device().handle());
        let (pool, layout) = (vk::DescriptorPool::null(), self.layout.handle());
        for _ in 0..SETS {
            // SAFETY: the device does nothing with its arguments.
            let set =
                unsafe { raw_allocate(black_box(function), device, black_box(pool), black_box(layout)) };
            black_box(set.unwrap());
        }
    }

    /// Returns sets with one pool that does not run out during the measurement.
    fn endless(&self) -> TransientSets {
        let counts = DescriptorCounts::new()
            .with(DescriptorKind::UniformBuffer, u32::MAX)
            .with(DescriptorKind::SampledImage, u32::MAX);
        let sizing = PoolSizing::Fixed;
        let info = TransientSetsCreateInfo { sets_per_pool: u32::MAX, counts, sizing, ..Default::default() };
        TransientSets::new(&self.device, &info).unwrap()
    }
}

/// # Safety
/// The function belongs to the device.
unsafe fn raw_allocate(
    function: vk::PFN_vkAllocateDescriptorSets,
    device: vk::Device,
    pool: vk::DescriptorPool,
    layout: vk::DescriptorSetLayout,
) -> Result<vk::DescriptorSet, vk::Result> {
    let layouts = [layout];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    let mut set = vk::DescriptorSet::null();
    // SAFETY: guaranteed by the caller.
    unsafe { function(device, &info, &mut set) }.result()?;
    Ok(set)
}

#[divan::bench]
fn alone_driver(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    bencher.counter(ItemsCount::new(SETS)).bench_local(|| fixture.raw_sets());
}

#[divan::bench]
fn alone_transient(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    let mut sets = fixture.endless();
    bencher.counter(ItemsCount::new(SETS)).bench_local(|| {
        for _ in 0..SETS {
            // SAFETY: the device does nothing with its arguments.
            let set = unsafe { sets.allocate(black_box(&fixture.layout)) };
            black_box(set.unwrap());
        }
    });
    // SAFETY: the device is idle.
    unsafe { sets.destroy() };
}

#[divan::bench]
fn with_reset_driver(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    bencher.counter(ItemsCount::new(SETS)).bench_local(|| {
        fixture.raw_sets();
        let (pool, flags) = (vk::DescriptorPool::null(), vk::DescriptorPoolResetFlags::empty());
        // SAFETY: the device does nothing with its arguments.
        unsafe { fixture.gpu.device().reset_descriptor_pool(pool, flags) }.unwrap();
    });
}

#[divan::bench]
fn with_reset_transient(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    let mut sets = TransientSets::new(&fixture.device, &TransientSetsCreateInfo::default()).unwrap();
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut value = 0;
    bencher.counter(ItemsCount::new(SETS)).bench_local(|| {
        let ticket = clock.open(timeline);
        for _ in 0..SETS {
            // SAFETY: the device does nothing with its arguments.
            let set = unsafe { sets.allocate(black_box(&fixture.layout)) };
            black_box(set.unwrap());
        }
        sets.flush(ticket).unwrap();
        value += 1;
        clock.submit(ticket, value).unwrap();
        clock.completed(timeline, value);
        sets.collect(&clock).unwrap();
    });
    // The pools of the first recording and their replacements, for any number of recordings.
    assert!(sets.statistics().pools <= 8, "{:?}", sets.statistics());
    // SAFETY: the device is idle.
    unsafe { sets.destroy() };
}
