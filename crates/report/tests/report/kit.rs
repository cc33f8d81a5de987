//! A test program on a simulated GPU that uses most features.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator,
    AllocatorCreateInfo, MemoryUsage, Pool, PoolCreateInfo, Tracking,
};
use sublet_report::Snapshot;

pub(crate) const MIB: u64 = 1 << 20;

/// Names that break code without escaping.
pub(crate) const NASTY: &[&str] = &[
    "",
    "a \"quoted\" name with a \\ and a '",
    "</script><script>alert(1)</script>",
    "<!-- & ]]> &amp; <b>",
    "line\nbreak\r\n\ttab",
    "control \u{0}\u{1}\u{7}\u{8}\u{b}\u{1f}\u{7f}\u{9f}",
    "\\u0041 \\x41 %41 %s {0}",
    "right to left \u{202e}gnp.erutxet \u{5e9}\u{5dc}\u{5d5}\u{5dd}",
    "not a character \u{fffe}\u{ffff}\u{fdd0}, and \u{2028}\u{2029}",
    "\u{1f600} \u{10ffff} e\u{301}",
];

pub(crate) struct Program {
    // The first field, so that it drops first.
    pub(crate) allocator: Allocator,
    pub(crate) gpu: Gpu,
    pub(crate) pools: Vec<Pool>,
    pub(crate) buffers: Vec<(vk::Buffer, Allocation)>,
    pub(crate) images: Vec<(vk::Image, Allocation)>,
    pub(crate) held: Vec<Allocation>,
    random: fastrand::Rng,
}

impl Program {
    pub(crate) fn on(profile: &str) -> Self {
        let gpu = Gpu::new(Profile::by_name(profile).unwrap());
        let info = AllocatorCreateInfo {
            tracking: Tracking::USER_DATA | Tracking::CALLER,
            preferred_large_heap_block_size: 16 * MIB,
            ..AllocatorCreateInfo::for_gpu(&gpu)
        };
        // SAFETY: the GPU outlives the allocator.
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        let random = fastrand::Rng::with_seed(7);
        let (pools, buffers, images, held) = Default::default();
        Self { allocator, gpu, pools, buffers, images, held, random }
    }

    /// Allocates from all memory types, in all kinds and sizes, in pools and dedicated, with and without names.
    pub(crate) fn busy(profile: &str, count: usize) -> Self {
        let mut program = Self::on(profile);
        program.add_pools();
        for at in 0..count {
            program.allocate(at);
            if at % 3 == 2 {
                program.free_one();
            }
        }
        program
    }

    fn add_pools(&mut self) {
        let memory_type = (0..32).find(|&at| self.allocator.default_statistics(at).is_some()).unwrap();
        for (name, algorithm) in [
            (Some("streaming ring"), Algorithm::Linear),
            (Some(NASTY[2]), Algorithm::Tlsf),
            (None, Algorithm::Buddy),
        ] {
            let info = PoolCreateInfo {
                name,
                algorithm,
                block_size: 4 * MIB,
                max_block_count: if algorithm == Algorithm::Linear { 1 } else { 0 },
                ..PoolCreateInfo::new(memory_type)
            };
            self.pools.push(self.allocator.create_pool(&info).unwrap());
        }
    }

    fn allocate(&mut self, at: usize) {
        let names = ["mesh", "albedo", "normal map", "uniforms", "staging", NASTY[at % NASTY.len()]];
        let name = names[self.random.usize(..names.len())];
        let user_data = if at % 4 == 0 { u64::MAX - self.random.u64(..100) } else { 0 };
        let flags = if self.random.u32(..12) == 0 { Flags::DEDICATED_MEMORY } else { Flags::empty() };
        let name = (at % 7 != 0).then_some(name);
        let info =
            AllocationCreateInfo { name, user_data, flags, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
        let size = 1 << self.random.u32(6..21) | self.random.u64(..64);
        match self.random.u32(..5) {
            0 | 1 => {
                let buffer = vk::BufferCreateInfo::default().size(size);
                let buffer =
                    buffer.usage(vk::BufferUsageFlags::VERTEX_BUFFER | vk::BufferUsageFlags::TRANSFER_DST);
                // SAFETY: the create-info is valid.
                self.buffers.push(unsafe { self.allocator.create_buffer(&buffer, &info) }.unwrap());
            }
            2 => {
                let side = 1 << self.random.u32(4..9);
                let image = vk::ImageCreateInfo::default()
                    .image_type(vk::ImageType::TYPE_2D)
                    .format(vk::Format::R8G8B8A8_UNORM)
                    .extent(vk::Extent3D { width: side, height: side, depth: 1 })
                    .mip_levels(1)
                    .array_layers(1)
                    .samples(vk::SampleCountFlags::TYPE_1)
                    .tiling(vk::ImageTiling::OPTIMAL)
                    .usage(vk::ImageUsageFlags::SAMPLED);
                // SAFETY: as above.
                self.images.push(unsafe { self.allocator.create_image(&image, &info) }.unwrap());
            }
            kind => {
                let requirements = vk::MemoryRequirements { size, alignment: 64, memory_type_bits: !0 };
                let info = if kind == 3 {
                    let pool = &self.pools[at % self.pools.len()];
                    AllocationCreateInfo { name, user_data, ..AllocationCreateInfo::in_pool(pool) }
                } else {
                    AllocationCreateInfo { usage: MemoryUsage::CpuToGpu, ..info }
                };
                // A pool of one block may be full.
                self.held.extend(self.allocator.allocate_memory(&requirements, &info));
            }
        }
    }

    fn free_one(&mut self) {
        if !self.buffers.is_empty() && self.random.bool() {
            let (buffer, memory) = self.buffers.swap_remove(self.random.usize(..self.buffers.len()));
            // SAFETY: no device uses it.
            unsafe { self.allocator.destroy_buffer(buffer, memory) }.unwrap();
        } else if !self.held.is_empty() {
            let memory = self.held.swap_remove(self.random.usize(..self.held.len()));
            // SAFETY: as above.
            unsafe { self.allocator.free_memory(memory) }.unwrap();
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.allocator)
    }

    /// Frees everything.
    pub(crate) fn finish(self) {
        let Self { allocator, gpu, pools, buffers, images, held, .. } = self;
        for (buffer, memory) in buffers {
            // SAFETY: no device uses it.
            unsafe { allocator.destroy_buffer(buffer, memory) }.unwrap();
        }
        for (image, memory) in images {
            // SAFETY: as above.
            unsafe { allocator.destroy_image(image, memory) }.unwrap();
        }
        for memory in held {
            // SAFETY: as above.
            unsafe { allocator.free_memory(memory) }.unwrap();
        }
        for pool in pools {
            // SAFETY: nothing is in it.
            unsafe { allocator.destroy_pool(pool) }.unwrap();
        }
        assert_eq!(allocator.destroy(), []);
        gpu.assert_silent();
    }
}

/// The profiles that differ most in heaps and types.
pub(crate) const PROFILES: &[&str] =
    &["lavapipe", "nvidia-gtx-1060", "amd-rx-5700", "broadcom-raspberry-pi-4"];

/// A small map to edit: two heaps, two types, a default vector with one block, a pool.
pub(crate) fn small() -> serde_json::Value {
    serde_json::json!({
        "format": "sublet-memory-map", "version": 1, "title": null, "device": {},
        "heaps": [
            { "size": 1000, "flags": ["DEVICE_LOCAL"], "budget": 800, "usage": 64 },
            { "size": 500, "flags": [], "budget": 400, "usage": 0 },
        ],
        "types": [{ "heap": 0, "flags": ["DEVICE_LOCAL"] }, { "heap": 1, "flags": ["HOST_VISIBLE"] }],
        "vectors": [
            {
                "memory_type": 0, "heap": 0, "pool": null, "name": null, "algorithm": "Tlsf", "block_size": 64,
                "blocks": [{ "id": 3, "size": 64, "map_count": 0, "chunks": [
                    { "offset": 0, "size": 16, "allocation": { "id": "1", "kind": "BUFFER", "usage": 2, "name": "a" } },
                    { "offset": 16, "size": 48, "allocation": null },
                ] }],
                "dedicated": [{ "size": 100, "map_count": 1, "allocation":
                    { "id": "2", "kind": "IMAGE_OPTIMAL", "usage": 4, "name": null, "user_data": "0x2a", "caller": "a.rs:1" } }],
            },
            { "memory_type": 1, "heap": 1, "pool": 0, "name": "pool", "algorithm": "Linear", "block_size": 64,
              "blocks": [{ "id": 0, "size": 64, "map_count": 0, "chunks": [{ "offset": 0, "size": 64, "allocation": null }] }],
              "dedicated": [] },
        ],
    })
}
