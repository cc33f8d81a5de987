//! Vectors whose blocks are spans of other vectors: sparse texture pages and meshes share one memory pool.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

use std::cell::RefCell;

use ash::vk;
use sublet::metadata::{Alignment, Buddy, RangeMetadata, Request, Span, Tlsf};
use sublet::retire::Clock;
use sublet::vector::{
    Backing, BlockVector, GrantOf, Growth, GrowthLimits, HandleError, NextBlock, Policy, Refusal, VectorError,
};
use sublet::{
    Allocation, AllocationCreateInfo, AllocationError, Allocator, AllocatorCreateInfo, Pool, PoolCreateInfo,
    sim,
};

/// Bytes per page.
const PAGE: u64 = 64 << 10;

fn units(size: u64) -> Request {
    Request::new(size, Alignment::ONE)
}

fn size_of(request: Option<&Request>) -> u64 {
    request.map_or(0, |request| request.size)
}

/// Level 1: blocks of 16 pages from a pool of the allocator. A span is a range of device memory.
struct Memory<'a> {
    allocator: &'a Allocator,
    pool: &'a Pool,
}

type Place = (vk::DeviceMemory, u64);

impl<M: RangeMetadata> Backing<M> for Memory<'_> {
    type Block = Allocation;
    type Item = Place;
    type Error = AllocationError;

    fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
        Some(Growth::fixed(16 * PAGE).next(size_of(request), limits.largest))
    }

    fn create(&self, &size: &u64) -> Result<Allocation, AllocationError> {
        let needs = vk::MemoryRequirements { size, alignment: PAGE, memory_type_bits: u32::MAX };
        let info = AllocationCreateInfo { pool: Some(self.pool), ..Default::default() };
        self.allocator.allocate_memory(&needs, &info)
    }

    fn destroy(&self, block: Allocation) {
        // SAFETY: nothing was bound to it.
        unsafe { self.allocator.free_memory(block) }.unwrap();
    }

    fn realize(&self, block: &mut Allocation, span: &Span) -> Result<Place, Refusal<AllocationError>> {
        Ok((block.memory(), block.offset() + span.offset))
    }
}

type Pages<'a> = RefCell<BlockVector<Memory<'a>, Tlsf>>;

/// Levels 2 and 3: blocks of `block` units of `unit` units each, from the vector below.
struct Parts<'a, B: Backing<M, Item = Place>, M: RangeMetadata> {
    below: &'a RefCell<BlockVector<B, M>>,
    unit: u64,
    block: u64,
}

impl<B, M, N> Backing<N> for Parts<'_, B, M>
where
    B: Backing<M, Item = Place>,
    B::Error: std::fmt::Debug,
    M: RangeMetadata,
    N: RangeMetadata,
{
    type Block = GrantOf<B, M>;
    type Item = Place;
    type Error = VectorError<B::Error>;

    fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
        Some(Growth::fixed(self.block).next(size_of(request), limits.largest))
    }

    fn create(&self, units: &u64) -> Result<Self::Block, Self::Error> {
        let alignment = Alignment::new(self.unit).unwrap();
        self.below.borrow_mut().allocate(&Request::new(units * self.unit, alignment))
    }

    fn destroy(&self, block: Self::Block) {
        assert!(self.below.borrow_mut().free(block).is_ok());
    }

    fn realize(&self, block: &mut Self::Block, span: &Span) -> Result<Place, Refusal<Self::Error>> {
        let (memory, offset) = block.item;
        Ok((memory, offset + span.offset * self.unit))
    }
}

fn with_pool(max_blocks: u32, test: impl FnOnce(&Allocator, &Pool)) {
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let info = PoolCreateInfo {
        memory_type_index: 0,
        block_size: 64 * PAGE,
        max_block_count: max_blocks,
        ..Default::default()
    };
    let pool = allocator.create_pool(&info).unwrap();
    test(&allocator, &pool);
    // SAFETY: the pool is empty.
    assert_eq!(unsafe { allocator.destroy_pool(pool) }.unwrap().len(), 0, "a level below has leaked");
    drop(allocator);
    gpu.assert_silent();
}

const NOTHING_KEPT: Policy = Policy {
    min_blocks: 0,
    max_blocks: u32::MAX,
    max_units: u64::MAX,
    empty_blocks_kept: 0,
    own_blocks_kept: 0,
    idle_collects: Some(0),
};

#[test]
fn pages_and_meshes_come_out_of_one_pool() {
    with_pool(1, |allocator, pool| {
        let memory: Pages<'_> = RefCell::new(
            BlockVector::new(Memory { allocator, pool }, Tlsf::exact(64 * PAGE), NOTHING_KEPT).unwrap(),
        );
        let sparse = Parts { below: &memory, unit: PAGE, block: 4 };
        let sparse = RefCell::new(BlockVector::new(sparse, Buddy::new(64, 1), NOTHING_KEPT).unwrap());
        let meshes = Parts { below: &memory, unit: 256, block: 512 };
        let mut meshes = BlockVector::new(meshes, Tlsf::exact(1 << 20), NOTHING_KEPT).unwrap();
        // Mip tails are smaller than a page, and form the third level.
        let tails = Parts { below: &sparse, unit: 1, block: 1 };
        let mut tails = BlockVector::new(tails, Tlsf::exact(64), NOTHING_KEPT).unwrap();

        let mut pages: Vec<_> = (0..6).map(|_| sparse.borrow_mut().allocate(&units(1)).unwrap()).collect();
        let mesh = meshes.allocate(&units(100)).unwrap();
        let tail = tails.allocate(&units(1)).unwrap();
        assert_eq!(memory.borrow().statistics().used_units, 2 * 4 * PAGE + 512 * 256);
        let mut places: Vec<Place> = pages.iter().map(|page| page.item).chain([tail.item]).collect();
        assert!(places.iter().all(|(_, offset)| offset % PAGE == 0));
        places.push(mesh.item);
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 8, "two have the same place");
        assert_eq!(allocator.pool_statistics(pool).unwrap().allocation_count, 1);

        // A key of another level is foreign.
        let foreign = pages.pop().unwrap();
        assert_eq!(meshes.span(foreign.key()), Err(HandleError::Foreign));
        assert_eq!(memory.borrow().span(foreign.key()), Err(HandleError::Foreign));
        assert_eq!(tails.span(mesh.key()), Err(HandleError::Foreign));
        let stale = foreign.key();
        sparse.borrow_mut().free(foreign).unwrap();
        assert_eq!(sparse.borrow().span(stale), Err(HandleError::Stale));

        tails.free(tail).unwrap();
        meshes.free(mesh).unwrap();
        pages.into_iter().for_each(|page| sparse.borrow_mut().free(page).unwrap());
        assert_eq!(memory.borrow().statistics().blocks, 0, "an empty block went back through all levels");
        assert_eq!(allocator.pool_statistics(pool).unwrap().allocation_count, 0);
        memory.borrow().validate();
    });
}

/// A refusal of the lowest level is an error of the highest one, with all levels in its source chain. No level changes.
#[test]
fn a_refusal_comes_through_all_levels() {
    with_pool(1, |allocator, pool| {
        let memory: Pages<'_> = RefCell::new(
            BlockVector::new(Memory { allocator, pool }, Tlsf::exact(64 * PAGE), NOTHING_KEPT).unwrap(),
        );
        let sparse = Parts { below: &memory, unit: PAGE, block: 4 };
        let mut sparse = BlockVector::new(sparse, Buddy::new(64, 1), NOTHING_KEPT).unwrap();
        let mut all = Vec::new();
        let error = loop {
            match sparse.allocate(&units(4)) {
                Ok(pages) => all.push(pages),
                Err(error) => break error,
            }
        };
        assert_eq!(all.len(), 16, "64 pages, 4 to a block");
        assert!(
            matches!(error, VectorError::Create(VectorError::Create(AllocationError::Full { .. }))),
            "{error:?}"
        );
        assert!(error.to_string().starts_with("no block was made: no block was made: "), "{error}");
        let before = (sparse.statistics(), memory.borrow().statistics());
        assert!(sparse.allocate(&units(1)).is_err());
        assert_eq!((sparse.statistics(), memory.borrow().statistics()), before);
        sparse.validate();
        memory.borrow().validate();
        sparse.free(all.pop().unwrap()).unwrap();
        let again = sparse.allocate(&units(1)).unwrap();
        all.push(again);
        all.into_iter().for_each(|pages| sparse.free(pages).unwrap());
    });
}

/// Clearing one level makes its handles stale, and does not affect the other levels.
#[test]
fn what_was_cleared_above_is_free_below() {
    with_pool(2, |allocator, pool| {
        let memory: Pages<'_> = RefCell::new(
            BlockVector::new(Memory { allocator, pool }, Tlsf::exact(64 * PAGE), NOTHING_KEPT).unwrap(),
        );
        let sparse = Parts { below: &memory, unit: PAGE, block: 4 };
        let mut sparse = BlockVector::new(sparse, Tlsf::exact(64), NOTHING_KEPT).unwrap();
        let old: Vec<_> = (0..9).map(|_| sparse.allocate(&units(1)).unwrap()).collect();
        assert_eq!((sparse.clear(), memory.borrow().statistics().live), (9, 0));
        for page in old {
            assert_eq!(sparse.free(page).unwrap_err().reason, HandleError::Stale);
        }
        sparse.validate();
        memory.borrow().validate();
    });
}

/// Two levels above the memory, both with allocations.
type Sparse<'a, 'b> = BlockVector<Parts<'b, Memory<'a>, Tlsf>, Tlsf>;

fn sparse<'a, 'b>(memory: &'b Pages<'a>) -> Sparse<'a, 'b> {
    BlockVector::new(Parts { below: memory, unit: PAGE, block: 4 }, Tlsf::exact(64), NOTHING_KEPT).unwrap()
}

fn memory<'a>(allocator: &'a Allocator, pool: &'a Pool) -> Pages<'a> {
    RefCell::new(BlockVector::new(Memory { allocator, pool }, Tlsf::exact(64 * PAGE), NOTHING_KEPT).unwrap())
}

/// Returns count and units of the used chunks that a walk visits.
fn walked<B: Backing<M>, M: RangeMetadata>(vector: &BlockVector<B, M>) -> (u64, u64) {
    let mut sums = (0, 0);
    vector.walk(|_, chunk| {
        if chunk.used.is_some() {
            sums = (sums.0 + 1, sums.1 + chunk.size);
        }
    });
    sums
}

/// Each level counts and walks its own allocations.
#[test]
fn sums_and_walks_are_of_each_level() {
    with_pool(2, |allocator, pool| {
        let memory = memory(allocator, pool);
        let mut sparse = sparse(&memory);
        let pages: Vec<_> = (0..6).map(|_| sparse.allocate(&units(1)).unwrap()).collect();
        let behind = sparse.allocate(&units(2)).unwrap();
        let in_sum = |vector: &Sparse<'_, '_>| (vector.statistics().live, vector.statistics().used_units);
        assert_eq!((in_sum(&sparse), walked(&sparse)), ((7, 8), (7, 8)));
        let below = memory.borrow().statistics();
        assert_eq!((below.live, below.used_units), walked(&memory.borrow()));
        assert_eq!(below.used_units, sparse.statistics().units * PAGE, "a block above is a grant below");
        assert_eq!(allocator.pool_statistics(pool).unwrap().allocation_count, u64::from(below.blocks));
        pages.into_iter().chain([behind]).for_each(|pages| sparse.free(pages).unwrap());
        assert_eq!((walked(&sparse), memory.borrow().statistics().live), ((0, 0), 0));
    });
}

/// Every call rejects handles of other levels, and the handle in the error is still valid.
#[test]
fn every_call_of_every_level_finds_foreign_and_stale_handles() {
    with_pool(1, |allocator, pool| {
        let memory = memory(allocator, pool);
        let mut sparse = sparse(&memory);
        // Another vector of the same kind, whose engine has allocated the same spans.
        let mut twin =
            BlockVector::new(Parts { below: &memory, unit: PAGE, block: 4 }, Tlsf::exact(64), NOTHING_KEPT)
                .unwrap();
        let clock = Clock::new();
        let ticket = clock.open(clock.add_timeline().unwrap());
        let (page, other) = (sparse.allocate(&units(1)).unwrap(), twin.allocate(&units(1)).unwrap());
        assert_eq!(page.span(), other.span());
        for key in [other.key(), sparse.block(page.key()).unwrap().0.key()] {
            assert_eq!(sparse.span(key), Err(HandleError::Foreign));
            assert_eq!(sparse.block(key).map(drop), Err(HandleError::Foreign));
            assert_eq!(sparse.block_mut(key).map(drop), Err(HandleError::Foreign));
        }
        let refused = sparse.free(other).unwrap_err();
        assert_eq!(refused.reason, HandleError::Foreign);
        let refused = sparse.retire(ticket, refused.granted).unwrap_err();
        assert_eq!(refused.reason, HandleError::Foreign);
        twin.free(refused.granted).unwrap();
        // Clearing the level above frees its block below, whose handle becomes stale.
        let block = sparse.block(page.key()).unwrap().0.key();
        assert!(memory.borrow().span(block).is_ok());
        sparse.clear();
        assert_eq!(memory.borrow().span(block), Err(HandleError::Stale));
        assert_eq!(memory.borrow().block(block).map(drop), Err(HandleError::Stale));
        let refused = sparse.free(page).unwrap_err();
        assert_eq!(sparse.retire(ticket, refused.granted).unwrap_err().reason, HandleError::Stale);
        assert_eq!((sparse.statistics().live, memory.borrow().statistics().live), (0, 0));
        clock.discard(ticket).unwrap();
    });
}
