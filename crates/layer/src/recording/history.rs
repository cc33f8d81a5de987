//! A live object: its number, and the records that describe it again at the start of the next file.

use std::collections::BTreeMap;

use sublet::private::{Operation, narrow};
use sublet::trace::ForeignMemoryFlags;

use super::fields::RecordFields;

/// The offsets of image blocks are keys from here on, in contrast to bytes.
pub(crate) const BLOCK_KEYS: u64 = 1 << 63;

/// A live memory, buffer or image.
#[derive(Debug)]
pub(crate) struct LiveObject {
    /// Its number in the recording.
    pub(crate) id: u64,
    /// Bit `n` is set if the requirements of plane `n` are recorded, bit `8 + n` if they are with those of dedicated
    /// memory. Plane 0 is the whole resource.
    planes: u16,
    /// Vulkan allows to query the requirements before memory is bound.
    queryable: bool,
    records: EncodedRecords,
    sparse: Option<Box<SparseBlocks>>,
}

/// The ranges of a sparse resource that have memory.
#[derive(Debug, Default)]
pub(crate) struct SparseBlocks {
    /// The width, height and depth of a block of an image in texels; 0 if unknown.
    pub(crate) extent: [u32; 3],
    /// The bytes of a block; 0 if unknown.
    pub(crate) bytes: u64,
    /// From the offset of a range to its size, the memory, and the offset there. Ranges of bytes do not overlap.
    ranges: BTreeMap<u64, [u64; 3]>,
}

impl LiveObject {
    pub(crate) fn new(id: u64, queryable: bool, created: &RecordFields) -> Self {
        let mut records = EncodedRecords::default();
        records.add(created.bytes());
        Self { id, planes: 0, queryable, records, sparse: None }
    }

    /// Notes that the requirements of a plane are known, with those of dedicated memory or without. Returns true if
    /// that is news.
    pub(crate) fn learn_requirements(&mut self, plane: u32, with_dedicated: bool) -> bool {
        let (plain, full) = (1_u16 << (plane & 7), 0x100_u16 << (plane & 7));
        let known = if with_dedicated { full } else { plain | full };
        let news = self.planes & known == 0;
        self.planes |= if with_dedicated { full } else { plain };
        news
    }

    /// Returns true if the requirements of a plane are unknown, and may be queried.
    pub(crate) fn needs_requirements(&self, plane: u32) -> bool {
        self.queryable && self.planes & (0x101_u16 << (plane & 7)) == 0
    }

    /// Adds a record that describes the object.
    pub(crate) fn add(&mut self, fields: &RecordFields) {
        self.records.add(fields.bytes());
    }

    /// Adds flags to those of a memory. Their number is one byte: no flag is above the lower seven bits.
    pub(crate) fn add_flags(&mut self, flags: ForeignMemoryFlags) {
        let EncodedRecords(records) = &mut self.records;
        // Behind the length, the operation, and three numbers, each of which ends with a byte below 0x80.
        let ends = records.iter().enumerate().skip(3).filter(|(_, byte)| **byte < 0x80);
        let size_end = ends.map(|(at, _)| at).nth(2);
        let [low, ..] = flags.bits().to_le_bytes();
        if let Some(byte) = size_end.and_then(|at| records.get_mut(at + 1)) {
            *byte |= low;
        }
    }

    /// Replaces the record of an operation, for example a name.
    pub(crate) fn replace(&mut self, operation: Operation, fields: &RecordFields) {
        self.remove(operation);
        self.add(fields);
    }

    /// Removes the records of an operation.
    pub(crate) fn remove(&mut self, operation: Operation) {
        self.records.remove(operation.code());
    }

    /// Returns the blocks of a sparse resource.
    pub(crate) fn sparse(&mut self) -> &mut SparseBlocks {
        self.sparse.get_or_insert_default()
    }

    /// Calls `visit` with the operation and the encoded bytes of each record.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u8, &[u8])) {
        for record in self.records.iter() {
            visit(record.first().copied().unwrap_or_default(), record);
        }
        for (&offset, &[size, memory, memory_offset]) in self.sparse.iter().flat_map(|sparse| &sparse.ranges)
        {
            let numbers = [self.id, offset, size, memory, memory_offset];
            let fields = RecordFields::new(Operation::SparseBound, &numbers);
            visit(Operation::SparseBound.code(), fields.bytes());
        }
    }
}

impl SparseBlocks {
    /// Binds a range, or unbinds it if `memory` is 0. Of other ranges, the parts outside it stay.
    pub(crate) fn bind(&mut self, offset: u64, size: u64, memory: u64, memory_offset: u64) {
        if offset >= BLOCK_KEYS {
            // The key of a block, whose size says nothing about other keys.
            self.ranges.remove(&offset);
        } else {
            let end = offset.saturating_add(size).min(BLOCK_KEYS);
            if end == offset {
                return;
            }
            while let Some((&start, &[size, memory, at])) = self.ranges.range(..end).next_back() {
                let rest = start.saturating_add(size);
                if rest <= offset {
                    break;
                }
                self.ranges.remove(&start);
                if start < offset {
                    self.ranges.insert(start, [offset - start, memory, at]);
                }
                if rest > end {
                    self.ranges.insert(end, [rest - end, memory, at.saturating_add(end - start)]);
                }
            }
        }
        if memory != 0 {
            self.ranges.insert(offset, [size, memory, memory_offset]);
        }
    }
}

/// Encoded records, each after its length in two bytes. Most objects need about 40 bytes.
#[derive(Debug, Default)]
struct EncodedRecords(Vec<u8>);

impl EncodedRecords {
    fn add(&mut self, record: &[u8]) {
        let [low, high, ..] = narrow(record.len()).to_le_bytes();
        self.0.reserve_exact(2 + record.len());
        self.0.extend_from_slice(&[low, high]);
        self.0.extend_from_slice(record);
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (&[low, high], after) = rest.split_first_chunk::<2>()?;
            let (record, next) = after.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
            rest = next;
            Some(record)
        })
    }

    fn remove(&mut self, operation: u8) {
        if !self.iter().any(|record| record.first() == Some(&operation)) {
            return;
        }
        let mut kept = Self(Vec::with_capacity(self.0.len()));
        for record in self.iter().filter(|record| record.first() != Some(&operation)) {
            kept.add(record);
        }
        *self = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(object: &LiveObject) -> Vec<u8> {
        let mut all = Vec::new();
        object.for_each(|operation, bytes| {
            assert_eq!(bytes[0], operation);
            all.push(operation);
        });
        all
    }

    #[test]
    fn a_name_replaces_the_previous_one() {
        let mut object =
            LiveObject::new(1, true, &RecordFields::new(Operation::BufferCreated, &[1, 64, 2, 0]));
        for name in ["a", "b"] {
            object.replace(Operation::Named, &RecordFields::named(1, 1, name));
        }
        object.add(&RecordFields::new(Operation::Bound, &[1, 0, 2, 0]));
        assert_eq!(operations(&object), [0x88, 0x8D, 0x8B]);
        object.remove(Operation::Named);
        assert_eq!(operations(&object), [0x88, 0x8B]);
    }

    #[test]
    fn flags_are_added_to_those_of_the_allocation() {
        let numbers = |flags: ForeignMemoryFlags| [200, 3, 1 << 40, flags.bits().into(), 9];
        let allocated = |flags| RecordFields::new(Operation::MemoryAllocated, &numbers(flags));
        let mut memory = LiveObject::new(200, false, &allocated(ForeignMemoryFlags::DEDICATED));
        memory.add_flags(ForeignMemoryFlags::WAS_BOUND);
        let expected = allocated(ForeignMemoryFlags::DEDICATED | ForeignMemoryFlags::WAS_BOUND);
        memory.for_each(|_, record| assert_eq!(record, expected.bytes()));
        assert_eq!(allocated(ForeignMemoryFlags::all()).bytes().len(), 1 + 2 + 1 + 6 + 1 + 1);
    }

    #[test]
    fn sparse_ranges_replace_those_that_they_cover() {
        let mut object =
            LiveObject::new(1, true, &RecordFields::new(Operation::BufferCreated, &[1, 64, 2, 0]));
        let sparse = object.sparse();
        for offset in 0..4 {
            sparse.bind(offset * 64, 64, 7, 0);
        }
        sparse.bind(64, 128, 8, 0);
        assert_eq!(sparse.ranges.keys().copied().collect::<Vec<_>>(), [0, 64, 192]);
        sparse.bind(BLOCK_KEYS, 65_536, 7, 0);
        sparse.bind(BLOCK_KEYS + 1, 65_536, 7, 0);
        sparse.bind(BLOCK_KEYS, 65_536, 0, 0);
        sparse.bind(BLOCK_KEYS + 1, 65_536, 0, 0);
        sparse.bind(0, 256, 0, 0);
        assert_eq!(operations(&object), [0x88]);
    }

    /// Each case binds [0, 256) to memory 7 from its offset 1000 on, and then another range to memory 8 or none.
    #[test]
    fn a_sparse_range_that_is_bound_in_part_keeps_the_rest() {
        for (offset, size, memory, expected) in [
            (64, 64, 8, vec![(0, [64, 7, 1000]), (64, [64, 8, 0]), (128, [128, 7, 1128])]),
            (64, 64, 0, vec![(0, [64, 7, 1000]), (128, [128, 7, 1128])]),
            (0, 64, 8, vec![(0, [64, 8, 0]), (64, [192, 7, 1064])]),
            (0, 64, 0, vec![(64, [192, 7, 1064])]),
            (192, 128, 8, vec![(0, [192, 7, 1000]), (192, [128, 8, 0])]),
            (0, 300, 8, vec![(0, [300, 8, 0])]),
            (256, 64, 8, vec![(0, [256, 7, 1000]), (256, [64, 8, 0])]),
            (64, 0, 8, vec![(0, [256, 7, 1000])]),
        ] {
            let mut sparse = SparseBlocks::default();
            sparse.bind(0, 256, 7, 1000);
            sparse.bind(offset, size, memory, 0);
            assert_eq!(sparse.ranges.into_iter().collect::<Vec<_>>(), expected, "{offset}, {size}, {memory}");
        }
        let mut sparse = SparseBlocks::default();
        (0..4).for_each(|at| sparse.bind(at * 64, 64, 7, 1000 + at * 64));
        sparse.bind(BLOCK_KEYS, 65_536, 9, 0);
        sparse.bind(96, u64::MAX, 8, 0);
        let left =
            [(0, [64, 7, 1000]), (64, [32, 7, 1064]), (96, [u64::MAX, 8, 0]), (BLOCK_KEYS, [65_536, 9, 0])];
        assert_eq!(sparse.ranges.into_iter().collect::<Vec<_>>(), left);
    }
}

#[cfg(test)]
mod requirement_tests {
    use super::*;

    #[test]
    fn requirements_are_news_once_and_again_with_those_of_dedicated_memory() {
        let mut image = LiveObject::new(1, true, &RecordFields::new(Operation::ImageCreated, &[1; 12]));
        assert!(image.needs_requirements(0) && image.needs_requirements(2));
        assert!(image.learn_requirements(0, false));
        assert!(!image.learn_requirements(0, false));
        assert!(image.learn_requirements(0, true));
        assert!(!image.learn_requirements(0, true) && !image.learn_requirements(0, false));
        assert!(!image.needs_requirements(0) && image.needs_requirements(2));
    }
}
