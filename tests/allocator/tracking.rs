//! Names, user data and callers: in leak reports, in maps, and in queries of one allocation.

use std::panic::Location;

use ash::vk;
use sublet::upload::{UploadArena, UploadArenaCreateInfo};
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateInfo,
    ForeignHandle, Leak, MemoryAllocateNext, MemoryUsage, PoolCreateInfo, Tracking,
};

use crate::common::*;

fn fixture(tracking: Tracking) -> Held<Fixture> {
    let gpu = sublet::sim::Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let info = AllocatorCreateInfo { tracking, ..create_info(&gpu) };
    // SAFETY: a fixture keeps its GPU alive until its allocator is dropped.
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    hold(Fixture { allocator, gpu })
}

fn line(caller: Option<&Location<'_>>) -> u32 {
    let caller = caller.unwrap();
    assert!(caller.file().ends_with("tracking.rs"), "{caller}");
    caller.line()
}

const REQUIREMENTS: vk::MemoryRequirements =
    vk::MemoryRequirements { size: 1000, alignment: 4, memory_type_bits: !0 };

#[test]
fn nothing_is_tracked_unless_asked_for() {
    let fixture = fixture(Tracking::empty());
    let info = AllocationCreateInfo { user_data: 5, name: Some("named"), ..Default::default() };
    let mut held = fixture.allocator.allocate_memory(&REQUIREMENTS, &info).unwrap();
    fixture.allocator.set_allocation_user_data(&mut held, 6).unwrap();
    let info = fixture.allocator.allocation_info(&held).unwrap();
    assert_eq!((info.user_data, info.caller), (6, None));
    let leaks = fixture.release().allocator.destroy();
    assert_eq!((leaks[0].user_data, leaks[0].caller), (None, None));
    assert_eq!(leaks[0].to_string(), "\"named\": UNKNOWN, 1024 bytes at 0, memory type 0");
}

/// Every function that allocates records its caller, not a location in the library.
#[test]
fn callers_are_those_of_the_program() {
    let fixture = fixture(Tracking::CALLER);
    let pool = fixture.pool(&PoolCreateInfo::new(0)).unwrap();
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..Default::default() };
    let usage = vk::BufferUsageFlags::TRANSFER_DST;
    let buffer_info = vk::BufferCreateInfo::default().size(100).usage(usage);
    let image_info = square(8, vk::ImageUsageFlags::SAMPLED);
    let device = fixture.gpu.device();
    let mut expected: Vec<(u32, Allocation)> = Vec::new();
    let (from_pool, some) = (AllocationCreateInfo::in_pool(&pool), AllocationCreateInfo::default());

    expected.push((line!(), fixture.allocator.allocate_memory(&REQUIREMENTS, &some).unwrap()));
    expected.push((line!(), fixture.allocator.allocate_memory(&REQUIREMENTS, &own).unwrap()));
    expected.push((line!(), fixture.allocator.allocate_memory(&REQUIREMENTS, &from_pool).unwrap()));
    let mut pages = fixture.allocator.allocate_memory_pages(&[REQUIREMENTS; 2], &[some]).unwrap();
    expected.push((line!() - 1, pages.pop().unwrap()));
    expected.push((line!() - 2, pages.pop().unwrap()));
    // SAFETY: the create-info is valid.
    let buffer = unsafe { fixture.allocator.create_buffer(&buffer_info, &auto) }.unwrap();
    expected.push((line!() - 1, buffer.1));
    // SAFETY: the create-info is valid.
    let image = unsafe { fixture.allocator.create_image(&image_info, &auto) }.unwrap();
    expected.push((line!() - 1, image.1));
    let none = MemoryAllocateNext::default();
    // SAFETY: the create-info is valid.
    let alone = unsafe { fixture.allocator.create_dedicated_buffer(&buffer_info, &auto, none) }.unwrap();
    expected.push((line!() - 1, alone.1));
    // SAFETY: the create-info is valid.
    let alone_image = unsafe { fixture.allocator.create_dedicated_image(&image_info, &auto, none) }.unwrap();
    expected.push((line!() - 1, alone_image.1));
    // SAFETY: the create-info is valid.
    let unbound = unsafe { device.create_buffer(&buffer_info, None) }.unwrap();
    // SAFETY: the buffer is live.
    let memory = unsafe { fixture.allocator.allocate_memory_for_buffer(unbound, &some) }.unwrap();
    expected.push((line!() - 1, memory));
    // SAFETY: the create-info is valid.
    let unbound_image = unsafe { device.create_image(&image_info, None) }.unwrap();
    // SAFETY: the image is live.
    let memory = unsafe { fixture.allocator.allocate_memory_for_image(unbound_image, &some) }.unwrap();
    expected.push((line!() - 1, memory));

    let map = fixture.allocator.memory_map();
    assert_eq!(map.allocations().count(), expected.len());
    for (expected, allocation) in &expected {
        assert_eq!(line(fixture.allocator.allocation_info(allocation).unwrap().caller), *expected);
        let shown = map.allocations().find(|it| it.id == allocation.id()).unwrap();
        assert_eq!((line(shown.caller), shown.user_data), (*expected, None));
    }
    // SAFETY: the device does not use it.
    unsafe { device.destroy_buffer(unbound, None) };
    // SAFETY: as above.
    unsafe { device.destroy_image(unbound_image, None) };
    // SAFETY: as above.
    unsafe { device.destroy_buffer(buffer.0, None) };
    // SAFETY: as above.
    unsafe { device.destroy_image(image.0, None) };
    // SAFETY: as above.
    unsafe { device.destroy_buffer(alone.0, None) };
    // SAFETY: as above.
    unsafe { device.destroy_image(alone_image.0, None) };
    fixture.free_all(expected.into_iter().map(|(_, allocation)| allocation));
    fixture.destroy_pool(pool);
}

/// The caller of an arena's pages is the one that created the arena, not the one whose write needs a page.
#[test]
fn buffers_for_uploads_are_of_who_made_the_arena() {
    let fixture = fixture(Tracking::CALLER);
    let info = UploadArenaCreateInfo { page_size: 4096, pages_per_block: 1, ..Default::default() };
    // SAFETY: the usages need no feature, and nothing is submitted.
    let mut arena = unsafe { UploadArena::new(&fixture.allocator, &info) }.unwrap();
    let of_arena = line!() - 1;
    for _ in 0..3 {
        arena.write(&[7; 4096], 1).unwrap();
    }
    // Larger than a page.
    arena.write(&[7; 9000], 1).unwrap();
    let map = fixture.allocator.memory_map();
    let callers: Vec<u32> = map.allocations().map(|it| line(it.caller)).collect();
    assert_eq!(callers, [of_arena; 4]);
    // SAFETY: nothing was submitted.
    unsafe { arena.destroy() };
}

/// A helper of the program with `#[track_caller]` passes its caller on.
#[track_caller]
fn wrapped(fixture: &Fixture) -> Allocation {
    fixture.allocator.allocate_memory(&REQUIREMENTS, &AllocationCreateInfo::default()).unwrap()
}

#[test]
fn leaks_say_what_is_known_of_them() {
    for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
        let fixture = fixture(Tracking::all());
        let info = AllocationCreateInfo { name: Some("kept"), user_data: 7, flags, ..Default::default() };
        let mut kept = fixture.allocator.allocate_memory(&REQUIREMENTS, &info).unwrap();
        let _other = wrapped(&fixture);
        let other = line!() - 1;
        fixture.allocator.set_allocation_user_data(&mut kept, 0xabcd).unwrap();
        assert_eq!(kept.user_data(), 0xabcd);
        fixture.allocator.set_allocation_name(&kept, None).unwrap();
        fixture.allocator.set_allocation_name(&kept, Some("renamed")).unwrap();
        let freed = wrapped(&fixture);
        fixture.free(freed);
        fixture.allocator.validate();
        let mut leaks = fixture.release().allocator.destroy();
        leaks.sort_by_key(|leak| leak.user_data);
        let [second, first] = leaks.as_slice() else { panic!("{leaks:?}") };
        let reported = |leak: &Leak| (leak.name.clone(), leak.user_data, line(leak.caller));
        assert_eq!(reported(first), (Some("renamed".into()), Some(0xabcd), other - 1));
        assert_eq!(reported(second), (None, Some(0), other));
        let caller = second.caller.unwrap();
        let text = format!("memory type 0, allocated at {}:{other}", caller.file());
        assert!(second.to_string().ends_with(&text), "{second}");
    }
}

#[test]
fn user_data_of_others_is_not_changed() {
    for tracking in [Tracking::empty(), Tracking::USER_DATA] {
        let (one, another) = (fixture(tracking), fixture(tracking));
        let mut held = one.memory(100, 1, &AllocationCreateInfo::default()).unwrap();
        let refused = another.allocator.set_allocation_user_data(&mut held, 1);
        assert_eq!(refused, Err(ForeignHandle::Allocation));
        assert_eq!(held.user_data(), 0);
        one.free(held);
    }
}

/// An annotation ends with its allocation, and the next allocation at that place has its own.
#[test]
fn records_end_with_their_allocations() {
    let fixture = fixture(Tracking::all());
    for round in 0..100 {
        let info = AllocationCreateInfo { user_data: round, ..Default::default() };
        let held = fixture.memory(100, 1, &info).unwrap();
        let map = fixture.allocator.memory_map();
        let shown: Vec<_> = map.allocations().map(|it| it.user_data).collect();
        assert_eq!(shown, [Some(round)]);
        fixture.free(held);
        fixture.allocator.validate();
    }
}

/// A move returns the current user data of its allocation, if user data is tracked.
#[test]
fn moves_have_user_data() {
    for tracking in [Tracking::empty(), Tracking::USER_DATA] {
        let fixture = fixture(tracking);
        let pool = fixture.pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(0) }).unwrap();
        let memory = |size, user_data| {
            let info = AllocationCreateInfo { user_data, ..AllocationCreateInfo::in_pool(&pool) };
            fixture.memory(size, 256, &info).unwrap()
        };
        let [kept, freed] = [memory(512 * KIB, 1), memory(512 * KIB, 2)];
        let mut moved = [memory(64 * KIB, 7), memory(64 * KIB, 8)];
        assert_ne!(moved[0].memory(), kept.memory());
        fixture.allocator.set_allocation_user_data(&mut moved[1], 9).unwrap();
        fixture.free(freed);
        let info = sublet::DefragmentationInfo { pools: &[&pool], ..Default::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let pass = defragmentation.begin_pass().unwrap();
        let mut reported: Vec<_> = pass.moves().iter().map(|planned| planned.user_data()).collect();
        reported.sort_unstable();
        let is_kept = tracking.contains(Tracking::USER_DATA);
        assert_eq!(reported, if is_kept { [Some(7), Some(9)] } else { [None, None] });
        drop(pass);
        defragmentation.end();
        fixture.free_all([kept]);
        fixture.free_all(moved);
        fixture.destroy_pool(pool);
    }
}
