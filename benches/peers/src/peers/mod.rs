//! The measured allocators: one trait, one file for each.
//!
//! Peers are used as their users would. Those that are not thread-safe are measured without a lock on one thread, which
//! favours them. With several threads they are behind a `parking_lot::Mutex`, as [`LockedPeer`].

mod driver;
mod gpu_alloc;
mod gpu_allocator;
pub(crate) mod sets;
mod sublet;
pub(crate) mod vma;

use ::sublet::trace::PoolSettings;
use ash::vk;
use parking_lot::Mutex;

use crate::gpu::TestGpu;
use crate::replay::script::ScriptRequest;
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

    /// Returns the peer's count of live allocations, if it has one.
    fn live(&self) -> Option<u64>;

    /// Destroys the peer. Returns an error if its state is wrong.
    fn finish(self) -> Result<(), String>;
}

/// An allocator that a program would choose from. It also creates buffers and images with their memory, and plays
/// recordings: [`script`](mod@crate::replay::script) describes their input.
pub(crate) trait WholePeer: Peer {
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, Self::Allocation)>;
    fn destroy(&mut self, resource: PeerResource, allocation: Self::Allocation);

    /// Allocates as recorded. `None` if there is no space, or on any other error.
    fn play(&mut self, ask: &ScriptRequest) -> Option<Self::Allocation>;

    /// Returns true if it could be mapped.
    fn map(&mut self, allocation: &mut Self::Allocation) -> bool;
    fn unmap(&mut self, allocation: &mut Self::Allocation);

    /// Creates a pool. Does nothing for peers without pools.
    fn create_pool(&mut self, _number: u32, _settings: &PoolSettings) -> Result<(), String> {
        Ok(())
    }

    fn destroy_pool(&mut self, _number: u32) {}

    /// Begins a frame. Does nothing for peers that do not query budgets.
    fn begin_frame(&mut self, _index: u32) {}
}

/// A peer that creates resources instead of bare memory.
pub(crate) struct CreatingPeer<P>(P);

impl<P: WholePeer> Peer for CreatingPeer<P> {
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
    fn end_frame(&self) {}
    fn live(&self) -> Option<u64>;
    fn finish(self) -> Result<(), String>;
}

impl<P: SharedPeer> Peer for P {
    type Allocation = P::Allocation;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<Self::Allocation> {
        SharedPeer::allocate(self, request)
    }

    #[inline]
    fn free(&mut self, allocation: Self::Allocation) {
        SharedPeer::free(self, allocation);
    }

    fn end_frame(&mut self) {
        SharedPeer::end_frame(self);
    }

    fn live(&self) -> Option<u64> {
        SharedPeer::live(self)
    }

    fn finish(self) -> Result<(), String> {
        SharedPeer::finish(self)
    }
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
    GpuAlloc,
    /// The driver's own calls, without an allocator.
    Driver,
}

impl PeerKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Sublet, Self::Vma, Self::GpuAllocator, Self::GpuAlloc, Self::Driver];

    /// Returns its name on the command line.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Sublet => "sublet",
            Self::Vma => "vma",
            Self::GpuAllocator => "gpu-allocator",
            Self::GpuAlloc => "gpu-alloc",
            Self::Driver => "driver",
        }
    }

    /// Returns its name in table headings.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Sublet => "Sublet",
            Self::Vma => "VMA",
            Self::Driver => "driver alone",
            other => other.id(),
        }
    }

    /// Returns the bytes of the caller's handle.
    pub(crate) fn handle_bytes(self) -> usize {
        match self {
            // The caller holds the resource separately, so this is the size of the peer's own type.
            Self::Sublet => size_of::<::sublet::Allocation>(),
            Self::Vma => size_of::<vma::ffi::FfiAllocation>(),
            Self::GpuAllocator => size_of::<::gpu_allocator::vulkan::Allocation>(),
            Self::GpuAlloc => size_of::<::gpu_alloc::MemoryBlock<ash::vk::DeviceMemory>>(),
            Self::Driver => 0,
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
}

/// A function that is generic over the type of the peer.
pub(crate) trait Visit {
    type Output;
    fn visit<P: Peer + 'static>(self, peer: P) -> Self::Output;
}

/// Same for whole peers.
pub(crate) trait VisitWhole {
    type Output;
    fn visit<P: WholePeer + 'static>(self, peer: P) -> Self::Output;
}

/// Same for peers that threads share.
pub(crate) trait VisitShared {
    type Output;
    fn visit<P: SharedPeer>(self, peer: P) -> Self::Output;
}

/// Creates a peer. `None` if it does not support the shape.
pub(crate) fn make<V: Visit>(
    kind: PeerKind,
    gpu: &TestGpu,
    shape: PeerMode,
    visit: V,
) -> Result<Option<V::Output>, String> {
    match kind {
        PeerKind::Driver => Ok(driver::DriverAlone::new(gpu, shape)?.map(|peer| visit.visit(peer))),
        _ => make_whole(kind, gpu, shape, InShape(shape, visit)),
    }
}

/// Creates a whole peer. `None` if it does not support the shape.
pub(crate) fn make_whole<V: VisitWhole>(
    kind: PeerKind,
    gpu: &TestGpu,
    shape: PeerMode,
    visit: V,
) -> Result<Option<V::Output>, String> {
    Ok(match kind {
        PeerKind::Sublet => Some(visit.visit(sublet::Sublet::new(gpu, shape)?)),
        PeerKind::Vma => vma::Vma::new(gpu, shape)?.map(|peer| visit.visit(peer)),
        PeerKind::GpuAllocator => gpu_allocator::GpuAllocator::new(gpu, shape)?.map(|peer| visit.visit(peer)),
        PeerKind::GpuAlloc => gpu_alloc::GpuAlloc::new(gpu, shape).map(|peer| visit.visit(peer)),
        PeerKind::Driver => None,
    })
}

/// Passes an allocator to a visitor, in the mode that the shape selects.
struct InShape<V>(PeerMode, V);

impl<V: Visit> VisitWhole for InShape<V> {
    type Output = V::Output;

    fn visit<P: WholePeer + 'static>(self, peer: P) -> V::Output {
        match self.0 {
            PeerMode::Created | PeerMode::Maintained => self.1.visit(CreatingPeer(peer)),
            _ => self.1.visit(peer),
        }
    }
}

/// Creates a peer for several threads, in its default shape.
pub(crate) fn make_shared<V: VisitShared>(
    kind: PeerKind,
    gpu: &TestGpu,
    visit: V,
) -> Result<V::Output, String> {
    let shape = PeerMode::Default;
    let output = match kind {
        PeerKind::Sublet => Some(visit.visit(sublet::Sublet::new(gpu, shape)?)),
        PeerKind::Vma => vma::Vma::new(gpu, shape)?.map(|peer| visit.visit(peer)),
        PeerKind::GpuAllocator => {
            let peer = gpu_allocator::GpuAllocator::new(gpu, shape)?;
            peer.map(|peer| visit.visit(LockedPeer(Mutex::new(peer))))
        }
        PeerKind::GpuAlloc => {
            gpu_alloc::GpuAlloc::new(gpu, shape).map(|peer| visit.visit(LockedPeer(Mutex::new(peer))))
        }
        PeerKind::Driver => None,
    };
    output.ok_or_else(|| "it is not for several threads".to_owned())
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
