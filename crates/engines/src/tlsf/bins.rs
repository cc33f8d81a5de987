//! The lists of free chunks by size class, indexed by two levels of bits.
//!
//! A class is a number with [`SECOND_LOG2`] bits after its leading one, like a small floating-point number. So classes
//! are in the order of their sizes and the next larger class is the next number. With 64 to each power of two:
//! ```text
//!   sizes     0  1  2 ... 127 | 128..129  130..131 ... 254..255 | 256..259  260..263 ...
//!   class     0  1  2 ... 127 |   128       129          191    |   192       193
//!             linear: exact       steps of 2                      steps of 4
//!
//!   class 193 = 64 * 3 + 1:   bit 3 of `first`  ->  bit 1 of `second[3]`  ->  `heads[193]`  ->  a list of chunks
//! ```
//!
//! The chunks of a class differ by less than 1/64 of their size.

use crate::cast::{index, narrow};
use crate::chunks::{ChunkNode, Chunks, NONE};

/// Log2 of the number of classes in a power of two.
///
/// 16, 32 and 64 classes were measured. More classes pack better, because the head of a list is a better fit. Up to the
/// 64 bits of a word, more classes do not slow the search. 128 would need another level.
pub(super) const SECOND_LOG2: u32 = 6;
/// Classes in a power of two: the bits of one word.
const SECOND: u32 = 1 << SECOND_LOG2;

/// The number of chunks of the last list that [`Bins::largest`] compares. It is small because each refused request
/// computes the figure under the lock.
pub(super) const LARGEST_LOOKS: u32 = 4;

// The class of 2^63, the largest size, has its bit in `first`.
const _: () = assert!(class_of(1 << 63) >> SECOND_LOG2 < u64::BITS);
const _: () = assert!(SECOND <= u64::BITS);

/// The class of a chunk of `size` units.
#[inline]
pub(super) const fn class_of(size: u64) -> u32 {
    let step = step_log2(size);
    (step << SECOND_LOG2) + low_bits(size >> step)
}

/// The least class in which every chunk has at least `size` units. `size` may be any number, such as the sum of a size
/// and its alignment cost.
#[inline]
pub(super) const fn class_above(size: u64) -> u32 {
    let step = step_log2(size);
    // Classes continue from one power of two to the next, so a carry out of the leading bits is correct. If the sum
    // saturates, the result is above the class of every chunk.
    (step << SECOND_LOG2) + low_bits(size.saturating_add(!(u64::MAX << step)) >> step)
}

/// [`class_above`] of a size up to 2^63, and the most units by which rounding up to a class can increase it.
#[inline]
pub(super) const fn class_and_step(size: u64) -> (u32, u64) {
    let step = step_log2(size);
    let rest = !(u64::MAX << step);
    ((step << SECOND_LOG2) + low_bits((size + rest) >> step), rest)
}

/// Log2 of the number of sizes that share the class of `size`.
#[inline]
const fn step_log2(size: u64) -> u32 {
    // The bit makes the result 0 for sizes in the linear part.
    (size | (1 << SECOND_LOG2)).ilog2() - SECOND_LOG2
}

#[inline]
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "less than 2 * SECOND: the leading bits of a size"
)]
const fn low_bits(bits: u64) -> u32 {
    bits as u32
}

/// Lists of free chunks by class.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    /// Bit `i`: `second[i]` is not zero.
    first: u64,
    /// Bit `j` of `second[i]`: list `i * SECOND + j` is not empty.
    second: [u64; 64],
    /// The first chunk of each list.
    heads: Box<[u32]>,
}

impl Bins {
    /// Creates lists for chunks of up to `max_size` units.
    pub(super) fn new(max_size: u64) -> Self {
        Self {
            first: 0,
            second: [0; 64],
            heads: vec![NONE; index(class_of(max_size)) + 1].into_boxed_slice(),
        }
    }

    /// Empties all lists, without visiting chunks. O(lists that are not empty).
    pub(super) fn clear(&mut self) {
        while let Some(class) = self.find(0) {
            self.heads[index(class)] = NONE;
            self.clear_if(class, NONE);
        }
    }

    /// The first chunk of a class, or [`NONE`].
    #[inline]
    pub(super) fn head(&self, class: u32) -> u32 {
        self.heads[index(class)]
    }

    /// The least class from `class` on with a chunk.
    #[inline]
    pub(super) fn find(&self, class: u32) -> Option<u32> {
        let row = class >> SECOND_LOG2;
        let word = self.second[index(row & 63)] & (u64::MAX << (class & (SECOND - 1)));
        if word != 0 {
            return Some((row << SECOND_LOG2) | word.trailing_zeros());
        }
        let rows = self.first & (u64::MAX << 1 << (row & 63));
        if rows == 0 {
            return None;
        }
        let row = rows.trailing_zeros();
        Some((row << SECOND_LOG2) | self.second[index(row & 63)].trailing_zeros())
    }

    /// The greatest class up to `class` with a chunk.
    pub(super) fn find_below(&self, class: u32) -> Option<u32> {
        let row = class >> SECOND_LOG2;
        let word = self.second[index(row & 63)] & (u64::MAX >> (u64::BITS - 1 - (class & (SECOND - 1))));
        if word != 0 {
            return Some((row << SECOND_LOG2) | word.ilog2());
        }
        let rows = self.first & !(u64::MAX << (row & 63));
        if rows == 0 {
            return None;
        }
        let row = rows.ilog2();
        Some((row << SECOND_LOG2) | self.second[index(row & 63)].ilog2())
    }

    /// The greatest class.
    pub(super) fn last_class(&self) -> u32 {
        narrow(self.heads.len() - 1)
    }

    /// Adds an unlisted free chunk of `class` at the head of its list.
    #[inline(always)]
    pub(super) fn insert(&mut self, nodes: &mut [ChunkNode], chunk: u32, class: u32) {
        let head = &mut self.heads[index(class)];
        let next = *head;
        *head = chunk;
        let node = &mut nodes[index(chunk)];
        node.a = NONE;
        node.b = next;
        // Writes to slot 0 if there is no next chunk: see C1.
        nodes[index(next)].a = chunk;
        let row = class >> SECOND_LOG2;
        let word = &mut self.second[index(row & 63)];
        if *word == 0 {
            self.first |= 1 << row;
        }
        *word |= 1 << (class & (SECOND - 1));
    }

    /// Removes a free chunk from the list of `class`.
    #[inline(always)]
    pub(super) fn remove(&mut self, nodes: &mut [ChunkNode], chunk: u32, class: u32) {
        let node = &nodes[index(chunk)];
        let (prev, next) = (node.a, node.b);
        // Writes to slot 0 if there is no next chunk: see C1.
        nodes[index(next)].a = prev;
        let head = &mut self.heads[index(class)];
        // The first chunk's link back may contain anything.
        let (first, before) = if *head == chunk { (next, NONE) } else { (*head, prev) };
        *head = first;
        nodes[index(before)].b = next;
        nodes[index(NONE)].b = NONE;
        self.clear_if(class, first);
    }

    /// Removes `chunk`, the first one, from the list of `class`. Does not load the next chunk: it becomes the first,
    /// whose link back may contain anything.
    #[inline(always)]
    pub(super) fn pop(&mut self, nodes: &mut [ChunkNode], chunk: u32, class: u32) {
        let next = nodes[index(chunk)].b;
        self.heads[index(class)] = next;
        self.clear_if(class, next);
    }

    /// Clears the bits of a list if `first`, its first chunk, is [`NONE`]. Does not branch on that, because it is hard
    /// to predict.
    #[inline]
    fn clear_if(&mut self, class: u32, first: u32) {
        let row = class >> SECOND_LOG2;
        let word = &mut self.second[index(row & 63)];
        *word &= !(u64::from(first == NONE) << (class & (SECOND - 1)));
        if *word == 0 {
            self.first &= !(1 << row);
        }
    }

    /// Moves a chunk to another list after its size changed.
    #[inline(always)]
    pub(super) fn reclass(&mut self, nodes: &mut [ChunkNode], chunk: u32, from: u32, to: u32) {
        if from != to {
            self.remove(nodes, chunk, from);
            self.insert(nodes, chunk, to);
        }
    }

    /// Moves a chunk to the list of its new class, if that changed, after its size grew from `from` to `to`.
    #[inline(always)]
    pub(super) fn resize(&mut self, nodes: &mut [ChunkNode], chunk: u32, from: u64, to: u64) {
        // Sizes with equal leading bits have the same class, which then need not be computed.
        if (from ^ to) >> step_log2(to) != 0 {
            self.remove(nodes, chunk, class_of(from));
            self.insert(nodes, chunk, class_of(to));
        }
    }

    /// The size of the largest chunk, or 0. If the last list has more than [`LARGEST_LOOKS`] chunks, the result may be
    /// too small by less than 1/64.
    pub(super) fn largest(&self, chunks: &Chunks) -> u64 {
        let mut largest = 0;
        if let Some(class) = self.find_below(self.last_class()) {
            let mut chunk = self.head(class);
            for _ in 0..LARGEST_LOOKS {
                let (size, next) = chunks.listed(chunk);
                largest = largest.max(size);
                if next == NONE {
                    break;
                }
                chunk = next;
            }
        }
        largest
    }

    /// Bytes of host memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.heads.len() * size_of::<u32>()
    }

    /// Asserts I3 and I4, and calls `visit` for each chunk in a list.
    pub(super) fn validate(&self, chunks: &Chunks, visit: &mut dyn FnMut(u32)) {
        for row in 0..64_u32 {
            let word = self.second[index(row)];
            assert_eq!(word != 0, self.first >> row & 1 == 1, "I4: bit {row} of the first level");
            for column in 0..SECOND {
                let class = (row << SECOND_LOG2) | column;
                let head = self.heads.get(index(class)).copied().unwrap_or(NONE);
                assert_eq!(head != NONE, word >> column & 1 == 1, "I3: bit of class {class}");
                chunks.validate_list(head, &mut |chunk| {
                    let size = chunks.size(chunk);
                    assert_eq!(
                        class_of(size),
                        class,
                        "I2: chunk {chunk} of {size} units is in class {class}"
                    );
                    visit(chunk);
                });
            }
        }
    }

    /// Damages I3 for a test.
    #[cfg(test)]
    pub(super) fn flip_second(&mut self, class: u32) {
        self.second[index(class >> SECOND_LOG2)] ^= 1 << (class & (SECOND - 1));
    }

    /// Damages I4 for a test.
    #[cfg(test)]
    pub(super) fn flip_first(&mut self, row: u32) {
        self.first ^= 1 << row;
    }
}
