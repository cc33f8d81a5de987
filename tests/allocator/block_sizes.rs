//! Block sizes that the program sets for each memory type, and which empty blocks are kept.

use sublet::sim::{Gpu, Profile};
use sublet::{
    Allocation, Allocator, AllocatorCreateFlags, AllocatorCreateInfo, BlockSizes, CreateAllocatorError,
};

use crate::common::*;

/// Creates an allocator with a changed create-info, on a device with 4 memory types and large heaps.
fn made<'a>(change: impl FnOnce(&mut AllocatorCreateInfo<'a>)) -> (Gpu, Allocator) {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let mut info = AllocatorCreateInfo::for_gpu(&gpu);
    change(&mut info);
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    (gpu, allocator)
}

/// Allocates memory of one type.
fn memory(allocator: &Allocator, memory_type: u32, size: u64) -> Allocation {
    let requirements = ash::vk::MemoryRequirements { size, alignment: 1, memory_type_bits: 1 << memory_type };
    allocator.allocate_memory(&requirements, &in_type(memory_type)).unwrap()
}

fn free(allocator: &Allocator, memory: impl IntoIterator<Item = Allocation>) {
    for one in memory {
        // SAFETY: nothing is bound to it.
        unsafe { allocator.free_memory(one) }.unwrap();
    }
}

/// Allocates `count` times. Returns the allocations and the total block bytes after each.
fn reserved(allocator: &Allocator, memory_type: u32, size: u64, count: usize) -> (Vec<Allocation>, Vec<u64>) {
    let before = allocator.statistics().block_bytes;
    (0..count)
        .map(|_| (memory(allocator, memory_type, size), allocator.statistics().block_bytes - before))
        .unzip()
}

#[test]
fn each_memory_type_has_its_own_sizes() {
    let sizes = [
        BlockSizes { first: 4 * MIB, largest: 16 * MIB },
        BlockSizes { first: 12 * MIB, largest: 32 * MIB },
        BlockSizes { largest: 16 * MIB, ..BlockSizes::default() },
    ];
    let (gpu, allocator) = made(|info| info.block_sizes = &sizes);
    let (first, grown) = reserved(&allocator, 0, 2 * MIB, 15);
    let distinct = |mut grown: Vec<u64>| {
        grown.dedup();
        grown.iter().map(|bytes| bytes / MIB).collect::<Vec<_>>()
    };
    assert_eq!(distinct(grown), [4, 12, 28, 44], "blocks of 4, 8, 16 and 16 MiB");
    let (second, grown) = reserved(&allocator, 1, 6 * MIB, 8);
    assert_eq!(distinct(grown), [12, 36, 68], "blocks of 12, 24 and 32 MiB");
    let (third, grown) = reserved(&allocator, 2, MIB, 3);
    assert_eq!(distinct(grown), [2, 6], "blocks of 2 and 4 MiB: it begins with an eighth");
    // A request above the size of the next block is dedicated.
    let large = [16 * MIB, 16 * MIB + 1].map(|size| memory(&allocator, 0, size));
    assert_eq!(large.each_ref().map(Allocation::is_dedicated), [false, true]);
    free(&allocator, first.into_iter().chain(second).chain(third).chain(large));
    assert!(allocator.destroy().is_empty());
    gpu.assert_silent();
}

#[test]
fn a_type_without_sizes_has_those_of_its_heap() {
    let (gpu, allocator) = made(|info| info.block_sizes = &[]);
    let (plain, expected) = reserved(&allocator, 0, 10 * MIB, 12);
    free(&allocator, plain);
    drop(allocator);
    let (other, allocator) = made(|info| info.block_sizes = &[BlockSizes { first: 0, largest: 0 }]);
    let (plain, found) = reserved(&allocator, 0, 10 * MIB, 12);
    free(&allocator, plain);
    drop(allocator);
    assert_eq!(found, expected);
    gpu.assert_silent();
    other.assert_silent();
}

#[test]
fn sizes_that_are_too_large_or_odd_are_put_right() {
    let sizes = [BlockSizes { first: u64::MAX, largest: 1001 }];
    let (gpu, allocator) = made(|info| info.block_sizes = &sizes);
    let held = [memory(&allocator, 0, 100)];
    assert_eq!(allocator.statistics().block_bytes, 1024);
    free(&allocator, held);
    assert!(allocator.destroy().is_empty());
    gpu.assert_silent();
    let sizes = [BlockSizes { first: 64 * KIB, largest: u64::MAX }];
    let (gpu, allocator) = made(|info| info.block_sizes = &sizes);
    let held = memory(&allocator, 0, MIB);
    assert!(held.is_dedicated() && allocator.statistics().block_bytes == MIB);
    free(&allocator, [held]);
    assert!(allocator.destroy().is_empty());
    gpu.assert_silent();
}

#[test]
fn more_sizes_than_memory_types_are_refused() {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let types = gpu.profile().types.len();
    let sizes = vec![BlockSizes::default(); types + 1];
    let info = AllocatorCreateInfo { block_sizes: &sizes, ..AllocatorCreateInfo::for_gpu(&gpu) };
    // SAFETY: instance and device are live.
    let error = unsafe { Allocator::new(&info) }.err();
    assert_eq!(error, Some(CreateAllocatorError::BlockSizes { sizes: types + 1, types }));
    assert_eq!(
        error.unwrap().to_string(),
        format!("{} block sizes were given for {types} memory types", types + 1)
    );
}

#[test]
fn as_many_sizes_as_memory_types_are_taken() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let sizes = vec![BlockSizes { first: MIB, largest: MIB }; profile.types.len()];
        let info = AllocatorCreateInfo { block_sizes: &sizes, flags: enabled(&gpu), ..create_info(&gpu) };
        // SAFETY: instance and device are live, and outlive the allocator.
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        let fixture = hold(Fixture { allocator, gpu });
        let last = *fixture.types().last().unwrap();
        let held = fixture.memory(KIB, 1, &in_type(last)).unwrap();
        assert_eq!(fixture.memory_size(&held), MIB, "the last one counts as well");
        fixture.free(held);
    });
}

#[test]
fn the_last_block_stays_and_no_empty_one_beside_others() {
    let sizes = [BlockSizes { first: 4 * MIB, largest: 4 * MIB }];
    let (gpu, allocator) = made(|info| {
        info.block_sizes = &sizes;
        info.flags |= AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK;
    });
    let mut held: Vec<_> = (0..6).map(|_| memory(&allocator, 0, 2 * MIB)).collect();
    assert_eq!(gpu.live().memories, 3);
    let last = held.split_off(4);
    let memory_of_last = last[0].memory();
    free(&allocator, held);
    assert_eq!(gpu.live().memories, 1, "those that became empty went at once");
    free(&allocator, last);
    assert_eq!(gpu.live().memories, 1, "the last one stays");
    let again = memory(&allocator, 0, 1000);
    assert_eq!(again.memory(), memory_of_last);
    free(&allocator, [again]);
    assert_eq!(allocator.trim(), 4 * MIB, "and goes where that is asked for");
    drop(allocator);
    gpu.assert_silent();
}

/// A block that was just created is the likeliest to be emptied, freed, and created again.
#[test]
fn of_up_to_three_blocks_the_last_is_filled_first_if_no_empty_one_stays() {
    let sizes = [BlockSizes { first: 4 * MIB, largest: 4 * MIB }];
    for (flags, blocks, fills_last) in [
        (AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK, 2, true),
        (AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK, 3, true),
        (AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK, 4, false),
        (AllocatorCreateFlags::empty(), 3, false),
    ] {
        let (gpu, allocator) = made(|info| {
            info.block_sizes = &sizes;
            info.flags |= flags;
        });
        // Each block has room for 1 MiB, the last one for 2.
        let mut held: Vec<_> = (0..blocks).map(|_| memory(&allocator, 0, 3 * MIB)).collect();
        free(&allocator, held.pop());
        held.push(memory(&allocator, 0, 2 * MIB));
        let last = held[held.len() - 1].memory();
        for size in [MIB, MIB / 2] {
            held.push(memory(&allocator, 0, size));
            let is_in_last = held[held.len() - 1].memory() == last;
            assert_eq!(is_in_last, fills_last, "{size} bytes beside {blocks} blocks, {flags:?}");
        }
        free(&allocator, held);
        assert!(allocator.destroy().is_empty());
        gpu.assert_silent();
    }
}
