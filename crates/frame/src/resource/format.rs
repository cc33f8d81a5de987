//! Memory layout of formats in buffers.

use ash::vk;

/// The memory layout of an aspect in a buffer: blocks of texels with a fixed number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FormatLayout {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Width of a block in texels.
    pub block_width: u32,
    /// Height of a block in texels.
    pub block_height: u32,
}

impl FormatLayout {
    const fn texel(bytes: u64) -> Self {
        Self { block_bytes: bytes, block_width: 1, block_height: 1 }
    }

    const fn block(bytes: u64, width: u32, height: u32) -> Self {
        Self { block_bytes: bytes, block_width: width, block_height: height }
    }

    /// Returns the number of blocks in a row of `width` texels, and of block rows in `height` rows.
    #[must_use]
    pub fn blocks(&self, width: u32, height: u32) -> (u32, u32) {
        (width.div_ceil(self.block_width), height.div_ceil(self.block_height))
    }

    /// Returns the bytes of a tightly packed row of blocks.
    #[must_use]
    pub fn row_bytes(&self, width: u32) -> u64 {
        u64::from(width.div_ceil(self.block_width)) * self.block_bytes
    }
}

/// Block sizes of ASTC, in the order of the formats. The simulated driver has separate tables, so that tests find
/// errors in either.
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

/// Returns the aspects of a format with separate states. Multi-planar formats have the color aspect.
///
/// ```
/// use ash::vk;
/// let aspects = sublet_frame::format_aspects(vk::Format::D24_UNORM_S8_UINT);
/// assert_eq!(aspects, vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL);
/// ```
#[must_use]
pub fn format_aspects(format: vk::Format) -> vk::ImageAspectFlags {
    let (depth, stencil) = (vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL);
    match format {
        vk::Format::D16_UNORM | vk::Format::X8_D24_UNORM_PACK32 | vk::Format::D32_SFLOAT => depth,
        vk::Format::S8_UINT => stencil,
        vk::Format::D16_UNORM_S8_UINT | vk::Format::D24_UNORM_S8_UINT | vk::Format::D32_SFLOAT_S8_UINT => {
            depth | stencil
        }
        _ => vk::ImageAspectFlags::COLOR,
    }
}

/// Returns true if shaders see the texels of a color format as integers.
pub(crate) fn is_integer(format: vk::Format) -> bool {
    matches!(
        format.as_raw(),
        13 | 14
            | 20
            | 21
            | 27
            | 28
            | 34
            | 35
            | 41
            | 42
            | 48
            | 49
            | 55
            | 56
            | 62
            | 63
            | 68
            | 69
            | 74
            | 75
            | 81
            | 82
            | 88
            | 89
            | 95
            | 96
            | 98
            | 99
            | 101
            | 102
            | 104
            | 105
            | 107
            | 108
            | 110
            | 111
            | 113
            | 114
            | 116
            | 117
            | 119
            | 120
    )
}

/// Returns the memory layout of one aspect of a format in copies between buffers and images. `None` for multi-planar
/// and unknown formats.
///
/// Source: the Vulkan specification, "Compatible Formats", and "Copying Data Between Buffers and Images" for depth and
/// stencil.
///
/// ```
/// use ash::vk;
/// let layout = sublet_frame::format_layout(vk::Format::BC7_SRGB_BLOCK, vk::ImageAspectFlags::COLOR).unwrap();
/// assert_eq!((layout.row_bytes(10), layout.blocks(10, 4)), (48, (3, 1)));
/// ```
#[must_use]
pub fn format_layout(format: vk::Format, aspect: vk::ImageAspectFlags) -> Option<FormatLayout> {
    if !format_aspects(format).contains(aspect) || aspect.as_raw().count_ones() != 1 {
        return None;
    }
    if aspect == vk::ImageAspectFlags::STENCIL {
        return Some(FormatLayout::texel(1));
    }
    let astc = |number: i32| {
        let block = usize::try_from(number).ok().and_then(|at| ASTC.get(at));
        block.map(|&(width, height)| FormatLayout::block(16, width, height))
    };
    Some(match format.as_raw() {
        1 | 9..=15 | 127 => FormatLayout::texel(1),
        2..=8 | 16..=22 | 70..=76 | 124 | 128 | 1_000_340_000 | 1_000_340_001 => FormatLayout::texel(2),
        23..=36 => FormatLayout::texel(3),
        37..=69 | 77..=83 | 98..=100 | 122 | 123 | 125 | 126 | 129 | 130 => FormatLayout::texel(4),
        84..=90 => FormatLayout::texel(6),
        91..=97 | 101..=103 | 110..=112 => FormatLayout::texel(8),
        104..=106 => FormatLayout::texel(12),
        107..=109 | 113..=115 => FormatLayout::texel(16),
        116..=118 => FormatLayout::texel(24),
        119..=121 => FormatLayout::texel(32),
        131..=134 | 139 | 140 | 147..=150 | 153 | 154 => FormatLayout::block(8, 4, 4),
        135..=138 | 141..=146 | 151 | 152 | 155 | 156 => FormatLayout::block(16, 4, 4),
        number @ 157..=184 => astc((number - 157) / 2)?,
        number @ 1_000_066_000..=1_000_066_013 => astc(number - 1_000_066_000)?,
        _ => return None,
    })
}

/// Returns the planes of a multi-planar format, and no aspects for others.
pub(super) fn planes(format: vk::Format) -> vk::ImageAspectFlags {
    let two = vk::ImageAspectFlags::PLANE_0 | vk::ImageAspectFlags::PLANE_1;
    match format.as_raw() {
        // In each of these groups the second and the fourth format have two planes.
        number @ (1_000_156_002..=1_000_156_006
        | 1_000_156_012..=1_000_156_016
        | 1_000_156_022..=1_000_156_026
        | 1_000_156_029..=1_000_156_033) => {
            let first = match number {
                1_000_156_029.. => 1_000_156_029,
                1_000_156_022.. => 1_000_156_022,
                1_000_156_012.. => 1_000_156_012,
                _ => 1_000_156_002,
            };
            if matches!(number - first, 1 | 3) { two } else { two | vk::ImageAspectFlags::PLANE_2 }
        }
        1_000_330_000..=1_000_330_003 => two,
        _ => vk::ImageAspectFlags::empty(),
    }
}

/// Returns true if a color view of the format needs a sampler conversion.
///
/// Source: the Vulkan specification, "Formats Requiring Sampler Y′CBCR Conversion".
pub(super) fn is_converted(format: vk::Format) -> bool {
    let packed = [0, 1, 10, 11, 20, 21, 27, 28].map(|number| 1_000_156_000 + number);
    !planes(format).is_empty() || packed.contains(&format.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;

    /// Derives the block size from the name of a format: its bits, its packed size, or its block.
    fn bytes_by_name(name: &str) -> Option<(u64, u32, u32)> {
        if let Some(rest) = name.strip_prefix("ASTC_") {
            let (width, rest) = rest.split_once('X')?;
            let height = rest.split('_').next()?;
            return Some((16, width.parse().ok()?, height.parse().ok()?));
        }
        if name.contains("_BLOCK") {
            let small = ["BC1", "BC4", "ETC2_R8G8B8_", "ETC2_R8G8B8A1", "EAC_R11_"];
            return Some((if small.iter().any(|start| name.starts_with(start)) { 8 } else { 16 }, 4, 4));
        }
        let bits = name.split('_').next()?.split(|c: char| !c.is_ascii_digit());
        let bits: u64 = bits.filter_map(|number| number.parse::<u64>().ok()).sum();
        Some(match name {
            "E5B9G9R9_UFLOAT_PACK32" => (4, 1, 1),
            _ => (bits / 8, 1, 1),
        })
    }

    #[test]
    fn layouts_match_format_names() {
        let mut seen = 0;
        let astc = 1_000_066_000..=1_000_066_013;
        for raw in (1..=123).chain(131..=184).chain(astc).chain([1_000_340_000, 1_000_340_001]) {
            let format = vk::Format::from_raw(raw);
            let name = format!("{format:?}");
            let layout = format_layout(format, COLOR).unwrap_or_else(|| panic!("{name} is not known"));
            let found = (layout.block_bytes, layout.block_width, layout.block_height);
            assert_eq!(Some(found), bytes_by_name(&name), "{name}");
            seen += 1;
        }
        assert_eq!(seen, 123 + 54 + 14 + 2);
    }

    #[test]
    fn integer_formats_match_their_names() {
        for format in (1..=123).chain(131..=184).map(vk::Format::from_raw) {
            let name = format!("{format:?}");
            assert_eq!(is_integer(format), name.contains("_UINT") || name.contains("_SINT"), "{name}");
        }
    }

    #[test]
    fn planes_and_conversions_match_format_names() {
        let mut seen = 0;
        for raw in (1..=184).chain(1_000_156_000..=1_000_156_033).chain(1_000_330_000..=1_000_330_003) {
            let format = vk::Format::from_raw(raw);
            let name = format!("{format:?}");
            let count = (2..=3).find(|count| name.contains(&format!("_{count}PLANE_"))).unwrap_or(0);
            assert_eq!(planes(format).as_raw().count_ones(), count, "{name}");
            assert_eq!(is_converted(format), count > 0 || name.contains("_422_"), "{name}");
            seen += count;
        }
        assert_eq!(seen, 4 * (3 * 3 + 2 * 2) + 4 * 2);
    }

    #[test]
    fn depth_and_stencil_are_copied_alone() {
        let (depth, stencil) = (vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL);
        let bytes = |format, aspect| format_layout(format, aspect).map(|layout| layout.block_bytes);
        assert_eq!(bytes(vk::Format::D16_UNORM_S8_UINT, depth), Some(2));
        assert_eq!(bytes(vk::Format::D24_UNORM_S8_UINT, depth), Some(4));
        assert_eq!(bytes(vk::Format::D32_SFLOAT_S8_UINT, depth), Some(4));
        assert_eq!(bytes(vk::Format::D32_SFLOAT_S8_UINT, stencil), Some(1));
        assert_eq!(bytes(vk::Format::D32_SFLOAT_S8_UINT, depth | stencil), None);
        assert_eq!(bytes(vk::Format::D32_SFLOAT, stencil), None);
        assert_eq!(bytes(vk::Format::R8G8B8A8_UNORM, depth), None);
        assert_eq!(bytes(vk::Format::G8_B8R8_2PLANE_420_UNORM, COLOR), None);
    }
}
