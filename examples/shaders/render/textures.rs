//! Textures from surfaces: the texels of the largest mip level. The device generates the others.

use ash::vk;
use glam::vec2;

use crate::surfaces::{Surface, Texel};

/// Two images of one material.
pub(crate) struct Texture {
    pub(crate) name: &'static str,
    pub(crate) side: u16,
    /// Colour in sRGB, and roughness.
    pub(crate) colour: Vec<u8>,
    /// Normal, and glow.
    pub(crate) normal: Vec<u8>,
}

pub(crate) const COLOUR: vk::Format = vk::Format::R8G8B8A8_SRGB;
pub(crate) const NORMAL: vk::Format = vk::Format::R8G8B8A8_UNORM;

impl Texture {
    /// `bumps` is the steepness of the heights.
    pub(crate) fn new(name: &'static str, side: u16, bumps: f32, surface: Surface) -> Self {
        let texels: Vec<Texel> = (0..side)
            .flat_map(|y| (0..side).map(move |x| (x, y)))
            .map(|(x, y)| {
                surface((f32::from(x) + 0.5) / f32::from(side), (f32::from(y) + 0.5) / f32::from(side))
            })
            .collect();
        let width = usize::from(side);
        let height = |x: usize, y: usize| texels[y % width * width + x % width].height;
        let normal = |at: usize| {
            let (x, y) = (at % width, at / width);
            let steep = bumps * f32::from(side) / 512.0;
            let slope = vec2(
                height(x + width - 1, y) - height(x + 1, y),
                height(x, y + width - 1) - height(x, y + 1),
            );
            let normal = (slope * steep).extend(1.0).normalize() * 0.5 + 0.5;
            normal.extend(texels[at].glow).to_array().map(byte)
        };
        let colour = |texel: &Texel| {
            let [r, g, b] = texel.colour.map(encode);
            [r, g, b, texel.roughness].map(byte)
        };
        let colour = texels.iter().flat_map(colour).collect();
        Self { name, side, colour, normal: (0..texels.len()).flat_map(normal).collect() }
    }

    /// The create-info of either image.
    pub(crate) fn image_info(&self, format: vk::Format) -> vk::ImageCreateInfo<'static> {
        let side = u32::from(self.side);
        vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(format)
            .extent(vk::Extent3D { width: side, height: side, depth: 1 })
            .mip_levels(side.ilog2() + 1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            // Each mip level is generated from the previous one.
            .usage(
                vk::ImageUsageFlags::SAMPLED
                    | vk::ImageUsageFlags::TRANSFER_DST
                    | vk::ImageUsageFlags::TRANSFER_SRC,
            )
    }
}

fn encode(linear: f32) -> f32 {
    if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, which is what is wanted"
)]
fn byte(value: f32) -> u8 {
    (value * 255.0 + 0.5) as u8
}
