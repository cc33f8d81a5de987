//! Empty blocks that stay because they are needed again soon.

use sublet::sim::{Gpu, Profile};
use sublet::{Allocation, AllocationCreateInfo, AllocatorCreateInfo, MaintainInfo, Tracking};

use crate::common::*;

/// MiB in use at the lower and the upper end of each cycle.
const ENDS: (usize, usize) = (200, 280);

/// A program whose usage goes up and down by some blocks, in pieces of one MiB.
struct Waves {
    fixture: Held<Fixture>,
    is_named: bool,
    held: Vec<Allocation>,
}

impl Waves {
    fn new(is_named: bool, tracking: Tracking) -> Self {
        let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
        let info = AllocatorCreateInfo { flags: enabled(&gpu), tracking, ..create_info(&gpu) };
        let allocator = new_allocator(&info).unwrap();
        Self { fixture: hold(Fixture { allocator, gpu }), is_named, held: Vec::new() }
    }

    fn grow_to(&mut self, count: usize) {
        let name = self.is_named.then_some("piece");
        let info = AllocationCreateInfo { name, ..in_type(0) };
        while self.held.len() < count {
            self.held.push(self.fixture.memory(MIB, 1, &info).unwrap());
        }
    }

    fn shrink_to(&mut self, count: usize) {
        self.fixture.free_all(self.held.drain(count..));
    }

    /// One cycle, with as many frees at the upper end as would end the hysteresis if they found a block kept.
    fn cycle(&mut self) {
        self.grow_to(ENDS.1);
        for _ in 0..ENDS.1 {
            self.shrink_to(ENDS.1 - 1);
            self.grow_to(ENDS.1);
        }
        self.shrink_to(ENDS.0);
    }

    fn driver_calls(&self) -> u64 {
        self.fixture.gpu.calls("vkAllocateMemory") + self.fixture.gpu.calls("vkFreeMemory")
    }

    fn reserved(&self) -> u64 {
        self.fixture.statistics(0).block_bytes
    }

    fn bound(&self) -> u64 {
        let live = self.fixture.statistics(0).allocation_bytes;
        live + live / 4 + 8 * MIB
    }

    fn end(mut self) {
        self.fixture.validate();
        self.shrink_to(0);
    }
}

/// Names and tracked data bring every free to the slow path, which must not end the hysteresis.
#[test]
fn blocks_that_are_needed_again_stay_with_and_without_names() {
    let kinds = [(false, Tracking::empty()), (true, Tracking::empty()), (false, Tracking::all())];
    let calls = kinds.map(|(is_named, tracking)| {
        let mut waves = Waves::new(is_named, tracking);
        (0..4).for_each(|_| waves.cycle());
        let learnt = waves.driver_calls();
        assert!(waves.reserved() > waves.bound(), "blocks stay: {}", waves.reserved() / MIB);
        (0..100).for_each(|_| waves.cycle());
        assert_eq!(waves.driver_calls(), learnt, "more cycles need no driver");
        waves.end();
        learnt
    });
    assert_eq!(calls, [calls[0]; 3]);
}

#[test]
fn maintenance_frees_what_the_hysteresis_kept() {
    let mut waves = Waves::new(false, Tracking::empty());
    (0..4).for_each(|_| waves.cycle());
    assert!(waves.reserved() > waves.bound(), "blocks stay: {}", waves.reserved() / MIB);
    for _ in 0..100 {
        waves.fixture.allocator.maintain(&MaintainInfo::default());
    }
    assert!(waves.reserved() <= waves.bound(), "{}", waves.reserved() / MIB);
    waves.end();
}
