//! Each numbered check of `validate` detects its damage.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::shard::ShardCounters;
use super::super::state::Active;
use super::*;
use sublet_engines::Request;

/// A vector with allocations in the core and in two shards, one of which has an empty range.
fn fixture() -> (Fixture, Vec<Held>) {
    let fixture = Fixture::new(VectorConfig { max_blocks: 3, ..config() });
    let mut held = vec![fixture.get(64, 1)];
    fixture.attach(1);
    held.extend((0..65).map(|_| fixture.get(16 * KIB, 1)));
    fixture.free(held.pop().unwrap());
    fixture.attach(2);
    held.push(fixture.get(64, 1));
    fixture.check();
    (fixture, held)
}

/// The message of `validate` after `damage`. The vector must not be used afterwards.
fn message(damage: impl FnOnce(&Fixture, &[Held])) -> String {
    let (fixture, held) = fixture();
    damage(&fixture, &held);
    let caught = catch_unwind(AssertUnwindSafe(|| fixture.vector.validate()));
    drop(fixture.gpu.finish());
    let payload = caught.expect_err("the damage was not found");
    payload
        .downcast_ref::<String>()
        .map_or_else(|| (*payload.downcast_ref::<&str>().unwrap()).to_owned(), Clone::clone)
}

#[track_caller]
fn finds(number: &str, damage: impl FnOnce(&Fixture, &[Held])) {
    let message = message(damage);
    assert!(message.contains(&format!("{number}: ")), "{number} was expected, not: {message}");
}

#[test]
fn damage_to_a_shard_is_found() {
    fn change(fixture: &Fixture, damage: impl FnOnce(ShardCounters<'_>)) {
        damage(fixture.vector.shards.get(shard_of(1)).unwrap().lock().counters());
    }
    finds("S1", |fixture, _| change(fixture, |counters| *counters.bytes += 1));
    finds("S3", |fixture, _| change(fixture, |counters| *counters.generation += 1));
    finds("S4", |fixture, _| change(fixture, |counters| *counters.empty = 0));
    finds("S5", |fixture, held| {
        let key = held[0].grant.key;
        change(fixture, |counters| {
            drop(counters.annotations.insert(key, Annotation { user_data: Some(0), ..Annotation::default() }))
        });
    });
}

#[test]
fn damage_to_the_core_is_found() {
    fn change(fixture: &Fixture, damage: impl FnOnce(&mut Active)) {
        damage(fixture.vector.core.lock().active.as_mut().unwrap());
    }
    finds("V1", |fixture, _| change(fixture, |active| active.block_count += 1));
    finds("V2", |fixture, _| change(fixture, |active| active.block_bytes -= 1));
    finds("V3", |fixture, _| change(fixture, |active| active.empty_blocks += 1));
    finds("V4", |fixture, _| {
        change(fixture, |active| {
            active.blocks[0].as_mut().unwrap().memory.size += 1;
            active.block_bytes += 1;
        });
    });
    finds("V5", |fixture, _| {
        change(fixture, |active| {
            active.blocks[0].as_mut().unwrap().empty = true;
            active.empty_blocks += 1;
        });
    });
    finds("V6", |fixture, _| change(fixture, |active| active.config.min_blocks = 2));
    finds("V7", |fixture, _| change(fixture, |active| active.config.max_blocks = 0));
    finds("V8", |fixture, held| {
        let key = held.last().unwrap().grant.key;
        change(fixture, |active| {
            drop(active.annotations.insert(key, Annotation { user_data: Some(0), ..Annotation::default() }))
        });
    });
    // A range whose chunk the core has allocated to another owner.
    finds("V9", |fixture, _| {
        let shard = fixture.vector.shards.get(shard_of(2)).unwrap().lock();
        let (key, _) = shard.leases().next().unwrap();
        change(fixture, |active| {
            active.engine.free(key).unwrap();
            active.engine.allocate(&Request { tag: Tag(1), ..Request::new(MIB, aligned(64 * KIB)) }).unwrap();
        });
    });
    finds("V10", |fixture, _| change(fixture, |active| active.lease_count -= 1));
    finds("V11", |fixture, _| change(fixture, |active| active.lease_count += 1));
    finds("V11", |fixture, _| change(fixture, |active| active.lease_bytes += 1));
}
