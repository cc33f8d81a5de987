//! The memory of uploads, and rejected create-infos.

use std::sync::Arc;

use ash::vk;
use sublet::upload::{CreateUploadError, UploadArena, UploadArenaCreateInfo, UploadMemory};
use sublet::{Algorithm, AllocatorCreateFlags, PoolCreateInfo};

use crate::common::*;
use crate::support::*;

/// Returns true if the type is in a device-local heap.
fn is_near(fixture: &Fixture, memory_type: u32) -> bool {
    let heap = fixture.profile().heaps[fixture.heap_of(memory_type) as usize];
    heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL)
}

#[test]
fn auto_takes_the_devices_memory_where_the_host_can_write_all_of_it() {
    let (mut near, mut far) = (0, 0);
    let counts = std::cell::RefCell::new((&mut near, &mut far));
    on_every_gpu(|fixture| {
        let made = arena(&fixture, &small(4096));
        let memory_type = made.memory_type_index();
        assert!(fixture.properties(memory_type).contains(HOST_VISIBLE));
        let unified =
            fixture.profile().heaps.iter().all(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
        let wide = fixture
            .types_with(HOST_VISIBLE | DEVICE_LOCAL, PROTECTED)
            .into_iter()
            .any(|kind| fixture.heap_size(kind) > 256 * MIB || unified);
        assert_eq!(is_near(&fixture, memory_type), wide);
        let mut counts = counts.borrow_mut();
        *(if wide { &mut *counts.0 } else { &mut *counts.1 }) += 1;
        drop(made.release());
    });
    assert!(near > 2 && far > 0, "{near} and {far}: both kinds are needed");
}

#[test]
fn the_choice_can_be_overridden_both_ways() {
    on_every_gpu(|fixture| {
        let usable = fixture.types_with(HOST_VISIBLE, PROTECTED);
        for (memory, wanted) in [(UploadMemory::PreferDevice, true), (UploadMemory::PreferHost, false)] {
            let arena = arena(&fixture, &UploadArenaCreateInfo { memory, ..small(4096) });
            let memory_type = arena.memory_type_index();
            let possible = usable.iter().any(|&kind| is_near(&fixture, kind) == wanted);
            assert_eq!(is_near(&fixture, memory_type) == wanted, possible, "{memory:?}");
            drop(arena.release());
        }
    });
}

#[test]
fn what_is_only_copied_from_stays_in_the_hosts_memory() {
    on_every_gpu(|fixture| {
        let info = UploadArenaCreateInfo { usage: vk::BufferUsageFlags::TRANSFER_SRC, ..small(4096) };
        let arena = arena(&fixture, &info);
        let host =
            fixture.types_with(HOST_VISIBLE, PROTECTED).into_iter().any(|kind| !is_near(&fixture, kind));
        assert_eq!(is_near(&fixture, arena.memory_type_index()), !host);
        drop(arena.release());
    });
}

#[test]
fn addresses_are_those_of_the_buffer_plus_the_offset() {
    on_every_gpu(|fixture| {
        let info = UploadArenaCreateInfo { device_address: true, ..small(4096) };
        if !enabled(&fixture.gpu).contains(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS) {
            // SAFETY: the missing feature is detected.
            let error = unsafe { UploadArena::new(&fixture.allocator, &info) }.unwrap_err();
            assert_eq!(error, CreateUploadError::DeviceAddress);
            return;
        }
        let mut arena = arena(&fixture, &info);
        for _ in 0..3 {
            arena.allocate(3000, 1).unwrap();
            let upload = arena.allocate(64, 64).unwrap();
            let info = vk::BufferDeviceAddressInfo::default().buffer(upload.buffer);
            // SAFETY: the buffer is live and has the usage.
            let base = unsafe { fixture.gpu.device().get_buffer_device_address(&info) };
            assert_ne!(base, 0);
            assert_eq!(upload.address, Some(base + upload.offset));
        }
        let mut plain = crate::support::arena(&fixture, &small(4096));
        assert_eq!(plain.allocate(1, 1).unwrap().address, None);
    });
}

#[test]
fn arenas_share_the_blocks_of_a_pool_that_they_are_given() {
    on_every_gpu(|fixture| {
        let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED)[0];
        for algorithm in [Algorithm::Linear, Algorithm::Tlsf] {
            let info = PoolCreateInfo {
                block_size: MIB,
                max_block_count: 1,
                algorithm,
                ..PoolCreateInfo::new(memory_type)
            };
            let pool = Arc::new(fixture.pool(&info).unwrap());
            let info = UploadArenaCreateInfo { pool: Some(Arc::clone(&pool)), ..small(65_536) };
            let mut arenas: Vec<_> = (0..3).map(|_| arena(&fixture, &info)).collect();
            for arena in &mut arenas {
                assert_eq!(arena.memory_type_index(), memory_type);
                arena.allocate(60_000, 1).unwrap();
                // Large pages also come from the pool, and fail if the pool is full.
                arena.allocate(100_000, 1).unwrap();
                assert!(arena.allocate(2 << 20, 1).is_err());
            }
            assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().block_count, 1);
            drop(arenas);
            drop(info);
            fixture.destroy_pool(Arc::into_inner(pool).unwrap());
        }
    });
}

#[test]
fn what_cannot_be_is_refused_with_nothing_made() {
    on_every_gpu(|fixture| {
        let other = Fixture::new(fixture.profile());
        let refused = |info: &UploadArenaCreateInfo<'_>| {
            // SAFETY: the errors in the create-infos are detected.
            let error = unsafe { UploadArena::new(&fixture.allocator, info) }.unwrap_err();
            assert!(fixture.gpu.live().is_empty());
            error
        };
        for page_size in [0, u64::MAX, u64::MAX - 63, 1 << 63] {
            assert_eq!(refused(&small(page_size)), CreateUploadError::Size { size: page_size });
        }
        assert_eq!(
            refused(&UploadArenaCreateInfo { usage: vk::BufferUsageFlags::empty(), ..small(4096) }),
            CreateUploadError::NoUsage
        );
        assert_eq!(
            refused(&UploadArenaCreateInfo { memory_limit: Some(4095), ..small(4096) }),
            CreateUploadError::Limit { memory_limit: 4095, page_size: 4096 }
        );
        let pool = Arc::new(other.pool(&PoolCreateInfo::new(other.types()[0])).unwrap());
        let info = UploadArenaCreateInfo { pool: Some(Arc::clone(&pool)), ..small(4096) };
        assert_eq!(refused(&info), CreateUploadError::ForeignPool);
        drop(info);
        other.destroy_pool(Arc::into_inner(pool).unwrap());
        drop(other);
        let types = fixture.types();
        let hidden = types.into_iter().find(|&kind| !fixture.properties(kind).contains(HOST_VISIBLE));
        if let Some(memory_type) = hidden {
            let pool = Arc::new(fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap());
            let info = UploadArenaCreateInfo { pool: Some(Arc::clone(&pool)), ..small(4096) };
            assert_eq!(refused(&info), CreateUploadError::NotHostVisible { memory_type });
            drop(info);
            fixture.destroy_pool(Arc::into_inner(pool).unwrap());
        }
        let other_kind = fixture
            .types_with(HOST_VISIBLE, PROTECTED)
            .into_iter()
            .find(|kind| fixture.profile().buffers.types & (1 << kind) == 0);
        if let Some(memory_type) = other_kind {
            let pool = Arc::new(fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap());
            let info = UploadArenaCreateInfo { pool: Some(Arc::clone(&pool)), ..small(4096) };
            let error = refused(&info);
            assert!(
                matches!(error, CreateUploadError::PoolMemoryType { memory_type: reported, .. } if reported == memory_type)
            );
            drop(info);
            fixture.destroy_pool(Arc::into_inner(pool).unwrap());
        }
    });
}

/// A page that no heap can hold.
#[test]
fn a_page_that_is_too_large_for_the_device_is_refused() {
    on_every_gpu(|fixture| {
        // SAFETY: the usages are those of version 1.0.
        let made = unsafe { UploadArena::new(&fixture.allocator, &small(1 << 50)) };
        assert!(
            matches!(
                made,
                Err(CreateUploadError::BufferTooLarge { .. }
                    | CreateUploadError::Pool(_)
                    | CreateUploadError::MemoryType(_))
            ),
            "{made:?}"
        );
        drop(made);
        fixture.gpu.take_messages();
    });
}

/// Uploads work with debug margins and fill patterns.
#[test]
fn the_searches_for_faults_do_not_get_in_the_way() {
    let profile = sublet::sim::profiles::ALL[0];
    let gpu = sublet::sim::Gpu::new(profile);
    let debug = sublet::DebugSettings {
        margin: 64,
        detect_corruption: true,
        fill: true,
        ..sublet::DebugSettings::default()
    };
    let info = sublet::AllocatorCreateInfo { debug, ..create_info(&gpu) };
    // SAFETY: the device outlives the allocator.
    let allocator = unsafe { sublet::Allocator::new(&info) }.unwrap();
    // SAFETY: the usages are those of version 1.0.
    let mut arena = unsafe { UploadArena::new(&allocator, &small(4096)) }.unwrap();
    for _ in 0..3 {
        arena.write(&[0xff; 4096], 1).unwrap();
        arena.write(&[0xff; 5000], 1).unwrap();
    }
    // SAFETY: nothing was submitted.
    unsafe { arena.destroy() };
    drop(allocator);
    assert!(gpu.finish().is_empty());
}
