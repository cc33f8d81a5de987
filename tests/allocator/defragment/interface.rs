//! The documented behaviour of the defragmentation API.

use super::*;

#[test]
fn blocks_go_back_and_the_gain_is_reported() {
    on_every_profile(|profile| {
        for algorithm in ALGORITHMS {
            let fixture = Fixture::new(profile);
            let (pool, mut held) = sparse_pool(&fixture, fixture.types()[0], Flags::empty());
            let before = fixture.gpu.live().memories;
            assert_eq!(before, 4);
            let info = DefragmentationInfo { algorithm, pools: &[&pool], ..Default::default() };
            let statistics = run(fixture.allocator.begin_defragmentation(&info).unwrap(), &mut held);
            // One empty block is kept.
            assert_eq!(fixture.gpu.live().memories, 2, "{algorithm:?}");
            assert_eq!((statistics.blocks_freed, statistics.bytes_freed), (2, 2 * MIB));
            assert!(statistics.allocations_moved >= 12);
            assert_eq!(statistics.bytes_moved, statistics.allocations_moved * 64 * KIB);
            let [gain] = statistics.gains[..] else { panic!("one pool: {statistics:?}") };
            assert!(gain.is_pool && gain.memory_type_index == fixture.types()[0]);
            assert_eq!((gain.before.block_count, gain.after.block_count), (4, 2));
            assert_eq!((gain.before.block_bytes, gain.after.block_bytes), (4 * MIB, 2 * MIB));
            assert!(gain.before.largest_free_range < MIB / 4 && gain.after.largest_free_range == MIB);
            fixture.validate();
            fixture.free_all(held);
            fixture.destroy_pool(pool);
        }
    });
}

#[test]
fn an_allocation_keeps_what_is_its_own() {
    on_profiles(having(|profile| profile.name == "lavapipe"), |profile| {
        let fixture = Fixture::new(profile);
        let (pool, mut held) = sparse_pool(&fixture, 0, Flags::MAPPED);
        let mut known = Vec::new();
        for (allocation, number) in held.iter_mut().zip(0_u64..) {
            fixture.allocator.set_allocation_name(allocation, Some(&number.to_string())).unwrap();
            allocation.set_user_data(number);
            fixture.allocator.copy_to_allocation(&number.to_le_bytes(), allocation, 0).unwrap();
            known.push((allocation.id(), allocation.mapped_pointer()));
        }
        let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let mut moved_pointers = 0;
        while let Some(pass) = defragmentation.begin_pass() {
            assert_eq!(pass.len(), pass.moves().len());
            for moved in pass {
                let at = place(&held, moved.source());
                let allocation = &mut held[at];
                assert_eq!(moved.name(), Some(at.to_string().as_str()));
                assert_eq!((moved.size(), moved.memory_type_index()), (64 * KIB, 0));
                assert_eq!(moved.kind().to_string(), "UNKNOWN");
                let (from, to) = (allocation.mapped_pointer().unwrap(), moved.mapped_pointer().unwrap());
                // SAFETY: both ranges are mapped and have as many bytes, and the device is idle.
                unsafe {
                    std::ptr::copy_nonoverlapping(from.cast::<u8>().as_ptr(), to.cast().as_ptr(), 65_536)
                };
                let (memory, offset) = (moved.memory(), moved.offset());
                complete(moved, allocation);
                assert_eq!((allocation.memory(), allocation.offset()), (memory, offset));
                assert_eq!(allocation.mapped_pointer(), Some(to));
                moved_pointers += 1;
            }
        }
        drop(defragmentation);
        assert!(moved_pointers >= 12);
        for (allocation, number) in held.iter().zip(0_u64..) {
            let info = fixture.allocator.allocation_info(allocation).unwrap();
            assert_eq!((info.name.as_deref(), info.user_data), (Some(number.to_string().as_str()), number));
            assert_eq!(info.size, 64 * KIB);
            let mut bytes = [0; 8];
            fixture.allocator.copy_from_allocation(allocation, 0, &mut bytes).unwrap();
            assert_eq!(u64::from_le_bytes(bytes), number);
        }
        let same = known.iter().zip(&held).filter(|((id, _), allocation)| *id == allocation.id()).count();
        assert!(same < held.len() - 8, "who moved has another name: {same}");
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn names_of_allocations_never_repeat() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    let other = Fixture::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..20 {
        for fixture in [&fixture, &other] {
            let pool = fixture.pool(&PoolCreateInfo::new(fixture.types()[0])).unwrap();
            let infos = [
                in_type(fixture.types()[0]),
                AllocationCreateInfo::in_pool(&pool),
                in_type_with(fixture.types()[0], Flags::DEDICATED_MEMORY),
            ];
            let made: Vec<_> = infos.iter().map(|info| fixture.memory(KIB, 16, info).unwrap()).collect();
            for allocation in &made {
                assert!(seen.insert(allocation.id()), "round {round}: {:?} again", allocation.id());
                assert_eq!(allocation.id(), allocation.id());
            }
            fixture.free_all(made);
            fixture.destroy_pool(pool);
        }
    }
}

#[test]
fn the_wrong_allocation_changes_nothing() {
    on_every_gpu(|fixture| {
        let (pool, mut held) = sparse_pool(&fixture, fixture.types()[0], Flags::empty());
        let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let mut pass = defragmentation.begin_pass().unwrap();
        let moved = pass.next().unwrap();
        let right = place(&held, moved.source());
        let wrong = (right + 1) % held.len();
        let before = (held[wrong].id(), held[wrong].memory(), held[wrong].offset());
        let expected = MoveError::WrongAllocation { moved: moved.source(), given: held[wrong].id() };
        let moved = {
            // SAFETY: nothing is bound to either.
            let error = unsafe { moved.complete(&mut held[wrong]) }.unwrap_err();
            assert_eq!(error.error(), expected);
            assert!(error.to_string().contains("the move is of"), "{error}");
            error.unfinished
        };
        assert_eq!(before, (held[wrong].id(), held[wrong].memory(), held[wrong].offset()));
        let given = held.swap_remove(wrong);
        let moved = {
            // SAFETY: as above.
            let error = unsafe { moved.free(given) }.unwrap_err();
            assert_eq!(error.error(), expected);
            held.push(error.allocation);
            error.unfinished
        };
        let right = place(&held, moved.source());
        complete(moved, &mut held[right]);
        drop(pass);
        assert_eq!(defragmentation.end().allocations_moved, 1);
        fixture.validate();
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn an_allocation_may_be_freed_by_its_move_or_meanwhile() {
    on_every_gpu(|fixture| {
        let (pool, mut held) = sparse_pool(&fixture, fixture.types()[0], Flags::empty());
        let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let mut pass = defragmentation.begin_pass().unwrap();
        let moved = pass.next().unwrap();
        let allocation = held.swap_remove(place(&held, moved.source()));
        // SAFETY: nothing is bound to it.
        unsafe { moved.free(allocation) }.unwrap();
        for moved in pass {
            fixture.free(held.swap_remove(place(&held, moved.source())));
            drop(moved);
        }
        fixture.validate();
        let count = fixture.allocator.pool_statistics(&pool).unwrap().allocation_count;
        assert_eq!(count, held.len() as u64);
        assert_eq!(defragmentation.end().allocations_moved, 0);
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

/// A program that drops all moves eventually gets none. If it ignores moves, all blocks stay and the passes end.
#[test]
fn who_moves_nothing_comes_to_an_end() {
    on_every_gpu(|fixture| {
        let (pool, held) = sparse_pool(&fixture, fixture.types()[0], Flags::empty());
        let before = fixture.snapshot();
        let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        drop(defragmentation.begin_pass().unwrap());
        assert_eq!(fixture.snapshot(), before);
        assert!(defragmentation.begin_pass().is_none());
        drop(defragmentation);
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let mut passes = 0;
        while let Some(pass) = defragmentation.begin_pass() {
            passes += 1;
            pass.for_each(Move::ignore);
            assert!(passes <= 4);
        }
        assert!(passes > 0);
        assert_eq!(defragmentation.end().allocations_moved, 0);
        assert_eq!(fixture.snapshot(), before);
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn what_cannot_be_begun_is_refused() {
    on_every_gpu(|fixture| {
        let memory_type = fixture.types()[0];
        for algorithm in [sublet::Algorithm::Linear, sublet::Algorithm::Buddy] {
            let other =
                fixture.pool(&PoolCreateInfo { algorithm, ..PoolCreateInfo::new(memory_type) }).unwrap();
            let fine = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
            let info = DefragmentationInfo { pools: &[&fine, &other], ..Default::default() };
            let error = fixture.allocator.begin_defragmentation(&info).unwrap_err();
            assert_eq!(error, BeginDefragmentationError::Algorithm { algorithm });
            assert_eq!(error.vk_result(), vk::Result::ERROR_FEATURE_NOT_PRESENT);
            // The failed call started no defragmentation.
            let info = DefragmentationInfo { pools: &[&fine], ..Default::default() };
            drop(fixture.allocator.begin_defragmentation(&info).unwrap());
            let twice = DefragmentationInfo { pools: &[&fine, &fine], ..Default::default() };
            let error = fixture.allocator.begin_defragmentation(&twice).unwrap_err();
            assert_eq!(error, BeginDefragmentationError::InProgress { memory_type, is_pool: true });
            fixture.destroy_pool(other);
            fixture.destroy_pool(fine);
        }
        let another = Fixture::new(fixture.profile());
        let foreign = another.pool(&PoolCreateInfo::new(memory_type)).unwrap();
        let info = DefragmentationInfo { pools: &[&foreign], ..Default::default() };
        let error = fixture.allocator.begin_defragmentation(&info).unwrap_err();
        assert_eq!(error, BeginDefragmentationError::Foreign(sublet::ForeignHandle::Pool));
        another.destroy_pool(foreign);
        drop(another);

        let all = fixture.allocator.begin_defragmentation(&DefragmentationInfo::default()).unwrap();
        let one = DefragmentationInfo { memory_type_bits: 1 << memory_type, ..Default::default() };
        let error = fixture.allocator.begin_defragmentation(&one).unwrap_err();
        assert_eq!(error, BeginDefragmentationError::InProgress { memory_type, is_pool: false });
        let pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
        let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
        let gains = fixture.allocator.begin_defragmentation(&info).unwrap().end().gains;
        assert_eq!(gains.len(), 1, "a pool is something else");
        fixture.destroy_pool(pool);
        assert_eq!(all.end().gains.len(), fixture.profile().types.len());
    });
}

/// Only the named pools are defragmented, and dedicated memory never moves.
#[test]
fn others_are_left_alone() {
    on_profiles(having(|profile| profile.types.len() > 1), |profile| {
        let fixture = Fixture::with(
            sublet::sim::Gpu::new(profile),
            &Options { large_block: MIB, ..Options::default() },
        );
        let memory_type = fixture.types()[0];
        let (pool, held) = sparse_pool(&fixture, memory_type, Flags::empty());
        let (second, mut moved) = sparse_pool(&fixture, memory_type, Flags::empty());
        let dedicated = fixture.memory(KIB, 16, &in_type_with(memory_type, Flags::DEDICATED_MEMORY)).unwrap();
        let before: Vec<_> = held.iter().map(Allocation::id).collect();
        let info = DefragmentationInfo {
            pools: &[&second],
            memory_type_bits: 1 << memory_type,
            ..Default::default()
        };
        let statistics = run(fixture.allocator.begin_defragmentation(&info).unwrap(), &mut moved);
        assert_eq!(statistics.gains.len(), 2);
        assert!(!statistics.gains[0].is_pool && statistics.gains[1].is_pool);
        assert_eq!(before, held.iter().map(Allocation::id).collect::<Vec<_>>());
        assert_eq!(statistics.blocks_freed, 2);
        fixture.free(dedicated);
        fixture.free_all(held);
        fixture.free_all(moved);
        fixture.destroy_pool(pool);
        fixture.destroy_pool(second);
    });
}

/// The limits apply to all vectors of a context together, and the callback runs before each move.
#[test]
fn limits_are_for_the_whole_pass() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    let (first, mut held) = sparse_pool(&fixture, fixture.types()[0], Flags::empty());
    let (second, mut more) = sparse_pool(&fixture, fixture.types()[1], Flags::empty());
    held.append(&mut more);
    let asked = std::cell::Cell::new(0);
    let ask = || {
        asked.set(asked.get() + 1);
        false
    };
    let info = DefragmentationInfo {
        algorithm: DefragmentationAlgorithm::Fast,
        pools: &[&first, &second],
        max_bytes_per_pass: 320 * KIB,
        max_allocations_per_pass: 7,
        break_callback: Some(&ask),
        ..Default::default()
    };
    let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
    let (mut moves, mut both) = (0, false);
    while let Some(pass) = defragmentation.begin_pass() {
        assert!(pass.len() <= 5, "320 KiB");
        moves += pass.len();
        let types: Vec<_> = pass.moves().iter().map(Move::memory_type_index).collect();
        both |= types.windows(2).any(|pair| pair[0] != pair[1]);
        for moved in pass {
            let at = place(&held, moved.source());
            complete(moved, &mut held[at]);
        }
    }
    assert_eq!(moves, 24);
    assert!(both, "a pass goes on with the next pool");
    assert!(asked.get() >= moves);
    let stop = || true;
    let statistics = defragmentation.end();
    assert_eq!((statistics.allocations_moved, statistics.blocks_freed), (24, 4));
    let info = DefragmentationInfo { break_callback: Some(&stop), ..info };
    assert!(fixture.allocator.begin_defragmentation(&info).unwrap().begin_pass().is_none());
    fixture.free_all(held);
    fixture.destroy_pool(first);
    fixture.destroy_pool(second);
}

/// If the callback panics, the reserved ranges are returned.
#[test]
fn a_callback_that_panics_loses_nothing() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let (pool, held) = sparse_pool(&fixture, fixture.types()[0], Flags::empty());
    let before = fixture.allocator.pool_statistics(&pool).unwrap();
    let asked = std::cell::Cell::new(0);
    let ask = || {
        asked.set(asked.get() + 1);
        assert!(asked.get() < 3, "the callback panics");
        false
    };
    let info = DefragmentationInfo { pools: &[&pool], break_callback: Some(&ask), ..Default::default() };
    let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
    let begun =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| defragmentation.begin_pass().is_some()));
    assert!(begun.is_err());
    drop(defragmentation);
    assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap(), before);
    fixture.free_all(held);
    fixture.destroy_pool(pool);
}

/// A destination is bound and used like any allocation, and the driver emits no message.
#[test]
fn resources_are_made_on_the_new_place() {
    on_every_gpu(|fixture| {
        let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
        let buffer_info = vk::BufferCreateInfo::default().size(10_000).usage(usage);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(fixture.buffer(10_000, usage, &auto).unwrap());
        }
        fixture.destroy_buffer(held.remove(0));
        let info = DefragmentationInfo { algorithm: DefragmentationAlgorithm::Full, ..Default::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let mut pass = defragmentation.begin_pass().unwrap();
        let moved = pass.next().unwrap();
        drop(pass);
        let at = held.iter().position(|(_, allocation)| allocation.id() == moved.source()).unwrap();
        // SAFETY: the create-info is that of the buffer bound to the allocation.
        let unused = unsafe { moved.create_buffer(&buffer_info) }.unwrap();
        // SAFETY: the device does not use it.
        unsafe { fixture.gpu.device().destroy_buffer(unused, None) };
        // If the driver refuses, nothing is left behind.
        let live = fixture.gpu.live();
        for call in ["vkCreateBuffer", "vkBindBufferMemory"] {
            fixture.gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            fixture.gpu.faults().fail_always("vkBindBufferMemory2", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            // SAFETY: as above.
            let refused = unsafe { moved.create_buffer(&buffer_info) };
            assert_eq!(driver_result(&refused.unwrap_err()), Some(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
            assert_eq!(fixture.gpu.live(), live);
            fixture.gpu.faults().clear();
        }
        // SAFETY: the create-info is valid.
        let own = unsafe { fixture.gpu.device().create_buffer(&buffer_info, None) }.unwrap();
        // SAFETY: it has the create-info of the buffer bound to the allocation.
        unsafe { moved.bind_buffer_memory(own) }.unwrap();
        let old = std::mem::replace(&mut held[at].0, own);
        // SAFETY: the device never used it.
        unsafe { fixture.gpu.device().destroy_buffer(old, None) };
        complete(moved, &mut held[at].1);
        drop(defragmentation);
        held.into_iter().for_each(|buffer| fixture.destroy_buffer(buffer));
    });
}
