//! A picture on the host, as PNG, and how far two of them are apart.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use crate::support::Result;

/// Four bytes a texel, the last of which says nothing.
pub(crate) struct Picture {
    pub(crate) extent: [u16; 2],
    pub(crate) texels: Vec<u8>,
}

/// How far two pictures are apart.
pub(crate) struct Difference {
    /// Of red, green and blue, in steps of 256.
    pub(crate) mean: [f64; 3],
    /// Texels that differ in some colour by more than [`FAR`] steps, as a share of all.
    pub(crate) far: f64,
}

/// Steps of 256 that are seen at once.
const FAR: u8 = 16;

impl Picture {
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let file = BufWriter::new(File::create(path)?);
        let mut encoder = png::Encoder::new(file, self.extent[0].into(), self.extent[1].into());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        let colours: Vec<u8> = self.texels.chunks_exact(4).flat_map(|texel| &texel[..3]).copied().collect();
        encoder.write_header()?.write_image_data(&colours)?;
        Ok(())
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let mut reader = png::Decoder::new(BufReader::new(File::open(path)?)).read_info()?;
        let mut colours = vec![0; reader.output_buffer_size().ok_or("the picture is too large")?];
        let info = reader.next_frame(&mut colours)?;
        if info.color_type != png::ColorType::Rgb || info.bit_depth != png::BitDepth::Eight {
            return Err("the picture is not of three colours with eight bits each".into());
        }
        let texels = colours.chunks_exact(3).flat_map(|texel| [texel[0], texel[1], texel[2], 255]).collect();
        Ok(Self { extent: [u16::try_from(info.width)?, u16::try_from(info.height)?], texels })
    }

    /// Half as wide and as high: each texel is the mean of four.
    pub(crate) fn half(&self) -> Self {
        let extent = self.extent.map(|side| side / 2);
        let [width, height] = extent.map(usize::from);
        let row = usize::from(self.extent[0]) * 4;
        let mut texels = Vec::with_capacity(width * height * 4);
        for y in 0..height {
            for x in 0..width * 4 {
                let at = y * 2 * row + x / 4 * 8 + x % 4;
                let sum: u16 =
                    [at, at + 4, at + row, at + row + 4].map(|at| u16::from(self.texels[at])).iter().sum();
                texels.push(u8::try_from((sum + 2) / 4).unwrap_or(u8::MAX));
            }
        }
        Self { extent, texels }
    }

    pub(crate) fn difference(&self, other: &Self) -> Result<Difference> {
        if self.extent != other.extent {
            return Err(
                format!("one picture has {:?} texels, the other {:?}", self.extent, other.extent).into()
            );
        }
        let (mut sums, mut far) = ([0_u32; 3], 0_u32);
        for (one, other) in self.texels.chunks_exact(4).zip(other.texels.chunks_exact(4)) {
            let apart = [0, 1, 2].map(|at: usize| one[at].abs_diff(other[at]));
            for (sum, apart) in sums.iter_mut().zip(apart) {
                *sum += u32::from(apart);
            }
            far += u32::from(apart.iter().any(|&apart| apart > FAR));
        }
        let texels = f64::from(u32::from(self.extent[0]) * u32::from(self.extent[1]));
        Ok(Difference { mean: sums.map(|sum| f64::from(sum) / texels), far: f64::from(far) / texels })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.mean;
        write!(
            f,
            "red {red:.2}, green {green:.2}, blue {blue:.2} steps of 256 in the mean, and {:.2} % of the texels by more than {FAR} steps",
            self.far * 100.0
        )
    }
}
