// Adds two arrays, the first multiplied by a factor.
@group(0) @binding(0) var<uniform> factor: vec4<u32>;
@group(0) @binding(1) var<storage, read> left: array<u32>;
@group(0) @binding(2) var<storage, read> right: array<u32>;
@group(0) @binding(3) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    sums[at] = left[at] * factor.x + right[at];
}
