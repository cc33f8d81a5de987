//! Random programs of lists, compared byte by byte with a model on the host.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, DefragmentationAlgorithm};
use sublet_descriptors::BindPoint;
use sublet_frame::track::Subresources;
use sublet_frame::{
    Attachment, Buffer, CommandList, Compactor, CompactorCreateInfo, Frames, Image, ImageData, MovedResource,
    ReadBack, RenderingInfo, Resolve, StorageAccess, ViewInfo,
};

use crate::make::{auto, buffer, image, image_info};
use crate::paint::Painter;

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;
const BYTES: u64 = 512;
const MIPS: u32 = 3;
const LAYERS: u32 = 2;
/// Width and height of the first mip in texels.
pub(crate) const SIZE: u32 = 8;
/// The queues below support everything; the others support compute and copies.
const DRAWING: usize = 2;

/// A buffer, or a subresource of an image.
type ByteLocation = (usize, usize);

/// The effect of a command, applied at submission.
enum Effect {
    Write {
        to: ByteLocation,
        at: usize,
        bytes: Vec<u8>,
    },
    Copy {
        from: ByteLocation,
        from_at: usize,
        to: ByteLocation,
        at: usize,
        len: usize,
    },
    /// Copies the rows of a subresource in reverse order.
    Flip {
        from: ByteLocation,
        to: ByteLocation,
        row: usize,
    },
    /// Fills all texels with a color computed from three words.
    Paint {
        words: [(ByteLocation, usize); 3],
        to: ByteLocation,
    },
    Read {
        from: ByteLocation,
        at: usize,
        len: usize,
        read: ReadBack,
    },
}

struct Model {
    /// The first rows are buffers, the others images.
    bytes: Vec<Vec<Vec<u8>>>,
    expected: VecDeque<(ReadBack, Vec<u8>)>,
}

impl Model {
    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Write { to, at, bytes } => {
                self.bytes[to.0][to.1][at..at + bytes.len()].copy_from_slice(&bytes);
            }
            Effect::Copy { from, from_at, to, at, len } => {
                let bytes = self.bytes[from.0][from.1][from_at..from_at + len].to_vec();
                self.bytes[to.0][to.1][at..at + len].copy_from_slice(&bytes);
            }
            Effect::Flip { from, to, row } => {
                let rows = self.bytes[from.0][from.1].chunks(row).rev();
                self.bytes[to.0][to.1] = rows.collect::<Vec<_>>().concat();
            }
            Effect::Paint { words, to } => {
                let word = |(from, at): (ByteLocation, usize)| {
                    u32::from_le_bytes(self.bytes[from.0][from.1][at..at + 4].try_into().unwrap())
                };
                let color = words.into_iter().map(word).fold(0, |all, word| all ^ word).to_le_bytes();
                self.bytes[to.0][to.1].chunks_mut(4).for_each(|texel| texel.copy_from_slice(&color));
            }
            Effect::Read { from, at, len, read } => {
                self.expected.push_back((read, self.bytes[from.0][from.1][at..at + len].to_vec()));
            }
        }
    }
}

struct World {
    buffers: Vec<Buffer>,
    images: Vec<Image>,
    /// A multisampled image with the size of the first mip of the others.
    several: Image,
    /// Indices and indirect commands for draws.
    drawn: Buffer,
}

fn mip_bytes(mip: u32) -> usize {
    let side = (SIZE >> mip).max(1) as usize;
    side * side * 4
}

fn subresource(mip: u32, layer: u32) -> usize {
    (mip * LAYERS + layer) as usize
}

fn clear_value(color: [u8; 4]) -> vk::ClearValue {
    vk::ClearValue { color: vk::ClearColorValue { float32: color.map(|byte| f32::from(byte) / 255.0) } }
}

fn layers_of(mip: u32, layer: u32) -> vk::ImageSubresourceLayers {
    vk::ImageSubresourceLayers { aspect_mask: COLOR, mip_level: mip, base_array_layer: layer, layer_count: 1 }
}

/// Draws over the first mip of a layer of an image, once or twice.
fn draws(
    list: &mut CommandList,
    world: &World,
    painter: &Painter,
    (i, layer): (usize, u32),
    random: &mut fastrand::Rng,
) -> Effect {
    const POINT: BindPoint = BindPoint::Graphics;
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let by_indices = random.bool();
    match random.u32(0..3) {
        0 => list.update_buffer(&world.drawn, 0, &words(&[0x0001_0000, 2])).unwrap(),
        1 => list.update_buffer(&world.drawn, 16, &words(&[3, 1, 0, 0, 0])).unwrap(),
        _ => {}
    }
    let picture = &world.images[i];
    let other = world.images.len() - 1 - i;
    unsafe { list.bind_pipeline(POINT, painter.pipeline, &painter.layout) }.unwrap();
    let attachment = if random.bool() { Attachment::clear(picture) } else { Attachment::load(picture) };
    let colors = [Some(Attachment { layer, ..attachment })];
    let info = RenderingInfo::new(picture.extent(0), &colors, None);
    list.set_viewport(info.area).unwrap();
    unsafe { list.begin_rendering(&info) }.unwrap();
    let mut words = [((0, 0), 0); 3];
    for _ in 0..random.u32(1..3) {
        let (b, c) = (random.usize(0..world.buffers.len()), random.usize(0..world.buffers.len()));
        let (mip, layer) = (random.u32(0..MIPS), random.u32(0..LAYERS));
        let (at, from) = (random.u64(0..BYTES / 64) * 64, random.u64(0..BYTES / 4 - 4) * 4);
        let mut instance = random.u32(0..4);
        list.bind_buffer(POINT, (0, 0, 0), &world.buffers[b], at..at + 4, StorageAccess::Read).unwrap();
        let view = ViewInfo {
            view_type: vk::ImageViewType::TYPE_2D,
            format: vk::Format::R8G8B8A8_UNORM,
            part: Subresources::ALL.mips(mip..mip + 1).layers(layer..layer + 1),
        };
        let (none, read) = (vk::Sampler::null(), StorageAccess::Read);
        let sampled = &world.images[other];
        unsafe { list.bind_image(POINT, (0, 1, 0), sampled, Some(&view), none, read) }.unwrap();
        list.bind_vertex_buffer(0, &world.buffers[c], from).unwrap();
        list.bind_index_buffer(&world.drawn, 0, false).unwrap();
        let indirect = random.bool();
        if indirect {
            // A first instance requires a feature.
            instance = 0;
        }
        match (indirect, by_indices) {
            (false, false) => unsafe { list.draw(0..3, instance..instance + 1) },
            (false, true) => unsafe { list.draw_indexed(0..3, 0, instance..instance + 1) },
            (true, false) => unsafe { list.draw_indirect(&world.drawn, 16, 1, 0) },
            (true, true) => unsafe { list.draw_indexed_indirect(&world.drawn, 16, 1, 0) },
        }
        .unwrap();
        let texel = (world.buffers.len() + other, subresource(mip, layer));
        words = [((b, 0), at as usize), ((c, 0), from as usize + instance as usize * 4), (texel, 0)];
    }
    list.end_rendering().unwrap();
    Effect::Paint { words, to: (world.buffers.len() + i, subresource(0, layer)) }
}

/// Records one command, and returns its effect. Draws require a painter.
fn command(
    list: &mut CommandList,
    world: &World,
    (can_draw, painter): (bool, Option<&Painter>),
    random: &mut fastrand::Rng,
) -> Effect {
    let (b, i) = (random.usize(0..world.buffers.len()), random.usize(0..world.images.len()));
    let (one, picture) = (&world.buffers[b], &world.images[i]);
    let (mip, layer) = (random.u32(0..MIPS), random.u32(0..LAYERS));
    let texels = (world.buffers.len() + i, subresource(mip, layer));
    let (size, extent) = (mip_bytes(mip), picture.extent(mip));
    let start = random.u64(0..BYTES / 4) * 4;
    let end = random.u64(start / 4 + 1..=BYTES / 4) * 4;
    let (at, len) = (start as usize, (end - start) as usize);
    let fresh: Vec<u8> = (0..len.max(size)).map(|_| random.u8(..)).collect();
    match random.u32(0..14) {
        0 => {
            let value = random.u32(..);
            list.fill_buffer(one, start..end, value).unwrap();
            Effect::Write { to: (b, 0), at, bytes: value.to_le_bytes().repeat(len / 4) }
        }
        1 => {
            list.update_buffer(one, start, &fresh[..len]).unwrap();
            Effect::Write { to: (b, 0), at, bytes: fresh[..len].to_vec() }
        }
        2 => {
            list.upload(one, start, &fresh[..len]).unwrap();
            Effect::Write { to: (b, 0), at, bytes: fresh[..len].to_vec() }
        }
        3 => {
            let other = random.usize(0..world.buffers.len());
            let from_at = random.u64(0..=BYTES - (end - start));
            let meets = other == b && from_at < end && start < from_at + (end - start);
            let region = vk::BufferCopy { src_offset: from_at, dst_offset: start, size: end - start };
            let copied = list.copy_buffer(&world.buffers[other], one, &[region]);
            assert_eq!(copied.is_err(), meets);
            let len = if meets { 0 } else { len };
            Effect::Copy { from: (other, 0), from_at: from_at as usize, to: (b, 0), at, len }
        }
        4 => {
            list.upload_image(picture, &[ImageData::new(mip, layer, &fresh[..size])]).unwrap();
            Effect::Write { to: texels, at: 0, bytes: fresh[..size].to_vec() }
        }
        5 => {
            let read = list.read_image(picture, mip, layer..layer + 1, COLOR).unwrap();
            Effect::Read { from: texels, at: 0, len: size, read }
        }
        6 => {
            let read = list.read_buffer(one, start..end).unwrap();
            Effect::Read { from: (b, 0), at, len, read }
        }
        7 => {
            let region = vk::BufferImageCopy {
                image_subresource: layers_of(mip, layer),
                image_extent: extent,
                ..Default::default()
            };
            if random.bool() {
                unsafe { list.copy_image_to_buffer(picture, one, &[region]) }.unwrap();
                Effect::Copy { from: texels, from_at: 0, to: (b, 0), at: 0, len: size }
            } else {
                unsafe { list.copy_buffer_to_image(one, picture, &[region]) }.unwrap();
                Effect::Copy { from: (b, 0), from_at: 0, to: texels, at: 0, len: size }
            }
        }
        8 => {
            let other = random.usize(0..world.images.len());
            let other_layer = random.u32(0..LAYERS);
            if other == i && other_layer == layer {
                return Effect::Write { to: texels, at: 0, bytes: Vec::new() };
            }
            let region = vk::ImageCopy {
                src_subresource: layers_of(mip, other_layer),
                dst_subresource: layers_of(mip, layer),
                extent,
                ..Default::default()
            };
            unsafe { list.copy_image(&world.images[other], picture, &[region]) }.unwrap();
            let from = (world.buffers.len() + other, subresource(mip, other_layer));
            Effect::Copy { from, from_at: 0, to: texels, at: 0, len: size }
        }
        9 => {
            // Blits and resolves require a graphics queue.
            let other = random.usize(0..world.images.len());
            let other_layer = random.u32(0..LAYERS);
            if !can_draw || (other == i && other_layer == layer) {
                return Effect::Write { to: texels, at: 0, bytes: Vec::new() };
            }
            let side = (SIZE >> mip) as i32;
            let corners = |top, bottom| {
                [vk::Offset3D { x: 0, y: top, z: 0 }, vk::Offset3D { x: side, y: bottom, z: 1 }]
            };
            let region = vk::ImageBlit {
                src_subresource: layers_of(mip, other_layer),
                src_offsets: corners(0, side),
                dst_subresource: layers_of(mip, layer),
                dst_offsets: corners(side, 0),
            };
            let filter = vk::Filter::NEAREST;
            unsafe { list.blit_image(&world.images[other], picture, &[region], filter) }.unwrap();
            let from = (world.buffers.len() + other, subresource(mip, other_layer));
            Effect::Flip { from, to: texels, row: side as usize * 4 }
        }
        10 if can_draw => {
            let color = random.u32(..).to_le_bytes();
            let float32 = color.map(|byte| f32::from(byte) / 255.0);
            let value = vk::ClearColorValue { float32 };
            unsafe { list.clear_color(&world.several, &Subresources::ALL, value) }.unwrap();
            let region = vk::ImageResolve {
                src_subresource: layers_of(0, 0),
                dst_subresource: layers_of(0, layer),
                extent: picture.extent(0),
                ..Default::default()
            };
            unsafe { list.resolve_image(&world.several, picture, &[region]) }.unwrap();
            let to = (world.buffers.len() + i, subresource(0, layer));
            Effect::Write { to, at: 0, bytes: color.repeat(mip_bytes(0) / 4) }
        }
        11 if can_draw => {
            // Two attachments, one of which is resolved. Half of the time, only a part of the other is rendered.
            let color = random.u32(..).to_le_bytes();
            let clear = clear_value(color);
            let resolve = Some(Resolve::new(picture));
            let several = Attachment { clear, resolve, ..Attachment::clear(&world.several) };
            let one = Attachment { mip, layer, clear, ..Attachment::clear(picture) };
            // llvmpipe of Mesa 22.3.6 always resolves to mip 0 of layer 0.
            let resolves = mip == 0 && layer == 0 && random.bool();
            let rows = if resolves || random.bool() { extent.height } else { extent.height.div_ceil(2) };
            let colors = [Some(if resolves { several } else { one })];
            let info = RenderingInfo::new(vk::Extent3D { height: rows, ..extent }, &colors, None);
            let bytes = color.repeat((extent.width * rows) as usize);
            unsafe { list.begin_rendering(&info) }.unwrap();
            list.end_rendering().unwrap();
            Effect::Write { to: texels, at: 0, bytes }
        }
        12 if can_draw && painter.is_some() => draws(list, world, painter.unwrap(), (i, layer), random),
        _ => {
            let color = random.u32(..).to_le_bytes();
            let part = Subresources::ALL.mips(mip..mip + 1).layers(layer..layer + 1);
            let float32 = color.map(|byte| f32::from(byte) / 255.0);
            unsafe { list.clear_color(picture, &part, vk::ClearColorValue { float32 }) }.unwrap();
            Effect::Write { to: texels, at: 0, bytes: color.repeat(size / 4) }
        }
    }
}

/// Creates a buffer whose first use may be a read.
fn written_by_host(frames: &Frames) -> Buffer {
    let usage = vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST
        | vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::UNIFORM_BUFFER
        | vk::BufferUsageFlags::VERTEX_BUFFER
        | vk::BufferUsageFlags::INDIRECT_BUFFER;
    let info = vk::BufferCreateInfo::default().size(BYTES).usage(usage);
    let access = AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED;
    let memory = AllocationCreateInfo { flags: access, ..auto() };
    let made = unsafe { frames.create_buffer(&info, &memory) }.unwrap();
    made.write(0, &[0; BYTES as usize]).unwrap();
    made
}

/// Creates a compactor that moves everything it can, whenever requested.
fn compactor(frames: &Frames, queue: usize, reported: &Arc<AtomicU64>) -> Compactor {
    let info = CompactorCreateInfo {
        algorithm: DefragmentationAlgorithm::Full,
        max_moves_per_frame: 3,
        start_bytes: 0,
        start_heap_usage: 0.0,
        ..CompactorCreateInfo::new(frames.queue(queue))
    };
    let mut compactor = Compactor::new(info);
    let reported = Arc::clone(reported);
    compactor.subscribe(move |moved| {
        match moved.resource {
            MovedResource::Buffer { buffer, old } => assert_ne!(buffer.handle(), old),
            MovedResource::Image { image, old, .. } => assert_ne!(image.handle(), old),
            _ => unreachable!(),
        }
        reported.fetch_add(1, Ordering::Relaxed);
    });
    compactor
}

/// Runs a random program on `queues` queues with interleaved compaction, on one of them or on the given queue. Returns
/// the number of moved resources.
pub(crate) fn program(
    frames: &mut Frames,
    queues: usize,
    copies: Option<usize>,
    painter: Option<&Painter>,
    seed: u64,
) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    // The number of polls depends on the driver's speed; the program must not.
    let mut waits = random.fork();
    let reported = Arc::new(AtomicU64::new(0));
    let any = random.usize(0..queues);
    let mut compactor = compactor(frames, copies.unwrap_or(any), &reported);
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (SIZE, SIZE), MIPS, LAYERS);
    let drawn = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::SAMPLED;
    let info = info.usage(info.usage | drawn);
    // Temporary resources, which leave holes before those of the program.
    let other = |frames: &Frames, random: &mut fastrand::Rng| {
        (buffer(frames, random.u64(1..8) * BYTES), image(frames, &info))
    };
    let mut others: VecDeque<_> = (0..4).map(|_| other(frames, &mut random)).collect();
    let mut world = World {
        buffers: (0..3).map(|_| buffer(frames, BYTES)).collect(),
        images: (0..2).map(|_| image(frames, &info)).collect(),
        several: image(
            frames,
            &image_info(vk::Format::R8G8B8A8_UNORM, (SIZE, SIZE), 1, 1)
                .samples(vk::SampleCountFlags::TYPE_4)
                .usage(info.usage),
        ),
        drawn: {
            let usage = vk::BufferUsageFlags::TRANSFER_DST
                | vk::BufferUsageFlags::INDEX_BUFFER
                | vk::BufferUsageFlags::INDIRECT_BUFFER;
            let info = vk::BufferCreateInfo::default().size(64).usage(usage);
            unsafe { frames.create_buffer(&info, &auto()) }.unwrap()
        },
    };
    let mut model = Model { bytes: Vec::new(), expected: VecDeque::new() };
    model.bytes.extend((0..3).map(|_| vec![vec![0; BYTES as usize]]));
    let mips = || (0..MIPS).flat_map(|mip| (0..LAYERS).map(move |_| vec![0; mip_bytes(mip)])).collect();
    model.bytes.extend((0..2).map(|_| mips()));
    // Everything is written before it is read, by a fill or by the host.
    let zero = |frames: &Frames, world: &World, filled: [bool; 3]| {
        let mut list = frames.list(frames.queue(0)).unwrap();
        for (buffer, _) in world.buffers.iter().zip(filled).filter(|(_, filled)| *filled) {
            list.fill_buffer(buffer, 0..BYTES, 0).unwrap();
        }
        // Indices, and indirect commands for draws with and without them.
        let drawn = [0x0001_0000, 2, 0, 0, 3, 1, 0, 0, 0].map(u32::to_le_bytes);
        list.update_buffer(&world.drawn, 0, drawn.as_flattened()).unwrap();
        for image in &world.images {
            let black = vk::ClearColorValue { float32: [0.0; 4] };
            unsafe { list.clear_color(image, &Subresources::ALL, black) }.unwrap();
        }
        frames.submit(frames.queue(0), [list]).unwrap();
    };
    let mut filled = [true; 3];
    filled[0] = random.bool();
    if !filled[0] {
        world.buffers[0] = written_by_host(frames);
    }
    zero(frames, &world, filled);
    for _ in 0..random.usize(3..8) {
        frames.begin().unwrap();
        if random.bool() {
            compactor.request();
        }
        let early = (random.u32(0..3) == 0).then(|| random.usize(0..queues));
        let early = early.map(|at| {
            // Resources of an open list do not move.
            let mut list = frames.list(frames.queue(at)).unwrap();
            let commands = 0..random.usize(1..4);
            let effects: Vec<_> =
                commands.map(|_| command(&mut list, &world, (at < DRAWING, painter), &mut random)).collect();
            (frames.queue(at), list, effects)
        });
        compactor.step(frames).unwrap();
        if let Some((queue, list, effects)) = early {
            frames.submit(queue, [list]).unwrap();
            effects.into_iter().for_each(|effect| model.apply(effect));
        }
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..queues);
            let queue = frames.queue(at);
            let mut effects = Vec::new();
            let lists: Vec<_> = (0..random.usize(1..4))
                .map(|_| {
                    let mut list = frames.list(queue).unwrap();
                    let commands = 0..random.usize(0..8);
                    effects.extend(
                        commands.map(|_| command(&mut list, &world, (at < DRAWING, painter), &mut random)),
                    );
                    list
                })
                .collect();
            if random.u32(0..6) == 0 {
                // Never submitted, so it has no effect.
                drop(lists);
                continue;
            }
            frames.submit(queue, lists).unwrap();
            effects.into_iter().for_each(|effect| model.apply(effect));
        }
        frames.end();
        others.pop_front();
        others.push_back(other(frames, &mut random));
        if random.u32(0..3) == 0 {
            // Replaces a buffer and an image, while lists in flight may use the old ones.
            let (b, i) = (random.usize(0..3), random.usize(0..2));
            let mut filled = [true; 3];
            filled[b] = random.bool();
            world.buffers[b] = if filled[b] { buffer(frames, BYTES) } else { written_by_host(frames) };
            world.images[i] = image(frames, &info);
            zero(frames, &world, filled);
            model.bytes.iter_mut().flatten().for_each(|bytes| bytes.fill(0));
        }
        while let Some((read, expected)) = model.expected.pop_front() {
            if waits.u32(0..4) == 0 {
                frames.wait(&read).unwrap();
            }
            if !read.is_ready() {
                model.expected.push_front((read, expected));
                break;
            }
            assert_eq!(read.bytes().unwrap(), expected, "seed {seed}");
        }
    }
    frames.wait_idle().unwrap();
    for (read, expected) in model.expected.drain(..) {
        assert_eq!(read.bytes().unwrap(), expected, "seed {seed}");
    }
    drop((world, others));
    frames.wait_idle().unwrap();
    assert_eq!(frames.statistics().in_flight, 0);
    let moves = compactor.statistics().moves;
    assert_eq!(reported.load(Ordering::Relaxed), moves);
    moves
}
