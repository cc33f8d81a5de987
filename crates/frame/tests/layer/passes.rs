//! Rendering without draws: clear, load, store and resolve, with dynamic rendering and in render passes.

use ash::vk;
use sublet_frame::track::{Subresources, Use};
use sublet_frame::{Attachment, Frames, Image, ListError, RenderingInfo, Resolve};

use super::make;
use crate::make::{begin_list, end_with};

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;
const DEPTH: vk::ImageAspectFlags = vk::ImageAspectFlags::DEPTH;
const STENCIL: vk::ImageAspectFlags = vk::ImageAspectFlags::STENCIL;
const SIZE: u32 = 8;

fn target(frames: &Frames, format: vk::Format, samples: vk::SampleCountFlags, size: u32) -> Image {
    let depth = format == vk::Format::D32_SFLOAT_S8_UINT;
    let usage = match depth {
        true => vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT,
        false => vk::ImageUsageFlags::COLOR_ATTACHMENT,
    };
    let single = samples == vk::SampleCountFlags::TYPE_1;
    let (mips, layers) = if single { (2, 3) } else { (1, 1) };
    let info = make::image_info(format, (size, size), mips, layers).samples(samples);
    // Also viewed with another format.
    let info = if depth { info } else { info.flags(vk::ImageCreateFlags::MUTABLE_FORMAT) };
    make::image(frames, &info.usage(info.usage | usage))
}

fn grey(value: f32) -> vk::ClearValue {
    vk::ClearValue { color: vk::ClearColorValue { float32: [value; 4] } }
}

fn far(depth: f32, stencil: u32) -> vk::ClearValue {
    vk::ClearValue { depth_stencil: vk::ClearDepthStencilValue { depth, stencil } }
}

/// Renders without draws, optionally interrupted.
fn render(frames: &mut Frames, info: &RenderingInfo<'_>, also: Option<&Image>) {
    let mut list = begin_list(frames);
    unsafe { list.begin_rendering(info) }.unwrap();
    if let Some(image) = also {
        // Begins rendering, then interrupts it.
        unsafe { list.raw(|_, _| ()) }.unwrap();
        unsafe { list.use_image(image, &Subresources::ALL, Use::COPY_SOURCE) }.unwrap();
        list.flush().unwrap();
    }
    list.end_rendering().unwrap();
    end_with(frames, list);
}

fn read(frames: &mut Frames, image: &Image, mip: u32, aspect: vk::ImageAspectFlags) -> Vec<u8> {
    let mut list = begin_list(frames);
    let read = list.read_image(image, mip, 0..image.layers(), aspect).unwrap();
    end_with(frames, list);
    frames.wait(&read).unwrap();
    read.bytes().unwrap().to_vec()
}

/// Returns the final contents of the images.
pub(crate) fn scenes(frames: &mut Frames) -> Vec<Vec<u8>> {
    let (one, four) = (vk::SampleCountFlags::TYPE_1, vk::SampleCountFlags::TYPE_4);
    let format = vk::Format::R8G8B8A8_UNORM;
    let (color, other) = (target(frames, format, one, SIZE), target(frames, format, one, SIZE));
    let samples = target(frames, format, four, SIZE);
    let depth = target(frames, vk::Format::D32_SFLOAT_S8_UINT, one, SIZE);
    // Define all contents first.
    for (mip, layer) in (0..2).flat_map(|mip| (0..3).map(move |layer| (mip, layer))) {
        let at = |image, clear| Attachment { mip, layer, clear, ..Attachment::clear(image) };
        let colors = [Some(at(&color, grey(0.2))), None, Some(at(&other, grey(0.4)))];
        let both = at(&depth, far(0.25, 7));
        let info = RenderingInfo::new(color.extent(mip), &colors, Some(both));
        render(frames, &RenderingInfo { stencil: Some(both), ..info }, None);
    }
    // A part of two layers of a mip.
    let part = Attachment { mip: 1, layer: 1, clear: grey(0.6), ..Attachment::clear(&color) };
    let colors = [Some(part)];
    let mut info = RenderingInfo { layers: 2, ..RenderingInfo::new(color.extent(1), &colors, None) };
    info.area.extent.width = 2;
    render(frames, &info, Some(&other));
    // Depth alone, and stencil alone: the other one stays.
    let first = Attachment { clear: far(0.5, 99), ..Attachment::clear(&depth) };
    render(frames, &RenderingInfo::new(depth.extent(0), &[], Some(first)), None);
    let second = Attachment { mip: 1, clear: far(0.75, 3), ..Attachment::clear(&depth) };
    let info = RenderingInfo { stencil: Some(second), ..RenderingInfo::new(depth.extent(1), &[], None) };
    render(frames, &info, Some(&other));
    // In the list that copied stencil.
    let mut list = begin_list(frames);
    drop(list.read_image(&depth, 0, 0..1, STENCIL).unwrap());
    let info = RenderingInfo::new(depth.extent(0), &[], Some(first));
    unsafe { list.begin_rendering(&info) }.unwrap();
    list.end_rendering().unwrap();
    end_with(frames, list);
    // Depth is loaded read-only, stencil is cleared.
    let read_only = Attachment { read_only: true, ..Attachment::load(&depth) };
    let stencil = Some(Attachment { clear: far(0.0, 5), ..Attachment::clear(&depth) });
    let info = RenderingInfo { stencil, ..RenderingInfo::new(depth.extent(0), &[], Some(read_only)) };
    render(frames, &info, None);
    // Multisampled color with a resolve target, and a second color.
    let resolved = Attachment {
        clear: grey(0.8),
        resolve: Some(Resolve::new(&other)),
        store_op: vk::AttachmentStoreOp::DONT_CARE,
        ..Attachment::clear(&samples)
    };
    let colors = [Some(resolved)];
    render(frames, &RenderingInfo::new(samples.extent(0), &colors, None), None);
    // With another format. llvmpipe of Mesa 22.3.6 always resolves to mip 0 of layer 0, so simulated GPUs cover the
    // rest.
    let view_format = Some(vk::Format::R8G8B8A8_SRGB);
    let resolve = Some(Resolve { view_format, ..Resolve::new(&color) });
    let resolved = Attachment { view_format, clear: grey(0.5), resolve, ..Attachment::clear(&samples) };
    let colors = [Some(resolved)];
    render(frames, &RenderingInfo::new(color.extent(0), &colors, None), None);
    let mut found: Vec<_> = (0..2).map(|mip| read(frames, &color, mip, COLOR)).collect();
    let (first, others) = found[0].split_at(8 * 8 * 4);
    // Drivers round a half of alpha up or down.
    let is_half = |texel: &[u8]| texel[..3] == [188; 3] && (127..=128).contains(&texel[3]);
    assert!(first.chunks(4).all(is_half), "half of the light, {first:?}");
    assert!(others.chunks(4).all(|texel| texel[0] == texel[3]), "the other layers are as they were");
    resolve_depth(frames, &depth);
    found.extend((0..2).map(|mip| read(frames, &other, mip, COLOR)));
    found.extend(
        (0..2)
            .flat_map(|mip| [(mip, DEPTH), (mip, STENCIL)])
            .map(|(mip, aspect)| read(frames, &depth, mip, aspect)),
    );
    found.push(slices(frames, format));
    found.push(many(frames, format));
    found
}

/// Two slices of a volume, and two layers of an image: the others stay.
fn slices(frames: &mut Frames, format: vk::Format) -> Vec<u8> {
    let info = make::image_info(format, (SIZE, SIZE), 1, 1).image_type(vk::ImageType::TYPE_3D);
    let info = info.extent(vk::Extent3D { width: SIZE, height: SIZE, depth: 4 });
    let info = info.flags(vk::ImageCreateFlags::TYPE_2D_ARRAY_COMPATIBLE);
    let volume = make::image(frames, &info.usage(info.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT));
    let layers = target(frames, format, vk::SampleCountFlags::TYPE_1, SIZE);
    let mut found = Vec::new();
    for (image, count) in [(&volume, 4), (&layers, 3)] {
        let mut list = frames.list(frames.queue(0)).unwrap();
        unsafe { list.clear_color(image, &Subresources::ALL, grey(0.2).color) }.unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        let at = |layer, value| Some(Attachment { layer, clear: grey(value), ..Attachment::clear(image) });
        let colors = [at(2, 1.0), None, at(1, 0.4)];
        render(frames, &RenderingInfo::new(image.extent(0), &colors, None), None);
        let texels = read(frames, image, 0, COLOR);
        let expected = [51, 102, 255, 51].map(|byte| vec![byte; (SIZE * SIZE * 4) as usize]);
        assert!(texels == expected[..count].concat());
        found.extend(texels);
    }
    found
}

/// Resolves depth and stencil, if the device supports more than Vulkan 1.0 does. `depth` stays unchanged.
fn resolve_depth(frames: &mut Frames, depth: &Image) {
    let samples = target(frames, depth.format(), vk::SampleCountFlags::TYPE_4, SIZE);
    let single = target(frames, depth.format(), vk::SampleCountFlags::TYPE_1, SIZE);
    let resolve = Some(Resolve::new(&single));
    let both = Attachment { clear: far(0.375, 9), resolve, ..Attachment::clear(&samples) };
    let info = RenderingInfo { stencil: Some(both), ..RenderingInfo::new(single.extent(0), &[], Some(both)) };
    let mut list = begin_list(frames);
    let begun = unsafe { list.begin_rendering(&info) };
    if let Err(error) = begun {
        let (mode, aspect) = (vk::ResolveModeFlags::SAMPLE_ZERO, DEPTH);
        assert_eq!(error, ListError::ResolveMode { mode, aspect });
        return frames.end();
    }
    list.end_rendering().unwrap();
    end_with(frames, list);
    let mut list = begin_list(frames);
    let found = [DEPTH, STENCIL].map(|aspect| list.read_image(&single, 0, 0..1, aspect).unwrap());
    end_with(frames, list);
    found.iter().for_each(|read| frames.wait(read).unwrap());
    assert_eq!(found[0].bytes().unwrap(), 0.375_f32.to_le_bytes().repeat(64));
    assert_eq!(found[1].bytes().unwrap(), [9; 64]);
}

/// Uses more images than the cache has framebuffers, and drops some while the device renders: a new view may reuse the
/// handle of an old one.
fn many(frames: &mut Frames, format: vk::Format) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut texels = Vec::new();
    for round in 0..300_u16 {
        let image = target(frames, format, vk::SampleCountFlags::TYPE_1, 4 + u32::from(round % 5));
        let clear = grey(f32::from(round) / 300.0);
        let colors = [Some(Attachment { clear, ..Attachment::clear(&image) })];
        render(frames, &RenderingInfo::new(image.extent(0), &colors, None), None);
        if round % 3 == 0 {
            kept.push(image);
        }
    }
    for image in kept.iter().step_by(10) {
        let colors = [Some(Attachment::load(image))];
        render(frames, &RenderingInfo::new(image.extent(0), &colors, None), None);
        let mut list = begin_list(frames);
        let read = list.read_image(image, 0, 0..1, COLOR).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        texels.extend_from_slice(&read.bytes().unwrap());
    }
    texels
}
