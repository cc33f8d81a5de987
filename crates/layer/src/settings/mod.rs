//! The environment variables of the layer.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The default of `SUBLET_WATCH_LIMIT` in bytes.
const DEFAULT_LIMIT: u64 = 512 << 20;
/// The least limit: some segments for each of a few threads.
const LEAST_LIMIT: u64 = 1 << 20;

/// The settings of a recording, from the environment.
#[derive(Clone, Debug)]
pub(crate) struct WatchSettings {
    /// The file of the first device.
    pub(crate) path: PathBuf,
    /// The size in bytes after which another file is started.
    pub(crate) limit: u64,
    /// True if names are recorded.
    pub(crate) names: bool,
}

impl WatchSettings {
    /// Reads the environment. `None` if nothing is to be recorded, as in programs with more rights than their user.
    pub(crate) fn of_environment() -> Option<Self> {
        if has_more_rights() {
            return None;
        }
        let path = std::env::var_os("SUBLET_WATCH").filter(|path| !path.is_empty())?;
        let limit = std::env::var("SUBLET_WATCH_LIMIT").ok().and_then(|text| text.trim().parse().ok());
        Some(Self {
            path: with_process(&path, std::process::id()),
            limit: limit.unwrap_or(DEFAULT_LIMIT).max(LEAST_LIMIT),
            names: std::env::var_os("SUBLET_WATCH_NAMES").is_none_or(|value| value != "0"),
        })
    }
}

/// Replaces `%p`, and makes the path absolute: the program may change its folder before a later part. A path that is not
/// Unicode keeps its `%p`.
fn with_process(path: &OsStr, process: u32) -> PathBuf {
    let path = match path.to_str() {
        Some(text) => PathBuf::from(text.replace("%p", &process.to_string())),
        None => PathBuf::from(path),
    };
    std::path::absolute(&path).unwrap_or(path)
}

/// Adds a text to a file's name, before its extension.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Returns true if the program runs with rights that its user does not have. Such a program must not write where an
/// environment variable says.
#[cfg(target_os = "linux")]
pub(crate) fn has_more_rights() -> bool {
    secure::is_secure()
}

/// Returns true if the program runs with rights that its user does not have.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_more_rights() -> bool {
    false
}

#[cfg(target_os = "linux")]
mod secure;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        assert_eq!(with_process(OsStr::new("/tmp/%p.trace"), 7), Path::new("/tmp/7.trace"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(with_process(OsStr::new("a.trace"), 7), here.join("a.trace"));
        assert_eq!(with_suffix(Path::new("/tmp/a.trace"), "-2"), Path::new("/tmp/a-2.trace"));
        assert_eq!(with_suffix(Path::new("/tmp/a"), ".part2"), Path::new("/tmp/a.part2"));
    }
}
