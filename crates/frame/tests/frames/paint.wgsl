@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var picture: texture_2d<f32>;

struct Corner {
    @builtin(position) place: vec4<f32>,
    @location(0) @interpolate(flat) word: u32,
}

// A triangle that covers everything.
@vertex
fn corner(@builtin(vertex_index) number: u32, @location(0) word: u32) -> Corner {
    let place = vec2<f32>(f32(number & 1u), f32(number >> 1u)) * 4.0 - 1.0;
    return Corner(vec4<f32>(place, 0.5, 1.0), word);
}

@fragment
fn paint(corner: Corner) -> @location(0) vec4<f32> {
    let texel = pack4x8unorm(textureLoad(picture, vec2<i32>(0, 0), 0));
    return unpack4x8unorm(corner.word ^ words[0] ^ texel);
}
