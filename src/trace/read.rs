//! Reads the chunks of a file.

use super::decode::Decoder;
use super::error::{Damage, ReadTraceError};
use super::event::Trace;
use super::foreign::{FOREIGN_VERSION, ForeignRecords};
use crate::record::bytes::Take;
use crate::record::chunk::{
    CHUNK_HEADER_BYTES, ChunkHeader, ChunkKind, MAGIC, TimePoint, VERSION, checksum, magic,
};
use crate::record::header::Header;
use sublet_engines::cast::{index, widen};

/// The intact part of a trace.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Prefix {
    /// The decoded part.
    pub trace: Trace,
    /// The reason why it ends there; `None` if the trace is complete.
    pub end: Option<ReadTraceError>,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// [`ReadTraceError`] contains the position and kind of the damage. [`Self::read_prefix`] returns the part before
    /// it.
    ///
    /// # Complexity
    /// O(n log a) for n records and a allocations that are live at the same time. The length of `bytes` bounds the
    /// allocated host memory, whatever the content.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadTraceError> {
        let Prefix { trace, end } = Self::read_prefix(bytes)?;
        match end {
            None => Ok(trace),
            Some(error) => Err(error),
        }
    }

    /// Reads all intact chunks: for the trace of a program that crashed, or is still running. In a foreign recording,
    /// all intact records of each segment.
    ///
    /// # Errors
    /// [`ReadTraceError`] if the first chunk, which contains the [`Header`], is damaged.
    pub fn read_prefix(bytes: &[u8]) -> Result<Prefix, ReadTraceError> {
        if bytes.starts_with(&magic(FOREIGN_VERSION)) {
            let mut records = ForeignRecords::new(bytes)?;
            let trace = records.collect_trace();
            return Ok(Prefix { trace, end: records.damage() });
        }
        let (mut chunks, first) = TraceChunks::new(bytes, VERSION)?;
        let header = chunks.header(&first)?;
        let mut decoder = Decoder::new();
        let end = chunks.read_calls(&mut decoder, first.header.point).err();
        let (records, unknown_events) = decoder.finish();
        Ok(Prefix { trace: Self { header, records, unknown_events }, end })
    }
}

/// Reads the start of a file of this version. Returns the header, and the offset of the bytes after it.
pub(super) fn read_head(bytes: &[u8], version: u8) -> Result<(Header, usize), ReadTraceError> {
    let (chunks, first) = TraceChunks::new(bytes, version)?;
    Ok((chunks.header(&first)?, chunks.at))
}

/// A chunk with a valid checksum.
struct TraceChunk<'a> {
    header: ChunkHeader,
    payload: &'a [u8],
    /// The index of its first byte.
    at: usize,
    payload_at: usize,
}

struct TraceChunks<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of the next chunk.
    number: u32,
}

impl<'a> TraceChunks<'a> {
    /// Reads the first chunk of a file of this version.
    fn new(bytes: &'a [u8], version: u8) -> Result<(Self, TraceChunk<'a>), ReadTraceError> {
        let at_start = |damage| Err(ReadTraceError { offset: 0, chunk: 0, damage });
        let expected = magic(version);
        match bytes.split_first_chunk::<{ MAGIC.len() }>() {
            Some((found, _)) if *found == expected => {}
            Some((found, _)) if found[..7] == MAGIC[..7] && found[7] > FOREIGN_VERSION => {
                return at_start(Damage::Version { found: found[7] });
            }
            Some((found, _)) if *found == MAGIC => return at_start(Damage::NotForeign),
            None if expected.starts_with(bytes) => {
                let (needed, there) = (widen(MAGIC.len()), widen(bytes.len()));
                return at_start(Damage::Truncated { needed, there });
            }
            _ => return at_start(Damage::NotATrace),
        }
        let mut chunks = Self { bytes, at: MAGIC.len(), number: 0 };
        let first = chunks.next()?;
        if first.header.kind != ChunkKind::Head {
            return Err(chunks.error(first.at, Damage::Kind { mark: first.header.kind.mark() }));
        }
        Ok((chunks, first))
    }

    /// Decodes the first chunk.
    fn header(&self, first: &TraceChunk<'_>) -> Result<Header, ReadTraceError> {
        let mut take = Take::new(first.payload);
        Header::decode(&mut take).map_err(|wrong| self.error(first.payload_at + take.at(), wrong.into()))
    }

    fn error(&self, at: usize, damage: Damage) -> ReadTraceError {
        ReadTraceError { offset: widen(at), chunk: self.number.saturating_sub(1), damage }
    }

    fn next(&mut self) -> Result<TraceChunk<'a>, ReadTraceError> {
        let at = self.at;
        let number = self.number;
        let error = |damage| Err(ReadTraceError { offset: widen(at), chunk: number, damage });
        let rest = self.bytes.get(at..).unwrap_or_default();
        let truncated = |needed| error(Damage::Truncated { needed: widen(needed), there: widen(rest.len()) });
        if rest.is_empty() {
            return error(Damage::NoEnd);
        }
        let Some((header, behind)) = rest.split_first_chunk::<CHUNK_HEADER_BYTES>() else {
            return truncated(CHUNK_HEADER_BYTES);
        };
        let (said, length, stored) = match ChunkHeader::of_bytes(header) {
            Ok(said) => said,
            Err(mark) => return error(Damage::Kind { mark }),
        };
        let length = index(length);
        let Some(payload) = behind.get(..length) else {
            return truncated(CHUNK_HEADER_BYTES.saturating_add(length));
        };
        let computed = checksum(&header[..32], payload);
        if stored != computed {
            return error(Damage::Checksum { stored, computed });
        }
        if said.number != number {
            return error(Damage::Number { expected: number, found: said.number });
        }
        self.number = number.saturating_add(1);
        self.at = at + CHUNK_HEADER_BYTES + length;
        Ok(TraceChunk { header: said, payload, at, payload_at: at + CHUNK_HEADER_BYTES })
    }

    /// Reads all chunks after the first.
    fn read_calls(&mut self, decoder: &mut Decoder, first: TimePoint) -> Result<(), ReadTraceError> {
        let mut before = first;
        let mut records = 0;
        loop {
            let chunk = self.next()?;
            match chunk.header.kind {
                ChunkKind::Head => {
                    return Err(self.error(chunk.at, Damage::Kind { mark: chunk.header.kind.mark() }));
                }
                ChunkKind::Calls => {
                    // A chunk is decoded completely or not at all.
                    let checkpoint = decoder.checkpoint();
                    let stored = u64::from(chunk.header.records);
                    let read = match decoder.calls(chunk.payload, before, chunk.header.point) {
                        Ok(counted) if counted == stored => Ok(()),
                        Ok(counted) => Err(self.error(chunk.at, Damage::Count { counted, stored })),
                        Err((at, damage)) => Err(self.error(chunk.payload_at + at, damage)),
                    };
                    read.inspect_err(|_| decoder.take_back(checkpoint))?;
                    records += stored;
                    before = chunk.header.point;
                }
                ChunkKind::Last => {
                    let mut take = Take::new(chunk.payload);
                    let mut total = |counted: u64| match take.number() {
                        Ok(stored) if stored == counted => Ok(()),
                        Ok(stored) => Err(Damage::Count { counted, stored }),
                        Err(wrong) => Err(wrong.into()),
                    };
                    total(records)
                        .and_then(|()| total(u64::from(self.number)))
                        .map_err(|damage| self.error(chunk.payload_at, damage))?;
                    return match self.bytes.len() - self.at {
                        0 => Ok(()),
                        rest => Err(self.error(self.at, Damage::Trailing { bytes: widen(rest) })),
                    };
                }
            }
        }
    }
}

/// Returns the nanoseconds at `ticks`, interpolated between two points.
pub(super) fn nanoseconds(ticks: u64, before: TimePoint, after: TimePoint) -> u64 {
    let span = after.ticks.saturating_sub(before.ticks);
    let lasted = after.nanoseconds.saturating_sub(before.nanoseconds);
    let passed = ticks.saturating_sub(before.ticks).min(span);
    if span == 0 {
        return before.nanoseconds.saturating_add(lasted);
    }
    // The product of two 64-bit values fits 128 bits. The result is at most `lasted`, because `passed` is at most
    // `span`.
    let share = u128::from(passed) * u128::from(lasted) / u128::from(span);
    before.nanoseconds.saturating_add(u64::try_from(share).unwrap_or(lasted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_between_the_moments_that_are_known() {
        let point = |ticks, nanoseconds| TimePoint { ticks, nanoseconds };
        let (before, after) = (point(1000, 100), point(4000, 1100));
        assert_eq!(nanoseconds(1000, before, after), 100);
        assert_eq!(nanoseconds(2500, before, after), 600);
        assert_eq!(nanoseconds(4000, before, after), 1100);
        assert_eq!(nanoseconds(9000, before, after), 1100);
        assert_eq!(nanoseconds(0, before, after), 100);
        assert_eq!(nanoseconds(5, after, after), 1100);
        let end = point(u64::MAX, u64::MAX);
        assert_eq!(nanoseconds(u64::MAX - 1, point(0, 0), end), u64::MAX - 1);
        assert_eq!(nanoseconds(7, end, point(0, 0)), u64::MAX);
    }
}
