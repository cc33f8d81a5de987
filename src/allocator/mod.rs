//! The allocator: default vectors, pools, and the routing of allocations.

mod alias;
mod allocate;
mod attach;
mod bind;
mod copy;
mod create;
mod create_info;
mod debug;
mod dedicated;
pub(crate) mod defragment;
mod empty_blocks;
mod events;
mod external;
mod find;
mod fit;
mod import;
mod life;
mod maintain;
mod map;
mod memory_map;
mod pools;
mod priority;
mod recorded_call;
#[cfg_attr(not(feature = "trace"), path = "not_recording.rs")]
mod recording;
mod relief;
mod request;
mod reserve;
mod retire;
mod route;
mod scopes;
mod statistics;
mod tracking;
mod vectors;

use std::fmt;
use std::sync::atomic::AtomicU32;

use ash::vk;

use crate::allocation::{Allocation, AllocationInfo, Leak};
use crate::base::append_table::AppendTable;
use crate::base::sync::Mutex;
use crate::blocks::{DeviceContext, MemoryBlockVector};
use crate::error::ForeignHandle;
use crate::memory_type::MemoryTypeTable;

use debug::DebugState;
pub use recorded_call::{Outcome, RecordedCall};
use recording::Recording;

pub use create::CreateInside;
pub use create_info::AllocatorCreateInfo;
pub use debug::DebugSettings;
pub use defragment::{
    CompleteMoveError, Defragmentation, DefragmentationPass, FreeMoveError, Move, SharedDefragmentation,
};
#[cfg(feature = "sim")]
pub use life::doc_example;
pub use maintain::{MaintainInfo, Maintained};
pub use map::Mapping;
pub use map::Visibility;
pub use request::Resource;
pub use retire::{CollectError, RetiredResources, TimelineError};
use route::Bookkeeping;
pub use statistics::HeapBudget;
pub use tracking::Tracking;
use vectors::DefaultVector;

/// `ash` has no name for it yet.
const API_VERSION_1_4: u32 = vk::make_api_version(0, 1, 4, 0);
/// Numbers of pools: the free ones, and the next unused one.
#[derive(Debug)]
struct PoolNumbers {
    free: Vec<u32>,
    next: u32,
}

struct AllocatorInner {
    id: u32,
    context: DeviceContext,
    types: MemoryTypeTable,
    allowed_types: u32,
    maintenance5: bool,
    tracking: Tracking,
    /// The work that every allocation needs beyond the fast path, if any.
    bookkeeping: Bookkeeping,
    /// By memory type.
    defaults: Box<[DefaultVector]>,
    /// The vectors of pools, numbered after the default ones.
    pool_vectors: AppendTable<MemoryBlockVector>,
    pools: Mutex<PoolNumbers>,
    /// Serializes relief: freeing empty blocks for lack of memory. Held over driver calls.
    relief: Mutex<()>,
    /// The number of reliefs.
    reliefs: AtomicU32,
    debug: DebugState,
    recording: Recording,
}

/// Allocates device memory for buffers and images. Allocations are ranges of large blocks, which each memory type has,
/// and each [`Pool`](crate::Pool).
///
/// Most programs call [`create_buffer`](Self::create_buffer), [`create_image`](Self::create_image),
/// [`copy_to_allocation`](Self::copy_to_allocation), [`destroy_buffer`](Self::destroy_buffer),
/// [`destroy_image`](Self::destroy_image), and at the end, before the device is destroyed, [`destroy`](Self::destroy).
///
/// All methods take `&self`. `Allocator` is [`Send`] and [`Sync`]; share it by reference or in an
/// [`Arc`](std::sync::Arc). The value itself is one pointer.
///
/// Threads that contend for the blocks of a memory type get exclusive parts of them, so that they do not wait for one
/// another. [`guide::performance`](crate::guide::performance#threads) describes when, and the cost. A thread waits for
/// another thread's driver call only if it needs one too.
///
/// ```
/// use ash::vk;
/// use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
///
/// let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// let info = AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
/// // SAFETY: instance and device are live, and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&info) }?;
///
/// let buffer_info = vk::BufferCreateInfo::default().size(65_536).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
/// // SAFETY: the create-info is valid.
/// let (buffer, allocation) =
///     unsafe { allocator.create_buffer(&buffer_info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
/// // SAFETY: the device never used the buffer.
/// unsafe { allocator.destroy_buffer(buffer, allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "DeviceAllocator")]
#[doc(alias = "VulkanAllocator")]
pub struct Allocator {
    inner: Box<AllocatorInner>,
}

impl Allocator {
    /// All properties of an allocation.
    ///
    /// # Errors
    /// [`ForeignHandle`] if it belongs to another allocator, or its pool was destroyed.
    pub fn allocation_info(&self, allocation: &Allocation) -> Result<AllocationInfo, ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        let (annotation, memory_size) = vector.annotation_and_memory_size(allocation.live())?;
        Ok(AllocationInfo {
            memory_type_index: allocation.memory_type_index(),
            memory: allocation.memory,
            offset: allocation.offset,
            size: allocation.size,
            mapped_pointer: allocation.mapped_pointer(),
            user_data: allocation.user_data,
            name: annotation.name,
            caller: annotation.caller,
            memory_size,
            dedicated: allocation.is_dedicated(),
        })
    }

    /// Names an allocation for statistics and leak reports; `None` removes the name.
    ///
    /// # Errors
    /// [`ForeignHandle`] if it belongs to another allocator, or its pool was destroyed.
    #[doc(alias = "SetName")]
    pub fn set_allocation_name(
        &self,
        allocation: &Allocation,
        name: Option<&str>,
    ) -> Result<(), ForeignHandle> {
        self.vector_of(allocation)?.set_name(allocation.live(), name)?;
        self.record(RecordedCall::SetName(allocation, name));
        Ok(())
    }

    /// Frees every empty block, except the minimum number in each pool and [reserved](Self::reserve) blocks, and unmaps
    /// memory without users. Unused memory of threads' shards returns first. Returns the bytes freed.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// // SAFETY: nothing was ever bound to it.
    /// unsafe { allocator.free_memory(allocation) }?;
    /// assert!(allocator.trim() >= 4096, "one empty block was kept until now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> u64 {
        let span = tracing::debug_span!(target: "sublet::block", "trim");
        let _entered = span.enter();
        let bytes = self.inner.vectors().map(|vector| vector.trim(&self.inner.context)).sum();
        tracing::debug!(name: "trimmed", target: "sublet::block", bytes, "empty blocks given back");
        self.record(RecordedCall::Trim);
        bytes
    }

    /// Checks all internal state for consistency. For tests and debugging: O(allocations).
    ///
    /// # Panics
    /// Panics with the violated invariant.
    pub fn validate(&self) {
        self.inner.vectors().for_each(MemoryBlockVector::validate);
    }

    /// The vector of a live allocation. Fails if its pool or scope is gone.
    fn live_vector_of(&self, allocation: &Allocation) -> Result<&MemoryBlockVector, ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        vector.memory_size(allocation.live())?;
        Ok(vector)
    }

    /// The vector of an allocation.
    #[inline]
    fn vector_of(&self, allocation: &Allocation) -> Result<&MemoryBlockVector, ForeignHandle> {
        if allocation.allocator != self.inner.id {
            return Err(ForeignHandle::Allocation);
        }
        self.inner.vector(allocation.vector).ok_or(ForeignHandle::Allocation)
    }
}

impl AllocatorInner {
    /// Frees everything and returns the leaks. A second call finds nothing.
    fn shut_down(&self) -> Vec<Leak> {
        self.finish_recording();
        let mut leaks = Vec::new();
        for (number, vector) in self.numbered_vectors() {
            leaks.append(&mut self.deactivate(number, vector));
        }
        leaks
    }
}

impl Drop for AllocatorInner {
    fn drop(&mut self) {
        self.shut_down();
    }
}

impl fmt::Debug for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocator")
            .field("id", &self.inner.id)
            .field("memory_types", &self.inner.defaults.len())
            .finish_non_exhaustive()
    }
}
