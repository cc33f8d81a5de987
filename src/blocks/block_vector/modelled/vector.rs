//! A whole vector with attached threads, on a simulated GPU. Loom does not model the locks that may be held over driver
//! calls: no two threads contend for them here.

use super::super::shards::SHARDS;
use super::*;
use sublet_sim::{Gpu, profiles::Profile};

/// State that all runs of a test share. Loom does not see it.
struct ModelDevice {
    context: DeviceContext,
    gpu: Gpu,
}

/// A vector and its GPU.
struct Fixture {
    vector: MemoryBlockVector,
    device: std::sync::Arc<ModelDevice>,
}

impl Fixture {
    /// Attaches the calling thread, with `token`.
    fn attach(&self, token: u32) {
        thread_token::pretend(token);
        self.vector.shards.attach();
    }

    fn try_get(&self, size: u64) -> Option<AllocationKey> {
        self.vector.allocate_without_growth(&self.device.context, &request(size)).map(live)
    }

    /// Allocates like the allocator: on the fast path, or else on the slow path.
    fn get(&self, size: u64) -> AllocationKey {
        let with_care =
            || self.vector.allocate(&self.device.context, &request(size), BlockSearch::Rest).map(live);
        self.try_get(size).unwrap_or_else(|| with_care().unwrap())
    }

    fn free(&self, live: AllocationKey) {
        self.vector.free(&self.device.context, live, false).unwrap();
    }

    fn trim(&self) {
        self.vector.trim(&self.device.context);
    }

    /// Leased ranges in the core.
    fn leased(&self) -> u64 {
        self.vector.core.lock().active.as_ref().unwrap().lease_count
    }

    /// Checks that nothing is allocated, after all threads have ended.
    fn finish(&self) {
        self.vector.validate();
        let totals = self.vector.totals();
        assert_eq!((totals.block_count, totals.allocation_count, totals.allocation_bytes), (1, 0, 0));
        self.trim();
        self.vector.validate();
        assert_eq!(self.leased(), 0, "every lease came back");
        self.vector.deactivate(&self.device.context, &mut |leak| panic!("{leak:?}"));
        assert!(self.device.gpu.live().is_empty());
    }
}

/// The largest size that a shard serves: four fill its first range.
const LARGE: u64 = 256 * KIB;

impl Fixture {
    /// Checks that keys left by other threads are freed without further calls.
    fn assert_nothing_waits(&self) {
        for (number, shard) in self.vector.shards.iter() {
            assert_eq!(shard.lock_as_it_is().usage().used_chunks, 0, "shard {number}");
        }
    }

    /// [`Self::assert_nothing_waits`], except for one live allocation.
    fn assert_only(&self, live: AllocationKey) {
        for (number, shard) in self.vector.shards.iter() {
            let used = shard.lock_as_it_is().usage().used_chunks;
            assert_eq!(used, u64::from(number == live.shard), "shard {number}");
        }
    }
}

/// Runs a test in every order, with a new vector each time.
fn check_vector(test: impl Fn(&Arc<Fixture>) + Send + Sync + 'static) {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let device = std::sync::Arc::new(ModelDevice { context: DeviceContext::of(&gpu), gpu });
    check_deep(move || {
        let device = std::sync::Arc::clone(&device);
        let vector = MemoryBlockVector::unused();
        vector.activate(&device.context, config(), None).unwrap();
        let fixture = Arc::new(Fixture { vector, device });
        test(&fixture);
        fixture.finish();
    });
}

/// One thread frees the other's allocation, and both continue with their own.
#[test]
fn loom_one_frees_what_another_allocated() {
    check_vector(|fixture| {
        fixture.attach(0);
        let (mine, theirs) = (fixture.get(KIB), fixture.get(KIB));
        let other = spawn(fixture, move |fixture| {
            fixture.attach(1);
            fixture.free(theirs);
            fixture.free(fixture.get(KIB));
        });
        let next = fixture.get(2 * KIB);
        assert_eq!((mine.shard, next.shard), (1, 1));
        fixture.free(mine);
        fixture.free(next);
        other.join().unwrap();
        fixture.assert_nothing_waits();
    });
}

/// Ranges return while others are leased, even if a third thread drained the last key. Another thread may take back a
/// new range that it finds empty: then the core serves the request.
#[test]
fn loom_leases_come_back_while_others_are_leased() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_vector(move |fixture| {
        fixture.attach(0);
        let mut lives: Vec<AllocationKey> = (0..5).map(|_| fixture.get(LARGE)).collect();
        assert_eq!(fixture.leased(), 2);
        let (mine, theirs) = (lives.pop().unwrap(), lives.pop().unwrap());
        lives.into_iter().for_each(|live| fixture.free(live));
        let other = spawn(fixture, move |fixture| {
            fixture.attach(1);
            let own = fixture.get(KIB);
            fixture.free(theirs);
            own
        });
        fixture.free(mine);
        let own = other.join().unwrap();
        fixture.assert_only(own);
        outcome.happened(u32::try_from(fixture.leased()).unwrap());
        fixture.free(own);
    });
    outcomes.expect(&[0, 1]);
}

/// Trims empty ranges while others are leased and emptied.
#[test]
fn loom_trim_takes_what_is_empty_and_nothing_else() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_vector(move |fixture| {
        fixture.attach(0);
        let (first, second) = (fixture.get(KIB), fixture.get(KIB));
        let other = spawn(fixture, move |fixture| {
            fixture.attach(1);
            fixture.free(first);
            fixture.free(second);
            let own = fixture.get(KIB);
            fixture.free(own);
        });
        fixture.trim();
        other.join().unwrap();
        fixture.assert_nothing_waits();
        outcome.happened(u32::try_from(fixture.leased()).unwrap());
    });
    outcomes.expect(&[0, 1, 2]);
}

/// A full vector serves from another thread's range, whatever that thread does meanwhile.
#[test]
fn loom_a_full_vector_serves_from_any_shard() {
    check_vector(|fixture| {
        fixture.attach(0);
        let (mine, next) = (fixture.get(KIB), fixture.get(KIB));
        thread_token::pretend(2);
        let rest = fixture.get(31 * MIB);
        let other = spawn(fixture, |fixture| {
            thread_token::pretend(1);
            let own = fixture.get(LARGE);
            assert_eq!(own.shard, 1);
            fixture.free(own);
        });
        thread_token::pretend(0);
        fixture.free(next);
        let next = fixture.get(KIB);
        fixture.free(next);
        other.join().unwrap();
        fixture.free(mine);
        fixture.free(rest);
    });
}

/// Threads that contend for the core get shards.
#[test]
fn loom_threads_that_meet_attach() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_vector(move |fixture| {
        while !fixture.vector.core.lock().count_contention() {}
        let work = |fixture: &Fixture, token| {
            thread_token::pretend(token);
            if let Some(live) = fixture.try_get(KIB) {
                fixture.free(live);
            }
        };
        let other = spawn(fixture, move |fixture| work(fixture, 1));
        work(fixture, 0);
        other.join().unwrap();
        fixture.assert_nothing_waits();
        outcome.happened(u32::try_from(fixture.vector.shards.iter().count()).unwrap());
    });
    outcomes.expect(&[0, 1]);
}

/// Both threads of a shared shard count as its own.
#[test]
fn loom_two_at_home_in_one_shard() {
    check_vector(|fixture| {
        fixture.attach(0);
        let (mine, theirs) = (fixture.get(KIB), fixture.get(KIB));
        let other = spawn(fixture, move |fixture| {
            thread_token::pretend(SHARDS);
            fixture.free(theirs);
            let own = fixture.get(KIB);
            assert_eq!(own.shard, 1);
            fixture.free(own);
        });
        fixture.free(fixture.get(KIB));
        fixture.free(mine);
        other.join().unwrap();
        fixture.assert_nothing_waits();
    });
}
