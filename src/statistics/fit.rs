//! Where an allocation would go.

/// Where an allocation would go: see [`would_fit`](crate::Allocator::would_fit).
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
    /// A block that there is, another one, or memory of its own.
    pub place: FitPlace,
    /// Whether the heap would still be within its budget. What is placed in a block that there is costs nothing, so
    /// that this says whether the heap is now.
    pub within_budget: bool,
    /// Bytes in use in the heap now.
    pub usage: u64,
    /// Bytes that may be in use in the heap.
    pub budget: u64,
    /// Bytes that are free in the blocks of the memory type, pool or scope.
    pub free_bytes: u64,
    /// Bytes that one allocation could have of these at the most.
    pub largest_free: u64,
}

/// What an allocation would be placed in.
///
/// ```
/// assert_eq!(sublet::FitPlace::NewBlock { size: 7 }.new_bytes(), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FitPlace {
    /// A block that there is.
    Block,
    /// Another block, which the driver would be asked for.
    NewBlock {
        /// Bytes of the block.
        size: u64,
    },
    /// Memory of its own.
    Dedicated {
        /// Bytes of it.
        size: u64,
    },
}

impl FitPlace {
    /// Bytes that the driver would be asked for.
    #[must_use]
    pub const fn new_bytes(self) -> u64 {
        match self {
            Self::Block => 0,
            Self::NewBlock { size } | Self::Dedicated { size } => size,
        }
    }
}
