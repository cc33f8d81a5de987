//! A linear pool with any number of blocks, freed all together.

use sublet::{Algorithm, AllocationCreateInfo, MemoryUsage, PoolCreateInfo};

use crate::kept::{Kept, texture};
use sublet_examples::{Random, Result, Table, bytes, count, note};

pub(crate) fn run(kept: &mut Kept<'_>) -> Result<()> {
    note(
        "Textures of a level are put one after the other, without a search, and leave together: no fragmentation.",
    );
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    // SAFETY: the create-info is valid.
    let memory_type_index =
        unsafe { kept.allocator.find_memory_type_index_for_image_info(&texture(16, 16), &auto) }?;
    let pool = kept.pool(&PoolCreateInfo {
        block_size: 8 << 20,
        algorithm: Algorithm::Linear,
        name: Some("level"),
        ..PoolCreateInfo::new(memory_type_index)
    })?;
    let mut table = Table::new(&["step", ">textures", ">allocated", ">blocks", ">in blocks"]);
    let mut show = |kept: &Kept<'_>, step: &str| -> Result<()> {
        let held = kept.allocator.pool_statistics(&kept.pools[pool])?;
        table.row([
            &step,
            &count(held.allocation_count),
            &bytes(held.allocation_bytes),
            &held.block_count,
            &bytes(held.block_bytes),
        ]);
        Ok(())
    };
    let mut random = Random::new(2);
    for (name, textures) in [("harbour", 60), ("castle", 90)] {
        let mut loaded = Vec::new();
        for _ in 0..textures {
            let side = 32 << random.within(0..5);
            let info = texture(u32::try_from(side)?, u32::try_from(side)?);
            let in_pool = AllocationCreateInfo::in_pool(&kept.pools[pool]);
            // SAFETY: the create-info is valid.
            loaded.push(unsafe { kept.allocator.create_image(&info, &in_pool) }?);
        }
        show(kept, &format!("{name} loaded"))?;
        if name == "castle" {
            kept.images.extend(loaded);
            break;
        }
        // In any order: a program that frees everything does not need the order of allocation.
        while !loaded.is_empty() {
            let (image, allocation) = loaded.swap_remove(random.index(loaded.len()));
            // SAFETY: the device never used the image.
            unsafe { kept.allocator.destroy_image(image, allocation) }?;
        }
        show(kept, &format!("{name} left"))?;
    }
    table.print();
    note(
        "  One empty block is kept for what comes next (empty_blocks_kept); the others went back to the driver.",
    );
    Ok(())
}
