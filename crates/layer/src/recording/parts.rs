//! The files of one recording: the first and the newest part.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sublet::private::foreign_head;
use sublet::trace::Header;

use super::file::WatchFile;
use super::segment::WatchSegment;
use crate::settings::with_suffix;

/// The files of a recording.
#[derive(Debug)]
pub(super) struct WatchParts {
    /// The path of the first part.
    path: PathBuf,
    /// Describes the device and the newest part.
    header: Header,
    /// The newest part. `None` once the recording has ended.
    file: Option<WatchFile>,
    /// The part before it, until the newest part describes all live objects.
    previous: Option<PathBuf>,
    /// The bytes of a part.
    limit: u64,
    /// The bytes after which the newest part is full.
    full: u64,
}

impl WatchParts {
    pub(super) fn create(path: &Path, header: Header, limit: u64) -> io::Result<Self> {
        let file = WatchFile::create(path, &foreign_head(&header))?;
        Ok(Self { path: path.to_path_buf(), header, file: Some(file), previous: None, limit, full: limit })
    }

    /// Takes a segment of the newest part, and returns true if the part is full now. `None` if the recording has ended.
    pub(super) fn take(&mut self) -> io::Result<Option<(WatchSegment, bool)>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let segment = file.take()?;
        Ok(Some((segment, file.used() >= self.full)))
    }

    /// Starts another part, which begins with so many records of live objects. The caller ensures that no thread has a
    /// segment, and calls [`Self::live_objects_end`].
    pub(super) fn advance(&mut self, opening_records: u64) -> io::Result<()> {
        let Some(full) = self.file.take() else { return Ok(()) };
        let path = full.path.clone();
        full.finish()?;
        // The first part stays.
        self.previous = (self.header.part > 0).then_some(path);
        self.header.opening_records = opening_records;
        loop {
            let part = self.header.part.max(1).checked_add(1).ok_or(io::ErrorKind::AlreadyExists)?;
            self.header.part = part;
            let next = with_suffix(&self.path, &format!(".part{part}"));
            match WatchFile::create(&next, &foreign_head(&self.header)) {
                // The file of an earlier run.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => {
                    self.file = Some(created?);
                    return Ok(());
                }
            }
        }
    }

    /// States that the records of the live objects are complete, and removes the previous part unless it is the first.
    /// A part has as much space after them as they take, so that a program with many objects does not start a part for
    /// each record.
    pub(super) fn live_objects_end(&mut self) -> io::Result<()> {
        let used = self.file.as_ref().map_or(0, WatchFile::used);
        self.full = self.limit.max(used.saturating_mul(2));
        match self.previous.take().map_or(Ok(()), fs::remove_file) {
            // The user may have removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Ends the recording. The caller ensures that no thread has a segment.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.file.take().map_or(Ok(()), WatchFile::finish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_until_the_next_one_is_complete() {
        let folder = std::env::temp_dir().join(format!("sublet-parts-{}", std::process::id()));
        // A killed process with the same number may have left it.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let there = |part: &str| folder.join(format!("w{part}.trace")).exists();
        fs::write(folder.join("w.part3.trace"), "of an earlier run").unwrap();
        let mut parts = WatchParts::create(&folder.join("w.trace"), Header::default(), 0).unwrap();
        parts.advance(0).unwrap();
        parts.live_objects_end().unwrap();
        parts.advance(0).unwrap();
        assert!(there(".part2") && there(".part3") && there(".part4"));
        parts.live_objects_end().unwrap();
        assert!(there("") && !there(".part2") && there(".part3") && there(".part4"));
        parts.advance(0).unwrap();
        fs::remove_file(folder.join("w.part4.trace")).unwrap();
        parts.live_objects_end().unwrap();
        parts.finish().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
