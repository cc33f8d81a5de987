//! Runs a program, and compares it with the model.
#![expect(unsafe_code, reason = "creates and frees device memory")]

use ash::vk;
use ash::vk::Handle as _;
use sublet::sim::Gpu;
use sublet::trace::{Trace, TraceBuffer};
use sublet::{
    Algorithm, Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo, CorruptionError,
    DebugSettings, GrowthPreset, MaintainInfo, Pool, PoolCreateFlags, PoolCreateInfo, Scope, ScopeCreateInfo,
    Tracking,
};
use sublet_fuzz::{Choice, MEMORY_CALLS, Places, finished, silent};

use crate::call::{Call, Input, NAME, Owner, PRIORITIES, Place, PoolRequest, Request, Use};
use crate::virtual_ranges::VirtualRanges;

const MOST_POOLS: usize = 8;
const MOST_BLOCKS: u64 = 1 << 16;

/// The number of a pool or scope, which is not used again.
pub(crate) type Group = usize;

/// The resource of an allocation.
pub(crate) enum Resource {
    None,
    Buffer(vk::Buffer, vk::BufferCreateInfo<'static>),
    Image(vk::Image, vk::ImageCreateInfo<'static>),
}

/// A live allocation, and what the program knows about it.
pub(crate) struct Held {
    pub(crate) owner: usize,
    pub(crate) group: Option<Group>,
    pub(crate) allocation: Allocation,
    pub(crate) resource: Resource,
    pub(crate) alignment: u64,
    name: Option<&'static str>,
    user_data: u64,
    /// The bytes that were last written, and their offset.
    pub(crate) written: Option<(u64, Vec<u8>)>,
}

/// The state of a program.
pub(crate) struct Program<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) allocators: [&'a Allocator; 2],
    margin: u64,
    pub(crate) held: Vec<Held>,
    pub(crate) pools: Vec<(usize, Group, Pool)>,
    scopes: Vec<(usize, Group, Scope)>,
    groups: Group,
    places: Places,
    virtual_ranges: Option<VirtualRanges>,
}

fn debug_settings(input: &Input) -> DebugSettings {
    let margin = input.margin.one(&[0, 0, 0, 16, 100]);
    let bits = input.debug.one(&[0, 0, 0, 0, 0, 1, 2, 3]);
    DebugSettings {
        margin,
        detect_corruption: margin > 0,
        fill: bits & 1 != 0,
        always_dedicated: bits & 2 != 0,
        min_buffer_image_granularity: input.granularity.one(&[0, 0, 0, 256, 4096]),
        ..DebugSettings::default()
    }
}

/// Runs a program on new allocators, and frees what it leaves.
pub(crate) fn run(input: &Input) {
    let debug = debug_settings(input);
    let builder = sublet_fuzz::gpu(input.profile);
    // Filling more takes seconds.
    let builder = if debug.fill { builder.memory_limit(1 << 24) } else { builder };
    let gpu = builder.build();
    let info = AllocatorCreateInfo {
        growth: input.growth.one(GrowthPreset::ALL),
        empty_blocks_kept: input.empty_blocks_kept.one(&[1, 0, 3]),
        tracking: Tracking::all(),
        debug,
        ..AllocatorCreateInfo::for_gpu(&gpu)
    };
    // SAFETY: instance and device are live, and outlive the allocators.
    let made = [(); 2].map(|()| unsafe { Allocator::new(&info) }.expect("the parameters are valid"));
    let recorded = TraceBuffer::new();
    if input.records {
        made[0].start_recording(recorded.clone()).expect("there is no other recording");
    }
    let mut program = Program {
        gpu: &gpu,
        allocators: made.each_ref(),
        margin: info.debug.margin,
        held: Vec::new(),
        pools: Vec::new(),
        scopes: Vec::new(),
        groups: 0,
        places: Places::default(),
        virtual_ranges: VirtualRanges::new(input),
    };
    for call in &input.calls.0 {
        program.call(call);
    }
    gpu.faults().clear();
    program.check();
    program.finish();
    if input.records {
        made[0].stop_recording().expect("the sink does not fail");
        Trace::read(&recorded.bytes()).expect("the recording is whole");
    }
    for allocator in made {
        allocator.validate();
        let leaks = allocator.destroy();
        assert!(leaks.is_empty(), "{leaks:?}");
    }
    finished(&gpu);
}

impl<'a> Program<'a> {
    fn call(&mut self, call: &Call) {
        match call {
            Call::Allocate { request, size, alignment, types, count } => {
                let types = if *types == 0 { u32::MAX } else { u32::from(*types) };
                let requirements = vk::MemoryRequirements {
                    size: size.0,
                    alignment: alignment.0.max(1),
                    memory_type_bits: types,
                };
                self.allocate(request, requirements, count.one(&[1, 1, 1, 0, 4]));
            }
            Call::CreateBuffer { request, size, usage } => self.create_buffer(request, size.0, *usage),
            Call::CreateImage { request, side, is_linear, mips } => {
                self.create_image(request, u32::from(*side) + 1, *is_linear, *mips);
            }
            Call::Free { which, by_other } => {
                let Some(at) = which.at(self.held.len()) else { return };
                self.free(at, *by_other);
            }
            Call::Use { which, by_other, action } => self.use_one(*which, *by_other, *action),
            Call::CreatePool { owner, request } => self.create_pool(owner.index(), request),
            Call::ReserveInPool { which, bytes, by_other } => {
                let Some((owner, _, pool)) = which.of(&self.pools) else { return };
                // A device may allow billions of tiny blocks. Each takes a driver call.
                if bytes.0 / pool.block_size().max(1) > MOST_BLOCKS {
                    return;
                }
                let reserved =
                    self.allocators[*owner ^ usize::from(*by_other)].reserve_in_pool(pool, bytes.0);
                assert!(!by_other || reserved.is_err());
            }
            Call::DestroyPool { which, by_other } => self.destroy_pool(*which, *by_other),
            Call::CreateScope { owner, block_size } => {
                let info = ScopeCreateInfo { block_size: block_size.0, ..ScopeCreateInfo::default() };
                if self.scopes.len() == MOST_POOLS {
                    return;
                }
                if let Ok(scope) = self.allocators[owner.index()].create_scope(&info) {
                    self.groups += 1;
                    self.scopes.push((owner.index(), self.groups, scope));
                }
            }
            Call::FreeScope { which } => self.free_scope(*which),
            Call::Defragment { owner, algorithm, in_pool, bytes, moves } => {
                self.defragment(owner.index(), *algorithm, *in_pool, bytes.0, moves);
            }
            Call::Virtual(call) => {
                if let Some(ranges) = &mut self.virtual_ranges {
                    ranges.call(*call);
                }
            }
            Call::Fail(fault) => fault.inject(self.gpu, MEMORY_CALLS),
            Call::Check => self.check(),
            _ => self.tend(call),
        }
    }

    /// Calls that concern no single object.
    fn tend(&self, call: &Call) {
        let of = |owner: &Owner| self.allocators[owner.index()];
        match call {
            Call::Reserve { owner, memory_type, bytes } => {
                let memory_type = memory_type.one(&[0, 1, 2, 3, 4, 7, 31, 32, u32::MAX]);
                let _ = of(owner).reserve(memory_type, bytes.0);
            }
            Call::KeepEmpty { owner, blocks } => {
                of(owner).set_empty_blocks_kept(blocks.one(&[1, 0, 2, u32::MAX]));
            }
            Call::Maintain { owner } => {
                of(owner).maintain(&MaintainInfo::default());
            }
            Call::Trim { owner } => {
                of(owner).trim();
            }
            Call::Frame { owner, frame } => of(owner).set_current_frame_index(*frame),
            _ => {}
        }
    }

    /// Completes the create-info, passes it to `allocate`, and returns the group of the result.
    fn placed<R>(
        &self,
        request: &Request,
        allocate: impl FnOnce(&'a Allocator, &AllocationCreateInfo<'_>) -> R,
    ) -> (R, Option<Group>, u64) {
        let allocator = self.allocators[request.owner.index()];
        let mut info = request.info();
        let mut group = None;
        match request.place {
            Place::Pool(which) => {
                if let Some((_, number, pool)) = which.of(&self.pools) {
                    info.pool = Some(pool);
                    group = Some(*number);
                }
            }
            Place::Scope(which) => {
                if let Some((_, number, scope)) = which.of(&self.scopes) {
                    info.scope = Some(scope);
                    group = Some(*number);
                }
            }
            Place::Default => {}
        }
        (allocate(allocator, &info), group, info.min_alignment)
    }

    /// Adds an allocation to the model.
    fn hold(
        &mut self,
        request: &Request,
        group: Option<Group>,
        made: (Allocation, Resource),
        alignment: u64,
    ) {
        let owner = request.owner.index();
        let name = request.is_named.then_some(NAME);
        let (allocation, resource) = made;
        let user_data = request.user_data.0;
        let held = Held { owner, group, allocation, resource, alignment, name, user_data, written: None };
        self.place(&held);
        self.held.push(held);
    }

    /// Bytes of the range that no other allocation may have.
    fn span(&self, allocation: &Allocation) -> u64 {
        allocation.size() + if allocation.is_dedicated() { 0 } else { self.margin }
    }

    /// Adds the range of an allocation to the model.
    pub(crate) fn place(&mut self, held: &Held) {
        let Held { allocation, owner, .. } = held;
        let info = self.allocators[*owner].allocation_info(allocation).expect("the allocation is live");
        assert_eq!(
            (info.memory, info.offset, info.size),
            (allocation.memory(), allocation.offset(), allocation.size())
        );
        let memory = self.gpu.memory_info(allocation.memory()).expect("the memory is live");
        assert_eq!(memory.size, info.memory_size);
        let span = self.span(allocation);
        self.places.add(allocation.memory().as_raw(), allocation.offset(), span, memory.size, held.alignment);
    }

    /// Removes the range of an allocation from the model.
    pub(crate) fn displace(&mut self, allocation: &Allocation) {
        self.places.remove(allocation.memory().as_raw(), allocation.offset(), self.span(allocation));
    }

    /// Destroys a resource without its allocation.
    pub(crate) fn destroy(&self, resource: &Resource) {
        // SAFETY: the device never used it.
        match *resource {
            Resource::None => {}
            Resource::Buffer(buffer, _) => unsafe { self.gpu.device().destroy_buffer(buffer, None) },
            Resource::Image(image, _) => unsafe { self.gpu.device().destroy_image(image, None) },
        }
    }

    fn allocate(&mut self, request: &Request, requirements: vk::MemoryRequirements, count: usize) {
        let all = vec![requirements; count];
        let (made, group, min_alignment) =
            self.placed(request, |allocator, info| allocator.allocate_memory_pages(&all, &[*info]));
        let Ok(made) = made else { return };
        assert_eq!(made.len(), count);
        for allocation in made {
            assert_eq!(allocation.size(), requirements.size);
            let chosen = 1_u32.checked_shl(allocation.memory_type_index()).unwrap_or(0);
            assert_ne!(requirements.memory_type_bits & chosen, 0, "a memory type that was not requested");
            let alignment = requirements.alignment.max(min_alignment);
            self.hold(request, group, (allocation, Resource::None), alignment);
        }
    }

    fn create_buffer(&mut self, request: &Request, size: u64, usage: Choice) {
        const USAGES: [vk::BufferUsageFlags; 3] = [
            vk::BufferUsageFlags::TRANSFER_SRC,
            vk::BufferUsageFlags::STORAGE_BUFFER,
            vk::BufferUsageFlags::UNIFORM_BUFFER,
        ];
        // A size of 0 is wrong use.
        let info = vk::BufferCreateInfo::default().size(size.max(1)).usage(usage.one(&USAGES));
        // SAFETY: the create-info is valid.
        let (made, group, min_alignment) =
            self.placed(request, |allocator, memory| unsafe { allocator.create_buffer(&info, memory) });
        let Ok((buffer, allocation)) = made else { return };
        // SAFETY: the buffer is live.
        let needs = unsafe { self.gpu.device().get_buffer_memory_requirements(buffer) };
        let resource = Resource::Buffer(buffer, info);
        self.hold(request, group, (allocation, resource), needs.alignment.max(min_alignment));
    }

    fn create_image(&mut self, request: &Request, side: u32, is_linear: bool, mips: Choice) {
        let tiling = if is_linear { vk::ImageTiling::LINEAR } else { vk::ImageTiling::OPTIMAL };
        let mips = if is_linear { 1 } else { mips.one(&[1, 1, 1 + side.ilog2()]) };
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: side, height: side, depth: 1 })
            .mip_levels(mips)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(tiling)
            .usage(vk::ImageUsageFlags::TRANSFER_DST);
        // SAFETY: the create-info is valid.
        let (made, group, min_alignment) =
            self.placed(request, |allocator, memory| unsafe { allocator.create_image(&info, memory) });
        let Ok((image, allocation)) = made else { return };
        // SAFETY: the image is live.
        let needs = unsafe { self.gpu.device().get_image_memory_requirements(image) };
        let resource = Resource::Image(image, info);
        self.hold(request, group, (allocation, resource), needs.alignment.max(min_alignment));
    }

    fn free(&mut self, at: usize, by_other: bool) {
        let mut held = self.held.swap_remove(at);
        if by_other {
            // SAFETY: the other allocator must reject it.
            let rejected = unsafe { self.allocators[1 - held.owner].free_memory(held.allocation) };
            held.allocation = rejected.expect_err("only the owner may free it").allocation;
            self.held.push(held);
            return;
        }
        self.compare(&held);
        self.displace(&held.allocation);
        let allocator = self.allocators[held.owner];
        // SAFETY: the device never used it.
        let freed = unsafe {
            match held.resource {
                Resource::None => allocator.free_memory(held.allocation),
                Resource::Buffer(buffer, _) => allocator.destroy_buffer(buffer, held.allocation),
                Resource::Image(image, _) => allocator.destroy_image(image, held.allocation),
            }
        };
        freed.expect("the allocation is live");
    }

    /// Checks that the last bytes are still there.
    fn compare(&self, held: &Held) {
        let Some((offset, bytes)) = &held.written else { return };
        let mut found = vec![0; bytes.len()];
        // The driver may fail.
        if self.allocators[held.owner].copy_from_allocation(&held.allocation, *offset, &mut found).is_ok() {
            assert_eq!(&found, bytes, "other bytes than those that were written");
        }
    }

    fn use_one(&mut self, which: Choice, by_other: bool, action: Use) {
        let Some(at) = which.at(self.held.len()) else { return };
        let held = &mut self.held[at];
        let allocator = self.allocators[held.owner ^ usize::from(by_other)];
        let allocation = &mut held.allocation;
        // Offsets are mostly inside.
        let inside = |offset: u64| if offset < 1 << 32 { offset % allocation.size() } else { offset };
        let accepted = match action {
            Use::Write { offset, len } | Use::Map { offset, len } => {
                let offset = inside(offset.0);
                let bytes = vec![len ^ 0x5a; usize::from(len)];
                let is_written = match action {
                    Use::Write { .. } => allocator.copy_to_allocation(&bytes, allocation, offset).is_ok(),
                    _ => allocator.map(allocation).is_ok_and(|mut mapping| {
                        let written = mapping.write(offset, &bytes).is_ok();
                        written && mapping.flush(offset, u64::from(len)).is_ok()
                    }),
                };
                // Some of the bytes may have been written before the driver failed.
                held.written = is_written.then_some((offset, bytes));
                is_written
            }
            Use::Read { offset, len } => {
                let mut bytes = vec![0; usize::from(len)];
                allocator.copy_from_allocation(allocation, inside(offset.0), &mut bytes).is_ok()
            }
            Use::Flush { offset, size } => allocator.flush(allocation, inside(offset.0), size.0).is_ok(),
            Use::Invalidate { offset, size } => {
                // Without a flush, the bytes of a memory that is not coherent are undefined.
                allocator.invalidate(allocation, inside(offset.0), size.0).is_ok()
            }
            Use::Name(is_named) => {
                let name = is_named.then_some(NAME);
                let accepted = allocator.set_allocation_name(allocation, name).is_ok();
                held.name = if accepted { name } else { held.name };
                accepted
            }
            Use::UserData(user_data) => {
                let accepted = allocator.set_allocation_user_data(allocation, user_data.0).is_ok();
                held.user_data = if accepted { user_data.0 } else { held.user_data };
                accepted
            }
            Use::Priority(priority) => {
                allocator.set_allocation_priority(allocation, priority.one(&PRIORITIES)).is_ok()
            }
        };
        assert!(!by_other || !accepted, "the allocation of another allocator was accepted: {action:?}");
    }

    fn create_pool(&mut self, owner: usize, request: &PoolRequest) {
        if self.pools.len() == MOST_POOLS {
            return;
        }
        let info = PoolCreateInfo {
            algorithm: request.algorithm.one(&Algorithm::ALL),
            block_size: request.block_size.0,
            min_block_count: request.min_blocks.one(&[0, 0, 1, 3]),
            max_block_count: request.max_blocks.one(&[0, 1, 2, 5]),
            priority: request.priority.one(&PRIORITIES),
            min_allocation_alignment: request.min_alignment.0,
            flags: if request.ignores_granularity {
                PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY
            } else {
                PoolCreateFlags::empty()
            },
            ..PoolCreateInfo::new(request.memory_type.one(&[0, 1, 2, 3, 4, 5, 8, 31, 32]))
        };
        if let Ok(pool) = self.allocators[owner].create_pool(&info) {
            self.groups += 1;
            self.pools.push((owner, self.groups, pool));
        }
    }

    /// Removes the allocations of a pool or scope from the model, and destroys their resources. Returns their number.
    fn forget(&mut self, group: Group) -> usize {
        let (gone, kept) =
            std::mem::take(&mut self.held).into_iter().partition(|held| held.group == Some(group));
        self.held = kept;
        let gone: Vec<Held> = gone;
        for held in &gone {
            self.displace(&held.allocation);
            self.destroy(&held.resource);
        }
        gone.len()
    }

    fn destroy_pool(&mut self, which: Choice, by_other: bool) {
        let Some(at) = which.at(self.pools.len()) else { return };
        let (owner, group, pool) = self.pools.swap_remove(at);
        if by_other {
            // SAFETY: the other allocator must reject it.
            let rejected = unsafe { self.allocators[1 - owner].destroy_pool(pool) };
            self.pools.push((owner, group, rejected.expect_err("only the owner may destroy it").pool));
            return;
        }
        let live = self.forget(group);
        // SAFETY: the device never used it.
        let leaks = unsafe { self.allocators[owner].destroy_pool(pool) }.expect("the pool is live");
        assert_eq!(leaks.len(), live);
    }

    fn free_scope(&mut self, which: Choice) {
        let Some(at) = which.at(self.scopes.len()) else { return };
        let (owner, group, scope) = self.scopes.swap_remove(at);
        let live = self.forget(group);
        // SAFETY: the device never used it.
        let freed = unsafe { self.allocators[owner].free_scope(scope) }.expect("the scope is live");
        assert_eq!(usize::try_from(freed.allocation_count), Ok(live));
    }

    /// Compares the statistics with the model.
    fn check(&self) {
        let (mut blocks, mut block_bytes) = (0, 0);
        for (owner, allocator) in self.allocators.iter().enumerate() {
            let of_owner = || self.held.iter().filter(|held| held.owner == owner);
            let statistics = allocator.statistics();
            assert_eq!(usize::try_from(statistics.allocation_count), Ok(of_owner().count()));
            let bytes: u64 = of_owner().map(|held| held.allocation.size()).sum();
            assert!(statistics.allocation_bytes >= bytes, "{statistics:?}, but {bytes} bytes are allocated");
            assert!(statistics.block_bytes >= statistics.allocation_bytes, "{statistics:?}");
            let detailed = allocator.calculate_statistics();
            assert_eq!(detailed.total.statistics, statistics);
            assert_eq!(allocator.memory_map().statistics(), detailed);
            let margins = allocator.check_corruption(u32::MAX);
            assert!(!matches!(margins, Err(CorruptionError::Damaged(_))), "{margins:?}");
            blocks += statistics.block_count;
            block_bytes += statistics.block_bytes;
            allocator.validate();
        }
        let live = self.gpu.live();
        assert_eq!((live.memories, live.memory_bytes_by_heap.iter().sum()), (blocks, block_bytes));
        for held in &self.held {
            self.compare(held);
            let info = self.allocators[held.owner].allocation_info(&held.allocation).expect("it is live");
            assert_eq!((info.user_data, info.name.as_deref()), (held.user_data, held.name));
        }
        if let Some(ranges) = &self.virtual_ranges {
            ranges.check();
        }
        silent(self.gpu);
    }

    /// Frees what is left.
    fn finish(mut self) {
        while let Some(last) = self.held.len().checked_sub(1) {
            self.free(last, false);
        }
        for (owner, _, pool) in self.pools.drain(..) {
            // SAFETY: it is empty.
            let leaks = unsafe { self.allocators[owner].destroy_pool(pool) }.expect("the pool is live");
            assert!(leaks.is_empty());
        }
        for (owner, _, scope) in self.scopes.drain(..) {
            // SAFETY: it is empty.
            let freed = unsafe { self.allocators[owner].free_scope(scope) }.expect("the scope is live");
            assert_eq!(freed.allocation_count, 0);
        }
        if let Some(ranges) = self.virtual_ranges.take() {
            ranges.finish();
        }
        assert!(self.places.is_empty());
    }
}
