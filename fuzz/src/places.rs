//! The model of live ranges.

use std::collections::BTreeMap;

/// The live ranges of several memories: no two of one memory overlap.
#[derive(Debug, Default)]
pub struct Places {
    /// The end of each range, by memory and start.
    ends: BTreeMap<(u64, u64), u64>,
}

impl Places {
    /// Adds a range of a memory.
    ///
    /// # Panics
    /// If it is empty, leaves the memory, is not aligned, or overlaps another one.
    pub fn add(&mut self, memory: u64, offset: u64, size: u64, memory_size: u64, alignment: u64) {
        let end = offset.checked_add(size).expect("the range ends");
        assert!(size > 0, "an empty range");
        assert!(end <= memory_size, "{offset}..{end} leaves the memory of {memory_size} bytes");
        assert_eq!(offset % alignment.max(1), 0, "{offset} is not a multiple of {alignment}");
        let before = self.ends.range(..=(memory, offset)).next_back();
        if let Some((&(_, start), &other)) = before.filter(|((of, _), _)| *of == memory) {
            assert!(other <= offset, "{offset}..{end} overlaps {start}..{other}");
        }
        if let Some((&(of, start), &other)) = self.ends.range((memory, offset)..).next() {
            assert!(of != memory || end <= start, "{offset}..{end} overlaps {start}..{other}");
        }
        self.ends.insert((memory, offset), end);
    }

    /// Removes a range.
    ///
    /// # Panics
    /// If there is no such range.
    pub fn remove(&mut self, memory: u64, offset: u64, size: u64) {
        let end = self.ends.remove(&(memory, offset));
        assert_eq!(end, Some(offset + size), "no range of {size} bytes at {offset}");
    }

    /// Removes all ranges.
    pub fn clear(&mut self) {
        self.ends.clear();
    }

    /// Returns the number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the sum of all sizes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ends.iter().map(|((_, start), end)| end - start).sum()
    }
}
