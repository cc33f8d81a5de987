enable wgpu_binding_array;
struct Task { add: u32, source: u32, b: u32, c: u32 }
struct Numbers { values: array<u32, 64> }
@group(0) @binding(0) var<uniform> task: Task;
@group(0) @binding(1) var<storage, read> unused: array<u32, 64>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32, 64>;
@group(1) @binding(0) var<storage, read> heap: binding_array<Numbers, 8>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    target_[at] = heap[task.source].values[at] + task.add;
}
