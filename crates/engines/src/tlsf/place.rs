//! Making a free chunk used, and a used chunk free.
//!
//! The fast paths have few branches, because requests and the states of neighbours are hard to predict. They branch on
//! the rest behind a used chunk, on which neighbours are free, and on changes of a class. A link to a missing node is
//! written to slot 0, see C1 of [`Chunks`]. A chunk whose class does not change stays in its list. Each node is loaded
//! and stored once.
//!
//! The slow paths do the same step by step, and maintain the index of offsets.

use super::Tlsf;
use super::bins::{class_and_step, class_of};
use super::search::Find;
use crate::cast::{index, narrow};
use crate::chunks::{ChunkNode, Chunks, DEAD_A, NONE, TO_FREE, Vacated, named};
use crate::{Key, RegionId, Tag};

/// The free part of the `rest` behind a used chunk of `size` units, which is rounded up by at most `rounding`.
#[inline]
fn without_slack(rest: u64, size: u64, rounding: u64) -> u64 {
    if rest <= Chunks::slack_behind(rounding) { 0 } else { rest - (size.wrapping_neg() & rounding) }
}

impl Tlsf {
    /// Makes a found chunk used. It must be the first of its list, and there must be no index. Returns its key and its
    /// address. Returns `None`, and changes nothing, if slots must be created first.
    #[inline(always)]
    pub(super) fn take_fast(&mut self, find: Find, step: u64, size: u64, tag: Tag) -> Option<(Key, u64)> {
        let Self { chunks, bins, .. } = self;
        let Find { chunk, class, addr, have, gap } = find;
        let rounding = chunks.rounding(step);
        // In this order, because the first test is nearly always false.
        if gap > Chunks::slack_behind(rounding) && gap > chunks.slack_before(size, rounding) {
            return self.take_slow(find, size, tag, false);
        }
        let used_addr = addr + gap;
        let rest = have - gap - size;
        let (nodes, dead) = chunks.parts_mut();
        let mut used = chunk;
        if rest <= Chunks::slack_behind(rounding) {
            bins.pop(nodes, chunk, class);
            // The neighbours are not free: I1. So links to them have no mark.
            let &ChunkNode { prev, next, .. } = &nodes[index(chunk)];
            nodes[index(prev)].next = chunk;
            nodes[index(next)].prev = chunk;
        } else {
            // The used chunk keeps the units up to a round size, so that the freed chunk fits the next request of its
            // class.
            let rest = rest - (size.wrapping_neg() & rounding);
            used = *dead;
            let spare = nodes[index(used)].b;
            if spare == NONE {
                return None;
            }
            *dead = spare;
            let node = &mut nodes[index(chunk)];
            let prev = node.prev;
            node.addr = addr + (have - rest);
            node.size = rest;
            node.prev = used;
            let node = &mut nodes[index(used)];
            node.prev = prev;
            node.next = chunk | TO_FREE;
            nodes[index(prev)].next = used;
            // The node of the found chunk becomes the rest. If its class does not change, as with large chunks, it
            // stays in its list.
            let rest_class = class_of(rest);
            if rest_class != class {
                bins.pop(nodes, chunk, class);
                bins.insert(nodes, chunk, rest_class);
            }
        }
        Some((chunks.occupy(used, used_addr, size, tag), used_addr))
    }

    /// Merges a vacated chunk with its free neighbours, and lists the result. Requires that there is no index, and that
    /// the region has other used chunks or is the only one.
    #[inline(always)]
    pub(super) fn give_fast(&mut self, vacated: Vacated) {
        let Self { chunks, bins, .. } = self;
        let (nodes, dead) = chunks.parts_mut();
        let Vacated { chunk, prev, next } = vacated;
        // Reads the marks of the links, because the neighbours are seldom in the cache.
        let (is_before, is_behind) = (prev & TO_FREE != 0, next & TO_FREE != 0);
        let (prev, next) = (named(prev), named(next));
        let (before, behind) = (&nodes[index(prev)], &nodes[index(next)]);
        // A header's end is its region's start, and its start is the region's end.
        let end_before = before.addr.wrapping_add(before.size);
        let between = behind.addr.wrapping_sub(end_before);
        // A free neighbour grows to the merged chunk, and stays in its list if its class does not change.
        if is_before {
            let have = before.size;
            let mut now = have + between;
            let mut end = next;
            let last_dead = *dead;
            *dead = chunk;
            if is_behind {
                let more = behind.size;
                now += more;
                end = behind.next;
                bins.remove(nodes, next, class_of(more));
                let node = &mut nodes[index(next)];
                node.a = DEAD_A;
                node.b = chunk;
                *dead = next;
            }
            let node = &mut nodes[index(chunk)];
            node.a = DEAD_A;
            node.b = last_dead;
            let node = &mut nodes[index(prev)];
            node.size = now;
            node.next = end;
            nodes[index(end)].prev = prev | TO_FREE;
            bins.resize(nodes, prev, have, now);
        } else if is_behind {
            let have = behind.size;
            let now = have + between;
            let node = &mut nodes[index(chunk)];
            node.a = DEAD_A;
            node.b = *dead;
            *dead = chunk;
            let node = &mut nodes[index(next)];
            node.addr = end_before;
            node.size = now;
            node.prev = prev;
            nodes[index(prev)].next = next | TO_FREE;
            bins.resize(nodes, next, have, now);
        } else {
            nodes[index(prev)].next = chunk | TO_FREE;
            nodes[index(next)].prev = chunk | TO_FREE;
            let node = &mut nodes[index(chunk)];
            node.addr = end_before;
            node.size = between;
            bins.insert(nodes, chunk, class_of(between));
        }
    }

    /// The slow path of [`Tlsf::take_fast`]: for any chunk of a list, with an index, and if alignment leaves a free chunk
    /// before the used one. If `exact`, leaves no slack. Returns `None`, and changes nothing, if slots must be created
    /// first.
    #[inline(never)]
    pub(super) fn take_slow(&mut self, find: Find, size: u64, tag: Tag, exact: bool) -> Option<(Key, u64)> {
        let Self { chunks, bins, index, .. } = self;
        let Find { chunk, class, addr, have, gap } = find;
        let used_addr = addr + gap;
        let rounding = if exact { 0 } else { chunks.rounding(class_and_step(size).1) };
        let rest = without_slack(have - gap - size, size, rounding);
        let gap = if !exact && gap <= chunks.slack_before(size, rounding) { 0 } else { gap };
        if gap + rest == 0 {
            bins.remove(chunks.parts_mut().0, chunk, class);
            if let Some(index) = index {
                index.remove(chunks, chunk);
            }
            chunks.mark_links(chunk, 0);
            return Some((chunks.occupy(chunk, used_addr, size, tag), used_addr));
        }
        let split = chunks.split(chunk, gap, size, rest, used_addr)?;
        let (nodes, _) = chunks.parts_mut();
        let kept_class = class_of(if rest == 0 { gap } else { rest });
        bins.reclass(nodes, chunk, class, kept_class);
        if split.front != NONE {
            bins.insert(nodes, split.front, class_of(gap));
        }
        let key = chunks.occupy(split.used, used_addr, size, tag);
        if let Some(index) = index {
            index.update(chunks, chunk);
            if split.front != NONE {
                index.insert(chunks, split.front);
            }
        }
        Some((key, used_addr))
    }

    /// Merges a vacated chunk with its free neighbours, on the fast or the slow path.
    pub(super) fn give_back(&mut self, vacated: Vacated, region: RegionId) {
        let may_be_apart = self.chunks.region_count() > 1 && self.chunks.check_empty(region).is_ok();
        if self.warm_sizes == 0 || may_be_apart { self.give_slow(vacated) } else { self.give_fast(vacated) }
    }

    /// The slow path of [`Tlsf::give_fast`]: with an index, or if one of several regions becomes empty.
    #[inline(never)]
    pub(super) fn give_slow(&mut self, vacated: Vacated) {
        let Vacated { chunk, prev, next } = vacated;
        self.chunks.make_free(&vacated);
        for (neighbour, is_before) in [(named(prev), true), (named(next), false)] {
            if self.chunks.is_free(neighbour) {
                self.unlist(neighbour);
                if is_before {
                    self.chunks.absorb_prev(chunk);
                } else {
                    self.chunks.absorb_next(chunk);
                }
            }
        }
        self.list(chunk);
    }

    /// Forbids slack from now on, and makes existing slack free. Returns true if there was any. O(chunks), once.
    #[inline]
    pub fn free_slack(&mut self) -> bool {
        self.chunks.allows_slack() && self.list_slack()
    }

    #[cold]
    #[inline(never)]
    fn list_slack(&mut self) -> bool {
        let slack = self.chunks.slack_chunks();
        if !self.chunks.has_slots(narrow(slack.len())) {
            return false;
        }
        self.chunks.forbid_slack();
        for &chunk in &slack {
            let vacated = self.chunks.vacate_behind(chunk);
            self.give_slow(vacated);
        }
        !slack.is_empty()
    }
}
