//! Random programs, determined by a seed.

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocatorCreateFlags, MemoryUsage, PoolCreateFlags, sim};

use super::program::{
    BufferSpec, ImageSpec, PoolSpec, ProgramResource, ProgramSetup, ProgramStep, RandomProgram, Spec,
};
use super::tap::{Fault, FaultyCall, MANY};
use crate::script::Random;

const FLAGS: [(AllocatorCreateFlags, &str); 7] = [
    (AllocatorCreateFlags::KHR_DEDICATED_ALLOCATION, "VK_KHR_dedicated_allocation"),
    (AllocatorCreateFlags::KHR_BIND_MEMORY2, "VK_KHR_bind_memory2"),
    (AllocatorCreateFlags::EXT_MEMORY_BUDGET, "VK_EXT_memory_budget"),
    (AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY, "VK_AMD_device_coherent_memory"),
    (AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS, "VK_KHR_buffer_device_address"),
    (AllocatorCreateFlags::EXT_MEMORY_PRIORITY, "VK_EXT_memory_priority"),
    (AllocatorCreateFlags::KHR_MAINTENANCE4, "VK_KHR_maintenance4"),
];

/// Generates a program.
struct Generator {
    random: Random,
    setup: ProgramSetup,
    /// The features that the setup's device has enabled.
    can_address: bool,
}

/// Generates the program of a seed. `offered` are the extensions of the profile's device.
pub(super) fn program(seed: u64, profile: &'static sim::Profile, offered: &[String]) -> RandomProgram {
    let mut random = Random::new(seed);
    let setup = setup(&mut random, profile, offered);
    let can_address = offered.iter().any(|name| name == "VK_KHR_buffer_device_address");
    let mut generator = Generator { random, setup, can_address };
    let steps = 20 + generator.random.below(41);
    let steps = (0..steps).map(|_| generator.step()).collect();
    RandomProgram { seed, setup: generator.setup, steps }
}

fn setup(random: &mut Random, profile: &'static sim::Profile, offered: &[String]) -> ProgramSetup {
    let newest = vk::api_version_minor(profile.api_version).min(4);
    let minor = if random.below(3) == 0 { random.below(u64::from(newest) + 1) as u32 } else { newest };
    let mut flags = AllocatorCreateFlags::empty();
    for (flag, extension) in FLAGS {
        if offered.iter().any(|name| name == extension) && random.below(3) != 0 {
            flags |= flag;
        }
    }
    let large_block = match random.below(8) {
        0..4 => 0,
        4 => 1 << (20 + random.below(6)),
        5 => (4 << 20) + random.below(1 << 20),
        6 => 64 << 20,
        _ if random.below(5) == 0 => 1 << 38,
        _ => 1 << 30,
    };
    let heap_limits = if random.below(5) == 0 {
        let heaps = profile.heaps.iter();
        let limit = |heap: &sim::profiles::HeapProfile| match random.below(4) {
            0 => vk::WHOLE_SIZE,
            1 => heap.size / 2,
            2 => (64 << 20) + random.below(256 << 20),
            _ => (2 << 30) + random.below(1 << 30),
        };
        heaps.map(limit).collect()
    } else {
        Vec::new()
    };
    let max_count = if random.below(7) == 0 { Some(4 + random.below(24) as u32) } else { None };
    let empty_blocks_kept = u32::from(random.below(4) != 0);
    ProgramSetup { profile, minor, flags, large_block, heap_limits, max_count, empty_blocks_kept }
}

impl Generator {
    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn step(&mut self) -> ProgramStep {
        match self.random.below(100) {
            0..6 => ProgramStep::CreatePool(self.pool()),
            6..7 => ProgramStep::DestroyPool(self.random.any()),
            7..55 => {
                let resource = self.resource();
                ProgramStep::Allocate { resource, spec: self.spec(&resource), fault: self.fault() }
            }
            55..78 => ProgramStep::Free(self.random.any()),
            78..81 => ProgramStep::Map(self.random.any()),
            81..83 => ProgramStep::Unmap(self.random.any()),
            83..88 => ProgramStep::Flush {
                pick: self.random.any(),
                from: self.random.below(257),
                size: self.random.below(257),
                invalidate: self.chance(40),
            },
            88..96 => {
                let resource = self.resource();
                ProgramStep::Find { resource, spec: self.spec(&resource) }
            }
            96..98 => ProgramStep::Budget {
                heap: self.random.any(),
                budget: self.random.below(300),
                others: self.random.below(200),
            },
            _ => ProgramStep::Frame,
        }
    }

    fn fault(&mut self) -> Option<Fault> {
        if !self.chance(5) {
            return None;
        }
        let call = if self.chance(80) { FaultyCall::Allocate } else { FaultyCall::Map };
        let results: &[vk::Result] = match call {
            FaultyCall::Allocate => &[
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
                vk::Result::ERROR_OUT_OF_HOST_MEMORY,
                vk::Result::ERROR_TOO_MANY_OBJECTS,
                vk::Result::ERROR_DEVICE_LOST,
            ],
            FaultyCall::Map => &[vk::Result::ERROR_MEMORY_MAP_FAILED, vk::Result::ERROR_OUT_OF_HOST_MEMORY],
        };
        let times = if self.chance(30) { MANY } else { 1 + self.random.below(4) as u32 };
        Some(Fault { call, skip: self.random.below(2) as u32, times, result: self.one(results) })
    }

    fn memory_type(&mut self) -> u32 {
        self.random.below(self.setup.profile.types.len() as u64) as u32
    }

    fn size(&mut self) -> u64 {
        let memory_type = self.memory_type();
        let block = self.setup.block_size(memory_type);
        match self.random.below(100) {
            0..30 => self.random.log_uniform(4, 16),
            30..52 => self.random.log_uniform(16, 23),
            52..82 => (block / (2 + self.random.below(31))).saturating_sub(self.random.below(4096)).max(1),
            82..92 => (block / 2 + 2).saturating_sub(self.random.below(4)).max(1),
            92..95 => block + 1 - self.random.below(3),
            95..99 => self.random.log_uniform(27, 34),
            _ => 0,
        }
    }

    fn buffer(&mut self) -> BufferSpec {
        let limit = self.setup.profile.limits.max_buffer_size;
        let size = self.size().min(limit);
        let mut usage = vk::BufferUsageFlags::empty();
        if self.chance(60) {
            let all = [
                vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER,
                vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER,
                vk::BufferUsageFlags::UNIFORM_BUFFER,
                vk::BufferUsageFlags::STORAGE_BUFFER,
                vk::BufferUsageFlags::INDEX_BUFFER,
                vk::BufferUsageFlags::VERTEX_BUFFER,
                vk::BufferUsageFlags::INDIRECT_BUFFER,
            ];
            usage |= self.one(&all);
            if self.chance(30) {
                usage |= self.one(&all);
            }
        }
        if self.chance(50) || usage.is_empty() {
            usage |= vk::BufferUsageFlags::TRANSFER_DST;
        }
        if self.chance(30) {
            usage |= vk::BufferUsageFlags::TRANSFER_SRC;
        }
        if self.can_address && self.chance(20) {
            usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        BufferSpec { size, usage }
    }

    fn image(&mut self) -> ImageSpec {
        let limit = u64::from(self.setup.profile.limits.max_image_dimension_2d.min(8192));
        let mut side = || self.random.log_uniform(0, 13).min(limit) as u32;
        let extent = (side(), side());
        if self.chance(12) {
            let usage = vk::ImageUsageFlags::TRANSIENT_ATTACHMENT | vk::ImageUsageFlags::COLOR_ATTACHMENT;
            let (mips, layers, tiling) = (1, 1, vk::ImageTiling::OPTIMAL);
            return ImageSpec { format: vk::Format::R8G8B8A8_UNORM, extent, mips, layers, tiling, usage };
        }
        let mut usage = vk::ImageUsageFlags::empty();
        let depth = self.chance(15);
        if depth {
            usage |= vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
        } else if self.chance(40) {
            usage |= vk::ImageUsageFlags::COLOR_ATTACHMENT;
        }
        if self.chance(70) {
            usage |= vk::ImageUsageFlags::SAMPLED;
        }
        if self.chance(50) || usage.is_empty() {
            usage |= vk::ImageUsageFlags::TRANSFER_DST;
        }
        let linear = !depth && self.chance(25);
        let full = 32 - extent.0.max(extent.1).leading_zeros();
        let mips = if linear || self.chance(60) { 1 } else { full };
        let layers = if linear || self.chance(80) { 1 } else { 1 + self.random.below(6) as u32 };
        let tiling = if linear { vk::ImageTiling::LINEAR } else { vk::ImageTiling::OPTIMAL };
        let color = [vk::Format::R8G8B8A8_UNORM, vk::Format::R16G16B16A16_SFLOAT, vk::Format::R8_UNORM];
        let format = if depth { vk::Format::D32_SFLOAT } else { self.one(&color) };
        ImageSpec { format, extent, mips, layers, tiling, usage }
    }

    fn resource(&mut self) -> ProgramResource {
        match self.random.below(100) {
            0..34 => {
                let all = self.setup.profile.all_types();
                let bits = if self.chance(60) { all } else { self.random.any() as u32 & all };
                let alignment = 1 << self.one(&[0_u32, 4, 6, 8, 8, 8, 12, 16]);
                ProgramResource::Raw { size: self.size(), alignment, bits }
            }
            34..66 => {
                let min_alignment = if self.chance(15) { 1 << self.random.below(17) } else { 0 };
                ProgramResource::Buffer { buffer: self.buffer(), min_alignment }
            }
            66..92 => ProgramResource::Image(self.image()),
            92..96 => {
                let mut buffer = self.buffer();
                buffer.size = buffer.size.max(1);
                ProgramResource::ForBuffer(buffer)
            }
            _ => ProgramResource::ForImage(self.image()),
        }
    }

    /// Returns properties that some memory type has.
    fn properties(&mut self) -> vk::MemoryPropertyFlags {
        let memory_type = self.memory_type();
        let has = self.setup.profile.types[memory_type as usize].flags;
        if self.chance(90) {
            has & vk::MemoryPropertyFlags::from_raw(self.random.any() as u32)
        } else {
            vk::MemoryPropertyFlags::from_raw(1 << self.random.below(8))
        }
    }

    fn spec(&mut self, resource: &ProgramResource) -> Spec {
        let mut flags = Flags::empty();
        for (flag, percent) in [
            (Flags::DEDICATED_MEMORY, 7),
            (Flags::NEVER_ALLOCATE, 4),
            (Flags::MAPPED, 18),
            (Flags::UPPER_ADDRESS, 3),
            (Flags::DONT_BIND, 3),
            (Flags::WITHIN_BUDGET, 8),
            (Flags::CAN_ALIAS, 8),
        ] {
            if self.chance(percent) {
                flags |= flag;
            }
        }
        match self.random.below(100) {
            0..50 => {}
            50..74 => flags |= Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
            74..99 => flags |= Flags::HOST_ACCESS_RANDOM,
            _ => flags |= Flags::HOST_ACCESS_MASK,
        }
        if flags.intersects(Flags::HOST_ACCESS_MASK) && self.chance(25) || self.chance(1) {
            flags |= Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD;
        }
        let strategies = [Flags::STRATEGY_MIN_MEMORY, Flags::STRATEGY_MIN_TIME, Flags::STRATEGY_MIN_OFFSET];
        if self.chance(30) {
            flags |= self.one(&strategies);
        }
        if self.chance(1) {
            flags |= self.one(&strategies);
        }
        let knows = matches!(resource, ProgramResource::Buffer { .. } | ProgramResource::Image(_));
        let mut usage = if knows && self.chance(50) {
            self.one(&MemoryUsage::ALL[7..])
        } else {
            self.one(MemoryUsage::ALL)
        };
        if !knows && usage.is_auto() && self.chance(90) {
            usage = self.one(&MemoryUsage::ALL[..6]);
        }
        if usage == MemoryUsage::GpuLazilyAllocated && self.chance(50) {
            usage = MemoryUsage::GpuOnly;
        }
        if flags.contains(Flags::MAPPED)
            && usage.is_auto()
            && !flags.intersects(Flags::HOST_ACCESS_MASK)
            && self.chance(90)
        {
            flags |= Flags::HOST_ACCESS_RANDOM;
        }
        Spec {
            flags,
            usage,
            required: if self.chance(12) { self.properties() } else { vk::MemoryPropertyFlags::empty() },
            preferred: if self.chance(20) { self.properties() } else { vk::MemoryPropertyFlags::empty() },
            bits: if self.chance(10) { self.random.any() as u32 } else { 0 },
            pool: if self.chance(30) { Some(self.random.any()) } else { None },
            priority: self.one(&[0.0, 0.25, 0.5, 0.5, 1.0]),
        }
    }

    fn pool(&mut self) -> PoolSpec {
        let memory_type = if self.chance(3) { 31 } else { self.memory_type() };
        let block_size = match self.random.below(10) {
            0..4 => 0,
            4..7 => 1 << (16 + self.random.below(10)),
            7..9 => self.random.log_uniform(16, 26),
            _ => self.random.log_uniform(27, 37),
        };
        let mut flags = PoolCreateFlags::empty();
        if self.chance(20) {
            flags |= PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY;
        }
        PoolSpec {
            memory_type,
            flags,
            linear: self.chance(25),
            block_size,
            min_blocks: if self.chance(30) { self.random.below(4) as u32 } else { 0 },
            max_blocks: if self.chance(50) { self.random.below(4) as u32 } else { 0 },
            priority: self.one(&[0.0, 0.25, 0.5, 1.0]),
            min_alignment: if self.chance(20) { 1 << self.random.below(13) } else { 0 },
        }
    }
}
