//! After ten thousand frames of everything together, a frame costs as much as at the start: driver calls, host
//! allocations, live chunks. The test compares counts, because times vary.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "shared/counting.rs"]
mod counting;

use std::collections::VecDeque;

use ash::vk;
use sublet::retire::{Clock, Ticket, TimelineId};
use sublet::sim::{Gpu, Profile};
use sublet::upload::{UploadArena, UploadArenaCreateInfo};
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator,
    AllocatorCreateInfo, MemoryUsage, PoolCreateInfo, RetiredResources, ScopeCreateInfo,
};
use sublet_descriptors::{
    BufferDescriptor, Descriptor, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorHeap,
    DescriptorKind, DescriptorRange, DescriptorSet, HeapCreateInfo, PersistentSets, PersistentSetsCreateInfo,
    SetLayout, SetStore, TransientSets, TransientSetsCreateInfo,
};

const FRAMES_IN_FLIGHT: u32 = 3;
/// Every section makes the same calls.
const SECTION: u32 = 500;
const SECTIONS: u32 = 20;

/// The cost of a section of frames, and the state at its end.
#[derive(PartialEq, Eq, Debug)]
struct Cost {
    driver_calls: Vec<(&'static str, u64)>,
    host_allocations: u64,
    /// Bytes of host memory that it allocated and did not free, including those of the simulated driver.
    host_bytes: i64,
    /// Used and free chunks of all blocks, in the middle of the section and at its end.
    chunks: [u64; 2],
    blocks: [u64; 2],
    sets_and_pools: [u64; 4],
}

struct Program<'a> {
    gpu: &'a Gpu,
    allocator: &'a Allocator,
    clock: Clock,
    timeline: TimelineId,
    retired: RetiredResources,
    arena: UploadArena<&'a Allocator>,
    layouts: [SetLayout; 2],
    transient: TransientSets,
    persistent: PersistentSets,
    heap: DescriptorHeap<SetStore>,
    buffers: VecDeque<(vk::Buffer, Allocation)>,
    images: VecDeque<(vk::Image, Allocation)>,
    sets: VecDeque<DescriptorSet>,
    ranges: VecDeque<DescriptorRange>,
}

fn layout(gpu: &Gpu, count: u32) -> SetLayout {
    let binding = vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
        .descriptor_count(count);
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(std::slice::from_ref(&binding));
    // SAFETY: the create-info is valid.
    let handle = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
    // SAFETY: the layout was created from this create-info.
    unsafe { SetLayout::new(handle, &info) }.unwrap()
}

impl<'a> Program<'a> {
    fn new(gpu: &'a Gpu, allocator: &'a Allocator) -> Self {
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let info = UploadArenaCreateInfo { page_size: 64 << 10, ..Default::default() };
        // SAFETY: nothing is submitted.
        let arena = unsafe { UploadArena::new(allocator, &info) }.unwrap();
        // SAFETY: instance and device outlive the objects created from the value.
        let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(gpu)) }.unwrap();
        let types = &[DescriptorKind::StorageBuffer];
        let info = HeapCreateInfo { slots: 1024, transient: 256, types, ..HeapCreateInfo::default() };
        Self {
            gpu,
            allocator,
            clock,
            timeline,
            retired: RetiredResources::new(),
            arena,
            layouts: [layout(gpu, 1), layout(gpu, 5)],
            transient: TransientSets::new(&device, &TransientSetsCreateInfo::default()).unwrap(),
            persistent: PersistentSets::new(&PersistentSetsCreateInfo::new(&device)),
            heap: DescriptorHeap::new(SetStore::new(&device, &info).unwrap()),
            buffers: VecDeque::new(),
            images: VecDeque::new(),
            sets: VecDeque::new(),
            ranges: VecDeque::new(),
        }
    }

    fn resources(&mut self, ticket: Ticket, random: &mut fastrand::Rng) {
        let usage = vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::STORAGE_BUFFER;
        for _ in 0..random.u32(1..5) {
            let most = 1 << random.u32(6..20);
            let size = 1 + random.u64(..most);
            let info = vk::BufferCreateInfo::default().size(size).usage(usage);
            let flags = if random.bool() { Flags::HOST_ACCESS_SEQUENTIAL_WRITE } else { Flags::empty() };
            let how = AllocationCreateInfo { flags, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
            // SAFETY: the create-info is valid.
            let (buffer, mut memory) = unsafe { self.allocator.create_buffer(&info, &how) }.unwrap();
            if flags != Flags::empty() {
                self.allocator.write_value(&7_u8, &mut memory, size - 1).unwrap();
            }
            self.buffers.push_back((buffer, memory));
        }
        if random.u32(..4) == 0 {
            let side = 1 << random.u32(4..9);
            let info = vk::ImageCreateInfo::default()
                .image_type(vk::ImageType::TYPE_2D)
                .format(vk::Format::R8G8B8A8_UNORM)
                .extent(vk::Extent3D { width: side, height: side, depth: 1 })
                .mip_levels(1)
                .array_layers(1)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(vk::ImageUsageFlags::SAMPLED);
            let how = AllocationCreateInfo::new(MemoryUsage::Auto);
            // SAFETY: the create-info is valid.
            self.images.push_back(unsafe { self.allocator.create_image(&info, &how) }.unwrap());
        }
        while self.buffers.len() > 100 {
            let at = random.usize(..self.buffers.len());
            let (buffer, memory) = self.buffers.swap_remove_back(at).unwrap();
            // SAFETY: the device does not use the buffer.
            unsafe { self.retired.retire_buffer(ticket, buffer, memory) };
        }
        while self.images.len() > 20 {
            let (image, memory) = self.images.pop_front().unwrap();
            // SAFETY: the device does not use the image.
            unsafe { self.retired.retire_image(ticket, image, memory) };
        }
    }

    /// A level or a document, whose memory is all freed at once.
    fn lifetimes(&mut self, ticket: Ticket, frame: u32) {
        let needed = vk::MemoryRequirements { size: 100_000, alignment: 256, memory_type_bits: !0 };
        if frame % 50 == 7 {
            let scope = self.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
            for _ in 0..8 {
                let memory = self.allocator.allocate_memory(&needed, &AllocationCreateInfo::in_scope(&scope));
                // The scope frees it.
                let _ = memory.unwrap();
            }
            // SAFETY: nothing was bound to its allocations.
            unsafe { self.retired.retire_scope(ticket, scope) };
        }
        if frame % 50 == 31 {
            let info = PoolCreateInfo {
                algorithm: Algorithm::Linear,
                block_size: 1 << 20,
                ..PoolCreateInfo::new(0)
            };
            let pool = self.allocator.create_pool(&info).unwrap();
            for _ in 0..8 {
                let memory = self.allocator.allocate_memory(&needed, &AllocationCreateInfo::in_pool(&pool));
                // SAFETY: nothing was bound to it.
                unsafe { self.retired.retire_memory(ticket, memory.unwrap()) };
            }
            // SAFETY: as above.
            unsafe { self.retired.retire_pool(ticket, pool) };
        }
    }

    fn uploads(&mut self, random: &mut fastrand::Rng) {
        for _ in 0..8 {
            self.arena.write_slice(&vec![1_u8; random.usize(1..4000)], 16).unwrap();
            self.arena.write_value(&[0.5_f32; 16], 256).unwrap();
        }
    }

    fn descriptors(&mut self, ticket: Ticket, random: &mut fastrand::Rng) {
        for at in 0..12 {
            // SAFETY: the layout is live, and the set is used in this frame only.
            unsafe { self.transient.allocate(&self.layouts[at % 2]) }.unwrap();
        }
        for _ in 0..random.u32(..3) {
            // SAFETY: the layout is live.
            let set = unsafe { self.persistent.allocate(&self.layouts[random.usize(..2)]) };
            self.sets.push_back(set.unwrap());
            let range = self.heap.allocate(random.u32(1..6)).unwrap();
            let buffer = self.buffers[random.usize(..self.buffers.len())].0;
            let whole = Descriptor::StorageBuffer(BufferDescriptor::new(buffer, 0, vk::WHOLE_SIZE));
            // SAFETY: the buffer is live, and no shader reads the slot.
            unsafe { self.heap.write(range.id(), 0, &whole) }.unwrap();
            self.ranges.push_back(range);
        }
        self.heap.allocate_transient(ticket, random.u32(1..20)).unwrap();
        while self.sets.len() > 60 {
            let set = self.sets.swap_remove_back(random.usize(..60)).unwrap();
            // SAFETY: the device does not use the set.
            unsafe { self.persistent.retire(ticket, set) }.unwrap();
        }
        while self.ranges.len() > 60 {
            let range = self.ranges.swap_remove_back(random.usize(..60)).unwrap();
            // SAFETY: the device does not use the range.
            unsafe { self.heap.retire(ticket, range) }.unwrap();
        }
    }

    fn collect(&mut self) {
        self.retired.collect(self.allocator, &self.clock).unwrap();
        self.arena.collect(&self.clock).unwrap();
        self.transient.collect(&self.clock).unwrap();
        self.persistent.collect(&self.clock).unwrap();
        self.heap.collect(&self.clock).unwrap();
    }

    fn frame(&mut self, frame: u32, random: &mut fastrand::Rng) {
        self.allocator.set_current_frame_index(frame);
        let ticket = self.clock.begin_frame(self.timeline, frame % FRAMES_IN_FLIGHT);
        self.collect();
        self.resources(ticket, random);
        self.lifetimes(ticket, frame);
        self.uploads(random);
        self.descriptors(ticket, random);
        self.arena.flush(ticket).unwrap();
        self.transient.flush(ticket).unwrap();
        self.clock.end_frame(ticket).unwrap();
    }

    /// Retires all live resources and waits for them.
    fn empty(&mut self, frame: u32) {
        let ticket = self.clock.begin_frame(self.timeline, frame % FRAMES_IN_FLIGHT);
        for (buffer, memory) in self.buffers.drain(..) {
            // SAFETY: the device does not use the buffer.
            unsafe { self.retired.retire_buffer(ticket, buffer, memory) };
        }
        for (image, memory) in self.images.drain(..) {
            // SAFETY: the device does not use the image.
            unsafe { self.retired.retire_image(ticket, image, memory) };
        }
        for set in self.sets.drain(..) {
            // SAFETY: the device does not use the set.
            unsafe { self.persistent.retire(ticket, set) }.unwrap();
        }
        for range in self.ranges.drain(..) {
            // SAFETY: the device does not use the range.
            unsafe { self.heap.retire(ticket, range) }.unwrap();
        }
        self.clock.end_frame(ticket).unwrap();
        self.clock.idle();
        self.collect();
    }

    fn chunks(&self) -> u64 {
        let vectors = self.allocator.memory_map().vectors;
        let chunks = vectors.iter().flat_map(|vector| &vector.blocks).map(|block| block.chunks.len());
        u64::try_from(chunks.sum::<usize>()).unwrap()
    }

    /// Makes the same calls each time and returns their cost. The test's own queries are not counted.
    fn section(&mut self, first: u32) -> Cost {
        let random = &mut fastrand::Rng::with_seed(27);
        self.gpu.reset_calls();
        let (mut chunks, mut blocks) = ([0; 2], [0; 2]);
        let (mut host_allocations, mut host_bytes) = (0, 0);
        for half in 0..2 {
            let (before, bytes_before) = (counting::count(), counting::bytes());
            for frame in 0..SECTION / 2 {
                self.frame(first + u32::try_from(half).unwrap() * SECTION / 2 + frame, random);
            }
            if half == 1 {
                self.empty(first + SECTION);
            }
            host_allocations += counting::count() - before;
            host_bytes += i64::try_from(counting::bytes()).unwrap() - i64::try_from(bytes_before).unwrap();
            chunks[half] = self.chunks();
            blocks[half] = self.allocator.statistics().block_count;
        }
        let (transient, persistent) = (self.transient.statistics(), self.persistent.statistics());
        let live = self.gpu.live();
        assert_eq!(self.retired.len(), 0);
        Cost {
            driver_calls: self.gpu.call_counts(),
            host_allocations,
            host_bytes,
            chunks,
            blocks,
            sets_and_pools: [
                u64::try_from(transient.pools).unwrap(),
                persistent.pools.into(),
                live.descriptor_sets,
                live.descriptor_pools,
            ],
        }
    }

    fn end(self) {
        let Self { gpu, transient, persistent, heap, arena, layouts, .. } = self;
        // SAFETY: nothing was submitted, here and below.
        unsafe { transient.destroy() };
        // SAFETY: as above.
        assert!(unsafe { persistent.destroy() }.is_empty());
        // SAFETY: as above.
        unsafe { heap.into_store().destroy() };
        // SAFETY: as above.
        unsafe { arena.destroy() };
        for layout in &layouts {
            // SAFETY: no set of the layout is left.
            unsafe { gpu.device().destroy_descriptor_set_layout(layout.handle(), None) };
        }
    }
}

#[test]
fn the_last_frames_of_ten_thousand_cost_what_the_first_did() {
    for name in ["nvidia-gtx-1060", "amd-rx-570"] {
        let gpu = Gpu::new(Profile::by_name(name).unwrap());
        // SAFETY: the simulated device outlives the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let mut program = Program::new(&gpu, &allocator);
        let costs: Vec<_> = (0..SECTIONS).map(|at| program.section(at * (SECTION + 1))).collect();
        // The first section creates objects that later ones reuse.
        let first = &costs[1];
        assert!(first.driver_calls.len() > 15 && first.chunks[0] > 100, "much was done");
        for (at, cost) in costs.iter().enumerate().skip(2) {
            assert_eq!(cost.driver_calls, first.driver_calls, "{name}: section {at}");
            assert_eq!(cost.sets_and_pools, first.sets_and_pools, "{name}: section {at}");
            // The layout of chunks varies with the previous frees, but must not drift.
            let is_near = |of: u64, first: u64| of <= first + first / 10 + 2;
            let (chunks, blocks) = (cost.chunks, cost.blocks);
            let near = [
                is_near(cost.host_allocations, first.host_allocations),
                chunks.iter().zip(first.chunks).all(|(of, first)| is_near(*of, first)),
                blocks.iter().zip(first.blocks).all(|(of, first)| is_near(*of, first)),
            ];
            assert_eq!(near, [true; 3], "{name}: section {at}: {cost:?}, and at first {first:?}");
        }
        let kept: i64 = costs.iter().skip(2).map(|cost| cost.host_bytes).sum();
        assert!(kept < 16 << 10, "{name}: {kept} bytes of host memory more after 9,000 frames");
        program.end();
        assert!(allocator.destroy().is_empty());
        gpu.assert_silent();
    }
}
