//! Growing heaps: slot numbers do not change, frames in flight keep the heap that they bound, and a failed growth
//! leaves the heap unchanged.

use ash::vk;
use sublet::retire::{Clock, OtherClock};
use sublet::sim::{self, DescriptorHeapLimits, Gpu, Kernel, Profile};
use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};
use sublet_descriptors::{
    BindlessHeap, BindlessHeapCreateInfo, BindlessKind, BufferStore, ClassicStore, CreateHeapError,
    DescriptorFeatures, DescriptorHeap, DescriptorKind, HeapArrays, HeapCreateInfo, HeapError, HeapGrowth,
    HeapKind, HeapPlace, HeapStore, HeapWriteError, NativeStore, SetStore,
};

use crate::common::{Bindless, Fixture, Held, hold};
use crate::native::{dispatch, fixture as native_rig, word};
use crate::shader::{POINT, Shader, TYPES, fill};

const NVIDIA: &str = "nvidia-h200";
const STORAGE: &[DescriptorKind] = &[DescriptorKind::StorageBuffer];

fn growing(types: &'static [DescriptorKind]) -> HeapCreateInfo<'static> {
    let arrays = HeapArrays::One;
    HeapCreateInfo { slots: 4, max_slots: 32, types, arrays, ..HeapCreateInfo::new(HeapKind::Resource) }
}

/// One array for each type, so that growth changes the layout.
fn changing() -> HeapCreateInfo<'static> {
    HeapCreateInfo { arrays: HeapArrays::PerType, growth: HeapGrowth::ChangeLayout, ..growing(TYPES) }
}

fn classic(fixture: &Fixture, info: &HeapCreateInfo<'_>) -> Held<DescriptorHeap<ClassicStore>> {
    let store =
        unsafe { ClassicStore::new(&fixture.device, info, 2, &[fixture.uniform(15), fixture.storage(15)]) };
    hold(DescriptorHeap::new(store.unwrap()))
}

/// Returns the number of live objects that back stores.
fn parts(fixture: &Fixture) -> u64 {
    let live = fixture.gpu.live();
    live.buffers + live.descriptor_pools
}

/// A frame with the smaller heap is in flight while the larger one is created, written and bound.
fn frames_in_flight<S: HeapStore>(
    fixture: &Fixture,
    heap: &DescriptorHeap<S>,
    layout: impl Fn(&S) -> (vk::DescriptorSetLayout, vk::PipelineCreateFlags),
    (buffers, stays): (u32, bool),
    bind: impl Fn(&S, vk::CommandBuffer, vk::PipelineLayout),
) {
    let (set_layout, flags) = layout(heap.store());
    let shader = Shader::new(fixture, set_layout, flags);
    let words = |first: u32| [first, 0, first + 1, buffers];
    for (at, value) in [(0, 7), (1, 0), (2, 20), (3, 0), (4, 40), (5, 0)] {
        fixture.put(at, value);
    }
    let (first, second) = (fill(fixture, heap, 0, 1), fill(fixture, heap, 2, 3));
    assert_eq!((heap.statistics().free, heap.statistics().max_capacity), (0, 32));
    fixture.gpu.hold_submissions(true);
    let frame = fixture.clock.open(fixture.timeline);
    shader.run(words(first.first()), |commands, layout| bind(heap.store(), commands, layout));
    fixture.clock.submit(frame, 1).unwrap();

    let third = fill(fixture, heap, 4, 5);
    let statistics = heap.statistics();
    assert_eq!((statistics.capacity, statistics.growths, statistics.live), (8, 1, 6));
    assert_eq!((first.first(), second.first(), third.first()), (0, 2, 4), "each has its number");
    assert_eq!(heap.check(first.id()), Ok(()));
    assert_eq!(layout(heap.store()).0 == set_layout, stays, "whether pipelines stay");
    let another = (!stays).then(|| Shader::new(fixture, layout(heap.store()).0, flags));
    let shader = another.as_ref().unwrap_or(&shader);
    let (both, next) = (parts(fixture), fixture.clock.open(fixture.timeline));
    for range in [&second, &third] {
        shader.run(words(range.first()), |commands, layout| bind(heap.store(), commands, layout));
    }
    fixture.clock.submit(next, 2).unwrap();
    assert_eq!(unsafe { heap.retire_outgrown(frame) }, 1);
    assert_eq!((heap.collect(&fixture.clock), parts(fixture)), (Ok(0), both), "the frame is in flight");
    unsafe { fixture.gpu.device().queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    assert_eq!([1, 3, 5].map(|at| fixture.get(at)), [8, 21, 41]);
    fixture.clock.completed(fixture.timeline, 1);
    assert_eq!(heap.collect(&fixture.clock), Ok(0));
    assert!(parts(fixture) == both - 1, "the smaller one is gone");
    assert_eq!(unsafe { heap.retire_outgrown(next) }, 0);
    fixture.gpu.hold_submissions(false);
    fixture.gpu.assert_silent();
}

#[test]
fn a_set_grows_while_frames_are_in_flight() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.set_heap(&growing(TYPES));
    let before = heap.store().set();
    let layout = |store: &SetStore| (store.layout(), vk::PipelineCreateFlags::empty());
    frames_in_flight(&fixture, &heap, layout, (0, true), |store, commands, layout| {
        unsafe { store.cmd_bind(commands, POINT, layout, 0) };
    });
    assert_ne!(heap.store().set(), before);
    assert_eq!(fixture.device.update_after_bind_used(), 8, "what is outgrown is given back");
}

#[test]
fn a_descriptor_buffer_grows_while_frames_are_in_flight() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.buffer_heap(&growing(TYPES));
    let kind = DescriptorKind::StorageBuffer;
    let before = heap.store().address_of(kind, 3);
    assert_eq!(heap.store().address_of(kind, 4), None);
    let layout = |store: &BufferStore<_>| (store.layout(), vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT);
    frames_in_flight(&fixture, &heap, layout, (0, true), |store, commands, layout| {
        unsafe { BufferStore::cmd_bind_all(commands, &[store]) };
        unsafe { store.cmd_set_offset(commands, POINT, layout, 0, 0) };
    });
    assert_ne!(heap.store().address_of(kind, 3), before);
    assert!(heap.store().address_of(kind, 7).is_some());
}

#[test]
fn heaps_with_several_arrays_grow_if_the_layout_may_change() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.set_heap(&changing());
    let layout = |store: &SetStore| (store.layout(), vk::PipelineCreateFlags::empty());
    frames_in_flight(&fixture, &heap, layout, (1, false), |store, commands, layout| {
        unsafe { store.cmd_bind(commands, POINT, layout, 0) };
    });
    assert_eq!(fixture.device.update_after_bind_used(), 2 * 8);
    drop((heap, fixture));
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.buffer_heap(&changing());
    let layout = |store: &BufferStore<_>| (store.layout(), vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT);
    frames_in_flight(&fixture, &heap, layout, (1, false), |store, commands, layout| {
        unsafe { BufferStore::cmd_bind_all(commands, &[store]) };
        unsafe { store.cmd_set_offset(commands, POINT, layout, 0, 0) };
    });
    for kind in TYPES {
        assert!(heap.store().address_of(*kind, 7).is_some() && heap.store().address_of(*kind, 8).is_none());
    }
}

#[test]
fn a_set_for_each_frame_grows_if_the_layout_may_change() {
    let fixture = Fixture::new(NVIDIA);
    let heap = classic(&fixture, &changing());
    let frame = std::cell::Cell::new(0);
    let layout = |store: &ClassicStore| (store.layout(), vk::PipelineCreateFlags::empty());
    frames_in_flight(&fixture, &heap, layout, (1, false), |store, commands, layout| {
        let now = frame.replace(frame.get() + 1);
        let written = unsafe { store.update(now) };
        assert_eq!(written, 2 * store.slots(), "nothing of the larger sets was written before");
        unsafe { store.cmd_bind(now, commands, POINT, layout, 0) };
    });
    assert_eq!(heap.store().copies(), 2);
}

/// One program for every kind, which checks the layout after each allocation.
#[test]
fn a_bindless_heap_with_several_arrays_grows_on_every_device() {
    let without = [
        DescriptorFeatures::empty(),
        DescriptorFeatures::DESCRIPTOR_BUFFER,
        DescriptorFeatures::DESCRIPTOR_BUFFER | DescriptorFeatures::UPDATE_AFTER_BIND,
    ];
    let kinds = [BindlessKind::Buffer, BindlessKind::Set, BindlessKind::Classic];
    for (without, kind) in without.into_iter().zip(kinds) {
        let fixture =
            Fixture::with(Gpu::new(Profile::by_name(NVIDIA).unwrap()), |features| features - without);
        let defaults = [fixture.uniform(14), fixture.storage(15)];
        let info = BindlessHeapCreateInfo { heap: changing(), frames: 2, defaults: &defaults };
        let made = unsafe { BindlessHeap::create(&fixture.device, &fixture.allocator, &info) };
        let heap = hold(Bindless(made.unwrap()));
        assert_eq!((heap.kind(), heap.statistics().capacity), (kind, 4));
        let mut shader = Shader::new(&fixture, heap.layout(), heap.pipeline_flags());
        let (mut made_for, mut shaders) = (heap.layout(), 1);
        for frame in 0..7 {
            let ticket = fixture.clock.begin_frame(fixture.timeline, frame % 2);
            heap.collect(&fixture.clock).unwrap();
            let at = u64::from(frame);
            fixture.put(at, 100 + frame);
            let range = fill(&fixture, &heap, at, at + 1);
            unsafe { heap.flush(frame) };
            if heap.layout() != made_for {
                shader = Shader::new(&fixture, heap.layout(), heap.pipeline_flags());
                (made_for, shaders) = (heap.layout(), shaders + 1);
            }
            shader.run([range.first(), 0, range.first() + 1, 1], |commands, layout| {
                let place = HeapPlace { bind_point: POINT, layout, first_set: 0 };
                unsafe { BindlessHeap::cmd_bind(commands, frame, &[place], &[&heap]) };
            });
            assert_eq!(fixture.get(at + 1), 101 + frame, "{kind:?}, frame {frame}");
            unsafe { heap.retire_outgrown(ticket) };
            fixture.clock.end_frame(ticket).unwrap();
        }
        assert_eq!((heap.statistics().capacity, heap.statistics().growths, shaders), (16, 2, 3));
    }
}

#[test]
fn a_native_heap_grows_and_its_mappings_stay() {
    for limits in [DescriptorHeapLimits::MESA_ANV, DescriptorHeapLimits::NVIDIA] {
        let fixture = native_rig(limits);
        let info = growing(TYPES);
        let heap =
            hold(DescriptorHeap::new(NativeStore::new(&fixture.device, &fixture.allocator, &info).unwrap()));
        let (first, second) = (fill(&fixture, &heap, 0, 1), fill(&fixture, &heap, 2, 3));
        let mappings: Vec<_> = heap.store().mappings(0).map(|it| format!("{it:?}")).collect();
        let (before, reserved) = (heap.store().bind_info().heap_range, heap.store().reserved());
        let third = fill(&fixture, &heap, 4, 5);
        assert_eq!((first.first(), second.first(), third.first()), (0, 2, 4));
        let after = heap.store().bind_info();
        assert_ne!(after.heap_range.address, before.address);
        assert_eq!(after.reserved_range_offset, 2 * reserved.start);
        assert_eq!(heap.store().mappings(0).map(|it| format!("{it:?}")).collect::<Vec<_>>(), mappings);
        let [uniforms, buffers] = [DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer]
            .map(|it| heap.store().binding(it).unwrap());
        for (at, range) in [(0, &first), (2, &second), (4, &third)] {
            fixture.put(at, 7);
            let kernel = move |kernel: &mut Kernel<'_>| {
                let value = kernel.buffer(0, uniforms, word(kernel, 0)).read_u32(0);
                kernel.buffer(0, buffers, word(kernel, 1)).write_u32(0, value + 1);
            };
            dispatch(&fixture, heap.store().mappings(0), kernel, |commands| {
                let words = [range.first(), range.first() + 1];
                let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                unsafe { heap.store().cmd_bind(commands) };
                unsafe { fixture.device.cmd_push_data(commands, 0, &data) };
            });
            assert_eq!(fixture.get(at + 1), 8);
        }
        let live = parts(&fixture);
        assert_eq!(unsafe { heap.retire_outgrown(fixture.done()) }, 1);
        assert_eq!((heap.collect(&fixture.clock), parts(&fixture) == live - 1), (Ok(0), true));
    }
}

/// Each call is the first to fail in turn.
fn a_failed_growth<S: HeapStore>(fixture: &Fixture, heap: &DescriptorHeap<S>, calls: &[&str]) {
    let all = heap.allocate(4).unwrap();
    for call in calls {
        let (live, statistics) = (fixture.gpu.live(), heap.statistics());
        let used = fixture.device.update_after_bind_used();
        fixture.gpu.faults().fail_nth(call, 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let Err(HeapError::NotGrown { asked: 3, source }) = heap.allocate(3) else {
            panic!("{call} did not fail");
        };
        assert!(source.to_string().contains(call), "{source}");
        assert_eq!((fixture.gpu.live(), heap.statistics()), (live, statistics), "{call}");
        assert_eq!(fixture.device.update_after_bind_used(), used);
        assert_eq!(unsafe { heap.retire_outgrown(fixture.done()) }, 0);
    }
    assert_eq!(heap.allocate(3).unwrap().first(), 4);
    unsafe { heap.free(all) }.unwrap();
}

#[test]
fn a_growth_that_fails_leaves_the_heap_as_it_was() {
    const SETS: [&str; 2] = ["vkCreateDescriptorPool", "vkAllocateDescriptorSets"];
    const BUFFERS: [&str; 2] = ["vkCreateBuffer", "vkBindBufferMemory"];
    const LAYOUT: &str = "vkCreateDescriptorSetLayout";
    let fixture = Fixture::new(NVIDIA);
    a_failed_growth(&fixture, &fixture.set_heap(&growing(TYPES)), &SETS);
    a_failed_growth(&fixture, &fixture.buffer_heap(&growing(TYPES)), &BUFFERS);
    a_failed_growth(&fixture, &fixture.set_heap(&changing()), &[LAYOUT, SETS[0], SETS[1]]);
    a_failed_growth(&fixture, &fixture.buffer_heap(&changing()), &[LAYOUT, BUFFERS[0], BUFFERS[1]]);
    a_failed_growth(&fixture, &classic(&fixture, &changing()), &[LAYOUT, SETS[0], SETS[1]]);
    drop(fixture);
    let fixture = native_rig(DescriptorHeapLimits::NVIDIA);
    let info = growing(TYPES);
    let heap =
        hold(DescriptorHeap::new(NativeStore::new(&fixture.device, &fixture.allocator, &info).unwrap()));
    a_failed_growth(&fixture, &heap, &BUFFERS);
}

/// If no block has enough space, the growth allocates no driver memory.
fn a_growth_without_memory<S: HeapStore>(fixture: &Fixture, heap: &DescriptorHeap<S>) {
    let (all, asked) = (heap.allocate(4).unwrap(), 1 << 18);
    // Fills the free space of the blocks.
    let requirements = vk::MemoryRequirements { size: 1 << 20, alignment: 1, memory_type_bits: !0 };
    let info = AllocationCreateInfo {
        flags: AllocationCreateFlags::NEVER_ALLOCATE,
        required_flags: vk::MemoryPropertyFlags::HOST_COHERENT,
        ..AllocationCreateInfo::new(MemoryUsage::Unknown)
    };
    let fill = || fixture.allocator.allocate_memory(&requirements, &info).ok();
    let filled: Vec<_> = std::iter::from_fn(fill).collect();
    let (live, statistics) = (fixture.gpu.live(), heap.statistics());
    fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let Err(HeapError::NotGrown { asked: found, source }) = heap.allocate(asked) else {
        panic!("there is no memory for so many slots");
    };
    assert!(found == asked && matches!(*source, CreateHeapError::Buffer(_)), "{source}");
    assert!(source.to_string().contains("vkAllocateMemory"), "{source}");
    assert_eq!((fixture.gpu.live(), heap.statistics()), (live, statistics));
    assert_eq!(heap.check(all.id()), Ok(()));
    fixture.gpu.faults().clear();
    assert_eq!(heap.allocate(asked).unwrap().first(), 4, "with memory it grows");
    for memory in filled {
        unsafe { fixture.allocator.free_memory(memory) }.unwrap();
    }
}

#[test]
fn a_growth_that_gets_no_memory_leaves_the_heap_as_it_was() {
    let info = HeapCreateInfo { max_slots: 1 << 19, ..growing(STORAGE) };
    let fixture = Fixture::new(NVIDIA);
    a_growth_without_memory(&fixture, &fixture.buffer_heap(&info));
    a_growth_without_memory(
        &fixture,
        &fixture.buffer_heap(&HeapCreateInfo { max_slots: 1 << 19, ..changing() }),
    );
    drop(fixture);
    let fixture = native_rig(DescriptorHeapLimits::MESA_ANV);
    let store = NativeStore::new(&fixture.device, &fixture.allocator, &info).unwrap();
    a_growth_without_memory(&fixture, &hold(DescriptorHeap::new(store)));
}

/// A program may grow the store itself. The store keeps the slots that the heap allocated.
fn a_store_that_is_asked<S: HeapStore>(heap: &DescriptorHeap<S>) {
    let (_first, _second) = (heap.allocate(4).unwrap(), heap.allocate(1).unwrap());
    let store = heap.store();
    assert_eq!((store.slots(), store.grow(1), store.grow(8), store.slots()), (8, Ok(()), Ok(()), 8));
    assert_eq!((store.grow(33), store.slots()), (Err(CreateHeapError::Fixed { slots: 33 }), 8));
    assert_eq!((store.grow(32), store.slots(), heap.statistics().capacity), (Ok(()), 32, 8));
    // The heap adopts the larger size.
    assert_eq!(heap.allocate(4).unwrap().first(), 5);
    assert_eq!((heap.statistics().capacity, heap.statistics().growths, store.slots()), (16, 2, 32));
}

#[test]
fn a_store_never_has_fewer_slots_than_before() {
    let fixture = Fixture::new(NVIDIA);
    a_store_that_is_asked(&fixture.set_heap(&growing(STORAGE)));
    a_store_that_is_asked(&fixture.buffer_heap(&growing(STORAGE)));
    a_store_that_is_asked(&fixture.set_heap(&changing()));
    a_store_that_is_asked(&classic(&fixture, &changing()));
    drop(fixture);
    let fixture = native_rig(DescriptorHeapLimits::MESA_ANV);
    let store = NativeStore::new(&fixture.device, &fixture.allocator, &growing(STORAGE)).unwrap();
    a_store_that_is_asked(&hold(DescriptorHeap::new(store)));
}

#[test]
fn what_is_outgrown_with_the_ticket_of_another_clock_is_told_with_the_slots_that_were_freed() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.set_heap(&growing(STORAGE));
    let (all, _more) = (heap.allocate(4).unwrap(), heap.allocate(1).unwrap());
    let other = Clock::new();
    let ticket = other.open(other.add_timeline().unwrap());
    assert_eq!(unsafe { heap.retire_outgrown(ticket) }, 1);
    unsafe { heap.retire(fixture.done(), all) }.unwrap();
    assert_eq!(heap.collect(&fixture.clock), Err(OtherClock { ticket, tickets: 1, collected: 4 }));
    assert_eq!(heap.statistics().live, 1);
    other.discard(ticket).unwrap();
    assert_eq!(heap.collect(&other), Ok(0));
}

#[test]
fn a_heap_grows_to_its_maximum_and_no_further() {
    let fixture = Fixture::new(NVIDIA);
    let info = HeapCreateInfo { max_slots: 20, transient: 1, ..growing(STORAGE) };
    let heap = fixture.set_heap(&info);
    let capacity = || heap.statistics().capacity;
    let frame = heap.allocate_transient(fixture.done(), 1).unwrap();
    assert_eq!((capacity(), frame.first()), (4, 3), "the frames' part stays where it is");
    let a = heap.allocate(3).unwrap();
    let b = heap.allocate(1).unwrap();
    assert_eq!((capacity(), a.first(), b.first()), (8, 0, 4));
    // More than double the capacity is needed, so the heap grows as far as needed. The last step is limited by
    // `max_slots`.
    let c = heap.allocate(9).unwrap();
    assert_eq!((capacity(), c.first()), (20, 5));
    let d = heap.allocate(6).unwrap();
    let full = HeapError::Full { asked: 1, free: 0, largest_free: 0, retiring: 1 };
    assert_eq!((heap.allocate(1), d.first()), (Err(full), 14));
    assert_eq!(heap.statistics().growths, 2);
    let mut runs = Vec::new();
    heap.walk(|run| runs.push((run.first, run.count)));
    assert_eq!(runs, [(0, 3), (3, 1), (4, 1), (5, 9), (14, 6)]);
    // A request that exceeds `max_slots` does not grow the heap.
    let other = fixture.set_heap(&info);
    assert!(matches!(other.allocate(20), Err(HeapError::Full { asked: 20, .. })));
    assert_eq!(other.statistics().growths, 0);
}

/// Both pools exist for a while, and both count towards the limit.
#[test]
fn a_growth_counts_for_the_limit_of_all_pools() {
    let profile = Profile::by_name(NVIDIA).unwrap();
    let mut limits = profile.limits.descriptors;
    limits.max_update_after_bind_descriptors_in_all_pools = 11;
    let fixture = Fixture::with(Gpu::builder(profile).descriptor_limits(limits).build(), |features| features);
    let heap = fixture.set_heap(&growing(STORAGE));
    let _all = heap.allocate(4).unwrap();
    let Err(HeapError::NotGrown { source, .. }) = heap.allocate(1) else {
        panic!("4 and 8 are more than 11")
    };
    assert!(matches!(*source, CreateHeapError::Pool(_)), "{source}");
    assert_eq!(fixture.device.update_after_bind_used(), 4);
}

#[test]
fn a_store_that_cannot_keep_its_layout_has_all_slots_from_the_start() {
    let fixture = Fixture::new(NVIDIA);
    let several = HeapCreateInfo { arrays: HeapArrays::PerType, ..growing(TYPES) };
    let slots =
        |statistics: sublet_descriptors::HeapStatistics| (statistics.capacity, statistics.max_capacity);
    assert_eq!(slots(fixture.set_heap(&several).statistics()), (32, 32));
    assert_eq!(slots(fixture.buffer_heap(&several).statistics()), (32, 32));
    drop(fixture);
    let without = DescriptorFeatures::VARIABLE_DESCRIPTOR_COUNT;
    let fixture = Fixture::with(Gpu::new(Profile::by_name(NVIDIA).unwrap()), |features| features - without);
    assert_eq!(slots(fixture.set_heap(&growing(STORAGE)).statistics()), (32, 32));
    drop(fixture);
    let fixture = Fixture::new("lavapipe");
    let (defaults, info) =
        ([fixture.storage(5)], HeapCreateInfo { arrays: HeapArrays::Auto, ..growing(STORAGE) });
    let store = unsafe { ClassicStore::new(&fixture.device, &info, 2, &defaults) }.unwrap();
    let heap = hold(DescriptorHeap::new(store));
    assert_eq!(slots(heap.statistics()), (32, 32));
    let refused = heap.store().grow(64);
    assert_eq!(refused, Err(CreateHeapError::Fixed { slots: 64 }));
}

/// Some threads write while the requests of others grow the heap.
#[test]
fn no_write_is_lost_while_another_thread_makes_the_heap_larger() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.set_heap(&HeapCreateInfo { max_slots: 4_096, ..growing(STORAGE) });
    let ranges: Vec<_> = std::thread::scope(|scope| {
        let threads = [0_u64, 1, 2, 3].map(|thread| {
            let (heap, fixture) = (&heap, &fixture);
            scope.spawn(move || -> Result<Vec<_>, HeapWriteError> {
                let write = |at: u64| {
                    let range = heap.allocate(1 + u32::try_from(at % 3).unwrap()).unwrap();
                    let content = (at + thread) % 16;
                    unsafe { heap.write(range.id(), 0, &fixture.storage(content)) }?;
                    Ok((range, content))
                };
                (0..300).map(write).collect()
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    assert!(heap.statistics().growths >= 9);
    for (range, content) in ranges {
        let found = fixture.gpu.descriptor(heap.store().set(), 0, range.first());
        let Some(sim::SimulatedDescriptor::Buffer { offset, .. }) = found else {
            panic!("{range:?}: {found:?}")
        };
        assert_eq!(offset, 256 * content, "{range:?}");
    }
}
