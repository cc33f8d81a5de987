//! Each numbered check of `validate` detects its damage.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::shard::Books;
use super::super::state::Active;
use super::*;
use crate::metadata::Request;

/// A vector with allocations in the core and in two shards, one of which has an empty range.
fn rig() -> (Rig, Vec<Held>) {
    let rig = Rig::new(VectorConfig { max_blocks: 3, ..config() });
    let mut held = vec![rig.get(64, 1)];
    rig.settle(1);
    held.extend((0..65).map(|_| rig.get(16 * KIB, 1)));
    rig.free(held.pop().unwrap());
    rig.settle(2);
    held.push(rig.get(64, 1));
    rig.check();
    (rig, held)
}

/// The message of `validate` after `damage`. The vector must not be used afterwards.
fn told(damage: impl FnOnce(&Rig, &[Held])) -> String {
    let (rig, held) = rig();
    damage(&rig, &held);
    let caught = catch_unwind(AssertUnwindSafe(|| rig.vector.validate()));
    drop(rig.gpu.finish());
    let payload = caught.expect_err("the damage was not found");
    payload
        .downcast_ref::<String>()
        .map_or_else(|| (*payload.downcast_ref::<&str>().unwrap()).to_owned(), Clone::clone)
}

#[track_caller]
fn finds(number: &str, damage: impl FnOnce(&Rig, &[Held])) {
    let told = told(damage);
    assert!(told.contains(&format!("{number}: ")), "{number} was to be told, not: {told}");
}

#[test]
fn damage_to_a_shard_is_found() {
    fn change(rig: &Rig, damage: impl FnOnce(Books<'_>)) {
        damage(rig.vector.shards.get(shard_of(1)).unwrap().lock().books());
    }
    finds("S1", |rig, _| change(rig, |books| *books.bytes += 1));
    finds("S3", |rig, _| change(rig, |books| *books.generation += 1));
    finds("S4", |rig, _| change(rig, |books| *books.empty = 0));
    finds("S5", |rig, held| {
        let key = held[0].grant.key;
        change(rig, |books| {
            drop(books.annotations.insert(key, Annotation { user_data: Some(0), ..Annotation::default() }))
        });
    });
}

#[test]
fn damage_to_the_core_is_found() {
    fn change(rig: &Rig, damage: impl FnOnce(&mut Active)) {
        damage(rig.vector.core.lock().active.as_mut().unwrap());
    }
    finds("V1", |rig, _| change(rig, |active| active.block_count += 1));
    finds("V2", |rig, _| change(rig, |active| active.block_bytes -= 1));
    finds("V3", |rig, _| change(rig, |active| active.empty_blocks += 1));
    finds("V4", |rig, _| {
        change(rig, |active| {
            active.blocks[0].as_mut().unwrap().memory.size += 1;
            active.block_bytes += 1;
        });
    });
    finds("V5", |rig, _| {
        change(rig, |active| {
            active.blocks[0].as_mut().unwrap().empty = true;
            active.empty_blocks += 1;
        });
    });
    finds("V6", |rig, _| change(rig, |active| active.config.min_blocks = 2));
    finds("V7", |rig, _| change(rig, |active| active.config.max_blocks = 0));
    finds("V8", |rig, held| {
        let key = held.last().unwrap().grant.key;
        change(rig, |active| {
            drop(active.annotations.insert(key, Annotation { user_data: Some(0), ..Annotation::default() }))
        });
    });
    // A range whose chunk the core has allocated to another owner.
    finds("V9", |rig, _| {
        let shard = rig.vector.shards.get(shard_of(2)).unwrap().lock();
        let (key, _) = shard.loans().next().unwrap();
        change(rig, |active| {
            active.engine.free(key).unwrap();
            active.engine.allocate(&Request { tag: Tag(1), ..Request::new(MIB, aligned(64 * KIB)) }).unwrap();
        });
    });
    finds("V10", |rig, _| change(rig, |active| active.loan_count -= 1));
    finds("V11", |rig, _| change(rig, |active| active.loan_count += 1));
    finds("V11", |rig, _| change(rig, |active| active.loan_bytes += 1));
}
