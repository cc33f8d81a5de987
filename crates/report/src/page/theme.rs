//! Tests of the colours: readers with a colour vision deficiency can distinguish the roles.
#![allow(clippy::unwrap_used, reason = "a test")]

/// The smallest distance in OKLab of two roles, times 100. Differences from about 2 on are visible side by side.
const LEAST: f64 = 9.0;

/// No deficiency, then protanopia, deuteranopia and tritanopia in linear RGB (Machado, Oliveira and Fernandes 2009,
/// severity 1).
const VISIONS: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];

fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

fn linear(hex: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let channel = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
    })
}

/// Converts to OKLab (Ottosson 2020).
fn oklab(linear: [f64; 3]) -> [f64; 3] {
    let cones = times(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ],
        linear.map(|channel| channel.clamp(0.0, 1.0)),
    );
    times(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ],
        cones.map(f64::cbrt),
    )
}

/// Returns the roles and their colours in a part of the style sheet.
fn roles(css: &str) -> Vec<(&str, &str)> {
    let declarations = css.lines().filter_map(|line| line.trim().strip_prefix("--role-"));
    declarations.map(|line| line.trim_end_matches(';').split_once(": ").unwrap()).collect()
}

#[test]
fn roles_are_distinguishable_with_every_colour_vision() {
    let (light, dark) = include_str!("theme.css").split_once("@media").unwrap();
    for (scheme, roles) in [("light", roles(light)), ("dark", roles(dark))] {
        assert_eq!(roles.len(), 13, "{scheme}");
        for (at, (one, colour)) in roles.iter().enumerate() {
            for (other, other_colour) in &roles[..at] {
                for (number, vision) in VISIONS.into_iter().enumerate() {
                    let [a, b] = [colour, other_colour].map(|colour| oklab(times(vision, linear(colour))));
                    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
                    let distance = 100.0 * squares.sum::<f64>().sqrt();
                    assert!(distance >= LEAST, "{scheme}: {one} and {other}: {distance:.1}, vision {number}");
                }
            }
        }
    }
}
