enable wgpu_binding_array;
struct Numbers { values: array<u32, 64> }
struct Slots { image: u32, sampler: u32, target_: u32, numbers: u32 }
var<immediate> slots: Slots;
@group(0) @binding(0) var images: binding_array<texture_2d<f32>, 8>;
@group(0) @binding(1) var targets: binding_array<texture_storage_2d<rgba8unorm, write>, 8>;
@group(0) @binding(2) var<storage, read_write> arrays: binding_array<Numbers, 8>;
@group(1) @binding(0) var samplers: binding_array<sampler, 4>;
@group(2) @binding(0) var embedded: sampler;
@compute @workgroup_size(1)
fn main() {
    let red = textureSampleLevel(images[slots.image], samplers[slots.sampler], vec2(0.5, 0.5), 0.0);
    let own = textureSampleLevel(images[slots.image], embedded, vec2(1.25, 0.5), 0.0);
    arrays[slots.numbers].values[0] = u32(round(red.r * 255.0));
    arrays[slots.numbers].values[1] = u32(round(own.r * 255.0));
    textureStore(targets[slots.target_], vec2(0, 0), own);
}
