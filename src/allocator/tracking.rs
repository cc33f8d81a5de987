//! What an allocator keeps of every allocation, if the program asks for it.
#![forbid(unsafe_code)]

use std::panic::Location;

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::allocation::Allocation;
use crate::blocks::Annotation;
use crate::create_info::AllocationCreateInfo;
use crate::error::ForeignHandle;

bitflags::bitflags! {
    /// What an allocator keeps of every allocation, besides the names that some have: see
    /// [`AllocatorCreateInfo::tracking`](crate::AllocatorCreateInfo::tracking).
    ///
    /// What is kept is shown by leak reports, by a [`MemoryMap`](crate::MemoryMap) and by the statistics string. It
    /// costs an entry in a table for each allocation, and every allocation then takes the longer way that named ones
    /// take. An allocator that tracks nothing pays nothing.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// let info = AllocatorCreateInfo { tracking: Tracking::all(), ..AllocatorCreateInfo::for_gpu(&gpu) };
    /// # let allocator = unsafe { Allocator::new(&info) }?;
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
    /// let _lost = allocator.allocate_memory(&requirements, &AllocationCreateInfo { user_data: 7, ..Default::default() })?;
    /// let line = line!() - 1;
    /// let leaks = allocator.destroy();
    /// assert_eq!((leaks[0].user_data, leaks[0].caller.unwrap().line()), (Some(7), line));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Tracking: u32 {
        /// The number that the program keeps with the allocation:
        /// [`AllocationCreateInfo::user_data`](crate::AllocationCreateInfo::user_data), and what
        /// [`set_allocation_user_data`](crate::Allocator::set_allocation_user_data) makes of it.
        const USER_DATA = 0x1;
        /// The place in the program that called the function that allocated. Buffers of arenas and descriptor
        /// heaps are of the place that made those.
        const CALLER = 0x2;
    }
}

impl Tracking {
    /// What is kept of an allocation that was just made.
    pub(super) fn annotation(
        self,
        info: &AllocationCreateInfo<'_>,
        caller: Option<&'static Location<'static>>,
    ) -> Annotation {
        Annotation {
            name: info.name.map(Box::from),
            user_data: self.contains(Self::USER_DATA).then_some(info.user_data),
            caller: caller.filter(|_| self.contains(Self::CALLER)),
            is_set_aside: false,
        }
    }
}

impl Allocator {
    /// Changes what the caller keeps with the allocation: in the allocation itself, as
    /// [`Allocation::set_user_data`] does, and, with [`Tracking::USER_DATA`], in what leak reports and maps show.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the allocation is another allocator's; nothing was changed.
    pub fn set_allocation_user_data(
        &self,
        allocation: &mut Allocation,
        user_data: u64,
    ) -> Result<(), ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        if self.inner.tracking.contains(Tracking::USER_DATA) {
            vector.annotate(allocation.live(), |kept| kept.user_data = Some(user_data))?;
        } else {
            // Says whether the allocation is a live one.
            vector.memory_size(allocation.live())?;
        }
        allocation.set_user_data(user_data);
        self.record(RecordedCall::SetUserData(allocation, user_data));
        Ok(())
    }
}
