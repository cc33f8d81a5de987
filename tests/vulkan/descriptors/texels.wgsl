enable wgpu_binding_array;
struct Slots { source: u32, target_: u32 }
var<immediate> slots: Slots;
@group(0) @binding(0) var sources: binding_array<texture_1d<u32>, 4>;
@group(0) @binding(1) var targets: binding_array<texture_storage_1d<r32uint, write>, 4>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    let found = textureLoad(sources[slots.source], i32(at), 0);
    textureStore(targets[slots.target_], i32(at), found + vec4(5u, 0u, 0u, 0u));
}
