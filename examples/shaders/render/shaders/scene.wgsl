// Lit surfaces: objects, the floor with its reflection, and the sky behind.

struct Frame {
    view_projection: mat4x4<f32>,
    light_projection: mat4x4<f32>,
    eye: vec4<f32>,
    right: vec4<f32>,
    up: vec4<f32>,
    forward: vec4<f32>,
    sun: vec4<f32>,
    ember: vec4<f32>,
    texel: vec4<f32>,
    balls: array<vec4<f32>, 8>,
}
struct Object { model: mat4x4<f32>, tint: vec4<f32>, glow: vec4<f32> }

@group(0) @binding(0) var<uniform> frame: Frame;
@group(0) @binding(1) var repeating: sampler;
@group(0) @binding(2) var comparing: sampler_comparison;
@group(0) @binding(3) var shadow_map: texture_depth_2d;
@group(0) @binding(4) var mirrored: texture_2d<f32>;
@group(0) @binding(5) var clamped: sampler;
@group(0) @binding(6) var cloud_map: texture_2d<f32>;
@group(1) @binding(0) var<uniform> object: Object;
@group(1) @binding(1) var colour_map: texture_2d<f32>;
@group(1) @binding(2) var normal_map: texture_2d<f32>;

const PI = 3.14159265;
const SUNLIGHT = vec3<f32>(3.9, 2.55, 1.45);
const EMBERLIGHT = vec3<f32>(2.6, 0.75, 0.16);

struct Corner {
    @builtin(position) clip: vec4<f32>,
    @location(0) place: vec3<f32>,
    @location(1) normal: vec3<f32>,
    @location(2) texture: vec2<f32>,
}

@vertex
fn vs_object(@location(0) position: vec3<f32>, @location(1) normal: vec3<f32>, @location(2) texture: vec2<f32>) -> Corner {
    var corner: Corner;
    let place = object.model * vec4(position, 1.0);
    corner.clip = frame.view_projection * place;
    corner.place = place.xyz;
    corner.normal = (object.model * vec4(normal, 0.0)).xyz;
    corner.texture = texture;
    return corner;
}

@vertex
fn vs_shadow(@location(0) position: vec3<f32>) -> @builtin(position) vec4<f32> {
    return frame.light_projection * object.model * vec4(position, 1.0);
}

// The sky in a direction, blurred by `roughness`.
fn sky(direction: vec3<f32>, roughness: f32) -> vec3<f32> {
    let height = direction.y;
    let towards = max(dot(direction, frame.sun.xyz), 0.0);
    let flat_towards = max(dot(normalize(direction.xz + vec2(1e-4)), normalize(frame.sun.xz)), 0.0);
    let horizon = mix(vec3(0.34, 0.20, 0.26), vec3(1.20, 0.50, 0.17), flat_towards * flat_towards);
    let zenith = vec3(0.03, 0.075, 0.22);
    var light = mix(horizon, zenith, smoothstep(-0.05, 0.42, height + 0.12 * roughness));
    let sharp = 1.0 - roughness;
    light += SUNLIGHT * (0.22 * pow(towards, 6.0) + 10.0 * sharp * sharp * pow(towards, 900.0));
    // Clouds are in a plane.
    let plane = direction.xz / (max(height, 0.0) + 0.14);
    let cloud = textureSampleLevel(cloud_map, repeating, plane * 0.10 + vec2(0.12, 0.31), 5.0 * roughness).rg;
    let lit = mix(vec3(0.10, 0.09, 0.16), vec3(1.7, 0.74, 0.42), clamp(cloud.g * 1.3 - 0.25 + 0.35 * flat_towards, 0.0, 1.0));
    light = mix(light, lit, 0.9 * cloud.r * smoothstep(0.0, 0.10, height));
    // Below the horizon is ground in the evening light.
    return mix(light, vec3(0.10, 0.075, 0.065) + 0.2 * horizon * roughness, smoothstep(0.03, -0.12 - roughness * 0.3, height));
}

// The visible share of the sun: sixteen samples of the shadow map around the place, rotated randomly.
fn sunlit(place: vec3<f32>, normal: vec3<f32>, pixel: vec2<f32>) -> f32 {
    let from_light = frame.light_projection * vec4(place + normal * 0.018, 1.0);
    let at = from_light.xy * vec2(0.5, -0.5) + 0.5;
    let turn = 2.0 * PI * fract(52.9829189 * fract(dot(pixel, vec2(0.06711056, 0.00583715))));
    var sum = 0.0;
    for (var tap = 0; tap < 16; tap++) {
        let angle = f32(tap) * 2.39996 + turn;
        let offset = vec2(cos(angle), sin(angle)) * sqrt(f32(tap) + 0.5) * 0.00042;
        sum += textureSampleCompareLevel(shadow_map, comparing, at + offset, from_light.z - 0.0006);
    }
    let inside = step(max(abs(at.x - 0.5), abs(at.y - 0.5)), 0.495);
    return mix(1.0, sum / 16.0, inside);
}

// The share of the sky that the balls do not occlude.
fn open_sky(place: vec3<f32>, normal: vec3<f32>) -> f32 {
    var open = 1.0;
    for (var ball = 0; ball < 8; ball++) {
        let away = frame.balls[ball].xyz - place;
        let distance = max(length(away), frame.balls[ball].w * 1.001);
        let share = frame.balls[ball].w * frame.balls[ball].w / (distance * distance);
        open *= 1.0 - 0.9 * clamp(dot(normal, away) / distance, 0.0, 1.0) * share;
    }
    return open;
}

fn fresnel(f0: vec3<f32>, cosine: f32, roughness: f32) -> vec3<f32> {
    return f0 + (max(vec3(1.0 - roughness), f0) - f0) * pow(clamp(1.0 - cosine, 0.0, 1.0), 5.0);
}

// Reflected light of one source: specular reflection, and diffuse light from below the surface.
fn reflect_light(colour: vec3<f32>, f0: vec3<f32>, roughness: f32, normal: vec3<f32>, view: vec3<f32>, light: vec3<f32>) -> vec3<f32> {
    let half_way = normalize(view + light);
    let alpha = roughness * roughness;
    let n_h = max(dot(normal, half_way), 0.0);
    let n_l = max(dot(normal, light), 0.0);
    let n_v = max(dot(normal, view), 1e-3);
    let lobe = n_h * n_h * (alpha * alpha - 1.0) + 1.0;
    let k = alpha * 0.5;
    let shape = alpha * alpha / (4.0 * PI * lobe * lobe * (n_l * (1.0 - k) + k) * (n_v * (1.0 - k) + k));
    let mirror = fresnel(f0, max(dot(view, half_way), 0.0), 0.0);
    return (colour / PI * (1.0 - mirror) + mirror * min(shape, 60.0)) * n_l * PI;
}

struct Seen { place: vec3<f32>, normal: vec3<f32>, colour: vec3<f32>, roughness: f32, metal: f32, glow: f32 }

// Samples the textures and bends the normal. The tangents follow from the texture coordinates' derivatives.
fn look(corner: Corner) -> Seen {
    let colour = textureSampleBias(colour_map, repeating, corner.texture, -0.7);
    let bent = textureSampleBias(normal_map, repeating, corner.texture, -0.7);
    let smooth_normal = normalize(corner.normal);
    let across = dpdx(corner.place);
    let down = dpdy(corner.place);
    let u = dpdx(corner.texture);
    let v = dpdy(corner.texture);
    let a = cross(down, smooth_normal);
    let b = cross(smooth_normal, across);
    let tangent = a * u.x + b * v.x;
    let bitangent = a * u.y + b * v.y;
    let longest = inverseSqrt(max(max(dot(tangent, tangent), dot(bitangent, bitangent)), 1e-20));
    let bend = bent.xyz * 2.0 - 1.0;
    // The orientation of the derivatives depends on the visible side.
    let turn = sign(dot(cross(across, down), smooth_normal)) * longest;
    let normal = normalize((tangent * bend.x + bitangent * bend.y) * turn + smooth_normal * bend.z);
    return Seen(corner.place, normal, colour.rgb * object.tint.rgb, clamp(colour.a, 0.06, 1.0), object.tint.a, bent.a);
}

// All light from a place towards the eye, except reflections of the whole scene, which `mirror` holds.
fn shade(seen: Seen, pixel: vec2<f32>, surroundings: vec3<f32>) -> vec4<f32> {
    let away = frame.eye.xyz - seen.place;
    let distance = length(away);
    let view = away / distance;
    let f0 = mix(vec3(0.045), seen.colour, seen.metal);
    let base = seen.colour * (1.0 - seen.metal);
    let open = open_sky(seen.place, seen.normal);
    let shine = fresnel(f0, max(dot(seen.normal, view), 0.0), seen.roughness);
    var light = base * (1.0 - shine) * sky(normalize(seen.normal + vec3(0.0, 0.35, 0.0)), 1.0) * open * 0.95;
    light += shine * surroundings * mix(open, 1.0, 0.35);
    light += sunlit(seen.place, seen.normal, pixel) * SUNLIGHT * reflect_light(base, f0, seen.roughness, seen.normal, view, frame.sun.xyz);
    let to_ember = frame.ember.xyz - seen.place;
    let reach = max(dot(to_ember, to_ember), 0.38);
    light += EMBERLIGHT / reach * reflect_light(base, f0, max(seen.roughness, 0.35), seen.normal, view, to_ember * inverseSqrt(reach));
    light += object.glow.rgb * seen.glow;
    // Fog covers distant places.
    let haze = 1.0 - exp(-max(distance - 6.5, 0.0) * 0.03);
    light = mix(light, sky(normalize(vec3(-view.x, 0.02, -view.z)), 0.6), haze);
    return vec4(light, blur_of(distance));
}

// The blur radius, from 0 to 1.
fn blur_of(distance: f32) -> f32 {
    return clamp((abs(distance - frame.eye.w) - 0.9) / distance * 1.35, 0.0, 1.0);
}

@fragment
fn fs_object(corner: Corner) -> @location(0) vec4<f32> {
    let seen = look(corner);
    let view = normalize(frame.eye.xyz - seen.place);
    let direction = reflect(-view, seen.normal);
    // Downward directions show the floor, which is about as bright as the sky above it.
    let ground = sky(vec3(direction.x, abs(direction.y), direction.z), 1.0) * 0.28;
    let surroundings = mix(sky(direction, seen.roughness), ground, smoothstep(0.05, -0.15, direction.y));
    return shade(seen, corner.clip.xy, surroundings);
}

@fragment
fn fs_floor(corner: Corner) -> @location(0) vec4<f32> {
    let seen = look(corner);
    let size = frame.texel.xy;
    let at = corner.clip.xy * size + seen.normal.xz * vec2(0.06, 0.02);
    // More blur for rougher places: twelve samples, rotated randomly.
    let reach = 0.0012 + 0.03 * max(seen.roughness - 0.12, 0.0);
    let turn = 2.0 * PI * fract(52.9829189 * fract(dot(corner.clip.xy, vec2(0.06711056, 0.00583715))));
    var sum = vec3(0.0);
    for (var tap = 0; tap < 12; tap++) {
        let angle = f32(tap) * 2.39996 + turn;
        let offset = vec2(cos(angle), 2.2 * sin(angle)) * sqrt(f32(tap) + 0.5) * reach;
        sum += min(textureSampleLevel(mirrored, clamped, at + offset, 0.0).rgb, vec3(8.0));
    }
    return shade(seen, corner.clip.xy, sum / 12.0 * (1.9 - 1.6 * seen.roughness));
}

struct Sky { @builtin(position) clip: vec4<f32>, @location(0) direction: vec3<f32> }

@vertex
fn vs_sky(@builtin(vertex_index) index: u32) -> Sky {
    let at = vec2(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0);
    var corner: Sky;
    corner.clip = vec4(at, 1.0, 1.0);
    corner.direction = frame.forward.xyz + frame.right.xyz * at.x + frame.up.xyz * at.y;
    return corner;
}

@fragment
fn fs_sky(corner: Sky) -> @location(0) vec4<f32> {
    return vec4(sky(normalize(corner.direction), 0.0), 0.3);
}
