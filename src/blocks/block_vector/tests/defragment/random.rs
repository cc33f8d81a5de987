//! Random heaps, random limits, and random outcomes.

use super::*;

struct Program {
    fixture: Fixture,
    held: Vec<Held>,
    random: Random,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let leasing = random.one_in(3);
        let config = VectorConfig {
            block_size: if leasing { 16 * MIB } else { MIB - random.below(3) * 4 * KIB },
            fixed_block_size: random.one_in(2),
            min_blocks: u32::try_from(random.below(3)).unwrap(),
            empty_blocks_kept: u32::try_from(random.below(3)).unwrap(),
            granularity: aligned(1 << (random.below(2) * random.below(14))),
            min_alignment: aligned(1 << random.below(8)),
            ..config()
        };
        Self { fixture: Fixture::new(config), held: Vec::new(), random }
    }

    fn allocate(&mut self) {
        let random = &mut self.random;
        let kind = u32::try_from(random.below(5)).unwrap();
        let most = if random.one_in(8) { 21 } else { 14 };
        let alignment = 1 << random.below(most);
        let wanted = asked(kind, random.size(17), alignment);
        let strategies = [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset];
        // After the last strategy, the engine maintains an index permanently, so it is rare.
        let known = if random.one_in(30) { 4 } else { 3 };
        let strategy = strategies[random.place(known)];
        let mapped = random.one_in(5);
        if let Ok(held) = self.fixture.allocate(&VectorRequest { mapped, strategy, ..wanted }) {
            self.held.push(held);
        }
    }

    fn fragment(&mut self) {
        for _ in 0..self.random.below(400) {
            if self.fixture.config.block_size > 2 * MIB {
                let thread = u32::try_from(self.random.below(4)).unwrap();
                if thread == 0 {
                    self.fixture.thread(0);
                } else {
                    self.fixture.attach(thread);
                }
            }
            self.allocate();
        }
        let of = 1 + self.random.below(6);
        for at in (0..self.held.len()).rev() {
            if !self.random.one_in(of) {
                self.fixture.free(self.held.swap_remove(at));
            }
        }
    }

    /// Runs a context, to its end or not. Some runs complete all moves of all passes.
    fn defragment(&mut self) {
        let effort = EFFORTS[self.random.place(4)];
        let limit = if self.random.one_in(2) { 0 } else { 1 << (14 + self.random.below(6)) };
        let most = u32::try_from(self.random.below(2) * self.random.below(20)).unwrap();
        let is_faithful = self.random.one_in(2);
        let mut compaction = self.fixture.begin(effort);
        let before = self.fixture.vector.totals();
        let mut emptied = Emptied::default();
        let mut passes = 0;
        loop {
            let planned = self.fixture.plan_within(&mut compaction, limit, most, None, &mut || false);
            if planned.is_empty() {
                break;
            }
            assert!(limit == 0 || planned.iter().map(|planned| planned.size).sum::<u64>() <= limit);
            assert!(most == 0 || planned.len() <= index(most));
            passes += 1;
            assert!(passes < 20_000, "it never ends");
            for planned in planned {
                if is_faithful {
                    emptied.add(self.fixture.complete(&planned, &mut self.held));
                } else {
                    self.answer(&planned, &mut emptied);
                }
            }
            emptied.add(self.fixture.vector.tidy(&self.fixture.context, &compaction));
            if passes % 64 == 1 {
                self.check();
            }
            if !is_faithful && (passes > 20 || self.random.one_in(6)) {
                break;
            }
        }
        let after = self.fixture.vector.totals();
        if is_faithful {
            assert_eq!(before.allocation_count, after.allocation_count);
            assert_eq!(before.allocation_bytes, after.allocation_bytes);
            assert_eq!(before.block_bytes - after.block_bytes, emptied.bytes);
            assert_eq!(before.block_count - after.block_count, emptied.blocks);
        }
        self.fixture.vector.end_compaction(&compaction);
        self.check();
    }

    fn answer(&mut self, planned: &Planned, emptied: &mut Emptied) {
        let Some(at) = self.held.iter().position(|held| is(held, planned.source)) else {
            emptied.add(self.fixture.roll_back(planned));
            return;
        };
        match self.random.below(8) {
            0 => emptied.add(self.fixture.roll_back(planned)),
            1 => {
                self.fixture.vector.let_stay(planned.source);
                emptied.add(self.fixture.roll_back(planned));
            }
            2 => {
                let mapped = self.held.swap_remove(at).request.mapped;
                let freed = self.fixture.vector.free_moved(&self.fixture.context, planned.source, mapped, 0);
                emptied.add(freed.unwrap());
                emptied.add(self.fixture.roll_back(planned));
            }
            3 => {
                self.fixture.free(self.held.swap_remove(at));
                self.allocate();
                emptied.add(self.fixture.roll_back(planned));
            }
            4 => {
                self.allocate();
                emptied.add(self.fixture.complete(planned, &mut self.held));
            }
            _ => emptied.add(self.fixture.complete(planned, &mut self.held)),
        }
    }

    /// Checks the state, and that each place is valid.
    fn check(&self) {
        self.fixture.check();
        let VectorConfig { granularity, min_alignment, .. } = self.fixture.config;
        let mut spans = Vec::new();
        for held in &self.held {
            let alignment = held.request.alignment.max(min_alignment).get();
            assert_eq!(held.grant.offset % alignment, 0, "{held:?}");
            if held.request.whole_pages {
                assert_eq!(held.grant.offset % granularity.get(), 0, "{held:?}");
            }
            if held.request.mapped {
                let base = self.fixture.vector.map(&self.fixture.context, held.live()).unwrap();
                self.fixture.vector.unmap(held.live()).unwrap();
                assert_eq!(held.grant.mapped, base.at(held.grant.offset));
            }
            let end = held.grant.offset + held.bytes(&self.fixture.config);
            spans.push((held.grant.memory, held.grant.offset, end));
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "two share bytes: {pair:?}");
        }
    }
}

#[test]
fn random_heaps_are_fragmented_and_compacted() {
    for seed in 0..cases(48) {
        let mut program = Program::new(seed);
        for _ in 0..4 {
            program.fragment();
            program.defragment();
        }
        let Program { fixture, held, .. } = program;
        fixture.free_all(held);
        fixture.finish();
    }
}

/// After a context without limits, a second one frees no further block.
#[test]
fn nothing_is_left_for_a_second_context() {
    for seed in 0..cases(24) {
        let mut program = Program::new(seed);
        program.fragment();
        let Program { fixture, mut held, .. } = program;
        for effort in [Effort::Balanced, Effort::Full] {
            let _ = fixture.compact(effort, &mut held);
            let (emptied, _, _) = fixture.compact(effort, &mut held);
            assert_eq!(emptied, Emptied::default(), "seed {seed}");
        }
        fixture.free_all(held);
        fixture.finish();
    }
}
