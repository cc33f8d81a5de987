@vertex
fn corner(@builtin(vertex_index) number: u32, @location(0) word: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(number & 1u), f32(word & 1u), 0.5, 1.0);
}

@fragment
fn white() -> @location(0) vec4<f32> {
    return vec4<f32>(1.0, 1.0, 1.0, 1.0);
}
