//! Chunks: the pieces of a trace, each with a checksum.

use super::crc::crc32;
use sublet_engines::cast::narrow;

/// The first bytes of a trace. The last of them is the version of the format.
pub(crate) const MAGIC: [u8; 8] = [0x89, b'S', b'T', b'R', b'A', b'C', b'E', VERSION];
/// The version of the format.
pub(crate) const VERSION: u8 = 1;
/// The version of a recording of any program, which consists of segments instead of chunks.
pub(crate) const FOREIGN_VERSION: u8 = 2;

/// Returns the first bytes of a file of this version.
pub(crate) const fn magic(version: u8) -> [u8; MAGIC.len()] {
    let mut magic = MAGIC;
    magic[MAGIC.len() - 1] = version;
    magic
}

/// Bytes of a chunk before its payload.
pub(crate) const CHUNK_HEADER_BYTES: usize = 36;

/// The kind of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkKind {
    /// The first chunk: describes the device and the allocator.
    Head,
    /// Records of calls.
    Calls,
    /// The last chunk: the number of records and chunks in the file.
    Last,
}

impl ChunkKind {
    pub(crate) const fn mark(self) -> [u8; 4] {
        match self {
            Self::Head => *b"HEAD",
            Self::Calls => *b"CALL",
            Self::Last => *b"LAST",
        }
    }

    pub(crate) fn of(mark: [u8; 4]) -> Option<Self> {
        [Self::Head, Self::Calls, Self::Last].into_iter().find(|kind| kind.mark() == mark)
    }
}

/// A point in time on two clocks, relative to the start of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TimePoint {
    /// Time on the clock of the records.
    pub(crate) ticks: u64,
    pub(crate) nanoseconds: u64,
}

/// The header before a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkHeader {
    pub(crate) kind: ChunkKind,
    /// Counted from 0.
    pub(crate) number: u32,
    /// The number of records in the payload.
    pub(crate) records: u32,
    /// The time at which the chunk was closed.
    pub(crate) point: TimePoint,
}

impl ChunkHeader {
    /// Encodes the header of `payload`.
    pub(crate) fn to_bytes(self, payload: &[u8]) -> [u8; CHUNK_HEADER_BYTES] {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.kind.mark());
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..12].copy_from_slice(&narrow(payload.len()).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.records.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.point.ticks.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.point.nanoseconds.to_le_bytes());
        let crc = crc32(&[&bytes[..32], payload]);
        bytes[32..36].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header. Returns it with the length of its payload in bytes, and the checksum. The error is an unknown
    /// mark.
    pub(crate) fn of_bytes(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Result<(Self, u32, u32), [u8; 4]> {
        let mark = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let word = |at| u32::from_le_bytes(mark(at));
        let long = |at| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let kind = ChunkKind::of(mark(0)).ok_or(mark(0))?;
        let point = TimePoint { ticks: long(16), nanoseconds: long(24) };
        Ok((Self { kind, number: word(4), records: word(12), point }, word(8), word(32)))
    }
}

/// Returns the magic of a recording of any program, and the chunk that describes the device.
pub(crate) fn foreign_head(header: &super::header::Header) -> Vec<u8> {
    let mut payload = Vec::new();
    header.encode(&mut payload);
    let head = ChunkHeader { kind: ChunkKind::Head, number: 0, records: 0, point: TimePoint::default() };
    [&magic(FOREIGN_VERSION)[..], &head.to_bytes(&payload), &payload].concat()
}

/// Returns the checksum of a chunk: over its header without the checksum, and its payload.
pub(crate) fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    crc32(&[header, payload])
}
