//! Blits and resolves: texels are read, scaled or averaged, and written.

use ash::vk;

use super::execute::{Pixels, Work, block_at, work};
use crate::commands::images::blit::between;
use crate::facts::format::{Aspect, Channels, ImageLayout, LevelLayout};
use crate::facts::profiles::Profile;
use crate::objects::commands::rendering::{AttachmentTarget, LARGEST};
use crate::objects::state::StoreRange;

/// One level of one layer of an image, of one aspect.
pub(crate) struct Surface {
    bytes: StoreRange,
    level: LevelLayout,
    aspect: Aspect,
    /// Bytes of the aspect in a texel.
    size: usize,
}

impl Surface {
    pub(crate) fn new(
        profile: &Profile,
        pixels: &Pixels,
        aspect: vk::ImageAspectFlags,
        level: u32,
        layer: u32,
    ) -> Option<Self> {
        let (level, aspect) = ImageLayout::new(profile, &pixels.description)?.level(aspect, level, layer)?;
        let size = usize::try_from(aspect.bytes).ok().filter(|size| *size <= LARGEST)?;
        Some(Self { bytes: pixels.bytes.clone(), level, aspect, size })
    }

    /// The layer that is `layer` layers behind the first of `layers`.
    fn of(
        profile: &Profile,
        pixels: &Pixels,
        aspect: vk::ImageAspectFlags,
        layers: &vk::ImageSubresourceLayers,
        layer: u32,
    ) -> Option<Self> {
        Self::new(profile, pixels, aspect, layers.mip_level, layers.base_array_layer + layer)
    }

    /// Texels, or blocks of a compressed format, across, down and deep.
    pub(crate) fn extent(&self) -> [u32; 3] {
        let ([x, y, z], (across, down)) = (self.level.extent, self.level.plane.block);
        [x.div_ceil(across), y.div_ceil(down), z]
    }

    pub(crate) fn contains(&self, place: [u32; 3]) -> bool {
        place.iter().zip(self.extent()).all(|(at, end)| *at < end)
    }

    /// Bytes of a texel.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn samples(&self) -> u32 {
        self.level.samples.0 * self.level.samples.1
    }

    fn at(&self, [x, y, z]: [u32; 3], sample: u32) -> u64 {
        let (across, down) = self.level.samples;
        let x = u64::from(x) * u64::from(across) + u64::from(sample % across);
        let y = u64::from(y) * u64::from(down) + u64::from(sample / across);
        self.bytes.offset + block_at(&self.level, x, y, u64::from(z)) + self.aspect.first
    }

    pub(crate) fn read(&self, place: [u32; 3], sample: u32) -> Option<[u8; LARGEST]> {
        let mut texel = [0; LARGEST];
        let read = self.bytes.store.read(self.at(place, sample), &mut texel[..self.size]);
        read.then_some(texel)
    }

    pub(crate) fn write(&self, place: [u32; 3], sample: u32, texel: &[u8]) -> bool {
        texel.get(..self.size).is_some_and(|texel| self.bytes.store.write(self.at(place, sample), texel))
    }
}

/// The average of texels, each with its weight, in another format; the weights are 1 in all.
fn average(
    from: &Channels,
    to: &Channels,
    texels: impl Iterator<Item = Option<([u8; LARGEST], f32)>>,
) -> Option<Vec<u8>> {
    let mut sum = [0.0_f32; 4];
    for texel in texels {
        let (texel, weight) = texel?;
        // A texel without weight may be NaN.
        if weight > 0.0 {
            sum.iter_mut().zip(from.decode(&texel)).for_each(|(sum, channel)| *sum += weight * channel);
        }
    }
    Some(to.encode(sum.map(f32::to_bits)))
}

/// Which texels of the source lie under one of the destination, along one axis: two at most, and how much of each.
/// Source: Vulkan specification, section "Image Copies With Scaling", and of its "Texel Filtering".
#[derive(Clone, Copy)]
struct Axis {
    from: [i32; 2],
    to: [i32; 2],
    size: u32,
    linear: bool,
}

impl Axis {
    /// The texels of the destination.
    fn targets(&self) -> std::ops::Range<u32> {
        let [a, b] = self.to.map(i32::unsigned_abs);
        a.min(b)..a.max(b)
    }

    fn sources(&self, target: u32) -> [(u32, f32); 2] {
        let [from, to] = [self.from, self.to].map(|ends| ends.map(f64::from));
        let scale = (from[1] - from[0]) / (to[1] - to[0]);
        let at = (f64::from(target) + 0.5 - to[0]) * scale + from[0];
        if !self.linear {
            return [(self.clamped(at.floor()), 1.0), (0, 0.0)];
        }
        let first = (at - 0.5).floor();
        let share = at - 0.5 - first;
        [(self.clamped(first), narrow(1.0 - share)), (self.clamped(first + 1.0), narrow(share))]
    }

    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the texels that there are"
    )]
    fn clamped(&self, at: f64) -> u32 {
        at.clamp(0.0, f64::from(self.size.saturating_sub(1))) as u32
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a share of 1: rounding is meant"
)]
fn narrow(share: f64) -> f32 {
    share as f32
}

/// Runs a region of a blit, aspect by aspect.
pub(crate) fn blit(
    profile: &'static Profile,
    (src, dst): (&Pixels, &Pixels),
    region: &vk::ImageBlit,
    filter: vk::Filter,
) -> Vec<Work> {
    let (from, to) = (region.src_subresource, region.dst_subresource);
    let aspects = [vk::ImageAspectFlags::COLOR, vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL];
    let aspects = aspects.into_iter().filter(|aspect| from.aspect_mask.contains(*aspect));
    let each = aspects.flat_map(|aspect| (0..from.layer_count).map(move |layer| (aspect, layer)));
    let each = each.map(|(aspect, layer)| {
        let (src, dst, region) = (src.clone(), dst.clone(), *region);
        work(move || {
            let source = Surface::of(profile, &src, aspect, &from, layer);
            let target = Surface::of(profile, &dst, aspect, &to, layer);
            let (Some(source), Some(target)) = (source, target) else { return false };
            let channels = [src.description.format, dst.description.format].map(Channels::of);
            let converts = src.description.format != dst.description.format || filter != vk::Filter::NEAREST;
            let channels = match channels {
                [Some(from), Some(to)] if converts => Some((from, to)),
                _ => None,
            };
            blit_layer(&source, &target, &region, filter == vk::Filter::LINEAR, channels)
        })
    });
    each.collect()
}

fn blit_layer(
    source: &Surface,
    target: &Surface,
    region: &vk::ImageBlit,
    linear: bool,
    channels: Option<(Channels, Channels)>,
) -> bool {
    let ends = |corners: [vk::Offset3D; 2], axis: usize| corners.map(|at| [at.x, at.y, at.z][axis]);
    let axis = |index: usize| Axis {
        from: ends(region.src_offsets, index),
        to: ends(region.dst_offsets, index),
        size: source.level.extent[index],
        linear,
    };
    let axes = [axis(0), axis(1), axis(2)];
    let (_, extent) = between(region.dst_offsets);
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return true;
    }
    axes[2].targets().all(|z| {
        axes[1].targets().all(|y| {
            axes[0].targets().all(|x| {
                let [xs, ys, zs] = [axes[0].sources(x), axes[1].sources(y), axes[2].sources(z)];
                let texel = match &channels {
                    None => source.read([xs[0].0, ys[0].0, zs[0].0], 0).map(|texel| texel.to_vec()),
                    Some((from, to)) => {
                        let texels = (0..8_usize).map(|corner| {
                            let [x, y, z] = [xs[corner & 1], ys[corner >> 1 & 1], zs[corner >> 2]];
                            (source.read([x.0, y.0, z.0], 0)).map(|texel| (texel, x.1 * y.1 * z.1))
                        });
                        average(from, to, texels)
                    }
                };
                texel.is_some_and(|texel| target.write([x, y, z], 0, &texel))
            })
        })
    })
}

/// Writes a texel over what is rendered of an attachment: all samples.
pub(crate) fn fill(
    profile: &'static Profile,
    pixels: Pixels,
    attached: &AttachmentTarget,
    area: vk::Rect2D,
    texel: &[u8],
) -> Work {
    let (layers, texel) = (attached.layers, texel.to_vec());
    work(move || {
        (0..layers.layer_count).all(|layer| {
            let surface = Surface::of(profile, &pixels, layers.aspect_mask, &layers, layer);
            let Some(surface) = surface else { return false };
            let (left, top) = (area.offset.x.unsigned_abs(), area.offset.y.unsigned_abs());
            (top..top + area.extent.height).all(|y| {
                (left..left + area.extent.width)
                    .all(|x| (0..surface.samples()).all(|sample| surface.write([x, y, 0], sample, &texel)))
            })
        })
    })
}

/// Runs a region of a resolve. Numbers cannot be averaged: their first sample is taken.
pub(crate) fn resolve(
    profile: &'static Profile,
    (src, dst): (&Pixels, &Pixels),
    region: &vk::ImageResolve,
) -> Vec<Work> {
    let (from, to) = (region.src_subresource, region.dst_subresource);
    let each = (0..from.layer_count).map(|layer| {
        let (src, dst, region) = (src.clone(), dst.clone(), *region);
        work(move || {
            let color = vk::ImageAspectFlags::COLOR;
            let source = Surface::of(profile, &src, color, &from, layer);
            let target = Surface::of(profile, &dst, color, &to, layer);
            let (Some(source), Some(target)) = (source, target) else { return false };
            let Some(channels) = Channels::of(src.description.format) else { return false };
            let counted = if channels.is_float() { source.samples() } else { 1 };
            let weight = 1.0 / f32::from(u8::try_from(counted).unwrap_or(1));
            let start = |offset: vk::Offset3D| [offset.x, offset.y, offset.z].map(i32::unsigned_abs);
            let (from, to) = (start(region.src_offset), start(region.dst_offset));
            let extent = region.extent;
            (0..extent.depth).all(|z| {
                (0..extent.height).all(|y| {
                    (0..extent.width).all(|x| {
                        let place = |at: [u32; 3]| [at[0] + x, at[1] + y, at[2] + z];
                        let texel = if counted == 1 {
                            source.read(place(from), 0).map(|texel| texel.to_vec())
                        } else {
                            let samples = (0..counted).map(|sample| source.read(place(from), sample));
                            let weighed = samples.map(|texel| texel.map(|texel| (texel, weight)));
                            average(&channels, &channels, weighed)
                        };
                        texel.is_some_and(|texel| target.write(place(to), 0, &texel))
                    })
                })
            })
        })
    });
    each.collect()
}
