//! Random programs of several threads, checked against a shadow model of every byte.

use std::collections::{BTreeMap, BTreeSet};

use ash::vk::Handle;

use super::*;

const STRATEGIES: [Strategy; 6] = [
    Strategy::Balanced,
    Strategy::Balanced,
    Strategy::Balanced,
    Strategy::MinTime,
    Strategy::MinMemory,
    Strategy::MinOffset,
];

/// One allocation in the shadow model.
struct Shadowed {
    held: Held,
    name: Option<String>,
    /// The number of open guards.
    guards: u64,
}

struct Shadow {
    fixture: Fixture,
    random: Random,
    threads: u64,
    /// The largest size of an allocation, as a power of two.
    bits: u64,
    /// The approximate number of live allocations.
    crowd: usize,
    /// Steps between checks of the state. Each check drains the shards' rings.
    every: u64,
    live: Vec<Shadowed>,
    /// Handles that every function must reject.
    stale: Vec<Held>,
    /// The placements in order, to compare runs: the memory's index by first appearance, and the offset.
    placed: Vec<(usize, u64)>,
    memories: Vec<u64>,
}

impl Shadow {
    fn new(config: VectorConfig, seed: u64, threads: u64) -> Self {
        Self {
            fixture: Fixture::new(config),
            random: Random::new(seed),
            threads,
            bits: 22,
            crowd: 0,
            every: 1,
            live: Vec::new(),
            stale: Vec::new(),
            placed: Vec::new(),
            memories: Vec::new(),
        }
    }

    /// A random request: mostly alignments up to 64 KiB and the balanced strategy.
    fn request(&mut self) -> VectorRequest {
        let random = &mut self.random;
        let alignment = if random.one_in(8) { 1 << random.below(20) } else { 1 << random.below(10) };
        VectorRequest {
            strategy: STRATEGIES[random.place(STRATEGIES.len())],
            tag: Tag(u32::try_from(random.below(1 << 29)).unwrap()),
            whole_pages: random.one_in(2),
            mapped: random.one_in(3),
            never_allocate: random.one_in(8),
            within_budget: random.one_in(4),
            ..request(random.size(self.bits), alignment)
        }
    }

    fn allocate(&mut self) {
        let request = self.request();
        let before = self.fixture.vector.totals();
        match self.fixture.allocate(&request) {
            Ok(held) => {
                let name = self.random.one_in(4).then(|| format!("{:?}", held.live().key));
                if name.is_some() {
                    self.fixture.vector.set_name(held.live(), name.as_deref()).unwrap();
                }
                let memory = held.grant.memory.as_raw();
                let at = self.memories.iter().position(|&it| it == memory).unwrap_or_else(|| {
                    self.memories.push(memory);
                    self.memories.len() - 1
                });
                self.placed.push((at, held.grant.offset));
                self.live.push(Shadowed { held, name, guards: 0 });
            }
            Err(error) => self.check_refusal(&request, &before, &error),
        }
    }

    fn check_refusal(&self, request: &VectorRequest, before: &VectorTotals, error: &AllocationError) {
        let after = self.fixture.vector.totals();
        assert_eq!(after.allocation_count, before.allocation_count, "a failure changes nothing");
        assert_eq!(after.allocation_bytes, before.allocation_bytes, "a failure changes nothing");
        assert!(after.block_count <= before.block_count, "a failure takes no block");
        let config = &self.fixture.config;
        let wanted = request.of_engine(config.granularity, config.min_alignment);
        let &AllocationError::Full { size, alignment, free, largest_free, block_count, max_block_count } =
            error
        else {
            panic!("{request:?} was refused: {error:?}");
        };
        assert_eq!((size, alignment), (request.size, wanted.alignment.get()));
        assert_eq!(u64::from(block_count), after.block_count);
        assert_eq!(free, after.block_bytes - after.allocation_bytes, "free bytes, in shards and out of them");
        let limit = if request.never_allocate { 0 } else { config.max_blocks };
        assert_eq!(max_block_count, limit);
        let walked = self.fixture.walk();
        let chunks = walked.iter().flat_map(|(_, chunks)| chunks).filter(|chunk| chunk.2.is_none());
        let largest = chunks.map(|chunk| chunk.1).max().unwrap_or(0);
        assert!(largest_free <= largest && largest_free >= largest / 64 * 63, "{largest_free} of {largest}");
        assert!(alignment > 1 || wanted.size > largest_free, "there is room for {request:?}: {error:?}");
    }

    fn free(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let at = self.random.place(self.live.len());
        let Shadowed { held, guards, .. } = self.live.swap_remove(at);
        for _ in 0..guards {
            self.fixture.vector.unmap(held.live()).unwrap();
        }
        self.fixture.free(held);
        self.stale.push(held);
    }

    /// Handles of freed allocations and of former uses are rejected everywhere.
    fn use_stale(&mut self) {
        if self.stale.is_empty() {
            return;
        }
        let at = self.random.place(self.stale.len());
        let Fixture { vector, context, .. } = &self.fixture;
        let held = self.stale[at];
        let live = held.live();
        assert_eq!(vector.set_name(live, Some("stale")), Err(FOREIGN));
        assert_eq!(vector.name(live), Err(FOREIGN));
        assert_eq!(vector.memory_size(live), Err(FOREIGN));
        assert!(vector.map(context, live).is_err() && vector.unmap(live).is_err());
        // Comes last: the calls above drain the shard's ring, in which the key may still be live. A free for another
        // thread's shard cannot report the error, because it only leaves the key in the ring. The types ensure that
        // each key arrives once.
        if live.shard == 0 || live.shard == vector.shards.home() {
            assert_eq!(vector.free(context, live, held.request.mapped), Err(FOREIGN));
        }
    }

    fn map(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let at = self.random.place(self.live.len());
        let it = &mut self.live[at];
        if it.guards == 0 || self.random.one_in(2) {
            let base = self.fixture.vector.map(&self.fixture.context, it.held.live()).unwrap();
            assert!(base.is_mapped());
            it.guards += 1;
        } else {
            self.fixture.vector.unmap(it.held.live()).unwrap();
            it.guards -= 1;
        }
    }

    fn rename(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let at = self.random.place(self.live.len());
        let name = self.random.one_in(2).then(|| format!("renamed {at}"));
        self.fixture.vector.set_name(self.live[at].held.live(), name.as_deref()).unwrap();
        self.live[at].name = name;
    }

    fn trim(&mut self) {
        let before = self.fixture.vector.totals().block_bytes;
        let returned = self.fixture.trim();
        let after = self.fixture.vector.totals();
        assert_eq!(returned, before - after.block_bytes, "the bytes that trim says it gave back");
        let config = &self.fixture.config;
        let used = self.live.iter().map(|it| it.held.grant.memory.as_raw()).collect::<BTreeSet<_>>();
        let left = widen(used.len()).max(u64::from(config.min_blocks));
        assert_eq!(after.block_count, left, "blocks stay for what is in them, or as the minimum");
        // No thread is active, so every leased range has an allocation.
        assert!(self.fixture.leased().0 <= widen(self.live.len()));
    }

    /// Makes the driver refuse a block.
    fn fail(&mut self) {
        let result = ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
        // Also smaller ones, where sizes are managed.
        self.fixture.gpu.faults().fail_always("vkAllocateMemory", result);
        let request = self.request();
        let before = self.fixture.vector.totals();
        match self.fixture.allocate(&request) {
            Ok(held) => {
                self.live.push(Shadowed { held, name: None, guards: 0 });
                self.placed.push((usize::MAX, held.grant.offset));
            }
            Err(AllocationError::Memory(_)) => {
                let after = self.fixture.vector.totals();
                assert_eq!(after.allocation_bytes, before.allocation_bytes, "a failure changes nothing");
                assert!(after.block_count <= before.block_count, "a failure takes no block");
            }
            Err(error) => self.check_refusal(&request, &before, &error),
        }
        self.fixture.gpu.faults().clear();
    }

    /// Ends this use of the vector, allocations included, and begins another.
    fn restart(&mut self) {
        let Self { fixture, live, stale, .. } = self;
        let mut leaks = Vec::new();
        let offset_and_name = |visited: Visited<'_>| match visited {
            Visited::Chunk { chunk, annotation, .. } => {
                (chunk.used.unwrap().1.0, chunk.offset, chunk.size, name_in(annotation))
            }
            _ => panic!("{visited:?} was reported as a leak"),
        };
        fixture.vector.deactivate(&fixture.context, &mut |leak| leaks.push(offset_and_name(leak)));
        let expected = live.iter().map(|it| {
            (it.held.request.tag.0, it.held.grant.offset, it.held.bytes(&fixture.config), it.name.clone())
        });
        let mut expected: Vec<_> = expected.collect();
        expected.sort_unstable();
        leaks.sort_unstable();
        assert_eq!(leaks, expected);
        assert!(fixture.gpu.live().is_empty());
        stale.extend(live.drain(..).map(|it| it.held));
        fixture.generation = fixture.vector.activate(&fixture.context, fixture.config, None).unwrap();
        assert!((0..self.threads).all(|thread| {
            thread_token::pose_as(narrowed(thread));
            fixture.vector.shards.home() == 0
        }));
    }

    fn step(&mut self) {
        let thread = narrowed(self.random.below(self.threads));
        thread_token::pose_as(thread);
        match self.random.below(100) {
            0..=44 => self.allocate(),
            // Frees instead, once there are enough allocations.
            45..=79 if self.live.len() < self.crowd => self.allocate(),
            45..=79 => self.free(),
            80..=84 => self.map(),
            85..=88 => self.rename(),
            89..=91 => self.use_stale(),
            92..=93 => self.trim(),
            94..=95 => self.fail(),
            96 if self.random.one_in(8) => self.restart(),
            // Thread 0 stays at the core.
            _ if thread != 0 => drop(self.fixture.attach(thread)),
            _ => {}
        }
    }

    fn check(&self) {
        let Self { fixture, live, .. } = self;
        fixture.check();
        let config = &fixture.config;
        let totals = fixture.vector.totals();
        assert_eq!(totals.allocation_count, widen(live.len()));
        let bytes = live.iter().map(|it| it.held.bytes(config)).sum::<u64>();
        assert_eq!(totals.allocation_bytes, bytes);

        let mut by_memory: BTreeMap<_, Vec<&Held>> = BTreeMap::new();
        for it in live {
            by_memory.entry(it.held.grant.memory.as_raw()).or_default().push(&it.held);
        }
        for held in by_memory.values_mut() {
            held.sort_unstable_by_key(|held| held.grant.offset);
            for pair in held.windows(2) {
                let [one, other] = pair else { continue };
                let end = one.grant.offset + one.request.size;
                assert!(end <= other.grant.offset, "{one:?} and {other:?} overlap");
                if one.request.whole_pages || other.request.whole_pages {
                    let pages = config.granularity.align_up(end).unwrap();
                    assert!(pages <= other.grant.offset, "{one:?} and {other:?} share a page");
                }
            }
            let last = held.last().unwrap();
            let size = fixture.gpu.memory_info(last.grant.memory).expect("the memory is live").size;
            assert!(last.grant.offset + last.request.size <= size, "{last:?} reaches over the end");
        }

        let mut walked: Vec<_> = fixture.walk().into_iter().flat_map(|(_, chunks)| chunks).collect();
        walked.retain(|chunk| chunk.2.is_some());
        let expected = live.iter().map(|it| {
            (it.held.grant.offset, it.held.bytes(config), Some(it.held.request.tag), it.name.clone())
        });
        let mut expected: Vec<_> = expected.collect();
        let key =
            |chunk: &(u64, u64, Option<Tag>, Option<String>)| (chunk.0, chunk.1, chunk.2.map(|tag| tag.0));
        walked.sort_unstable_by_key(key);
        expected.sort_unstable_by_key(key);
        assert_eq!(walked, expected, "what is walked is what was granted");

        for it in live {
            let Grant { memory, offset, mapped, shard, .. } = it.held.grant;
            let live = it.held.live();
            let alignment = it.held.request.alignment.max(config.min_alignment).get();
            assert_eq!(offset % alignment, 0, "{it:?} is misaligned", it = it.held);
            assert_eq!(mapped.is_mapped(), it.held.request.mapped);
            assert_eq!(fixture.vector.name(live).unwrap().as_deref(), it.name.as_deref());
            let size = fixture.gpu.memory_info(memory).unwrap().size;
            assert_eq!(fixture.vector.memory_size(live), Ok(size));
            // `pin_mapping` reports if the memory is mapped, and `map` then returns its address without a driver call.
            let needed = it.guards > 0 || mapped.is_mapped();
            match fixture.vector.pin_mapping(live) {
                Ok(_) => {
                    let maps = fixture.gpu.calls("vkMapMemory");
                    let base = fixture.vector.map(&fixture.context, live).unwrap();
                    assert!(!mapped.is_mapped() || mapped == base.at(offset), "a mapping that was moved");
                    assert_eq!(fixture.gpu.calls("vkMapMemory"), maps);
                    fixture.vector.unmap(live).unwrap();
                    fixture.vector.unmap(live).unwrap();
                }
                Err(error) => {
                    assert_eq!(error, MapError::NotMapped);
                    assert!(!needed, "{:?} is to be mapped", it.held);
                }
            }
            assert!(u64::from(shard) <= 64);
        }
        self.check_map_counts();
    }

    /// Users of mappings are guards, mapped allocations of the core, and ranges with mapped allocations; no others.
    fn check_map_counts(&self) {
        let mut users: BTreeMap<u64, u64> = BTreeMap::new();
        for it in &self.live {
            let in_core = it.held.grant.shard == 0 && it.held.request.mapped;
            *users.entry(it.held.grant.memory.as_raw()).or_default() += it.guards + u64::from(in_core);
        }
        for (_, shard) in self.fixture.vector.shards.iter() {
            for memory in shard.lock().mapped_leases() {
                *users.entry(memory.as_raw()).or_default() += 1;
            }
        }
        let core = self.fixture.vector.core.lock();
        for block in core.active.as_ref().iter().flat_map(|active| &active.blocks).flatten() {
            let expected = users.get(&block.memory.memory.as_raw()).copied().unwrap_or(0);
            assert_eq!(block.map_count, expected, "users of the mapping of {block:?}");
            assert!(expected == 0 || block.memory.mapped().is_mapped());
        }
    }

    fn run(mut self, steps: u64) -> Vec<(usize, u64)> {
        for step in 0..steps {
            self.step();
            if step % self.every == 0 {
                self.check();
            }
        }
        self.check();
        while !self.live.is_empty() {
            thread_token::pose_as(narrowed(self.random.below(self.threads)));
            self.free();
            if widen(self.live.len()) % self.every == 0 {
                self.fixture.check();
            }
        }
        // An empty vector keeps only a small range for each thread, and the blocks that the policy allows.
        let VectorTotals { block_count, .. } = self.fixture.vector.totals();
        let config = &self.fixture.config;
        let kept = u64::from(config.empty_blocks_kept.max(config.min_blocks));
        assert!(self.fixture.leased().0 <= self.threads && self.fixture.leased().1 <= self.threads * MIB);
        assert!(block_count <= kept.max(1) + self.fixture.leased().0, "{block_count} blocks for nothing");
        self.fixture.finish();
        self.placed
    }
}

fn narrowed(thread: u64) -> u32 {
    u32::try_from(thread).unwrap()
}

/// The configurations that the programs use in turn.
fn configs() -> Vec<VectorConfig> {
    let large = VectorConfig { block_size: 64 * MIB, ..config() };
    vec![
        large,
        VectorConfig { granularity: aligned(1024), min_alignment: aligned(64), ..config() },
        VectorConfig { granularity: aligned(64 * KIB), fixed_block_size: false, ..large },
        VectorConfig { max_blocks: 2, empty_blocks_kept: 0, block_size: 16 * MIB + 4711, ..config() },
        VectorConfig {
            min_blocks: 1,
            max_blocks: 3,
            granularity: aligned(256),
            block_size: 24 * MIB + 1,
            ..config()
        },
        VectorConfig {
            empty_blocks_kept: 0,
            granularity: aligned(4096),
            fixed_block_size: false,
            ..config()
        },
    ]
}

#[test]
fn programs_agree_with_the_shadow() {
    for seed in 0..cases(30) {
        let configs = configs();
        let config = configs[usize::try_from(seed).unwrap() % configs.len()];
        let threads = 2 + seed % 7;
        let bits = if seed % 2 == 0 { 22 } else { 18 };
        let run = std::panic::catch_unwind(|| {
            let mut shadow = Shadow::new(config, seed, threads);
            shadow.bits = bits;
            drop(shadow.run(200));
        });
        if let Err(payload) = run {
            eprintln!("seed {seed}, {threads} threads, {config:?}");
            std::panic::resume_unwind(payload);
        }
    }
}

/// Many small allocations, so that most frees by other threads go through a ring.
#[test]
fn programs_of_small_allocations() {
    for seed in 0..cases(30) / 5 {
        let configs = configs();
        let mut shadow = Shadow::new(configs[usize::try_from(seed).unwrap() % configs.len()], seed, 4);
        (shadow.bits, shadow.crowd, shadow.every) = (12, 600, 50);
        for thread in 0..4 {
            shadow.fixture.attach(thread);
        }
        drop(shadow.run(2500));
    }
}

/// The same steps of the same threads give the same placement.
#[test]
fn placement_is_deterministic() {
    for seed in 1000..1003 {
        let run = || Shadow::new(configs()[1], seed, 4).run(300);
        let placed = run();
        assert!(placed.len() > 50);
        assert_eq!(placed, run());
    }
}
