//! The measured allocators: one trait, one file for each.
//!
//! Peers are used as their users would. Those that are not thread-safe are measured without a lock on one thread, which
//! favours them. With several threads they are behind a `parking_lot::Mutex`, as [`LockedPeer`].

mod driver;
mod gpu_alloc;
mod gpu_allocator;
mod nothing;
mod offset_allocator;
pub(crate) mod replay;
pub(crate) mod sets;
mod sublet;
pub(crate) mod vma;

use ash::vk;
use parking_lot::Mutex;

use crate::gpu::TestGpu;
use crate::script::{PeerRequest, PeerRequestKind};

/// An allocator under test.
pub(crate) trait Peer: Sized {
    /// The handle of the caller.
    type Allocation: Send;

    /// Allocates. `None` if there is no space, or on any other error.
    fn allocate(&mut self, request: &PeerRequest) -> Option<Self::Allocation>;

    fn free(&mut self, allocation: Self::Allocation);

    /// Ends a frame, after its submission.
    fn end_frame(&mut self) {}

    /// Frees everything at once. Returns false if the peer cannot.
    fn reset(&mut self) -> bool {
        false
    }

    /// Returns the peer's count of live allocations, if it has one.
    fn live(&self) -> Option<u64>;

    /// Returns the capacity of an engine without a driver, in bytes.
    fn capacity(&self) -> Option<u64> {
        None
    }

    /// Destroys the peer. Returns an error if its state is wrong.
    fn finish(self) -> Result<(), String>;
}

/// An allocator that creates buffers and images with their memory.
pub(crate) trait Creates: Peer {
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, Self::Allocation)>;
    fn destroy(&mut self, resource: PeerResource, allocation: Self::Allocation);
}

/// A peer that creates resources instead of bare memory.
pub(crate) struct CreatingPeer<P>(P);

impl<P: Creates> Peer for CreatingPeer<P> {
    type Allocation = (PeerResource, P::Allocation);

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<Self::Allocation> {
        self.0.create(request)
    }

    #[inline]
    fn free(&mut self, (resource, allocation): Self::Allocation) {
        self.0.destroy(resource, allocation);
    }

    fn end_frame(&mut self) {
        self.0.end_frame();
    }

    fn live(&self) -> Option<u64> {
        self.0.live()
    }

    fn finish(self) -> Result<(), String> {
        self.0.finish()
    }
}

/// An allocator that several threads can use at once.
pub(crate) trait SharedPeer: Sync + Sized {
    type Allocation: Send;

    fn allocate(&self, request: &PeerRequest) -> Option<Self::Allocation>;
    fn free(&self, allocation: Self::Allocation);
    fn live(&self) -> Option<u64>;
    fn finish(self) -> Result<(), String>;
}

/// A peer behind one lock.
pub(crate) struct LockedPeer<P>(Mutex<P>);

impl<P: Peer + Send> SharedPeer for LockedPeer<P> {
    type Allocation = P::Allocation;

    fn allocate(&self, request: &PeerRequest) -> Option<Self::Allocation> {
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
    /// The driver's own calls, without an allocator.
    Driver,
    /// No work: the cost of the measurement itself.
    Nothing,
}

impl PeerKind {
    pub(crate) const ALL: [Self; 11] = [
        Self::Sublet,
        Self::Vma,
        Self::GpuAllocator,
        Self::StandIn,
        Self::GpuAlloc,
        Self::SubletEngine,
        Self::SubletVirtual,
        Self::VmaVirtual,
        Self::OffsetAllocator,
        Self::Driver,
        Self::Nothing,
    ];

    /// Returns its name on the command line.
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
            Self::Driver => "driver",
            Self::Nothing => "loop",
        }
    }

    /// Returns its name in table headings.
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

    /// Returns the bytes of the caller's handle.
    pub(crate) fn handle_bytes(self) -> usize {
        match self {
            // The caller holds the resource separately, so this is the size of the peer's own type.
            Self::Sublet => size_of::<::sublet::Allocation>(),
            Self::Vma => vma::HANDLES.0,
            Self::GpuAllocator => size_of::<::gpu_allocator::vulkan::Allocation>(),
            Self::StandIn => size_of::<::gpu_allocator_stand_in::vulkan::Allocation>(),
            Self::GpuAlloc => size_of::<::gpu_alloc::MemoryBlock<ash::vk::DeviceMemory>>(),
            Self::SubletEngine => size_of::<::sublet::metadata::Key>(),
            Self::SubletVirtual => size_of::<::sublet::VirtualAllocation>(),
            Self::VmaVirtual => vma::HANDLES.1,
            Self::OffsetAllocator => size_of::<::offset_allocator::Allocation>(),
            Self::Driver | Self::Nothing => 0,
        }
    }

    /// Divisor of the number of pairs, for slow peers.
    pub(crate) const fn patience(self, live: usize) -> usize {
        match self {
            Self::GpuAllocator if live > 20_000 => 40,
            Self::GpuAllocator if live > 2_000 => 20,
            Self::GpuAllocator => 4,
            _ => 1,
        }
    }
}

/// The operating mode of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerMode {
    /// Default settings.
    Default,
    /// Default settings, creating resources with their memory.
    Created,
    /// The same, and `Allocator::maintain` ends each frame. Only Sublet has it.
    Maintained,
    /// A pool of blocks of this size: at least `min`, and at most `max` if it is not 0.
    Pool { block_size: u64, min: usize, max: usize },
    /// A linear pool of one block, or the peer's equivalent.
    LinearPool { block_size: u64 },
    /// An engine of this many units.
    Engine { capacity: u64 },
    /// A linear engine of this many units.
    LinearEngine { capacity: u64 },
}

/// The settings of a new peer.
#[derive(Clone, Copy)]
pub(crate) struct PeerSetup<'a> {
    pub(crate) gpu: &'a TestGpu,
    pub(crate) shape: PeerMode,
    /// True if host memory is counted. VMA then gets callbacks.
    pub(crate) count_heap: bool,
}

/// A function that is generic over the type of the peer.
pub(crate) trait Visit {
    type Output;
    fn visit<P: Peer + 'static>(self, peer: P) -> Self::Output;
}

/// Same for peers that threads share.
pub(crate) trait VisitShared {
    type Output;
    fn visit<P: SharedPeer>(self, peer: P) -> Self::Output;
}

/// Creates a peer. `None` if it does not support the shape.
pub(crate) fn make<V: Visit>(
    kind: PeerKind,
    setup: PeerSetup<'_>,
    visit: V,
) -> Result<Option<V::Output>, String> {
    let PeerSetup { gpu, shape, count_heap } = setup;
    Ok(match kind {
        PeerKind::Sublet => sublet::shared(gpu, shape)?.map(|peer| whole(peer, shape, visit)),
        PeerKind::Vma => vma::Vma::new(gpu, shape, count_heap)?.map(|peer| whole(peer, shape, visit)),
        PeerKind::GpuAllocator => {
            gpu_allocator::GpuAllocator::new(gpu, shape)?.map(|peer| whole(peer, shape, visit))
        }
        PeerKind::StandIn => None,
        PeerKind::GpuAlloc => gpu_alloc::GpuAlloc::new(gpu, shape).map(|peer| whole(peer, shape, visit)),
        PeerKind::SubletEngine => match shape {
            PeerMode::Engine { capacity } => Some(visit.visit(sublet::tlsf(capacity)?)),
            PeerMode::LinearEngine { capacity } => Some(visit.visit(sublet::linear(capacity)?)),
            _ => None,
        },
        PeerKind::SubletVirtual => sublet::virtual_block(shape)?.map(|peer| visit.visit(peer)),
        PeerKind::VmaVirtual => vma::VmaVirtual::new(shape, count_heap)?.map(|peer| visit.visit(peer)),
        PeerKind::OffsetAllocator => {
            offset_allocator::OffsetAllocator::new(shape).map(|peer| visit.visit(peer))
        }
        PeerKind::Driver => driver::DriverAlone::new(gpu, shape)?.map(|peer| visit.visit(peer)),
        PeerKind::Nothing => Some(visit.visit(nothing::NothingPeer)),
    })
}

/// Passes an allocator to a visitor, in the mode that the shape selects.
fn whole<P: Creates + 'static, V: Visit>(peer: P, shape: PeerMode, visit: V) -> V::Output {
    match shape {
        PeerMode::Created | PeerMode::Maintained => visit.visit(CreatingPeer(peer)),
        _ => visit.visit(peer),
    }
}

/// Creates a peer for several threads, in its default shape. `None` for engines.
pub(crate) fn make_shared<V: VisitShared>(
    kind: PeerKind,
    gpu: &TestGpu,
    visit: V,
) -> Result<Option<V::Output>, String> {
    let shape = PeerMode::Default;
    Ok(match kind {
        PeerKind::Sublet => sublet::shared(gpu, shape)?.map(|peer| visit.visit(peer)),
        PeerKind::Vma => vma::Vma::new(gpu, shape, false)?.map(|peer| visit.visit(peer)),
        PeerKind::GpuAllocator => {
            let peer = gpu_allocator::GpuAllocator::new(gpu, shape)?;
            peer.map(|peer| visit.visit(LockedPeer(Mutex::new(peer))))
        }
        PeerKind::GpuAlloc => {
            gpu_alloc::GpuAlloc::new(gpu, shape).map(|peer| visit.visit(LockedPeer(Mutex::new(peer))))
        }
        PeerKind::Nothing => Some(visit.visit(nothing::NothingPeer)),
        _ => None,
    })
}

/// Creates Sublet's own allocator for queries.
pub(crate) fn with_sublet<R>(
    gpu: &TestGpu,
    ask: impl FnOnce(&::sublet::Allocator) -> R,
) -> Result<R, String> {
    Ok(ask(&sublet::create(gpu)?))
}

/// Returns the create-info of the requested buffer.
fn buffer_info(request: &PeerRequest) -> vk::BufferCreateInfo<'static> {
    let usage = match request.kind {
        PeerRequestKind::Upload => vk::BufferUsageFlags::TRANSFER_SRC,
        _ => vk::BufferUsageFlags::STORAGE_BUFFER,
    };
    vk::BufferCreateInfo::default().size(request.size).usage(usage)
}

/// Returns the create-info of the requested image.
fn image_info(request: &PeerRequest) -> vk::ImageCreateInfo<'static> {
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
pub(crate) enum PeerResource {
    Buffer(vk::Buffer),
    Image(vk::Image),
}

/// Resource creation for peers whose users do it themselves.
#[expect(unsafe_code, reason = "calls Vulkan")]
impl PeerResource {
    fn create(device: &ash::Device, request: &PeerRequest) -> Option<(Self, vk::MemoryRequirements)> {
        if request.kind == PeerRequestKind::Image {
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
