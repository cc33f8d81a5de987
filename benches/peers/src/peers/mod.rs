//! The allocators that are measured: one trait, one file for each.
//!
//! A peer is driven as its users drive it. Those that are not thread-safe are measured without a lock where one thread
//! is at work, which flatters them, and behind a `parking_lot::Mutex`, as [`Locked`], where there are more.

mod driver;
mod gpu_alloc;
mod gpu_allocator;
mod nothing;
mod offset_allocator;
pub(crate) mod replay;
mod rlsf;
pub(crate) mod sets;
mod sublet;
pub(crate) mod vma;

use ash::vk;
use parking_lot::Mutex;

use crate::gpu::Gpu;
use crate::script::{Kind, Request};

/// An allocator under test.
pub(crate) trait Peer: Sized {
    /// What the caller holds.
    type Allocation: Send;

    /// `None` if there is no room, or on any other error.
    fn allocate(&mut self, request: &Request) -> Option<Self::Allocation>;

    fn free(&mut self, allocation: Self::Allocation);

    /// Gives everything back at once. Whether it can.
    fn reset(&mut self) -> bool {
        false
    }

    /// Live allocations as the peer counts them, if it does.
    fn live(&self) -> Option<u64>;

    /// Bytes that an engine without a driver has been given to divide.
    fn capacity(&self) -> Option<u64> {
        None
    }

    /// Ends the peer. An error if it was left in a wrong state.
    fn finish(self) -> Result<(), String>;
}

/// An allocator that makes buffers and images with their memory.
pub(crate) trait Creates: Peer {
    fn create(&mut self, request: &Request) -> Option<(Resource, Self::Allocation)>;
    fn destroy(&mut self, resource: Resource, allocation: Self::Allocation);
}

/// A peer that is asked for resources, not for memory.
pub(crate) struct Created<P>(P);

impl<P: Creates> Peer for Created<P> {
    type Allocation = (Resource, P::Allocation);

    #[inline]
    fn allocate(&mut self, request: &Request) -> Option<Self::Allocation> {
        self.0.create(request)
    }

    #[inline]
    fn free(&mut self, (resource, allocation): Self::Allocation) {
        self.0.destroy(resource, allocation);
    }

    fn live(&self) -> Option<u64> {
        self.0.live()
    }

    fn finish(self) -> Result<(), String> {
        self.0.finish()
    }
}

/// An allocator that several threads use at once.
pub(crate) trait SharedPeer: Sync + Sized {
    type Allocation: Send;

    fn allocate(&self, request: &Request) -> Option<Self::Allocation>;
    fn free(&self, allocation: Self::Allocation);
    fn live(&self) -> Option<u64>;
    fn finish(self) -> Result<(), String>;
}

/// A peer behind one lock.
pub(crate) struct Locked<P>(Mutex<P>);

impl<P: Peer + Send> SharedPeer for Locked<P> {
    type Allocation = P::Allocation;

    fn allocate(&self, request: &Request) -> Option<Self::Allocation> {
        self.0.lock().allocate(request)
    }

    fn free(&self, allocation: Self::Allocation) {
        self.0.lock().free(allocation);
    }

    fn live(&self) -> Option<u64> {
        self.0.lock().live()
    }

    fn finish(self) -> Result<(), String> {
        self.0.into_inner().finish()
    }
}

/// The columns of the tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(crate) enum PeerKind {
    /// Sublet's thread-safe allocator.
    Sublet,
    Vma,
    GpuAllocator,
    /// Sublet behind gpu-allocator's interface. Only in replays with wgpu's sizes.
    StandIn,
    GpuAlloc,
    /// Sublet's engine, called directly.
    SubletEngine,
    SubletVirtual,
    VmaVirtual,
    OffsetAllocator,
    Rlsf,
    /// The driver's own calls, without an allocator.
    Driver,
    /// Nothing at all: what the measuring itself costs.
    Nothing,
}

impl PeerKind {
    pub(crate) const ALL: [Self; 12] = [
        Self::Sublet,
        Self::Vma,
        Self::GpuAllocator,
        Self::StandIn,
        Self::GpuAlloc,
        Self::SubletEngine,
        Self::SubletVirtual,
        Self::VmaVirtual,
        Self::OffsetAllocator,
        Self::Rlsf,
        Self::Driver,
        Self::Nothing,
    ];

    /// For the command line.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Sublet => "sublet",
            Self::Vma => "vma",
            Self::GpuAllocator => "gpu-allocator",
            Self::StandIn => "stand-in",
            Self::GpuAlloc => "gpu-alloc",
            Self::SubletEngine => "sublet-engine",
            Self::SubletVirtual => "sublet-virtual",
            Self::VmaVirtual => "vma-virtual",
            Self::OffsetAllocator => "offset-allocator",
            Self::Rlsf => "rlsf",
            Self::Driver => "driver",
            Self::Nothing => "loop",
        }
    }

    /// For the heads of tables.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Sublet => "Sublet",
            Self::Vma => "VMA",
            Self::SubletEngine => "Sublet engine",
            Self::SubletVirtual => "Sublet virtual block",
            Self::VmaVirtual => "VMA virtual block",
            Self::Driver => "driver alone",
            other => other.id(),
        }
    }

    /// Bytes of what the caller holds.
    pub(crate) fn handle_bytes(self) -> usize {
        fn of<P: Peer>() -> usize {
            size_of::<P::Allocation>()
        }
        match self {
            // Here the resource is held beside the allocation, so the peers' own types are asked.
            Self::Sublet => size_of::<::sublet::Allocation>(),
            Self::Vma => vma::HANDLES.0,
            Self::GpuAllocator => size_of::<::gpu_allocator::vulkan::Allocation>(),
            Self::StandIn => size_of::<::gpu_allocator_stand_in::vulkan::Allocation>(),
            Self::GpuAlloc => size_of::<::gpu_alloc::MemoryBlock<ash::vk::DeviceMemory>>(),
            Self::SubletEngine => size_of::<::sublet::metadata::Key>(),
            Self::SubletVirtual => size_of::<::sublet::VirtualAllocation>(),
            Self::VmaVirtual => vma::HANDLES.1,
            Self::OffsetAllocator => size_of::<::offset_allocator::Allocation>(),
            Self::Rlsf => of::<rlsf::Rlsf>(),
            Self::Driver | Self::Nothing => 0,
        }
    }

    /// How many times fewer pairs are enough, so that a table is done before the day is.
    pub(crate) const fn patience(self, live: usize) -> usize {
        match self {
            Self::GpuAllocator if live > 20_000 => 40,
            Self::GpuAllocator if live > 2_000 => 20,
            Self::GpuAllocator => 4,
            _ => 1,
        }
    }
}

/// How a peer is to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As it comes.
    Default,
    /// The same, and resources with their memory are asked for.
    Created,
    /// A pool of blocks of that size; at least so many, and at most so many if not 0.
    Pool { block_size: u64, min: usize, max: usize },
    /// A linear pool of one block, or what a peer has instead of it.
    LinearPool { block_size: u64 },
    /// An engine of that many units.
    Engine { capacity: u64 },
    /// A linear engine of that many units.
    LinearEngine { capacity: u64 },
}

/// What a peer is made from.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) shape: Shape,
    /// Whether host memory is counted: then VMA is given callbacks.
    pub(crate) count_heap: bool,
}

/// Who has something to do with a peer of whatever type.
pub(crate) trait Visit {
    type Output;
    fn visit<P: Peer + 'static>(self, peer: P) -> Self::Output;
}

/// The same with a peer that threads share.
pub(crate) trait VisitShared {
    type Output;
    fn visit<P: SharedPeer>(self, peer: P) -> Self::Output;
}

/// Makes a peer. `None` if it has no such shape.
pub(crate) fn make<V: Visit>(
    kind: PeerKind,
    setup: Setup<'_>,
    visit: V,
) -> Result<Option<V::Output>, String> {
    let Setup { gpu, shape, count_heap } = setup;
    Ok(match kind {
        PeerKind::Sublet => sublet::shared(gpu, shape)?.map(|peer| whole(peer, shape, visit)),
        PeerKind::Vma => vma::Vma::new(gpu, shape, count_heap)?.map(|peer| whole(peer, shape, visit)),
        PeerKind::GpuAllocator => {
            gpu_allocator::GpuAllocator::new(gpu, shape)?.map(|peer| whole(peer, shape, visit))
        }
        PeerKind::StandIn => None,
        PeerKind::GpuAlloc => gpu_alloc::GpuAlloc::new(gpu, shape).map(|peer| whole(peer, shape, visit)),
        PeerKind::SubletEngine => match shape {
            Shape::Engine { capacity } => Some(visit.visit(sublet::tlsf(capacity)?)),
            Shape::LinearEngine { capacity } => Some(visit.visit(sublet::linear(capacity)?)),
            _ => None,
        },
        PeerKind::SubletVirtual => sublet::virtual_block(shape)?.map(|peer| visit.visit(peer)),
        PeerKind::VmaVirtual => vma::VmaVirtual::new(shape, count_heap)?.map(|peer| visit.visit(peer)),
        PeerKind::OffsetAllocator => {
            offset_allocator::OffsetAllocator::new(shape).map(|peer| visit.visit(peer))
        }
        PeerKind::Rlsf => rlsf::Rlsf::new(shape)?.map(|peer| visit.visit(peer)),
        PeerKind::Driver => driver::DriverAlone::new(gpu, shape)?.map(|peer| visit.visit(peer)),
        PeerKind::Nothing => Some(visit.visit(nothing::Nothing)),
    })
}

/// An allocator is visited as what the shape says it is to do.
fn whole<P: Creates + 'static, V: Visit>(peer: P, shape: Shape, visit: V) -> V::Output {
    if shape == Shape::Created { visit.visit(Created(peer)) } else { visit.visit(peer) }
}

/// Makes a peer for several threads, in its default shape. `None` for engines.
pub(crate) fn make_shared<V: VisitShared>(
    kind: PeerKind,
    gpu: &Gpu,
    visit: V,
) -> Result<Option<V::Output>, String> {
    let shape = Shape::Default;
    Ok(match kind {
        PeerKind::Sublet => sublet::shared(gpu, shape)?.map(|peer| visit.visit(peer)),
        PeerKind::Vma => vma::Vma::new(gpu, shape, false)?.map(|peer| visit.visit(peer)),
        PeerKind::GpuAllocator => {
            let peer = gpu_allocator::GpuAllocator::new(gpu, shape)?;
            peer.map(|peer| visit.visit(Locked(Mutex::new(peer))))
        }
        PeerKind::GpuAlloc => {
            gpu_alloc::GpuAlloc::new(gpu, shape).map(|peer| visit.visit(Locked(Mutex::new(peer))))
        }
        PeerKind::Nothing => Some(visit.visit(nothing::Nothing)),
        _ => None,
    })
}

/// Sublet's own allocator, for who has to ask it something.
pub(crate) fn with_sublet<R>(gpu: &Gpu, ask: impl FnOnce(&::sublet::Allocator) -> R) -> Result<R, String> {
    Ok(ask(&sublet::create(gpu)?))
}

/// The buffer that is asked for.
fn buffer_info(request: &Request) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(request.size).usage(vk::BufferUsageFlags::STORAGE_BUFFER)
}

/// The image that is asked for.
fn image_info(request: &Request) -> vk::ImageCreateInfo<'static> {
    let edge = request.size as u32;
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: edge, height: edge, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .tiling(vk::ImageTiling::OPTIMAL)
        .usage(vk::ImageUsageFlags::SAMPLED)
}

/// A buffer or an image.
pub(crate) enum Resource {
    Buffer(vk::Buffer),
    Image(vk::Image),
}

/// What the users of a peer do who have to make resources themselves.
#[expect(unsafe_code, reason = "calls Vulkan")]
impl Resource {
    fn create(device: &ash::Device, request: &Request) -> Option<(Self, vk::MemoryRequirements)> {
        if request.kind == Kind::Image {
            // SAFETY: the create-info is complete.
            let image = unsafe { device.create_image(&image_info(request), None) }.ok()?;
            // SAFETY: made just now.
            return Some((Self::Image(image), unsafe { device.get_image_memory_requirements(image) }));
        }
        // SAFETY: the create-info is complete.
        let buffer = unsafe { device.create_buffer(&buffer_info(request), None) }.ok()?;
        // SAFETY: made just now.
        Some((Self::Buffer(buffer), unsafe { device.get_buffer_memory_requirements(buffer) }))
    }

    fn bind(&self, device: &ash::Device, memory: vk::DeviceMemory, offset: u64) -> bool {
        let bound = match self {
            // SAFETY: the memory was allocated for these requirements.
            Self::Buffer(buffer) => unsafe { device.bind_buffer_memory(*buffer, memory, offset) },
            // SAFETY: as above.
            Self::Image(image) => unsafe { device.bind_image_memory(*image, memory, offset) },
        };
        bound.is_ok()
    }

    fn destroy(self, device: &ash::Device) {
        match self {
            // SAFETY: no device uses it.
            Self::Buffer(buffer) => unsafe { device.destroy_buffer(buffer, None) },
            // SAFETY: no device uses it.
            Self::Image(image) => unsafe { device.destroy_image(image, None) },
        }
    }
}
