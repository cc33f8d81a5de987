//! Defragmentation: moves buffers and images on the device until whole blocks are empty and freed.
//!
//! `cargo run --example defragment`

use std::process::ExitCode;

use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateInfo,
    DefragmentationInfo, MemoryUsage, Move, MoveError, Statistics,
};
use sublet_examples::{
    Context, Random, Resource, Result, Table, buffer_info, bytes, checksum, heading, image_info, note,
};

/// Bytes of each resource, and the side of an image in texels.
const SIZE: u64 = 64 << 10;
const SIDE: u32 = 128;

fn main() -> ExitCode {
    sublet_examples::run(defragment)
}

/// A resource, its memory, and the checksum of its bytes.
type Live = (Resource, Allocation, u64);

fn defragment(context: &Context) -> Result<()> {
    // Small blocks, so that a few megabytes fill several of them.
    let info = AllocatorCreateInfo { preferred_large_heap_block_size: 2 << 20, ..context.allocator_info() };
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&info) }?;
    // Records all requests to the file in `SUBLET_TRACE`, if it is set.
    sublet::trace::start_from_environment(&allocator)?;
    // A buffer for host access. Dedicated memory is in no block, and never moves.
    let window_info = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_RANDOM | Flags::DEDICATED_MEMORY,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    // SAFETY: the create-info is valid.
    let (buffer, mut window_memory) = unsafe { allocator.create_buffer(&buffer_info(SIZE), &window_info) }?;
    let window = Resource::Buffer { buffer, size: SIZE };

    let mut random = Random::new(1);
    let mut live: Vec<Live> = Vec::new();
    for number in 0..400 {
        let data = random.bytes(usize::try_from(SIZE)?);
        allocator.copy_to_allocation(&data, &mut window_memory, 0)?;
        let (resource, allocation) = create(&allocator, number % 3 == 0)?;
        context.submit(|device, commands| window.copy_to(resource, device, commands))?;
        live.push((resource, allocation, checksum(&data)));
    }
    // Frees three of four, at random places.
    for _ in 0..300 {
        let (resource, allocation, _) = live.swap_remove(random.index(live.len()));
        resource.destroy(context);
        // SAFETY: everything bound to it is destroyed.
        unsafe { allocator.free_memory(allocation) }?;
    }
    let before = all(&allocator);

    // At most a megabyte per pass, because a frame has other copies too.
    let info = DefragmentationInfo { max_bytes_per_pass: 1 << 20, ..Default::default() };
    let mut defragmentation = allocator.begin_defragmentation(&info)?;
    let mut passes = 0;
    while let Some(pass) = defragmentation.begin_pass() {
        passes += 1;
        move_all(context, pass, &mut live)?;
    }
    let done = defragmentation.end();

    let after = all(&allocator);
    let mut table = Table::new(&["", ">blocks", ">bytes of them", ">allocated"]);
    for (when, all) in [("before", before), ("after", after)] {
        table.row([&when, &all.block_count, &bytes(all.block_bytes), &bytes(all.allocation_bytes)]);
    }
    heading("Blocks");
    table.print();
    let (moves, moved) = (done.allocations_moved, bytes(done.bytes_moved));
    note(&format!("{moves} moves of {moved} in {passes} passes; {} blocks went back.", done.blocks_freed));

    for (resource, allocation, sum) in live {
        context.submit(|device, commands| resource.copy_to(window, device, commands))?;
        let mut data = vec![0; usize::try_from(SIZE)?];
        allocator.copy_from_allocation(&window_memory, 0, &mut data)?;
        if checksum(&data) != sum {
            return Err("bytes were lost".into());
        }
        resource.destroy(context);
        // SAFETY: everything bound to it is destroyed.
        unsafe { allocator.free_memory(allocation) }?;
    }
    note("Every byte is what it was.");
    window.destroy(context);
    // SAFETY: everything bound to it is destroyed.
    unsafe { allocator.free_memory(window_memory) }?;
    if done.bytes_freed == 0 { Err("nothing was gained".into()) } else { Ok(()) }
}

fn create(allocator: &Allocator, is_image: bool) -> Result<(Resource, Allocation)> {
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    if is_image {
        // SAFETY: the create-info is valid.
        let (image, allocation) = unsafe { allocator.create_image(&image_info(SIDE), &auto) }?;
        return Ok((Resource::Image { image, side: SIDE }, allocation));
    }
    // SAFETY: the create-info is valid.
    let (buffer, allocation) = unsafe { allocator.create_buffer(&buffer_info(SIZE), &auto) }?;
    Ok((Resource::Buffer { buffer, size: SIZE }, allocation))
}

/// Makes the moves of a pass: new resources, one submission with all copies, then the destruction of the old ones.
fn move_all<'p>(context: &Context, pass: impl Iterator<Item = Move<'p>>, live: &mut [Live]) -> Result<()> {
    let mut moves = Vec::new();
    for moved in pass {
        let at = live.iter().position(|(_, allocation, _)| allocation.id() == moved.source());
        let at = at.ok_or("a move of something unknown")?;
        let new = match live[at].0 {
            Resource::Buffer { size, .. } => {
                // SAFETY: the create-info is that of the buffer's creation.
                Resource::Buffer { buffer: unsafe { moved.create_buffer(&buffer_info(size)) }?, size }
            }
            Resource::Image { side, .. } => {
                // SAFETY: the create-info is that of the image's creation.
                Resource::Image { image: unsafe { moved.create_image(&image_info(side)) }?, side }
            }
        };
        moves.push((at, moved, new));
    }
    context.submit(|device, commands| {
        moves.iter().for_each(|&(at, _, new)| live[at].0.copy_to(new, device, commands));
    })?;
    for (at, moved, new) in moves {
        std::mem::replace(&mut live[at].0, new).destroy(context);
        // SAFETY: the device has completed the copy, and everything bound to the old place is destroyed.
        unsafe { moved.complete(&mut live[at].1) }.map_err(MoveError::from)?;
    }
    Ok(())
}

fn all(allocator: &Allocator) -> Statistics {
    let mut all = Statistics::default();
    allocator.memory_type_statistics().iter().for_each(|one| all.add(one));
    all
}
