//! One program for all kinds of heaps: shaders read the written descriptors on every device.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use ash::vk;
use sublet::sim::{DescriptorHeapLimits, Gpu, Kernel, Profile};
use sublet_descriptors::{
    BindingModel, BindlessHeap, BindlessHeapCreateInfo, BindlessKind, CreateHeapError, DescriptorFeatures,
    DescriptorKind, HeapCreateInfo, HeapKind, HeapPlace, OwnedRange,
};

use crate::common::{Bindless, Fixture, Held, hold};
use crate::native::{dispatch, fixture as native_rig, word};
use crate::shader::{POINT, Shader, TYPES, fill, profiles};

const FRAMES: u32 = 3;

fn info<'a>(defaults: &'a [sublet_descriptors::Descriptor]) -> BindlessHeapCreateInfo<'a> {
    let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
    let heap = HeapCreateInfo { slots: 12, types: TYPES, ..info.heap };
    BindlessHeapCreateInfo { heap, frames: FRAMES, defaults }
}

fn bindless<'a>(fixture: &'a Fixture, info: &BindlessHeapCreateInfo<'_>) -> Held<Bindless<'a>> {
    hold(Bindless(unsafe { BindlessHeap::create(&fixture.device, &fixture.allocator, info) }.unwrap()))
}

/// In each frame the program adds a material and retires an older one, independent of the kind of heap.
fn program(fixture: &Fixture) -> BindlessKind {
    let defaults = [fixture.uniform(14), fixture.storage(15)];
    let heap = bindless(fixture, &info(&defaults));
    let shader = Shader::new(fixture, heap.layout(), heap.pipeline_flags());
    let [uniforms, buffers] = [DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer]
        .map(|kind| heap.binding(kind).unwrap());
    let mut alive = Vec::new();
    for frame in 0..12 {
        let ticket = fixture.clock.begin_frame(fixture.timeline, frame % FRAMES);
        heap.collect(&fixture.clock).unwrap();
        let at = u64::from(frame);
        fixture.put(at, 100 + frame);
        let range = fill(fixture, &heap, at, at + 1);
        unsafe { heap.flush(frame) };
        let words = [range.first(), uniforms, range.index(1).unwrap(), buffers];
        shader.run(words, |commands, layout| {
            let place = HeapPlace { bind_point: POINT, layout, first_set: 0 };
            unsafe { BindlessHeap::cmd_bind(commands, frame, &[place], &[&heap]) };
        });
        assert_eq!(fixture.get(at + 1), 101 + frame, "{:?}, frame {frame}", heap.kind());
        alive.push(range);
        if alive.len() > 2 {
            unsafe { heap.retire(ticket, alive.remove(0)) }.unwrap();
        }
        fixture.clock.end_frame(ticket).unwrap();
    }
    heap.kind()
}

#[test]
fn the_same_program_reads_what_it_wrote_on_every_profile_and_every_kind() {
    let mut seen = BTreeSet::new();
    let without = [
        DescriptorFeatures::empty(),
        DescriptorFeatures::DESCRIPTOR_BUFFER,
        DescriptorFeatures::DESCRIPTOR_BUFFER | DescriptorFeatures::UPDATE_AFTER_BIND,
    ];
    for name in profiles(|_| true) {
        for without in without {
            let fixture =
                Fixture::with(Gpu::new(Profile::by_name(name).unwrap()), |features| features - without);
            let kind = program(&fixture);
            let is_buffer = fixture.device.model() == BindingModel::Buffer;
            assert_eq!(kind == BindlessKind::Buffer, is_buffer, "{name}");
            seen.insert(format!("{kind:?}"));
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["Buffer", "Classic", "Set"]);
}

#[test]
fn a_driver_that_is_slow_with_descriptor_buffers_gets_sets_unless_the_program_insists() {
    use sublet_descriptors::{DescriptorDevice, DescriptorDeviceCreateInfo};

    static OLD: LazyLock<Profile> =
        LazyLock::new(|| Profile { device_id: 0x1c03, ..Profile::by_name("nvidia-h200").unwrap().clone() });
    let old = |model| {
        let gpu = Gpu::new(&OLD);
        let info = DescriptorDeviceCreateInfo { model, ..DescriptorDeviceCreateInfo::for_gpu(&gpu) };
        assert!(info.features.contains(DescriptorFeatures::DESCRIPTOR_BUFFER));
        unsafe { DescriptorDevice::new(&info) }.unwrap().model()
    };
    assert_eq!(old(BindingModel::Auto), BindingModel::Sets, "Pascal");
    assert_eq!(old(BindingModel::Buffer), BindingModel::Buffer);
    assert_eq!(Fixture::new("nvidia-h200").device.model(), BindingModel::Buffer);
}

/// The program differs only in its pipelines and push constants.
#[test]
fn a_program_that_asks_for_vulkans_own_heaps_gets_them() {
    use sublet_descriptors::{
        DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorSource, HeapWriteError, PipelineLayoutError,
        PipelineLayoutInfo, SetLayout,
    };

    let fixture = native_rig(DescriptorHeapLimits::NVIDIA);
    assert_ne!(fixture.device.model(), BindingModel::Heap, "nobody gets them unasked");
    let asked = DescriptorDeviceCreateInfo {
        model: BindingModel::Heap,
        ..DescriptorDeviceCreateInfo::for_gpu(&fixture.gpu)
    };
    let device = unsafe { DescriptorDevice::new(&asked) }.unwrap();
    let defaults = [fixture.uniform(14), fixture.storage(15)];
    let info = info(&defaults);
    let growing = HeapCreateInfo { slots: 2, max_slots: 12, ..info.heap };
    let made = unsafe {
        BindlessHeap::create(&device, &fixture.allocator, &BindlessHeapCreateInfo { heap: growing, ..info })
    };
    let heap = hold(Bindless(made.unwrap()));
    let defaults = [fixture.sampler(0)];
    let of_samplers =
        BindlessHeapCreateInfo { defaults: &defaults, ..BindlessHeapCreateInfo::new(HeapKind::Sampler) };
    let samplers =
        hold(Bindless(unsafe { BindlessHeap::create(&device, &fixture.allocator, &of_samplers) }.unwrap()));
    assert_eq!([heap.kind(), samplers.kind()], [BindlessKind::Native; 2]);
    assert!(heap.set_layout().is_none() && heap.layout() == vk::DescriptorSetLayout::null());

    let sampler = samplers.allocate(1).unwrap();
    let create_info = vk::SamplerCreateInfo::default();
    let source = DescriptorSource::Sampler { sampler: vk::Sampler::null(), info: &create_info };
    assert_eq!(unsafe { samplers.write_source(sampler.id(), 0, &source) }, Ok(sampler.first()));
    let refused = unsafe { samplers.write(sampler.id(), 0, &fixture.sampler(0)) };
    assert!(matches!(refused, Err(HeapWriteError::Data(_))), "a handle says too little: {refused:?}");

    let [uniforms, buffers] = [DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer]
        .map(|kind| heap.binding(kind).unwrap());
    let mut alive = Vec::new();
    for frame in 0..8 {
        let ticket = fixture.clock.begin_frame(fixture.timeline, frame % FRAMES);
        heap.collect(&fixture.clock).unwrap();
        let at = u64::from(frame);
        fixture.put(at, 100 + frame);
        let range = fill(&fixture, &heap, at, at + 1);
        assert_eq!(unsafe { heap.flush(frame) }, 0);
        let kernel = move |kernel: &mut Kernel<'_>| {
            let value = kernel.buffer(0, uniforms, word(kernel, 0)).read_u32(0);
            kernel.buffer(0, buffers, word(kernel, 0) + 1).write_u32(0, value + 1);
        };
        dispatch(&fixture, heap.mappings(0).chain(samplers.mappings(1)), kernel, |commands| {
            let place = HeapPlace { bind_point: POINT, layout: vk::PipelineLayout::null(), first_set: 0 };
            unsafe { BindlessHeap::cmd_bind(commands, frame, &[place], &[&heap, &samplers]) };
            unsafe { device.cmd_push_data(commands, 0, &range.first().to_le_bytes()) };
        });
        assert_eq!(fixture.get(at + 1), 101 + frame, "frame {frame}");
        alive.push(range);
        if alive.len() > 2 {
            unsafe { heap.retire(ticket, alive.remove(0)) }.unwrap();
        }
        unsafe { heap.retire_outgrown(ticket) };
        fixture.clock.end_frame(ticket).unwrap();
    }
    assert!(heap.statistics().growths >= 2);

    // This model rejects set layouts, and needs the extension to be enabled.
    let create_info = vk::DescriptorSetLayoutCreateInfo::default();
    let handle = unsafe { fixture.gpu.device().create_descriptor_set_layout(&create_info, None) }.unwrap();
    let layout = unsafe { SetLayout::new(handle, &create_info) }.unwrap();
    // SAFETY: the call is rejected, so the pipeline layout is never used.
    let refused = unsafe { PipelineLayoutInfo::new(&device, vk::PipelineLayout::null(), &[layout], &[]) };
    assert_eq!(refused.unwrap_err(), PipelineLayoutError::WrongModel { set: 0, model: BindingModel::Heap });
    unsafe { fixture.gpu.device().destroy_descriptor_set_layout(handle, None) };
    let lacking = DescriptorDeviceCreateInfo {
        features: asked.features - DescriptorFeatures::DESCRIPTOR_HEAP,
        ..asked
    };
    let refused = unsafe { DescriptorDevice::new(&lacking) };
    assert!(matches!(refused, Err(sublet_descriptors::CreateDescriptorDeviceError::NoDescriptorHeap)));
}

/// Resources and samplers, at two bind points.
#[test]
fn several_heaps_are_bound_with_one_call_for_each_place() {
    for without in [DescriptorFeatures::empty(), DescriptorFeatures::DESCRIPTOR_BUFFER] {
        let fixture =
            Fixture::with(Gpu::new(Profile::by_name("nvidia-h200").unwrap()), |features| features - without);
        let defaults = [fixture.uniform(14), fixture.storage(15)];
        let resources = bindless(&fixture, &info(&defaults));
        let defaults = [fixture.sampler(0)];
        let of_samplers = BindlessHeapCreateInfo::new(HeapKind::Sampler);
        let samplers = bindless(&fixture, &BindlessHeapCreateInfo { defaults: &defaults, ..of_samplers });
        let layouts = [resources.layout(), samplers.layout()];
        let shader = Shader::of_heaps(&fixture, &layouts, resources.pipeline_flags());
        let range = fill(&fixture, &resources, 0, 1);
        unsafe { resources.flush(0) };
        fixture.put(0, 7);
        let call = match resources.kind() {
            BindlessKind::Buffer => "vkCmdSetDescriptorBufferOffsetsEXT",
            _ => "vkCmdBindDescriptorSets",
        };
        let before = fixture.gpu.calls(call);
        let [uniforms, buffers] = [DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer]
            .map(|kind| resources.binding(kind).unwrap());
        shader.run([range.first(), uniforms, range.first() + 1, buffers], |commands, layout| {
            let points = [POINT, vk::PipelineBindPoint::GRAPHICS];
            let places = points.map(|bind_point| HeapPlace { bind_point, layout, first_set: 0 });
            unsafe { BindlessHeap::cmd_bind(commands, 0, &places, &[&resources, &samplers]) };
        });
        assert_eq!(fixture.gpu.calls(call) - before, 2);
        assert_eq!(fixture.get(1), 8);
    }
}

#[test]
fn what_one_kind_needs_is_asked_for_on_every_device() {
    for name in ["nvidia-h200", "lavapipe"] {
        let fixture = Fixture::new(name);
        let defaults = [fixture.uniform(0)];
        let made = unsafe { BindlessHeap::create(&fixture.device, &fixture.allocator, &info(&defaults)) };
        assert_eq!(
            made.err(),
            Some(CreateHeapError::NoDefault { kind: DescriptorKind::StorageBuffer }),
            "{name}"
        );
        let defaults = [fixture.uniform(0), fixture.storage(0)];
        let none = BindlessHeapCreateInfo { frames: 0, ..info(&defaults) };
        let made = unsafe { BindlessHeap::create(&fixture.device, &fixture.allocator, &none) };
        assert_eq!(made.err(), Some(CreateHeapError::Copies { copies: 0 }), "{name}");
    }
}

/// A resource may be destroyed once the frame that dropped its range is done, also if the heap has copies of a set.
#[test]
fn an_owned_range_ends_with_the_frame_that_it_is_dropped_in() {
    for name in ["nvidia-h200", "lavapipe"] {
        let fixture = Fixture::new(name);
        let defaults = [fixture.uniform(14), fixture.storage(15)];
        let heap = bindless(&fixture, &info(&defaults));
        let owner: &BindlessHeap<_> = &heap;
        let range = OwnedRange::new(owner, 12).unwrap();
        let ticket = fixture.clock.begin_frame(fixture.timeline, 0);
        drop(range);
        assert!(heap.allocate(1).is_err(), "nobody has promised yet that no recording uses it");
        assert_eq!(unsafe { heap.retire_dropped(ticket) }, 1);
        assert!(heap.allocate(1).is_err(), "{name}: the frame is not done");
        fixture.clock.end_frame(ticket).unwrap();
        fixture.clock.idle();
        assert_eq!(heap.collect(&fixture.clock), Ok(12));
        assert!(heap.allocate(12).is_ok());
    }
}
