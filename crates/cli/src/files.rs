//! Reading and writing of whole files.

use std::fs;
use std::io;
use std::path::Path;

use sublet::trace::Trace;

use crate::failure::CommandFailure;

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CommandFailure> {
    fs::read(path).map_err(|error| CommandFailure::file(format!("{} cannot be read", path.display()), error))
}

pub(crate) fn read_text(path: &Path) -> Result<String, CommandFailure> {
    String::from_utf8(read(path)?).map_err(|error| {
        let is_trace = Trace::read_prefix(error.as_bytes()).is_ok();
        let failure = CommandFailure::file(format!("{} is no text", path.display()), error);
        if is_trace {
            failure.hint("it is a trace: see `sublet report --trace`, and `sublet replay --json`".to_owned())
        } else {
            failure
        }
    })
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), CommandFailure> {
    written(path, text)
        .map_err(|error| CommandFailure::file(format!("{} cannot be written", path.display()), error))
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
