enable wgpu_binding_array;
enable wgpu_ray_query;
struct Numbers { values: array<f32, 64> }
@group(0) @binding(0) var scene: acceleration_structure;
@group(0) @binding(1) var<storage, read_write> arrays: binding_array<Numbers, 6>;
// Ray `at` starts at x = `at`, 2 + `at` before the plane of the triangle.
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) at: u32) {
    let start = vec3<f32>(f32(at), 0.0, -2.0 - f32(at));
    var query: ray_query;
    rayQueryInitialize(&query, scene, RayDesc(0u, 0xffu, 0.0, 100.0, start, vec3<f32>(0.0, 0.0, 1.0)));
    while (rayQueryProceed(&query)) {}
    let hit = rayQueryGetCommittedIntersection(&query);
    arrays[1].values[at] = select(-1.0, hit.t, hit.kind != RAY_QUERY_INTERSECTION_NONE);
}
