//! The scene: meshes, textures, and the objects that use them.

use glam::{Mat4, Vec3, Vec4, vec3, vec4};

use crate::meshes::{self, Mesh};
use crate::surfaces;
use crate::textures::Texture;

/// The constants of an object's shader. Matches `Object` in `scene.wgsl`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ObjectData {
    pub(crate) model: Mat4,
    /// Tint, and metallic factor.
    pub(crate) tint: Vec4,
    /// Glow intensity.
    pub(crate) glow: Vec4,
}

pub(crate) struct Object {
    pub(crate) mesh: usize,
    pub(crate) texture: usize,
    pub(crate) data: ObjectData,
}

pub(crate) struct Scene {
    /// Each name is also the name of the memory.
    pub(crate) meshes: Vec<(&'static str, Mesh)>,
    pub(crate) textures: Vec<Texture>,
    /// The first object is the floor.
    pub(crate) objects: Vec<Object>,
    /// Balls that occlude light near them: centre and radius.
    pub(crate) balls: Vec<Vec4>,
}

/// Index of the sky's texture.
pub(crate) const SKY: usize = 8;
const FLOOR: usize = 0;
const SPHERE: usize = 1;
/// Index of the knot, which is coarse until [`fine_knot`] has been uploaded.
pub(crate) const KNOT: usize = 2;
const TORUS: usize = 3;
const CRATE: usize = 4;
const PLINTH: usize = 5;
const PILLAR: usize = 6;

pub(crate) const EMBER: Vec3 = vec3(-1.95, 0.62, 0.55);

/// Replaces the coarse knot when the camera is near.
pub(crate) fn fine_knot() -> Mesh {
    meshes::knot([480, 40], 0.19, [10.0, 1.0])
}

impl Scene {
    pub(crate) fn new() -> Self {
        let meshes = vec![
            ("mesh floor", meshes::plane(40.0, 32.0)),
            ("mesh sphere", meshes::sphere(48, [2.0, 1.0])),
            ("mesh knot, coarse", meshes::knot([72, 10], 0.19, [10.0, 1.0])),
            ("mesh torus", meshes::torus(0.36, [6.0, 2.0])),
            ("mesh crate", meshes::block(Vec3::splat(0.42), 0.02, 0.84)),
            ("mesh plinth", meshes::block(vec3(0.85, 0.25, 0.85), 0.05, 1.7)),
            ("mesh pillar", meshes::block(vec3(0.42, 2.4, 0.42), 0.03, 1.68)),
        ];
        let textures = vec![
            Texture::new("tiles", 512, 1.5, surfaces::tiles),
            Texture::new("hammered metal", 256, 5.0, surfaces::hammered),
            Texture::new("ember", 512, 6.0, surfaces::ember),
            Texture::new("marble", 512, 0.0, surfaces::marble),
            Texture::new("crate", 512, 5.0, surfaces::crate_wood),
            Texture::new("glaze", 512, 0.6, surfaces::glaze),
            Texture::new("granite", 512, 1.4, surfaces::granite),
            Texture::new("bricks", 512, 5.0, surfaces::bricks),
            Texture::new("sky", 512, 0.0, surfaces::sky),
        ];
        let mut scene = Self { meshes, textures, objects: Vec::new(), balls: Vec::new() };
        scene.furnish();
        scene
    }

    fn furnish(&mut self) {
        let placed = |x, y, z, turn, size| {
            Mat4::from_translation(vec3(x, y, z))
                * Mat4::from_rotation_y(turn)
                * Mat4::from_scale(Vec3::splat(size))
        };
        let (white, gold, steel) = (vec4(1.0, 1.0, 1.0, 0.0), Vec4::ONE, vec4(0.86, 0.88, 0.92, 1.0));
        self.add(FLOOR, 0, Mat4::IDENTITY, white);
        self.add(PLINTH, 6, placed(0.0, 0.25, 0.0, 0.5, 1.0), white);
        self.add(KNOT, 1, placed(0.0, 1.33, 0.0, 0.35, 0.8) * Mat4::from_rotation_x(1.25), gold);
        self.balls.push(vec4(0.0, 1.25, 0.0, 0.55));
        self.ball(2, EMBER.extend(0.62), white);
        if let Some(ember) = self.objects.last_mut() {
            ember.data.glow = vec4(9.0, 2.88, 0.495, 0.0);
        }
        self.ball(3, vec4(1.72, 0.72, -0.35, 0.72), white);
        self.add(CRATE, 4, placed(2.2, 0.42, 1.25, 0.62, 1.0), white);
        self.add(CRATE, 4, placed(2.14, 1.09, 1.22, 0.2, 0.6), vec4(0.8, 0.82, 0.9, 0.0));
        self.add(TORUS, 5, placed(-0.75, 0.17, 1.75, 0.9, 0.46), white);
        self.balls.push(vec4(-0.75, 0.1, 1.75, 0.42));
        // Small balls of steel and of coloured glaze.
        self.ball(1, vec4(0.42, 0.17, 1.6, 0.17), vec4(0.9, 1.25, 2.6, 1.0));
        self.ball(1, vec4(-1.65, 0.13, 1.75, 0.13), steel);
        self.ball(5, vec4(0.72, 0.12, 2.25, 0.12), vec4(1.0, 0.25, 0.2, 0.0));
        self.ball(3, vec4(-2.6, 0.24, 1.7, 0.24), vec4(0.45, 0.75, 0.6, 0.0));
        for pillar in [-3.0_f32, -2.0, -1.0, 1.0, 2.0, 3.0] {
            let place = placed(pillar * 1.9, 2.4, -3.6 - 0.25 * pillar.abs(), pillar * 0.06, 1.0);
            self.add(PILLAR, 7, place, white);
        }
    }

    fn add(&mut self, mesh: usize, texture: usize, model: Mat4, tint: Vec4) {
        self.objects.push(Object { mesh, texture, data: ObjectData { model, tint, glow: Vec4::ZERO } });
    }

    /// Adds a ball. `ball` is centre and radius.
    fn ball(&mut self, texture: usize, ball: Vec4, tint: Vec4) {
        let turned = Mat4::from_rotation_y(ball.x * 2.0);
        let model = Mat4::from_translation(ball.truncate()) * turned * Mat4::from_scale(Vec3::splat(ball.w));
        self.add(SPHERE, texture, model, tint);
        self.balls.push(ball);
    }
}
