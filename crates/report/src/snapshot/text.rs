//! Values that JSON holds as words.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

use crate::cast::index;
use sublet::Algorithm;
use sublet::ResourceKind;

/// Returns the kind with this text.
pub(super) fn kind_from(text: &str) -> Option<ResourceKind> {
    ResourceKind::ALL.into_iter().find(|kind| kind.text() == text)
}

/// Returns Vulkan's name for this device type.
pub(super) fn device_kind(number: u32) -> Option<&'static str> {
    let kinds = ["OTHER", "INTEGRATED_GPU", "DISCRETE_GPU", "VIRTUAL_GPU", "CPU"];
    kinds.get(index(number)).copied()
}

pub(super) fn algorithm_from(text: &str) -> Option<Algorithm> {
    Algorithm::ALL.into_iter().find(|algorithm| algorithm_text(*algorithm) == text)
}

pub(super) fn algorithm_text(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Tlsf => "Tlsf",
        Algorithm::Linear => "Linear",
        Algorithm::Buddy => "Buddy",
        _ => "Unknown",
    }
}

/// Parses a hexadecimal number with or without `0x`, because C's `%p` writes either.
pub(super) fn hex_from(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // The standard parser would accept a sign.
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// Deserialises a text that `read` accepts. `expected` describes it in errors.
pub(super) struct Word<F> {
    pub(super) expected: &'static str,
    pub(super) read: F,
}

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Word<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let Self { expected, read } = self;
        read(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &expected))
    }
}

/// Same for an optional value.
struct Maybe<F>(Word<F>);

impl<'a, T, F: FnOnce(&str) -> Option<T>> Visitor<'a> for Maybe<F> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'a>>(self, from: D) -> Result<Option<T>, D::Error> {
        from.deserialize_str(self.0).map(Some)
    }
}

pub(super) mod kind {
    use serde::de::Deserializer;
    use serde::ser::Serializer;

    use super::{Word, kind_from};
    use sublet::ResourceKind;

    pub(crate) fn serialize<S: Serializer>(kind: &ResourceKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.text())
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<ResourceKind, D::Error> {
        from.deserialize_str(Word { expected: "a kind of resource", read: kind_from })
    }
}

pub(super) mod algorithm {
    use serde::de::Deserializer;
    use serde::ser::{Serialize, Serializer};

    use super::{Maybe, Word, algorithm_from, algorithm_text};
    use sublet::Algorithm;

    pub(crate) fn serialize<S: Serializer>(algorithm: &Option<Algorithm>, to: S) -> Result<S::Ok, S::Error> {
        algorithm.map(algorithm_text).serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Algorithm>, D::Error> {
        from.deserialize_option(Maybe(Word { expected: "an algorithm", read: algorithm_from }))
    }
}

pub(super) mod user_data {
    use serde::de::Deserializer;
    use serde::ser::Serializer;

    use super::{Maybe, Word, hex_from};

    pub(crate) fn serialize<S: Serializer>(user_data: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match user_data {
            Some(user_data) => to.collect_str(&format_args!("{user_data:#x}")),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<u64>, D::Error> {
        from.deserialize_option(Maybe(Word { expected: "a hexadecimal number", read: hex_from }))
    }
}
