//! Defragmentation in a vk-mem program, on simulated GPUs that copy.
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a test calls what it tests")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "a test: the simulated device checks what it is given")]

use std::cell::Cell;
use std::sync::Arc;

use ash::vk;
use sublet::sim::{Gpu, Profile, profiles};
use vk_mem::{
    Alloc, Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo,
    AllocatorPool, AllocatorPoolCreateFlags, DefragmentationFlags, DefragmentationInfo,
    DefragmentationMoveOperation as Operation, PoolCreateInfo,
};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 64 << 10;

fn allocator(gpu: &Gpu) -> Arc<Allocator> {
    let mut info = AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device());
    info.vulkan_api_version = gpu.api_version();
    Arc::new(unsafe { Allocator::new(info) }.unwrap())
}

fn lavapipe() -> Gpu {
    Gpu::new(Profile::by_name("lavapipe").unwrap())
}

fn buffer_info() -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default()
        .size(SIZE)
        .usage(vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST)
}

/// Requests host-visible memory, so that a test can read it.
fn info() -> AllocationCreateInfo {
    AllocationCreateInfo { required_flags: vk::MemoryPropertyFlags::HOST_VISIBLE, ..Default::default() }
}

fn contents(number: usize) -> Vec<u8> {
    (0..usize::try_from(SIZE).unwrap())
        .map(|at| u8::try_from((at * 7 + number * 31) % 251).unwrap())
        .collect()
}

/// Submits commands and waits until the device has completed them.
fn submit(gpu: &Gpu, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) {
    let device = gpu.device();
    let pool = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.queue_family_index());
    unsafe {
        let pool = device.create_command_pool(&pool, None).unwrap();
        let one = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = device.allocate_command_buffers(&one).unwrap();
        device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).unwrap();
        record(device, commands[0]);
        device.end_command_buffer(commands[0]).unwrap();
        let submitted = vk::SubmitInfo::default().command_buffers(&commands);
        device.queue_submit(gpu.queue(), &[submitted], vk::Fence::null()).unwrap();
        device.queue_wait_idle(gpu.queue()).unwrap();
        device.destroy_command_pool(pool, None);
    }
}

type Held = Vec<(usize, vk::Buffer, Allocation)>;

/// Creates a pool with four blocks, each a quarter full, and returns it with its contents.
fn sparse(allocator: &Arc<Allocator>, gpu: &Gpu, info: &AllocationCreateInfo) -> (AllocatorPool, Held) {
    let wanted = unsafe { allocator.find_memory_type_index_for_buffer_info(&buffer_info(), info) }.unwrap();
    let made = PoolCreateInfo { memory_type_index: wanted, block_size: MIB, ..Default::default() };
    let pool = allocator.create_pool(&made).unwrap();
    let mut held = Held::new();
    let mut gone = Held::new();
    for number in 0..64 {
        let (buffer, allocation) = unsafe { pool.create_buffer(&buffer_info(), info) }.unwrap();
        let known = allocator.get_allocation_info(&allocation);
        assert!(unsafe { gpu.write_memory(known.device_memory, known.offset, &contents(number)) });
        if number % 4 == 1 { &mut held } else { &mut gone }.push((number, buffer, allocation));
    }
    for (_, buffer, mut allocation) in gone {
        unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    }
    (pool, held)
}

/// Checks that all contents are intact, and frees them.
fn end(gpu: &Gpu, allocator: Arc<Allocator>, pool: AllocatorPool, held: Held) {
    for (number, buffer, mut allocation) in held {
        let known = allocator.get_allocation_info(&allocation);
        let size = usize::try_from(SIZE).unwrap();
        assert_eq!(
            unsafe { gpu.read_memory(known.device_memory, known.offset, size) }.unwrap(),
            contents(number)
        );
        unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    }
    drop(pool);
    drop(allocator);
    assert!(gpu.live().is_empty(), "{:?}", gpu.live());
    gpu.assert_silent();
}

#[test]
fn blocks_go_back_and_the_bytes_are_where_the_allocations_say() {
    for profile in profiles::ALL {
        for flags in [
            DefragmentationFlags::ALGORITHM_FAST,
            DefragmentationFlags::empty(),
            DefragmentationFlags::ALGORITHM_FULL,
            DefragmentationFlags::ALGORITHM_EXTENSIVE,
        ] {
            let gpu = Gpu::new(profile);
            let allocator = allocator(&gpu);
            let (pool, mut held) = sparse(&allocator, &gpu, &info());
            let before = pool.calculate_statistics().unwrap();
            assert_eq!(before.statistics.blockBytes, 4 * MIB);
            let info = DefragmentationInfo {
                flags,
                pool: pool.pool(),
                max_allocations_per_pass: 5,
                ..Default::default()
            };
            let context = unsafe { allocator.begin_defragmentation(&info) }.unwrap();
            let mut passes = 0;
            while context.begin_pass(|moves| {
                passes += 1;
                assert!(moves.len() <= 5);
                let new: Vec<_> = moves
                    .iter()
                    .map(|moved| unsafe { moved.create_buffer(&buffer_info()) }.unwrap())
                    .collect();
                submit(&gpu, |device, commands| {
                    for (moved, new) in moves.iter().zip(&new) {
                        let (_, old, _) =
                            held.iter().find(|(_, _, allocation)| moved.is_of(allocation)).unwrap();
                        let region = vk::BufferCopy::default().size(SIZE);
                        unsafe { device.cmd_copy_buffer(commands, *old, *new, &[region]) };
                    }
                });
                for (moved, new) in moves.iter_mut().zip(new) {
                    let (_, buffer, allocation) =
                        held.iter_mut().find(|(_, _, allocation)| moved.is_of(allocation)).unwrap();
                    let place = (moved.device_memory(), moved.offset(), moved.size());
                    unsafe { gpu.device().destroy_buffer(std::mem::replace(buffer, new), None) };
                    unsafe { moved.commit(allocation) }.unwrap();
                    let known = allocator.get_allocation_info(allocation);
                    assert_eq!((known.device_memory, known.offset, known.size), place);
                    assert_eq!(moved.id(), None);
                }
            }) {}
            let stats = context.end();
            assert!(passes > 2);
            assert_eq!(
                (stats.deviceMemoryBlocksFreed, stats.bytesFreed),
                (2, 2 * MIB),
                "one empty block is kept"
            );
            assert_eq!(stats.bytesMoved, u64::from(stats.allocationsMoved) * SIZE);
            assert!(stats.allocationsMoved >= 12);
            let after = pool.calculate_statistics().unwrap();
            assert_eq!((after.statistics.blockBytes, after.statistics.allocationCount), (2 * MIB, 16));
            assert_eq!(after.unusedRangeSizeMax, MIB);
            end(&gpu, allocator, pool, held);
        }
    }
}

#[test]
fn what_is_ignored_or_not_committed_stays_and_what_is_destroyed_goes() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let (pool, mut held) = sparse(&allocator, &gpu, &info());
    let info = DefragmentationInfo { pool: pool.pool(), max_allocations_per_pass: 3, ..Default::default() };
    let context = unsafe { allocator.begin_defragmentation(&info) }.unwrap();
    let places: Vec<_> =
        held.iter().map(|(_, _, allocation)| allocator.get_allocation_info(allocation)).collect();
    let destroyed = Cell::new(None);
    let ignored = Cell::new(vk::DeviceMemory::null());
    assert!(context.begin_pass(|moves| {
        assert_eq!(moves.len(), 3);
        assert!(!context.begin_pass(|_| panic!("a pass within a pass")));
        moves[0].operation = Operation::Ignore;
        let stays = held.iter().position(|(_, _, allocation)| moves[0].is_of(allocation)).unwrap();
        ignored.set(places[stays].device_memory);
        moves[1].operation = Operation::Destroy;
        let at = held.iter().position(|(_, _, allocation)| moves[1].is_of(allocation)).unwrap();
        destroyed.set(Some(at));
        let (_, buffer, allocation) = &mut held[at];
        unsafe { gpu.device().destroy_buffer(*buffer, None) };
        unsafe { moves[1].commit(allocation) }.unwrap();
        assert!(allocation.as_sublet().is_none(), "it is empty");
        let other = &mut held[(at + 1) % 16].2;
        assert_eq!(
            unsafe { moves[2].commit(other) },
            Err(vk::Result::ERROR_UNKNOWN),
            "of another allocation"
        );
        assert!(moves[2].id().is_some(), "it can still be committed");
        assert_eq!(unsafe { moves[1].commit(other) }, Err(vk::Result::ERROR_UNKNOWN), "committed");
    }));
    context.begin_pass(|moves| {
        for moved in moves {
            let at = held.iter().position(|(_, _, allocation)| moved.is_of(allocation)).unwrap();
            assert_ne!(places[at].device_memory, ignored.get(), "nothing more is moved out of this block");
        }
    });
    assert_eq!(context.end().allocationsMoved, 0);
    let gone = destroyed.take().unwrap();
    for (at, (_, _, allocation)) in held.iter().enumerate() {
        let known = allocator.get_allocation_info(allocation);
        if at != gone {
            assert_eq!((known.device_memory, known.offset), (places[at].device_memory, places[at].offset));
        }
    }
    let _empty = held.remove(gone);
    assert_eq!(pool.get_statistics().unwrap().allocationCount, 15);
    end(&gpu, allocator, pool, held);
}

#[test]
fn a_pass_of_which_nothing_is_committed_is_the_last_one() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let (pool, held) = sparse(&allocator, &gpu, &info());
    let info = DefragmentationInfo { pool: pool.pool(), ..Default::default() };
    let context = unsafe { allocator.begin_defragmentation(&info) }.unwrap();
    assert!(!context.begin_pass(|moves| assert!(!moves.is_empty())));
    assert!(!context.begin_pass(|_| panic!("there is nothing left to do")));
    drop(context);
    end(&gpu, allocator, pool, held);
}

#[test]
fn the_programs_mappings_go_along() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let mapped = AllocationCreateInfo { flags: AllocationCreateFlags::MAPPED, ..info() };
    for wanted in [info(), mapped] {
        let (pool, mut held) = sparse(&allocator, &gpu, &wanted);
        for (_, _, allocation) in &mut held {
            unsafe { allocator.map_memory(allocation) }.unwrap();
            unsafe { allocator.map_memory(allocation) }.unwrap();
        }
        let info = DefragmentationInfo { pool: pool.pool(), ..Default::default() };
        let context = unsafe { allocator.begin_defragmentation(&info) }.unwrap();
        let mut moves_made = 0;
        while context.begin_pass(|moves| {
            for moved in moves {
                let (number, buffer, allocation) =
                    held.iter_mut().find(|(_, _, allocation)| moved.is_of(allocation)).unwrap();
                let new = unsafe { moved.create_buffer(&buffer_info()) }.unwrap();
                unsafe { gpu.device().destroy_buffer(std::mem::replace(buffer, new), None) };
                unsafe { moved.commit(allocation) }.unwrap();
                let pointer: *mut u8 = allocator.get_allocation_info(allocation).mapped_data.cast();
                let bytes = contents(*number);
                unsafe { pointer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                moves_made += 1;
            }
        }) {}
        assert_eq!(context.end().allocationsMoved, moves_made);
        assert!(moves_made >= 12);
        for (_, _, allocation) in &mut held {
            unsafe { allocator.unmap_memory(allocation) };
            assert!(!allocator.get_allocation_info(allocation).mapped_data.is_null(), "mapped twice");
            unsafe { allocator.unmap_memory(allocation) };
            let is_mapped = !allocator.get_allocation_info(allocation).mapped_data.is_null();
            assert_eq!(is_mapped, wanted.flags.contains(AllocationCreateFlags::MAPPED));
        }
        for (number, buffer, mut allocation) in held {
            let known = allocator.get_allocation_info(&allocation);
            assert_eq!(
                unsafe { gpu.read_memory(known.device_memory, known.offset, 64) }.unwrap(),
                contents(number)[..64]
            );
            unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
        }
    }
    drop(allocator);
    assert!(gpu.live().is_empty());
    gpu.assert_silent();
}

#[test]
fn a_callback_ends_a_pass_and_the_default_pool_is_the_allocators_own_blocks() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let (hole, mut first) = unsafe { allocator.create_buffer(&buffer_info(), &info()) }.unwrap();
    let (buffer, mut second) = unsafe { allocator.create_buffer(&buffer_info(), &info()) }.unwrap();
    unsafe { allocator.destroy_buffer(hole, &mut first) };
    let stop = Cell::new(true);
    let asked = || stop.get();
    let own = allocator.default_pool();
    let info = DefragmentationInfo { pool: own.pool(), break_callback: Some(&asked), ..Default::default() };
    let context = unsafe { allocator.begin_defragmentation(&info) }.unwrap();
    assert!(!context.begin_pass(|_| panic!("the callback ended it")));
    assert!(unsafe { allocator.begin_defragmentation(&info) }.is_err(), "one at a time");
    stop.set(false);
    assert!(context.begin_pass(|moves| moves[0].operation = Operation::Ignore));
    drop(context);
    unsafe { allocator.destroy_buffer(buffer, &mut second) };
    drop(own);
    drop(allocator);
    gpu.assert_silent();
}

#[test]
fn a_linear_pool_is_refused_as_in_the_original() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let flags = AllocatorPoolCreateFlags::LINEAR_ALGORITHM;
    let pool =
        allocator.create_pool(&PoolCreateInfo { block_size: MIB, flags, ..Default::default() }).unwrap();
    let info = DefragmentationInfo { pool: pool.pool(), ..Default::default() };
    let refused = unsafe { allocator.begin_defragmentation(&info) };
    assert_eq!(refused.err(), Some(vk::Result::ERROR_FEATURE_NOT_PRESENT));
}
