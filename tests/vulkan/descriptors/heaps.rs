//! Heaps: one array of descriptors, in each store that the device supports.

use ash::vk;
use sublet::retire::Clock;
use sublet_descriptors::{
    BufferStore, ClassicStore, CreateHeapError, Descriptor, DescriptorFeatures, DescriptorHeap,
    DescriptorKind, HeapArrays, HeapCreateInfo, HeapStore, NativeStore, SetStore,
};
use sublet_examples::{Compute, Context};

use super::{Data, NUMBERS, show_to_host, words};
use crate::{Fixture, on_each_device};

const SLOTS: u32 = 6;

/// With an array for each type, storage buffers are at binding 1.
pub(super) const TYPES: &[DescriptorKind] = &[DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer];

/// Like the shader [`super::ADD`], through a heap of arrays. Slot 0 has the task, slot 1 the array to write, and the
/// task holds the index of the array to read.
const ADD_IN_HEAP: &[u8] = include_bytes!("add_in_heap.spv");

/// The same for a simulated device. `arrays` is the binding of storage buffers.
pub(super) fn simulate(context: &Context, arrays: u32) {
    let Some(gpu) = context.gpu() else { return };
    gpu.set_kernel("main", move |kernel| {
        let task = kernel.buffer(0, arrays, 0);
        let [add, source] = [0, 4].map(|offset| task.read_u32(offset));
        let (source, target) = (kernel.buffer(0, arrays, source), kernel.buffer(0, arrays, 1));
        for at in 0..NUMBERS {
            target.write_u32(at * 4, source.read_u32(at * 4) + add);
        }
    });
}

fn info(arrays: HeapArrays) -> HeapCreateInfo<'static> {
    HeapCreateInfo {
        slots: SLOTS,
        types: TYPES,
        arrays,
        stages: vk::ShaderStageFlags::COMPUTE,
        ..Default::default()
    }
}

/// Returns the shader, with storage buffers at this binding.
pub(super) fn shader(arrays: u32) -> Vec<u32> {
    const DECORATE: u32 = 71;
    const BINDING: u32 = 33;
    let mut code = words(ADD_IN_HEAP);
    let mut at = 5;
    while at < code.len() {
        let length = usize::try_from(code[at] >> 16).unwrap();
        if code[at] & 0xffff == DECORATE && code[at + 2] == BINDING && code[at + 3] == 1 {
            code[at + 3] = arrays;
        }
        at += length;
    }
    code
}

fn compute(
    context: &Context,
    arrays: u32,
    layout: vk::DescriptorSetLayout,
    flags: vk::PipelineCreateFlags,
) -> Compute<'_> {
    Compute::new(context, &shader(arrays), &[layout], flags).unwrap()
}

/// Binds a heap for the round of this number.
type Bind<'a, S> = &'a dyn Fn(&DescriptorHeap<S>, u32, vk::CommandBuffer, vk::PipelineLayout);

/// A heap, and the function that binds it.
struct Bound<'a, S> {
    heap: &'a DescriptorHeap<S>,
    /// The binding of storage buffers.
    arrays: u32,
    compute: Compute<'a>,
    bind: Bind<'a, S>,
}

/// In each round, descriptors are written while those of the previous round are not yet collected.
fn rounds<S: HeapStore>(fixture: &Fixture<'_>, data: &mut Data<'_>, bound: &Bound<'_, S>) {
    simulate(fixture.context, bound.arrays);
    let heap = bound.heap;
    let compute = &bound.compute;
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    // The slots with fixed indices in the shader.
    let fixed = heap.allocate(2).unwrap();
    assert_eq!(fixed.first(), 0);
    // SAFETY: the buffer is live, and no shader reads newly allocated slots.
    unsafe { heap.write(fixed.id(), 0, &Descriptor::StorageBuffer(data.task_as_array(0))) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.write(fixed.id(), 1, &Descriptor::StorageBuffer(data.target(0))) }.unwrap();
    let mut last = None;
    for round in 0..9_u32 {
        let range = heap.allocate(2).unwrap();
        let sources = [(round * 3) % 4, (round + 1) % 4];
        for (at, source) in (0..).zip(sources) {
            // SAFETY: as above.
            unsafe { heap.write(range.id(), at, &Descriptor::StorageBuffer(data.source(source))) }.unwrap();
        }
        let second = round % 2;
        data.set_task(0, [round + 1, range.index(second).unwrap(), 0, 0]);
        let ticket = clock.open(timeline);
        let record = |device: &ash::Device, commands: vk::CommandBuffer| {
            // SAFETY: it is a compute pipeline.
            unsafe { device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, compute.pipeline) };
            (bound.bind)(heap, round, commands, compute.layout);
            // SAFETY: everything that the pipeline needs is bound.
            unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
            show_to_host(device, commands);
        };
        fixture.context.submit(record).unwrap();
        clock.submit(ticket, u64::from(round) + 1).unwrap();
        let source = if second == 1 { sources[1] } else { sources[0] };
        data.expect(0, source, round + 1);
        // Ranges are retired one round later, so two are live until the third is allocated.
        if let Some((ticket, range)) = last.replace((ticket, range)) {
            // SAFETY: no later recording uses it.
            unsafe { heap.retire(ticket, range) }.unwrap();
            clock.completed(timeline, u64::from(round));
            assert_eq!(heap.collect(&clock), Ok(2));
        }
    }
    if let Some((ticket, range)) = last {
        // SAFETY: no later recording uses it.
        unsafe { heap.retire(ticket, range) }.unwrap();
    }
    // SAFETY: no later recording uses it.
    unsafe { heap.retire(clock.open(timeline), fixed) }.unwrap();
    clock.shutdown();
    heap.collect(&clock).unwrap();
    assert_eq!(heap.statistics().free, SLOTS);
}

/// One set that is written while it is bound, with one array for each type and with one for all.
#[test]
fn a_heap_on_one_set_shows_shaders_what_was_written() {
    on_each_device(|fixture| {
        let device = fixture.descriptor_device();
        let features = fixture.descriptor_features();
        for arrays in [HeapArrays::PerType, HeapArrays::One] {
            let store = match SetStore::new(&device, &info(arrays)) {
                Ok(store) => store,
                Err(CreateHeapError::Unsupported { missing }) => {
                    assert!(!features.contains(missing), "{missing:?} is there");
                    println!("{}: skipped, no {missing:?}", fixture.context.device_name());
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let mut data = Data::new(fixture, 4);
            let heap = DescriptorHeap::new(store);
            let arrays = heap.store().binding(DescriptorKind::StorageBuffer).unwrap();
            let flags = vk::PipelineCreateFlags::empty();
            let bound = Bound {
                heap: &heap,
                arrays,
                compute: compute(fixture.context, arrays, heap.store().layout(), flags),
                bind: &|heap, _, commands, layout| {
                    // SAFETY: the command buffer is being recorded, and set 0 of the layout is the heap.
                    unsafe { heap.store().cmd_bind(commands, vk::PipelineBindPoint::COMPUTE, layout, 0) };
                },
            };
            rounds(fixture, &mut data, &bound);
            drop(bound);
            // SAFETY: all submissions were waited for.
            unsafe { heap.into_store().destroy() };
            data.destroy();
        }
    });
}

/// A copy of the set for each frame, which every device supports.
#[test]
fn a_heap_on_copies_of_a_set_shows_shaders_what_was_written() {
    on_each_device(|fixture| {
        let device = fixture.descriptor_device();
        let mut data = Data::new(fixture, 4);
        let defaults = [Descriptor::UniformBuffer(data.task(1)), Descriptor::StorageBuffer(data.source(0))];
        // SAFETY: the buffer lives until the store is destroyed.
        let store = unsafe { ClassicStore::new(&device, &info(HeapArrays::PerType), 3, &defaults) }.unwrap();
        let heap = DescriptorHeap::new(store);
        let bound = Bound {
            heap: &heap,
            arrays: 1,
            compute: compute(fixture.context, 1, heap.store().layout(), vk::PipelineCreateFlags::empty()),
            bind: &|heap, frame, commands, layout| {
                // SAFETY: every frame is waited for before the next one.
                unsafe { heap.store().update(frame) };
                let point = vk::PipelineBindPoint::COMPUTE;
                // SAFETY: the copy is up to date, and set 0 of the layout is the heap.
                unsafe { heap.store().cmd_bind(frame, commands, point, layout, 0) };
            },
        };
        rounds(fixture, &mut data, &bound);
        drop(bound);
        // SAFETY: all submissions were waited for.
        unsafe { heap.into_store().destroy() };
        data.destroy();
    });
}

/// A descriptor buffer.
#[test]
fn a_heap_in_a_descriptor_buffer_shows_shaders_what_was_written() {
    on_each_device(|fixture| {
        if !fixture.descriptor_features().contains(DescriptorFeatures::DESCRIPTOR_BUFFER) {
            println!("{}: skipped, no descriptor buffers", fixture.context.device_name());
            return;
        }
        let device = fixture.descriptor_device();
        for arrays in [HeapArrays::PerType, HeapArrays::One] {
            let store = match BufferStore::new(&device, fixture.allocator, &info(arrays)) {
                Ok(store) => store,
                Err(CreateHeapError::Unsupported { missing }) => {
                    println!("{}: skipped, no {missing:?}", fixture.context.device_name());
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let mut data = Data::new(fixture, 4);
            let heap = DescriptorHeap::new(store);
            let arrays = heap.store().binding(DescriptorKind::StorageBuffer).unwrap();
            let flags = vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT;
            let bound = Bound {
                heap: &heap,
                arrays,
                compute: compute(fixture.context, arrays, heap.store().layout(), flags),
                bind: &|heap, _, commands, layout| {
                    // SAFETY: the command buffer is being recorded, and every device allows one buffer.
                    unsafe { BufferStore::cmd_bind_all(commands, &[heap.store()]) };
                    let point = vk::PipelineBindPoint::COMPUTE;
                    // SAFETY: the heap is bound as number 0, and set 0 of the layout is the heap.
                    unsafe { heap.store().cmd_set_offset(commands, point, layout, 0, 0) };
                },
            };
            rounds(fixture, &mut data, &bound);
            drop(bound);
            // SAFETY: all submissions were waited for.
            unsafe { heap.into_store().destroy() };
            data.destroy();
        }
    });
}

/// Vulkan's own heap.
#[test]
fn a_native_heap_shows_shaders_what_was_written() {
    on_each_device(|fixture| {
        if !fixture.descriptor_features().contains(DescriptorFeatures::DESCRIPTOR_HEAP) {
            return;
        }
        let device = fixture.descriptor_device();
        let mut data = Data::new(fixture, 4);
        let heap = DescriptorHeap::new(
            NativeStore::new(&device, fixture.allocator, &info(HeapArrays::PerType)).unwrap(),
        );
        let arrays = heap.store().binding(DescriptorKind::StorageBuffer).unwrap();
        let mappings = heap.store().mappings(0);
        let bound = Bound {
            heap: &heap,
            arrays,
            compute: Compute::with_heaps(fixture.context, &shader(arrays), mappings).unwrap(),
            bind: &|heap, _, commands, _| {
                // SAFETY: the command buffer is being recorded, and is primary.
                unsafe { heap.store().cmd_bind(commands) };
            },
        };
        rounds(fixture, &mut data, &bound);
        drop(bound);
        // SAFETY: all submissions were waited for, and their command buffers are freed.
        unsafe { heap.into_store().destroy() };
        data.destroy();
    });
}
