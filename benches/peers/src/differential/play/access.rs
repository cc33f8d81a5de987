//! Host access to allocations: mapping, flushing and invalidating.

use ash::vk;
use sublet::sim::SyncedRange;

use super::{LivePair, MOST_FLUSHED, ProgramPlayer, pick, share};
use crate::differential::differences::Difference;
use crate::differential::memory::SideMemory;
use crate::differential::side::{FailedOperation, Placement, Side, Why};

impl ProgramPlayer<'_> {
    pub(super) fn map(&mut self, at: u64) -> Result<(), String> {
        let Some(at) = pick(&self.live, at) else { return Ok(()) };
        let LivePair { slot, sublet, host_access, pool, .. } = self.live[at];
        let flags = self.setup.profile.types[sublet.memory_type as usize].flags;
        let visible = flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
        if !visible || !host_access && pool.is_none() {
            let answer = self.sublet.map(slot);
            let fits = matches!(
                answer,
                Err(FailedOperation { why: Why::Other("not host-visible" | "no host access"), .. })
            );
            if !fits {
                return Err(format!("memory that cannot be mapped: {answer:?}"));
            }
            self.tally.differ(Difference::HostAccess);
            return Ok(());
        }
        if !host_access && cfg!(debug_assertions) {
            return Ok(());
        }
        let (memory_type, size) = (sublet.memory_type, sublet.size);
        let (vma, sublet) = (self.vma.map(slot), self.sublet.map(slot));
        let is_above_limit = size > self.setup.profile.limits.max_memory_allocation_size;
        if let (true, Err(vma), Err(sublet)) = (is_above_limit, &vma, &sublet) {
            if vma.result == sublet.result {
                return Ok(());
            }
        }
        if vma.is_err() && sublet.is_ok() && self.setup.has_large_blocks(memory_type) {
            // A driver that gives VMA a block above the limit may fail to map it.
            self.sublet.unmap(slot);
            self.tally.differ(Difference::LargeBlocks);
            return Ok(());
        }
        if vma.is_err() || sublet.is_err() {
            return Err(format!("mapping: VMA {vma:?}, Sublet {sublet:?}"));
        }
        self.live[at].maps += 1;
        self.tally.count("mappings compared");
        self.same_pointers(at)
    }

    pub(super) fn same_pointers(&self, at: usize) -> Result<(), String> {
        let slot = self.live[at].slot;
        let (vma, sublet) = (self.vma.place(slot), self.sublet.place(slot));
        if vma.mapped == sublet.mapped {
            Ok(())
        } else {
            Err(format!("mapped: VMA {vma:?}, Sublet {sublet:?}"))
        }
    }

    pub(super) fn unmap(&mut self, at: u64) -> Result<(), String> {
        let mapped: Vec<_> = (0..self.live.len()).filter(|at| self.live[*at].maps != 0).collect();
        let Some(at) = pick(&mapped, at).map(|at| mapped[at]) else { return Ok(()) };
        let slot = self.live[at].slot;
        self.vma.unmap(slot);
        self.sublet.unmap(slot);
        self.live[at].maps -= 1;
        self.same_pointers(at)
    }

    pub(super) fn flush(&mut self, at: u64, from: u64, size: u64, invalidate: bool) -> Result<(), String> {
        let Some(at) = pick(&self.live, at) else { return Ok(()) };
        let live = self.live[at];
        let flags = self.setup.profile.types[live.sublet.memory_type as usize].flags;
        let flushes = flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
            && !flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        let offset = share(live.sublet.size, from);
        let rest = live.sublet.size - offset;
        let size = if size == 256 { vk::WHOLE_SIZE } else { share(rest, size) };
        // The simulated driver copies flushed ranges, so their size is limited.
        let size = if rest > MOST_FLUSHED { size.min(MOST_FLUSHED) } else { size };
        let mut is_mapped = self.sublet.place(live.slot).mapped;
        let mappable = flushes && (live.host_access || live.pool.is_some() && !cfg!(debug_assertions));
        let maps = !is_mapped && mappable && from % 2 == 0;
        if maps {
            let (vma, sublet) = (self.vma.map(live.slot), self.sublet.map(live.slot));
            if vma.is_err() || sublet.is_err() {
                return Err(format!("mapping: VMA {vma:?}, Sublet {sublet:?}"));
            }
            is_mapped = true;
        }
        if flushes && !is_mapped && size != 0 && rest != 0 {
            // A neighbour or an earlier user may have mapped the block.
            let answer = self.sublet.make_visible(live.slot, offset, size, invalidate);
            self.sublet.tap().take();
            if let Err(FailedOperation { why, .. }) = answer {
                if why != Why::Other("not mapped") {
                    return Err(format!("flushing what is not mapped: {answer:?}"));
                }
            }
            self.tally.differ(Difference::NotMapped);
            return Ok(());
        }
        let vma = self.vma.make_visible(live.slot, offset, size, invalidate);
        let sublet = self.sublet.make_visible(live.slot, offset, size, invalidate);
        let (vma_log, sublet_log) = (self.vma.tap().take(), self.sublet.tap().take());
        let text =
            || format!("{offset} {size} VMA {vma:?} {vma_log:?}; Sublet {sublet:?} {sublet_log:?}; {live:?}");
        if vma.is_ok() != sublet.is_ok() || vma_log.ranges.len() != sublet_log.ranges.len() {
            return Err(format!("flushed otherwise: {}", text()));
        }
        for (vma, sublet) in vma_log.ranges.iter().zip(&sublet_log.ranges) {
            let relative = |range: &SyncedRange, place: &Placement| {
                (range.offset as i128 - i128::from(place.offset), range.is_flush)
            };
            let end = |range: &SyncedRange, place: &Placement| {
                (u128::from(range.offset) + u128::from(range.size)).wrapping_sub(u128::from(place.offset))
            };
            let (vma_end, sublet_end) = (end(vma, &live.vma), end(sublet, &live.sublet));
            let at_end = |place: &Placement, range: &SyncedRange, memory: &SideMemory| {
                memory.blocks.get(&place.memory).is_some_and(|block| block.size == range.offset + range.size)
            };
            let clamped =
                at_end(&live.vma, vma, &self.vma_memory) || at_end(&live.sublet, sublet, &self.sublet_memory);
            if relative(vma, &live.vma) != relative(sublet, &live.sublet) || vma_end != sublet_end && !clamped
            {
                return Err(format!("another range: {}", text()));
            }
            self.tally.count("flushed ranges compared");
        }
        if maps {
            self.vma.unmap(live.slot);
            self.sublet.unmap(live.slot);
        }
        Ok(())
    }
}
