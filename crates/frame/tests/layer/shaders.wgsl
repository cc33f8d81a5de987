@group(0) @binding(0) var<uniform> color: vec4<f32>;
@group(0) @binding(1) var picture: texture_2d<f32>;

@vertex
fn corner(@location(0) place: vec2<f32>) -> @builtin(position) vec4<f32> {
    return vec4<f32>(place, 0.5, 1.0);
}

@fragment
fn texel(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    return color + textureLoad(picture, vec2<i32>(0, 0), 2);
}
