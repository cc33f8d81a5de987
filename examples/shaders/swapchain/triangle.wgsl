struct Corner {
    @builtin(position) place: vec4<f32>,
    @location(0) color: vec3<f32>,
}

@vertex
fn corner(@builtin(vertex_index) index: u32) -> Corner {
    // Counter-clockwise from the top, with `y` pointing up.
    var places = array<vec2<f32>, 3>(vec2(0.0, 0.9), vec2(-0.9, -0.9), vec2(0.9, -0.9));
    var colors = array<vec3<f32>, 3>(vec3(1.0, 0.0, 0.0), vec3(0.0, 1.0, 0.0), vec3(0.0, 0.0, 1.0));
    return Corner(vec4(places[index], 0.5, 1.0), colors[index]);
}

@fragment
fn texel(corner: Corner) -> @location(0) vec4<f32> {
    return vec4(corner.color, 1.0);
}
