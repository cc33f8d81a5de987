//! The algorithm of wgpu-hal 30, reimplemented from a description, because its allocator cannot be used alone.
//!
//! It has a bucket for each combination of counts. A bucket allocates from its oldest pool with space. Pools have 64 to
//! 512 sets, doubling. Every set is freed alone. An empty pool is destroyed if a quarter of its size is free elsewhere.

use std::collections::HashMap;

use ash::vk;

use super::{LayoutCounts, PeerLayouts, SetPeer, allocate_set, counts, create_pool, destroy_pool, free_set};

const FIRST: u32 = 64;
const MOST: u32 = 512;

struct BucketPool {
    handle: vk::DescriptorPool,
    capacity: u32,
    live: u32,
}

#[derive(Default)]
struct PeerBucket {
    /// By age. A destroyed pool leaves an empty element.
    pools: Vec<Option<BucketPool>>,
    next: u32,
    free: u32,
}

pub(crate) struct Bucketed<'a> {
    layouts: &'a PeerLayouts<'a>,
    buckets: HashMap<LayoutCounts, PeerBucket>,
}

impl<'a> Bucketed<'a> {
    pub(crate) fn new(layouts: &'a PeerLayouts<'a>) -> Self {
        Self { layouts, buckets: HashMap::new() }
    }
}

pub(crate) struct BucketSet {
    handle: vk::DescriptorSet,
    counts: LayoutCounts,
    pool: usize,
}

impl SetPeer for Bucketed<'_> {
    type Set = BucketSet;

    fn allocate(&mut self, layout: usize) -> Option<BucketSet> {
        let (device, counts) = (self.layouts.gpu().device(), counts(layout));
        let bucket = self.buckets.entry(counts).or_default();
        let with_room =
            |pool: &Option<BucketPool>| pool.as_ref().is_some_and(|pool| pool.live < pool.capacity);
        let at = match bucket.pools.iter().position(with_room) {
            Some(at) => at,
            None => {
                let capacity = bucket.next.clamp(FIRST, MOST);
                let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
                let handle = create_pool(device, counts, capacity, flags)?;
                bucket.next = (capacity * 2).min(MOST);
                bucket.free += capacity;
                bucket.pools.push(Some(BucketPool { handle, capacity, live: 0 }));
                bucket.pools.len() - 1
            }
        };
        let pool = bucket.pools[at].as_mut()?;
        let handle = allocate_set(device, pool.handle, self.layouts.handle(layout))?;
        pool.live += 1;
        bucket.free -= 1;
        Some(BucketSet { handle, counts, pool: at })
    }

    fn free(&mut self, set: BucketSet) {
        let device = self.layouts.gpu().device();
        let Some(bucket) = self.buckets.get_mut(set.counts) else { return };
        let Some(pool) = bucket.pools[set.pool].as_mut() else { return };
        free_set(device, pool.handle, set.handle);
        pool.live -= 1;
        bucket.free += 1;
        if pool.live == 0 && (bucket.free - pool.capacity) * 4 >= pool.capacity {
            bucket.free -= pool.capacity;
            destroy_pool(device, pool.handle);
            bucket.pools[set.pool] = None;
            while bucket.pools.last().is_some_and(Option::is_none) {
                bucket.pools.pop();
            }
        }
    }

    fn finish(self) -> Result<(), String> {
        let mut live = 0;
        for pool in self.buckets.into_values().flat_map(|bucket| bucket.pools).flatten() {
            live += pool.live;
            destroy_pool(self.layouts.gpu().device(), pool.handle);
        }
        if live == 0 { Ok(()) } else { Err(format!("{live} sets were left")) }
    }
}
