// A mip from the one before, as a linear blit makes it: each texel is the mean of those that it covers, two by two where the
// extents are even. `downsample.spv` is this, and the format of `smaller` in it is replaced: see `downsample.rs`.
@group(0) @binding(0) var larger: texture_2d_array<f32>;
@group(0) @binding(1) var smaller: texture_storage_2d_array<rgba8unorm, write>;

@compute @workgroup_size(8, 8)
fn sublet_mips(@builtin(global_invocation_id) id: vec3<u32>) {
    let size = textureDimensions(smaller);
    if any(id.xy >= size) {
        return;
    }
    let extent = textureDimensions(larger);
    let place = (vec2<f32>(id.xy) + 0.5) * vec2<f32>(extent) / vec2<f32>(size) - 0.5;
    let first = vec2<u32>(place);
    let last = min(first + 1u, extent - 1u);
    let part = fract(place);
    let above = mix(
        textureLoad(larger, first, id.z, 0),
        textureLoad(larger, vec2(last.x, first.y), id.z, 0),
        part.x,
    );
    let below = mix(
        textureLoad(larger, vec2(first.x, last.y), id.z, 0),
        textureLoad(larger, last, id.z, 0),
        part.x,
    );
    textureStore(smaller, id.xy, id.z, mix(above, below, part.y));
}
