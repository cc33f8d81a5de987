//! `BucketState` against a model of the driver and a model of the program, both simple lists.

use std::collections::{BTreeMap, BTreeSet};

use ash::vk;
use ash::vk::Handle;

use super::super::state::{BucketState, LayoutKey, NextSet, PoolEntry, Ways};
use super::wanted;

/// The model of the driver: the capacity of each pool, and its sets with their layouts.
#[derive(Default)]
struct Driver {
    pools: BTreeMap<u64, (u32, BTreeMap<vk::DescriptorSet, u64>)>,
    next: u64,
}

impl Driver {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn allocate(&mut self, pool: u64, layout: u64) -> vk::DescriptorSet {
        let set = vk::DescriptorSet::from_raw(self.number());
        let (capacity, sets) = self.pools.get_mut(&pool).unwrap();
        sets.insert(set, layout);
        assert!(sets.len() <= usize::try_from(*capacity).unwrap(), "more than the pool was made for");
        set
    }
}

/// Replays the steps of `supply.rs` against the model.
struct Play {
    state: BucketState<(), u64>,
    driver: Driver,
    ways: Ways,
    /// Live sets of the program: slot, generation, set, layout.
    live: Vec<(u32, u32, vk::DescriptorSet, u64)>,
    retired: Vec<(u32, vk::DescriptorSet)>,
    dead: Vec<(u32, u32)>,
    rng: fastrand::Rng,
    evictions: u32,
    resets: u32,
}

impl Play {
    fn new(seed: u64) -> Self {
        let ways = Ways { free: seed % 3 != 0, reset: seed % 4 != 0 };
        let rng = fastrand::Rng::with_seed(seed);
        Self {
            state: BucketState::default(),
            driver: Driver::default(),
            ways,
            live: Vec::new(),
            retired: Vec::new(),
            dead: Vec::new(),
            rng,
            evictions: 0,
            resets: 0,
        }
    }

    fn remove(&mut self, at: u32) {
        let pool = self.state.remove_pool(at).unwrap();
        let (_, sets) = self.driver.pools.remove(&pool).unwrap();
        let used: BTreeSet<vk::DescriptorSet> = self
            .live
            .iter()
            .map(|&(_, _, set, _)| set)
            .chain(self.retired.iter().map(|&(_, set)| set))
            .collect();
        assert!(sets.keys().all(|set| !used.contains(set)), "a pool with live sets is destroyed");
    }

    fn reset(&mut self, at: u32) {
        let pool = self.state.pool(at).unwrap();
        assert_eq!(pool.live, 0);
        self.driver.pools.get_mut(&pool.pool).unwrap().1.clear();
        self.state.reset(at);
        self.resets += 1;
    }

    fn allocate(&mut self, wanted: LayoutKey) {
        let slot = loop {
            match self.state.source(wanted, self.ways) {
                NextSet::Ready(at) => break self.state.take_ready(wanted, at).unwrap(),
                NextSet::Room(at) if self.rng.u32(..20) == 0 => {
                    // The driver fails although there is room.
                    if self.state.pool(at).unwrap().live == 0 { self.remove(at) } else { self.state.seal(at) }
                }
                NextSet::Room(at) => {
                    let pool = self.state.pool(at).unwrap().pool;
                    let set = self.driver.allocate(pool, wanted.layout);
                    break self.state.add_live(wanted, at, set);
                }
                NextSet::Reset(at) => self.reset(at),
                NextSet::Replace(at) => self.remove(at),
                NextSet::Evict(at) => {
                    let (slot, set) = self.state.evictable(at).unwrap();
                    let pool = self.state.pool(at).unwrap().pool;
                    self.driver.pools.get_mut(&pool).unwrap().1.remove(&set).unwrap();
                    self.state.evict(slot);
                    self.evictions += 1;
                }
                NextSet::Nowhere => {
                    // A pool is created only if no existing pool can provide a set.
                    let of = |pool: &PoolEntry<u64>| if pool.sealed { 0 } else { pool.room + pool.ready };
                    let free: u32 = self.state.pools().map(of).sum();
                    assert!(!self.ways.free || free == 0);
                    let capacity = self.rng.u32(1..9);
                    let number = self.driver.number();
                    self.driver.pools.insert(number, (capacity, BTreeMap::new()));
                    self.state.add_pool(number, capacity);
                }
            }
        };
        let (set, generation) = self.state.set_of(slot);
        let pools = self.driver.pools.values();
        let layout = pools.clone().find_map(|(_, sets)| sets.get(&set)).copied();
        assert_eq!(layout, Some(wanted.layout), "a set that is not there, or of another layout");
        assert!(self.live.iter().all(|&(_, _, other, _)| other != set), "a set that somebody has");
        assert!(self.retired.iter().all(|&(_, other)| other != set), "a set that the device may use");
        self.live.push((slot, generation, set, wanted.layout));
    }

    fn release(&mut self, slot: u32) {
        let at = self.state.release(slot);
        let pool = self.state.pool(at).unwrap();
        if pool.live == 0 {
            if self.state.has_enough_without(at) || (pool.sealed && !self.ways.reset) {
                self.remove(at);
            } else if pool.sealed {
                self.reset(at);
            }
        }
    }

    fn step(&mut self) {
        match self.rng.u32(..10) {
            0..=4 => {
                let layout = self.rng.u64(1..4);
                self.allocate(wanted(layout));
            }
            5..=6 if !self.live.is_empty() => {
                let (slot, generation, ..) = self.live.swap_remove(self.rng.usize(..self.live.len()));
                self.dead.push((slot, generation));
                self.release(slot);
            }
            7 if !self.live.is_empty() => {
                let (slot, generation, set, _) = self.live.swap_remove(self.rng.usize(..self.live.len()));
                self.dead.push((slot, generation));
                self.retired.push((self.state.retire(slot), set));
            }
            8 if !self.retired.is_empty() => {
                let (slot, _) = self.retired.swap_remove(self.rng.usize(..self.retired.len()));
                self.release(slot);
            }
            // Frees nearly all sets now and then, so that pools become empty.
            9 if self.rng.u32(..10) == 0 => {
                while self.live.len() > 2 {
                    let (slot, ..) = self.live.pop().unwrap();
                    self.release(slot);
                }
                if let Some(idle) = self.state.idle_pool() {
                    self.remove(idle);
                }
            }
            _ => {}
        }
        self.state.validate();
        for &(slot, generation, set, _) in &self.live {
            assert_eq!(self.state.live_set(slot, generation), Some(set));
        }
        assert!(self.dead.iter().all(|&(slot, generation)| self.state.live_set(slot, generation).is_none()));
    }
}

#[test]
fn whatever_is_allocated_and_freed_the_state_is_what_the_driver_knows() {
    let (mut evictions, mut resets) = (0, 0);
    for seed in 0..24 {
        let mut play = Play::new(seed);
        for _ in 0..400 {
            play.step();
        }
        evictions += play.evictions;
        resets += play.resets;
    }
    assert!(evictions > 100 && resets > 10, "{evictions} evictions, {resets} resets: too few to test them");
}
