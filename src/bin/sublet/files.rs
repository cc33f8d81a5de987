//! Files, read and written whole.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use crate::failure::Failure;

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::file(format!("{} cannot be read", path.display()), error))
}

pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = read(path)?;
    String::from_utf8(bytes).map_err(|error| Failure::file(format!("{} is no text", path.display()), error))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::file(format!("{} cannot be written", path.display()), error))
}
