//! An engine with custom placement: a [`Divider`] chooses the place in a region, and the ledger provides the rest of
//! [`Metadata`].
//!
//! Invariants:
//! - L1: the chunks of a region are in the order of their offsets, inside of it and apart.
//! - L2: each chunk has a name, and each live name a chunk. The others are in `vacant`, once each.
//! - L3: the sums of a region are those of its chunks, and those of the engine are the sums of the regions.

#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;

use super::{
    AllocateError, BadKey, Chunk, Freed, Key, Metadata, NotEmpty, RegionError, RegionId, Request, Span, Tag,
    Usage, first_generation,
};
use crate::base::cast::{index, widen};

/// Chooses where in a region a request goes: the custom part of an engine. [`Ledger`] makes an engine of it.
///
/// ```
/// use std::ops::Range;
/// use sublet::metadata::*;
///
/// One request behind the other, until all of them have ended.
/// #[derive(Debug)]
/// struct Bump;
///
/// impl Divider for Bump {
///     /// Units, where the next one begins, and how many have not ended.
///     type Region = (u64, u64, u32);
///
///     fn region(&self, capacity: u64) -> Result<Self::Region, RegionError> {
///         Ok((capacity, 0, 0))
///     }
///     fn take(&self, (capacity, next, live): &mut Self::Region, request: &Request) -> Option<Range<u64>> {
///         let start = request.alignment.align_up(*next)?;
///         let end = start.checked_add(request.size).filter(|end| end <= capacity)?;
///         (*next, *live) = (end, *live + 1);
///         Some(start..end)
///     }
///     fn give_back(&self, (_, next, live): &mut Self::Region, _: Range<u64>) {
///         *live -= 1;
///         if *live == 0 {
///             *next = 0;
///         }
///     }
/// }
/// check::ranges(|| Ledger::new(Bump), &[1, 100], 2);
/// ```
pub trait Divider: fmt::Debug {
    /// The state of one region.
    type Region: fmt::Debug;

    /// Creates a free region of `capacity` units, which is not zero.
    ///
    /// # Errors
    /// [`RegionError`] if it supports no region of that size.
    fn region(&self, capacity: u64) -> Result<Self::Region, RegionError>;

    /// Takes aligned, free units for a request, at least as many as requested. Returns `None`, and changes nothing, if
    /// the region has none.
    fn take(&self, region: &mut Self::Region, request: &Request) -> Option<Range<u64>>;

    /// Makes taken units free again.
    fn give_back(&self, region: &mut Self::Region, units: Range<u64>);
}

/// A used chunk.
#[derive(Clone, Copy, Debug)]
struct Used {
    offset: u64,
    size: u64,
    rounding: u64,
    tag: Tag,
    name: u32,
}

/// The target of a key.
#[derive(Clone, Copy, Debug)]
struct Name {
    generation: u32,
    live: bool,
    region: RegionId,
    offset: u64,
}

#[derive(Clone, Debug)]
struct Region<R> {
    own: R,
    chunks: Vec<Used>,
    usage: Usage,
    sealed: bool,
}

/// An engine made of a [`Divider`]. It maintains keys, tags, sums and closed regions, and shows the chunks.
///
/// # Complexity
/// Allocating asks the divider region by region, the lowest first. Allocating and freeing also take a step for each
/// chunk of the region, and adding a region is O(regions). Suitable for few regions of some hundred chunks; the
/// library's own engines are O(1).
///
/// # Panics
/// Panics if the divider returns units that are not in the region, or fewer than requested.
///
/// ```
/// # use std::ops::Range;
/// use sublet::metadata::*;
/// Regions that are granted whole.
/// #[derive(Debug)]
/// struct Whole;
///
/// impl Divider for Whole {
///     /// Its units, while it is free.
///     type Region = Option<u64>;
///
///     fn region(&self, capacity: u64) -> Result<Option<u64>, RegionError> {
///         Ok(Some(capacity))
///     }
///     fn take(&self, region: &mut Option<u64>, request: &Request) -> Option<Range<u64>> {
///         Some(0..region.take_if(|units| *units >= request.size)?)
///     }
///     fn give_back(&self, region: &mut Option<u64>, units: Range<u64>) {
///         *region = Some(units.end);
///     }
/// }
/// let mut engine = Ledger::new(Whole);
/// engine.add_region(&64)?;
/// let (key, span) = engine.allocate(&Request::new(10, Alignment::ONE)).unwrap();
/// assert_eq!((span.size, engine.usage().rounding), (64, 54));
/// assert!(engine.free(key).unwrap().region_empty && engine.free(key).is_err());
/// # Ok::<(), RegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ledger<D: Divider> {
    divider: D,
    regions: Vec<Option<Region<D::Region>>>,
    names: Vec<Name>,
    vacant: Vec<u32>,
    generation: u32,
    usage: Usage,
}

impl<D: Divider> Ledger<D> {
    /// Creates an engine without regions.
    #[must_use]
    pub fn new(divider: D) -> Self {
        Self {
            divider,
            regions: Vec::new(),
            names: Vec::new(),
            vacant: Vec::new(),
            generation: first_generation(),
            usage: Usage::default(),
        }
    }

    fn region(&self, region: RegionId) -> &Region<D::Region> {
        let slot = self.regions.get(index(region.0)).and_then(Option::as_ref);
        slot.unwrap_or_else(|| panic!("there is no region {}", region.0))
    }

    fn region_mut(&mut self, region: RegionId) -> &mut Region<D::Region> {
        let slot = self.regions.get_mut(index(region.0)).and_then(Option::as_mut);
        slot.unwrap_or_else(|| panic!("there is no region {}", region.0))
    }

    /// Adds one to the name, so that no key is zero.
    fn key(&self, name: u32) -> Key {
        let generation = u64::from(self.names[index(name)].generation);
        Key(NonZeroU64::new((generation << 32) | (u64::from(name) + 1)).unwrap_or(NonZeroU64::MIN))
    }

    /// The region of a live key, and the index of its chunk.
    fn find(&self, key: Key) -> Result<(RegionId, usize), BadKey> {
        let name = (key.0.get() & u64::from(u32::MAX)).checked_sub(1).ok_or(BadKey)?;
        let name = self.names.get(usize::try_from(name).map_err(|_| BadKey)?).ok_or(BadKey)?;
        if !name.live || u64::from(name.generation) != key.0.get() >> 32 {
            return Err(BadKey);
        }
        let chunks = &self.region(name.region).chunks;
        let at = chunks.binary_search_by_key(&name.offset, |chunk| chunk.offset).map_err(|_| BadKey)?;
        Ok((name.region, at))
    }

    fn used(&self, key: Key) -> Result<(RegionId, &Used), BadKey> {
        let (region, at) = self.find(key)?;
        Ok((region, &self.region(region).chunks[at]))
    }

    /// Frees a chunk of a region.
    fn take_back(&mut self, region: RegionId, at: usize) -> Freed {
        let slot = self.regions[index(region.0)].as_mut().expect("L2: a chunk has a region");
        let Used { offset, size, rounding, name, .. } = slot.chunks.remove(at);
        self.divider.give_back(&mut slot.own, offset..offset + size);
        for usage in [&mut slot.usage, &mut self.usage] {
            usage.used_chunks -= 1;
            usage.used -= size;
            usage.rounding -= rounding;
        }
        self.names[index(name)].live = false;
        self.vacant.push(name);
        Freed { span: Span { region, offset, size }, region_empty: slot.chunks.is_empty() }
    }
}

impl<D: Divider> Metadata for Ledger<D> {
    type Capacity = u64;
    type Request = Request;
    type Span = Span;
    type Chunk = Chunk;

    fn add_region(&mut self, &capacity: &u64) -> Result<RegionId, RegionError> {
        if capacity == 0 {
            return Err(RegionError::Capacity { capacity, max: u64::MAX });
        }
        let all = self.usage.capacity.checked_add(capacity).ok_or(RegionError::TooMany)?;
        let at = self.regions.iter().position(Option::is_none).unwrap_or(self.regions.len());
        let id = RegionId(u32::try_from(at).map_err(|_| RegionError::TooMany)?);
        let own = self.divider.region(capacity)?;
        if at == self.regions.len() {
            self.regions.push(None);
        }
        let usage = Usage { capacity, ..Usage::default() };
        self.regions[at] = Some(Region { own, chunks: Vec::new(), usage, sealed: false });
        self.usage.capacity = all;
        Ok(id)
    }

    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        let slot = self.region(region);
        if !slot.chunks.is_empty() {
            return Err(NotEmpty);
        }
        self.usage.capacity -= slot.usage.capacity;
        self.regions[index(region.0)] = None;
        Ok(())
    }

    fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        if request.upper {
            return Err(AllocateError::UpperUnsupported);
        }
        let is_new = self.vacant.is_empty();
        let name = self.vacant.last().copied().or_else(|| u32::try_from(self.names.len()).ok());
        // The last number is invalid: a key contains the number plus one.
        let name = name.filter(|&name| name != u32::MAX).ok_or(AllocateError::NoSpace)?;
        let open = (0..).zip(&mut self.regions).filter_map(|(id, slot)| Some((id, slot.as_mut()?)));
        let found = open.filter(|(_, slot)| !slot.sealed).find_map(|(id, slot)| {
            let units = self.divider.take(&mut slot.own, request)?;
            Some((RegionId(id), slot, units))
        });
        let (region, slot, Range { start: offset, end }) = found.ok_or(AllocateError::NoSpace)?;
        let size = end.checked_sub(offset).filter(|&size| size >= request.size && size != 0);
        let size = size.filter(|_| end <= slot.usage.capacity);
        let size = size.unwrap_or_else(|| panic!("L1: {offset}..{end} of {region:?} for {request:?}"));
        let rounding = size - request.size;
        let at = slot.chunks.partition_point(|chunk| chunk.offset < offset);
        slot.chunks.insert(at, Used { offset, size, rounding, tag: Tag(request.tag.0 & Tag::MASK), name });
        for usage in [&mut slot.usage, &mut self.usage] {
            usage.used_chunks += 1;
            usage.used += size;
            usage.rounding += rounding;
        }
        self.generation = self.generation.wrapping_add(1);
        let named = Name { generation: self.generation, live: true, region, offset };
        if is_new {
            self.names.push(named);
        } else {
            self.vacant.pop();
            self.names[index(name)] = named;
        }
        Ok((self.key(name), Span { region, offset, size }))
    }

    fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
        let (region, at) = self.find(key)?;
        Ok(self.take_back(region, at))
    }

    fn reset(&mut self, region: RegionId) {
        self.region_mut(region).sealed = false;
        while let Some(last) = self.region(region).chunks.len().checked_sub(1) {
            self.take_back(region, last);
        }
    }

    fn seal(&mut self, region: RegionId) -> bool {
        self.region_mut(region).sealed = true;
        true
    }

    fn span(&self, key: Key) -> Result<Span, BadKey> {
        let (region, &Used { offset, size, .. }) = self.used(key)?;
        Ok(Span { region, offset, size })
    }

    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        Ok(self.used(key)?.1.tag)
    }

    fn region_usage(&self, region: RegionId) -> Usage {
        self.region(region).usage
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    /// The longest free range, of which the divider may grant less. O(n).
    fn largest_free(&self) -> u64 {
        let mut largest = 0;
        for (id, slot) in (0..).zip(&self.regions) {
            if slot.as_ref().is_some_and(|slot| !slot.sealed) {
                self.walk(RegionId(id), &mut |chunk| {
                    if chunk.used.is_none() {
                        largest = largest.max(chunk.size);
                    }
                });
            }
        }
        largest
    }

    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Chunk)) {
        let slot = self.region(region);
        let mut end = 0;
        let free = |end: u64, offset: u64, visit: &mut dyn FnMut(Chunk)| {
            if end < offset {
                visit(Chunk { offset: end, size: offset - end, used: None });
            }
        };
        for &Used { offset, size, tag, name, .. } in &slot.chunks {
            free(end, offset, visit);
            visit(Chunk { offset, size, used: Some((self.key(name), tag)) });
            end = offset + size;
        }
        free(end, slot.usage.capacity, visit);
    }

    fn validate(&self) {
        let mut sum = Usage::default();
        for (id, slot) in (0..).zip(&self.regions) {
            let Some(slot) = slot else { continue };
            let (mut end, mut usage) = (0, Usage { capacity: slot.usage.capacity, ..Usage::default() });
            for used in &slot.chunks {
                assert!(end <= used.offset, "L1: {used:?} overlaps the chunk before it");
                let name = self.names[index(used.name)];
                assert!(
                    name.live && name.region == RegionId(id) && name.offset == used.offset,
                    "L2: {used:?}"
                );
                end = used.offset + used.size;
                usage.used_chunks += 1;
                usage.used += used.size;
                usage.rounding += used.rounding;
            }
            assert!(end <= usage.capacity, "L1: region {id}");
            assert_eq!(usage, slot.usage, "L3: region {id}");
            sum = [sum, usage].into_iter().sum();
        }
        assert_eq!(sum, self.usage, "L3");
        let mut vacant = self.vacant.clone();
        vacant.sort_unstable();
        vacant.dedup();
        assert!(vacant.iter().all(|&name| !self.names[index(name)].live), "L2: a vacant name is live");
        assert_eq!(widen(vacant.len()) + sum.used_chunks, widen(self.names.len()), "L2");
        assert_eq!(vacant.len(), self.vacant.len(), "L2: a name is vacant twice");
    }
}
