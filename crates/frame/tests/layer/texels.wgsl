@group(0) @binding(0) var picture: texture_2d_array<f32>;
@group(0) @binding(1) var<storage, read_write> texels: array<vec4<f32>>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let size = textureDimensions(picture);
    if all(id.xy < size) {
        texels[(id.z * size.y + id.y) * size.x + id.x] = textureLoad(picture, id.xy, id.z, 0);
    }
}
