//! Chooses the next current region: an empty one when the current one is full, or the one below when the current one
//! becomes empty.

use crate::cast::{index, narrow};

/// No region: the end of a list.
const NONE: u32 = u32::MAX;

const WORD: usize = 64;

/// The open regions, by capacity. Those of one capacity form a list, the last opened first. All other regions form the
/// stack: another list, with the current region on top.
///
/// ```text
///   groups     capacity 64 MiB    128 MiB    256 MiB        open: 0b101         stack: 3 <-> 8 <-> 5, the current one
///              first        7         -          2
///                           |                    |
///   links                   4                    9
/// ```
///
/// The blocks of a vector have few capacities, and no operation depends on the number of regions.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRegions {
    /// One group for each capacity, ascending.
    groups: Vec<RegionGroup>,
    /// Bit `n` of word `w`: group `64 * w + n` has an open region.
    open: Vec<u64>,
    /// By region: its neighbours in the list of its capacity, or in the stack.
    links: Vec<RegionLink>,
}

#[derive(Clone, Copy, Debug)]
struct RegionGroup {
    capacity: u64,
    /// The first open region.
    first: u32,
    /// The number of regions with this capacity, open or not.
    regions: u32,
}

/// Links to neighbours. In the stack, `prev` is the region below.
#[derive(Clone, Copy, Debug)]
struct RegionLink {
    prev: u32,
    next: u32,
}

impl OpenRegions {
    fn group(&self, capacity: u64) -> usize {
        self.groups.partition_point(|group| group.capacity < capacity)
    }

    /// Adds a region, which is not open yet.
    pub(super) fn add(&mut self, region: u32, capacity: u64) {
        if index(region) >= self.links.len() {
            self.links.resize(index(region) + 1, RegionLink { prev: NONE, next: NONE });
        }
        let at = self.group(capacity);
        match self.groups.get_mut(at) {
            Some(group) if group.capacity == capacity => group.regions += 1,
            _ => {
                self.groups.insert(at, RegionGroup { capacity, first: NONE, regions: 1 });
                self.set_words();
            }
        }
    }

    /// Removes a region, which is not open any more.
    pub(super) fn remove(&mut self, capacity: u64) {
        let at = self.group(capacity);
        self.groups[at].regions -= 1;
        if self.groups[at].regions == 0 {
            self.groups.remove(at);
            self.set_words();
        }
    }

    /// Rebuilds the words after the number of groups changed.
    fn set_words(&mut self) {
        self.open.clear();
        self.open.resize(self.groups.len().div_ceil(WORD), 0);
        for (at, _) in self.groups.iter().enumerate().filter(|(_, group)| group.first != NONE) {
            self.open[at / WORD] |= 1 << (at % WORD);
        }
    }

    /// Opens a region that was added.
    pub(super) fn open(&mut self, region: u32, capacity: u64) {
        let at = self.group(capacity);
        let next = std::mem::replace(&mut self.groups[at].first, region);
        self.links[index(region)] = RegionLink { prev: NONE, next };
        match self.links.get_mut(index(next)) {
            Some(link) => link.prev = region,
            None => self.open[at / WORD] |= 1 << (at % WORD),
        }
    }

    /// Closes an open region.
    pub(super) fn close(&mut self, region: u32, capacity: u64) {
        let RegionLink { prev, next } = self.links[index(region)];
        if let Some(link) = self.links.get_mut(index(next)) {
            link.prev = prev;
        }
        if let Some(link) = self.links.get_mut(index(prev)) {
            link.next = next;
            return;
        }
        let at = self.group(capacity);
        self.groups[at].first = next;
        if next == NONE {
            self.open[at / WORD] &= !(1 << (at % WORD));
        }
    }

    /// Closes and returns the smallest open region with room for `size`. Among equals, takes the last opened.
    pub(super) fn take(&mut self, size: u64) -> Option<u32> {
        let at = self.group(size);
        let (mut word, bit) = (at / WORD, at % WORD);
        let mut bits = self.open.get(word)? & (u64::MAX << bit);
        while bits == 0 {
            word += 1;
            bits = *self.open.get(word)?;
        }
        let group = &mut self.groups[word * WORD + index(bits.trailing_zeros())];
        let region = group.first;
        group.first = self.links[index(region)].next;
        match self.links.get_mut(index(group.first)) {
            Some(link) => link.prev = NONE,
            // Clears the lowest bit that is set.
            None => self.open[word] ^= bits & bits.wrapping_neg(),
        }
        Some(region)
    }

    /// Pushes a region that is not open onto the stack. `below` was the top, or is [`NONE`].
    pub(super) fn push(&mut self, region: u32, below: u32) {
        self.links[index(region)] = RegionLink { prev: below, next: NONE };
        if let Some(link) = self.links.get_mut(index(below)) {
            link.next = region;
        }
    }

    /// The region below one in the stack.
    pub(super) fn below(&self, region: u32) -> Option<u32> {
        let RegionLink { prev, .. } = self.links[index(region)];
        (prev != NONE).then_some(prev)
    }

    /// Removes a region from anywhere in the stack, and opens it.
    pub(super) fn pull(&mut self, region: u32, capacity: u64) {
        let RegionLink { prev, next } = self.links[index(region)];
        if let Some(link) = self.links.get_mut(index(prev)) {
            link.next = next;
        }
        if let Some(link) = self.links.get_mut(index(next)) {
            link.prev = prev;
        }
        self.open(region, capacity);
    }

    /// The largest capacity of an open region; 0 if there is none.
    pub(super) fn greatest(&self) -> u64 {
        let word = self.open.iter().enumerate().rfind(|(_, bits)| **bits != 0);
        word.map_or(0, |(word, bits)| self.groups[word * WORD + index(bits.ilog2())].capacity)
    }

    /// Bytes of host memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<RegionGroup>()
            + self.open.capacity() * size_of::<u64>()
            + self.links.capacity() * size_of::<RegionLink>()
    }

    /// Asserts L7 and L8 of the engine. `regions` are all added regions, with their capacities and whether they must be
    /// open.
    pub(super) fn validate(&self, regions: impl Iterator<Item = (u32, u64, bool)> + Clone) {
        let mut words = self.clone();
        words.set_words();
        assert_eq!(self.open, words.open, "L8: the words of bits");
        let mut listed = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            assert!(at == 0 || self.groups[at - 1].capacity < group.capacity, "L8: groups do not ascend");
            let regions = regions.clone().filter(|&(_, capacity, _)| capacity == group.capacity).count();
            assert!(regions != 0, "L8: a group of no region");
            assert_eq!(group.regions, narrow(regions), "L8: regions with {}", group.capacity);
            let (mut before, mut region) = (NONE, group.first);
            while region != NONE {
                assert_eq!(
                    self.links[index(region)].prev,
                    before,
                    "L8: the link backwards of region {region}"
                );
                listed.push((region, group.capacity, true));
                assert!(listed.len() <= self.links.len(), "L8: a list goes round");
                before = region;
                region = self.links[index(region)].next;
            }
        }
        listed.sort_unstable();
        let open: Vec<_> = regions.filter(|&(.., open)| open).collect();
        assert_eq!(listed, open, "L7: the open regions");
    }

    /// Asserts L10 of the engine: the stack under `top` consists of these regions, given in ascending order.
    pub(super) fn validate_stack(&self, top: u32, regions: impl Iterator<Item = u32>) {
        let (mut stack, mut above, mut region) = (Vec::new(), NONE, top);
        while let Some(&RegionLink { prev, next }) = self.links.get(index(region)) {
            assert_eq!(next, above, "L10: the link upwards of region {region}");
            stack.push(region);
            assert!(stack.len() <= self.links.len(), "L10: the stack goes round");
            (above, region) = (region, prev);
        }
        stack.sort_unstable();
        assert_eq!(stack, Vec::from_iter(regions), "L10: the stack");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regions from 0 on with these capacities, opened in this order.
    fn opened(capacities: &[u64]) -> OpenRegions {
        let mut opened = OpenRegions::default();
        for (region, &capacity) in (0..).zip(capacities) {
            opened.add(region, capacity);
            opened.open(region, capacity);
        }
        opened.validate((0..).zip(capacities).map(|(region, &capacity)| (region, capacity, true)));
        opened
    }

    #[test]
    fn takes_the_smallest_and_of_these_the_last() {
        let capacities = [3, 8, 5, 8, 1, 5];
        let mut opened = opened(&capacities);
        let validate = |opened: &OpenRegions, open: &[u32]| {
            let regions = (0..).zip(capacities);
            opened.validate(regions.map(|(region, capacity)| (region, capacity, open.contains(&region))));
        };
        assert_eq!((opened.take(9), opened.take(u64::MAX)), (None, None));
        assert_eq!(opened.take(4), Some(5));
        validate(&opened, &[0, 1, 2, 3, 4]);
        assert_eq!(opened.take(4), Some(2));
        assert_eq!(opened.take(4), Some(3), "there is no 5 any more");
        validate(&opened, &[0, 1, 4]);
        assert_eq!((opened.take(1), opened.take(1)), (Some(4), Some(0)));
        opened.open(2, 5);
        opened.open(5, 5);
        opened.open(3, 8);
        validate(&opened, &[1, 2, 3, 5]);
        // Closes regions at the end, in the middle and at the start of a list.
        opened.open(0, 3);
        opened.close(2, 5);
        opened.close(3, 8);
        opened.close(0, 3);
        validate(&opened, &[1, 5]);
        assert_eq!((opened.take(1), opened.greatest()), (Some(5), 8));
        assert_eq!((opened.take(8), opened.take(1), opened.greatest()), (Some(1), None, 0));
    }

    #[test]
    fn a_capacity_that_no_region_has_is_forgotten() {
        let mut opened = opened(&[3, 8, 8]);
        for region in [1, 2] {
            assert_eq!(opened.groups.len(), 2);
            opened.close(region, 8);
            opened.remove(8);
        }
        assert_eq!(opened.groups.len(), 1);
        opened.validate(std::iter::once((0, 3, true)));
        assert_eq!((opened.take(4), opened.greatest()), (None, 3));
    }

    #[test]
    fn more_capacities_than_bits_in_a_word() {
        let capacities: Vec<u64> = (1..=200).rev().collect();
        let mut opened = opened(&capacities);
        for size in 1..=200 {
            assert_eq!(opened.clone().take(size).map(|region| capacities[index(region)]), Some(size));
        }
        // Only 20, 64, 65 and 128 are left.
        for (region, &capacity) in (0..).zip(&capacities) {
            if ![20, 64, 65, 128].contains(&capacity) {
                opened.close(region, capacity);
            }
        }
        for (size, found) in [(1, 20), (20, 20), (21, 64), (64, 64), (65, 65), (66, 128), (128, 128)] {
            assert_eq!(opened.clone().take(size).map(|region| capacities[index(region)]), Some(found));
        }
        assert_eq!((opened.take(129), opened.greatest()), (None, 128));
    }
}
