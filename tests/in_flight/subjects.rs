//! The types that hold resources until the device is done with them.

use std::sync::Arc;

use ash::vk;
use sublet::upload::{UploadArena, UploadArenaCreateInfo};
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage, RetiredResources};
use sublet_descriptors::{
    BindPoint, Binder, BinderCreateInfo, DescriptorHeap, DescriptorKind, HeapCreateInfo, HeapKind,
    PersistentSets, PersistentSetsCreateInfo, PipelineLayoutInfo, SetLayout, SetStore, TransientSets,
    TransientSetsCreateInfo,
};

use crate::fixture::{Fixture, Recording};

pub(crate) trait Subject {
    /// Records the use of a resource that nothing else uses until the recording's ticket is done.
    fn record(&mut self, fixture: &Fixture, recording: &mut Recording);

    /// Returns the number of released resources.
    fn collect(&mut self, fixture: &Fixture) -> usize;

    /// Returns true if a resource waits for a ticket, or `None` if the type does not report it.
    fn waits(&self) -> Option<bool>;

    /// The device must be idle or lost.
    fn destroy(self: Box<Self>, fixture: &Fixture);
}

type Pipeline = (vk::PipelineLayout, vk::Pipeline);

fn bind(fixture: &Fixture, recording: &mut Recording, pipeline: Pipeline, set: vk::DescriptorSet) {
    let point = vk::PipelineBindPoint::COMPUTE;
    unsafe {
        fixture.vulkan().cmd_bind_descriptor_sets(recording.commands, point, pipeline.0, 0, &[set], &[])
    };
    fixture.look(recording, pipeline, [0, 0]);
}

impl Subject for RetiredResources {
    fn record(&mut self, fixture: &Fixture, recording: &mut Recording) {
        let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
        let wish = AllocationCreateInfo::new(MemoryUsage::Auto);
        let (buffer, memory) = unsafe { fixture.allocator.create_buffer(&info, &wish) }.unwrap();
        unsafe { fixture.vulkan().cmd_fill_buffer(recording.commands, buffer, 0, 4096, 7) };
        unsafe { self.retire_buffer(recording.ticket, buffer, memory) };
    }

    fn collect(&mut self, fixture: &Fixture) -> usize {
        RetiredResources::collect(self, &fixture.allocator, &fixture.clock).unwrap()
    }

    fn waits(&self) -> Option<bool> {
        Some(!self.is_empty())
    }

    fn destroy(self: Box<Self>, fixture: &Fixture) {
        unsafe { self.drain(&fixture.allocator) }.unwrap();
    }
}

pub(crate) fn resources(_: &Fixture) -> Box<dyn Subject> {
    Box::new(RetiredResources::new())
}

/// Pools of two sets, and three sets for each recording.
struct Transient {
    sets: TransientSets,
    layout: SetLayout,
    pipeline: Pipeline,
}

impl Subject for Transient {
    fn record(&mut self, fixture: &Fixture, recording: &mut Recording) {
        for _ in 0..3 {
            let set = unsafe { self.sets.allocate(&self.layout) }.unwrap();
            fixture.write(set, recording.number);
            bind(fixture, recording, self.pipeline, set);
        }
        self.sets.flush(recording.ticket).unwrap();
    }

    fn collect(&mut self, fixture: &Fixture) -> usize {
        self.sets.collect(&fixture.clock).unwrap()
    }

    fn waits(&self) -> Option<bool> {
        Some(self.sets.statistics().live_sets > 0)
    }

    fn destroy(self: Box<Self>, _: &Fixture) {
        unsafe { self.sets.destroy() };
    }
}

pub(crate) fn transient_sets(fixture: &Fixture) -> Box<dyn Subject> {
    let layout = fixture.set_layout();
    let pipeline = fixture.pipeline(layout.handle());
    let size = vk::DescriptorPoolSize { ty: vk::DescriptorType::STORAGE_BUFFER, descriptor_count: 2 };
    let flags = vk::DescriptorPoolCreateFlags::empty();
    let info = TransientSetsCreateInfo::from_sizes(2, &[size], flags).unwrap();
    Box::new(Transient { sets: TransientSets::new(&fixture.device, &info).unwrap(), layout, pipeline })
}

struct Persistent {
    sets: PersistentSets,
    layout: SetLayout,
    pipeline: Pipeline,
}

impl Subject for Persistent {
    fn record(&mut self, fixture: &Fixture, recording: &mut Recording) {
        for _ in 0..3 {
            let set = unsafe { self.sets.allocate(&self.layout) }.unwrap();
            fixture.write(set.handle(), recording.number);
            bind(fixture, recording, self.pipeline, set.handle());
            unsafe { self.sets.retire(recording.ticket, set) }.unwrap();
        }
        self.sets.validate();
    }

    fn collect(&mut self, fixture: &Fixture) -> usize {
        let count = self.sets.collect(&fixture.clock).unwrap();
        self.sets.validate();
        count
    }

    fn waits(&self) -> Option<bool> {
        Some(self.sets.statistics().retired_sets > 0)
    }

    fn destroy(self: Box<Self>, _: &Fixture) {
        // SAFETY: the device is idle.
        assert_eq!(unsafe { self.sets.destroy() }, []);
    }
}

pub(crate) fn persistent_sets(fixture: &Fixture) -> Box<dyn Subject> {
    let layout = fixture.set_layout();
    let pipeline = fixture.pipeline(layout.handle());
    let info = PersistentSetsCreateInfo {
        first_sets: 4,
        max_sets: 4,
        ..PersistentSetsCreateInfo::new(&fixture.device)
    };
    Box::new(Persistent { sets: PersistentSets::new(&info), layout, pipeline })
}

/// Slots for 16 recordings, so that a leaked range would soon be noticed.
struct Heap {
    heap: DescriptorHeap<SetStore>,
    binding: u32,
    pipeline: Pipeline,
}

impl Subject for Heap {
    fn record(&mut self, fixture: &Fixture, recording: &mut Recording) {
        let range = self.heap.allocate(3).unwrap();
        let frame = self.heap.allocate_transient(recording.ticket, 1).unwrap();
        let store = self.heap.store();
        let point = vk::PipelineBindPoint::COMPUTE;
        unsafe { store.cmd_bind(recording.commands, point, self.pipeline.0, 0) };
        for (range, slot) in [(range.id(), 0), (range.id(), 1), (range.id(), 2), (frame, 0)] {
            unsafe { self.heap.write(range, slot, &fixture.descriptor(recording.number)) }.unwrap();
            fixture.look(recording, self.pipeline, [self.binding, range.index(slot).unwrap()]);
        }
        // SAFETY: no later recording uses it.
        unsafe { self.heap.retire(recording.ticket, range) }.unwrap();
    }

    fn collect(&mut self, fixture: &Fixture) -> usize {
        self.heap.collect(&fixture.clock).unwrap()
    }

    fn waits(&self) -> Option<bool> {
        Some(self.heap.statistics().free < self.heap.statistics().capacity)
    }

    fn destroy(self: Box<Self>, _: &Fixture) {
        unsafe { self.heap.into_store().destroy() };
    }
}

pub(crate) fn heap_slots(fixture: &Fixture) -> Box<dyn Subject> {
    let info = HeapCreateInfo { slots: 64, transient: 16, ..HeapCreateInfo::new(HeapKind::Resource) };
    let store = SetStore::new(&fixture.device, &info).unwrap();
    let binding = store.binding(DescriptorKind::StorageBuffer).unwrap();
    let pipeline = fixture.pipeline(store.layout());
    Box::new(Heap { heap: DescriptorHeap::new(store), binding, pipeline })
}

/// Returns a kilobyte that starts with the recording's number.
fn bytes(recording: &Recording) -> Vec<u8> {
    let mut bytes = vec![0xAB; 1024];
    bytes[..4].copy_from_slice(&recording.number.to_ne_bytes());
    bytes
}

impl Subject for UploadArena<Arc<Allocator>> {
    fn record(&mut self, fixture: &Fixture, recording: &mut Recording) {
        for _ in 0..3 {
            let upload = self.write(&bytes(recording), 4).unwrap();
            fixture.copy(recording, &upload);
        }
        self.flush(recording.ticket).unwrap();
        self.validate();
    }

    fn collect(&mut self, fixture: &Fixture) -> usize {
        let count = UploadArena::collect(self, &fixture.clock).unwrap();
        self.validate();
        count
    }

    fn waits(&self) -> Option<bool> {
        Some(self.statistics().pages_in_flight > 0)
    }

    fn destroy(self: Box<Self>, _: &Fixture) {
        unsafe { UploadArena::destroy(*self) };
    }
}

/// Space for 16 pages, so that a leaked page would soon be noticed.
pub(crate) fn arena_pages(fixture: &Fixture) -> Box<dyn Subject> {
    let info = UploadArenaCreateInfo {
        page_size: 2048,
        memory_limit: Some(16 * 2048),
        idle_collects: None,
        ..Default::default()
    };
    Box::new(unsafe { UploadArena::new(Arc::clone(&fixture.allocator), &info) }.unwrap())
}

struct Bound {
    binder: Binder<Arc<Allocator>>,
    layout: PipelineLayoutInfo,
    pipeline: Pipeline,
}

impl Subject for Bound {
    fn record(&mut self, fixture: &Fixture, recording: &mut Recording) {
        for _ in 0..3 {
            let descriptor = fixture.descriptor(recording.number);
            self.binder.stage(BindPoint::Compute, 0, 0, 0, &[descriptor]).unwrap();
            unsafe { self.binder.commit(recording.commands, BindPoint::Compute) }.unwrap();
            fixture.look(recording, self.pipeline, [0, 0]);
        }
        self.binder.flush(recording.ticket).unwrap();
        self.binder.validate();
    }

    fn collect(&mut self, fixture: &Fixture) -> usize {
        let count = self.binder.collect(&fixture.clock).unwrap();
        self.binder.validate();
        count
    }

    fn waits(&self) -> Option<bool> {
        None
    }

    fn destroy(self: Box<Self>, _: &Fixture) {
        unsafe { self.binder.destroy() };
        drop(self.layout);
    }
}

/// Creates a binder for the fixture's model: sets or descriptor buffers.
pub(crate) fn binder(fixture: &Fixture) -> Box<dyn Subject> {
    let sets = [fixture.set_layout()];
    let pipeline = fixture.pipeline(sets[0].handle());
    let layout =
        unsafe { PipelineLayoutInfo::new(&fixture.device, pipeline.0, &sets, &[Fixture::RANGE]) }.unwrap();
    let info = BinderCreateInfo { page_size: 256, ..BinderCreateInfo::default() };
    let mut binder = unsafe { Binder::new(&fixture.device, Arc::clone(&fixture.allocator), &info) }.unwrap();
    binder.set_layout(BindPoint::Compute, &layout).unwrap();
    Box::new(Bound { binder, layout, pipeline })
}
