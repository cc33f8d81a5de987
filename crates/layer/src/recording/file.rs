//! A file of a recording: the description of the device, and segments.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use sublet::private::{SEGMENT_BYTES, widen};

use super::segment::WatchSegment;
use super::size_limit;

/// The segments by which a file grows at a time.
const GROWTH: usize = 16;

/// A file that grows by mapped segments.
#[derive(Debug)]
pub(super) struct WatchFile {
    file: File,
    pub(super) path: PathBuf,
    /// The mapping of the last segments, and the offset of the first free one.
    last: Option<(Arc<MmapRaw>, usize)>,
    /// The bytes of the file, with free segments.
    length: u64,
}

impl WatchFile {
    /// Creates a file that does not exist yet, and writes the bytes before the first segment.
    pub(super) fn create(path: &Path, head: &[u8]) -> io::Result<Self> {
        let length = widen(head.len()).next_multiple_of(widen(SEGMENT_BYTES));
        size_limit::check(length)?;
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        if let Err(error) = file.write_all(head).and_then(|()| file.set_len(length)) {
            drop(file);
            // Without its head it is of no use.
            let _ = fs::remove_file(path);
            return Err(error);
        }
        Ok(Self { file, path: path.to_path_buf(), last: None, length })
    }

    /// Takes the next segment. It contains zeros.
    pub(super) fn take(&mut self) -> io::Result<WatchSegment> {
        loop {
            if let Some((map, free)) = &mut self.last {
                if let Some(segment) = WatchSegment::new(map, *free) {
                    *free += SEGMENT_BYTES;
                    return Ok(segment);
                }
            }
            self.grow()?;
        }
    }

    /// Returns the bytes of the file up to the last taken segment.
    pub(super) fn used(&self) -> u64 {
        let free = self.last.as_ref().map_or(0, |(map, free)| map.len().saturating_sub(*free));
        self.length.saturating_sub(widen(free))
    }

    /// Adds segments. They are written instead of only declared: without space on the disk, writing returns an error,
    /// while the first access to a mapping without it would kill the program.
    fn grow(&mut self) -> io::Result<()> {
        let bytes = GROWTH * SEGMENT_BYTES;
        size_limit::check(self.length.saturating_add(widen(bytes)))?;
        self.file.seek(SeekFrom::Start(self.length))?;
        io::copy(&mut io::Read::take(io::repeat(0), widen(bytes)), &mut self.file)?;
        let map = MmapOptions::new().offset(self.length).len(bytes).map_raw(&self.file)?;
        self.length += widen(bytes);
        self.last = Some((Arc::new(map), 0));
        Ok(())
    }

    /// Removes the free segments from the end of the file. The caller ensures that nothing is written afterwards.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let used = self.used();
        // Windows does not shorten a mapped file.
        self.last = None;
        self.file.set_len(used)
    }
}
