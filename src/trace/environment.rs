//! Starts recordings by an environment variable.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::allocator::Allocator;
use crate::record::error::StartRecordingError;

/// The variable that names the file.
const VARIABLE: &str = "SUBLET_TRACE";

/// Begins a recording if the environment variable `SUBLET_TRACE` contains a file name. Returns the path.
///
/// `%p` is replaced by the process id. Every further allocator of the process gets its own file, with a number before
/// the extension. Existing files are overwritten. Success and failure are also emitted as `tracing` events with target
/// `sublet::trace`, so the program may ignore the result.
///
/// The C interface calls this for each allocator, and any program may call it. Without the variable it does nothing.
///
/// # Errors
/// Same as [`Allocator::start_recording`], and [`StartRecordingError::Create`].
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// # if std::env::var_os("SUBLET_TRACE").is_none() {
/// assert_eq!(trace::start_from_environment(&allocator)?, None, "nobody has asked for one");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn start_from_environment(allocator: &Allocator) -> Result<Option<PathBuf>, StartRecordingError> {
    static ALLOCATORS: AtomicU32 = AtomicU32::new(0);
    let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) else {
        return Ok(None);
    };
    let (path, started) = if allocator.has_recording() {
        // Checked before a file is created or truncated.
        (PathBuf::from(named), Err(StartRecordingError::Recording))
    } else {
        let number = ALLOCATORS.fetch_add(1, Ordering::Relaxed);
        let path = path_for(Path::new(&named), std::process::id(), number);
        let file = File::create(&path).map_err(StartRecordingError::Create);
        (path, file.and_then(|file| allocator.start_recording(file)))
    };
    match started {
        Ok(()) => {
            tracing::info!(name: "recording_begun", target: "sublet::trace", path = %path.display(), "recording");
            Ok(Some(path))
        }
        Err(error) => {
            tracing::error!(
                name: "recording_refused", target: "sublet::trace",
                path = %path.display(), %error,
                cause = std::error::Error::source(&error).map(tracing::field::display),
                "nothing is recorded"
            );
            Err(error)
        }
    }
}

/// Returns the path for an allocator.
fn path_for(named: &Path, process: u32, number: u32) -> PathBuf {
    // A path that is not Unicode is used unchanged.
    let path = match named.to_str() {
        Some(text) => PathBuf::from(text.replace("%p", &process.to_string())),
        None => named.to_path_buf(),
    };
    if number == 0 {
        return path;
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{}", number + 1));
    if let Some(extension) = path.extension() {
        name.push(OsStr::new("."));
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_allocator_has_a_file_of_its_own() {
        let path = |named: &str, number| path_for(Path::new(named), 77, number);
        assert_eq!(path("/tmp/game.trace", 0), Path::new("/tmp/game.trace"));
        assert_eq!(path("/tmp/game.trace", 1), Path::new("/tmp/game-2.trace"));
        assert_eq!(path("/tmp/%p/game-%p", 0), Path::new("/tmp/77/game-77"));
        assert_eq!(path("/tmp/%p/game-%p", 2), Path::new("/tmp/77/game-77-3"));
    }
}
