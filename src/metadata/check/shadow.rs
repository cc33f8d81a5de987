//! A simple model of the used units of all regions.

use std::collections::BTreeMap;

use crate::metadata::{Chunk, Key, RangeMetadata, RegionId, Span, Tag, Usage};

/// A used chunk in a [`Shadow`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShadowChunk {
    /// The engine's key.
    pub key: Key,
    /// Its span, as granted.
    pub span: Span,
    /// The requested units.
    pub asked: u64,
    /// Its tag, limited to the bits that engines keep.
    pub tag: Tag,
}

/// A region: used chunks by offset.
#[derive(Clone, Debug)]
struct Region {
    capacity: u64,
    used: BTreeMap<u64, ShadowChunk>,
}

/// A model of an engine of ranges. It records the engine's answers, and panics on impossible ones.
///
/// ```
/// use sublet::metadata::{check::*, *};
/// let (mut engine, mut shadow) = (Tlsf::exact(64), Shadow::default());
/// let region = engine.add_region(&64).unwrap();
/// shadow.add_region(region, 64);
/// let (key, span) = engine.allocate(&Request::new(10, Alignment::ONE)).unwrap();
/// shadow.insert(ShadowChunk { key, span, asked: 10, tag: Tag(0) });
/// shadow.compare(&engine);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    regions: BTreeMap<RegionId, Region>,
}

impl Shadow {
    fn region(&mut self, region: RegionId) -> &mut Region {
        self.regions.get_mut(&region).unwrap_or_else(|| panic!("there is no {region:?}"))
    }

    /// Records that a region was added.
    ///
    /// # Panics
    /// Panics if it exists already.
    pub fn add_region(&mut self, region: RegionId, capacity: u64) {
        let before = self.regions.insert(region, Region { capacity, used: BTreeMap::new() });
        assert!(before.is_none(), "there is a {region:?} already");
    }

    /// Records that a region was removed.
    ///
    /// # Panics
    /// Panics if it does not exist, or is not empty.
    pub fn remove_region(&mut self, region: RegionId) {
        let gone = self.regions.remove(&region);
        assert!(gone.is_some_and(|gone| gone.used.is_empty()), "{region:?} is not there, or not empty");
    }

    /// Records a grant.
    ///
    /// # Panics
    /// Panics if it is not inside a region, or not free.
    pub fn insert(&mut self, chunk: ShadowChunk) {
        let Span { region, offset, size } = chunk.span;
        let Region { capacity, used } = self.region(region);
        assert!(size >= chunk.asked && chunk.asked != 0, "{chunk:?} is less than was asked for");
        assert!(offset < *capacity && size <= *capacity - offset, "{chunk:?} is outside");
        if let Some((_, before)) = used.range(..=offset).next_back() {
            assert!(before.span.offset + before.span.size <= offset, "{chunk:?} overlaps {before:?}");
        }
        if let Some((_, behind)) = used.range(offset..).next() {
            assert!(offset + size <= behind.span.offset, "{chunk:?} overlaps {behind:?}");
        }
        used.insert(offset, chunk);
    }

    /// Records that a key was freed.
    ///
    /// # Panics
    /// Panics if there is no such key.
    pub fn remove(&mut self, key: Key) -> ShadowChunk {
        let mut chunks = self.regions.values().flat_map(|region| region.used.values());
        let chunk = *chunks.find(|chunk| chunk.key == key).unwrap_or_else(|| panic!("{key:?} is not live"));
        self.region(chunk.span.region).used.remove(&chunk.span.offset);
        chunk
    }

    /// Records that a region was reset, and returns its chunks.
    ///
    /// # Panics
    /// Panics if there is no such region.
    pub fn reset(&mut self, region: RegionId) -> Vec<ShadowChunk> {
        std::mem::take(&mut self.region(region).used).into_values().collect()
    }

    /// The used chunks of a region, in the order of their offsets.
    ///
    /// # Panics
    /// Panics if there is no such region.
    pub fn chunks(&self, region: RegionId) -> impl Iterator<Item = &ShadowChunk> {
        self.regions.get(&region).unwrap_or_else(|| panic!("there is no {region:?}")).used.values()
    }

    /// The expected sums of a region.
    ///
    /// # Panics
    /// Panics if there is no such region.
    #[must_use]
    pub fn region_usage(&self, region: RegionId) -> Usage {
        let Some(Region { capacity, .. }) = self.regions.get(&region) else {
            panic!("there is no {region:?}")
        };
        let mut usage = Usage { capacity: *capacity, ..Usage::default() };
        for chunk in self.chunks(region) {
            usage.used_chunks += 1;
            usage.used += chunk.span.size;
            usage.rounding += chunk.span.size - chunk.asked;
        }
        usage
    }

    /// The expected sums of all regions.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.regions.keys().map(|&region| self.region_usage(region)).sum()
    }

    /// Compares the engine with the model: chunks that cover their region, keys, tags, sums.
    ///
    /// # Panics
    /// Panics with the difference.
    pub fn compare(&self, engine: &impl RangeMetadata) {
        engine.validate();
        for &region in self.regions.keys() {
            let usage = self.region_usage(region);
            assert_eq!(engine.region_usage(region), usage, "usage of {region:?}");
            let (mut used, mut end) = (self.chunks(region), 0);
            engine.walk(region, &mut |Chunk { offset, size, used: is_used }| {
                assert_eq!(offset, end, "{region:?}: the chunks do not tile it");
                assert_ne!(size, 0, "{region:?}: an empty chunk at {offset}");
                end = offset + size;
                if let Some((key, tag)) = is_used {
                    let chunk = used.next().unwrap_or_else(|| panic!("{region:?}: {key:?} is not used"));
                    let shown = (Span { region, offset, size }, key, tag);
                    assert_eq!(shown, (chunk.span, chunk.key, chunk.tag), "{region:?}");
                    assert_eq!((engine.span(key), engine.tag(key)), (Ok(chunk.span), Ok(tag)), "{key:?}");
                }
            });
            assert_eq!(end, usage.capacity, "{region:?}: the chunks do not tile it");
            assert!(used.next().is_none(), "{region:?}: a used chunk is not shown");
        }
        assert_eq!(engine.usage(), self.usage(), "usage");
    }
}
