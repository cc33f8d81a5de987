// From scene light to display colours. Each pass is one triangle that covers its target.

// The size of a texel of the first source.
struct Post { texel: vec2<f32>, unused: vec2<f32> }

@group(0) @binding(0) var<uniform> post: Post;
@group(0) @binding(1) var smooth_sampler: sampler;
@group(0) @binding(2) var first: texture_2d<f32>;
@group(0) @binding(3) var second: texture_2d<f32>;
@group(0) @binding(4) var third: texture_2d<f32>;

struct Corner { @builtin(position) clip: vec4<f32>, @location(0) at: vec2<f32> }

@vertex
fn vs_post(@builtin(vertex_index) index: u32) -> Corner {
    let at = vec2(f32(index & 1u), f32(index >> 1u)) * 2.0;
    return Corner(vec4(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0), at);
}

fn read(at: vec2<f32>) -> vec4<f32> {
    return textureSampleLevel(first, smooth_sampler, at, 0.0);
}

// Depth of field: a disc of all samples that reach the place.
@fragment
fn fs_blur(corner: Corner) -> @location(0) vec4<f32> {
    let centre = read(corner.at);
    let radius = 15.0;
    var sum = vec4(min(centre.rgb, vec3(30.0)), 1.0);
    for (var tap = 1; tap < 32; tap++) {
        let angle = f32(tap) * 2.39996;
        let away = sqrt(f32(tap) / 32.0);
        let there = read(corner.at + vec2(cos(angle), sin(angle)) * away * radius * centre.a * post.texel);
        // Sharp samples do not spread.
        let weight = clamp(there.a * 4.0, 0.03, 1.0);
        sum += vec4(min(there.rgb, vec3(30.0)), 1.0) * weight;
    }
    return vec4(sum.rgb / sum.a, centre.a);
}

fn four(at: vec2<f32>, apart: f32) -> vec3<f32> {
    let d = post.texel * apart;
    return (read(at + vec2(-d.x, -d.y)).rgb + read(at + vec2(d.x, -d.y)).rgb
        + read(at + vec2(-d.x, d.y)).rgb + read(at + vec2(d.x, d.y)).rgb) * 0.25;
}

// The first level keeps only part of the bright light, so that single texels do not flicker.
@fragment
fn fs_bright(corner: Corner) -> @location(0) vec4<f32> {
    let light = min(four(corner.at, 1.0), vec3(24.0));
    let brightness = max(light.r, max(light.g, light.b));
    return vec4(light * max(brightness - 1.1, 0.0) / max(brightness, 1e-3), 1.0);
}

@fragment
fn fs_down(corner: Corner) -> @location(0) vec4<f32> {
    return vec4(four(corner.at, 0.5) * 0.5 + four(corner.at, 1.5) * 0.5, 1.0);
}

@fragment
fn fs_up(corner: Corner) -> @location(0) vec4<f32> {
    return vec4(four(corner.at, 1.0) * 0.5 + four(corner.at, 0.4) * 0.5, 1.0);
}

// A filmic curve: Narkowicz's fit of the Academy's.
fn film(light: vec3<f32>) -> vec3<f32> {
    return clamp(light * (2.51 * light + 0.03) / (light * (2.43 * light + 0.59) + 0.14), vec3(0.0), vec3(1.0));
}

@fragment
fn fs_develop(corner: Corner) -> @location(0) vec4<f32> {
    let sharp = read(corner.at);
    let blurred = textureSampleLevel(second, smooth_sampler, corner.at, 0.0);
    let bloom = textureSampleLevel(third, smooth_sampler, corner.at, 0.0).rgb;
    let focus = smoothstep(0.04, 0.25, max(sharp.a, 0.0));
    var light = mix(sharp.rgb, blurred.rgb, focus) + bloom * 0.16;
    let from_middle = corner.at - 0.5;
    light *= 1.0 - 0.75 * dot(from_middle, from_middle);
    return vec4(film(light * 0.78), 1.0);
}

@fragment
fn fs_shrink(corner: Corner) -> @location(0) vec4<f32> {
    return vec4(read(corner.at).rgb, 1.0);
}
