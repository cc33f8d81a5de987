@group(0) @binding(0) var<uniform> more: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> numbers: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    numbers[at.x] = numbers[at.x] * 3u + more.x;
}
