enable wgpu_binding_array;
struct Numbers { values: array<u32, 64> }
@group(0) @binding(1) var<storage, read_write> arrays: binding_array<Numbers, 6>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    let add = arrays[0].values[0];
    let source = arrays[0].values[1];
    arrays[1].values[at] = arrays[source].values[at] + add;
}
