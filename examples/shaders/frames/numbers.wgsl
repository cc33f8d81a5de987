// Adds two arrays from the heap after multiplying the first. Each dispatch gets their slots and the place of the sum.
enable wgpu_binding_array;

struct Numbers { values: array<u32, 64> }
struct Task { first: u32, factor: u32, result: u32, unused: u32 }

@group(0) @binding(0) var<uniform> task: Task;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;
@group(1) @binding(0) var<storage, read> heap: binding_array<Numbers, 16>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    let left = heap[task.first].values[at];
    let right = heap[task.first + 1u].values[at];
    results[task.result * 64u + at] = left * task.factor + right;
}
