//! A linear pool as a stack: the end of a scope frees its allocations.

use ash::vk;
use sublet::{Algorithm, Allocation, AllocationCreateInfo, MemoryUsage, PoolCreateInfo};

use crate::kept::Kept;
use sublet_examples::{Result, bytes, note};

pub(crate) fn run(kept: &mut Kept<'_>) -> Result<()> {
    note("Scopes nest, and each frees what it took, last first: the next one starts at the same offset.");
    let device = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let memory_type_index = kept.allocator.find_memory_type_index(u32::MAX, &device)?;
    let pool = kept.pool(&PoolCreateInfo {
        block_size: 2 << 20,
        max_block_count: 1,
        algorithm: Algorithm::Linear,
        name: Some("scopes"),
        ..PoolCreateInfo::new(memory_type_index)
    })?;
    let mut frame = Scope::enter(kept, pool, "frame", 0);
    frame.take(96 << 10)?;
    for pass in ["shadow pass", "lighting pass", "post-processing"] {
        let mut scope = Scope::enter(kept, pool, pass, 1);
        scope.take(256 << 10)?;
        let mut inner = Scope::enter(kept, pool, "temporaries", 2);
        inner.take(512 << 10)?;
        inner.take(128 << 10)?;
        inner.leave()?;
        scope.take(64 << 10)?;
        scope.leave()?;
    }
    frame.take(32 << 10)?;
    let left = frame.taken;
    kept.memory.extend(left);
    Ok(())
}

/// The allocations of one scope.
struct Scope<'a, 'b> {
    kept: &'a Kept<'b>,
    pool: usize,
    name: &'static str,
    depth: usize,
    taken: Vec<Allocation>,
}

impl<'a, 'b> Scope<'a, 'b> {
    fn enter(kept: &'a Kept<'b>, pool: usize, name: &'static str, depth: usize) -> Self {
        Self { kept, pool, name, depth, taken: Vec::new() }
    }

    fn take(&mut self, size: u64) -> Result<()> {
        let requirements = vk::MemoryRequirements { size, alignment: 256, memory_type_bits: u32::MAX };
        let info = AllocationCreateInfo::in_pool(&self.kept.pools[self.pool]);
        let allocation = self.kept.allocator.allocate_memory(&requirements, &info)?;
        let name = format!("{:indent$}{}", "", self.name, indent = self.depth * 4);
        let offset = allocation.offset();
        note(&format!("  {name:<24}{:>8} at {:>8}", bytes(size), bytes(offset)));
        self.taken.push(allocation);
        Ok(())
    }

    fn leave(mut self) -> Result<()> {
        while let Some(top) = self.taken.pop() {
            // SAFETY: nothing was ever bound to it.
            unsafe { self.kept.allocator.free_memory(top) }?;
        }
        Ok(())
    }
}
