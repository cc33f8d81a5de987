//! Items that `sublet-capi`, `sublet-layer` and the benchmarks need beyond the public API. No other package may use
//! them, and all of them may change.
//!
//! | item | reason |
//! |---|---|
//! | [`RecordedCall`], [`Outcome`], `record` | the C interface keeps names and user data, counts mappings and copies by itself, and recordings need them |
//! | [`ResourceRequirements`], [`Resource`], `allocate`, [`CreateInside`] | C passes a `VkMemoryRequirements` and its own create-info, which are read late |
//! | [`Visibility`], `make_visible` and related methods, `count_mapping`, `uncount_mapping` | copies of C are recorded as one call, including the mapping |
//! | [`OpenDefragmentation`], [`PlannedAllocationMove`], and the methods that take them | a defragmentation of C lives in a handle, and borrows nothing |
//! | [`LiveDevice`], `device` | the C interface destroys resources with the allocator's functions |
//! | [`CoreMutex`], [`CoreGuard`], [`thread_token`] | the table of handles has the same locks as an allocator, and one part for each thread |
//! | [`BriefMutex`] | `benches/locks.rs` compares it with `parking_lot` |
//! | [`index`], [`narrow`], [`widen`], [`host_size`] | one file justifies all integer conversions, including those of C's numbers |
//! | `foreign_head`, `Operation`, `Put`, `SEGMENT_BYTES`, `SEGMENT_HEADER_BYTES`, `SEGMENT_MARK` | `sublet-layer` writes files of recordings without an allocator |
//! | [`virtual_handle`], [`virtual_allocation`] | C identifies ranges by numbers |
//! | `foreign_recording` | tests of the report and the command need files like those of the layer |

use std::panic::Location;
use std::ptr::NonNull;

use crate::allocation::Allocation;
use crate::allocator::Allocator;
use crate::create_info::AllocationCreateInfo;
use crate::defragment::{DefragmentationInfo, DefragmentationStatistics, MoveError};
use crate::device::MemoryAllocateNext;
use crate::error::{AllocationError, BeginDefragmentationError, MapError};

pub use crate::allocator::defragment::{OpenDefragmentation, PlannedAllocationMove};
pub use crate::allocator::{CreateInside, Outcome, RecordedCall, Resource, Visibility};
pub use crate::base::sync::{BriefMutex, CoreGuard, CoreMutex};
pub use crate::device::{LiveDevice, ResourceRequirements};
#[cfg(feature = "trace")]
pub use crate::record::bytes::Put;
#[cfg(feature = "trace")]
pub use crate::record::encode::Operation;
#[cfg(feature = "trace")]
pub use crate::trace::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MARK, foreign_recording};
pub use crate::virtual_block::handle::{virtual_allocation, virtual_handle};
pub use sublet_engines::cast::{host_size, index, narrow, widen};

/// Returns the bytes before the first segment of a recording of any program: magic, and the description of the device.
#[cfg(feature = "trace")]
#[must_use]
pub fn foreign_head(header: &crate::trace::Header) -> Vec<u8> {
    crate::record::chunk::foreign_head(header)
}

/// A small number of the calling thread, which few other threads share.
#[must_use]
#[inline]
pub fn thread_token() -> u32 {
    crate::base::sync::thread_token::current()
}

/// Creates a trait of methods that only this crate sees.
macro_rules! inside {
    ($(fn $name:ident$(<$life:lifetime>)?(&self $(, $argument:ident: $type:ty)*) $(-> $answer:ty)?;)*) => {
        /// Non-public methods of an [`Allocator`]. Each is documented at its definition.
        #[allow(missing_docs, reason = "see above")]
        pub trait AllocatorInside {
            $(fn $name$(<$life>)?(&self $(, $argument: $type)*) $(-> $answer)?;)*
        }

        impl AllocatorInside for Allocator {
            $(
                #[inline(always)]
                fn $name$(<$life>)?(&self $(, $argument: $type)*) $(-> $answer)? {
                    // The inherent method takes precedence over that of the trait.
                    Self::$name(self $(, $argument)*)
                }
            )*
        }
    };
}

inside! {
    fn allocate<'i>(
        &self, resource: Resource, info: impl Fn() -> AllocationCreateInfo<'i>, next: Option<MemoryAllocateNext>,
        caller: &'static Location<'static>
    ) -> Result<Allocation, AllocationError>;
    fn record(&self, call: RecordedCall<'_>);
    fn device(&self) -> &LiveDevice;
    fn count_mapping(&self, allocation: &Allocation) -> Result<NonNull<u8>, MapError>;
    fn uncount_mapping(&self, allocation: &Allocation) -> Result<(), MapError>;
    fn make_visible(&self, visibility: Visibility, ranges: &[(&Allocation, u64, u64)]) -> Result<(), MapError>;
    fn make_visible_quietly(
        &self, visibility: Visibility, ranges: &[(&Allocation, u64, u64)]
    ) -> Result<(), MapError>;
    fn open_defragmentation(
        &self, info: &DefragmentationInfo<'_>
    ) -> Result<OpenDefragmentation, BeginDefragmentationError>;
    fn plan_moves(&self, open: &mut OpenDefragmentation, stop: &mut dyn FnMut() -> bool) -> Vec<PlannedAllocationMove>;
    fn end_pass(&self, open: &OpenDefragmentation);
    fn complete_move(
        &self, open: &OpenDefragmentation, planned: &PlannedAllocationMove, allocation: &mut Allocation, users: u64
    ) -> Result<(), MoveError>;
    fn ignore_move(&self, open: &OpenDefragmentation, planned: &PlannedAllocationMove);
    fn roll_back_move(&self, open: &OpenDefragmentation, planned: &PlannedAllocationMove);
    fn free_move(
        &self, open: &OpenDefragmentation, planned: &PlannedAllocationMove, allocation: &Allocation, users: u64
    ) -> Result<(), MoveError>;
    fn close_defragmentation(&self, open: OpenDefragmentation) -> DefragmentationStatistics;
}
