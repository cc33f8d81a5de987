//! Reading and writing of files.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use sublet::trace::Trace;

use crate::failure::CommandFailure;

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CommandFailure> {
    fs::read(path).map_err(|error| cannot_read(path, error))
}

/// Reads at most this many bytes of the start of a file.
pub(crate) fn read_head(path: &Path, most: u64) -> Result<Vec<u8>, CommandFailure> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut head))
        .map_err(|error| cannot_read(path, error))?;
    Ok(head)
}

fn cannot_read(path: &Path, error: io::Error) -> CommandFailure {
    CommandFailure::file(format!("{} cannot be read", path.display()), error)
}

/// Returns the name of a file without its folder, for a title.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns true if a file begins as a recording of any version.
pub(crate) fn is_recording(content: &[u8]) -> bool {
    content.starts_with(b"\x89STRACE")
}

pub(crate) fn read_text(path: &Path) -> Result<String, CommandFailure> {
    text_of(path, read(path)?)
}

/// Same as [`read_text`] for bytes that were read already.
pub(crate) fn text_of(path: &Path, content: Vec<u8>) -> Result<String, CommandFailure> {
    String::from_utf8(content).map_err(|error| {
        let is_trace = Trace::read_prefix(error.as_bytes()).is_ok();
        let failure = CommandFailure::file(format!("{} is no text", path.display()), error);
        if is_trace {
            failure.hint("it is a recording: see `sublet report`, and `sublet replay --json`".to_owned())
        } else {
            failure
        }
    })
}

/// Writes a file, but not in the place of a recording, which cannot be made again.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), CommandFailure> {
    let is_there = fs::metadata(path).is_ok_and(|there| there.is_file());
    let written = match is_there && read_head(path, 8).is_ok_and(|head| is_recording(&head)) {
        true => Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is a recording")),
        false => written(path, text),
    };
    written.map_err(|error| CommandFailure::file(format!("{} cannot be written", path.display()), error))
}

/// Writes a file. Replaces an existing file only after the new one is complete. Writes directly to a pipe or a device.
fn written(path: &Path, text: &str) -> io::Result<()> {
    let is_file = fs::symlink_metadata(path).map_or(true, |there| there.is_file());
    let Some(name) = path.file_name().filter(|_| is_file) else { return fs::write(path, text) };
    let mut part = name.to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(part);
    fs::write(&part, text).and_then(|()| fs::rename(&part, path)).inspect_err(|_| {
        // The partial file may not exist.
        let _ = fs::remove_file(&part);
    })
}
