//! As much of vectors and matrices as the scene needs. Right-handed, y is up; clip space is WebGPU's, with depth from 0
//! to 1.

pub(crate) type Vec3 = [f32; 3];

pub(crate) fn add(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn scale(a: Vec3, by: f32) -> Vec3 {
    a.map(|part| part * by)
}

pub(crate) fn sub(a: Vec3, b: Vec3) -> Vec3 {
    add(a, scale(b, -1.0))
}

pub(crate) fn dot(a: Vec3, b: Vec3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn normalize(a: Vec3) -> Vec3 {
    scale(a, dot(a, a).sqrt().max(1e-12).recip())
}

pub(crate) fn with(a: Vec3, last: f32) -> [f32; 4] {
    [a[0], a[1], a[2], last]
}

/// Columns, as the shaders have them.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Mat4(pub(crate) [[f32; 4]; 4]);

impl Mat4 {
    pub(crate) fn scaling(by: Vec3) -> Self {
        let [x, y, z] = by;
        Self([[x, 0.0, 0.0, 0.0], [0.0, y, 0.0, 0.0], [0.0, 0.0, z, 0.0], [0.0, 0.0, 0.0, 1.0]])
    }

    pub(crate) fn translation(by: Vec3) -> Self {
        let mut made = Self::scaling([1.0; 3]);
        made.0[3] = with(by, 1.0);
        made
    }

    /// A turn about an axis of length 1.
    pub(crate) fn rotation(axis: Vec3, angle: f32) -> Self {
        let (sin, cos) = angle.sin_cos();
        let column = |at: usize| {
            let mut unit = [0.0; 3];
            unit[at] = 1.0;
            let turned = add(scale(unit, cos), scale(cross(axis, unit), sin));
            with(add(turned, scale(axis, dot(axis, unit) * (1.0 - cos))), 0.0)
        };
        Self([column(0), column(1), column(2), [0.0, 0.0, 0.0, 1.0]])
    }

    /// First `other`, then this.
    pub(crate) fn then(self, other: Self) -> Self {
        let times = |v: [f32; 4]| {
            let mut sum = [0.0; 4];
            for (column, by) in self.0.iter().zip(v) {
                for (sum, part) in sum.iter_mut().zip(column) {
                    *sum += part * by;
                }
            }
            sum
        };
        Self(other.0.map(times))
    }

    /// The world as seen from `eye`, which looks along `forward`, with its sides.
    pub(crate) fn view(eye: Vec3, [right, up, forward]: [Vec3; 3]) -> Self {
        let row = |at: usize| [right[at], up[at], -forward[at], 0.0];
        let moved = [-dot(right, eye), -dot(up, eye), dot(forward, eye), 1.0];
        Self([row(0), row(1), row(2), moved])
    }

    /// `tangent` is that of half the angle of sight, upright.
    pub(crate) fn perspective(tangent: f32, aspect: f32, near: f32, far: f32) -> Self {
        let depth = far / (near - far);
        Self([
            [1.0 / (tangent * aspect), 0.0, 0.0, 0.0],
            [0.0, 1.0 / tangent, 0.0, 0.0],
            [0.0, 0.0, depth, -1.0],
            [0.0, 0.0, near * depth, 0.0],
        ])
    }

    /// A box about the origin of the view's axis.
    pub(crate) fn orthographic(half: f32, near: f32, far: f32) -> Self {
        let depth = 1.0 / (near - far);
        Self([
            [1.0 / half, 0.0, 0.0, 0.0],
            [0.0, 1.0 / half, 0.0, 0.0],
            [0.0, 0.0, depth, 0.0],
            [0.0, 0.0, near * depth, 1.0],
        ])
    }
}

/// Right, up and forward of a camera at `eye` that looks at `target`.
pub(crate) fn sides(eye: Vec3, target: Vec3) -> [Vec3; 3] {
    let forward = normalize(sub(target, eye));
    let right = normalize(cross(forward, [0.0, 1.0, 0.0]));
    [right, cross(right, forward), forward]
}
