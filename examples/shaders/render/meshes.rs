//! Procedural meshes: a surface is a function from a square to points, and its normals follow from it.

use std::f32::consts::TAU;

use glam::{Vec2, Vec3, vec2, vec3};

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Vertex {
    position: Vec3,
    normal: Vec3,
    texture: Vec2,
}

impl Vertex {
    /// Returns the vertices in the device's layout.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> {
        let parts = [self.position.to_array(), self.normal.to_array()].into_iter().flatten();
        parts.chain(self.texture.to_array()).flat_map(f32::to_le_bytes)
    }
}

#[derive(Default)]
pub(crate) struct Mesh {
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) indices: Vec<u32>,
}

/// Repetitions of the texture in both directions.
type Repeats = [f32; 2];

impl Mesh {
    /// Tessellates a surface over the unit square into `across` × `along` cells. The tangents of its two directions and
    /// its outward normal must form a right-handed system.
    fn surface(across: u16, along: u16, repeats: Repeats, surface: impl Fn(f32, f32) -> Vec3) -> Self {
        const STEP: f32 = 1e-3;
        let mut mesh = Self::default();
        for j in 0..=along {
            for i in 0..=across {
                let (u, v) = (f32::from(i) / f32::from(across), f32::from(j) / f32::from(along));
                // A pole has no first direction, so it is taken slightly beside it.
                let beside = v.clamp(STEP, 1.0 - STEP);
                let first = surface(u + STEP, beside) - surface(u - STEP, beside);
                let second = surface(u, beside + STEP) - surface(u, beside - STEP);
                mesh.vertices.push(Vertex {
                    position: surface(u, v),
                    normal: first.cross(second).normalize(),
                    texture: vec2(u, v) * Vec2::from(repeats),
                });
            }
        }
        let row = u32::from(across) + 1;
        for j in 0..u32::from(along) {
            for i in 0..u32::from(across) {
                let at = j * row + i;
                mesh.indices.extend([at, at + 1, at + row, at + row, at + 1, at + row + 1]);
            }
        }
        mesh
    }

    fn append(&mut self, other: &Self) {
        let first = u32::try_from(self.vertices.len()).unwrap_or(u32::MAX);
        self.vertices.extend(&other.vertices);
        self.indices.extend(other.indices.iter().map(|index| index + first));
    }
}

/// A square ground with this half side.
pub(crate) fn plane(half: f32, repeats: f32) -> Mesh {
    Mesh::surface(1, 1, [repeats; 2], |u, v| vec3(u * 2.0 - 1.0, 0.0, 1.0 - v * 2.0) * half)
}

/// A sphere of radius 1.
pub(crate) fn sphere(cells: u16, repeats: Repeats) -> Mesh {
    Mesh::surface(cells * 2, cells, repeats, |u, v| {
        let ((east, north), (ring, up)) = ((u * TAU).sin_cos(), ((v - 0.5) * TAU / 2.0).sin_cos());
        vec3(north * up, ring, -east * up)
    })
}

/// A tube along a closed curve.
fn tube(cells: [u16; 2], repeats: Repeats, radius: f32, line: impl Fn(f32) -> Vec3) -> Mesh {
    Mesh::surface(cells[0], cells[1], repeats, |u, v| {
        let (centre, ahead) = (line(u), line(u + 0.01));
        let tangent = (ahead - centre).normalize();
        let side = tangent.cross(centre + ahead).normalize();
        let (sin, cos) = (-v * TAU).sin_cos();
        centre + (side * cos + tangent.cross(side) * sin) * radius
    })
}

pub(crate) fn torus(radius: f32, repeats: Repeats) -> Mesh {
    tube([96, 32], repeats, radius, |u| vec3((u * TAU).cos(), 0.0, (u * TAU).sin()))
}

/// A torus knot: three turns one way, two the other.
pub(crate) fn knot(cells: [u16; 2], radius: f32, repeats: Repeats) -> Mesh {
    tube(cells, repeats, radius, |u| {
        let (turn, wave) = ((u * 2.0 * TAU).sin_cos(), (u * 3.0 * TAU).sin_cos());
        let out = 0.68 + 0.32 * wave.1;
        vec3(out * turn.1, 0.40 * wave.0, out * turn.0)
    })
}

/// A box with these half sides and rounded edges. `texture` is the size of its texture.
pub(crate) fn block(half: Vec3, rounding: f32, texture: f32) -> Mesh {
    let inner = half - rounding;
    let mut all = Mesh::default();
    for axis in 0..3_usize {
        for sign in [-1.0_f32, 1.0] {
            let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
            // Fine cells at the rounded edges, one cell for the flat part.
            let along = |cell: f32, axis: usize| {
                let cell = cell * 9.0;
                let reach = half[axis];
                if cell <= 4.0 {
                    -reach + rounding * cell / 4.0
                } else {
                    reach - rounding * (9.0 - cell) / 4.0
                }
            };
            let mut face = Mesh::surface(9, 9, [1.0; 2], |u, v| {
                let mut flat = Vec3::ZERO;
                (flat[axis], flat[a], flat[b]) = (sign * half[axis], along(u, a) * sign, along(v, b));
                let core = flat.clamp(-inner, inner);
                core + (flat - core).normalize() * rounding
            });
            // Keeps textures upright on the sides.
            let [across, down] = if axis == 2 { [a, b] } else { [b, a] };
            for vertex in &mut face.vertices {
                vertex.texture = vec2(vertex.position[across], vertex.position[down]) / texture + 0.5;
            }
            all.append(&face);
        }
    }
    all
}
