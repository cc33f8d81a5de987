//! Figures of a snapshot: how much of the memory is free but of little use, what is large, and who asked for it.
#![forbid(unsafe_code)]

mod fragmentation;
mod groups;
mod room;

pub use fragmentation::{Figures, Fragmentation};
pub use groups::{Group, suspected_leaks};

use super::snapshot::{Located, Snapshot};

impl Snapshot {
    /// The `count` largest allocations, the largest first; of the same size, in the order of [`Self::allocations`].
    ///
    /// # Complexity
    /// O(n log n) for n allocations.
    ///
    /// ```
    /// # use sublet::*; use sublet_report::Snapshot; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let mut held = Vec::new();
    /// for size in [256, 768, 512] {
    ///     let requirements = vk::MemoryRequirements { size, alignment: 4, memory_type_bits: !0 };
    ///     held.push(allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?);
    /// }
    /// let snapshot = Snapshot::of(&allocator);
    /// let sizes: Vec<u64> = snapshot.largest(2).iter().map(|allocation| allocation.size).collect();
    /// assert_eq!(sizes, [768, 512]);
    /// # for allocation in held { unsafe { allocator.free_memory(allocation) }?; }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn largest(&self, count: usize) -> Vec<Located<'_>> {
        let mut all: Vec<Located<'_>> = self.allocations().collect();
        // A stable sort: the order of the rest stays.
        all.sort_by_key(|allocation| std::cmp::Reverse(allocation.size));
        all.truncate(count);
        all
    }
}

/// `part` of `whole`, from 0 to 1; 0 of nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (float(part) / float(whole)).min(1.0) }
}

/// The nearest floating-point number.
pub(super) fn float(value: u64) -> f64 {
    let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
    let (high, low) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
    // 2^32 times a number of 32 bits is exact, so the sum is rounded once.
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}
