//! The input of both allocators: a setup and a list of steps.
//!
//! A step refers to live allocations and pools by an index modulo their number. A program therefore stays valid when
//! steps are removed.

use ash::vk;
use sublet::{
    AllocationCreateFlags, AllocationCreateInfo, AllocatorCreateFlags, MemoryUsage, Pool, PoolCreateFlags,
    sim,
};

use super::tap::Fault;

/// The settings of the allocators, and their device.
#[derive(Clone, Debug)]
pub(super) struct ProgramSetup {
    pub(super) profile: &'static sim::Profile,
    pub(super) minor: u32,
    pub(super) flags: AllocatorCreateFlags,
    pub(super) large_block: u64,
    /// Empty for none.
    pub(super) heap_limits: Vec<u64>,
    /// `maxMemoryAllocationCount`, if it differs from the profile's.
    pub(super) max_count: Option<u32>,
    /// Only for Sublet. VMA keeps at most one.
    pub(super) empty_blocks_kept: u32,
}

impl ProgramSetup {
    /// Returns the version of Vulkan.
    pub(super) fn version(&self) -> u32 {
        vk::make_api_version(0, 1, self.minor, 0)
    }

    /// Returns the part of the heap that the allocators may use.
    pub(super) fn heap_size(&self, heap: u32) -> u64 {
        let limit = self.heap_limits.get(heap as usize).copied().unwrap_or(vk::WHOLE_SIZE);
        self.profile.heaps[heap as usize].size.min(limit)
    }

    /// Returns the preferred block size in a memory type, as VMA documents it.
    pub(super) fn block_size(&self, memory_type: u32) -> u64 {
        let heap = self.heap_size(self.profile.types[memory_type as usize].heap);
        let large = if self.large_block == 0 { 256 << 20 } else { self.large_block };
        (if heap <= 1 << 30 { heap / 8 } else { large }).next_multiple_of(32)
    }

    /// Returns true if that exceeds the heap or the maximum size of one allocation.
    pub(super) fn has_large_blocks(&self, memory_type: u32) -> bool {
        let heap = self.heap_size(self.profile.types[memory_type as usize].heap);
        self.block_size(memory_type) > heap.min(self.profile.limits.max_memory_allocation_size)
    }
}

/// The equivalent of a `VmaAllocationCreateInfo`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) flags: AllocationCreateFlags,
    pub(super) usage: MemoryUsage,
    pub(super) required: vk::MemoryPropertyFlags,
    pub(super) preferred: vk::MemoryPropertyFlags,
    pub(super) bits: u32,
    pub(super) pool: Option<u64>,
    pub(super) priority: f32,
}

impl Spec {
    pub(super) fn sublet<'a>(&self, pool: Option<&'a Pool>, min_alignment: u64) -> AllocationCreateInfo<'a> {
        AllocationCreateInfo {
            flags: self.flags,
            usage: self.usage,
            required_flags: self.required,
            preferred_flags: self.preferred,
            memory_type_bits: self.bits,
            pool,
            priority: self.priority,
            min_alignment,
            ..Default::default()
        }
    }
}

/// The equivalent of a `VmaPoolCreateInfo`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolSpec {
    pub(super) memory_type: u32,
    pub(super) flags: PoolCreateFlags,
    pub(super) linear: bool,
    pub(super) block_size: u64,
    pub(super) min_blocks: u32,
    pub(super) max_blocks: u32,
    pub(super) priority: f32,
    pub(super) min_alignment: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BufferSpec {
    pub(super) size: u64,
    pub(super) usage: vk::BufferUsageFlags,
}

impl BufferSpec {
    pub(super) fn info(&self) -> vk::BufferCreateInfo<'static> {
        vk::BufferCreateInfo::default().size(self.size).usage(self.usage)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ImageSpec {
    pub(super) format: vk::Format,
    pub(super) extent: (u32, u32),
    pub(super) mips: u32,
    pub(super) layers: u32,
    pub(super) tiling: vk::ImageTiling,
    pub(super) usage: vk::ImageUsageFlags,
}

impl ImageSpec {
    pub(super) fn info(&self) -> vk::ImageCreateInfo<'static> {
        vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(self.format)
            .extent(vk::Extent3D { width: self.extent.0, height: self.extent.1, depth: 1 })
            .mip_levels(self.mips)
            .array_layers(self.layers)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(self.tiling)
            .usage(self.usage)
    }
}

/// The resource or requirements of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProgramResource {
    Raw {
        size: u64,
        alignment: u64,
        bits: u32,
    },
    Buffer {
        buffer: BufferSpec,
        min_alignment: u64,
    },
    Image(ImageSpec),
    /// A buffer that the program created, whose usage the allocator does not know.
    ForBuffer(BufferSpec),
    ForImage(ImageSpec),
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProgramStep {
    CreatePool(PoolSpec),
    DestroyPool(u64),
    Allocate {
        resource: ProgramResource,
        spec: Spec,
        fault: Option<Fault>,
    },
    Free(u64),
    Map(u64),
    Unmap(u64),
    /// Offset and size in 256ths of the allocation. A size of 256 is `VK_WHOLE_SIZE`.
    Flush {
        pick: u64,
        from: u64,
        size: u64,
        invalidate: bool,
    },
    Find {
        resource: ProgramResource,
        spec: Spec,
    },
    /// The heap's budget and the usage of other processes, in 256ths of the heap.
    Budget {
        heap: u64,
        budget: u64,
        others: u64,
    },
    Frame,
}

impl ProgramStep {
    /// Returns its name for `--only`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::CreatePool(_) => "create-pool",
            Self::DestroyPool(_) => "destroy-pool",
            Self::Allocate { resource, .. } => match resource {
                ProgramResource::Raw { .. } => "raw",
                ProgramResource::Buffer { .. } => "buffer",
                ProgramResource::Image(_) => "image",
                ProgramResource::ForBuffer(_) => "for-buffer",
                ProgramResource::ForImage(_) => "for-image",
            },
            Self::Free(_) => "free",
            Self::Map(_) => "map",
            Self::Unmap(_) => "unmap",
            Self::Flush { .. } => "flush",
            Self::Find { .. } => "find",
            Self::Budget { .. } => "budget",
            Self::Frame => "frame",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct RandomProgram {
    pub(super) seed: u64,
    pub(super) setup: ProgramSetup,
    pub(super) steps: Vec<ProgramStep>,
}
