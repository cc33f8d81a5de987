//! Figures of a snapshot: fragmentation, the largest allocations, and groups by name, caller and kind.

mod emptying;
mod fragmentation;
mod groups;

pub use fragmentation::{Figures, Fragmentation};
pub use groups::{Group, suspected_leaks};

use super::snapshot::{Located, Snapshot};

impl Snapshot {
    /// Returns the `count` largest allocations, the largest first. Equal sizes keep the order of [`Self::allocations`].
    ///
    /// # Complexity
    /// O(n log n) for n allocations.
    #[must_use]
    pub fn largest(&self, count: usize) -> Vec<Located<'_>> {
        let mut all: Vec<Located<'_>> = self.allocations().collect();
        // The sort is stable: equals keep their order.
        all.sort_by_key(|allocation| std::cmp::Reverse(allocation.size));
        all.truncate(count);
        all
    }
}

/// Returns `part` / `whole`, from 0 to 1, or 0 if `whole` is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (float(part) / float(whole)).min(1.0) }
}

/// Returns the nearest floating-point number.
pub(super) fn float(value: u64) -> f64 {
    let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
    let (high, low) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
    // 2^32 times a number of 32 bits is exact, so the sum is rounded once.
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}
