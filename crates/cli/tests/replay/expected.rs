//! The expected report of a replay, without the times.

use std::path::Path;
use std::{env, fs};

use serde_json::Value;

/// Compares with the file, or writes it.
///
/// # Panics
/// If the file is missing or differs.
pub(crate) fn blessed(path: &Path, found: &Value) {
    let found = format!("{found:#}\n");
    if env::var_os("SUBLET_BLESS").is_some() {
        fs::write(path, &found).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_else(|error| {
        panic!("{}: {error}; a trace needs its expected result: set SUBLET_BLESS", path.display())
    });
    for (line, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(found, expected, "{}, line {line}", path.display());
    }
    assert_eq!(found.len(), expected.len(), "{}", path.display());
}
