//! Where the camera and the sun are in each frame, as the shaders want to know it.

use glam::{Mat4, Vec3, Vec4, vec3};

use crate::passes::{Extent, SCENE_EXTENT};
use crate::scene::{EMBER, Scene};

/// Balls that keep light away; as many as the shader has.
const BALLS: usize = 8;

/// Of half the angle of sight, upright.
const TANGENT: f32 = 0.36;
const ASPECT: f32 = 16.0 / 9.0;

/// What all objects of a pass share. As `Frame` in `scene.wgsl`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FrameData {
    view_projection: Mat4,
    light_projection: Mat4,
    /// Where the camera is, and how far away is what it sees sharply.
    eye: Vec4,
    /// From the middle of the picture to its right and its upper edge, and ahead.
    right: Vec4,
    up: Vec4,
    forward: Vec4,
    /// Towards the sun.
    sun: Vec4,
    ember: Vec4,
    /// Of a texel of the target.
    texel: [f32; 4],
    balls: [Vec4; BALLS],
}

/// What is seen at `time`, from 0 to 1: first directly, then in the mirror of the floor.
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
    // The sun sees a square of 15 metres about the middle.
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
