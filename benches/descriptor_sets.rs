//! Compares a persistent set with the calls of a program without an allocator. The device's calls do nothing, so that
//! only the allocator's own work counts.
//!
//! Run with `cargo bench --bench descriptor_sets`, or as a test with `cargo test --benches`. One item is one pair of
//! allocate and free. Each run checks its end state.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "every handle is of a device whose calls do nothing")]

use ash::vk;
use divan::Bencher;
use divan::counter::ItemsCount;
use sublet::descriptor::{
    DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorSet, PersistentSets, PersistentSetsCreateInfo,
    SetLayout,
};
use sublet::retire::Clock;
use sublet::sim::{NullGpu, Profile};

const PAIRS: usize = 4096;

struct Fixture {
    gpu: NullGpu,
    device: DescriptorDevice,
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
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        Self { gpu, device }
    }

    /// The layout of a material: one uniform buffer and four textures.
    fn layout(&self) -> SetLayout {
        let of = |number, kind, count| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind)
                .descriptor_count(count)
                .stage_flags(vk::ShaderStageFlags::ALL)
        };
        let bindings = [
            of(0, vk::DescriptorType::UNIFORM_BUFFER, 1),
            of(1, vk::DescriptorType::COMBINED_IMAGE_SAMPLER, 4),
        ];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let layout = unsafe { self.gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
        unsafe { SetLayout::new(layout, &info) }.unwrap()
    }

    fn sets(&self) -> PersistentSets {
        PersistentSets::new(&PersistentSetsCreateInfo::new(&self.device))
    }
}

/// Returns the order in which live sets are freed.
fn places(live: usize) -> Vec<usize> {
    let mut rng = fastrand::Rng::with_seed(1);
    (0..PAIRS).map(|_| rng.usize(..live)).collect()
}

/// Frees one set and allocates another. `layouts` layouts with the same counts take turns.
#[divan::bench(args = [(100, 1), (10_000, 1), (10_000, 4)])]
fn churn(bencher: Bencher<'_, '_>, (live, layouts): (usize, usize)) {
    let fixture = Fixture::new();
    let layouts: Vec<_> = (0..layouts).map(|_| fixture.layout()).collect();
    let sets = fixture.sets();
    let mut held: Vec<Option<DescriptorSet>> =
        (0..live).map(|at| unsafe { sets.allocate(&layouts[at % layouts.len()]) }.ok()).collect();
    let places = places(live);
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        for (turn, &place) in places.iter().enumerate() {
            let set = held[place].take().unwrap();
            unsafe { sets.free(set) }.unwrap();
            held[place] = Some(unsafe { sets.allocate(&layouts[turn % layouts.len()]) }.unwrap());
        }
    });
    assert!(held.into_iter().flatten().all(|set| unsafe { sets.free(set) }.is_ok()));
    // SAFETY: nothing runs on the null device.
    assert_eq!(unsafe { sets.destroy() }, []);
}

/// Retires one set and allocates another. Every 64th pair collects all pending sets.
#[divan::bench]
fn retire_and_collect(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    let layout = fixture.layout();
    let sets = fixture.sets();
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut held: Vec<Option<DescriptorSet>> =
        (0..10_000).map(|_| unsafe { sets.allocate(&layout) }.ok()).collect();
    let places = places(held.len());
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        for batch in places.chunks(64) {
            let ticket = clock.open(timeline);
            for &place in batch {
                let set = held[place].take().unwrap();
                unsafe { sets.retire(ticket, set) }.unwrap();
                held[place] = Some(unsafe { sets.allocate(&layout) }.unwrap());
            }
            clock.discard(ticket).unwrap();
            sets.collect(&clock).unwrap();
        }
    });
    // SAFETY: nothing runs on the null device.
    assert_eq!(unsafe { sets.destroy() }.len(), 1);
}

/// Allocates 256 sets with one call, and frees them one by one.
#[divan::bench]
fn batches(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    let layout = fixture.layout();
    let sets = fixture.sets();
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        for _ in 0..PAIRS / 256 {
            for set in unsafe { sets.allocate_many(&layout, 256) }.unwrap() {
                unsafe { sets.free(set) }.unwrap();
            }
        }
    });
    // SAFETY: nothing runs on the null device.
    assert_eq!(unsafe { sets.destroy() }, []);
}

/// Looks up a set by its name.
#[divan::bench]
fn look_up(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    let layout = fixture.layout();
    let sets = fixture.sets();
    let held = unsafe { sets.allocate_many(&layout, 1000) }.unwrap();
    let ids: Vec<_> = held.iter().map(|set| set.id()).collect();
    bencher.counter(ItemsCount::new(ids.len())).bench_local(|| {
        assert!(ids.iter().all(|&id| sets.set(id).is_ok()));
    });
    // SAFETY: nothing runs on the null device.
    assert_eq!(unsafe { sets.destroy() }.len(), 1);
}

/// The driver alone: one pool that is large enough, without any tracking.
#[divan::bench]
fn driver(bencher: Bencher<'_, '_>) {
    let fixture = Fixture::new();
    let (device, layout) = (fixture.gpu.device(), fixture.layout().handle());
    let sizes = [
        vk::DescriptorPoolSize { ty: vk::DescriptorType::UNIFORM_BUFFER, descriptor_count: 10_000 },
        vk::DescriptorPoolSize { ty: vk::DescriptorType::COMBINED_IMAGE_SAMPLER, descriptor_count: 40_000 },
    ];
    let info = vk::DescriptorPoolCreateInfo::default()
        .max_sets(10_000)
        .pool_sizes(&sizes)
        .flags(vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET);
    let pool = unsafe { device.create_descriptor_pool(&info, None) }.unwrap();
    let layouts = [layout];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    let allocate = || {
        let mut set = vk::DescriptorSet::null();
        let call = device.fp_v1_0().allocate_descriptor_sets;
        assert_eq!(unsafe { call(device.handle(), &info, &mut set) }, vk::Result::SUCCESS);
        set
    };
    let mut held: Vec<_> = (0..10_000).map(|_| allocate()).collect();
    let places = places(held.len());
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(|| {
        for &place in &places {
            unsafe { device.free_descriptor_sets(pool, &[held[place]]) }.unwrap();
            held[place] = allocate();
        }
    });
    unsafe { device.destroy_descriptor_pool(pool, None) };
}

fn main() {
    divan::main();
}
