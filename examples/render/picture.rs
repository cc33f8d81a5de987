//! How far two pictures are apart.

use std::fmt;

use image::RgbImage;

use crate::support::Result;

pub(crate) struct Difference {
    /// Of red, green and blue, in steps of 256.
    pub(crate) mean: [f64; 3],
    /// Texels that differ in some colour by more than [`FAR`] steps, as a share of all.
    pub(crate) far: f64,
}

/// Steps of 256 that are seen at once.
const FAR: u8 = 16;

impl Difference {
    pub(crate) fn new(one: &RgbImage, other: &RgbImage) -> Result<Self> {
        let extents = (one.dimensions(), other.dimensions());
        if extents.0 != extents.1 {
            return Err(format!("one picture has {:?} texels, the other {:?}", extents.0, extents.1).into());
        }
        let (mut sums, mut far) = ([0_u32; 3], 0_u32);
        for (one, other) in one.pixels().zip(other.pixels()) {
            let apart = [0, 1, 2].map(|at: usize| one[at].abs_diff(other[at]));
            for (sum, apart) in sums.iter_mut().zip(apart) {
                *sum += u32::from(apart);
            }
            far += u32::from(apart.iter().any(|&apart| apart > FAR));
        }
        let texels = f64::from(one.width() * one.height());
        Ok(Self { mean: sums.map(|sum| f64::from(sum) / texels), far: f64::from(far) / texels })
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
