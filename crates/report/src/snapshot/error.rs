//! Errors of reading a saved snapshot.

use std::error::Error;
use std::fmt;

/// A text could not be read as a [`Snapshot`](super::Snapshot).
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadSnapshotError {
    /// The text is not JSON or ends too early, or a member is missing or has the wrong type.
    Json {
        /// The line, from 1; 0 if unknown.
        line: usize,
        /// The column, in bytes from 1; 0 if unknown.
        column: usize,
        /// The error of the JSON reader.
        source: serde_json::Error,
    },
    /// The text is JSON of another kind.
    NotASnapshot,
    /// A later version of this library wrote the text in a later format.
    Version {
        /// The version of the text; `None` if it has none.
        found: Option<u64>,
        /// The version that this library writes.
        known: u32,
    },
    /// The text is a statistics string of a VMA before 3.0, which has another schema.
    OldVma,
    /// The text is a statistics string in VMA's schema, but not of a Vulkan allocator.
    NotVulkan,
    /// The text is a statistics string without its detailed part. It has sums, but no blocks.
    WithoutDetails,
    /// The text contradicts itself.
    Contradiction {
        /// The position of the fault.
        place: FaultPosition,
        /// The fault.
        fault: SnapshotFault,
    },
}

impl ReadSnapshotError {
    pub(super) fn json(source: serde_json::Error) -> Self {
        Self::Json { line: source.line(), column: source.column(), source }
    }
}

impl fmt::Display for ReadSnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The JSON reader's message contains the position.
            Self::Json { source, .. } => write!(f, "the memory map cannot be read: {source}"),
            Self::NotASnapshot => f.write_str("this JSON is not a memory map"),
            Self::Version { found: Some(found), known } => {
                write!(f, "the memory map has version {found}; known is version {known}")
            }
            Self::Version { found: None, known } => {
                write!(f, "the memory map has no version; known is version {known}")
            }
            Self::OldVma => f.write_str("this is a statistics string of VMA 2; known are those of VMA 3"),
            Self::NotVulkan => f.write_str("this statistics string is not of an allocator for Vulkan"),
            Self::WithoutDetails => {
                f.write_str("this statistics string has no blocks: it was built without the detailed map")
            }
            Self::Contradiction { place, fault } => write!(f, "{place}: {fault}"),
        }
    }
}

impl Error for ReadSnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Json { source, .. } => source.source(),
            _ => None,
        }
    }
}

/// The position of a fault in a saved snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FaultPosition {
    /// The index of the vector, from 0.
    pub vector: Option<usize>,
    /// The id of the block in that vector.
    pub block: Option<u32>,
    /// The offset of the chunk in that block, in bytes.
    pub offset: Option<u64>,
}

impl fmt::Display for FaultPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(vector) = self.vector else { return f.write_str("memory map") };
        write!(f, "vector {vector}")?;
        if let Some(block) = self.block {
            write!(f, ", block {block}")?;
        }
        match self.offset {
            Some(offset) => write!(f, ", chunk at {offset}"),
            None => Ok(()),
        }
    }
}

/// A contradiction in a saved snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SnapshotFault {
    /// Vulkan has at most 16 heaps.
    TooManyHeaps {
        /// Number of heaps.
        heaps: usize,
    },
    /// Vulkan has at most 32 memory types.
    TooManyTypes {
        /// Number of memory types.
        types: usize,
    },
    /// The heaps are numbered, and this one is missing.
    HeapMissing {
        /// Its index.
        heap: u32,
    },
    /// The memory types are numbered. This one is missing, or an earlier one is there twice.
    TypeMissing {
        /// Its index.
        memory_type: u32,
    },
    /// The text refers to a heap that does not exist.
    NoSuchHeap {
        /// Its index.
        heap: u32,
        /// Number of heaps.
        heaps: usize,
    },
    /// The text refers to a memory type that does not exist.
    NoSuchType {
        /// Its index.
        memory_type: u32,
        /// Number of memory types.
        types: usize,
    },
    /// A vector's heap differs from that of its memory type.
    HeapOfAnotherType {
        /// The heap that the vector names.
        heap: u32,
        /// The heap of the memory type.
        of_type: u32,
    },
    /// Two default vectors have this memory type, or two pools this number.
    VectorTwice,
    /// Two blocks of the vector have this id.
    BlockTwice,
    /// Two allocations have this id.
    AllocationTwice,
    /// A chunk begins before the previous one ends.
    Overlap {
        /// The offset at which the previous chunk ends, in bytes.
        end_of_previous: u64,
    },
    /// A chunk ends beyond its block.
    BeyondBlock {
        /// Bytes of the chunk.
        size: u64,
        /// Bytes of the block.
        block_size: u64,
    },
    /// The bytes of all blocks so far overflow 64 bits.
    TooLarge,
    /// The runs of a descriptor heap do not tile it.
    Slots {
        /// Index of the descriptor heap.
        heap: usize,
        /// The first slot at which they do not.
        slot: u32,
    },
}

impl SnapshotFault {
    pub(super) fn at(self, place: FaultPosition) -> ReadSnapshotError {
        ReadSnapshotError::Contradiction { place, fault: self }
    }
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyHeaps { heaps } => write!(f, "there are {heaps} heaps, and Vulkan has at most 16"),
            Self::TooManyTypes { types } => {
                write!(f, "there are {types} memory types, and Vulkan has at most 32")
            }
            Self::HeapMissing { heap } => write!(f, "heap {heap} is missing"),
            Self::TypeMissing { memory_type } => write!(f, "memory type {memory_type} is missing"),
            Self::NoSuchHeap { heap, heaps } => write!(f, "heap {heap} is named, and there are {heaps}"),
            Self::NoSuchType { memory_type, types } => {
                write!(f, "memory type {memory_type} is named, and there are {types}")
            }
            Self::HeapOfAnotherType { heap, of_type } => {
                write!(f, "it is said to be in heap {heap}, and its memory type is in heap {of_type}")
            }
            Self::VectorTwice => f.write_str("there is another of this memory type or pool number"),
            Self::BlockTwice => f.write_str("there is another block of this id"),
            Self::AllocationTwice => f.write_str("there is another allocation of this id"),
            Self::Overlap { end_of_previous } => {
                write!(f, "the chunk before it ends at {end_of_previous}")
            }
            Self::BeyondBlock { size, block_size } => {
                write!(f, "its {size} bytes do not fit its block, which has {block_size}")
            }
            Self::TooLarge => f.write_str("the sizes so far add up to more than 2^64 bytes"),
            Self::Slots { heap, slot } => {
                write!(f, "the runs of descriptor heap {heap} do not tile it at slot {slot}")
            }
        }
    }
}
