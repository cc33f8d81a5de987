//! Vulkan's names for flags, formats, kinds of device and drivers, and back.
//!
//! `ash` prints the names; to read one, the values that there are are printed until one matches. Values without a name
//! are numbers: decimal, and for flags a string of hexadecimal digits.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use ash::vk;

/// The name of a value, if it has one: without one, `ash` prints a number.
fn name_of(value: &impl Debug) -> Option<String> {
    Some(format!("{value:?}")).filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// The formats of core Vulkan and of extensions.
const FORMATS: &[RangeInclusive<i32>] = &[
    0..=184,
    1_000_054_000..=1_000_054_007,
    1_000_066_000..=1_000_066_013,
    1_000_156_000..=1_000_156_033,
    1_000_330_000..=1_000_330_003,
    1_000_340_000..=1_000_340_001,
    1_000_464_000..=1_000_464_000,
    1_000_470_000..=1_000_470_001,
];

/// A flag of Vulkan, which is a bit of 32.
pub(crate) trait Flags: Copy + Debug {
    fn bits(self) -> u32;
    fn of(bits: u32) -> Self;
}

macro_rules! flags {
    ($($name:ident),*) => {$(
        impl Flags for vk::$name {
            fn bits(self) -> u32 {
                self.as_raw()
            }

            fn of(bits: u32) -> Self {
                Self::from_raw(bits)
            }
        }
    )*};
}

flags!(MemoryPropertyFlags, MemoryHeapFlags, BufferUsageFlags);

/// Flags as a list of names.
pub(crate) mod flags {
    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;

    use super::{Flags, name_of};

    fn each_bit() -> impl Iterator<Item = u32> {
        (0..u32::BITS).map(|bit| 1 << bit)
    }

    pub(crate) fn serialize<F: Flags, S: Serializer>(flags: &F, serializer: S) -> Result<S::Ok, S::Error> {
        let set = each_bit().filter(|bit| flags.bits() & bit != 0);
        serializer.collect_seq(set.map(|bit| name_of(&F::of(bit)).unwrap_or_else(|| format!("{bit:#x}"))))
    }

    pub(crate) fn deserialize<'de, F: Flags, D: Deserializer<'de>>(deserializer: D) -> Result<F, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let bit_of = |name: &String| {
            let number = || u32::from_str_radix(name.strip_prefix("0x")?, 16).ok();
            let named = each_bit().find(|&bit| name_of(&F::of(bit)).as_ref() == Some(name));
            named.or_else(number)
        };
        let bits = names.iter().try_fold(0, |bits, name| {
            let bit =
                bit_of(name).ok_or_else(|| D::Error::custom(format_args!("Vulkan has no {name:?} here")))?;
            Ok(bits | bit)
        });
        bits.map(F::of)
    }
}

/// A value by its name, or by its number where it has none.
macro_rules! named {
    ($(#[$doc:meta])* $module:ident: $kind:ident in $ranges:expr) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use ash::vk;
            use serde::de::Error as _;
            use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

            use super::name_of;

            #[derive(Deserialize)]
            #[serde(untagged)]
            enum NameOrNumber {
                Name(String),
                Number(i32),
            }

            pub(crate) fn serialize<S: Serializer>(
                value: &vk::$kind,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match name_of(value) {
                    Some(name) => serializer.serialize_str(&name),
                    None => value.as_raw().serialize(serializer),
                }
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<vk::$kind, D::Error> {
                match NameOrNumber::deserialize(deserializer)? {
                    NameOrNumber::Number(number) => Ok(vk::$kind::from_raw(number)),
                    NameOrNumber::Name(name) => $ranges
                        .into_iter()
                        .map(vk::$kind::from_raw)
                        .find(|value| name_of(value).as_deref() == Some(&name))
                        .ok_or_else(|| D::Error::custom(format_args!("Vulkan has no {name:?} here"))),
                }
            }
        }
    };
}

named!(
    /// The type of a device.
    device_type: PhysicalDeviceType in 0..=4
);
named!(
    /// The driver's identity.
    driver_id: DriverId in 0..=63
);
named!(
    /// A format.
    format: Format in super::FORMATS.iter().cloned().flatten()
);

/// A version of Vulkan as `"1.3.230"`.
pub(crate) mod version {
    use ash::vk;
    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;

    pub(crate) fn serialize<S: Serializer>(version: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!(
            "{}.{}.{}",
            vk::api_version_major(*version),
            vk::api_version_minor(*version),
            vk::api_version_patch(*version)
        ))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| D::Error::custom(format_args!("{text:?} is no version such as \"1.3.0\"")))
    }

    fn parse(text: &str) -> Option<u32> {
        let mut parts = text.splitn(3, '.').map(|part| part.parse::<u32>().ok());
        let (major, minor, patch) = (parts.next()??, parts.next()??, parts.next()??);
        (major < 1 << 7 && minor < 1 << 10 && patch < 1 << 12)
            .then(|| vk::make_api_version(0, major, minor, patch))
    }
}
