//! Each driver call fails in turn. The operation is rolled back, and the driver's result is the last source of the
//! error.

use std::error::Error;

use ash::vk;
use sublet::upload::{UploadArena, UploadArenaCreateInfo, UploadMemory};

use crate::common::*;
use crate::support::*;

const RESULTS: [vk::Result; 3] = [
    vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    vk::Result::ERROR_DEVICE_LOST,
];

const CALLS: [&str; 5] =
    ["vkCreateBuffer", "vkAllocateMemory", "vkMapMemory", "vkBindBufferMemory", "vkFlushMappedMemoryRanges"];

type Operation = fn(&mut Arena<'_>, &mut Time) -> Result<(), Box<dyn Error>>;

/// Each operation starts with 96 free bytes in the current page.
const OPERATIONS: [(&str, Operation); 5] = [
    ("another page", |arena, _| {
        arena.write(&[1; 200], 1)?;
        Ok(())
    }),
    ("a page of its own", |arena, _| {
        arena.write(&[1; 20_000], 1)?;
        Ok(())
    }),
    ("reserve", |arena, _| Ok(arena.reserve(5 * 4096)?)),
    ("flush", |arena, time| Ok(arena.flush(time.submitted())?)),
    ("write, flush", |arena, time| {
        arena.write(&[1; 10], 1)?;
        Ok(arena.flush(time.submitted())?)
    }),
];

fn info() -> UploadArenaCreateInfo<'static> {
    UploadArenaCreateInfo { memory: UploadMemory::PreferDevice, ..small(4096) }
}

#[test]
fn every_call_may_fail_and_nothing_stays() {
    on_every_profile(|profile| {
        let mut failures = 0;
        for (what, run) in OPERATIONS {
            for call in CALLS {
                for result in RESULTS {
                    for nth in 0.. {
                        let fixture = Fixture::new(profile);
                        let mut time = Time::new();
                        let mut arena = arena(&fixture, &info());
                        let first = arena.write(&[7; 4000], 1).unwrap();
                        let (live, before) = (fixture.gpu.live(), arena.statistics());
                        fixture.gpu.reset_calls();
                        fixture.gpu.faults().fail_nth(call, nth, result);
                        let outcome = run(&mut arena, &mut time);
                        fixture.gpu.faults().clear();
                        let failed = outcome.is_err();
                        arena.validate();
                        fixture.allocator.validate();
                        if let Err(error) = outcome {
                            failures += 1;
                            assert_eq!(driver_result(&*error), Some(result), "{what}: {error:?}");
                            if what != "write, flush" {
                                let after = arena.statistics();
                                assert_eq!(fixture.gpu.live(), live, "{what}: {call} {nth}");
                                assert_eq!(after.pages, before.pages, "{what}: {call} {nth}");
                                assert_eq!((after.used, after.rest), (before.used, before.rest), "{what}");
                            }
                            // The existing page is still usable, and the failed operation now succeeds.
                            assert_eq!(arena.write(&[8; 10], 1).unwrap().buffer, first.buffer);
                            run(&mut arena, &mut time).unwrap();
                        }
                        arena.flush(time.submitted()).unwrap();
                        let copies = Copies::new(&fixture, 4000, 1);
                        copies.wait(0);
                        copies.submit(0, &[(first, 0)]);
                        assert!(copies.finish()[..4000].iter().all(|&byte| byte == 7));
                        time.finish(100);
                        arena.collect(&time.clock).unwrap();
                        arena.validate();
                        drop(arena.release());
                        drop(fixture);
                        if !failed {
                            break;
                        }
                    }
                }
            }
        }
        assert!(failures > 20);
    });
}

#[test]
fn arenas_that_are_not_made_leave_nothing() {
    on_every_profile(|profile| {
        for call in CALLS {
            for result in RESULTS {
                let fixture = Fixture::new(profile);
                fixture.gpu.faults().fail_always(call, result);
                // SAFETY: the usages are those of version 1.0.
                match unsafe { UploadArena::new(&fixture.allocator, &info()) } {
                    // Only the dummy for the requirements can fail, because pages are created later.
                    Ok(arena) => drop(arena),
                    Err(error) => assert_eq!(driver_result(&error), Some(result)),
                };
                fixture.gpu.faults().clear();
                fixture.allocator.trim();
                assert!(fixture.gpu.live().is_empty(), "{call}: {:?}", fixture.gpu.live());
            }
        }
    });
}

#[test]
fn an_arena_whose_flush_fails_is_finished_later() {
    on_profiles(
        having(|profile| {
            profile
                .types
                .iter()
                .any(|kind| kind.flags.contains(HOST_VISIBLE) && !kind.flags.contains(HOST_COHERENT))
        }),
        |profile| {
            let fixture = Fixture::new(profile);
            let memory_type = fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED)[0];
            let pool_info =
                sublet::PoolCreateInfo { block_size: 65_536, ..sublet::PoolCreateInfo::new(memory_type) };
            let pool = std::sync::Arc::new(fixture.pool(&pool_info).unwrap());
            let info = UploadArenaCreateInfo { pool: Some(pool.clone()), ..small(4096) };
            let mut arena = arena(&fixture, &info);
            let mut time = Time::new();
            let upload = arena.write(&[3; 100], 1).unwrap();
            fixture.gpu.faults().fail_nth(
                "vkFlushMappedMemoryRanges",
                0,
                vk::Result::ERROR_OUT_OF_HOST_MEMORY,
            );
            let before = arena.statistics();
            let error = arena.flush(time.submitted()).unwrap_err();
            assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
            assert_eq!(arena.statistics(), before);
            arena.flush(time.submitted()).unwrap();
            let copies = Copies::new(&fixture, 100, 1);
            copies.wait(0);
            copies.submit(0, &[(upload, 0)]);
            assert_eq!(copies.finish()[..100], [3; 100]);
            time.finish(100);
            arena.collect(&time.clock).unwrap();
            arena.validate();
            drop((arena, info));
            fixture.destroy_pool(std::sync::Arc::into_inner(pool).unwrap());
        },
    );
}
