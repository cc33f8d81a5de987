//! VMA's calls.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

use ash::vk;

use super::super::vma::{self as peer, Held, Virtual, Vma, VmaVirtual, details, ffi};
use super::{Block, COPIED, Calls, MANY, Request, Shape, Spec};
use crate::gpu::Gpu;

/// The name that allocations are given.
const NAME: &CStr = c"shadow map, cascade 2";

/// A create-info with what it points to.
pub(super) struct Maker {
    info: ffi::AllocatorCreateInfo,
    _functions: Box<ffi::VulkanFunctions>,
}

fn done(result: vk::Result) -> bool {
    result == vk::Result::SUCCESS
}

impl Vma {
    fn make_ranges_visible(&self, allocations: &[Held], invalidate: bool) -> bool {
        let handles: [_; MANY] = std::array::from_fn(|at| allocations[at].0);
        let (offsets, sizes) = ([0; MANY], [COPIED as u64; MANY]);
        let call = if invalidate { ffi::invalidate_allocations } else { ffi::flush_allocations };
        let (count, handles) = (MANY as u32, handles.as_ptr());
        // SAFETY: the allocations are live and mapped, and have the ranges; all lists are as long as is said.
        done(unsafe { call(self.allocator, count, handles, offsets.as_ptr(), sizes.as_ptr()) })
    }

    /// VMA's older call.
    fn look(&self, allocation: ffi::Allocation) -> ffi::AllocationInfo {
        let mut info = MaybeUninit::uninit();
        // SAFETY: the allocator and the allocation are live.
        unsafe { ffi::allocation_info(self.allocator, allocation, info.as_mut_ptr()) };
        // SAFETY: it was filled just now.
        unsafe { info.assume_init() }
    }
}

impl Calls for Vma {
    type Maker = Maker;
    type Info = ffi::AllocationCreateInfo;
    type Pool = ffi::Pool;
    type PoolInfo = ffi::PoolCreateInfo;
    type Block = VmaVirtual;

    fn new(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String> {
        Self::new(gpu, shape, false)
    }

    fn new_with_user_data(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String> {
        Self::new(gpu, shape, false)
    }

    fn new_with_budget(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String> {
        let functions = peer::functions(gpu.instance(), gpu.device());
        let info = peer::allocator_info(gpu, &functions, false);
        let info = ffi::AllocatorCreateInfo { flags: ffi::ALLOCATOR_MEMORY_BUDGET, ..info };
        Self::from_info(&info, gpu, shape)
    }

    fn maker(gpu: &Gpu) -> Maker {
        let functions = Box::new(peer::functions(gpu.instance(), gpu.device()));
        Maker { info: peer::allocator_info(gpu, &functions, false), _functions: functions }
    }

    fn made_and_destroyed(maker: &Maker) -> bool {
        let mut allocator = ptr::null_mut();
        // SAFETY: the create-info is complete, and the device lives as long as the row.
        let made = unsafe { ffi::create_allocator(&raw const maker.info, &raw mut allocator) };
        // SAFETY: nothing is in it.
        unsafe { ffi::destroy_allocator(allocator) };
        done(made)
    }

    fn pool_info(memory_type: u32) -> Self::PoolInfo {
        peer::pool_info(memory_type)
    }

    fn create_pool(&self, info: &Self::PoolInfo) -> Option<ffi::Pool> {
        let mut pool = ptr::null_mut();
        // SAFETY: the create-info is complete.
        done(unsafe { ffi::create_pool(self.allocator, info, &raw mut pool) }).then_some(pool)
    }

    fn destroy_pool(&self, pool: ffi::Pool) -> bool {
        // SAFETY: nothing is in it.
        unsafe { ffi::destroy_pool(self.allocator, pool) };
        true
    }

    fn info(&self, spec: Spec) -> Self::Info {
        ffi::AllocationCreateInfo {
            flags: spec.flags.bits(),
            required_flags: spec.required,
            preferred_flags: spec.preferred,
            memory_type_bits: spec.bits,
            ..peer::allocation_info(spec.usage as u32, self.pool)
        }
    }

    fn request(&self, needs: &vk::MemoryRequirements, info: &Self::Info) -> Option<Held> {
        let mut allocation = ptr::null_mut();
        let (to, none) = (&raw mut allocation, ptr::null_mut());
        // SAFETY: the allocator is live, everything that is passed is valid.
        done(unsafe { ffi::allocate_memory(self.allocator, needs, info, to, none) })
            .then_some(Held(allocation))
    }

    fn request_named(&self, needs: &vk::MemoryRequirements, info: &Self::Info) -> Option<Held> {
        self.request(needs, info).inspect(|held| assert!(self.set_name(held), "it cannot fail"))
    }

    fn request_numbered(&self, request: &Request, number: u64) -> Option<Held> {
        let Request { size, alignment, .. } = *request;
        let needs = vk::MemoryRequirements { size, alignment, memory_type_bits: u32::MAX };
        let user_data = ptr::without_provenance_mut(number as usize);
        let info = ffi::AllocationCreateInfo { user_data, ..self.info(Spec::default()) };
        self.request(&needs, &info)
    }

    fn set_name(&self, held: &Held) -> bool {
        // SAFETY: the allocation is live; VMA copies the name.
        unsafe { ffi::set_allocation_name(self.allocator, held.0, NAME.as_ptr()) };
        true
    }

    fn allocation_info(&self, held: &Held) -> Option<u64> {
        Some(self.look(held.0).size)
    }

    fn allocation_info2(&self, held: &Held) -> Option<u64> {
        // SAFETY: the allocator and the allocation are live.
        Some(unsafe { details(self.allocator, held.0) }.allocation_info.size)
    }

    fn budgets(&self) -> u64 {
        let mut budgets = [const { MaybeUninit::<ffi::Budget>::uninit() }; vk::MAX_MEMORY_HEAPS];
        // SAFETY: there are as many elements as there can be heaps.
        unsafe { ffi::heap_budgets(self.allocator, budgets.as_mut_ptr().cast()) };
        let count = |heap: &MaybeUninit<ffi::Budget>| {
            // SAFETY: there are as many heaps.
            u64::from(unsafe { heap.assume_init_ref() }.statistics.allocation_count)
        };
        budgets[..self.heaps].iter().map(count).sum()
    }

    fn statistics(&self) -> u64 {
        let mut all = MaybeUninit::<ffi::TotalStatistics>::uninit();
        // SAFETY: the allocator is live.
        unsafe { ffi::calculate_statistics(self.allocator, all.as_mut_ptr()) };
        // SAFETY: it was filled just now.
        u64::from(unsafe { all.assume_init_ref() }.total.statistics.allocation_count)
    }

    fn pool_statistics(&self) -> u64 {
        let mut found = ffi::Statistics::default();
        // SAFETY: the allocator and the pool are live.
        unsafe { ffi::pool_statistics(self.allocator, self.pool, &raw mut found) };
        u64::from(found.allocation_count)
    }

    fn pool_detailed(&self) -> u64 {
        let mut found = ffi::DetailedStatistics::default();
        // SAFETY: the allocator and the pool are live.
        unsafe { ffi::calculate_pool_statistics(self.allocator, self.pool, &raw mut found) };
        u64::from(found.statistics.allocation_count)
    }

    fn text(&self, map: bool) -> usize {
        let mut text = ptr::null_mut();
        // SAFETY: the allocator is live.
        unsafe { ffi::build_stats_string(self.allocator, &raw mut text, u32::from(map)) };
        // SAFETY: VMA ends its texts with a zero.
        let length = unsafe { CStr::from_ptr(text) }.count_bytes();
        // SAFETY: it is freed once.
        unsafe { ffi::free_stats_string(self.allocator, text) };
        length
    }

    fn frame(&self, index: u32) {
        // SAFETY: the allocator is live.
        unsafe { ffi::set_current_frame_index(self.allocator, index) };
    }

    fn find(&self, info: &Self::Info) -> Option<u32> {
        let mut index = u32::MAX;
        // SAFETY: the allocator is live, everything that is passed is valid; here and below.
        let found = unsafe { ffi::find_memory_type_index(self.allocator, u32::MAX, info, &raw mut index) };
        done(found).then_some(index)
    }

    fn find_for_buffer(&self, buffer: &vk::BufferCreateInfo<'_>, info: &Self::Info) -> Option<u32> {
        let mut index = u32::MAX;
        let to = &raw mut index;
        // SAFETY: as above.
        let found = unsafe { ffi::find_memory_type_index_for_buffer_info(self.allocator, buffer, info, to) };
        done(found).then_some(index)
    }

    fn find_for_image(&self, image: &vk::ImageCreateInfo<'_>, info: &Self::Info) -> Option<u32> {
        let mut index = u32::MAX;
        let to = &raw mut index;
        // SAFETY: as above.
        let found = unsafe { ffi::find_memory_type_index_for_image_info(self.allocator, image, info, to) };
        done(found).then_some(index)
    }

    fn bind(&self, held: &Held, buffer: vk::Buffer) -> bool {
        // SAFETY: the buffer is not bound, and the allocation is as large and as aligned as it needs.
        done(unsafe { ffi::bind_buffer_memory(self.allocator, held.0, buffer) })
    }

    fn map(&self, held: &Held) -> bool {
        let mut data = ptr::null_mut();
        // SAFETY: the allocation is live.
        let mapped = unsafe { ffi::map_memory(self.allocator, held.0, &raw mut data) };
        if done(mapped) {
            // SAFETY: it was mapped just now.
            unsafe { ffi::unmap_memory(self.allocator, held.0) };
        }
        done(mapped)
    }

    fn make_visible(&self, held: &Held, invalidate: bool) -> bool {
        let call = if invalidate { ffi::invalidate_allocation } else { ffi::flush_allocation };
        // SAFETY: the allocation is live and mapped, and has the range.
        done(unsafe { call(self.allocator, held.0, 0, COPIED as u64) })
    }

    fn make_many_visible(&self, allocations: &[Held], invalidate: bool) -> bool {
        self.make_ranges_visible(allocations, invalidate)
    }

    fn copy_to(&self, bytes: &[u8; COPIED], held: &mut Held) -> bool {
        let (from, size) = (bytes.as_ptr().cast(), COPIED as u64);
        // SAFETY: there are as many bytes, and the allocation has the range.
        done(unsafe { ffi::copy_memory_to_allocation(self.allocator, from, held.0, 0, size) })
    }

    fn copy_from(&self, held: &Held, bytes: &mut [u8; COPIED]) -> bool {
        let (to, size) = (bytes.as_mut_ptr().cast(), COPIED as u64);
        // SAFETY: as above.
        done(unsafe { ffi::copy_allocation_to_memory(self.allocator, held.0, 0, to, size) })
    }

    fn defragment(&self, allocations: &mut [Held]) -> u64 {
        let info = ffi::DefragmentationInfo {
            flags: 0,
            pool: self.pool,
            max_bytes_per_pass: 0,
            max_allocations_per_pass: 0,
            break_callback: ptr::null(),
            break_callback_user_data: ptr::null_mut(),
        };
        let mut context = ptr::null_mut();
        // SAFETY: the allocator is live, and has no other context.
        if !done(unsafe { ffi::begin_defragmentation(self.allocator, &raw const info, &raw mut context) }) {
            return 0;
        }
        loop {
            let mut pass = ffi::DefragmentationPassMoveInfo { move_count: 0, moves: ptr::null_mut() };
            // SAFETY: the context is live; here and below.
            if done(unsafe { ffi::begin_defragmentation_pass(self.allocator, context, &raw mut pass) }) {
                break;
            }
            // SAFETY: VMA says how many there are, and keeps them until the pass ends.
            let moves = unsafe { std::slice::from_raw_parts(pass.moves, pass.move_count as usize) };
            for moved in moves {
                let number = self.look(moved.source).user_data.addr();
                let place = self.look(moved.destination);
                std::hint::black_box((allocations[number - 1].0, place.device_memory, place.offset));
            }
            // SAFETY: as above. All moves are copies, which is what they are if nothing is said.
            if done(unsafe { ffi::end_defragmentation_pass(self.allocator, context, &raw mut pass) }) {
                break;
            }
        }
        let mut found = ffi::DefragmentationStats::default();
        // SAFETY: as above.
        unsafe { ffi::end_defragmentation(self.allocator, context, &raw mut found) };
        u64::from(found.allocations_moved)
    }
}

impl Block for VmaVirtual {
    fn new(shape: Shape) -> Result<Option<Self>, String> {
        Self::new(shape, false)
    }

    fn upper(&mut self, request: &Request) -> Option<Virtual> {
        self.take(request, ffi::UPPER_ADDRESS)
    }

    fn detailed(&self) -> u64 {
        let mut found = ffi::DetailedStatistics::default();
        // SAFETY: the block is live.
        unsafe { ffi::calculate_virtual_block_statistics(self.block, &raw mut found) };
        u64::from(found.statistics.allocation_count)
    }

    fn text(&self) -> usize {
        let mut text = ptr::null_mut();
        // SAFETY: the block is live.
        unsafe { ffi::build_virtual_block_stats_string(self.block, &raw mut text, vk::TRUE) };
        // SAFETY: VMA ends its texts with a zero.
        let length = unsafe { CStr::from_ptr(text) }.count_bytes();
        // SAFETY: it is freed once.
        unsafe { ffi::free_virtual_block_stats_string(self.block, text) };
        length
    }
}
