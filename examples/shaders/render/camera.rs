//! Camera and sun of each frame, in the layout of the shaders.

use glam::{Mat4, Vec3, Vec4, vec3};

use crate::passes::{Extent, SCENE_EXTENT};
use crate::scene::{EMBER, Scene};

/// Balls that occlude light. The same number as in the shader.
const BALLS: usize = 8;

/// Tangent of half the vertical field of view.
const TANGENT: f32 = 0.36;
const ASPECT: f32 = 16.0 / 9.0;

/// Constants of all objects in a pass. Matches `Frame` in `scene.wgsl`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FrameData {
    view_projection: Mat4,
    light_projection: Mat4,
    /// Position of the camera, and distance of its focus.
    eye: Vec4,
    /// Vectors from the centre of the picture to its right and upper edges, and the view direction.
    right: Vec4,
    up: Vec4,
    forward: Vec4,
    /// Direction to the sun.
    sun: Vec4,
    ember: Vec4,
    /// Size of a target texel.
    texel: [f32; 4],
    balls: [Vec4; BALLS],
}

/// Returns the constants at `time`, from 0 to 1: for the direct view, then for the floor's mirror.
pub(crate) fn frame(scene: &Scene, time: f32, mirror: Extent) -> [FrameData; 2] {
    let angle = 0.75 - 0.53 * time;
    let distance = 6.9 - 0.7 * time;
    let eye = vec3(angle.sin() * distance, 1.75 - 0.1 * time, angle.cos() * distance);
    let view = Mat4::look_at_rh(eye, vec3(0.06, 0.86, 0.0), Vec3::Y);
    let [right, up, backward] = [0, 1, 2].map(|row| view.row(row).truncate());
    let turn = 0.1 - 0.25 * time;
    let sun = vec3(-turn.cos(), 0.46, -turn.sin()).normalize();
    let projection = Mat4::perspective_rh(2.0 * TANGENT.atan(), ASPECT, 0.1, 100.0) * view;
    let seen = |extent, side: Vec3| {
        let axes = [eye, right, up, -backward].map(|v| v * side);
        seen(scene, projection * Mat4::from_scale(side), axes, sun, extent)
    };
    [seen(SCENE_EXTENT, Vec3::ONE), seen(mirror, vec3(1.0, -1.0, 1.0))]
}

fn seen(
    scene: &Scene,
    view_projection: Mat4,
    [eye, right, up, forward]: [Vec3; 4],
    sun: Vec3,
    extent: Extent,
) -> FrameData {
    let [width, height] = extent.map(f32::from);
    // The shadow map covers a square of 15 metres around the centre.
    let middle = vec3(0.0, 0.6, -0.8);
    let light_view = Mat4::look_at_rh(middle + sun * 14.0, middle, Vec3::Y);
    FrameData {
        view_projection,
        light_projection: Mat4::orthographic_rh(-7.5, 7.5, -7.5, 7.5, 1.0, 30.0) * light_view,
        eye: eye.extend(6.0),
        right: (right * TANGENT * ASPECT).extend(0.0),
        up: (up * TANGENT).extend(0.0),
        forward: forward.extend(0.0),
        sun: sun.extend(0.0),
        ember: EMBER.extend(0.0),
        texel: [1.0 / width, 1.0 / height, width, height],
        balls: std::array::from_fn(|at| scene.balls.get(at).copied().unwrap_or_default()),
    }
}
