//! The predicted place of an allocation.

/// The predicted place of an allocation: see [`would_fit`](crate::Allocator::would_fit).
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// let requirements = vk::MemoryRequirements { size: 1 << 30, alignment: 256, memory_type_bits: !0 };
/// let fit: Fit = allocator.would_fit(&requirements, &AllocationCreateInfo::default())?;
/// assert_eq!((fit.place, fit.largest_free), (FitPlace::Dedicated { size: 1 << 30 }, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Fit {
    /// Index of the memory type.
    pub memory_type_index: u32,
    /// Index of its heap.
    pub heap_index: u32,
    /// An existing block, a new block, or dedicated memory.
    pub place: FitPlace,
    /// True if the heap would stay within its budget. For an existing block, which needs no new memory, true if the
    /// heap is within its budget now.
    pub within_budget: bool,
    /// The current usage of the heap in bytes.
    pub usage: u64,
    /// The budget of the heap in bytes.
    pub budget: u64,
    /// The free bytes in the blocks of the memory type, pool or scope.
    pub free_bytes: u64,
    /// The size of the largest possible allocation in these blocks.
    pub largest_free: u64,
}

/// The kind of place of an allocation.
///
/// ```
/// assert_eq!(sublet::FitPlace::NewBlock { size: 7 }.new_bytes(), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FitPlace {
    /// An existing block.
    Block,
    /// A new block from the driver.
    NewBlock {
        /// The size of the block in bytes.
        size: u64,
    },
    /// Dedicated memory.
    Dedicated {
        /// Its size in bytes.
        size: u64,
    },
}

impl FitPlace {
    /// Returns the number of bytes that the driver would have to allocate.
    #[must_use]
    pub const fn new_bytes(self) -> u64 {
        match self {
            Self::Block => 0,
            Self::NewBlock { size } | Self::Dedicated { size } => size,
        }
    }
}
