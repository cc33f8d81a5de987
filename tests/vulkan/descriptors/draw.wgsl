enable wgpu_binding_array;
struct Slots { image: u32, color: u32 }
struct Color { value: vec4<f32> }
var<immediate> slots: Slots;
@group(0) @binding(0) var images: binding_array<texture_2d<f32>, 8>;
@group(0) @binding(1) var<storage, read> colors: binding_array<Color, 8>;
@vertex
fn corner(@builtin(vertex_index) at: u32) -> @builtin(position) vec4<f32> {
    return vec4(f32(at & 1u) * 4.0 - 1.0, f32(at >> 1u) * 4.0 - 1.0, 0.5, 1.0);
}
@fragment
fn texel() -> @location(0) vec4<f32> {
    return textureLoad(images[slots.image], vec2(1, 0), 0) * colors[slots.color].value;
}
