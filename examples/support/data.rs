//! Test data, equal on every run.

/// A seeded generator, so that every run has the same data.
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number in `range`, which is not empty.
    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        self.0.u64(range)
    }

    /// Returns an index below `length`, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.0.usize(..length)
    }

    /// Returns `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.fill(&mut bytes);
        bytes
    }
}

/// Returns the 64-bit FNV-1a hash.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
