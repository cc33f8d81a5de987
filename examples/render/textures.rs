//! Textures out of surfaces: texels with all their mip levels, as bytes for the device.

use ash::vk;

use crate::surfaces::{Surface, Texel};

/// Two images that belong together, side by side in arrays of levels, the largest first.
pub(crate) struct Texture {
    pub(crate) name: &'static str,
    pub(crate) side: u16,
    /// Colour, encoded as sRGB, and roughness.
    pub(crate) colour: Vec<Vec<u8>>,
    /// Normal, and glow.
    pub(crate) normal: Vec<Vec<u8>>,
}

pub(crate) const COLOUR: vk::Format = vk::Format::R8G8B8A8_SRGB;
pub(crate) const NORMAL: vk::Format = vk::Format::R8G8B8A8_UNORM;

type Grid = Vec<[f32; 4]>;

impl Texture {
    /// `bumps` says how steep the heights are.
    pub(crate) fn new(name: &'static str, side: u16, bumps: f32, surface: Surface) -> Self {
        let texels: Vec<Texel> = (0..side)
            .flat_map(|y| (0..side).map(move |x| (x, y)))
            .map(|(x, y)| {
                surface((f32::from(x) + 0.5) / f32::from(side), (f32::from(y) + 0.5) / f32::from(side))
            })
            .collect();
        let colour = texels.iter().map(|t| [t.colour[0], t.colour[1], t.colour[2], t.roughness]).collect();
        let width = usize::from(side);
        let height = |x: usize, y: usize| texels[y % width * width + x % width].height;
        let normal = (0..width * width).map(|at| {
            let (x, y) = (at % width, at / width);
            let slope =
                [height(x + width - 1, y) - height(x + 1, y), height(x, y + width - 1) - height(x, y + 1)];
            let [a, b] = slope.map(|slope| slope * bumps * f32::from(side) / 512.0);
            let length = (a * a + b * b + 1.0).sqrt();
            [a / length, b / length, 1.0 / length, texels[at].glow]
        });
        let normal = normal.collect();
        Self {
            name,
            side,
            colour: levels(colour, width, |[r, g, b, a]| [encode(r), encode(g), encode(b), a].map(byte)),
            normal: levels(normal, width, |[x, y, z, glow]| {
                let length = (x * x + y * y + z * z).sqrt().max(1e-6);
                let [x, y, z] = [x, y, z].map(|part| byte(part / length * 0.5 + 0.5));
                [x, y, z, byte(glow)]
            }),
        }
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
            .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST)
    }
}

/// Each level is the one before, four texels in one. Averages are taken before anything is encoded.
fn levels(mut grid: Grid, mut width: usize, encode: impl Fn([f32; 4]) -> [u8; 4]) -> Vec<Vec<u8>> {
    let mut levels = Vec::new();
    loop {
        levels.push(grid.iter().flat_map(|&texel| encode(texel)).collect());
        if width == 1 {
            return levels;
        }
        let half = width / 2;
        let average = |at: usize| {
            let corner = at / half * 2 * width + at % half * 2;
            let four = [corner, corner + 1, corner + width, corner + width + 1].map(|at| grid[at]);
            [0, 1, 2, 3].map(|part: usize| four.iter().map(|texel| texel[part]).sum::<f32>() / 4.0)
        };
        grid = (0..half * half).map(average).collect();
        width = half;
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
