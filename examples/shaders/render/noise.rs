//! Periodic noise for seamless textures.

/// Returns two numbers from 0 to 1 that depend only on the place and the seed.
pub(crate) fn hash(x: i32, y: i32, seed: u32) -> [f32; 2] {
    let mix = |salt: u32| {
        let bits = |number: i32| u32::from_le_bytes(number.to_le_bytes());
        let mut h = bits(x).wrapping_mul(0x9e37_79b1)
            ^ bits(y).wrapping_mul(0x85eb_ca77)
            ^ seed.wrapping_add(salt).wrapping_mul(0xc2b2_ae3d);
        h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
        h = (h ^ (h >> 12)).wrapping_mul(0x297a_2d39);
        h ^= h >> 15;
        let [_, _, low, high] = h.to_le_bytes();
        f32::from(u16::from_le_bytes([low, high])) / 65_535.0
    };
    [mix(1), mix(2)]
}

/// Returns the cell of a place, and the position in the cell.
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "cells are few, and `as` saturates"
)]
fn cell(x: f32) -> (i32, f32) {
    let floor = x.floor();
    (floor as i32, x - floor)
}

/// Returns gradient noise from about -1 to 1 that repeats after `period` cells; `x` and `y` are in periods.
pub(crate) fn gradient(x: f32, y: f32, period: i32, seed: u32) -> f32 {
    #[allow(clippy::as_conversions, reason = "periods are small")]
    let cells = period as f32;
    let ((i, fx), (j, fy)) = (cell(x * cells), cell(y * cells));
    let corner = |di: i32, dj: i32| {
        let [turn, _] = hash((i + di).rem_euclid(period), (j + dj).rem_euclid(period), seed);
        let (sin, cos) = (turn * std::f32::consts::TAU).sin_cos();
        let (dx, dy) = (if di == 0 { fx } else { fx - 1.0 }, if dj == 0 { fy } else { fy - 1.0 });
        sin * dx + cos * dy
    };
    let smooth = |t: f32| t * t * t * (t * (t * 6.0 - 15.0) + 10.0);
    let (sx, sy) = (smooth(fx), smooth(fy));
    let mix = |a: f32, b: f32, t: f32| a + (b - a) * t;
    1.5 * mix(mix(corner(0, 0), corner(1, 0), sx), mix(corner(0, 1), corner(1, 1), sx), sy)
}

/// Returns octaves of gradient noise, about -1 to 1.
pub(crate) fn clouds(x: f32, y: f32, period: i32, octaves: u32, seed: u32) -> f32 {
    let (mut sum, mut size, mut period) = (0.0, 0.5, period);
    for octave in 0..octaves {
        sum += size * gradient(x, y, period, seed + octave);
        (size, period) = (size * 0.5, period * 2);
    }
    sum
}

/// Returns the distances to the nearest and the second nearest of scattered points, one in each cell.
pub(crate) fn points(x: f32, y: f32, period: i32, seed: u32) -> [f32; 2] {
    #[allow(clippy::as_conversions, reason = "periods are small")]
    let cells = period as f32;
    let ((i, fx), (j, fy)) = (cell(x * cells), cell(y * cells));
    let mut nearest = [9.0_f32, 9.0];
    for (di, ox) in [(-1, -1.0_f32), (0, 0.0), (1, 1.0)] {
        for (dj, oy) in [(-1, -1.0_f32), (0, 0.0), (1, 1.0)] {
            let [px, py] = hash((i + di).rem_euclid(period), (j + dj).rem_euclid(period), seed);
            let distance = (ox + px - fx).hypot(oy + py - fy);
            if distance < nearest[0] {
                nearest = [distance, nearest[0]];
            } else if distance < nearest[1] {
                nearest[1] = distance;
            }
        }
    }
    nearest
}
