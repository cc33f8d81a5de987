//! Formats: how many bytes a block of texels has, and where its aspects are.

use ash::vk;

/// A plane of a format: blocks of texels in rows. Formats with one plane have one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plane {
    /// Bytes of a block.
    pub(crate) bytes: u64,
    /// Texels of a block, across and down.
    pub(crate) block: (u32, u32),
    /// How much smaller than the image the plane is, across and down.
    pub(crate) divisor: (u32, u32),
}

/// The position of an aspect in a texel block, and its size in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aspect {
    /// Index of the plane.
    pub(crate) plane: usize,
    /// First byte of the aspect within a block.
    pub(crate) first: u64,
    /// Bytes of the aspect within a block.
    pub(crate) bytes: u64,
    /// Bytes of the aspect in a buffer: more than `bytes` only for 24 bits of depth, which a buffer holds in 32.
    pub(crate) buffer_bytes: u64,
}

/// The facts about a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FormatInfo {
    planes: [Plane; 3],
    count: usize,
    depth_stencil: DepthStencil,
}

/// The aspects of a format beside color. Depth comes first in a texel, stencil after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DepthStencil {
    None,
    Depth { bytes: u64, buffer_bytes: u64 },
    Stencil,
    Both { depth: u64, stencil_at: u64, buffer_depth: u64 },
}

const WHOLE: (u32, u32) = (1, 1);

const fn plane(bytes: u64, divisor: (u32, u32)) -> Plane {
    Plane { bytes, block: WHOLE, divisor }
}

const fn single(bytes: u64, block: (u32, u32), depth_stencil: DepthStencil) -> FormatInfo {
    FormatInfo { planes: [Plane { bytes, block, divisor: WHOLE }; 3], count: 1, depth_stencil }
}

const fn color(bytes: u64) -> FormatInfo {
    single(bytes, WHOLE, DepthStencil::None)
}

const fn blocks(bytes: u64, width: u32, height: u32) -> FormatInfo {
    single(bytes, (width, height), DepthStencil::None)
}

/// Luma in full size, and the two chroma channels in a second plane or in two more.
const fn planar(bytes: u64, divisor: (u32, u32), planes: usize) -> FormatInfo {
    let chroma = if planes == 2 { plane(2 * bytes, divisor) } else { plane(bytes, divisor) };
    FormatInfo {
        planes: [plane(bytes, WHOLE), chroma, chroma],
        count: planes,
        depth_stencil: DepthStencil::None,
    }
}

/// The block sizes of the ASTC formats, in the order of their numbers: each has a linear and an sRGB format.
const ASTC: [(u32, u32); 14] = [
    (4, 4),
    (5, 4),
    (5, 5),
    (6, 5),
    (6, 6),
    (8, 5),
    (8, 6),
    (8, 8),
    (10, 5),
    (10, 6),
    (10, 8),
    (10, 10),
    (12, 10),
    (12, 12),
];

impl FormatInfo {
    /// The facts about a format; `None` for UNDEFINED and for formats that the driver does not have.
    pub(crate) fn of(format: vk::Format) -> Option<Self> {
        use DepthStencil::{Both, Depth, Stencil};
        // The core formats are numbered without gaps, in families of one texel size.
        Some(match format.as_raw() {
            1 | 9..=15 => color(1),
            2..=8 | 16..=22 | 70..=76 => color(2),
            23..=36 => color(3),
            37..=69 | 77..=83 | 98..=100 | 122..=123 => color(4),
            84..=90 => color(6),
            91..=97 | 101..=103 | 110..=112 => color(8),
            104..=106 => color(12),
            107..=109 | 113..=115 => color(16),
            116..=118 => color(24),
            119..=121 => color(32),
            124 => single(2, WHOLE, Depth { bytes: 2, buffer_bytes: 2 }),
            125 => single(4, WHOLE, Depth { bytes: 4, buffer_bytes: 4 }),
            126 => single(4, WHOLE, Depth { bytes: 4, buffer_bytes: 4 }),
            127 => single(1, WHOLE, Stencil),
            128 => single(4, WHOLE, Both { depth: 2, stencil_at: 2, buffer_depth: 2 }),
            129 => single(4, WHOLE, Both { depth: 3, stencil_at: 3, buffer_depth: 4 }),
            130 => single(8, WHOLE, Both { depth: 4, stencil_at: 4, buffer_depth: 4 }),
            131..=134 | 139..=140 | 147..=150 | 153..=154 => blocks(8, 4, 4),
            135..=138 | 141..=146 | 151..=152 | 155..=156 => blocks(16, 4, 4),
            raw @ 157..=184 => {
                let family = usize::try_from((raw - 157) / 2).ok()?;
                let (width, height) = *ASTC.get(family)?;
                blocks(16, width, height)
            }
            _ => return Self::of_extension(format),
        })
    }

    fn of_extension(format: vk::Format) -> Option<Self> {
        Some(match format {
            vk::Format::G8_B8_R8_3PLANE_420_UNORM => planar(1, (2, 2), 3),
            vk::Format::G8_B8R8_2PLANE_420_UNORM => planar(1, (2, 2), 2),
            vk::Format::G8_B8_R8_3PLANE_422_UNORM => planar(1, (2, 1), 3),
            vk::Format::G8_B8R8_2PLANE_422_UNORM => planar(1, (2, 1), 2),
            vk::Format::G8_B8_R8_3PLANE_444_UNORM => planar(1, (1, 1), 3),
            vk::Format::G10X6_B10X6R10X6_2PLANE_420_UNORM_3PACK16
            | vk::Format::G16_B16R16_2PLANE_420_UNORM => planar(2, (2, 2), 2),
            vk::Format::A4R4G4B4_UNORM_PACK16 | vk::Format::A4B4G4R4_UNORM_PACK16 => color(2),
            _ => return None,
        })
    }

    pub(crate) fn planes(&self) -> &[Plane] {
        &self.planes[..self.count]
    }

    /// Returns whether it has one plane, and one texel to a block.
    pub(crate) fn is_plain(&self) -> bool {
        self.count == 1 && self.planes[0].block == WHOLE
    }

    /// Returns whether the format has depth or stencil.
    pub(crate) fn is_depth_stencil(&self) -> bool {
        self.depth_stencil != DepthStencil::None
    }

    /// The aspects that the format has. A format of several planes has COLOR too, but no copy may name it.
    pub(crate) fn aspects(&self) -> vk::ImageAspectFlags {
        match self.depth_stencil {
            DepthStencil::Depth { .. } => vk::ImageAspectFlags::DEPTH,
            DepthStencil::Stencil => vk::ImageAspectFlags::STENCIL,
            DepthStencil::Both { .. } => vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL,
            DepthStencil::None => match self.count {
                1 => vk::ImageAspectFlags::COLOR,
                2 => vk::ImageAspectFlags::PLANE_0 | vk::ImageAspectFlags::PLANE_1,
                _ => {
                    vk::ImageAspectFlags::PLANE_0
                        | vk::ImageAspectFlags::PLANE_1
                        | vk::ImageAspectFlags::PLANE_2
                }
            },
        }
    }

    /// The position of one aspect. `None` if the format has no such aspect, or `aspect` is not exactly one.
    pub(crate) fn aspect(&self, aspect: vk::ImageAspectFlags) -> Option<Aspect> {
        if aspect.as_raw().count_ones() != 1 || !self.aspects().contains(aspect) {
            return None;
        }
        let of_plane = |plane: usize| {
            let bytes = self.planes[plane].bytes;
            Aspect { plane, first: 0, bytes, buffer_bytes: bytes }
        };
        Some(match (aspect, self.depth_stencil) {
            (vk::ImageAspectFlags::PLANE_1, _) => of_plane(1),
            (vk::ImageAspectFlags::PLANE_2, _) => of_plane(2),
            (vk::ImageAspectFlags::DEPTH, DepthStencil::Depth { bytes, buffer_bytes }) => {
                Aspect { plane: 0, first: 0, bytes, buffer_bytes }
            }
            (vk::ImageAspectFlags::DEPTH, DepthStencil::Both { depth, buffer_depth, .. }) => {
                Aspect { plane: 0, first: 0, bytes: depth, buffer_bytes: buffer_depth }
            }
            (vk::ImageAspectFlags::STENCIL, DepthStencil::Both { stencil_at, .. }) => {
                Aspect { plane: 0, first: stencil_at, bytes: 1, buffer_bytes: 1 }
            }
            _ => of_plane(0),
        })
    }
}
