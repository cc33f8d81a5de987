//! Vectors with shards, on a simulated GPU. One thread acts as several, step by step, so that every run is the same. Only
//! the module `stress` uses real threads.

mod damage;
mod defragment;
mod empties;
mod events;
mod limits;
mod mapping;
mod model;
mod placement;
mod pools;
mod returns;
mod stress;

use super::*;
use crate::base::sync::thread_token;
use crate::engine::Algorithm;
use crate::error::{AllocationError, MapError};
use crate::pool::BlockSizing;
use sublet_engines::Alignment;
use sublet_engines::cast::{index, widen};
use sublet_engines::{Metadata, Strategy};
use sublet_sim::{Gpu, profiles::Profile};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A vector with blocks of 32 MiB, leased ranges up to 2 MiB, and requests to shards up to 256 KiB.
fn config() -> VectorConfig {
    VectorConfig {
        memory_type: 0,
        algorithm: Algorithm::Tlsf,
        block_size: 32 * MIB,
        sizing: BlockSizing::Vma,
        fixed_block_size: true,
        min_blocks: 0,
        max_blocks: u32::MAX,
        empty_blocks_kept: 1,
        keeps_only_last: false,
        granularity: Alignment::ONE,
        min_alignment: Alignment::ONE,
        priority: 0.5,
        next: crate::device::MemoryAllocateNext::NONE,
        scope: None,
    }
}

fn aligned(alignment: u64) -> Alignment {
    Alignment::new(alignment).unwrap()
}

fn request(size: u64, alignment: u64) -> VectorRequest {
    VectorRequest {
        size,
        alignment: aligned(alignment),
        strategy: Strategy::Balanced,
        upper: false,
        tag: Tag(7),
        whole_pages: false,
        mapped: false,
        never_allocate: false,
        within_budget: false,
    }
}

/// An allocation and its request.
#[derive(Clone, Copy, Debug)]
struct Held {
    grant: Grant,
    request: VectorRequest,
}

impl Held {
    fn live(&self) -> AllocationKey {
        let Grant { generation, key, shard, .. } = self.grant;
        AllocationKey { generation, key, dedicated: false, shard }
    }

    /// The bytes of its chunk.
    fn bytes(&self, config: &VectorConfig) -> u64 {
        self.request.of_engine(config.granularity, config.min_alignment).size
    }
}

/// A vector on a simulated GPU.
struct Fixture {
    vector: MemoryBlockVector,
    context: DeviceContext,
    gpu: Gpu,
    config: VectorConfig,
    generation: u32,
}

impl Fixture {
    /// All its memory is host-visible.
    fn new(config: VectorConfig) -> Self {
        let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
        let context = DeviceContext::of(&gpu);
        let vector = MemoryBlockVector::unused();
        let generation = vector.activate(&context, config, None).unwrap();
        thread_token::pose_as(0);
        Self { vector, context, gpu, config, generation }
    }

    /// Poses as `thread`, and attaches it.
    fn attach(&self, thread: u32) -> u8 {
        thread_token::pose_as(thread);
        self.vector.shards.attach()
    }

    /// Poses as `thread`.
    fn thread(&self, thread: u32) {
        thread_token::pose_as(thread);
    }

    /// Allocates like the allocator: on the fast path, or else on the slow path.
    fn allocate(&self, request: &VectorRequest) -> Result<Held, AllocationError> {
        let grant = match self.vector.allocate_without_growth(&self.context, request) {
            Some(grant) => grant,
            None => self.vector.allocate(&self.context, request, BlockSearch::Rest)?,
        };
        Ok(Held { grant, request: *request })
    }

    fn get(&self, size: u64, alignment: u64) -> Held {
        self.allocate(&request(size, alignment)).unwrap()
    }

    fn free(&self, held: Held) {
        self.vector.free(&self.context, held.live(), held.request.mapped).unwrap();
    }

    fn free_all(&self, held: impl IntoIterator<Item = Held>) {
        held.into_iter().for_each(|held| self.free(held));
    }

    fn trim(&self) -> u64 {
        self.vector.trim(&self.context)
    }

    /// Every block's size and chunks: offset, size, tag, and name.
    #[allow(clippy::type_complexity, reason = "a test's notes")]
    fn walk(&self) -> Vec<(u64, Vec<(u64, u64, Option<Tag>, Option<String>)>)> {
        let mut blocks = Vec::new();
        self.vector.visit(&mut |visited| match visited {
            Visited::Block { size, .. } => blocks.push((size, Vec::new())),
            Visited::Chunk { chunk, annotation, .. } => {
                let (_, chunks) = blocks.last_mut().unwrap();
                let tag = chunk.used.map(|(_, tag)| tag);
                chunks.push((chunk.offset, chunk.size, tag, name_in(annotation)));
            }
            Visited::Vector { .. } => {}
            Visited::Dedicated { .. } => panic!("nothing is dedicated here"),
        });
        blocks
    }

    /// The number and bytes of leased ranges in the core.
    fn leased(&self) -> (u64, u64) {
        let core = self.vector.core.lock();
        core.active.as_ref().map_or((0, 0), |active| (active.lease_count, active.lease_bytes))
    }

    /// Checks the state, compares it with the driver's, and checks the invariants for idle vectors.
    fn check(&self) {
        self.vector.validate();
        let live = self.gpu.live();
        let totals = self.vector.totals();
        assert_eq!(totals.block_count, live.memories, "the vector's blocks are the driver's memories");
        assert_eq!(totals.block_bytes, live.memory_bytes_by_heap[0], "the vector's bytes are the driver's");
        assert_eq!(self.context.budgets.level(0).usage, totals.block_bytes, "the budget's bytes");
        let (mut leases, mut bytes) = (0, 0);
        for (_, shard) in self.vector.shards.iter() {
            let shard = shard.lock();
            leases += widen(shard.leases().count());
            bytes += shard.usage().capacity;
        }
        assert_eq!(self.leased(), (leases, bytes), "no lease is lost");
        let (mut count, mut used) = (0, 0);
        for (size, chunks) in self.walk() {
            let mut end = 0;
            for (offset, size, tag, name) in chunks {
                assert_eq!(offset, end, "the chunks tile the block");
                end = offset + size;
                if tag.is_some() {
                    count += 1;
                    used += size;
                } else {
                    assert_eq!(name, None, "only what is used has a name");
                }
            }
            assert_eq!(end, size, "the chunks tile the block");
        }
        assert_eq!((count, used), (totals.allocation_count, totals.allocation_bytes), "sums and walk agree");
        self.gpu.assert_silent();
    }

    /// Ends a test: checks that the vector is empty and returns all memory.
    fn finish(self) {
        self.check();
        self.trim();
        self.check();
        let VectorTotals { block_count, allocation_count, .. } = self.vector.totals();
        assert_eq!((block_count, allocation_count), (u64::from(self.config.min_blocks), 0));
        assert_eq!(self.leased(), (0, 0));
        self.vector.deactivate(&self.context, &mut |leak| panic!("left in the vector: {leak:?}"));
        assert!(self.gpu.live().is_empty(), "left on the device: {:?}", self.gpu.live());
        assert_eq!(self.gpu.finish(), []);
    }
}

/// The number of a thread's shard.
fn shard_of(thread: u32) -> u8 {
    u8::try_from(thread % 64).unwrap() + 1
}

/// A deterministic pseudo-random generator.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }

    fn one_in(&mut self, end: u64) -> bool {
        self.below(end) == 0
    }

    /// A number between 1 and `2^bits`, small ones as likely as large ones.
    fn size(&mut self, bits: u64) -> u64 {
        let high = 1 << self.below(bits + 1);
        high - self.below(high)
    }

    fn place(&mut self, len: usize) -> usize {
        usize::try_from(self.below(widen(len))).unwrap()
    }
}

/// The number of cases; `SUBLET_CASES` overrides it.
fn cases(default: u64) -> u64 {
    std::env::var("SUBLET_CASES").ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

impl MemoryBlockVector {
    /// The name of an allocation.
    fn name(&self, live: AllocationKey) -> Result<Option<Box<str>>, ForeignHandle> {
        Ok(self.annotation(live)?.name)
    }
}

/// The name in a visited item.
fn name_in(annotation: Option<&Annotation>) -> Option<String> {
    annotation.and_then(|annotation| annotation.name.as_deref()).map(str::to_owned)
}
