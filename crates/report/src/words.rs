//! Human-readable sizes and names.

use std::panic::Location;

use super::figures::float;
use super::snapshot::{Snapshot, Vector};

/// Formats bytes as `3.2 MiB`: at most three digits, except below a KiB.
pub(super) fn bytes(size: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if size < 1024 {
        return format!("{size} B");
    }
    let mut value = float(size) / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    // A value that rounds to 1024 is 1 of the next unit.
    while value >= 1023.5 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// Formats `12 %`. Only exactly 0 gives `0 %`, and only exactly 1 gives `100 %`.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        some if some > 0.0 && some < 1.0 => "< 1 %".to_owned(),
        most if most > 99.0 && most < 100.0 => "> 99 %".to_owned(),
        other => format!("{other:.0} %"),
    }
}

/// Formats `1 block`, `2 blocks`.
pub(super) fn count(number: u64, word: &str) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let s = if number == 1 { "" } else { "s" };
    format!("{grouped} {word}{s}")
}

/// Formats a source location: `src/main.rs:7`.
pub(super) fn file_and_line(caller: &Location<'_>) -> String {
    format!("{}:{}", caller.file(), caller.line())
}

/// Returns a name on one line that cannot affect the text around it. Control characters, characters that change the
/// writing direction, and characters that XML forbids become U+FFFD or a blank.
pub(crate) fn clean(name: &str) -> String {
    let harmless = |c: char| match c {
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => ' ',
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    name.chars().map(harmless).collect()
}

/// Returns the title of a vector: `Memory type 3`, `Pool 2 "meshes"`.
pub(super) fn title(vector: &Vector) -> String {
    match (vector.pool, &vector.name) {
        (Some(number), Some(name)) => format!("Pool {number} \u{201c}{}\u{201d}", clean(name)),
        (Some(number), None) => format!("Pool {number}"),
        (None, _) => format!("Memory type {}", vector.memory_type),
    }
}

/// Returns the flags of a vector's memory type, in words.
pub(super) fn flags_of(snapshot: &Snapshot, memory_type: u32) -> String {
    let kind = snapshot.types.get(crate::cast::index(memory_type));
    kind.map(|kind| flags(&kind.flags)).unwrap_or_default()
}

pub(super) fn flags(flags: &[Box<str>]) -> String {
    if flags.is_empty() { "no flags".to_owned() } else { clean(&flags.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_and_says_when_it_is_not_nothing_and_not_all() {
        let shown = [
            (0.0, "0 %"),
            (1e-9, "< 1 %"),
            (0.0099, "< 1 %"),
            (0.01, "1 %"),
            (0.014, "1 %"),
            (0.016, "2 %"),
            (0.5, "50 %"),
            (0.754, "75 %"),
            (0.756, "76 %"),
            (0.99, "99 %"),
            (0.9901, "> 99 %"),
            (0.999_999, "> 99 %"),
            (1.0, "100 %"),
        ];
        for (share, expected) in shown {
            assert_eq!(percent(share), expected, "{share}");
        }
    }

    #[test]
    fn bytes_have_three_digits_at_most() {
        let shown = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10_188, "9.9 KiB"),
            (10_189, "10 KiB"),
            (1_048_063, "1023 KiB"),
            (1_048_064, "1.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (size, expected) in shown {
            assert_eq!(bytes(size), expected, "{size}");
        }
    }

    #[test]
    fn counts_are_grouped_and_have_their_s() {
        for (number, expected) in [
            (0, "0 blocks"),
            (1, "1 block"),
            (999, "999 blocks"),
            (1000, "1,000 blocks"),
            (1_234_567, "1,234,567 blocks"),
        ] {
            assert_eq!(count(number, "block"), expected);
        }
    }
}
