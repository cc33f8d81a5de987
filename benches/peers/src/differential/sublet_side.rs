//! Sublet on a simulated device.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use sublet::{
    Algorithm, Allocation, Allocator, AllocatorCreateInfo, CreateError, CreatePoolError, DefragmentationInfo,
    FindMemoryTypeError, MapError, Pool, PoolCreateInfo,
};

use super::program::{PoolSpec, ProgramResource, ProgramSetup, Spec};
use super::side::{
    Compacted, CompactionSettings, FailedOperation, HeapFigures, Placement, PoolFigures, Side, Why,
};
use super::tap::Tap;

struct SubletSideAllocation {
    allocation: Allocation,
    buffer: vk::Buffer,
    image: vk::Image,
    /// True if the program created the resource itself.
    own: bool,
    maps: u32,
}

pub(super) struct SubletSide {
    allocator: Allocator,
    held: Vec<Option<SubletSideAllocation>>,
    pools: Vec<Option<Pool>>,
    empty_blocks_kept: u32,
    frame: u32,
    tap: Tap,
}

fn of_allocation(error: sublet::AllocationError) -> FailedOperation {
    FailedOperation { result: error.vk_result(), why: Why::Allocation(error) }
}

fn of_create(error: CreateError) -> FailedOperation {
    let why = match error {
        CreateError::Allocation(error) => Why::Allocation(error),
        CreateError::ZeroExtent => Why::Other("zero extent"),
        CreateError::DeviceAddress => Why::Other("device address"),
        CreateError::Resource(_) => Why::Other("resource"),
        _ => Why::Other("bind"),
    };
    FailedOperation { result: error.vk_result(), why }
}

fn of_pool(error: CreatePoolError) -> FailedOperation {
    let why = match error {
        CreatePoolError::BlockSize { .. } => Why::Other("block size"),
        _ => Why::Other("pool"),
    };
    FailedOperation { result: error.vk_result(), why }
}

fn of_map(error: MapError) -> FailedOperation {
    let why = match error {
        MapError::NotHostVisible { .. } => Why::Other("not host-visible"),
        MapError::NoHostAccess => Why::Other("no host access"),
        MapError::NotMapped => Why::Other("not mapped"),
        _ => Why::Other("map"),
    };
    FailedOperation { result: error.vk_result(), why }
}

fn of_find(error: FindMemoryTypeError) -> FailedOperation {
    let result = match error {
        FindMemoryTypeError::Resource(error) => error.result,
        _ => vk::Result::ERROR_FEATURE_NOT_PRESENT,
    };
    let why = match error {
        FindMemoryTypeError::Contradiction(what) => Why::Allocation(what.into()),
        _ => Why::Other("find"),
    };
    FailedOperation { result, why }
}

impl SubletSide {
    pub(super) fn new(setup: &ProgramSetup) -> Self {
        let tap = Tap::new(setup);
        let gpu = tap.gpu();
        let info = AllocatorCreateInfo {
            flags: setup.flags,
            // Explicit, because 0 would not select VMA's rule.
            preferred_large_heap_block_size: match setup.large_block {
                0 => 256 << 20,
                size => size,
            },
            heap_size_limits: &setup.heap_limits,
            empty_blocks_kept: setup.empty_blocks_kept,
            functions: tap.sublet_functions(),
            ..AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version())
        };
        // SAFETY: the device outlives the allocator, and the flags match its enabled features.
        let made = unsafe { Allocator::new(&info) };
        let allocator = match made {
            Ok(allocator) => allocator,
            Err(error) => panic!("no allocator: {error}"),
        };
        let empty_blocks_kept = setup.empty_blocks_kept;
        Self { allocator, held: Vec::new(), pools: Vec::new(), empty_blocks_kept, frame: 0, tap }
    }

    fn held(&self, slot: usize) -> &SubletSideAllocation {
        self.held[slot].as_ref().expect("the caller knows which slots are in use")
    }

    fn look(allocation: &Allocation, maps: u32) -> Placement {
        Placement {
            memory: allocation.memory(),
            memory_type: allocation.memory_type_index(),
            offset: allocation.offset(),
            size: allocation.size(),
            dedicated: allocation.is_dedicated(),
            mapped: maps != 0 || allocation.mapped_pointer().is_some(),
        }
    }
}

impl Side for SubletSide {
    fn tap(&self) -> &Tap {
        &self.tap
    }

    fn create_pool(&mut self, slot: usize, spec: &PoolSpec) -> Result<(), FailedOperation> {
        let info = PoolCreateInfo {
            flags: spec.flags,
            algorithm: if spec.linear { Algorithm::Linear } else { Algorithm::Tlsf },
            block_size: spec.block_size,
            min_block_count: spec.min_blocks,
            max_block_count: spec.max_blocks,
            empty_blocks_kept: self.empty_blocks_kept,
            priority: spec.priority,
            min_allocation_alignment: spec.min_alignment,
            ..PoolCreateInfo::new(spec.memory_type)
        };
        let pool = self.allocator.create_pool(&info).map_err(of_pool)?;
        self.pools.resize_with(self.pools.len().max(slot + 1), || None);
        self.pools[slot] = Some(pool);
        Ok(())
    }

    fn destroy_pool(&mut self, slot: usize) {
        let Some(pool) = self.pools.get_mut(slot).and_then(Option::take) else { return };
        // SAFETY: nothing is allocated in it.
        let leaks = unsafe { self.allocator.destroy_pool(pool) };
        assert!(leaks.is_ok_and(|leaks| leaks.is_empty()), "the pool was not empty");
    }

    fn allocate(
        &mut self,
        slot: usize,
        resource: &ProgramResource,
        spec: &Spec,
        pool: Option<usize>,
    ) -> Result<Placement, FailedOperation> {
        let pool = pool.and_then(|slot| self.pools[slot].as_ref());
        let min_alignment =
            if let ProgramResource::Buffer { min_alignment, .. } = resource { *min_alignment } else { 0 };
        let info = spec.sublet(pool, min_alignment);
        let (mut buffer, mut image, mut own) = (vk::Buffer::null(), vk::Image::null(), false);
        let device = self.tap.gpu().device();
        let driver = |result| FailedOperation { result, why: Why::Other("resource") };
        let made = match *resource {
            ProgramResource::Raw { size, alignment, bits } => {
                let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: bits };
                self.allocator.allocate_memory(&requirements, &info).map_err(of_allocation)
            }
            ProgramResource::Buffer { buffer: made, .. } => {
                // SAFETY: the create-info is valid.
                let made = unsafe { self.allocator.create_buffer(&made.info(), &info) }.map_err(of_create);
                made.map(|(made, allocation)| {
                    buffer = made;
                    allocation
                })
            }
            ProgramResource::Image(made) => {
                // SAFETY: the create-info is valid.
                let made = unsafe { self.allocator.create_image(&made.info(), &info) }.map_err(of_create);
                made.map(|(made, allocation)| {
                    image = made;
                    allocation
                })
            }
            ProgramResource::ForBuffer(made) => {
                own = true;
                // SAFETY: the create-info is valid.
                unsafe { device.create_buffer(&made.info(), None) }.map_err(driver).and_then(|made| {
                    buffer = made;
                    // SAFETY: the buffer belongs to the device.
                    unsafe { self.allocator.allocate_memory_for_buffer(made, &info) }.map_err(of_allocation)
                })
            }
            ProgramResource::ForImage(made) => {
                own = true;
                // SAFETY: the create-info is valid.
                unsafe { device.create_image(&made.info(), None) }.map_err(driver).and_then(|made| {
                    image = made;
                    // SAFETY: the image belongs to the device.
                    unsafe { self.allocator.allocate_memory_for_image(made, &info) }.map_err(of_allocation)
                })
            }
        };
        let allocation = match made {
            Ok(allocation) => allocation,
            Err(failed) => {
                if own {
                    // SAFETY: nothing else has the handle; null is ignored.
                    unsafe { device.destroy_buffer(buffer, None) };
                    // SAFETY: as above.
                    unsafe { device.destroy_image(image, None) };
                }
                return Err(failed);
            }
        };
        let place = Self::look(&allocation, 0);
        self.held.resize_with(self.held.len().max(slot + 1), || None);
        self.held[slot] = Some(SubletSideAllocation { allocation, buffer, image, own, maps: 0 });
        Ok(place)
    }

    fn free(&mut self, slot: usize) {
        let Some(SubletSideAllocation { allocation, buffer, image, own, .. }) =
            self.held.get_mut(slot).and_then(Option::take)
        else {
            return;
        };
        let device = self.tap.gpu().device();
        if own {
            // SAFETY: nothing uses it; null is ignored.
            unsafe { device.destroy_buffer(buffer, None) };
            // SAFETY: as above.
            unsafe { device.destroy_image(image, None) };
        }
        let freed = if own || buffer == vk::Buffer::null() && image == vk::Image::null() {
            // SAFETY: nothing uses it; here and below.
            unsafe { self.allocator.free_memory(allocation) }
        } else if image == vk::Image::null() {
            // SAFETY: as above.
            unsafe { self.allocator.destroy_buffer(buffer, allocation) }
        } else {
            // SAFETY: as above.
            unsafe { self.allocator.destroy_image(image, allocation) }
        };
        assert!(freed.is_ok(), "an allocation was not taken back");
    }

    fn map(&mut self, slot: usize) -> Result<(), FailedOperation> {
        let held = self.held[slot].as_mut().expect("the caller knows which slots are in use");
        let mapping = self.allocator.map(&mut held.allocation).map_err(of_map)?;
        let _pointer = mapping.into_raw();
        held.maps += 1;
        Ok(())
    }

    fn unmap(&mut self, slot: usize) {
        let held = self.held[slot].as_mut().expect("the caller knows which slots are in use");
        // SAFETY: `map` mapped it, and its guard was consumed.
        let unmapped = unsafe { self.allocator.unmap_memory(&held.allocation) };
        assert!(unmapped.is_ok(), "a mapped allocation was not unmapped");
        held.maps -= 1;
    }

    fn make_visible(
        &mut self,
        slot: usize,
        offset: u64,
        size: u64,
        invalidate: bool,
    ) -> Result<(), FailedOperation> {
        let allocation = &self.held(slot).allocation;
        if invalidate {
            self.allocator.invalidate(allocation, offset, size).map_err(of_map)
        } else {
            self.allocator.flush(allocation, offset, size).map_err(of_map)
        }
    }

    fn place(&self, slot: usize) -> Placement {
        Self::look(&self.held(slot).allocation, self.held(slot).maps)
    }

    fn find(&mut self, resource: &ProgramResource, spec: &Spec) -> Result<u32, FailedOperation> {
        let info = spec.sublet(None, 0);
        match *resource {
            ProgramResource::Raw { bits, .. } => self.allocator.find_memory_type_index(bits, &info),
            // SAFETY: the create-info is valid.
            ProgramResource::Buffer { buffer, .. } | ProgramResource::ForBuffer(buffer) => unsafe {
                self.allocator.find_memory_type_index_for_buffer_info(&buffer.info(), &info)
            },
            // SAFETY: the create-info is valid.
            ProgramResource::Image(image) | ProgramResource::ForImage(image) => unsafe {
                self.allocator.find_memory_type_index_for_image_info(&image.info(), &info)
            },
        }
        .map_err(of_find)
    }

    fn set_frame(&mut self) {
        self.frame += 1;
        self.allocator.set_current_frame_index(self.frame);
    }

    fn heaps(&mut self) -> Vec<HeapFigures> {
        let figures = |budget: &sublet::HeapBudget| HeapFigures {
            usage: budget.usage,
            budget: budget.budget,
            blocks: budget.statistics.block_count,
            block_bytes: budget.statistics.block_bytes,
            allocations: budget.statistics.allocation_count,
            allocation_bytes: budget.statistics.allocation_bytes,
        };
        self.allocator.heap_budgets().iter().map(figures).collect()
    }

    fn pool_figures(&mut self, slot: usize) -> PoolFigures {
        let pool = self.pools[slot].as_ref().expect("the caller knows which pools there are");
        let found = self.allocator.pool_statistics(pool).unwrap_or_default();
        PoolFigures {
            blocks: found.block_count,
            block_bytes: found.block_bytes,
            allocations: found.allocation_count,
        }
    }

    fn validate(&self) {
        self.allocator.validate();
    }

    fn compact(&mut self, how: &CompactionSettings) -> Compacted {
        let pools: Vec<_> = how.pool.iter().filter_map(|slot| self.pools[*slot].as_ref()).collect();
        let info = DefragmentationInfo {
            algorithm: how.algorithm,
            pools: &pools,
            max_bytes_per_pass: how.max_bytes,
            max_allocations_per_pass: how.max_moves,
            ..Default::default()
        };
        let mut done = Compacted::default();
        let context = self.allocator.begin_defragmentation(&info);
        let mut context = match context {
            Ok(context) => context,
            Err(error) => panic!("not begun: {error}"),
        };
        while let Some(pass) = context.begin_pass() {
            let mut bytes = 0;
            let mut moves = 0;
            for moved in pass {
                bytes += moved.size();
                moves += 1;
                let source = moved.source();
                let held = self.held.iter_mut().flatten().find(|held| held.allocation.id() == source);
                let held = held.expect("only what is held is moved");
                // SAFETY: nothing is bound to it, and nothing reads it.
                let completed = unsafe { moved.complete(&mut held.allocation) };
                assert!(completed.is_ok(), "a move of a live allocation was refused");
            }
            done.passes += 1;
            done.largest_pass = (done.largest_pass.0.max(bytes), done.largest_pass.1.max(moves));
        }
        let all = context.end();
        done.moves = all.allocations_moved;
        done.bytes_moved = all.bytes_moved;
        done.bytes_freed = all.bytes_freed;
        done
    }

    fn finish(self) -> Vec<String> {
        let leaks = self.allocator.destroy();
        let mut messages: Vec<_> = leaks.iter().map(|leak| format!("leaked: {leak}")).collect();
        messages.extend(self.tap.finish());
        messages
    }
}
