//! The shadow of an engine: the used units of each region, with their allocations. It records the engine's results,
//! and panics if they are impossible.

use std::collections::BTreeMap;

use sublet_engines::{ChunkInfo, Key, RangeMetadata, RegionId, Span, Tag, Usage};

/// A live allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) key: Key,
    /// The key that the twin returned for the same request.
    pub(crate) twin_key: Key,
    pub(crate) region: RegionId,
    pub(crate) offset: u64,
    /// The granted size.
    pub(crate) size: u64,
    pub(crate) asked: u64,
    pub(crate) tag: Tag,
}

#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) capacity: u64,
    /// The live allocations, by offset.
    pub(crate) used: BTreeMap<u64, Live>,
}

impl Region {
    /// The unused ranges: offset and size, in order, none empty.
    pub(crate) fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut end = 0;
        for live in self.used.values() {
            if live.offset > end {
                gaps.push((end, live.offset - end));
            }
            end = live.offset + live.size;
        }
        if self.capacity > end {
            gaps.push((end, self.capacity - end));
        }
        gaps
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// The regions by id; `None` if one was removed.
    pub(crate) regions: Vec<Option<Region>>,
    /// Live allocations, oldest first.
    pub(crate) live: Vec<Live>,
    /// The freed keys, each with the twin's key of the same allocation.
    pub(crate) freed: Vec<(Key, Key)>,
}

impl Model {
    pub(crate) fn region(&self, id: RegionId) -> &Region {
        self.regions[id.0 as usize].as_ref().expect("the region exists")
    }

    fn region_mut(&mut self, id: RegionId) -> &mut Region {
        self.regions[id.0 as usize].as_mut().expect("the region exists")
    }

    /// The existing regions with their ids, lowest first.
    pub(crate) fn present(&self) -> impl Iterator<Item = (RegionId, &Region)> {
        let id = |(n, region): (usize, &'_ Option<Region>)| region.is_some().then_some(RegionId(n as u32));
        self.regions.iter().enumerate().filter_map(id).map(|id| (id, self.region(id)))
    }

    pub(crate) fn pick_region(&self, pick: u8) -> Option<RegionId> {
        let ids: Vec<RegionId> = self.present().map(|(id, _)| id).collect();
        ids.get(pick as usize % ids.len().max(1)).copied()
    }

    pub(crate) fn capacity(&self) -> u128 {
        self.present().map(|(_, region)| u128::from(region.capacity)).sum()
    }

    /// The id of the next region: the lowest unused one.
    pub(crate) fn next_region(&self) -> RegionId {
        let vacant = self.regions.iter().position(Option::is_none);
        RegionId(vacant.unwrap_or(self.regions.len()) as u32)
    }

    pub(crate) fn add_region(&mut self, id: RegionId, capacity: u64) {
        let region = Some(Region { capacity, used: BTreeMap::new() });
        if id.0 as usize == self.regions.len() {
            self.regions.push(region);
        } else {
            self.regions[id.0 as usize] = region;
        }
    }

    pub(crate) fn remove_region(&mut self, id: RegionId) {
        assert!(self.region(id).used.is_empty(), "{id:?} is not empty");
        self.regions[id.0 as usize] = None;
    }

    pub(crate) fn insert(&mut self, live: Live) {
        let Live { region, offset, size, asked, .. } = live;
        let Region { capacity, used } = self.region_mut(region);
        assert!(size >= asked && asked != 0, "{live:?} is less than was asked for");
        assert!(offset < *capacity && size <= *capacity - offset, "{live:?} is outside");
        if let Some((_, before)) = used.range(..=offset).next_back() {
            assert!(before.offset + before.size <= offset, "{live:?} overlaps {before:?}");
        }
        if let Some((_, behind)) = used.range(offset..).next() {
            assert!(offset + size <= behind.offset, "{live:?} overlaps {behind:?}");
        }
        used.insert(offset, live);
        let known = |other: &Key| *other == live.key;
        assert!(!self.live.iter().any(|other| known(&other.key)), "{live:?}: the key is in use");
        assert!(!self.freed.iter().any(|(key, _)| known(key)), "{live:?}: the key was in use before");
        self.live.push(live);
    }

    pub(crate) fn remove(&mut self, key: Key) -> Live {
        let at = self.live.iter().position(|live| live.key == key).expect("the key is live");
        let live = self.live.remove(at);
        self.region_mut(live.region).used.remove(&live.offset);
        self.freed.push((live.key, live.twin_key));
        live
    }

    /// The expected sums of a region.
    fn usage(region: &Region) -> Usage {
        let mut usage = Usage { capacity: region.capacity, ..Usage::default() };
        for live in region.used.values() {
            usage.used_chunks += 1;
            usage.used += live.size;
            usage.rounding += live.size - live.asked;
        }
        usage
    }

    /// Panics if the engine differs from the model: in the chunks of a region, a key, a tag or a sum.
    pub(crate) fn compare(&self, engine: &impl RangeMetadata) {
        engine.validate();
        for (id, region) in self.present() {
            assert_eq!(engine.region_usage(id), Self::usage(region), "usage of {id:?}");
            let (mut used, mut end) = (region.used.values(), 0);
            engine.walk(id, &mut |ChunkInfo { offset, size, used: is_used }| {
                assert_eq!(offset, end, "{id:?}: the chunks do not tile it");
                assert_ne!(size, 0, "{id:?}: an empty chunk at {offset}");
                end = offset + size;
                if let Some((key, tag)) = is_used {
                    let live = used.next().unwrap_or_else(|| panic!("{id:?}: {key:?} is not used"));
                    let shown = (offset, size, key, tag);
                    assert_eq!(shown, (live.offset, live.size, live.key, live.tag), "{id:?}");
                    let span = Span { region: id, offset, size };
                    assert_eq!((engine.span(key), engine.tag(key)), (Ok(span), Ok(tag)), "{key:?}");
                }
            });
            assert_eq!(end, region.capacity, "{id:?}: the chunks do not tile it");
            assert!(used.next().is_none(), "{id:?}: a used chunk is not shown");
        }
        let sum = self.present().map(|(_, region)| Self::usage(region)).sum();
        assert_eq!(engine.usage(), sum, "usage");
    }
}
