//! Errors of allocating.

use ash::vk;

use super::access::MapError;
use super::memory::MemoryError;
use crate::engine::Algorithm;
use crate::memory_type::NoMemoryType;

/// Two options that exclude each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Contradiction {
    /// `DEDICATED_MEMORY`, or an option that implies it, with `NEVER_ALLOCATE`.
    DedicatedNeverAllocate,
    /// `DEDICATED_MEMORY`, or a resource that requires it, in a pool with a fixed block size.
    DedicatedInFixedPool,
    /// `DEDICATED_MEMORY` with `UPPER_ADDRESS`.
    DedicatedUpperAddress,
    /// Both `HOST_ACCESS_SEQUENTIAL_WRITE` and `HOST_ACCESS_RANDOM`.
    TwoHostAccesses,
    /// `HOST_ACCESS_ALLOW_TRANSFER_INSTEAD` without one of the `HOST_ACCESS` flags.
    TransferInsteadOfNothing,
    /// `MAPPED` with an `Auto` usage and without one of the `HOST_ACCESS` flags.
    MappedWithoutHostAccess,
    /// More than one strategy.
    SeveralStrategies,
    /// A `pNext` chain for memory in a pool that has a chain too.
    TwoMemoryAllocateChains,
    /// Both a pool and a scope.
    PoolAndScope,
}

sublet_engines::errors! { Contradiction:
    DedicatedNeverAllocate => "dedicated memory was asked for, and the driver was not to be asked";
    DedicatedInFixedPool => "dedicated memory was asked for in a pool with a fixed block size";
    DedicatedUpperAddress => "dedicated memory has no upper address";
    TwoHostAccesses => "host access is either sequential writes or random";
    TransferInsteadOfNothing => "a transfer may stand in for host access, and no host access was asked for";
    MappedWithoutHostAccess => "a mapped allocation with an automatic usage needs a host access flag";
    SeveralStrategies => "only one strategy can be followed";
    TwoMemoryAllocateChains => "the pool has a chain for its memory, and another one was given";
    PoolAndScope => "an allocation is made in a pool or in a scope";
}

/// The reason why an allocation failed.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// let requirements = vk::MemoryRequirements { size: 0, alignment: 256, memory_type_bits: !0 };
/// let error = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap_err();
/// assert_eq!(error, AllocationError::ZeroSize);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum AllocationError {
    /// The requested size is zero.
    ZeroSize,
    /// The alignment is not a power of two.
    Alignment {
        /// The requested alignment, in bytes.
        alignment: u64,
    },
    /// The priority is not between 0.0 and 1.0.
    Priority {
        /// The requested priority.
        priority: f32,
    },
    /// The flags exclude each other.
    Contradiction(Contradiction),
    /// No memory type fits.
    NoMemoryType(NoMemoryType),
    /// The memory type of the pool cannot hold this resource.
    PoolMemoryType {
        /// The pool's memory type.
        memory_type: u32,
        /// The types that suit the resource.
        memory_type_bits: u32,
    },
    /// The pool belongs to another allocator, or was destroyed.
    ForeignPool,
    /// `UPPER_ADDRESS` outside of a linear pool that may have only one block.
    UpperAddress {
        /// The pool's algorithm.
        algorithm: Algorithm,
        /// The maximum number of blocks; 0 means no limit.
        max_block_count: u32,
    },
    /// `UPPER_ADDRESS` while the pool is in use as a ring buffer.
    UpperAddressInRing,
    /// The allocation is larger than a block of the pool.
    BlockTooSmall {
        /// Requested bytes.
        size: u64,
        /// Bytes of a block.
        block_size: u64,
    },
    /// No block has room, and no further block is allowed.
    Full {
        /// Requested bytes.
        size: u64,
        /// The requested alignment, in bytes.
        alignment: u64,
        /// Free bytes in all blocks together.
        free: u64,
        /// The largest free range in bytes. If several ranges are about as large, the value may be too small, by less
        /// than 1/64.
        largest_free: u64,
        /// The number of blocks, including dedicated allocations that count as blocks.
        block_count: u32,
        /// The maximum number of blocks; 0 if `NEVER_ALLOCATE` forbids another one.
        max_block_count: u32,
    },
    /// No `VkDeviceMemory` could be allocated.
    Memory(MemoryError),
    /// The memory could not be mapped.
    Map(MapError),
}

impl AllocationError {
    /// The Vulkan result that VMA would return for this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::ZeroSize | Self::Alignment { .. } | Self::Priority { .. } => {
                vk::Result::ERROR_INITIALIZATION_FAILED
            }
            Self::Contradiction(_)
            | Self::NoMemoryType(_)
            | Self::PoolMemoryType { .. }
            | Self::ForeignPool
            | Self::UpperAddress { .. } => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            Self::Memory(error) => error.vk_result(),
            Self::Map(error) => error.vk_result(),
            _ => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        }
    }

    /// Returns true if another memory type may succeed.
    pub(crate) fn is_shortage(&self) -> bool {
        match self {
            Self::Memory(error) => error.is_shortage(),
            Self::Full { .. } | Self::BlockTooSmall { .. } => true,
            Self::Map(error) => error.is_shortage(),
            _ => false,
        }
    }

    /// Replaces the size with that of the original request: the request to a vector includes the debug margin.
    pub(crate) fn asked_for(mut self, size: u64) -> Self {
        if let Self::Full { size: reported, .. } | Self::BlockTooSmall { size: reported, .. } = &mut self {
            *reported = size;
        }
        self
    }

    /// Chooses between the errors of two places that refused a request: this one, unless the other place came closer to
    /// granting it. The error of a place that can never hold the request is the least useful. A failed driver call is
    /// the most useful, because the program knows its own limits but not the driver's answer.
    pub(crate) fn or_closer(self, other: Self) -> Self {
        if other.closeness() > self.closeness() { other } else { self }
    }

    fn closeness(&self) -> u8 {
        match self {
            Self::BlockTooSmall { .. } => 0,
            Self::Memory(error) if error.is_permanent() => 0,
            Self::Memory(MemoryError::Driver { .. }) | Self::Map(_) => 2,
            _ => 1,
        }
    }
}

sublet_engines::errors! { AllocationError:
    ZeroSize => "zero bytes were asked for";
    Alignment { alignment } => "the alignment {alignment} is not a power of two";
    Priority { priority } => "the priority {priority} is not between 0 and 1";
    Contradiction(what: Contradiction) => "contradictory flags: {what}";
    NoMemoryType(error: NoMemoryType) => "{error}";
    PoolMemoryType { memory_type, memory_type_bits } =>
        "the pool is in memory type {memory_type}, the resource can be in the types {memory_type_bits:#b}";
    ForeignPool => "the pool is of another allocator, or was destroyed";
    UpperAddress { algorithm, max_block_count: 0 } =>
        "an upper address needs a linear pool with one block: this is {algorithm:?} with any number of blocks";
    UpperAddress { algorithm, max_block_count } =>
        "an upper address needs a linear pool with one block: this is {algorithm:?} with up to {max_block_count}";
    UpperAddressInRing => "the pool is in use as a ring buffer, which excludes upper addresses";
    BlockTooSmall { size, block_size } => "{size} bytes are more than a block of {block_size} bytes can hold";
    Full { size, alignment, free, largest_free, block_count, max_block_count } =>
        "no room for {size} bytes aligned to {alignment}: {free} bytes are free in {block_count} block{}, \
         {largest_free} of them in one piece, and {}" (
            if *block_count == 1 { "" } else { "s" },
            match max_block_count {
                0 => "the driver is not to be asked for another".to_owned(),
                1 => "no more than 1 block is allowed".to_owned(),
                most => format!("no more than {most} blocks are allowed"),
            }
        );
    Memory(error: MemoryError) => "{error}";
    Map(error) => "the memory could not be mapped: {error}";
}

/// The reason why pages were not allocated. None of them stays allocated.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum AllocatePagesError {
    /// The list of create-infos has neither one element nor one for each requirement.
    Lengths {
        /// Length of the list of requirements.
        requirements: usize,
        /// Length of the list of create-infos.
        create_infos: usize,
    },
    /// One element could not be allocated. Those before it were freed again.
    Element {
        /// The index of the element.
        index: usize,
        /// Its error.
        error: AllocationError,
    },
}

sublet_engines::errors! { AllocatePagesError:
    Lengths { requirements, create_infos } =>
        "{create_infos} create-infos for {requirements} requirements: give one, or as many";
    Element { index, error } => "element {index} could not be allocated: {error}", error;
}
