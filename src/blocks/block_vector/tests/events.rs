//! Events are emitted while no lock is held: a subscriber may query the allocator, and allocate.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use ash::vk;

use super::*;
use crate::device::TimeBudget;

thread_local! {
    static WATCHED: RefCell<Option<Rc<Fixture>>> = const { RefCell::new(None) };
    static EVENTS: Cell<u32> = const { Cell::new(0) };
}

/// A subscriber's output. Each line checks that all locks are free.
#[derive(Clone, Copy)]
struct Watching;

impl io::Write for Watching {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        WATCHED.with_borrow(|fixture| {
            let Some(fixture) = fixture else { return };
            let vector = &fixture.vector;
            assert!(vector.core.try_lock().is_some(), "an event while the core is locked");
            assert!(vector.dedicated.try_lock().is_some(), "an event while the dedicated list is locked");
            assert!(vector.growth.try_lock().is_some(), "an event while the growth is locked");
            assert!(vector.mappings.try_lock().is_some(), "an event while the mappings are locked");
            let mut shards = vector.shards.iter();
            assert!(shards.all(|(_, shard)| shard.try_lock().is_some()), "an event while a shard is locked");
            EVENTS.set(EVENTS.get() + 1);
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn event_count() -> u32 {
    EVENTS.take()
}

/// Runs `test` with a subscriber that checks the locks.
fn while_watching(test: impl FnOnce()) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(|| Watching)
        .without_time()
        .finish();
    // With a single subscriber, tracing caches an event as disabled if another thread reaches it first.
    let quiet =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(std::io::sink).finish();
    let _second = tracing::Dispatch::new(quiet);
    tracing::subscriber::with_default(subscriber, test);
}

#[test]
fn events_come_without_locks() {
    while_watching(|| {
        // Other tests may reach an event first, without a subscriber, at this moment. Tracing caches the result once
        // for each event, and recomputes it afterwards.
        let fixture = Fixture::new(VectorConfig { min_blocks: 1, ..config() });
        fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        assert!(fixture.allocate(&request(32 * MIB, 64 * MIB)).is_ok_and(|it| {
            fixture.free(it);
            fixture.vector.activate(&fixture.context, fixture.config, None).is_err()
        }));
        fixture.finish();
        tracing::callsite::rebuild_interest_cache();

        let fixture = Rc::new(Fixture::new(VectorConfig { empty_blocks_kept: 0, ..config() }));
        WATCHED.set(Some(Rc::clone(&fixture)));
        fixture.attach(1);
        let held: Vec<_> = (0..200).map(|_| fixture.get(256 * KIB, 1)).collect();
        assert!(held.iter().any(|it| it.grant.shard != 0));
        assert_eq!(u64::from(event_count()), fixture.vector.totals().block_count, "blocks taken");
        fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        fixture.thread(0);
        assert!(fixture.allocate(&request(32 * MIB, 1)).is_err());
        assert_eq!(event_count(), 1, "a block refused");
        fixture.gpu.faults().clear();
        fixture.free_all(held);
        assert_ne!(event_count(), 0, "blocks that leases had held");
        fixture.attach(2);
        let kept = fixture.get(64, 1);
        fixture.free(fixture.get(64, 1));
        fixture.free(kept);
        fixture.free(fixture.get(64, 1));
        event_count();
        fixture.trim();
        assert_eq!(fixture.vector.totals().block_count, 0);
        let _left = fixture.get(64, 1);
        event_count();
        fixture.vector.deactivate(&fixture.context, &mut |_| ());
        assert_eq!(event_count(), 1, "the last block");
        WATCHED.set(None);
        assert!(fixture.gpu.live().is_empty());
    });
}

/// The pool is destroyed while `maintain` creates a block for it.
#[test]
fn a_block_for_a_destroyed_pool_goes_without_locks() {
    while_watching(|| {
        let fixture = Rc::new(Fixture::new(config()));
        for _ in 0..2 {
            let _left = fixture.get(32 * MIB, 1);
            fixture.vector.observe();
        }
        tracing::callsite::rebuild_interest_cache();
        let calls = fixture.gpu.calls("vkAllocateMemory");
        WATCHED.set(Some(Rc::clone(&fixture)));
        let Fixture { vector, context, gpu, .. } = &*fixture;
        gpu.faults().hold("vkAllocateMemory");
        let grown = std::thread::scope(|scope| {
            scope.spawn(|| {
                while gpu.calls("vkAllocateMemory") == calls {
                    std::thread::yield_now();
                }
                vector.retire(context);
                gpu.faults().release("vkAllocateMemory");
            });
            vector.grow_ahead(context, &mut TimeBudget::new(Duration::MAX))
        });
        assert!(matches!(grown, Some((0, None))), "{grown:?}");
        assert_eq!(event_count(), 2, "a block that came, and went");
        WATCHED.set(None);
        assert!(fixture.gpu.live().is_empty());
    });
}
