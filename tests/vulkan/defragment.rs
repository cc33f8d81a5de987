//! Live buffers and images are moved, and every byte is compared.

use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateInfo,
    DefragmentationAlgorithm, DefragmentationInfo, MemoryUsage,
};
use sublet_examples::{Context, Random, Resource, buffer_info, checksum, image_info};

use crate::on_each_context;

/// The largest size of a resource.
const MOST: u64 = 64 << 10;
const ALGORITHMS: [DefragmentationAlgorithm; 4] = [
    DefragmentationAlgorithm::Fast,
    DefragmentationAlgorithm::Balanced,
    DefragmentationAlgorithm::Full,
    DefragmentationAlgorithm::Extensive,
];

type Live = (Resource, Allocation, u64);

struct Stage<'a> {
    context: &'a Context,
    allocator: &'a Allocator,
    window: Resource,
    window_memory: Allocation,
    live: Vec<Live>,
    random: Random,
    moved: u64,
}

/// Runs `SUBLET_CASES` cycles on each device.
#[test]
fn everything_that_moves_keeps_its_bytes() {
    let cycles = std::env::var("SUBLET_CASES").ok().and_then(|value| value.parse().ok()).unwrap_or(8_u64);
    on_each_context(|context| {
        let info =
            AllocatorCreateInfo { preferred_large_heap_block_size: 1 << 20, ..context.allocator_info() };
        // SAFETY: the context created instance and device for this version and these flags, and outlives the allocator.
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        let mut stage = Stage::new(context, &allocator);
        for _ in 0..cycles {
            stage.fragment();
            stage.defragment();
            stage.compare();
        }
        assert!(stage.moved > 2 * cycles, "{} moves", stage.moved);
        while !stage.live.is_empty() {
            stage.destroy(0);
        }
        let Stage { window, window_memory, .. } = stage;
        window.destroy(context);
        // SAFETY: the resource bound to it is destroyed.
        unsafe { allocator.free_memory(window_memory) }.unwrap();
        allocator.validate();
        assert!(allocator.destroy().is_empty());
    });
}

impl<'a> Stage<'a> {
    fn new(context: &'a Context, allocator: &'a Allocator) -> Self {
        let info = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_RANDOM | Flags::DEDICATED_MEMORY,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        // SAFETY: the create-info is valid.
        let (buffer, window_memory) = unsafe { allocator.create_buffer(&buffer_info(MOST), &info) }.unwrap();
        let window = Resource::Buffer { buffer, size: MOST };
        Self { context, allocator, window, window_memory, live: Vec::new(), random: Random::new(8), moved: 0 }
    }

    fn create(&mut self) {
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let (resource, allocation) = if self.random.within(0..3) == 0 {
            let side = 1 << self.random.within(2..8);
            // SAFETY: the create-info is valid.
            let (image, allocation) =
                unsafe { self.allocator.create_image(&image_info(side), &auto) }.unwrap();
            (Resource::Image { image, side }, allocation)
        } else {
            let size = self.random.within(1..MOST + 1);
            let mapped = Flags::HOST_ACCESS_RANDOM | Flags::MAPPED;
            let flags = if self.random.within(0..3) == 0 { mapped } else { Flags::empty() };
            let info = AllocationCreateInfo { flags, ..auto };
            // SAFETY: the create-info is valid.
            let (buffer, allocation) =
                unsafe { self.allocator.create_buffer(&buffer_info(size), &info) }.unwrap();
            (Resource::Buffer { buffer, size }, allocation)
        };
        let data = self.random.bytes(resource.size() as usize);
        self.allocator.copy_to_allocation(&data, &mut self.window_memory, 0).unwrap();
        let window = self.part(resource.size());
        self.context.submit(|device, commands| window.copy_to(resource, device, commands)).unwrap();
        self.live.push((resource, allocation, checksum(&data)));
    }

    /// Returns the start of the window.
    fn part(&self, size: u64) -> Resource {
        match self.window {
            Resource::Buffer { buffer, .. } => Resource::Buffer { buffer, size },
            image => image,
        }
    }

    fn destroy(&mut self, at: usize) {
        let (resource, allocation, _) = self.live.swap_remove(at);
        resource.destroy(self.context);
        // SAFETY: the resource bound to it is destroyed.
        unsafe { self.allocator.free_memory(allocation) }.unwrap();
    }

    fn fragment(&mut self) {
        while self.live.len() < 90 {
            self.create();
        }
        while self.live.len() > 30 {
            let at = self.random.index(self.live.len());
            self.destroy(at);
        }
    }

    fn defragment(&mut self) {
        let info = DefragmentationInfo {
            algorithm: ALGORITHMS[self.random.index(4)],
            max_bytes_per_pass: self.random.within(0..2) * 4 * MOST,
            ..Default::default()
        };
        let mut defragmentation = self.allocator.begin_defragmentation(&info).unwrap();
        while let Some(pass) = defragmentation.begin_pass() {
            let mut moves = Vec::new();
            for moved in pass {
                let is_it = |(_, allocation, _): &Live| allocation.id() == moved.source();
                let at = self.live.iter().position(is_it).unwrap();
                match (self.random.within(0..12), self.live[at].0) {
                    (0, _) => drop(moved),
                    (1, _) => moved.ignore(),
                    (_, Resource::Buffer { size, .. }) => {
                        // SAFETY: the create-info is that of the moved buffer.
                        let buffer = unsafe { moved.create_buffer(&buffer_info(size)) }.unwrap();
                        moves.push((at, moved, Resource::Buffer { buffer, size }));
                    }
                    (_, Resource::Image { side, .. }) => {
                        // SAFETY: the create-info is that of the moved image.
                        let image = unsafe { moved.create_image(&image_info(side)) }.unwrap();
                        moves.push((at, moved, Resource::Image { image, side }));
                    }
                }
            }
            let live = &self.live;
            let record = |device: &ash::Device, commands| {
                moves.iter().for_each(|&(at, _, new)| live[at].0.copy_to(new, device, commands));
            };
            self.context.submit(record).unwrap();
            for (at, moved, new) in moves {
                std::mem::replace(&mut self.live[at].0, new).destroy(self.context);
                // SAFETY: the device is idle, and the resource bound to the old place is destroyed.
                unsafe { moved.complete(&mut self.live[at].1) }.unwrap();
                self.moved += 1;
            }
        }
    }

    fn compare(&self) {
        for (resource, allocation, sum) in &self.live {
            let window = self.part(resource.size());
            self.context.submit(|device, commands| resource.copy_to(window, device, commands)).unwrap();
            let mut data = vec![0; resource.size() as usize];
            self.allocator.copy_from_allocation(&self.window_memory, 0, &mut data).unwrap();
            assert!(checksum(&data) == *sum, "{resource:?} in {allocation:?} has lost its bytes");
        }
        self.allocator.validate();
    }
}
