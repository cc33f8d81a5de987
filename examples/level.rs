//! A lifetime scope: all memory of a level, of any memory type, is freed at once when the level ends.
//!
//! `cargo run --example level`

use std::process::ExitCode;

use ash::vk;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, Allocator, MemoryUsage, Scope, ScopeCreateInfo};
use sublet_examples::{Context, Random, Result, Table, bytes, count, heading, note};

fn main() -> ExitCode {
    sublet_examples::run(levels)
}

/// The handles that the program has to destroy. The scope frees their memory.
#[derive(Default)]
struct Handles {
    buffers: Vec<vk::Buffer>,
    images: Vec<vk::Image>,
}

fn levels(context: &Context) -> Result<()> {
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    // Records all requests to the file in `SUBLET_TRACE`, if it is set.
    sublet::trace::start_from_environment(&allocator)?;
    let mut random = Random::new(3);

    heading("Three levels, one after the other");
    let mut table = Table::new(&["level", ">allocations", ">bytes", ">blocks", ">left after it"]);
    for (name, things) in [("harbour", 300), ("castle", 800), ("desert", 200)] {
        let level = allocator.create_scope(&ScopeCreateInfo { name: Some(name), ..Default::default() })?;
        let mut handles = Handles::default();
        for _ in 0..things {
            load(&allocator, &level, &mut random, &mut handles)?;
        }
        // A program would play the level here, then wait for the device.
        destroy(context, handles);
        // SAFETY: the device never used the memory, and everything bound to it is destroyed.
        let freed = unsafe { allocator.free_scope(level) }?;
        table.row([
            &name,
            &count(freed.allocation_count),
            &bytes(freed.allocation_bytes),
            &freed.block_count,
            &bytes(allocator.statistics().block_bytes),
        ]);
    }
    table.print();

    heading("What is left of a level is refused");
    let level = allocator.create_scope(&ScopeCreateInfo::default())?;
    let requirements = vk::MemoryRequirements { size: 65_536, alignment: 256, memory_type_bits: !0 };
    let forgotten = allocator.allocate_memory(&requirements, &AllocationCreateInfo::in_scope(&level))?;
    // SAFETY: nothing was ever bound to it.
    unsafe { allocator.free_scope(level) }?;
    match allocator.allocation_info(&forgotten) {
        Err(error) => note(&error.to_string()),
        Ok(info) => return Err(format!("that is not memory any more: {info:?}").into()),
    }
    let leaks = allocator.destroy();
    note(&format!("Allocations that nobody freed: {}.", leaks.len()));
    Ok(())
}

/// Loads a mesh, a texture or an upload buffer. Each gets the best memory type, all in one scope.
fn load(allocator: &Allocator, level: &Scope, random: &mut Random, handles: &mut Handles) -> Result<()> {
    let in_level = AllocationCreateInfo { usage: MemoryUsage::Auto, ..AllocationCreateInfo::in_scope(level) };
    match random.index(3) {
        0 => {
            let side = 16_u32 << random.index(5);
            let info = vk::ImageCreateInfo::default()
                .image_type(vk::ImageType::TYPE_2D)
                .format(vk::Format::R8G8B8A8_UNORM)
                .extent(vk::Extent3D { width: side, height: side, depth: 1 })
                .mip_levels(1)
                .array_layers(1)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST);
            // The allocation is dropped here, because the scope frees it.
            // SAFETY: the create-info is valid.
            let (image, _) = unsafe { allocator.create_image(&info, &in_level) }?;
            handles.images.push(image);
        }
        kind => {
            let upload = AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED;
            let (usage, flags) = match kind {
                1 => (vk::BufferUsageFlags::VERTEX_BUFFER, AllocationCreateFlags::empty()),
                _ => (vk::BufferUsageFlags::TRANSFER_SRC, upload),
            };
            let info = vk::BufferCreateInfo::default().size(random.within(1..257) << 10).usage(usage);
            // SAFETY: the create-info is valid.
            let (buffer, _) =
                unsafe { allocator.create_buffer(&info, &AllocationCreateInfo { flags, ..in_level }) }?;
            handles.buffers.push(buffer);
        }
    }
    Ok(())
}

fn destroy(context: &Context, handles: Handles) {
    for buffer in handles.buffers {
        // SAFETY: the device never used it.
        unsafe { context.device().destroy_buffer(buffer, None) };
    }
    for image in handles.images {
        // SAFETY: the device never used it.
        unsafe { context.device().destroy_image(image, None) };
    }
}
