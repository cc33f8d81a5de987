//! Runs a program in C, and compares it with the model.
#![expect(unsafe_code, reason = "calls the C interface")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one proof: handles are null or live, since closing one removes it from the program; arguments point to \
              locals or literals; results are read after the call wrote them, until their owner is closed"
)]

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use ash::vk;
use ash::vk::Handle as _;
use sublet::sim::Gpu;
use sublet_capi::*;
use sublet_fuzz::{Choice, MEMORY_CALLS, Places, finished, silent};
use sublet_report::Snapshot;

use crate::call::{Call, Input, Request, Use};

const MOST_POOLS: usize = 8;
const SUCCESS: vk::Result = vk::Result::SUCCESS;

/// A live allocation.
struct Held {
    owner: usize,
    pool: VmaPool,
    allocation: VmaAllocation,
    buffer: vk::Buffer,
    alignment: u64,
}

/// The state of a program.
struct Program<'a> {
    gpu: &'a Gpu,
    allocators: [VmaAllocator; 2],
    held: Vec<Held>,
    pools: Vec<(usize, VmaPool)>,
    places: Places,
    block: VmaVirtualBlock,
    block_size: u64,
    ranges: Vec<(VmaVirtualAllocation, u64, u64)>,
    virtual_places: Places,
}

fn allocator(gpu: &Gpu) -> VmaAllocator {
    let functions = VmaVulkanFunctions {
        get_instance_proc_addr: Some(gpu.entry().static_fn().get_instance_proc_addr),
        get_device_proc_addr: Some(gpu.instance().fp_v1_0().get_device_proc_addr),
        ..Default::default()
    };
    let info = VmaAllocatorCreateInfo {
        flags: 0,
        physical_device: gpu.physical_device(),
        device: gpu.device().handle(),
        preferred_large_heap_block_size: 0,
        allocation_callbacks: null(),
        device_memory_callbacks: null(),
        heap_size_limit: null(),
        vulkan_functions: &functions,
        instance: gpu.instance().handle(),
        vulkan_api_version: gpu.api_version(),
        type_external_memory_handle_types: null(),
    };
    let mut made = null_mut();
    // SAFETY: the structures are valid, and the device outlives the allocator.
    let result = unsafe { vmaCreateAllocator(&info, &mut made) };
    assert_eq!(result, SUCCESS);
    made
}

/// Runs a program on new allocators, and frees what it leaves.
pub(crate) fn run(input: &Input) {
    let gpu = sublet_fuzz::gpu(input.profile).build();
    let info = VmaVirtualBlockCreateInfo {
        size: input.virtual_size.0,
        flags: u32::from(input.is_linear),
        allocation_callbacks: null(),
    };
    let mut block = null_mut();
    // SAFETY: the structure is valid.
    let result = unsafe { vmaCreateVirtualBlock(&info, &mut block) };
    assert_eq!(result == SUCCESS, !block.is_null());
    let mut program = Program {
        gpu: &gpu,
        allocators: [allocator(&gpu), allocator(&gpu)],
        held: Vec::new(),
        pools: Vec::new(),
        places: Places::default(),
        block,
        block_size: info.size,
        ranges: Vec::new(),
        virtual_places: Places::default(),
    };
    for call in &input.calls.0 {
        // SAFETY: handles are null or live, and pointers are valid.
        unsafe { program.call(call) };
    }
    gpu.faults().clear();
    // SAFETY: as above.
    unsafe { program.finish() };
    finished(&gpu);
}

impl Program<'_> {
    /// # Safety
    /// This, and all functions below: the handles of the program are live.
    unsafe fn call(&mut self, call: &Call) {
        match call {
            Call::Allocate { request, size, alignment, types } => {
                let types = if *types == 0 { u32::MAX } else { u32::from(*types) };
                let (size, alignment) = (size.0, alignment.0.max(1));
                let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: types };
                unsafe { self.allocate(request, requirements, 1) };
            }
            Call::AllocatePages { request, size, alignment, count } => {
                let (size, alignment) = (size.0, alignment.0.max(1));
                let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: u32::MAX };
                unsafe { self.allocate(request, requirements, usize::from(count % 8)) };
            }
            Call::CreateBuffer { request, size } => {
                // The program, not the library, must respect the limits of the device.
                unsafe { self.create_buffer(request, size.0.clamp(1, 1 << 28)) };
            }
            Call::Free { which } => {
                if let Some(at) = which.at(self.held.len()) {
                    unsafe { self.free(at) };
                }
            }
            Call::FreeNothing { owner } => {
                let allocator = self.allocators[usize::from(*owner)];
                unsafe { vmaFreeMemory(allocator, null_mut()) };
                unsafe { vmaDestroyBuffer(allocator, vk::Buffer::null(), null_mut()) };
                unsafe { vmaDestroyPool(allocator, null_mut()) };
            }
            Call::Use { which, by_other, action } => {
                let Some(held) = which.of(&self.held) else { return };
                let other = held.owner ^ usize::from(*by_other);
                let result = unsafe { use_one(self.allocators[other], held, *action) };
                // As in VMA, copying nothing succeeds without a look at the allocation.
                let is_empty = matches!(action, Use::Write { len: 0, .. } | Use::Read { len: 0, .. });
                let is_rejected = result != SUCCESS || is_empty;
                assert!(!by_other || is_rejected, "another allocator accepted it: {action:?}");
            }
            Call::Defragment { owner, flags, in_pool, bytes, moves } => {
                let info = VmaDefragmentationInfo {
                    flags: u32::from(*flags & 0xf),
                    pool: self.pool_of(*in_pool),
                    max_bytes_per_pass: bytes.0,
                    max_allocations_per_pass: 0,
                    break_callback: None,
                    break_callback_user_data: null_mut(),
                };
                unsafe { self.defragment(usize::from(*owner), &info, moves) };
            }
            Call::Fail(fault) => fault.inject(self.gpu, MEMORY_CALLS),
            Call::Check => unsafe { self.check() },
            Call::Virtual { .. } | Call::VirtualFree { .. } | Call::VirtualClear => unsafe {
                self.virtual_call(call)
            },
            _ => unsafe { self.pool_call(call) },
        }
    }

    fn pool_of(&self, which: Option<Choice>) -> VmaPool {
        which.and_then(|which| which.of(&self.pools)).map_or(null_mut(), |(_, pool)| *pool)
    }

    /// Adds an allocation to the model.
    unsafe fn hold(&mut self, held: Held) {
        let info = unsafe { info_of(self.allocators[held.owner], held.allocation) };
        let memory = self.gpu.memory_info(info.device_memory).expect("the memory is live");
        self.places.add(info.device_memory.as_raw(), info.offset, info.size, memory.size, held.alignment);
        self.held.push(held);
    }

    /// Removes an allocation from the model.
    unsafe fn displace(&mut self, held: &Held) {
        let info = unsafe { info_of(self.allocators[held.owner], held.allocation) };
        self.places.remove(info.device_memory.as_raw(), info.offset, info.size);
    }

    unsafe fn allocate(&mut self, request: &Request, requirements: vk::MemoryRequirements, count: usize) {
        let (owner, pool) = (usize::from(request.owner), self.pool_of(request.pool));
        let info = request.info(pool);
        let mut made = vec![null_mut(); count];
        let (result, allocator) = (made.as_mut_ptr(), self.allocators[owner]);
        let result = match count {
            1 => unsafe { vmaAllocateMemory(allocator, &requirements, &info, result, null_mut()) },
            _ => unsafe {
                vmaAllocateMemoryPages(allocator, &requirements, &info, count, result, null_mut())
            },
        };
        assert!(made.iter().all(|made| made.is_null() != (result == SUCCESS)));
        for allocation in made.into_iter().filter(|made| !made.is_null()) {
            let alignment = requirements.alignment.max(info.min_alignment);
            let buffer = vk::Buffer::null();
            unsafe { self.hold(Held { owner, pool, allocation, buffer, alignment }) };
        }
    }

    unsafe fn create_buffer(&mut self, request: &Request, size: u64) {
        let (owner, pool) = (usize::from(request.owner), self.pool_of(request.pool));
        let info = request.info(pool);
        let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::STORAGE_BUFFER;
        let of_buffer = vk::BufferCreateInfo::default().size(size).usage(usage);
        let (mut buffer, mut allocation) = (vk::Buffer::null(), null_mut());
        let allocator = self.allocators[owner];
        let result = unsafe {
            vmaCreateBuffer(allocator, &of_buffer, &info, &mut buffer, &mut allocation, null_mut())
        };
        if result != SUCCESS {
            assert!(allocation.is_null() && buffer.is_null());
            return;
        }
        let needs = unsafe { self.gpu.device().get_buffer_memory_requirements(buffer) };
        let alignment = needs.alignment.max(info.min_alignment);
        unsafe { self.hold(Held { owner, pool, allocation, buffer, alignment }) };
    }

    unsafe fn free(&mut self, at: usize) {
        let held = self.held.swap_remove(at);
        unsafe { self.displace(&held) };
        unsafe { vmaDestroyBuffer(self.allocators[held.owner], held.buffer, held.allocation) };
    }

    unsafe fn create_pool(&mut self, owner: usize, info: &VmaPoolCreateInfo) {
        let mut pool = null_mut();
        if self.pools.len() == MOST_POOLS {
            return;
        }
        let result = unsafe { vmaCreatePool(self.allocators[owner], info, &mut pool) };
        assert_eq!(result == SUCCESS, !pool.is_null());
        if result == SUCCESS {
            self.pools.push((owner, pool));
        }
    }

    /// Calls on pools, and on allocators as a whole.
    unsafe fn pool_call(&mut self, call: &Call) {
        match call {
            Call::CreatePool { owner, memory_type, flags, block_size, counts, alignment } => {
                let info = VmaPoolCreateInfo {
                    memory_type_index: memory_type.one(&[0, 1, 2, 3, 4, 5, 8, 31, 32, u32::MAX]),
                    flags: flags.one(&[0, 0, 2, POOL_LINEAR_ALGORITHM, 6, 8, u32::MAX]),
                    block_size: block_size.0,
                    min_block_count: counts[0].one(&[0, 0, 1, 3]),
                    max_block_count: counts[1].one(&[0, 1, 2, 5, usize::MAX]),
                    priority: 0.5,
                    min_allocation_alignment: alignment.0,
                    memory_allocate_next: null(),
                };
                unsafe { self.create_pool(usize::from(*owner), &info) };
            }
            Call::DestroyPool { which, by_other } => {
                let Some(at) = which.at(self.pools.len()) else { return };
                let (owner, pool) = self.pools[at];
                // A pool must be empty.
                if self.held.iter().any(|held| held.pool == pool) {
                    return;
                }
                unsafe { vmaDestroyPool(self.allocators[owner ^ usize::from(*by_other)], pool) };
                if !by_other {
                    self.pools.swap_remove(at);
                }
            }
            Call::UsePool { which, by_other, is_named } => {
                let Some((owner, pool)) = which.of(&self.pools) else { return };
                let allocator = self.allocators[owner ^ usize::from(*by_other)];
                let name = if *is_named { c"a pool".as_ptr() } else { null() };
                let (mut statistics, mut known) = (VmaStatistics::default(), null());
                unsafe { vmaSetPoolName(allocator, *pool, name) };
                unsafe { vmaGetPoolName(allocator, *pool, &mut known) };
                unsafe { vmaGetPoolStatistics(allocator, *pool, &mut statistics) };
                let _ = unsafe { vmaCheckPoolCorruption(allocator, *pool) };
                if !by_other {
                    let live = self.held.iter().filter(|held| held.pool == *pool).count();
                    assert_eq!(usize::try_from(statistics.allocation_count), Ok(live));
                    assert_eq!(known.is_null(), !is_named);
                }
            }
            Call::Statistics { owner, detailed } => {
                let allocator = self.allocators[usize::from(*owner)];
                let mut text: *mut c_char = null_mut();
                unsafe { vmaBuildStatsString(allocator, &mut text, u32::from(*detailed)) };
                assert!(!text.is_null());
                if *detailed {
                    let text = unsafe { CStr::from_ptr(text) }.to_str().expect("it is ASCII");
                    // Reading it checks that the chunks cover each block.
                    Snapshot::from_json(text).expect("VMA's tools can read it");
                }
                unsafe { vmaFreeStatsString(allocator, text) };
                let _ = unsafe { vmaCheckCorruption(allocator, u32::MAX) };
            }
            Call::Frame { owner, frame } => unsafe {
                vmaSetCurrentFrameIndex(self.allocators[usize::from(*owner)], *frame);
            },
            _ => {}
        }
    }

    unsafe fn defragment(&mut self, owner: usize, info: &VmaDefragmentationInfo, choices: &[u8]) {
        const INCOMPLETE: vk::Result = vk::Result::INCOMPLETE;
        let (allocator, mut context) = (self.allocators[owner], null_mut());
        if unsafe { vmaBeginDefragmentation(allocator, info, &mut context) } != SUCCESS {
            return;
        }
        for choices in choices.chunks(8) {
            let mut pass = VmaDefragmentationPassMoveInfo { move_count: 0, moves: null_mut() };
            if unsafe { vmaBeginDefragmentationPass(allocator, context, &mut pass) } != INCOMPLETE {
                break;
            }
            let count = usize::try_from(pass.move_count).expect("it fits");
            let moves = unsafe { std::slice::from_raw_parts_mut(pass.moves, count) };
            let mut moved = Vec::new();
            for (planned, choice) in moves.iter_mut().zip(choices.iter().cycle()) {
                let at = self.held.iter().position(|held| held.allocation == planned.src_allocation);
                let held = self.held.swap_remove(at.expect("only live allocations move"));
                unsafe { self.displace(&held) };
                // This program destroys buffers rather than copy them.
                unsafe { self.gpu.device().destroy_buffer(held.buffer, None) };
                // Copied, ignored, or destroyed.
                planned.operation = u32::from(choice % 3);
                if planned.operation != 2 {
                    moved.push(Held { buffer: vk::Buffer::null(), ..held });
                }
            }
            let ended = unsafe { vmaEndDefragmentationPass(allocator, context, &mut pass) };
            for held in moved {
                unsafe { self.hold(held) };
            }
            if ended != INCOMPLETE {
                break;
            }
        }
        let mut statistics = VmaDefragmentationStats::default();
        unsafe { vmaEndDefragmentation(allocator, context, &mut statistics) };
    }

    unsafe fn virtual_call(&mut self, call: &Call) {
        if self.block.is_null() {
            return;
        }
        match call {
            Call::Virtual { size, alignment, flags } => {
                let info = VmaVirtualAllocationCreateInfo {
                    size: size.0,
                    alignment: 1 << (alignment % 64),
                    flags: flags.one(&[0, 0, 0x40, 0x1_0000, 0x2_0000, 0x4_0000, u32::MAX]),
                    user_data: null_mut(),
                };
                let (mut range, mut offset) = (0, 0);
                let result = unsafe { vmaVirtualAllocate(self.block, &info, &mut range, &mut offset) };
                assert_eq!(result == SUCCESS, range != 0);
                if result == SUCCESS {
                    self.virtual_places.add(0, offset, size.0, self.block_size, info.alignment);
                    self.ranges.push((range, offset, size.0));
                }
            }
            Call::VirtualFree { which } => {
                let Some(at) = which.at(self.ranges.len()) else { return };
                let (range, offset, size) = self.ranges.swap_remove(at);
                unsafe { vmaVirtualFree(self.block, range) };
                self.virtual_places.remove(0, offset, size);
            }
            _ => {
                unsafe { vmaClearVirtualBlock(self.block) };
                self.ranges.clear();
                self.virtual_places.clear();
            }
        }
        let mut statistics = VmaStatistics::default();
        unsafe { vmaGetVirtualBlockStatistics(self.block, &mut statistics) };
        assert_eq!(usize::try_from(statistics.allocation_count), Ok(self.ranges.len()));
        assert!(statistics.allocation_bytes >= self.virtual_places.bytes());
    }

    /// Compares the statistics with the model.
    unsafe fn check(&self) {
        let (mut blocks, mut block_bytes) = (0, 0);
        for (owner, allocator) in self.allocators.iter().enumerate() {
            let mut total = MaybeUninit::<VmaTotalStatistics>::uninit();
            unsafe { vmaCalculateStatistics(*allocator, total.as_mut_ptr()) };
            let statistics = unsafe { total.assume_init() }.total.statistics;
            let held = self.held.iter().filter(|held| held.owner == owner);
            assert_eq!(usize::try_from(statistics.allocation_count), Ok(held.count()));
            blocks += u64::from(statistics.block_count);
            block_bytes += statistics.block_bytes;
        }
        let live = self.gpu.live();
        assert_eq!((live.memories, live.memory_bytes_by_heap.iter().sum()), (blocks, block_bytes));
        silent(self.gpu);
    }

    /// Frees what is left.
    unsafe fn finish(mut self) {
        unsafe { self.check() };
        while let Some(last) = self.held.len().checked_sub(1) {
            unsafe { self.free(last) };
        }
        assert!(self.places.is_empty());
        for (owner, pool) in self.pools {
            unsafe { vmaDestroyPool(self.allocators[owner], pool) };
        }
        if !self.block.is_null() {
            for (range, ..) in self.ranges {
                unsafe { vmaVirtualFree(self.block, range) };
            }
            assert_ne!(unsafe { vmaIsVirtualBlockEmpty(self.block) }, vk::FALSE);
            unsafe { vmaDestroyVirtualBlock(self.block) };
        }
        for allocator in self.allocators {
            unsafe { vmaDestroyAllocator(allocator) };
        }
    }
}

/// # Safety
/// The handles are live.
unsafe fn info_of(allocator: VmaAllocator, allocation: VmaAllocation) -> VmaAllocationInfo {
    let mut info = MaybeUninit::<VmaAllocationInfo>::uninit();
    unsafe { vmaGetAllocationInfo(allocator, allocation, info.as_mut_ptr()) };
    unsafe { info.assume_init() }
}

/// Returns the result of the function. A function without a result counts as rejected.
///
/// # Safety
/// The handles are live.
unsafe fn use_one(allocator: VmaAllocator, held: &Held, action: Use) -> vk::Result {
    let allocation = held.allocation;
    let mut bytes = [7_u8; 256];
    match action {
        Use::Map => {
            let mut data: *mut c_void = null_mut();
            let result = unsafe { vmaMapMemory(allocator, allocation, &mut data) };
            assert_eq!(result == SUCCESS, !data.is_null());
            if result == SUCCESS {
                unsafe { vmaUnmapMemory(allocator, allocation) };
            }
            result
        }
        Use::Flush { offset, size } => unsafe { vmaFlushAllocation(allocator, allocation, offset.0, size.0) },
        Use::Invalidate { offset, size } => unsafe {
            vmaInvalidateAllocation(allocator, allocation, offset.0, size.0)
        },
        Use::Write { offset, len } => unsafe {
            vmaCopyMemoryToAllocation(allocator, bytes.as_ptr().cast(), allocation, offset.0, u64::from(len))
        },
        Use::Read { offset, len } => unsafe {
            vmaCopyAllocationToMemory(
                allocator,
                allocation,
                offset.0,
                bytes.as_mut_ptr().cast(),
                u64::from(len),
            )
        },
        Use::Name { is_named } => {
            let name = if is_named { c"a name".as_ptr() } else { null() };
            unsafe { vmaSetAllocationName(allocator, allocation, name) };
            vk::Result::ERROR_UNKNOWN
        }
        Use::UserData { number } => {
            let pointer = std::ptr::without_provenance_mut(usize::from(number));
            unsafe { vmaSetAllocationUserData(allocator, allocation, pointer) };
            vk::Result::ERROR_UNKNOWN
        }
        Use::Info => {
            let mut info = MaybeUninit::<VmaAllocationInfo>::zeroed();
            unsafe { vmaGetAllocationInfo(allocator, allocation, info.as_mut_ptr()) };
            vk::Result::ERROR_UNKNOWN
        }
    }
}

/// Ignores a message, after it was formatted.
unsafe extern "system" fn ignore(_level: u32, _message: *const c_char, _user_data: *mut c_void) {}

/// A wrong call returns an error. It neither ends the process nor prints a line.
pub(crate) fn set_up() {
    const WARNINGS: u32 = 2;
    // SAFETY: the functions have no conditions.
    unsafe { subletSetLogCallback(Some(ignore), WARNINGS, null_mut()) };
    // SAFETY: as above.
    unsafe { subletSetAssertions(0) };
}
