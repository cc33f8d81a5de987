//! The meaning of the bytes of a texel, for formats whose channels are whole bytes.

use ash::vk;

/// The channels of a format: which of red, green, blue and alpha comes first, and how each is written.
#[derive(Clone, Copy)]
pub(crate) struct Channels {
    order: &'static [usize],
    number: Number,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    Unorm8,
    /// Red, green and blue along the curve of sRGB; alpha as it is.
    Srgb8,
    Float32,
    Signed(usize),
    Unsigned(usize),
}

impl Channels {
    /// `None` for formats whose channels are not whole bytes, and for those with depth, stencil or several planes.
    pub(crate) fn of(format: vk::Format) -> Option<Self> {
        use Number::{Float32, Signed, Srgb8, Unorm8, Unsigned};
        use vk::Format as F;
        const RGBA: &[usize] = &[0, 1, 2, 3];
        let (order, number) = match format {
            F::R8_UNORM => (&RGBA[..1], Unorm8),
            F::R8G8_UNORM => (&RGBA[..2], Unorm8),
            F::R8G8B8_UNORM => (&RGBA[..3], Unorm8),
            F::R8G8B8A8_UNORM | F::A8B8G8R8_UNORM_PACK32 => (RGBA, Unorm8),
            F::B8G8R8_UNORM => (&[2, 1, 0][..], Unorm8),
            F::B8G8R8A8_UNORM => (&[2, 1, 0, 3][..], Unorm8),
            F::R8_SRGB => (&RGBA[..1], Srgb8),
            F::R8G8_SRGB => (&RGBA[..2], Srgb8),
            F::R8G8B8_SRGB => (&RGBA[..3], Srgb8),
            F::R8G8B8A8_SRGB | F::A8B8G8R8_SRGB_PACK32 => (RGBA, Srgb8),
            F::B8G8R8_SRGB => (&[2, 1, 0][..], Srgb8),
            F::B8G8R8A8_SRGB => (&[2, 1, 0, 3][..], Srgb8),
            F::R8_UINT => (&RGBA[..1], Unsigned(1)),
            F::R8G8_UINT => (&RGBA[..2], Unsigned(1)),
            F::R8G8B8A8_UINT => (RGBA, Unsigned(1)),
            F::R8_SINT => (&RGBA[..1], Signed(1)),
            F::R8G8_SINT => (&RGBA[..2], Signed(1)),
            F::R8G8B8A8_SINT => (RGBA, Signed(1)),
            F::R16_UINT => (&RGBA[..1], Unsigned(2)),
            F::R16G16_UINT => (&RGBA[..2], Unsigned(2)),
            F::R16G16B16A16_UINT => (RGBA, Unsigned(2)),
            F::R16_SINT => (&RGBA[..1], Signed(2)),
            F::R16G16_SINT => (&RGBA[..2], Signed(2)),
            F::R16G16B16A16_SINT => (RGBA, Signed(2)),
            F::R32_UINT => (&RGBA[..1], Unsigned(4)),
            F::R32G32_UINT => (&RGBA[..2], Unsigned(4)),
            F::R32G32B32_UINT => (&RGBA[..3], Unsigned(4)),
            F::R32G32B32A32_UINT => (RGBA, Unsigned(4)),
            F::R32_SINT => (&RGBA[..1], Signed(4)),
            F::R32G32_SINT => (&RGBA[..2], Signed(4)),
            F::R32G32B32_SINT => (&RGBA[..3], Signed(4)),
            F::R32G32B32A32_SINT => (RGBA, Signed(4)),
            F::R32_SFLOAT => (&RGBA[..1], Float32),
            F::R32G32_SFLOAT => (&RGBA[..2], Float32),
            F::R32G32B32_SFLOAT => (&RGBA[..3], Float32),
            F::R32G32B32A32_SFLOAT => (RGBA, Float32),
            _ => return None,
        };
        Some(Self { order, number })
    }

    pub(crate) fn is_signed(&self) -> bool {
        matches!(self.number, Number::Signed(_))
    }

    pub(crate) fn is_unsigned(&self) -> bool {
        matches!(self.number, Number::Unsigned(_))
    }

    /// Returns whether the channels can be averaged.
    pub(crate) fn is_float(&self) -> bool {
        !self.is_signed() && !self.is_unsigned()
    }

    /// The bytes of a texel of this color: numbers, or the bits of floats, as in `VkClearColorValue`.
    pub(crate) fn encode(&self, color: [u32; 4]) -> Vec<u8> {
        let channel = |&index: &usize| {
            let (bits, float) = (color[index].to_le_bytes(), f32::from_bits(color[index]));
            match self.number {
                Number::Unorm8 => vec![unorm8(float)],
                Number::Srgb8 if index < 3 => vec![unorm8(to_srgb(float))],
                Number::Srgb8 => vec![unorm8(float)],
                Number::Float32 => bits.to_vec(),
                Number::Signed(bytes) | Number::Unsigned(bytes) => bits[..bytes].to_vec(),
            }
        };
        self.order.iter().flat_map(channel).collect()
    }

    /// The color of a texel of floats. Channels that the format lacks are 0, and alpha is 1.
    pub(crate) fn decode(&self, texel: &[u8]) -> [f32; 4] {
        let mut color = [0.0, 0.0, 0.0, 1.0];
        for (position, &index) in self.order.iter().enumerate() {
            let byte = || texel.get(position).map_or(0.0, |byte| f32::from(*byte) / 255.0);
            color[index] = match self.number {
                Number::Srgb8 if index < 3 => from_srgb(byte()),
                Number::Unorm8 | Number::Srgb8 => byte(),
                Number::Float32 | Number::Signed(_) | Number::Unsigned(_) => {
                    let bytes = texel.get(position * 4..).and_then(|rest| rest.first_chunk());
                    bytes.map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
                }
            };
        }
        color
    }
}

/// Source: Khronos Data Format Specification, section 13.3.1.
fn to_srgb(linear: f32) -> f32 {
    if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

/// Source: Khronos Data Format Specification, section 13.3.2.
fn from_srgb(encoded: f32) -> f32 {
    if encoded <= 0.040_45 { encoded / 12.92 } else { ((encoded + 0.055) / 1.055).powf(2.4) }
}

/// A number from 0 to 1 as a byte, rounded to the nearest.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=255"
)]
fn unorm8(value: f32) -> u8 {
    // `clamp` keeps NaN, and the conversion makes it 0.
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_a_channel_comes_back() {
        for format in [vk::Format::B8G8R8A8_UNORM, vk::Format::R8G8B8A8_SRGB] {
            let channels = Channels::of(format).unwrap();
            for byte in 0..=u8::MAX {
                let texel = [byte, 255 - byte, byte / 2, byte];
                assert_eq!(channels.encode(channels.decode(&texel).map(f32::to_bits)), texel, "{format:?}");
            }
        }
    }

    #[test]
    fn channels_are_where_the_format_has_them() {
        let channels = Channels::of(vk::Format::B8G8R8_UNORM).unwrap();
        assert_eq!(channels.decode(&[255, 0, 51]), [0.2, 0.0, 1.0, 1.0]);
        // Half of the light is more than half of the byte.
        let channels = Channels::of(vk::Format::R8_SRGB).unwrap();
        assert_eq!(channels.encode([0.5_f32.to_bits(), 0, 0, 0]), [188]);
    }
}
