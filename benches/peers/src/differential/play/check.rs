//! Checks after every step, and at the end.

use super::{ComparisonTally, LARGEST_BLOCK, ProgramPlayer};
use crate::differential::memory::{MemoryOwner, SideBlock, SideMemory};
use crate::differential::side::{HeapFigures, Side};

impl ProgramPlayer<'_> {
    /// Checks the invariants after every step.
    pub(super) fn check(&mut self) -> Result<(), String> {
        let messages = self.sublet.tap().messages();
        if !messages.is_empty() {
            return Err(format!("the driver complains of Sublet: {}", messages.join("; ")));
        }
        let messages = self.vma.tap().messages();
        for _ in &messages {
            self.tally.count("complaints of the driver about VMA");
        }
        let (vma, sublet) = (self.vma.heaps(), self.sublet.heaps());
        let profile = self.setup.profile;
        for (heap, (vma, sublet)) in vma.iter().zip(&sublet).enumerate() {
            let is_here = |block: &SideBlock| profile.types[block.memory_type as usize].heap == heap as u32;
            let (vma_bytes, sublet_bytes) =
                (self.vma_memory.bytes(is_here), self.sublet_memory.bytes(is_here));
            let text = || format!("heap {heap}: VMA {vma:?}, Sublet {sublet:?}");
            if sublet.block_bytes != sublet_bytes || vma.block_bytes != vma_bytes {
                return Err(format!("counted wrongly, {vma_bytes} and {sublet_bytes}: {}", text()));
            }
            if vma.allocations != sublet.allocations || vma.budget != sublet.budget {
                return Err(format!("other figures: {}", text()));
            }
            if vma_bytes == sublet_bytes {
                if vma.usage != sublet.usage {
                    return Err(format!("another usage: {}", text()));
                }
                self.tally.count("heap budgets compared in full");
            }
            // If VMA's blocks are larger than the heap, it has only dedicated allocations.
            if self.setup.large_block <= LARGEST_BLOCK {
                self.tally.reserved.0 += u128::from(vma_bytes);
                self.tally.reserved.1 += u128::from(sublet_bytes);
            }
            let used = self.sublet_memory.bytes(|block| is_here(block) && !block.is_empty());
            if used > vma_bytes {
                // Without a difference both hold the same memory.
                let Some(cause) = self.cause else { return Err(format!("more reserved: {}", text())) };
                *self.tally.more.entry(cause).or_default() += 1;
            } else if sublet_bytes > vma_bytes {
                self.tally.count("more reserved, in empty blocks");
            }
            self.tally.count("reserved bytes compared");
        }
        for slot in 0..self.pools.len() {
            if self.pools[slot].is_some() {
                let (vma, sublet) = (self.vma.pool_figures(slot), self.sublet.pool_figures(slot));
                let blocks = |memory: &SideMemory| {
                    let own = memory.blocks.values().filter(|block| block.owner == MemoryOwner::Pool(slot));
                    own.fold((0, 0), |(count, bytes), block| (count + 1, bytes + block.size))
                };
                let own = self.live.iter().filter(|live| live.pool == Some(slot)).count() as u64;
                // VMA does not count allocations in the second half of a linear block.
                let linear = self.pools[slot].is_some_and(|spec| spec.linear);
                if (sublet.blocks, sublet.block_bytes) != blocks(&self.sublet_memory)
                    || sublet.allocations != own
                    || vma.allocations != own && !linear
                {
                    return Err(format!("pool {slot}: VMA {vma:?}, Sublet {sublet:?}"));
                }
            }
        }
        self.sublet.validate();
        Ok(())
    }

    /// Frees everything, and checks that nothing is left.
    pub(super) fn end(mut self) -> Result<ComparisonTally, String> {
        let mut found = Ok(());
        while let Some(at) = self.live.len().checked_sub(1) {
            found = found.and(self.free(at));
        }
        let live = self.sublet.heaps().iter().map(|heap: &HeapFigures| heap.allocations).sum::<u64>();
        if live != 0 {
            found = found.and(Err(format!("{live} allocations are left")));
        }
        // Frees allocations that an interrupted step left.
        for slot in 0..self.slots {
            self.vma.free(slot);
            self.sublet.free(slot);
        }
        for slot in 0..self.pools.len() {
            if self.pools[slot].take().is_some() {
                self.vma.destroy_pool(slot);
                self.sublet.destroy_pool(slot);
            }
        }
        drop(self.vma.finish());
        let messages = self.sublet.finish();
        if !messages.is_empty() {
            found = found.and(Err(format!("in the end: {}", messages.join("; "))));
        }
        found.map(|()| self.tally)
    }
}
