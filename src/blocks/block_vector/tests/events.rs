//! Events are emitted while no lock is held: a subscriber may query the allocator, and allocate.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use ash::vk;

use super::*;

thread_local! {
    static WATCHED: RefCell<Option<Rc<Rig>>> = const { RefCell::new(None) };
    static TOLD: Cell<u32> = const { Cell::new(0) };
}

/// A subscriber's output. Each line checks that all locks are free.
#[derive(Clone, Copy)]
struct Watching;

impl io::Write for Watching {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        WATCHED.with_borrow(|rig| {
            let Some(rig) = rig else { return };
            let vector = &rig.vector;
            assert!(vector.core.try_lock().is_some(), "told with the core taken");
            assert!(vector.dedicated.try_lock().is_some(), "told with the list of dedicated memory taken");
            assert!(vector.growth.try_lock().is_some(), "told with the growth taken");
            assert!(vector.mappings.try_lock().is_some(), "told with the mappings taken");
            let mut shards = vector.shards.iter();
            assert!(shards.all(|(_, shard)| shard.try_lock().is_some()), "told with a shard taken");
            TOLD.set(TOLD.get() + 1);
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn told() -> u32 {
    TOLD.take()
}

#[test]
fn events_come_without_locks() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(|| Watching)
        .without_time()
        .finish();
    // With a single subscriber, tracing caches an event as disabled if another thread reaches it first.
    let quiet =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(std::io::sink).finish();
    let _second = tracing::Dispatch::new(quiet);
    tracing::subscriber::with_default(subscriber, || {
        // Other tests may reach an event first, without a subscriber, at this moment. Tracing caches the result once
        // for each event, and recomputes it afterwards.
        let rig = Rig::new(VectorConfig { min_blocks: 1, ..config() });
        rig.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        assert!(rig.allocate(&request(32 * MIB, 64 * MIB)).is_ok_and(|it| {
            rig.free(it);
            rig.vector.activate(&rig.context, rig.config, None).is_err()
        }));
        rig.finish();
        tracing::callsite::rebuild_interest_cache();

        let rig = Rc::new(Rig::new(VectorConfig { empty_blocks_kept: 0, ..config() }));
        WATCHED.set(Some(Rc::clone(&rig)));
        rig.settle(1);
        let held: Vec<_> = (0..200).map(|_| rig.get(256 * KIB, 1)).collect();
        assert!(held.iter().any(|it| it.grant.shard != 0));
        assert_eq!(u64::from(told()), rig.vector.totals().block_count, "blocks taken");
        rig.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        rig.thread(0);
        assert!(rig.allocate(&request(32 * MIB, 1)).is_err());
        assert_eq!(told(), 1, "a block refused");
        rig.gpu.faults().clear();
        rig.free_all(held);
        assert_ne!(told(), 0, "blocks that loans had held");
        rig.settle(2);
        let kept = rig.get(64, 1);
        rig.free(rig.get(64, 1));
        rig.free(kept);
        rig.free(rig.get(64, 1));
        told();
        rig.trim();
        assert_eq!(rig.vector.totals().block_count, 0);
        let _left = rig.get(64, 1);
        told();
        rig.vector.deactivate(&rig.context, &mut |_| ());
        assert_eq!(told(), 1, "the last block");
        WATCHED.set(None);
        assert!(rig.gpu.live().is_empty());
    });
}
