//! Streams textures under a budget, while a compactor moves resources and frees blocks.
//!
//! `cargo run -p sublet-shader-examples --example streams`
//!
//! With `-- --compare`, it also compares its pictures with those of a run without a compactor.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Arc;

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage};
use sublet_frame::track::Subresources;
use sublet_frame::{
    CommandList, Compactor, CompactorCreateInfo, CompactorStatistics, Frames, FramesCreateInfo, Image,
    ImageData, QueueInfo, ReadBack,
};

use sublet_examples::{Arguments, Context, Random, Result, frame_features, image_info, note};

const FRAMES: u32 = 400;
/// Side length of a texture in texels, and of the part that a picture shows.
const SIDE: u32 = 64;
const SHOWN: u32 = 16;
/// Textures in a row of a picture, and in a picture.
const ROW: u32 = 8;
const MOST: usize = 64;
/// The budgets in bytes of a level with many visible textures, and of one with few.
const BUDGETS: [usize; 2] = [MOST * TEXTURE, MOST / 6 * TEXTURE];
const TEXTURE: usize = 4 * 64 * 64;
const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;

fn main() -> ExitCode {
    const HELP: &str = "
  --compare         compare every picture with the one without a compactor";
    let compare = |arguments: &mut Arguments| Ok(arguments.flag("--compare"));
    sublet_examples::run_with(HELP, compare, textures)
}

fn textures(context: &Context, compare: bool) -> Result<()> {
    let with = stream(context, true)?;
    let CompactorStatistics { moves, bytes_moved, blocks_freed, .. } = with.compaction;
    note(&format!(
        "{} pictures of textures under a budget; {moves} moves ({bytes_moved} bytes), {blocks_freed} blocks freed.",
        with.pictures.len()
    ));
    if compare {
        let without = stream(context, false)?;
        if with.pictures != without.pictures {
            return Err("a picture is another one than without a compactor".into());
        }
        let (reserved, before) = (with.reserved, without.reserved);
        note(&format!(
            "All equal those without a compactor, byte by byte: {reserved} bytes of blocks, {before} without it."
        ));
    }
    Ok(())
}

/// The results of a run.
struct Streamed {
    pictures: Vec<Vec<u8>>,
    /// Bytes of blocks at the end.
    reserved: u64,
    compaction: CompactorStatistics,
}

fn part(x: u32, y: u32) -> (vk::ImageSubresourceLayers, vk::Offset3D) {
    let layers = vk::ImageSubresourceLayers { aspect_mask: COLOR, layer_count: 1, ..Default::default() };
    let signed = |texels| i32::try_from(texels).unwrap_or(0);
    (layers, vk::Offset3D { x: signed(x), y: signed(y), z: 0 })
}

/// Draws a corner of each texture.
fn draw(list: &mut CommandList, picture: &Image, textures: &[Image]) -> Result<ReadBack> {
    let black = vk::ClearColorValue { float32: [0.0; 4] };
    // SAFETY: the format can be cleared.
    unsafe { list.clear_color(picture, &Subresources::ALL, black) }?;
    for (at, texture) in (0..).zip(textures) {
        let (dst_subresource, dst_offset) = part(at % ROW * SHOWN, at / ROW * SHOWN);
        let (src_subresource, src_offset) = part(0, 0);
        let extent = vk::Extent3D { width: SHOWN, height: SHOWN, depth: 1 };
        let region = vk::ImageCopy { src_subresource, src_offset, dst_subresource, dst_offset, extent };
        // SAFETY: the region is within both, and the formats are the same.
        unsafe { list.copy_image(texture, picture, &[region]) }?;
    }
    Ok(list.read_image(picture, 0, 0..1, COLOR)?)
}

/// Streams textures, with or without a compactor.
fn stream(context: &Context, compacts: bool) -> Result<Streamed> {
    // Small blocks, so that a few megabytes need several of them.
    let info = AllocatorCreateInfo { preferred_large_heap_block_size: 256 << 10, ..context.allocator_info() };
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = Arc::new(unsafe { Allocator::new(&info) }?);
    let queues = [QueueInfo { queue: context.queue(), family: context.queue_family_index() }];
    let (instance, device, physical) = (context.instance(), context.device(), context.physical_device());
    let info = FramesCreateInfo {
        features: frame_features(context),
        ..FramesCreateInfo::new(instance, device, physical, context.api_version(), &allocator, &queues)
    };
    // SAFETY: all handles belong to the context's device, which has these features, and outlive the frames.
    let mut frames = unsafe { Frames::new(&info) }?;
    let mut compactor = Compactor::new(CompactorCreateInfo {
        max_bytes_per_frame: 256 << 10,
        start_bytes: 128 << 10,
        ..CompactorCreateInfo::new(frames.queue(0))
    });
    let image = |frames: &Frames, side| {
        // SAFETY: the create-info is valid.
        unsafe { frames.create_image(&image_info(side), &AllocationCreateInfo::new(MemoryUsage::Auto)) }
    };
    let picture = image(&frames, ROW * SHOWN)?;
    picture.pin(true);
    let mut random = Random::new(3);
    let mut textures: Vec<Image> = Vec::new();
    let (mut reads, mut pictures) = (VecDeque::<ReadBack>::new(), Vec::new());
    for frame in 0..FRAMES {
        frames.begin()?;
        if compacts {
            compactor.step(&frames)?;
        }
        let budget = BUDGETS[usize::try_from(frame / 100 % 2)?];
        while textures.len() * TEXTURE > budget {
            textures.swap_remove(random.index(textures.len()));
        }
        let mut list = frames.list(frames.queue(0))?;
        // A level with few visible textures rarely loads new ones.
        if budget == BUDGETS[0] || frame % 20 == 0 {
            if (textures.len() + 1) * TEXTURE > budget {
                textures.swap_remove(random.index(textures.len()));
            }
            let texture = image(&frames, SIDE)?;
            list.upload_image(&texture, &[ImageData::new(0, 0, &random.bytes(TEXTURE))])?;
            textures.push(texture);
        }
        if frame % 10 == 9 {
            reads.push_back(draw(&mut list, &picture, &textures)?);
        }
        frames.submit(frames.queue(0), [list])?;
        frames.end();
        if reads.front().is_some_and(ReadBack::is_ready) {
            pictures.extend(reads.pop_front().map(|read| read.bytes()).transpose()?);
        }
    }
    frames.wait_idle()?;
    for read in reads.drain(..) {
        pictures.push(read.bytes()?);
    }
    let types = allocator.memory_type_statistics();
    let reserved = types.iter().map(|one| one.block_bytes).sum();
    Ok(Streamed { pictures, reserved, compaction: compactor.statistics() })
}
