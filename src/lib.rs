//! Sublet is a Vulkan memory allocator: it takes large `VkDeviceMemory` blocks from the driver and suballocates ranges
//! of them.
//!
//! # Where to start
//!
//! [`Allocator`] with [`create_buffer`](Allocator::create_buffer) and [`create_image`](Allocator::create_image) is all
//! that most programs need; [`guide::start`] introduces them. The [`guide`] has chapters on memory types, pools,
//! uploads, budgets, threads, testing, debugging, and the calls that replace those of VMA, vk-mem and gpu-allocator.
//!
//! | task | items |
//! |---|---|
//! | allocating buffers, images, memory | [`Allocator`], created from an [`AllocatorCreateInfo`] |
//! | describing the use of memory | [`AllocationCreateInfo`] with [`MemoryUsage`] and [`AllocationCreateFlags`] |
//! | holding and freeing memory | [`Allocation`]: passed by value, so that freeing twice does not compile |
//! | reading and writing | [`copy_to_allocation`](Allocator::copy_to_allocation), [`write_slice`](Allocator::write_slice), [`copy_from_allocation`](Allocator::copy_from_allocation), [`Mapping`] |
//! | limits, rings and stacks | [`Pool`] from a [`PoolCreateInfo`], with an [`Algorithm`] |
//! | measuring memory usage | [`HeapBudget`], [`Statistics`], [`TotalStatistics`], [`MemoryMap`], [`Leak`] |
//! | predicting if an allocation fits | [`would_fit`](Allocator::would_fit) and its variants |
//! | moving live allocations | [`begin_defragmentation`](Allocator::begin_defragmentation): see [`guide::moving`] |
//! | freeing many allocations at once, for example of a level | [`Scope`] |
//! | finding faults | [`DebugSettings`], [`Tracking`] |
//! | tracking when the GPU is done with a resource | [`retire::Clock`], [`RetiredResources`]: see [`guide::retirement`] |
//! | uploading bytes to the device | [`upload::UploadArena`]: see [`guide::uploads`] |
//! | descriptor sets, heaps, and binding them | the package `sublet-descriptors` |
//! | memory maps as pages and pictures, comparisons | the package `sublet-report`: see [`guide::reports`] |
//! | recordings of a program's calls, and their replay | `trace`, with the feature of that name: see [`guide::reports`] |
//! | suballocating ranges of other resources | [`VirtualBlock`], or the engines themselves in [`metadata`] |
//! | tests without a GPU | `sim`, with the feature of that name |
//! | using functions that the program has loaded | [`device::VulkanFunctions`] |
//!
//! ```
//! use ash::vk;
//! use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
//!
//! // Simulated; with a real device pass your own handles to `AllocatorCreateInfo::new`.
//! let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
//! // Instance and device are live, and outlive the allocator.
//! let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
//!
//! let info = vk::BufferCreateInfo::default().size(65_536).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
//! // The create-info is valid.
//! let (buffer, memory) = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
//! // The device is done with the buffer.
//! unsafe { allocator.destroy_buffer(buffer, memory) }?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it is built
//!
//! `ARCHITECTURE.md` in the repository shows the layers and the locks; the top of `src/allocator/route.rs` follows one
//! allocation through the files. [`guide::design`] has the reason for each decision, and [the
//! glossary](guide::design#the-words) of the source. The engines of [`metadata`], a package of their own, forbid
//! `unsafe`. Every other file that needs it states why.
//!
//! # What it does not do
//!
//! [`guide::limits`] lists missing features, and the drawbacks of existing ones.
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod allocation;
mod allocator;
mod base;
mod blocks;
mod create_info;
mod defragment;
pub mod device;
mod engine;
mod error;
pub mod guide;
mod memory_type;
mod operations;
mod pool;
#[doc(hidden)]
pub mod private;
#[cfg(feature = "trace")]
mod record;
pub mod retire;
mod statistics;
#[cfg(feature = "trace")]
pub mod trace;
pub mod upload;
pub mod vector;
mod virtual_block;

pub use allocation::{Allocation, AllocationId, AllocationInfo, FreeError, Leak, ResourceKind};
#[cfg(feature = "sim")]
#[doc(hidden)]
pub use allocator::doc_example;
pub use allocator::{
    Allocator, AllocatorCreateInfo, CollectError, CompleteMoveError, DebugSettings, Defragmentation,
    DefragmentationPass, FreeMoveError, HeapBudget, MaintainInfo, Maintained, Mapping, Move,
    RetiredResources, SharedDefragmentation, TimelineError, Tracking,
};
pub use create_info::{
    AllocationCreateFlags, AllocationCreateInfo, AllocatorCreateFlags, BlockSizes, GrowthPreset, MemoryUsage,
    PoolCreateFlags, PoolCreateInfo, PoolParameters,
};
pub use defragment::{
    DefragmentationAlgorithm, DefragmentationExtent, DefragmentationGain, DefragmentationInfo,
    DefragmentationStatistics, MoveError,
};
pub use device::MemoryAllocateNext;
pub use engine::Algorithm;
pub use error::{
    AliasError, AllocatePagesError, AllocationError, BeginDefragmentationError, BindError, Contradiction,
    CorruptionError, CreateAllocatorError, CreateError, CreatePoolError, DamagedAllocation, ExportError,
    FindMemoryTypeError, ForeignHandle, HostImportError, MapError, MemoryError, PriorityError,
    ReserveMemoryError,
};
pub use memory_type::NoMemoryType;
pub use pool::{DestroyPoolError, FreeScopeError, Pool, Scope, ScopeCreateInfo};
pub use statistics::{
    AllocationEntry, BlockMap, ChunkMap, DedicatedMap, DetailedStatistics, Fit, FitPlace, MemoryMap,
    Statistics, TotalStatistics, VectorMap,
};
#[doc(inline)]
pub use sublet_engines as metadata;
#[cfg(feature = "sim")]
#[doc(inline)]
pub use sublet_sim as sim;
pub use virtual_block::*;

/// The README's code, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
