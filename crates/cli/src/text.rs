//! Human-readable numbers and names.

use std::fmt::Debug;

use ash::vk;

/// Formats bytes in the most readable unit.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut unit = "B";
    // In tenths of the unit, so that rounding happens once.
    let mut tenths = u128::from(bytes) * 10;
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = ((tenths + 512) / 1024, next);
    }
    match tenths % 10 {
        rest if rest > 0 && tenths < 1_000 => format!("{}.{rest} {unit}", tenths / 10),
        _ => format!("{} {unit}", (tenths + 5) / 10),
    }
}

/// Formats a number with separated thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a Vulkan version.
pub(crate) fn version(version: u32) -> String {
    format!(
        "{}.{}.{}",
        vk::api_version_major(version),
        vk::api_version_minor(version),
        vk::api_version_patch(version)
    )
}

/// Returns Vulkan's names of flags.
pub(crate) fn flags(flags: impl Debug) -> Vec<String> {
    let text = format!("{flags:?}");
    text.split(" | ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Formats a pool with its name, if it has one.
pub(crate) fn pool(number: u32, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("pool {number} \"{name}\""),
        None => format!("pool {number}"),
    }
}

/// Returns a device's name.
pub(crate) fn device_name(properties: &vk::PhysicalDeviceProperties) -> String {
    let name = properties.device_name_as_c_str();
    name.map_or_else(|_| "unnamed".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns true if a character controls a terminal or changes the direction of the text around it.
pub(crate) fn is_command(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_at_most() {
        for (number, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1 << 20, "1 MiB"),
            (150_754_820_096, "140 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }
}
