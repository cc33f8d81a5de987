//! Reads a recording as its documentation states, without the library's reader.

use std::collections::HashMap;
use std::path::Path;

/// A record: its operation, its numbers, and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) time: u64,
    pub(crate) thread: u32,
    pub(crate) operation: u8,
    pub(crate) numbers: Vec<u64>,
    pub(crate) text: String,
}

/// A whole recording, in the order of its calls.
pub(crate) struct Recorded(pub(crate) Vec<Record>);

/// The numbers of each operation, in the order of the codes.
const FIELDS: &[(u8, usize)] = &[
    (0x80, 5),
    (0x81, 3),
    (0x82, 1),
    (0x83, 3),
    (0x84, 1),
    (0x85, 3),
    (0x86, 3),
    (0x88, 4),
    (0x89, 12),
    (0x8A, 6),
    (0x8B, 4),
    (0x8C, 1),
    (0x8E, 5),
    (0x90, 1),
    (0x91, 0),
    (0x92, 3),
    (0x93, 5),
    (0x94, 0),
    (0x95, 0),
];

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().expect("a record is complete");
        self.0 = rest;
        first
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl Recorded {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(&bytes[..12], b"\x89STRACE\x02HEAD");
        let head = 44 + usize::try_from(word(&bytes, 16)).unwrap();
        let mut records = Vec::new();
        for segment in bytes[head.next_multiple_of(65_536)..].chunks(65_536) {
            if segment[..4] == [0; 4] {
                continue;
            }
            // A program can be killed while its file grows by zeros, but these are mapped only afterwards.
            assert_eq!(segment.len(), 65_536);
            assert_eq!(&segment[..4], b"THRD");
            let committed = usize::try_from(word(segment, 4)).unwrap();
            let (mut sequence, mut time, thread) = (long(segment, 8), long(segment, 16), word(segment, 24));
            let mut rest = Bytes(&segment[32..32 + committed]);
            while !rest.0.is_empty() {
                let operation = rest.byte();
                sequence += rest.number();
                time += rest.number();
                let mut record =
                    Record { sequence, time, thread, operation, numbers: vec![], text: String::new() };
                if operation == 0x8D {
                    record.numbers = vec![rest.number(), rest.number()];
                    let length = rest.number();
                    let text = (0..length).map(|_| rest.byte()).collect();
                    record.text = String::from_utf8(text).unwrap();
                } else {
                    let fields =
                        FIELDS.iter().find(|(code, _)| *code == operation).expect("a known operation");
                    record.numbers = (0..fields.1).map(|_| rest.number()).collect();
                }
                records.push(record);
            }
        }
        records.sort_by_key(|record| record.sequence);
        assert!(
            records.windows(2).all(|two| two[0].sequence < two[1].sequence),
            "one number for each record"
        );
        let recorded = Self(records);
        recorded.check();
        recorded
    }

    /// Asserts that every object exists while it is used.
    fn check(&self) {
        let (mut memories, mut resources) = (HashMap::new(), HashMap::new());
        for record in &self.0 {
            let numbers = &record.numbers;
            match record.operation {
                0x80 => assert_eq!(memories.insert(numbers[0], ()), None, "{record:?}"),
                0x88 | 0x89 => assert_eq!(resources.insert(numbers[0], ()), None, "{record:?}"),
                0x82 => assert!(memories.remove(&numbers[0]).is_some(), "{record:?}"),
                0x8C => assert!(resources.remove(&numbers[0]).is_some(), "{record:?}"),
                0x83..=0x86 => assert!(memories.contains_key(&numbers[0]), "{record:?}"),
                0x8A => assert!(resources.contains_key(&numbers[0]), "{record:?}"),
                0x8B => assert!(resources.contains_key(&numbers[0]) && memories.contains_key(&numbers[2])),
                _ => {}
            }
        }
    }

    /// Returns the numbers of all records of an operation.
    pub(crate) fn all(&self, operation: u8) -> Vec<&[u64]> {
        self.0
            .iter()
            .filter(|record| record.operation == operation)
            .map(|record| &record.numbers[..])
            .collect()
    }

    pub(crate) fn count(&self, operation: u8) -> usize {
        self.all(operation).len()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().filter(|record| record.operation == 0x8D).map(|record| &record.text[..]).collect()
    }
}
