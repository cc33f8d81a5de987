//! A program of random operations that records where its allocations are placed.

use std::collections::BTreeMap;

use ash::vk;
use ash::vk::Handle as _;
use sublet::sim::Gpu;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationInfo, Allocator,
    DefragmentationAlgorithm, DefragmentationInfo, MemoryUsage, Pool, PoolCreateInfo, ResourceKind, Scope,
    ScopeCreateInfo,
};

/// The placement of an allocation: memory type, whether it is dedicated, block, offset and size. Blocks are numbered
/// when they get their first allocation, and forgotten when the last one is freed.
pub(crate) type PlacementRow = (u32, bool, u64, u64, u64);

/// Numbers blocks.
#[derive(Default)]
pub(crate) struct Blocks {
    known: BTreeMap<u64, (u64, u64)>,
    next: u64,
}

impl Blocks {
    pub(crate) fn placed(&mut self, info: &AllocationInfo) -> PlacementRow {
        let (block, live) = self.known.entry(info.memory.as_raw()).or_insert_with(|| {
            self.next += 1;
            (self.next - 1, 0)
        });
        *live += 1;
        (info.memory_type_index, info.dedicated, *block, info.offset, info.size)
    }

    pub(crate) fn left(&mut self, memory: vk::DeviceMemory) {
        let handle = memory.as_raw();
        let (_, live) = self.known.get_mut(&handle).unwrap();
        *live -= 1;
        if *live == 0 {
            self.known.remove(&handle);
        }
    }
}

enum Resource {
    None,
    Buffer(vk::Buffer),
    Image(vk::Image),
}

struct Held {
    allocation: Allocation,
    resource: Resource,
    owner: Option<u32>,
    mappings: u32,
}

/// An owner that frees everything in it at its end.
enum Owner {
    Pool(Pool),
    Scope(Scope),
}

/// The program.
pub(crate) struct Program<'a> {
    gpu: &'a Gpu,
    allocator: &'a Allocator,
    random: fastrand::Rng,
    live: Vec<Held>,
    owners: BTreeMap<u32, Owner>,
    next_owner: u32,
    blocks: Blocks,
    /// The placements of all allocations, in order.
    pub(crate) places: Vec<PlacementRow>,
    /// True if it makes requests that may fail because of other allocations.
    has_limits: bool,
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    pub(crate) moved: u64,
    pub(crate) peak_reserved: u64,
    pub(crate) peak_used: u64,
}

impl<'a> Program<'a> {
    pub(crate) fn new(gpu: &'a Gpu, allocator: &'a Allocator, seed: u64) -> Self {
        Self {
            gpu,
            allocator,
            random: fastrand::Rng::with_seed(seed),
            live: Vec::new(),
            owners: BTreeMap::new(),
            next_owner: 0,
            blocks: Blocks::default(),
            places: Vec::new(),
            has_limits: true,
            granted: 0,
            refused: 0,
            moved: 0,
            peak_reserved: 0,
            peak_used: 0,
        }
    }

    pub(crate) fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            match self.random.u32(..100) {
                0..42 => self.allocate(),
                42..50 => self.create(),
                50..72 => self.free(),
                72..80 => self.touch(),
                80..84 => self.describe(),
                84..88 => self.make_owner(),
                88..91 => self.end_owner(),
                91..93 => self.allocator.set_current_frame_index(self.random.u32(..)),
                93..95 => drop(self.allocator.trim()),
                95..96 => drop(self.allocator.set_empty_blocks_kept(self.random.u32(..3))),
                _ => self.defragment(),
            }
            self.see();
        }
    }

    fn see(&mut self) {
        let now = self.allocator.statistics();
        self.peak_reserved = self.peak_reserved.max(now.block_bytes);
        self.peak_used = self.peak_used.max(now.allocation_bytes);
    }

    /// Runs operations that several threads can do at once. Excludes defragmentation, which sees allocations of other
    /// threads.
    pub(crate) fn run_beside_others(&mut self, steps: u32) {
        self.has_limits = false;
        for _ in 0..steps {
            match self.random.u32(..100) {
                0..44 => self.allocate(),
                44..52 => self.create(),
                52..85 => self.free(),
                85..90 => self.touch(),
                90..92 => self.describe(),
                92..95 => self.make_owner(),
                95..98 => self.end_owner(),
                _ => drop(self.allocator.trim()),
            }
        }
    }

    fn size(&mut self) -> u64 {
        let octave = 1_u64 << self.random.u32(6..22);
        octave + self.random.u64(..octave)
    }

    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(..of.len())]
    }

    fn keep(&mut self, allocation: Allocation, resource: Resource, owner: Option<u32>) {
        self.granted += 1;
        self.places.push(self.blocks.placed(&self.allocator.allocation_info(&allocation).unwrap()));
        self.live.push(Held { allocation, resource, owner, mappings: 0 });
    }

    fn allocate(&mut self) {
        let kind = self.any(&[ResourceKind::Buffer, ResourceKind::ImageOptimal, ResourceKind::Unknown]);
        let usage = self.any(&[
            MemoryUsage::Unknown,
            MemoryUsage::GpuOnly,
            MemoryUsage::CpuOnly,
            MemoryUsage::CpuToGpu,
            MemoryUsage::GpuToCpu,
        ]);
        let mut flags = Flags::empty();
        for (flag, one_in) in [
            (Flags::MAPPED, 3),
            (Flags::DEDICATED_MEMORY, 20),
            (Flags::NEVER_ALLOCATE, 12),
            (Flags::WITHIN_BUDGET, 9),
            (Flags::STRATEGY_MIN_MEMORY, 10),
            (Flags::STRATEGY_MIN_OFFSET, 10),
        ] {
            let limits = flag == Flags::NEVER_ALLOCATE || flag == Flags::WITHIN_BUDGET;
            flags.set(flag, self.random.u32(..one_in) == 0 && (self.has_limits || !limits));
        }
        let owner = if self.random.u32(..3) == 0 { self.any_owner() } else { None };
        let requirements = vk::MemoryRequirements {
            // Sometimes more than any device has, or zero.
            size: if self.random.u32(..60) == 0 { self.any(&[0, 1 << 52]) } else { self.size() },
            alignment: 1 << self.random.u32(0..14),
            memory_type_bits: if self.random.u32(..6) == 0 { self.random.u32(..) } else { u32::MAX },
        };
        let name = format!("thing {}", self.random.u32(..5));
        let mut info = AllocationCreateInfo {
            usage,
            flags,
            user_data: self.random.u64(..),
            min_alignment: if self.random.u32(..5) == 0 { 4096 } else { 0 },
            name: self.random.bool().then_some(name.as_str()),
            ..AllocationCreateInfo::default()
        };
        match owner.map(|owner| &self.owners[&owner]) {
            Some(Owner::Pool(pool)) => info.pool = Some(pool),
            Some(Owner::Scope(scope)) => info.scope = Some(scope),
            None => {}
        }
        // SAFETY: nothing is bound to it.
        match unsafe { self.allocator.allocate_memory_of_kind(&requirements, kind, &info) } {
            Ok(allocation) => self.keep(allocation, Resource::None, owner),
            Err(_) => self.refused += 1,
        }
    }

    /// Creates a buffer or an image. The automatic usages depend on how the device uses it.
    fn create(&mut self) {
        let usage =
            self.any(&[MemoryUsage::Auto, MemoryUsage::AutoPreferDevice, MemoryUsage::AutoPreferHost]);
        let host = Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED;
        let flags = self.any(&[Flags::empty(), host, Flags::HOST_ACCESS_RANDOM, Flags::DONT_BIND]);
        let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::new(usage) };
        if self.random.bool() {
            let edge = self.random.u32(1..600);
            let usage = self.any(&[
                vk::ImageUsageFlags::SAMPLED,
                vk::ImageUsageFlags::COLOR_ATTACHMENT,
                vk::ImageUsageFlags::TRANSFER_DST,
            ]);
            let image = vk::ImageCreateInfo::default()
                .image_type(vk::ImageType::TYPE_2D)
                .format(vk::Format::R8G8B8A8_UNORM)
                .extent(vk::Extent3D { width: edge, height: edge, depth: 1 })
                .mip_levels(1)
                .array_layers(1)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(usage);
            // SAFETY: the create-info is valid.
            match unsafe { self.allocator.create_image(&image, &info) } {
                Ok((image, allocation)) => self.keep(allocation, Resource::Image(image), None),
                Err(_) => self.refused += 1,
            }
        } else {
            let usage = self.any(&[
                vk::BufferUsageFlags::VERTEX_BUFFER,
                vk::BufferUsageFlags::TRANSFER_SRC,
                vk::BufferUsageFlags::STORAGE_BUFFER,
            ]);
            let buffer = vk::BufferCreateInfo::default().size(self.size()).usage(usage);
            // SAFETY: the create-info is valid.
            match unsafe { self.allocator.create_buffer(&buffer, &info) } {
                Ok((buffer, allocation)) => self.keep(allocation, Resource::Buffer(buffer), None),
                Err(_) => self.refused += 1,
            }
        }
    }

    fn destroy(&self, resource: Resource) {
        match resource {
            Resource::None => {}
            // SAFETY: the device never used it.
            Resource::Buffer(buffer) => unsafe { self.gpu.device().destroy_buffer(buffer, None) },
            // SAFETY: the device never used it.
            Resource::Image(image) => unsafe { self.gpu.device().destroy_image(image, None) },
        }
    }

    fn free(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let held = self.live.swap_remove(self.random.usize(..self.live.len()));
        self.give_back(held);
    }

    fn give_back(&mut self, held: Held) {
        for _ in 0..held.mappings {
            // SAFETY: it pairs with a mapping that was left open; its pointer was not kept.
            unsafe { self.allocator.unmap_memory(&held.allocation) }.unwrap();
        }
        self.blocks.left(held.allocation.memory());
        self.destroy(held.resource);
        // SAFETY: everything bound to it is destroyed.
        unsafe { self.allocator.free_memory(held.allocation) }.unwrap();
    }

    /// Maps, copies, flushes.
    fn touch(&mut self) {
        let Some(held) = self.random.choice(self.live.iter_mut()) else { return };
        let (allocator, size) = (self.allocator, held.allocation.size());
        match self.random.u32(..4) {
            0 => {
                if let Ok(mapping) = allocator.map(&mut held.allocation) {
                    let _ = mapping.into_raw();
                    held.mappings += 1;
                }
            }
            1 if held.mappings > 0 => {
                held.mappings -= 1;
                // SAFETY: as above.
                unsafe { allocator.unmap_memory(&held.allocation) }.unwrap();
            }
            2 => drop(allocator.copy_to_allocation(&[7; 16], &mut held.allocation, size.min(64) / 2)),
            _ => drop(allocator.flush(&held.allocation, 0, size)),
        }
    }

    fn describe(&mut self) {
        let Some(held) = self.random.choice(self.live.iter_mut()) else { return };
        if self.random.bool() {
            self.allocator.set_allocation_name(&held.allocation, Some("renamed")).unwrap();
        } else {
            let number = self.random.u64(..);
            self.allocator.set_allocation_user_data(&mut held.allocation, number).unwrap();
        }
    }

    fn any_owner(&mut self) -> Option<u32> {
        let owners: Vec<u32> = self.owners.keys().copied().collect();
        self.random.choice(owners)
    }

    fn make_owner(&mut self) {
        if self.owners.len() > 4 {
            return;
        }
        let block_size = self.any(&[0, 1 << 20, 4 << 20]);
        let owner = if self.random.u32(..3) == 0 {
            let info = ScopeCreateInfo { block_size, ..ScopeCreateInfo::default() };
            self.allocator.create_scope(&info).map(Owner::Scope)
        } else {
            let types = self.allocator.memory_properties().memory_type_count;
            let algorithm = self.any(&[Algorithm::Tlsf, Algorithm::Linear]);
            let info = PoolCreateInfo {
                block_size,
                algorithm,
                min_block_count: u32::from(block_size != 0 && self.random.bool()),
                max_block_count: if block_size == 0 || !self.has_limits { 0 } else { self.random.u32(1..4) },
                empty_blocks_kept: self.random.u32(..3),
                ..PoolCreateInfo::new(self.random.u32(..types))
            };
            self.allocator.create_pool(&info).map(Owner::Pool)
        };
        if let Ok(owner) = owner {
            self.owners.insert(self.next_owner, owner);
            self.next_owner += 1;
        }
    }

    fn end_owner(&mut self) {
        let Some(number) = self.any_owner() else { return };
        let (ended, live) =
            std::mem::take(&mut self.live).into_iter().partition(|held| held.owner == Some(number));
        self.live = live;
        for held in ended {
            let held: Held = held;
            self.blocks.left(held.allocation.memory());
            self.destroy(held.resource);
        }
        match self.owners.remove(&number).unwrap() {
            // SAFETY: everything bound to its memory is destroyed.
            Owner::Pool(pool) => drop(unsafe { self.allocator.destroy_pool(pool) }.unwrap()),
            // SAFETY: as above.
            Owner::Scope(scope) => drop(unsafe { self.allocator.free_scope(scope) }.unwrap()),
        }
    }

    fn defragment(&mut self) {
        let algorithm = self.any(&[
            DefragmentationAlgorithm::Fast,
            DefragmentationAlgorithm::Balanced,
            DefragmentationAlgorithm::Full,
            DefragmentationAlgorithm::Extensive,
        ]);
        let info = DefragmentationInfo {
            algorithm,
            max_allocations_per_pass: self.any(&[0, 3]),
            max_bytes_per_pass: self.any(&[0, 1 << 20]),
            ..DefragmentationInfo::default()
        };
        let mut defragmentation = self.allocator.begin_defragmentation(&info).unwrap();
        for _ in 0..self.random.u32(1..4) {
            let Some(pass) = defragmentation.begin_pass() else { break };
            // Destinations of moves are in use.
            self.see();
            for moved in pass {
                let at = self.live.iter().position(|held| held.allocation.id() == moved.source()).unwrap();
                // A mapping that stays open would end with the old placement.
                let what = if self.live[at].mappings > 0 { 3 } else { self.random.u32(..8) };
                match what {
                    0 => {
                        let held = self.live.swap_remove(at);
                        self.blocks.left(held.allocation.memory());
                        self.destroy(held.resource);
                        // SAFETY: everything bound to it is destroyed.
                        let freed = unsafe { moved.free(held.allocation) };
                        assert!(freed.is_ok());
                    }
                    1 => moved.ignore(),
                    2 | 3 => drop(moved),
                    _ => {
                        let resource = std::mem::replace(&mut self.live[at].resource, Resource::None);
                        self.destroy(resource);
                        let allocation = &mut self.live[at].allocation;
                        let before = allocation.memory();
                        // SAFETY: everything bound to it is destroyed, and no mapping is open.
                        if unsafe { moved.complete(allocation) }.is_ok() {
                            let info = self.allocator.allocation_info(allocation).unwrap();
                            self.places.push(self.blocks.placed(&info));
                            self.blocks.left(before);
                            self.moved += 1;
                        }
                    }
                }
            }
        }
        drop(defragmentation);
    }

    /// Frees everything, or leaves it to the end of the recording.
    pub(crate) fn end(&mut self) {
        while let Some(held) = self.live.pop() {
            self.give_back(held);
        }
        while !self.owners.is_empty() {
            self.end_owner();
        }
    }
}
