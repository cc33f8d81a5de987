//! A whole vector with settled threads, on a simulated GPU. Loom does not model the locks that may be held over driver
//! calls: no two threads contend for them here.

use super::super::shards::SHARDS;
use super::*;
use sublet_sim::{Gpu, profiles::Profile};

/// State that all runs of a test share. Loom does not see it.
struct Device {
    context: DeviceContext,
    gpu: Gpu,
}

/// A vector and its GPU.
struct Rig {
    vector: BlockVector,
    device: std::sync::Arc<Device>,
}

impl Rig {
    /// Settles the calling thread with that token.
    fn settle(&self, token: u32) {
        thread_token::pretend(token);
        self.vector.shards.settle();
    }

    fn try_get(&self, size: u64) -> Option<Live> {
        self.vector.place_at_once(&self.device.context, &request(size)).map(live)
    }

    /// Allocates like the allocator: on the fast path, or else on the slow path.
    fn get(&self, size: u64) -> Live {
        let with_care = || self.vector.allocate(&self.device.context, &request(size), true).map(live);
        self.try_get(size).unwrap_or_else(|| with_care().unwrap())
    }

    fn free(&self, live: Live) {
        self.vector.free(&self.device.context, live, false).unwrap();
    }

    fn trim(&self) {
        self.vector.trim(&self.device.context);
    }

    /// Leased ranges in the core.
    fn lent(&self) -> u64 {
        self.vector.core.lock().active.as_ref().unwrap().loan_count
    }

    /// Checks that nothing is allocated, after all threads have ended.
    fn finish(&self) {
        self.vector.validate();
        let totals = self.vector.totals();
        assert_eq!((totals.block_count, totals.allocation_count, totals.allocation_bytes), (1, 0, 0));
        self.trim();
        self.vector.validate();
        assert_eq!(self.lent(), 0, "every loan came back");
        self.vector.deactivate(&self.device.context, &mut |leak| panic!("{leak:?}"));
        assert!(self.device.gpu.live().is_empty());
    }
}

/// The largest size that a shard serves: four fill its first range.
const LARGE: u64 = 256 * KIB;

impl Rig {
    /// Checks that keys left by other threads are freed without further calls.
    fn assert_nothing_waits(&self) {
        for (number, shard) in self.vector.shards.iter() {
            assert_eq!(shard.lock_as_it_is().usage().used_chunks, 0, "shard {number}");
        }
    }

    /// [`Self::assert_nothing_waits`], except for one live allocation.
    fn assert_only(&self, live: Live) {
        for (number, shard) in self.vector.shards.iter() {
            let used = shard.lock_as_it_is().usage().used_chunks;
            assert_eq!(used, u64::from(number == live.shard), "shard {number}");
        }
    }
}

/// Runs a test in every order, with a new vector each time.
fn check_vector(test: impl Fn(&Arc<Rig>) + Send + Sync + 'static) {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let device = std::sync::Arc::new(Device { context: DeviceContext::of(&gpu), gpu });
    check_deep(move || {
        let device = std::sync::Arc::clone(&device);
        let vector = BlockVector::unused();
        vector.activate(&device.context, config(), None).unwrap();
        let rig = Arc::new(Rig { vector, device });
        test(&rig);
        rig.finish();
    });
}

/// One thread frees the other's allocation, and both continue with their own.
#[test]
fn loom_one_frees_what_another_allocated() {
    check_vector(|rig| {
        rig.settle(0);
        let (mine, theirs) = (rig.get(KIB), rig.get(KIB));
        let other = spawn(rig, move |rig| {
            rig.settle(1);
            rig.free(theirs);
            rig.free(rig.get(KIB));
        });
        let next = rig.get(2 * KIB);
        assert_eq!((mine.shard, next.shard), (1, 1));
        rig.free(mine);
        rig.free(next);
        other.join().unwrap();
        rig.assert_nothing_waits();
    });
}

/// Ranges return while others are leased, even if a third thread drained the last key. Another thread may take back a
/// new range that it finds empty: then the core serves the request.
#[test]
fn loom_loans_come_back_while_others_are_lent() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_vector(move |rig| {
        rig.settle(0);
        let mut lives: Vec<Live> = (0..5).map(|_| rig.get(LARGE)).collect();
        assert_eq!(rig.lent(), 2);
        let (mine, theirs) = (lives.pop().unwrap(), lives.pop().unwrap());
        lives.into_iter().for_each(|live| rig.free(live));
        let other = spawn(rig, move |rig| {
            rig.settle(1);
            let own = rig.get(KIB);
            rig.free(theirs);
            own
        });
        rig.free(mine);
        let own = other.join().unwrap();
        rig.assert_only(own);
        outcome.happened(u32::try_from(rig.lent()).unwrap());
        rig.free(own);
    });
    outcomes.expect(&[0, 1]);
}

/// Trims empty ranges while others are leased and emptied.
#[test]
fn loom_trim_takes_what_is_empty_and_nothing_else() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_vector(move |rig| {
        rig.settle(0);
        let (first, second) = (rig.get(KIB), rig.get(KIB));
        let other = spawn(rig, move |rig| {
            rig.settle(1);
            rig.free(first);
            rig.free(second);
            let own = rig.get(KIB);
            rig.free(own);
        });
        rig.trim();
        other.join().unwrap();
        rig.assert_nothing_waits();
        outcome.happened(u32::try_from(rig.lent()).unwrap());
    });
    outcomes.expect(&[0, 1, 2]);
}

/// A full vector serves from another thread's range, whatever that thread does meanwhile.
#[test]
fn loom_a_full_vector_serves_from_any_shard() {
    check_vector(|rig| {
        rig.settle(0);
        let (mine, next) = (rig.get(KIB), rig.get(KIB));
        thread_token::pretend(2);
        let rest = rig.get(31 * MIB);
        let other = spawn(rig, |rig| {
            thread_token::pretend(1);
            let own = rig.get(LARGE);
            assert_eq!(own.shard, 1);
            rig.free(own);
        });
        thread_token::pretend(0);
        rig.free(next);
        let next = rig.get(KIB);
        rig.free(next);
        other.join().unwrap();
        rig.free(mine);
        rig.free(rest);
    });
}

/// Threads that contend for the core settle.
#[test]
fn loom_threads_that_meet_settle() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_vector(move |rig| {
        while !rig.vector.core.lock().count_contention() {}
        let work = |rig: &Rig, token| {
            thread_token::pretend(token);
            if let Some(live) = rig.try_get(KIB) {
                rig.free(live);
            }
        };
        let other = spawn(rig, move |rig| work(rig, 1));
        work(rig, 0);
        other.join().unwrap();
        rig.assert_nothing_waits();
        outcome.happened(u32::try_from(rig.vector.shards.iter().count()).unwrap());
    });
    outcomes.expect(&[0, 1]);
}

/// Both threads of a shared shard count as its own.
#[test]
fn loom_two_at_home_in_one_shard() {
    check_vector(|rig| {
        rig.settle(0);
        let (mine, theirs) = (rig.get(KIB), rig.get(KIB));
        let other = spawn(rig, move |rig| {
            thread_token::pretend(SHARDS);
            rig.free(theirs);
            let own = rig.get(KIB);
            assert_eq!(own.shard, 1);
            rig.free(own);
        });
        rig.free(rig.get(KIB));
        rig.free(mine);
        other.join().unwrap();
        rig.assert_nothing_waits();
    });
}
