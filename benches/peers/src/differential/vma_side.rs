//! VMA on a simulated device.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::ptr;

use ash::vk;
use sublet::DefragmentationAlgorithm;

use super::play::ResourceNeeds;
use super::program::{PoolSpec, ProgramResource, ProgramSetup, Spec};
use super::side::{
    Compacted, CompactionSettings, FailedOperation, HeapFigures, Placement, PoolFigures, Side, Why,
};
use super::tap::Tap;
use crate::peers::vma::{details, ffi};

struct VmaSideAllocation {
    allocation: ffi::FfiAllocation,
    buffer: vk::Buffer,
    image: vk::Image,
    /// True if the program created the resource itself.
    own: bool,
}

pub(super) struct VmaSide {
    allocator: ffi::FfiAllocator,
    held: Vec<Option<VmaSideAllocation>>,
    pools: Vec<ffi::FfiPool>,
    heaps: usize,
    granularity: u64,
    frame: u32,
    tap: Tap,
}

fn checked(result: vk::Result) -> Result<(), FailedOperation> {
    if result.as_raw() >= 0 { Ok(()) } else { Err(FailedOperation { result, why: Why::Unsaid }) }
}

impl VmaSide {
    pub(super) fn new(setup: &ProgramSetup) -> Self {
        let tap = Tap::new(setup);
        let gpu = tap.gpu();
        let functions = tap.vma_functions();
        let limits = &setup.heap_limits;
        let info = ffi::FfiAllocatorCreateInfo {
            flags: setup.flags.bits(),
            physical_device: gpu.physical_device(),
            device: gpu.device().handle(),
            preferred_large_heap_block_size: setup.large_block,
            allocation_callbacks: ptr::null(),
            device_memory_callbacks: ptr::null(),
            heap_size_limit: if limits.is_empty() { ptr::null() } else { limits.as_ptr() },
            vulkan_functions: &raw const functions,
            instance: gpu.instance().handle(),
            vulkan_api_version: gpu.api_version(),
            type_external_memory_handle_types: ptr::null(),
        };
        let mut allocator = ptr::null_mut();
        // SAFETY: the create-info is complete, and the device outlives the allocator.
        let made = unsafe { ffi::create_allocator(&raw const info, &raw mut allocator) };
        assert_eq!(made, vk::Result::SUCCESS, "vmaCreateAllocator cannot fail");
        Self {
            allocator,
            held: Vec::new(),
            pools: Vec::new(),
            heaps: setup.profile.heaps.len(),
            granularity: setup.profile.limits.buffer_image_granularity,
            frame: 0,
            tap,
        }
    }

    fn info(&self, spec: &Spec, pool: Option<usize>) -> ffi::FfiAllocationCreateInfo {
        ffi::FfiAllocationCreateInfo {
            flags: spec.flags.bits(),
            usage: spec.usage as u32,
            required_flags: spec.required,
            preferred_flags: spec.preferred,
            memory_type_bits: spec.bits,
            pool: pool.map_or(ptr::null_mut(), |slot| self.pools[slot]),
            user_data: ptr::null_mut(),
            priority: spec.priority,
        }
    }

    fn held(&self, slot: usize) -> ffi::FfiAllocation {
        self.held[slot].as_ref().map_or(ptr::null_mut(), |held| held.allocation)
    }

    fn look(&self, allocation: ffi::FfiAllocation) -> Placement {
        // SAFETY: the allocator and the allocation are live.
        let found = unsafe { details(self.allocator, allocation) };
        let info = found.allocation_info;
        Placement {
            memory: info.device_memory,
            memory_type: info.memory_type,
            offset: info.offset,
            size: info.size,
            dedicated: found.dedicated_memory != vk::FALSE,
            mapped: !info.mapped_data.is_null(),
        }
    }
}

impl Side for VmaSide {
    fn tap(&self) -> &Tap {
        &self.tap
    }

    fn create_pool(&mut self, slot: usize, spec: &PoolSpec) -> Result<(), FailedOperation> {
        let linear = if spec.linear { ffi::POOL_LINEAR } else { 0 };
        let info = ffi::FfiPoolCreateInfo {
            memory_type_index: spec.memory_type,
            flags: spec.flags.bits() | linear,
            block_size: spec.block_size,
            min_block_count: spec.min_blocks as usize,
            max_block_count: spec.max_blocks as usize,
            priority: spec.priority,
            min_allocation_alignment: spec.min_alignment,
            memory_allocate_next: ptr::null_mut(),
        };
        let mut pool = ptr::null_mut();
        // SAFETY: the create-info is complete.
        checked(unsafe { ffi::create_pool(self.allocator, &raw const info, &raw mut pool) })?;
        self.pools.resize(self.pools.len().max(slot + 1), ptr::null_mut());
        self.pools[slot] = pool;
        Ok(())
    }

    fn destroy_pool(&mut self, slot: usize) {
        // SAFETY: the pool is live and empty, or null.
        unsafe {
            ffi::destroy_pool(self.allocator, self.pools.get(slot).copied().unwrap_or(ptr::null_mut()))
        };
        if let Some(pool) = self.pools.get_mut(slot) {
            *pool = ptr::null_mut();
        }
    }

    fn allocate(
        &mut self,
        slot: usize,
        resource: &ProgramResource,
        spec: &Spec,
        pool: Option<usize>,
    ) -> Result<Placement, FailedOperation> {
        let info = self.info(spec, pool);
        let info = &raw const info;
        let mut allocation = ptr::null_mut();
        let (to, none) = (&raw mut allocation, ptr::null_mut());
        let (mut buffer, mut image, mut own) = (vk::Buffer::null(), vk::Image::null(), false);
        let allocator = self.allocator;
        let device = self.tap.gpu().device();
        let result = match *resource {
            ProgramResource::Raw { size, alignment, bits } => {
                let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: bits };
                // SAFETY: the allocator is live, and all arguments are valid; here and below.
                unsafe { ffi::allocate_memory(allocator, &raw const requirements, info, to, none) }
            }
            ProgramResource::Buffer { buffer: spec, min_alignment } => {
                let made = spec.info();
                let (made, out) = (&raw const made, &raw mut buffer);
                if min_alignment == 0 {
                    // SAFETY: as above.
                    unsafe { ffi::create_buffer(allocator, made, info, out, to, none) }
                } else {
                    // SAFETY: as above.
                    unsafe {
                        ffi::create_buffer_with_alignment(allocator, made, info, min_alignment, out, to, none)
                    }
                }
            }
            ProgramResource::Image(spec) => {
                let made = spec.info();
                // SAFETY: as above.
                unsafe { ffi::create_image(allocator, &raw const made, info, &raw mut image, to, none) }
            }
            ProgramResource::ForBuffer(spec) => {
                own = true;
                // SAFETY: the create-info is valid.
                match unsafe { device.create_buffer(&spec.info(), None) } {
                    Err(error) => error,
                    Ok(made) => {
                        buffer = made;
                        // SAFETY: as above.
                        unsafe { ffi::allocate_memory_for_buffer(allocator, made, info, to, none) }
                    }
                }
            }
            ProgramResource::ForImage(spec) => {
                own = true;
                // SAFETY: the create-info is valid.
                match unsafe { device.create_image(&spec.info(), None) } {
                    Err(error) => error,
                    Ok(made) => {
                        image = made;
                        // SAFETY: as above.
                        unsafe { ffi::allocate_memory_for_image(allocator, made, info, to, none) }
                    }
                }
            }
        };
        if let Err(failed) = checked(result) {
            if own {
                // SAFETY: nothing else has the handle; null is ignored.
                unsafe { device.destroy_buffer(buffer, None) };
                // SAFETY: as above.
                unsafe { device.destroy_image(image, None) };
            }
            return Err(failed);
        }
        self.held.resize_with(self.held.len().max(slot + 1), || None);
        self.held[slot] = Some(VmaSideAllocation { allocation, buffer, image, own });
        Ok(self.look(allocation))
    }

    fn free(&mut self, slot: usize) {
        let Some(VmaSideAllocation { allocation, buffer, image, own }) =
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
        if own || buffer == vk::Buffer::null() && image == vk::Image::null() {
            // SAFETY: the allocation is live and nothing uses it; here and below.
            unsafe { ffi::free_memory(self.allocator, allocation) };
        } else if image == vk::Image::null() {
            // SAFETY: as above.
            unsafe { ffi::destroy_buffer(self.allocator, buffer, allocation) };
        } else {
            // SAFETY: as above.
            unsafe { ffi::destroy_image(self.allocator, image, allocation) };
        }
    }

    fn map(&mut self, slot: usize) -> Result<(), FailedOperation> {
        let mut data = ptr::null_mut();
        // SAFETY: the allocation is live.
        checked(unsafe { ffi::map_memory(self.allocator, self.held(slot), &raw mut data) })
    }

    fn unmap(&mut self, slot: usize) {
        // SAFETY: the allocation is live and mapped.
        unsafe { ffi::unmap_memory(self.allocator, self.held(slot)) };
    }

    fn make_visible(
        &mut self,
        slot: usize,
        offset: u64,
        size: u64,
        invalidate: bool,
    ) -> Result<(), FailedOperation> {
        let allocation = self.held(slot);
        checked(if invalidate {
            // SAFETY: the allocation is live and mapped, and has the range.
            unsafe { ffi::invalidate_allocation(self.allocator, allocation, offset, size) }
        } else {
            // SAFETY: as above.
            unsafe { ffi::flush_allocation(self.allocator, allocation, offset, size) }
        })
    }

    fn place(&self, slot: usize) -> Placement {
        self.look(self.held(slot))
    }

    fn find(&mut self, resource: &ProgramResource, spec: &Spec) -> Result<u32, FailedOperation> {
        let info = self.info(spec, None);
        let info = &raw const info;
        let mut index = u32::MAX;
        let to = &raw mut index;
        checked(match *resource {
            // SAFETY: the allocator is live, and all arguments are valid; here and below.
            ProgramResource::Raw { bits, .. } => unsafe {
                ffi::find_memory_type_index(self.allocator, bits, info, to)
            },
            ProgramResource::Buffer { buffer, .. } | ProgramResource::ForBuffer(buffer) => {
                let made = buffer.info();
                // SAFETY: as above.
                unsafe {
                    ffi::find_memory_type_index_for_buffer_info(self.allocator, &raw const made, info, to)
                }
            }
            ProgramResource::Image(image) | ProgramResource::ForImage(image) => {
                let made = image.info();
                // SAFETY: as above.
                unsafe {
                    ffi::find_memory_type_index_for_image_info(self.allocator, &raw const made, info, to)
                }
            }
        })?;
        Ok(index)
    }

    fn set_frame(&mut self) {
        self.frame += 1;
        // SAFETY: the allocator is live.
        unsafe { ffi::set_current_frame_index(self.allocator, self.frame) };
    }

    fn heaps(&mut self) -> Vec<HeapFigures> {
        let mut budgets = [ffi::FfiBudget::default(); vk::MAX_MEMORY_HEAPS];
        // SAFETY: the allocator is live, and the array has an element for each possible heap.
        unsafe { ffi::heap_budgets(self.allocator, budgets.as_mut_ptr()) };
        let figures = |budget: &ffi::FfiBudget| HeapFigures {
            usage: budget.usage,
            budget: budget.budget,
            blocks: u64::from(budget.statistics.block_count),
            block_bytes: budget.statistics.block_bytes,
            allocations: u64::from(budget.statistics.allocation_count),
            allocation_bytes: budget.statistics.allocation_bytes,
        };
        budgets[..self.heaps].iter().map(figures).collect()
    }

    fn pool_figures(&mut self, slot: usize) -> PoolFigures {
        let mut found = ffi::FfiStatistics::default();
        // SAFETY: the pool is live.
        unsafe { ffi::pool_statistics(self.allocator, self.pools[slot], &raw mut found) };
        PoolFigures {
            blocks: u64::from(found.block_count),
            block_bytes: found.block_bytes,
            allocations: u64::from(found.allocation_count),
        }
    }

    /// VMA checks itself in debug builds.
    fn validate(&self) {}

    fn compact(&mut self, how: &CompactionSettings) -> Compacted {
        let info = ffi::FfiDefragmentationInfo {
            flags: match how.algorithm {
                DefragmentationAlgorithm::Fast => 1,
                DefragmentationAlgorithm::Full => 4,
                // With a granularity above 1, VMA's extensive algorithm reads beyond its list of blocks after a block
                // is freed. The full algorithm replaces it.
                DefragmentationAlgorithm::Extensive if self.granularity > 1 => 4,
                DefragmentationAlgorithm::Extensive => 8,
                _ => 2,
            },
            pool: how.pool.map_or(ptr::null_mut(), |slot| self.pools[slot]),
            max_bytes_per_pass: how.max_bytes,
            max_allocations_per_pass: how.max_moves,
            break_callback: ptr::null(),
            break_callback_user_data: ptr::null_mut(),
        };
        let mut context = ptr::null_mut();
        // SAFETY: the allocator is live, and has no other context.
        let begun = unsafe { ffi::begin_defragmentation(self.allocator, &raw const info, &raw mut context) };
        assert_eq!(begun, vk::Result::SUCCESS, "only linear pools are refused");
        let mut done = Compacted::default();
        loop {
            let mut pass = ffi::FfiDefragmentationPassMoveInfo { move_count: 0, moves: ptr::null_mut() };
            // SAFETY: the context is live; here and below.
            let more = unsafe { ffi::begin_defragmentation_pass(self.allocator, context, &raw mut pass) };
            if more == vk::Result::SUCCESS {
                break;
            }
            done.passes += 1;
            done.largest_pass.1 = done.largest_pass.1.max(u64::from(pass.move_count));
            // SAFETY: as above. All moves are copies, which is the default operation.
            let more = unsafe { ffi::end_defragmentation_pass(self.allocator, context, &raw mut pass) };
            if more == vk::Result::SUCCESS {
                break;
            }
        }
        let mut stats = ffi::FfiDefragmentationStats::default();
        // SAFETY: as above.
        unsafe { ffi::end_defragmentation(self.allocator, context, &raw mut stats) };
        done.moves = u64::from(stats.allocations_moved);
        done.bytes_moved = stats.bytes_moved;
        done.bytes_freed = stats.bytes_freed;
        done
    }

    fn finish(self) -> Vec<String> {
        // SAFETY: nothing is left in it, and it is not used again.
        unsafe { ffi::destroy_allocator(self.allocator) };
        self.tap.finish()
    }
}

impl VmaSide {
    /// Returns the requirements of a resource. `None` if the driver does not create it.
    pub(super) fn needs(&self, resource: &ProgramResource) -> Option<ResourceNeeds> {
        let device = self.tap.gpu().device();
        let (found, least) = match *resource {
            ProgramResource::Raw { size, alignment, bits } => {
                return Some(ResourceNeeds { size, alignment, bits });
            }
            ProgramResource::Buffer { buffer, .. } | ProgramResource::ForBuffer(buffer) => {
                if buffer.size == 0 {
                    return None;
                }
                // SAFETY: the create-info is valid.
                let made = unsafe { device.create_buffer(&buffer.info(), None) }.ok()?;
                // SAFETY: it was made just now.
                let found = unsafe { device.get_buffer_memory_requirements(made) };
                // SAFETY: nothing else has the handle.
                unsafe { device.destroy_buffer(made, None) };
                (
                    found,
                    if let ProgramResource::Buffer { min_alignment, .. } = *resource {
                        min_alignment
                    } else {
                        0
                    },
                )
            }
            ProgramResource::Image(image) | ProgramResource::ForImage(image) => {
                // SAFETY: the create-info is valid.
                let made = unsafe { device.create_image(&image.info(), None) }.ok()?;
                // SAFETY: it was made just now.
                let found = unsafe { device.get_image_memory_requirements(made) };
                // SAFETY: nothing else has the handle.
                unsafe { device.destroy_image(made, None) };
                (found, 0)
            }
        };
        let alignment = found.alignment.max(least);
        Some(ResourceNeeds { size: found.size, alignment, bits: found.memory_type_bits })
    }
}
