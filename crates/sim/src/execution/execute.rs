//! Runs recorded commands: bytes move in the device's view of memory.
//!
//! Two steps: [`resolve`] looks up, with the device locked, what a command touches, and follows the layouts of images;
//! the [`Work`] that comes out of it moves the bytes without any lock.

use std::sync::Arc;

use ash::vk;

use super::resample;
use crate::commands::barriers::layout_name;
use crate::commands::images::buffer::BufferLayout;
use crate::commands::rendering::LOST;
use crate::execution::judge;
use crate::execution::kernel;
use crate::execution::kernel::Groups;
use crate::facts::arithmetic::host_size;
use crate::facts::format::{Aspect, FormatInfo, ImageDescription, ImageLayout, LevelLayout};
use crate::hazards::Actor;
use crate::objects::commands::bindings::Bindings;
use crate::objects::commands::rendering::AttachmentTarget;
use crate::objects::commands::{ImageTarget, RecordedCommand};
use crate::objects::state::{DeviceObject, DeviceState, StoreRange, Unusable};

/// A move of bytes. It answers false if the memory is too small, or has no host memory behind it.
pub(crate) type Work = Box<dyn FnOnce(&DeviceObject) -> bool + Send>;

/// The work of the commands, in order. A command whose resources are gone is reported and left out.
pub(crate) fn resolve(
    device: &DeviceObject,
    state: &mut DeviceState,
    commands: &Arc<Vec<RecordedCommand>>,
    (timeline, submission): (usize, u64),
) -> Vec<Work> {
    let mut works = Vec::new();
    let mut bindings = Bindings::default();
    let mut actor = None;
    for (index, command) in commands.iter().enumerate() {
        bindings.apply(command);
        match (command, actor) {
            (RecordedCommand::By(site), _) => actor = Some(Actor { timeline, submission, site: *site }),
            (_, Some(actor)) => works.push(judged(commands, index, actor)),
            _ => {}
        }
        match command {
            RecordedCommand::Dispatch { groups } => {
                works.extend(kernel::start(device, state, &bindings, Groups::Given(*groups), actor));
            }
            RecordedCommand::DispatchIndirect { buffer: from, offset } => {
                let from = buffer(device, state, *from).map(|bytes| Groups::At(bytes, *offset));
                works.extend(from.and_then(|from| kernel::start(device, state, &bindings, from, actor)));
            }
            RecordedCommand::Draw(draw) => {
                works.extend(kernel::draw(device, state, &bindings, draw, actor));
            }
            _ => works.extend(resolve_one(device, state, command)),
        }
    }
    works
}

/// The judging of a command, in its place among what the commands do.
fn judged(commands: &Arc<Vec<RecordedCommand>>, index: usize, actor: Actor) -> Work {
    let commands = Arc::clone(commands);
    Box::new(move |device: &DeviceObject| {
        if let Some(command) = commands.get(index) {
            judge::judge(device, command, actor);
        }
        true
    })
}

fn resolve_one(device: &DeviceObject, state: &mut DeviceState, command: &RecordedCommand) -> Vec<Work> {
    match command {
        RecordedCommand::CopyBuffer { src, dst, regions } => {
            let (Some(src), Some(dst)) = (buffer(device, state, *src), buffer(device, state, *dst)) else {
                return Vec::new();
            };
            let each = regions.iter().map(|region| {
                let (src, dst, region) = (src.clone(), dst.clone(), *region);
                work(move || {
                    let to = dst.offset + region.dst_offset;
                    dst.store.copy_from(to, &src.store, src.offset + region.src_offset, region.size)
                })
            });
            each.collect()
        }
        RecordedCommand::Fill { dst, offset, size, data } => {
            let Some(dst) = buffer(device, state, *dst) else {
                return Vec::new();
            };
            let (start, size, data) = (dst.offset + offset, *size, *data);
            vec![work(move || fill(&dst, start, size, &data.to_le_bytes()))]
        }
        RecordedCommand::Update { dst, offset, data } => {
            let Some(dst) = buffer(device, state, *dst) else {
                return Vec::new();
            };
            let (start, data) = (dst.offset + offset, data.clone());
            vec![work(move || dst.store.write(start, &data))]
        }
        RecordedCommand::BufferToImage { src, dst, regions } => {
            let to = image(device, state, *dst, regions.iter().map(|region| &region.image_subresource));
            let (Some(from), Some(to)) = (buffer(device, state, *src), to) else {
                return Vec::new();
            };
            let each = regions.iter().map(|region| buffer_image(device, &from, &to, region, true));
            each.collect()
        }
        RecordedCommand::ImageToBuffer { src, dst, regions } => {
            let from = image(device, state, *src, regions.iter().map(|region| &region.image_subresource));
            let (Some(from), Some(to)) = (from, buffer(device, state, *dst)) else {
                return Vec::new();
            };
            let each = regions.iter().map(|region| buffer_image(device, &to, &from, region, false));
            each.collect()
        }
        RecordedCommand::CopyImage { src, dst, regions } => {
            let layers = regions.iter().map(|region| (&region.src_subresource, &region.dst_subresource));
            let Some((from, to)) = images(device, state, (*src, *dst), layers) else {
                return Vec::new();
            };
            regions.iter().flat_map(|region| image_image(device, &from, &to, region)).collect()
        }
        RecordedCommand::Blit { src, dst, regions, filter } => {
            let layers = regions.iter().map(|region| (&region.src_subresource, &region.dst_subresource));
            let Some((from, to)) = images(device, state, (*src, *dst), layers) else {
                return Vec::new();
            };
            let each = regions.iter();
            each.flat_map(|region| resample::blit(device.profile(), (&from, &to), region, *filter)).collect()
        }
        RecordedCommand::ResolveImage { src, dst, regions } => {
            let layers = regions.iter().map(|region| (&region.src_subresource, &region.dst_subresource));
            let Some((from, to)) = images(device, state, (*src, *dst), layers) else {
                return Vec::new();
            };
            let each = regions.iter();
            each.flat_map(|region| resample::resolve(device.profile(), (&from, &to), region)).collect()
        }
        RecordedCommand::BeginRendering(rendering) => {
            let mut works = Vec::new();
            for one in &rendering.attachments {
                let pixels = attachment(device, state, &one.to);
                if let Some(resolve) = &one.resolve {
                    attachment(device, state, resolve);
                }
                if let (Some(pixels), Some(texel)) = (pixels, &one.fill) {
                    works.push(resample::fill(device.profile(), pixels, &one.to, rendering.area, texel));
                }
            }
            works
        }
        RecordedCommand::EndRendering(rendering) => {
            let mut works = Vec::new();
            for one in &rendering.attachments {
                // Their layouts were checked when rendering began.
                let Some(pixels) = one.to.pixels(state) else { continue };
                let to = one.resolve.and_then(|to| Some((to, to.pixels(state)?)));
                if let Some((resolve, to)) = to {
                    let region = rendering.resolved(one.to.layers, resolve.layers);
                    works.extend(resample::resolve(device.profile(), (&pixels, &to), &region));
                }
                if one.store == vk::AttachmentStoreOp::DONT_CARE {
                    let lost = [LOST; crate::objects::commands::rendering::LARGEST];
                    works.push(resample::fill(device.profile(), pixels, &one.to, rendering.area, &lost));
                }
            }
            works
        }
        RecordedCommand::Clear { dst, texel, ranges } => clear(device, state, *dst, texel, ranges),
        RecordedCommand::Transition { image, old, new, range, rule } => {
            transition(device, state, *image, (*old, *new), range, rule);
            Vec::new()
        }
        // `Bindings` follows them.
        RecordedCommand::BindSets { .. }
        | RecordedCommand::PushDescriptors { .. }
        | RecordedCommand::PushConstants { .. }
        | RecordedCommand::BindHeap(_)
        | RecordedCommand::PushData { .. }
        | RecordedCommand::BindDescriptorBuffers { .. }
        | RecordedCommand::SetOffsets { .. }
        | RecordedCommand::BindPipeline { .. }
        // They are run with what is bound, see `resolve`.
        | RecordedCommand::Dispatch { .. }
        | RecordedCommand::DispatchIndirect { .. }
        | RecordedCommand::Draw(_)
        // Draws have what was bound and set when they were recorded.
        | RecordedCommand::BindVertexBuffers { .. }
        | RecordedCommand::BindIndexBuffer { .. }
        | RecordedCommand::Set(_)
        | RecordedCommand::Label(_)
        | RecordedCommand::ForgetBindings
        // They are for the judge.
        | RecordedCommand::By(_)
        | RecordedCommand::Barrier(_) => Vec::new(),
        RecordedCommand::SetEvent { event, .. } => vec![set_event(*event, true)],
        RecordedCommand::ResetEvent { event } => vec![set_event(*event, false)],
        RecordedCommand::WaitEvents { events, .. } => {
            let events = events.clone();
            vec![Box::new(move |device: &DeviceObject| wait_for(device, &events))]
        }
    }
}

fn set_event(event: vk::Event, set: bool) -> Work {
    Box::new(move |device: &DeviceObject| {
        if let Some(event) = device.state.lock().sync.events.get_mut(&event) {
            *event = set;
        }
        true
    })
}

/// A queue that waits finds its events set: whatever sets them is before it on the same queue, or the host has done it.
fn wait_for(device: &DeviceObject, events: &[vk::Event]) -> bool {
    let state = device.state.lock();
    for event in events.iter().filter(|event| state.sync.events.get(event) != Some(&true)) {
        let text = format!("{} is waited for, and nothing has set it", state.name(*event));
        device.report("SUBLET-vkCmdWaitEvents-never-set", text);
    }
    true
}

pub(crate) fn work(body: impl FnOnce() -> bool + Send + 'static) -> Work {
    Box::new(|_| body())
}

/// A buffer's bytes. Submission has checked that it has some; a submission that waited may find it gone.
pub(crate) fn buffer(device: &DeviceObject, state: &DeviceState, buffer: vk::Buffer) -> Option<StoreRange> {
    match state.buffer_bytes(buffer) {
        Ok(bytes) => Some(bytes),
        Err(reason) => {
            let text = format!("{} is used by a running command, and it is {reason:?}", state.name(buffer));
            device.report("VUID-vkDestroyBuffer-buffer-00922", text);
            None
        }
    }
}

/// An image that a command touches.
#[derive(Clone)]
pub(crate) struct Pixels {
    pub(crate) bytes: StoreRange,
    pub(crate) description: ImageDescription,
}

impl Pixels {
    /// The error says why it has no bytes.
    pub(crate) fn of(state: &DeviceState, image: vk::Image) -> Result<Self, Unusable> {
        let bytes = state.image_bytes(image)?;
        let description = state.images.get(&image).ok_or(Unusable::Unknown)?.description;
        Ok(Self { bytes, description })
    }
}

/// An image's bytes, if its layouts are what the command says.
fn image<'a>(
    device: &DeviceObject,
    state: &DeviceState,
    target: ImageTarget,
    layers: impl Iterator<Item = &'a vk::ImageSubresourceLayers>,
) -> Option<Pixels> {
    let pixels = match Pixels::of(state, target.image) {
        Ok(pixels) => pixels,
        Err(reason) => {
            let text =
                format!("{} is used by a running command, and it is {reason:?}", state.name(target.image));
            device.report("VUID-vkDestroyImage-image-01000", text);
            return None;
        }
    };
    for layers in layers {
        for layer in layers.base_array_layer..layers.base_array_layer.saturating_add(layers.layer_count) {
            check_layout(device, state, target, layers.mip_level, layer);
        }
    }
    Some(pixels)
}

/// Both images of a command, if their layouts are what it says.
fn images<'a>(
    device: &DeviceObject,
    state: &DeviceState,
    (src, dst): (ImageTarget, ImageTarget),
    layers: impl Iterator<Item = (&'a vk::ImageSubresourceLayers, &'a vk::ImageSubresourceLayers)> + Clone,
) -> Option<(Pixels, Pixels)> {
    let from = image(device, state, src, layers.clone().map(|(src, _)| src));
    let to = image(device, state, dst, layers.map(|(_, dst)| dst));
    from.zip(to)
}

/// The bytes of an attachment's image.
fn attachment(device: &DeviceObject, state: &DeviceState, attached: &AttachmentTarget) -> Option<Pixels> {
    image(device, state, attached.target, std::iter::once(&attached.layers))
}

/// Reports an image that is not in the layout that the command names. The bytes are the same in all layouts.
fn check_layout(device: &DeviceObject, state: &DeviceState, target: ImageTarget, level: u32, layer: u32) {
    let real = state.commands.layout(target.image, level, layer);
    if real != Some(target.layout) {
        let text = format!(
            "{}, level {level}, layer {layer}: the command says {}, and the layout is {}",
            state.name(target.image),
            layout_name(target.layout),
            layout_name(real.unwrap_or(vk::ImageLayout::UNDEFINED)),
        );
        device.report(target.layout_rule, text);
    }
}

impl AttachmentTarget {
    /// The bytes, as the view shows them.
    pub(crate) fn pixels(&self, state: &DeviceState) -> Option<Pixels> {
        let mut pixels = Pixels::of(state, self.target.image).ok()?;
        pixels.description.format = self.format;
        Some(pixels)
    }
}

fn transition(
    device: &DeviceObject,
    state: &mut DeviceState,
    image: vk::Image,
    (old, new): (Option<vk::ImageLayout>, vk::ImageLayout),
    range: &vk::ImageSubresourceRange,
    rule: &'static str,
) {
    let Some(description) = state.images.get(&image).map(|image| image.description) else {
        return;
    };
    let name = state.name(image);
    let DeviceState { images, commands, .. } = state;
    // Handles are never used again, so what is known of images that are gone is of no more use.
    let layouts = Arc::make_mut(&mut commands.layouts);
    layouts.retain(|image, _| images.contains_key(image));
    let layouts = layouts.entry(image).or_default();
    for (level, layer) in subresources(&description, range) {
        let real = layouts.get(&(level, layer)).copied();
        let unfit = old.filter(|old| match real {
            _ if *old == vk::ImageLayout::UNDEFINED => false,
            // Nothing is known of the image yet: whatever it was created with.
            None => *old != vk::ImageLayout::PREINITIALIZED,
            Some(real) => *old != real,
        });
        if let Some(old) = unfit {
            let real = layout_name(real.unwrap_or(vk::ImageLayout::UNDEFINED));
            let old = layout_name(old);
            let text =
                format!("{name}, level {level}, layer {layer}: oldLayout is {old}, and the layout is {real}");
            device.report(rule, text);
        }
        // A barrier from UNDEFINED to UNDEFINED, or of no change at all, leaves a fresh image as it is.
        if new != vk::ImageLayout::UNDEFINED && new != vk::ImageLayout::PREINITIALIZED {
            layouts.insert((level, layer), new);
        }
    }
}

/// The levels and layers of a range, as far as the image has them.
fn subresources(
    image: &ImageDescription,
    range: &vk::ImageSubresourceRange,
) -> impl Iterator<Item = (u32, u32)> + use<> {
    let levels =
        range.base_mip_level..range.base_mip_level.saturating_add(range.level_count).min(image.mip_levels);
    let end = range.base_array_layer.saturating_add(range.layer_count).min(image.array_layers);
    let layers = range.base_array_layer..end;
    levels.flat_map(move |level| layers.clone().map(move |layer| (level, layer)))
}

/// Repeats `pattern` over a range.
fn fill(dst: &StoreRange, start: u64, size: u64, pattern: &[u8]) -> bool {
    const CHUNK: usize = 1 << 16;
    let most = host_size(size).unwrap_or(CHUNK).min(CHUNK);
    let chunk = pattern.repeat(most.div_ceil(pattern.len()));
    let mut at = start;
    let mut left = size;
    while left > 0 {
        let len = host_size(left).unwrap_or(usize::MAX).min(chunk.len());
        if !dst.store.write(at, &chunk[..len]) {
            return false;
        }
        at += crate::facts::arithmetic::widen(len);
        left -= crate::facts::arithmetic::widen(len);
    }
    true
}

/// A row of texel blocks: in a buffer, or in an image, where an aspect is a part of each block.
#[derive(Clone, Copy)]
struct TexelRow {
    at: u64,
    /// From a block to the next.
    stride: u64,
    /// The part of a block, from its first byte on.
    first: u64,
    bytes: u64,
}

/// Copies `count` blocks. If a block of the source is smaller, the rest becomes 0.
fn copy_row(dst: &StoreRange, to: TexelRow, src: &StoreRange, from: TexelRow, count: u64) -> bool {
    let whole = from.stride == from.bytes && to.stride == to.bytes && from.bytes == to.bytes;
    if whole {
        return dst.store.copy_from(dst.offset + to.at, &src.store, src.offset + from.at, count * from.bytes);
    }
    let mut block = [0; 32];
    let Some(taken) = host_size(from.bytes.min(to.bytes)) else {
        return false;
    };
    let Some(given) = host_size(to.bytes).filter(|&given| given <= block.len()) else {
        return false;
    };
    (0..count).all(|index| {
        block = [0; 32];
        let read = src.offset + from.at + index * from.stride + from.first;
        let write = dst.offset + to.at + index * to.stride + to.first;
        src.store.read(read, &mut block[..taken]) && dst.store.write(write, &block[..given])
    })
}

/// The offset of a block in an image. Units: blocks, slices and layers.
pub(crate) fn block_at(level: &LevelLayout, x: u64, y: u64, z: u64) -> u64 {
    level.offset + z * level.depth_pitch + y * level.row_pitch + x * level.plane.bytes
}

/// Texels of an offset, which is not negative in a recorded command, as blocks.
fn blocks_of(texels: i32, block: u32) -> u64 {
    u64::from(texels.unsigned_abs() / block)
}

fn buffer_image(
    device: &DeviceObject,
    buffer: &StoreRange,
    image: &Pixels,
    region: &vk::BufferImageCopy,
    to_image: bool,
) -> Work {
    let (buffer, image, region) = (buffer.clone(), image.clone(), *region);
    let profile = device.profile();
    work(move || {
        let Some(layout) = ImageLayout::new(profile, &image.description) else {
            return false;
        };
        let layers = region.image_subresource;
        (0..layers.layer_count).all(|layer| {
            let place = layout.level(layers.aspect_mask, layers.mip_level, layers.base_array_layer + layer);
            let Some((level, aspect)) = place else {
                return false;
            };
            let in_buffer = BufferLayout::new(&region, &level, &aspect);
            let depth = region.image_extent.depth;
            (0..depth).all(|slice| {
                let slices = u64::from(layer) * u64::from(depth) + u64::from(slice);
                let start = region.buffer_offset + slices * in_buffer.slice_pitch;
                (0..in_buffer.down).all(|row| {
                    let buffer_row = TexelRow {
                        at: start + row * in_buffer.row_pitch,
                        stride: aspect.buffer_bytes,
                        first: 0,
                        bytes: aspect.buffer_bytes,
                    };
                    let x = blocks_of(region.image_offset.x, level.plane.block.0);
                    let y = blocks_of(region.image_offset.y, level.plane.block.1) + row;
                    let z = blocks_of(region.image_offset.z, 1) + u64::from(slice);
                    let image_row = aspect_row(&level, &aspect, block_at(&level, x, y, z));
                    if to_image {
                        copy_row(&image.bytes, image_row, &buffer, buffer_row, in_buffer.across)
                    } else {
                        copy_row(&buffer, buffer_row, &image.bytes, image_row, in_buffer.across)
                    }
                })
            })
        })
    })
}

fn aspect_row(level: &LevelLayout, aspect: &Aspect, at: u64) -> TexelRow {
    TexelRow { at, stride: level.plane.bytes, first: aspect.first, bytes: aspect.bytes }
}

fn image_image(device: &DeviceObject, src: &Pixels, dst: &Pixels, region: &vk::ImageCopy) -> Vec<Work> {
    let aspects = |mask: vk::ImageAspectFlags| {
        let bits = mask.as_raw();
        (0..u32::BITS)
            .map(|bit| 1 << bit)
            .filter(move |bit| bits & bit != 0)
            .map(vk::ImageAspectFlags::from_raw)
    };
    let pairs = aspects(region.src_subresource.aspect_mask).zip(aspects(region.dst_subresource.aspect_mask));
    let each = pairs.map(|pair| {
        let (src, dst, region, profile) = (src.clone(), dst.clone(), *region, device.profile());
        work(move || {
            let from = ImageLayout::new(profile, &src.description);
            let to = ImageLayout::new(profile, &dst.description);
            let (Some(from), Some(to)) = (from, to) else {
                return false;
            };
            // A slice of a 3D image, or a layer: whichever the image has.
            let slices = region.src_subresource.layer_count.max(region.extent.depth);
            (0..slices).all(|slice| {
                let from =
                    place(&from, &src.description, pair.0, &region.src_subresource, region.src_offset, slice);
                let to =
                    place(&to, &dst.description, pair.1, &region.dst_subresource, region.dst_offset, slice);
                let (Some(from), Some(to)) = (from, to) else {
                    return false;
                };
                let samples = from.level.samples;
                let width = region.extent.width.div_ceil(from.level.plane.block.0);
                let height = region.extent.height.div_ceil(from.level.plane.block.1);
                let across = u64::from(width) * u64::from(samples.0);
                (0..u64::from(height) * u64::from(samples.1))
                    .all(|row| copy_row(&dst.bytes, to.row(row), &src.bytes, from.row(row), across))
            })
        })
    });
    each.collect()
}

/// A place in one slice or layer of an image.
struct TexelPosition {
    level: LevelLayout,
    aspect: Aspect,
    x: u64,
    y: u64,
    z: u64,
}

impl TexelPosition {
    fn row(&self, row: u64) -> TexelRow {
        aspect_row(&self.level, &self.aspect, block_at(&self.level, self.x, self.y + row, self.z))
    }
}

fn place(
    layout: &ImageLayout<'_>,
    image: &ImageDescription,
    aspect: vk::ImageAspectFlags,
    layers: &vk::ImageSubresourceLayers,
    offset: vk::Offset3D,
    slice: u32,
) -> Option<TexelPosition> {
    let deep = image.image_type == vk::ImageType::TYPE_3D;
    let layer = if deep { layers.base_array_layer } else { layers.base_array_layer + slice };
    let (level, aspect) = layout.level(aspect, layers.mip_level, layer)?;
    let (across, down) = (u64::from(level.samples.0), u64::from(level.samples.1));
    let x = blocks_of(offset.x, level.plane.block.0) * across;
    let y = blocks_of(offset.y, level.plane.block.1) * down;
    let z = if deep { blocks_of(offset.z, 1) + u64::from(slice) } else { 0 };
    Some(TexelPosition { level, aspect, x, y, z })
}

fn clear(
    device: &DeviceObject,
    state: &DeviceState,
    target: ImageTarget,
    texel: &[u8],
    ranges: &[vk::ImageSubresourceRange],
) -> Vec<Work> {
    let Some(pixels) = image(device, state, target, std::iter::empty()) else {
        return Vec::new();
    };
    let mut works = Vec::new();
    let texel: Arc<[u8]> = texel.into();
    for (level, layer) in ranges.iter().flat_map(|range| subresources(&pixels.description, range)) {
        check_layout(device, state, target, level, layer);
        let (pixels, texel, profile) = (pixels.clone(), Arc::clone(&texel), device.profile());
        works.push(work(move || {
            let Some(layout) = ImageLayout::new(profile, &pixels.description) else {
                return false;
            };
            let aspects = FormatInfo::of(pixels.description.format).map(|info| info.aspects());
            let place = layout.level(aspects.unwrap_or_default(), level, layer);
            let Some((level, _)) = place else { return false };
            let across = u64::from(level.extent[0]) * u64::from(level.samples.0);
            let down = u64::from(level.extent[1]) * u64::from(level.samples.1);
            (0..u64::from(level.extent[2])).all(|z| {
                (0..down).all(|y| {
                    let start = pixels.bytes.offset + block_at(&level, 0, y, z);
                    fill(&pixels.bytes, start, across * level.plane.bytes, &texel)
                })
            })
        }));
    }
    works
}
