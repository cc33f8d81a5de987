//! Settings from the program or its environment.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use sublet::DebugSettings;

use super::log::not_understood;
use super::types::SubletDebugSettings;

/// The environment variable with debug settings.
const VARIABLE: &str = "SUBLET_DEBUG";

/// The settings that the program has set.
static SETTINGS: Mutex<Option<DebugSettings>> = Mutex::new(None);

/// The limit of mapped bytes that the program has set; 0 for the default.
static MAX_MAPPED_SIZE: AtomicU64 = AtomicU64::new(0);

/// Sets the limit of mapped bytes of allocators that are created later; 0 for the default.
pub(super) fn set_max_mapped_size(bytes: u64) {
    MAX_MAPPED_SIZE.store(bytes, Ordering::Relaxed);
}

/// Returns the limit of mapped bytes of a new allocator.
pub(super) fn max_mapped_size() -> u64 {
    MAX_MAPPED_SIZE.load(Ordering::Relaxed)
}

/// Sets the debug settings of allocators that are created later.
pub(super) fn set(settings: Option<DebugSettings>) {
    *SETTINGS.lock() = settings;
}

/// Returns the settings of a new allocator: the program's, or else the environment's.
pub(super) fn current() -> DebugSettings {
    let set = *SETTINGS.lock();
    let from_environment = || std::env::var_os(VARIABLE).map(|text| parsed(&text.to_string_lossy()));
    set.or_else(from_environment).unwrap_or_default()
}

/// Parses a list such as `margin=64,detect_corruption`. Reports unknown words.
fn parsed(text: &str) -> DebugSettings {
    let mut settings = DebugSettings::default();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        // A value that is not a number makes the word unknown. It must not count as a word without a value.
        let (name, value) =
            word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value.parse().ok())));
        match (name, value) {
            ("margin", Some(Some(bytes))) => settings.margin = bytes,
            ("min_buffer_image_granularity", Some(Some(bytes))) => {
                settings.min_buffer_image_granularity = bytes;
            }
            ("detect_corruption", None) => settings.detect_corruption = true,
            ("fill", None) => settings.fill = true,
            ("always_dedicated", None) => settings.always_dedicated = true,
            ("exceed_max_allocation_count", None) => settings.exceed_max_allocation_count = true,
            _ => not_understood(VARIABLE, word, "this setting is left out, and the others hold"),
        }
    }
    settings
}

impl From<&SubletDebugSettings> for DebugSettings {
    fn from(settings: &SubletDebugSettings) -> Self {
        Self {
            margin: settings.margin,
            detect_corruption: settings.detect_corruption != 0,
            fill: settings.fill != 0,
            always_dedicated: settings.always_dedicated != 0,
            min_buffer_image_granularity: settings.min_buffer_image_granularity,
            exceed_max_allocation_count: settings.exceed_max_allocation_count != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_settings_as_rust_does() {
        let expected = DebugSettings { margin: 64, detect_corruption: true, ..Default::default() };
        assert_eq!(parsed("margin=64, detect_corruption"), expected);
        assert_eq!(parsed(""), DebugSettings::default());
        // Unknown words are skipped, and the others apply.
        let expected = DebugSettings { fill: true, always_dedicated: true, ..Default::default() };
        assert_eq!(parsed("margin=much,margin,fill,nothing,always_dedicated,detect_corruption=on"), expected);
        let rest = "min_buffer_image_granularity=1024,exceed_max_allocation_count";
        let expected = DebugSettings {
            min_buffer_image_granularity: 1024,
            exceed_max_allocation_count: true,
            ..Default::default()
        };
        assert_eq!(parsed(rest), expected);
    }
}
