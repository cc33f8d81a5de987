//! The calls beside the hot pairs, made of Sublet and of VMA: the same work, with create-infos that are made beforehand.
//!
//! A row is a peer whose `allocate` does the whole of it, so that it is measured and counted as everything else is.

mod sublet;
mod vma;

use ::sublet::{AllocationCreateFlags, MemoryUsage, Shared};
use ash::vk;

use super::sublet::Sublet;
use super::vma::Vma;
use super::{Peer, PeerKind, Shape, Visit, buffer_info, image_info};
use crate::gpu::Gpu;
use crate::script::{Alignments, Kind, Random, Request, Shapes};

/// What is done in a row. Where the two differ in more than the name, it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Nothing: what the measuring itself costs.
    Nothing,
    /// An allocator is made and destroyed.
    Allocator,
    /// A pool is made and destroyed.
    Pool,
    /// A dedicated allocation is made and freed.
    Dedicated,
    /// Nothing is left in the only block, and another one must not be made.
    Refusal,
    /// Required and preferred properties instead of a usage.
    Flags,
    /// The upper side of a double stack.
    Upper,
    /// An allocation is made with a name, and freed. VMA names it by a second call: as text in its user data is
    /// deprecated.
    Named,
    SetName,
    /// VMA's older call; Sublet has one for both.
    Info,
    /// VMA's newer call, which says as much as Sublet's.
    Info2,
    /// Of an allocation that has a name, of which Sublet's caller gets a copy, and VMA's a pointer.
    InfoNamed,
    Budgets,
    /// From VK_EXT_memory_budget, which is not asked again where nothing was allocated.
    BudgetsExtension,
    /// With 100 empty pools.
    BudgetsPools,
    /// `vmaSetCurrentFrameIndex`, without VK_EXT_memory_budget.
    Frame,
    /// The same with it: the driver is asked.
    FrameExtension,
    Statistics,
    PoolStatistics,
    PoolDetailed,
    /// VMA's JSON without the map: Sublet's is `sublet_report::stats_string`.
    Text,
    /// The same with the map.
    Map,
    FindType,
    FindTypeBuffer,
    FindTypeImage,
    Bind,
    MapMemory,
    FlushCoherent,
    Flush,
    Invalidate,
    FlushMany,
    InvalidateMany,
    CopyTo,
    CopyFrom,
    /// Begun, all passes, ended, of a pool in which half of the allocations were freed. Who moves asks where to: in VMA
    /// `vmaGetAllocationInfo` of both places, in Sublet the move itself. Sublet is told to keep user data for that; VMA
    /// always does. Each moves a little more than 300.
    Defragment,
    Block,
    BlockLarge,
    BlockAllocate,
    BlockRefusal,
    BlockLinear,
    BlockUpper,
    BlockStatistics,
    BlockDetailed,
    BlockClear,
    BlockMap,
}

/// How an allocation is asked for.
#[derive(Clone, Copy, Default)]
struct Spec {
    flags: AllocationCreateFlags,
    usage: MemoryUsage,
    required: vk::MemoryPropertyFlags,
    preferred: vk::MemoryPropertyFlags,
    /// Memory types; 0 for all.
    bits: u32,
}

/// An allocator, or with a pool of its own.
trait Calls: Peer + 'static {
    /// What an allocator is made from.
    type Maker: 'static;
    type Info: 'static;
    type Pool: 'static;
    type PoolInfo: 'static;
    type Block: Block;

    fn new(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String>;
    /// One that can say the user data of an allocation that is moved.
    fn new_with_user_data(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String>;
    /// One that has its budgets from VK_EXT_memory_budget.
    fn new_with_budget(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String>;
    fn maker(gpu: &Gpu) -> Self::Maker;
    fn made_and_destroyed(maker: &Self::Maker) -> bool;

    fn pool_info(memory_type: u32) -> Self::PoolInfo;
    fn create_pool(&self, info: &Self::PoolInfo) -> Option<Self::Pool>;
    fn destroy_pool(&self, pool: Self::Pool) -> bool;

    /// For the allocator's own pool if it has one.
    fn info(&self, spec: Spec) -> Self::Info;
    fn request(&self, needs: &vk::MemoryRequirements, info: &Self::Info) -> Option<Self::Allocation>;
    fn request_named(&self, needs: &vk::MemoryRequirements, info: &Self::Info) -> Option<Self::Allocation>;
    /// With a number as user data.
    fn request_numbered(&self, request: &Request, number: u64) -> Option<Self::Allocation>;
    fn set_name(&self, allocation: &Self::Allocation) -> bool;
    /// The size that is answered; here and below.
    fn allocation_info(&self, allocation: &Self::Allocation) -> Option<u64>;
    fn allocation_info2(&self, allocation: &Self::Allocation) -> Option<u64>;

    /// How many allocations there are; here and below.
    fn budgets(&self) -> u64;
    fn statistics(&self) -> u64;
    fn pool_statistics(&self) -> u64;
    fn pool_detailed(&self) -> u64;
    /// Bytes of text.
    fn text(&self, map: bool) -> usize;
    fn frame(&self, index: u32);

    fn find(&self, info: &Self::Info) -> Option<u32>;
    fn find_for_buffer(&self, buffer: &vk::BufferCreateInfo<'_>, info: &Self::Info) -> Option<u32>;
    fn find_for_image(&self, image: &vk::ImageCreateInfo<'_>, info: &Self::Info) -> Option<u32>;
    fn bind(&self, allocation: &Self::Allocation, buffer: vk::Buffer) -> bool;

    /// Maps and unmaps.
    fn map(&self, allocation: &Self::Allocation) -> bool;
    fn make_visible(&self, allocation: &Self::Allocation, invalidate: bool) -> bool;
    /// The first [`MANY`].
    fn make_many_visible(&self, allocations: &[Self::Allocation], invalidate: bool) -> bool;
    fn copy_to(&self, bytes: &[u8; COPIED], allocation: &mut Self::Allocation) -> bool;
    fn copy_from(&self, allocation: &Self::Allocation, bytes: &mut [u8; COPIED]) -> bool;

    /// Each allocation's user data is its index and 1 more. How many were moved.
    fn defragment(&self, allocations: &mut [Self::Allocation]) -> u64;
}

/// A virtual block.
trait Block: Peer + 'static {
    fn new(shape: Shape) -> Result<Option<Self>, String>;
    fn upper(&mut self, request: &Request) -> Option<Self::Allocation>;
    /// How many allocations there are.
    fn detailed(&self) -> u64;
    /// Bytes of text, with the map.
    fn text(&self) -> usize;
}

/// Allocations that are live where something is asked of all of them.
const LIVE: usize = 1_000;
/// Ranges that are made visible by one call.
const MANY: usize = 16;
/// Bytes that are flushed, and that are copied.
const COPIED: usize = 256;
const NEEDS: vk::MemoryRequirements =
    vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: u32::MAX };
const REQUEST: Request = Request { size: 4096, alignment: 256, kind: Kind::Memory };
const POOL: Shape = Shape::Pool { block_size: 1 << 20, min: 0, max: 0 };
const BLOCK: Shape = Shape::Engine { capacity: 64 << 20 };
const LARGE_BLOCK: Shape = Shape::Engine { capacity: 4 << 30 };
const LINEAR_BLOCK: Shape = Shape::LinearEngine { capacity: 64 << 20 };

/// 256 bytes to 32 KiB.
fn requests(count: usize) -> impl Iterator<Item = Request> {
    let mut random = Random::new(1);
    let shapes = Shapes { alignments: Alignments::Fixed, octaves: (8, 15) };
    (0..count).map(move |_| shapes.draw(&mut random))
}

/// A row, as it is measured.
trait Step {
    /// Whether everything was answered as it has to be.
    fn step(&mut self) -> bool;
    /// Before a round.
    fn prepare(&mut self) -> bool;
    fn end(self: Box<Self>) -> Result<(), String>;
}

/// What has to be in order in the end.
trait End {
    fn end(self) -> Result<(), String>;
}

impl End for () {
    fn end(self) -> Result<(), String> {
        Ok(())
    }
}

impl<S: End> End for Vec<S> {
    fn end(self) -> Result<(), String> {
        self.into_iter().try_for_each(End::end)
    }
}

struct Row<S, C, P> {
    state: S,
    call: C,
    prepare: P,
}

impl<S: End, C: FnMut(&mut S) -> bool, P: FnMut(&mut S) -> bool> Step for Row<S, C, P> {
    fn step(&mut self) -> bool {
        (self.call)(&mut self.state)
    }

    fn prepare(&mut self) -> bool {
        (self.prepare)(&mut self.state)
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        self.state.end()
    }
}

/// A row that every round finds as it was left.
fn row<S: End + 'static>(state: S, call: impl FnMut(&mut S) -> bool + 'static) -> Box<dyn Step> {
    prepared(state, |_| true, call)
}

fn prepared<S: End + 'static>(
    state: S,
    prepare: impl FnMut(&mut S) -> bool + 'static,
    call: impl FnMut(&mut S) -> bool + 'static,
) -> Box<dyn Step> {
    Box::new(Row { state, call, prepare })
}

/// A row as a peer.
struct Called(Box<dyn Step>);

impl Peer for Called {
    type Allocation = ();

    #[inline]
    fn allocate(&mut self, _: &Request) -> Option<()> {
        self.0.step().then_some(())
    }

    #[inline]
    fn free(&mut self, (): ()) {}

    fn reset(&mut self) -> bool {
        self.0.prepare()
    }

    fn live(&self) -> Option<u64> {
        None
    }

    fn finish(self) -> Result<(), String> {
        self.0.end()
    }
}

/// A peer with what is live in it.
struct Held<P: Peer> {
    peer: P,
    held: Vec<P::Allocation>,
}

impl<P: Peer> Held<P> {
    fn take(&mut self, request: &Request) -> Result<(), String> {
        let allocation = self.peer.allocate(request).ok_or("an allocation was refused")?;
        self.held.push(allocation);
        Ok(())
    }

    fn filled(mut self, requests: impl Iterator<Item = Request>) -> Result<Self, String> {
        for request in requests {
            self.take(&request)?;
        }
        Ok(self)
    }

    fn free_all(&mut self) {
        self.held.drain(..).for_each(|allocation| self.peer.free(allocation));
    }

    /// Another one comes and goes.
    fn pair(&mut self, allocation: Option<P::Allocation>) -> bool {
        allocation.map(|allocation| self.peer.free(allocation)).is_some()
    }
}

impl<P: Peer> End for Held<P> {
    fn end(mut self) -> Result<(), String> {
        let (live, held) = (self.peer.live(), self.held.len() as u64);
        if live != Some(held) {
            return Err(format!("{held} allocations should be live, the peer counts {live:?}"));
        }
        self.free_all();
        self.peer.finish()
    }
}

impl<C: Calls> Held<C> {
    fn new(gpu: &Gpu, shape: Shape) -> Result<Self, String> {
        let peer = C::new(gpu, shape)?.ok_or("there is no such shape")?;
        Ok(Self { peer, held: Vec::new() })
    }

    /// With one allocation as the spec says.
    fn with(gpu: &Gpu, shape: Shape, spec: Spec) -> Result<Self, String> {
        Self::with_many(gpu, shape, spec, 1)
    }

    fn with_many(gpu: &Gpu, shape: Shape, spec: Spec, count: usize) -> Result<Self, String> {
        let mut held = Self::new(gpu, shape)?;
        let info = held.peer.info(spec);
        for _ in 0..count {
            let allocation = held.peer.request(&NEEDS, &info).ok_or("an allocation was refused")?;
            held.held.push(allocation);
        }
        Ok(held)
    }

    /// Frees everything, and leaves every other one of [`LIVE`].
    fn fragment(&mut self) -> bool {
        self.free_all();
        let mut freed = Vec::new();
        for (at, request) in requests(LIVE).enumerate() {
            let stays = at % 2 == 0;
            let number = self.held.len() as u64 + 1;
            let Some(allocation) = self.peer.request_numbered(&request, number) else { return false };
            if stays { self.held.push(allocation) } else { freed.push(allocation) }
        }
        freed.into_iter().for_each(|allocation| self.peer.free(allocation));
        true
    }
}

fn block<B: Block>(shape: Shape) -> Result<Held<B>, String> {
    let peer = B::new(shape)?.ok_or("there is no such shape")?;
    Ok(Held { peer, held: Vec::new() })
}

/// An allocator with pools in which there is nothing.
struct WithPools<C: Calls> {
    allocator: Held<C>,
    pools: Vec<C::Pool>,
}

impl<C: Calls> End for WithPools<C> {
    fn end(self) -> Result<(), String> {
        for pool in self.pools {
            if !self.allocator.peer.destroy_pool(pool) {
                return Err("a pool was not empty".to_owned());
            }
        }
        self.allocator.end()
    }
}

/// An allocator with a buffer for each of its allocations, of which so many are bound.
struct WithBuffers<C: Calls> {
    allocator: Held<C>,
    device: ash::Device,
    buffers: Vec<vk::Buffer>,
    bound: usize,
}

impl<C: Calls> WithBuffers<C> {
    fn destroy_buffers(&mut self) {
        for buffer in self.buffers.drain(..) {
            // SAFETY: nobody uses it.
            unsafe { self.device.destroy_buffer(buffer, None) };
        }
    }

    /// New ones instead of those that are bound.
    fn renew(&mut self) -> bool {
        self.destroy_buffers();
        self.bound = 0;
        for _ in &self.allocator.held {
            // SAFETY: the create-info is complete.
            let made = unsafe { self.device.create_buffer(&buffer_info(&REQUEST), None) };
            self.buffers.extend(made.ok());
        }
        self.buffers.len() == self.allocator.held.len()
    }

    fn bind(&mut self) -> bool {
        let at = self.bound;
        self.bound += 1;
        self.allocator.peer.bind(&self.allocator.held[at], self.buffers[at])
    }
}

impl<C: Calls> End for WithBuffers<C> {
    fn end(mut self) -> Result<(), String> {
        self.destroy_buffers();
        self.allocator.end()
    }
}

/// The first memory type that the host sees, and that needs no flushes or does.
fn host_type(gpu: &Gpu, coherent: bool) -> Option<u32> {
    let memory = gpu.memory();
    let fits = |kind: &vk::MemoryType| {
        let flags = kind.property_flags;
        flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
            && flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT) == coherent
    };
    memory.memory_types_as_slice().iter().position(fits).map(|at| at as u32)
}

/// `times` is how often a round makes the call.
fn rows<C: Calls>(gpu: &Gpu, call: Call, times: usize) -> Result<Option<Box<dyn Step>>, String> {
    let device = Spec { usage: MemoryUsage::GpuOnly, ..Spec::default() };
    let host = |coherent, flags| {
        let bits = host_type(gpu, coherent).map(|kind| 1 << kind);
        bits.map(|bits| Spec {
            flags,
            required: vk::MemoryPropertyFlags::HOST_VISIBLE,
            bits,
            ..Spec::default()
        })
    };
    let mapped = AllocationCreateFlags::MAPPED;
    let plain = || Held::<C>::new(gpu, Shape::Default);
    let with_budget = || -> Result<_, String> {
        let peer = C::new_with_budget(gpu, Shape::Default)?.ok_or("there is no such shape")?;
        Held { peer, held: Vec::new() }.filled(std::iter::once(REQUEST))
    };
    let one = || Held::<C>::with(gpu, Shape::Default, device);
    let full = || plain()?.filled(requests(LIVE));
    // One that comes and goes beside one that stays, so that no block is ever empty.
    let pair = |shape, stays, spec| -> Result<_, String> {
        let held = Held::<C>::with(gpu, shape, stays)?;
        let info = held.peer.info(spec);
        Ok(row(held, move |held| {
            let allocation = held.peer.request(&NEEDS, &info);
            held.pair(allocation)
        }))
    };
    Ok(Some(match call {
        Call::Nothing => row((), |()| true),
        Call::Allocator => {
            let maker = C::maker(gpu);
            row((), move |()| C::made_and_destroyed(&maker))
        }
        Call::Pool => {
            let info = C::pool_info(gpu.device_local_type());
            row(plain()?, move |held| {
                held.peer.create_pool(&info).is_some_and(|pool| held.peer.destroy_pool(pool))
            })
        }
        Call::Dedicated => {
            let flags = AllocationCreateFlags::DEDICATED_MEMORY;
            pair(Shape::Default, device, Spec { flags, ..device })?
        }
        Call::Refusal => {
            // 4 KiB each in 1 MiB.
            let held = Held::<C>::with_many(gpu, POOL, device, 256)?;
            let flags = AllocationCreateFlags::NEVER_ALLOCATE;
            let info = held.peer.info(Spec { flags, ..device });
            row(held, move |held| held.peer.request(&NEEDS, &info).is_none())
        }
        Call::Flags => {
            let required = vk::MemoryPropertyFlags::HOST_VISIBLE;
            let preferred = vk::MemoryPropertyFlags::DEVICE_LOCAL | vk::MemoryPropertyFlags::HOST_CACHED;
            let spec = Spec { required, preferred, ..Spec::default() };
            pair(Shape::Default, spec, spec)?
        }
        Call::Upper => {
            let flags = AllocationCreateFlags::UPPER_ADDRESS;
            pair(Shape::LinearPool { block_size: 1 << 20 }, device, Spec { flags, ..device })?
        }
        Call::Named => {
            let held = one()?;
            let info = held.peer.info(device);
            row(held, move |held| {
                let allocation = held.peer.request_named(&NEEDS, &info);
                held.pair(allocation)
            })
        }
        Call::SetName => row(one()?, |held| held.peer.set_name(&held.held[0])),
        Call::Info => row(one()?, |held| held.peer.allocation_info(&held.held[0]) == Some(NEEDS.size)),
        Call::Info2 => row(one()?, |held| held.peer.allocation_info2(&held.held[0]) == Some(NEEDS.size)),
        Call::InfoNamed => {
            let held = one()?;
            if !held.peer.set_name(&held.held[0]) {
                return Err("there is no name".to_owned());
            }
            row(held, |held| held.peer.allocation_info2(&held.held[0]) == Some(NEEDS.size))
        }
        Call::Budgets | Call::BudgetsExtension => {
            let held = if call == Call::Budgets { one()? } else { with_budget()? };
            row(held, |held| held.peer.budgets() == 1)
        }
        Call::BudgetsPools => {
            let (allocator, info) = (one()?, C::pool_info(gpu.device_local_type()));
            let pools = (0..100).map_while(|_| allocator.peer.create_pool(&info)).collect();
            row(WithPools { allocator, pools }, |with| with.allocator.peer.budgets() == 1)
        }
        Call::Frame | Call::FrameExtension => {
            let held = if call == Call::Frame { one()? } else { with_budget()? };
            let mut index = 0;
            row(held, move |held| {
                index += 1;
                held.peer.frame(index);
                true
            })
        }
        Call::Statistics => row(full()?, |held| held.peer.statistics() == LIVE as u64),
        Call::PoolStatistics => {
            let held = Held::<C>::new(gpu, POOL)?.filled(requests(LIVE))?;
            row(held, |held| held.peer.pool_statistics() == LIVE as u64)
        }
        Call::PoolDetailed => {
            let held = Held::<C>::new(gpu, POOL)?.filled(requests(LIVE))?;
            row(held, |held| held.peer.pool_detailed() == LIVE as u64)
        }
        Call::Text => row(full()?, |held| held.peer.text(false) > 0),
        // Each allocation has a line at least.
        Call::Map => row(full()?, |held| held.peer.text(true) > 50 * LIVE),
        Call::FindType => {
            let held = one()?;
            let info = held.peer.info(device);
            let found = held.peer.find(&info);
            row(held, move |held| found.is_some() && held.peer.find(&info) == found)
        }
        // VMA is given functions of Vulkan 1.3, and calls them whatever the version is.
        Call::FindTypeBuffer | Call::FindTypeImage if gpu.api_version() < vk::API_VERSION_1_3 => {
            return Ok(None);
        }
        Call::FindTypeBuffer => {
            let held = one()?;
            let info = held.peer.info(Spec { usage: MemoryUsage::Auto, ..device });
            let buffer = buffer_info(&REQUEST);
            let found = held.peer.find_for_buffer(&buffer, &info);
            row(held, move |held| found.is_some() && held.peer.find_for_buffer(&buffer, &info) == found)
        }
        Call::FindTypeImage => {
            let held = one()?;
            let info = held.peer.info(Spec { usage: MemoryUsage::Auto, ..device });
            let image = image_info(&Request { size: 64, ..REQUEST });
            let found = held.peer.find_for_image(&image, &info);
            row(held, move |held| found.is_some() && held.peer.find_for_image(&image, &info) == found)
        }
        Call::Bind => {
            let allocator = Held::<C>::with_many(gpu, Shape::Default, device, times)?;
            let device = gpu.device().clone();
            let state = WithBuffers { allocator, device, buffers: Vec::new(), bound: 0 };
            prepared(state, WithBuffers::renew, WithBuffers::bind)
        }
        Call::MapMemory => {
            let Some(spec) = host(true, AllocationCreateFlags::empty()) else { return Ok(None) };
            row(Held::<C>::with(gpu, Shape::Default, spec)?, |held| held.peer.map(&held.held[0]))
        }
        Call::FlushCoherent | Call::Flush | Call::Invalidate => {
            let Some(spec) = host(call == Call::FlushCoherent, mapped) else { return Ok(None) };
            let held = Held::<C>::with(gpu, Shape::Default, spec)?;
            if call == Call::Invalidate {
                row(held, |held| held.peer.make_visible(&held.held[0], true))
            } else {
                row(held, |held| held.peer.make_visible(&held.held[0], false))
            }
        }
        Call::FlushMany | Call::InvalidateMany => {
            let Some(spec) = host(false, mapped) else { return Ok(None) };
            let held = Held::<C>::with_many(gpu, Shape::Default, spec, MANY)?;
            if call == Call::InvalidateMany {
                row(held, |held| held.peer.make_many_visible(&held.held, true))
            } else {
                row(held, |held| held.peer.make_many_visible(&held.held, false))
            }
        }
        Call::CopyTo | Call::CopyFrom => {
            gpu.back_mappings();
            let Some(spec) = host(true, AllocationCreateFlags::empty()) else { return Ok(None) };
            let mut held = Held::<C>::with(gpu, Shape::Default, spec)?;
            let (bytes, mut back) = ([7; COPIED], [0; COPIED]);
            let there = held.peer.copy_to(&bytes, &mut held.held[0]);
            if !there || !held.peer.copy_from(&held.held[0], &mut back) || back != bytes {
                return Err("what was copied did not come back".to_owned());
            }
            if call == Call::CopyTo {
                row(held, move |held| held.peer.copy_to(&bytes, &mut held.held[0]))
            } else {
                row(held, move |held| held.peer.copy_from(&held.held[0], &mut back))
            }
        }
        Call::Defragment => {
            let make = |_| {
                let peer = C::new_with_user_data(gpu, POOL)?.ok_or("there is no such shape")?;
                Ok(Held { peer, held: Vec::new() })
            };
            let all: Vec<Held<C>> = (0..times).map(make).collect::<Result<_, String>>()?;
            let mut next = 0;
            let fragment = |all: &mut Vec<Held<C>>| all.iter_mut().all(Held::fragment);
            prepared(all, fragment, move |all| {
                next = (next + 1) % times;
                let Held { peer, held } = &mut all[next];
                peer.defragment(held) > 0
            })
        }
        Call::Block | Call::BlockLarge => {
            let shape = if call == Call::Block { BLOCK } else { LARGE_BLOCK };
            row((), move |()| {
                let made = C::Block::new(shape).ok().flatten();
                made.is_some_and(|block| block.finish().is_ok())
            })
        }
        Call::BlockAllocate | Call::BlockLinear => {
            let shape = if call == Call::BlockLinear { LINEAR_BLOCK } else { BLOCK };
            row(block::<C::Block>(shape)?, |held| {
                let allocation = held.peer.allocate(&REQUEST);
                held.pair(allocation)
            })
        }
        Call::BlockRefusal => {
            let held = block::<C::Block>(Shape::Engine { capacity: REQUEST.size * 2 * LIVE as u64 })?;
            let mut held = held.filled(std::iter::repeat_n(REQUEST, 2 * LIVE))?;
            let mut odd = false;
            let (stay, go) = held.held.drain(..).partition(|_| {
                odd = !odd;
                odd
            });
            held.held = go;
            held.free_all();
            held.held = stay;
            row(held, |held| held.peer.allocate(&Request { size: 2 * REQUEST.size, ..REQUEST }).is_none())
        }
        Call::BlockUpper => row(block::<C::Block>(LINEAR_BLOCK)?, |held| {
            let allocation = held.peer.upper(&REQUEST);
            held.pair(allocation)
        }),
        Call::BlockStatistics => {
            let held = block::<C::Block>(BLOCK)?.filled(requests(LIVE))?;
            row(held, |held| held.peer.live() == Some(LIVE as u64))
        }
        Call::BlockDetailed => {
            let held = block::<C::Block>(BLOCK)?.filled(requests(LIVE))?;
            row(held, |held| held.peer.detailed() == LIVE as u64)
        }
        Call::BlockMap => {
            let held = block::<C::Block>(BLOCK)?.filled(requests(LIVE))?;
            row(held, |held| held.peer.text() > 50 * LIVE)
        }
        Call::BlockClear => {
            let blocks: Vec<_> = (0..times).map(|_| block::<C::Block>(BLOCK)).collect::<Result<_, _>>()?;
            let mut next = 0;
            let fill = |blocks: &mut Vec<Held<C::Block>>| {
                let full = |held: &mut Held<C::Block>| {
                    held.peer.reset();
                    requests(LIVE).all(|request| held.peer.allocate(&request).map(std::mem::forget).is_some())
                };
                blocks.iter_mut().all(full)
            };
            prepared(blocks, fill, move |blocks| {
                next = (next + 1) % times;
                blocks[next].peer.reset()
            })
        }
    }))
}

/// Makes the peer of a row. `None` if this one takes no part, or the device has no such memory.
pub(super) fn make<V: Visit>(
    kind: PeerKind,
    gpu: &Gpu,
    (call, times): (Call, usize),
    visit: V,
) -> Result<Option<V::Output>, String> {
    let row = match kind {
        PeerKind::Sublet => rows::<Sublet<Shared>>(gpu, call, times)?,
        PeerKind::Vma => rows::<Vma>(gpu, call, times)?,
        _ => None,
    };
    Ok(row.map(|row| visit.visit(Called(row))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Driver;

    fn lost<C: Calls>() -> Result<(), String> {
        let gpu = Gpu::new(&Driver::parse("null", 0).unwrap(), Some(1)).unwrap();
        let mut held = Held::<C>::new(&gpu, Shape::Default).unwrap();
        held.take(&REQUEST).unwrap();
        held.held.drain(..).for_each(std::mem::forget);
        held.end()
    }

    /// What all rows with an allocator end with.
    #[test]
    fn a_lost_allocation_is_an_error() {
        assert!(lost::<Sublet<Shared>>().is_err_and(|error| error.contains("0 allocations")));
        assert!(lost::<Vma>().is_err_and(|error| error.contains("0 allocations")));
    }
}
