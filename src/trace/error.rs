//! Errors of reading a trace.

use std::fmt;

/// The position and kind of the damage in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadTraceError {
    /// The offset in the file in bytes.
    pub offset: u64,
    /// The number of the chunk, from 0. In a foreign recording, the number of the segment.
    pub chunk: u32,
    /// The damage.
    pub damage: Damage,
}

/// The kind of damage in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Damage {
    /// It does not begin with the magic number of a trace.
    NotATrace,
    /// A later version of this library wrote the file, in a format that this version does not support.
    Version {
        /// The format version of the file.
        found: u8,
    },
    /// It is a recording of an allocator of this library, not of a foreign program.
    NotForeign,
    /// The file ends in the middle of a chunk.
    Truncated {
        /// The number of bytes that should follow.
        needed: u64,
        /// The number of bytes that follow.
        there: u64,
    },
    /// The file ends after a chunk that is not the last: the program ended before the recording did.
    NoEnd,
    /// The bytes of a chunk are corrupt.
    Checksum {
        /// The checksum in the chunk.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The chunk has an unknown kind, or one that is invalid at this position.
    Kind {
        /// The first bytes of the chunk.
        mark: [u8; 4],
    },
    /// A chunk is missing or duplicated.
    Number {
        /// The expected chunk number.
        expected: u32,
        /// The actual chunk number.
        found: u32,
    },
    /// Bytes follow the last chunk.
    Trailing {
        /// The number of bytes.
        bytes: u64,
    },
    /// A count is wrong: the number of records in a chunk, or a total at the end.
    Count {
        /// The counted value.
        counted: u64,
        /// The value in the file.
        stored: u64,
    },
    /// The operation is unknown.
    Operation {
        /// The number.
        operation: u8,
    },
    /// A record is longer than its chunk.
    Overrun,
    /// A number is out of its range.
    Value,
    /// A text is not UTF-8.
    Text,
    /// A record precedes the first thread number.
    NoThread,
    /// An allocation, pool or scope is created although it already exists.
    Twice,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace => f.write_str("this is no trace"),
            Self::Version { found } => {
                write!(
                    f,
                    "the format is of version {found}, which only a later version of this library knows"
                )
            }
            Self::NotForeign => f.write_str("this is the trace of an allocator, not of a foreign program"),
            Self::Truncated { needed, there } => {
                write!(f, "the file ends in the middle: {needed} bytes should follow, and {there} do")
            }
            Self::NoEnd => f.write_str("the file ends before the recording did"),
            Self::Checksum { stored, computed } => {
                write!(
                    f,
                    "bytes were changed: the checksum is {computed:#010x}, and {stored:#010x} was stored"
                )
            }
            Self::Kind { mark } => write!(f, "a chunk cannot begin with \"{}\" here", mark.escape_ascii()),
            Self::Number { expected, found } => {
                write!(f, "chunk {expected} should be here, and this is chunk {found}")
            }
            Self::Trailing { bytes } => write!(f, "{bytes} bytes follow the last chunk"),
            Self::Count { counted, stored } => write!(f, "{stored} were promised, and {counted} are there"),
            Self::Operation { operation } => write!(f, "there is no operation {operation:#04x}"),
            Self::Overrun => f.write_str("a record is longer than its chunk"),
            Self::Value => f.write_str("a number is out of its range"),
            Self::Text => f.write_str("a name is no UTF-8"),
            Self::NoThread => f.write_str("a record is of no thread"),
            Self::Twice => f.write_str("what lives already is made once more"),
        }
    }
}

sublet_engines::errors! { struct ReadTraceError { offset, chunk, damage } => "byte {offset}, chunk {chunk}: {damage}" }
