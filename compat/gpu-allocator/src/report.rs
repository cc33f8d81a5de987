//! A list of the live allocations.

use std::fmt;
use std::ops::Range;

/// One live allocation.
#[derive(Clone)]
pub struct AllocationReport {
    /// Its name.
    pub name: String,
    /// Bytes from the start of its block.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// One block of memory.
#[derive(Clone)]
pub struct MemoryBlockReport {
    /// Size in bytes.
    pub size: u64,
    /// Its range of [`AllocatorReport::allocations`].
    pub allocations: Range<usize>,
}

/// All blocks and allocations.
#[derive(Clone)]
pub struct AllocatorReport {
    /// The allocations, ordered by block.
    pub allocations: Vec<AllocationReport>,
    /// The blocks.
    pub blocks: Vec<MemoryBlockReport>,
    /// Bytes of all allocations.
    pub total_allocated_bytes: u64,
    /// Bytes of all blocks.
    pub total_capacity_bytes: u64,
}

impl fmt::Debug for AllocationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "--" } else { self.name.as_str() };
        write!(f, "{name:?}: {}", ByteCount(self.size))
    }
}

/// Prints the largest allocations first. A precision such as `{:.10?}` limits their number.
impl fmt::Debug for AllocatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut largest: Vec<&AllocationReport> = self.allocations.iter().collect();
        largest.sort_by_key(|allocation| std::cmp::Reverse(allocation.size));
        largest.truncate(f.precision().unwrap_or(usize::MAX));
        let summary =
            format!("{} / {}", ByteCount(self.total_allocated_bytes), ByteCount(self.total_capacity_bytes));
        f.debug_struct("AllocatorReport")
            .field("summary", &format_args!("{summary}"))
            .field("blocks", &self.blocks.len())
            .field("allocations", &self.allocations.len())
            .field("largest", &largest)
            .finish()
    }
}

/// A number of bytes with two decimals and a unit.
struct ByteCount(u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
        let (mut before, mut amount, mut unit) = (None, self.0, 0);
        while amount >= 1024 && unit + 1 < UNITS.len() {
            before = Some(amount);
            amount /= 1024;
            unit += 1;
        }
        // In units of 1/1024. The part below one of the previous unit is cut off, as in the original.
        let parts = before.map_or(u128::from(amount) * 1024, u128::from);
        let (hundredths, rest) = (parts * 100 / 1024, parts * 100 % 1024);
        // Rounds to nearest, ties to even, as the formatting of `f64` does.
        let up = rest > 512 || rest == 512 && hundredths % 2 == 1;
        let hundredths = hundredths + u128::from(up);
        write!(f, "{}.{:02} {}", hundredths / 100, hundredths % 100, UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(ByteCount(0).to_string(), "0.00 B");
        assert_eq!(ByteCount(1023).to_string(), "1023.00 B");
        assert_eq!(ByteCount(1536).to_string(), "1.50 KB");
        assert_eq!(ByteCount(u64::MAX).to_string(), "16777216.00 TB");
    }

    #[test]
    fn the_largest_come_first_and_no_more_than_asked_for() {
        let allocation = |name: &str, size| AllocationReport { name: name.to_owned(), offset: 0, size };
        let report = AllocatorReport {
            allocations: vec![allocation("small", 1), allocation("large", 2), allocation("", 3)],
            blocks: Vec::new(),
            total_allocated_bytes: 6,
            total_capacity_bytes: 2048,
        };
        assert_eq!(
            format!("{report:.2?}"),
            "AllocatorReport { summary: 6.00 B / 2.00 KB, blocks: 0, allocations: 3, largest: [\"--\": 3.00 B, \"large\": 2.00 B] }"
        );
    }
}
