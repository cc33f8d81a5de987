//! Procedural materials: colour, roughness, height and glow at each place of a periodic texture.

use crate::noise::{clouds, gradient, hash, points};

/// The material at one place. Colours are linear; everything else is from 0 to 1.
#[derive(Clone, Copy, Default)]
pub(crate) struct Texel {
    pub(crate) colour: [f32; 3],
    pub(crate) roughness: f32,
    pub(crate) height: f32,
    pub(crate) glow: f32,
}

/// A function of a place in the unit square.
pub(crate) type Surface = fn(f32, f32) -> Texel;

fn mix(a: [f32; 3], b: [f32; 3], t: f32) -> [f32; 3] {
    let t = t.clamp(0.0, 1.0);
    [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t]
}

fn step(from: f32, to: f32, x: f32) -> f32 {
    let t = ((x - from) / (to - from)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// Two by two polished tiles of dark and light stone, with joints.
pub(crate) fn tiles(u: f32, v: f32) -> Texel {
    let (dark, x, y) = ((u < 0.5) != (v < 0.5), (u * 2.0).fract(), (v * 2.0).fract());
    let joint = step(0.012, 0.02, x.min(y).min(1.0 - x).min(1.0 - y));
    let wave = clouds(u, v, 4, 6, 3);
    let vein = step(0.86, 1.0, 1.0 - (clouds(u + 0.06 * wave, v, 3, 5, 11)).abs() * 2.4);
    let stone = if dark {
        mix(mix([0.012, 0.014, 0.018], [0.035, 0.036, 0.042], 0.5 + wave), [0.24, 0.20, 0.13], vein * 0.45)
    } else {
        mix(mix([0.44, 0.41, 0.36], [0.62, 0.59, 0.54], 0.5 + wave), [0.24, 0.22, 0.20], vein * 0.5)
    };
    let wear = 0.13 + 0.10 * step(-0.1, 0.6, clouds(u, v, 6, 4, 29));
    Texel {
        colour: mix([0.05, 0.045, 0.04], stone, joint),
        roughness: 0.85 + (wear - 0.85) * joint,
        height: joint,
        glow: 0.0,
    }
}

pub(crate) fn bricks(u: f32, v: f32) -> Texel {
    let row = (v * 8.0).floor();
    let shift = if row % 2.0 == 0.0 { 0.0 } else { 0.125 };
    let (along, y) = ((u + shift).fract() * 4.0, (v * 8.0).fract());
    let x = along.fract();
    #[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "32 bricks")]
    let [tone, darkness] = hash(along.floor() as i32, row as i32, 5);
    let rough = clouds(u, v, 16, 4, 8);
    let edge = (x.min(1.0 - x) * 2.0).min(y.min(1.0 - y)) + 0.03 * rough;
    let brick = step(0.05, 0.12, edge);
    let clay = mix([0.36, 0.105, 0.05], [0.50, 0.21, 0.11], tone);
    let clay = mix(clay, [0.12, 0.05, 0.04], 0.5 * darkness + 0.4 * rough);
    Texel {
        colour: mix([0.42, 0.38, 0.33], clay, brick),
        roughness: 0.85 - 0.12 * brick,
        height: brick * (0.75 + 0.2 * tone) + 0.12 * rough,
        glow: 0.0,
    }
}

/// Wooden boards in a wooden frame.
pub(crate) fn crate_wood(u: f32, v: f32) -> Texel {
    let rim = u.min(v).min(1.0 - u).min(1.0 - v);
    let framed = rim < 0.13;
    let upright = framed && u.min(1.0 - u) < 0.13;
    let (x, y) = if upright { (u, v) } else { (v, u) };
    let board = if framed { 7.0 } else { (x * 6.0).floor() };
    let grain = (x * 30.0 + board * 3.7 + 2.2 * gradient(y * 0.5 + board * 0.13, x, 4, 17)).sin();
    let fibre = gradient(y * 0.25, x, 64, 3);
    let gap = if framed { 1.0 } else { step(0.0, 0.05, (x * 6.0).fract().min(1.0 - (x * 6.0).fract())) };
    let seam = step(0.0, 0.012, (rim - 0.13).abs());
    let nail = (u.min(1.0 - u) - 0.065).hypot(v.min(1.0 - v) - 0.065);
    let iron = 1.0 - step(0.016, 0.022, nail);
    let wood = mix([0.36, 0.19, 0.075], [0.19, 0.085, 0.03], 0.5 + 0.32 * grain + 0.35 * fibre);
    let wood = if framed { mix(wood, [0.45, 0.26, 0.11], 0.35) } else { wood };
    Texel {
        colour: mix(mix([0.03, 0.016, 0.008], wood, gap * seam), [0.10, 0.10, 0.11], iron),
        roughness: 0.68 + 0.12 * fibre - 0.3 * iron,
        height: gap * seam * 0.5 + if framed { 0.4 } else { 0.0 } + 0.05 * grain + 0.15 * iron,
        glow: 0.0,
    }
}

pub(crate) fn marble(u: f32, v: f32) -> Texel {
    let bend = clouds(u, v, 3, 6, 40);
    let vein = |width: f32, seed: u32| {
        1.0 - step(0.0, width, (clouds(u + 0.12 * bend, v + 0.1 * bend, 2, 5, seed)).abs())
    };
    let dark = 0.75 * vein(0.06, 44) + 0.35 * vein(0.22, 47);
    let gold = vein(0.016, 51);
    let white = mix([0.66, 0.63, 0.58], [0.50, 0.50, 0.52], 0.5 + bend);
    let stone = mix(white, [0.11, 0.15, 0.15], dark);
    Texel { colour: mix(stone, [0.75, 0.48, 0.14], gold), roughness: 0.16, height: 0.5, glow: 0.0 }
}

/// Hammered metal.
pub(crate) fn hammered(u: f32, v: f32) -> Texel {
    let [near, next] = points(u, v, 12, 70);
    let tarnish = step(-0.2, 0.5, clouds(u, v, 4, 5, 72));
    Texel {
        colour: mix([1.0, 0.70, 0.30], [0.93, 0.55, 0.20], tarnish * 0.6),
        roughness: 0.16 + 0.10 * tarnish + 0.08 * step(0.0, 0.1, 0.1 - (next - near)),
        height: (near * near).min(1.0),
        glow: 0.0,
    }
}

/// Rock with a hot core below its crust.
pub(crate) fn ember(u: f32, v: f32) -> Texel {
    let bend = clouds(u, v, 6, 5, 80) * 0.07;
    let [near, next] = points(u + bend, v - bend, 7, 83);
    let crack = 1.0 - step(0.02, 0.16, next - near);
    let ash = 0.5 + 0.5 * clouds(u, v, 10, 5, 87);
    let heat = step(-0.45, 0.35, clouds(u, v, 3, 3, 90));
    Texel {
        colour: mix([0.012, 0.010, 0.010], [0.075, 0.062, 0.058], ash),
        roughness: 0.9,
        height: 0.75 * step(0.0, 0.3, next - near) + 0.3 * ash,
        glow: crack * crack * (0.25 + 0.75 * heat),
    }
}

/// Glaze: bands of turquoise and cream, finely cracked.
pub(crate) fn glaze(u: f32, v: f32) -> Texel {
    let bend = clouds(u, v, 4, 4, 100) * 0.02;
    let [near, next] = points(u, v, 20, 103);
    let crack = 1.0 - step(0.0, 0.05, next - near);
    let stripe = ((v + bend) * 2.0).rem_euclid(1.0);
    let band = step(0.42, 0.46, stripe) * (1.0 - step(0.92, 0.96, stripe));
    let turquoise = mix([0.010, 0.19, 0.22], [0.02, 0.33, 0.33], 0.5 + clouds(u, v, 8, 4, 105));
    let glaze = mix([0.72, 0.64, 0.50], turquoise, band);
    Texel {
        colour: mix(glaze, [0.08, 0.07, 0.05], crack * 0.35),
        roughness: 0.12,
        height: 1.0 - crack,
        glow: 0.0,
    }
}

/// Rough stone for plinths.
pub(crate) fn granite(u: f32, v: f32) -> Texel {
    let (coarse, fine) = (clouds(u, v, 8, 5, 120), gradient(u, v, 96, 124));
    let speck = step(0.35, 0.6, gradient(u, v, 64, 127));
    let stone = mix([0.17, 0.16, 0.155], [0.34, 0.31, 0.28], 0.5 + 0.8 * coarse + 0.3 * fine);
    Texel {
        colour: mix(stone, [0.02, 0.02, 0.022], speck * 0.8),
        roughness: 0.55 + 0.2 * fine,
        height: 0.5 + 0.2 * fine + 0.3 * coarse,
        glow: 0.0,
    }
}

/// Evening clouds for the sky: their amount in the height, their shade in the roughness.
pub(crate) fn sky(u: f32, v: f32) -> Texel {
    let bend = clouds(u, v, 4, 4, 140) * 0.12;
    let cover = step(0.0, 0.55, clouds(u + bend, v, 3, 7, 143) + 0.02);
    let shade = 0.5 + clouds(u + 0.02, v + 0.03, 3, 6, 143);
    Texel { colour: [cover, shade.clamp(0.0, 1.0), 0.0], roughness: 1.0, height: 0.0, glow: 0.0 }
}
