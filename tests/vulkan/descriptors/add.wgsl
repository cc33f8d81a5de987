struct Task { add: u32, a: u32, b: u32, c: u32 }
@group(0) @binding(0) var<uniform> task: Task;
@group(0) @binding(1) var<storage, read> source: array<u32, 64>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    target_[at] = source[at] + task.add;
}
