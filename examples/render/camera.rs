//! Where the camera and the sun are in each frame, as the shaders want to know it.

use crate::math::{Mat4, Vec3, add, normalize, scale, sides, with};
use crate::passes::{Extent, SCENE_EXTENT};
use crate::scene::{EMBER, Scene};

/// Balls that keep light away; as many as the shader has.
const BALLS: usize = 8;

/// What all objects of a pass share. As `Frame` in `scene.wgsl`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FrameData {
    view_projection: Mat4,
    light_projection: Mat4,
    /// Where the camera is, and how far away is what it sees sharply.
    eye: [f32; 4],
    /// From the middle of the picture to its right and its upper edge, and ahead.
    right: [f32; 4],
    up: [f32; 4],
    forward: [f32; 4],
    /// Towards the sun.
    sun: [f32; 4],
    ember: [f32; 4],
    /// Of a texel of the target.
    texel: [f32; 4],
    balls: [[f32; 4]; BALLS],
}

/// What is seen at `time`, from 0 to 1: first directly, then in the mirror of the floor.
pub(crate) fn frame(scene: &Scene, time: f32, mirror: Extent) -> [FrameData; 2] {
    let angle = 0.75 - 0.53 * time;
    let distance = 6.9 - 0.7 * time;
    let eye = [angle.sin() * distance, 1.75 - 0.1 * time, angle.cos() * distance];
    let axes = sides(eye, [0.06, 0.86, 0.0]);
    let turn = 0.1 - 0.25 * time;
    let sun = normalize([-turn.cos(), 0.46, -turn.sin()]);
    let direct = seen(scene, eye, axes, sun, SCENE_EXTENT);
    let flip = |v: Vec3| [v[0], -v[1], v[2]];
    let mut mirrored = seen(scene, flip(eye), axes.map(flip), sun, mirror);
    mirrored.view_projection = direct.view_projection.then(Mat4::scaling([1.0, -1.0, 1.0]));
    [direct, mirrored]
}

fn seen(scene: &Scene, eye: Vec3, axes: [Vec3; 3], sun: Vec3, extent: Extent) -> FrameData {
    let [width, height] = extent.map(f32::from);
    let (tangent, aspect) = (0.36, width / height);
    let view = Mat4::view(eye, axes);
    let [right, up, forward] = axes;
    // The sun sees a square of 15 metres about the middle.
    let light = add([0.0, 0.6, -0.8], scale(sun, 14.0));
    let light_view = Mat4::view(light, sides(light, [0.0, 0.6, -0.8]));
    let mut balls = [[0.0; 4]; BALLS];
    for (ball, &there) in balls.iter_mut().zip(&scene.balls) {
        *ball = there;
    }
    FrameData {
        view_projection: Mat4::perspective(tangent, aspect, 0.1, 100.0).then(view),
        light_projection: Mat4::orthographic(7.5, 1.0, 30.0).then(light_view),
        eye: with(eye, 6.0),
        right: with(scale(right, tangent * aspect), 0.0),
        up: with(scale(up, tangent), 0.0),
        forward: with(forward, 0.0),
        sun: with(sun, 0.0),
        ember: with(EMBER, 0.0),
        texel: [1.0 / width, 1.0 / height, width, height],
        balls,
    }
}
