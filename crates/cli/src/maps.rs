//! Memory maps, read from files.

use std::path::Path;

use sublet_report::{ReadSnapshotError, Snapshot};

use crate::failure::CommandFailure;
use crate::files;

/// Reads a map in Sublet's schema or in VMA's.
pub(crate) fn read(path: &Path) -> Result<Snapshot, CommandFailure> {
    let text = files::read_text(path)?;
    parse(path, &text)
}

/// Same for a text that was read already.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Snapshot, CommandFailure> {
    Snapshot::from_json(text).map_err(|error: ReadSnapshotError| {
        CommandFailure::file(format!("{} cannot be read as a memory map", path.display()), error)
    })
}
