//! Optional data that an allocator keeps for every allocation.

use std::panic::Location;

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::allocation::Allocation;
use crate::blocks::Annotation;
use crate::create_info::AllocationCreateInfo;
use crate::error::ForeignHandle;

bitflags::bitflags! {
    /// Data that an allocator keeps for every allocation, besides names: see
    /// [`AllocatorCreateInfo::tracking`](crate::AllocatorCreateInfo::tracking).
    ///
    /// Leak reports, a [`MemoryMap`](crate::MemoryMap) and the statistics string show it. It costs a table entry for
    /// each allocation, and every allocation then takes the slower path of named ones. An allocator that tracks nothing
    /// pays nothing.
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
        /// The caller's own number: [`AllocationCreateInfo::user_data`](crate::AllocationCreateInfo::user_data), or the
        /// later value from [`set_allocation_user_data`](crate::Allocator::set_allocation_user_data).
        const USER_DATA = 0x1;
        /// The code location of the call that allocated. For buffers of arenas and descriptor heaps, it is the location
        /// that created the arena or heap.
        const CALLER = 0x2;
    }
}

impl Tracking {
    /// The annotation of a new allocation.
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
    /// Changes the user data of an allocation, like [`Allocation::set_user_data`]. With [`Tracking::USER_DATA`], leak
    /// reports and memory maps show the new value.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the allocation belongs to another allocator; nothing was changed.
    pub fn set_allocation_user_data(
        &self,
        allocation: &mut Allocation,
        user_data: u64,
    ) -> Result<(), ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        if self.inner.tracking.contains(Tracking::USER_DATA) {
            vector.annotate(allocation.live(), |kept| kept.user_data = Some(user_data))?;
        } else {
            // Checks that the allocation is live.
            vector.memory_size(allocation.live())?;
        }
        allocation.set_user_data(user_data);
        self.record(RecordedCall::SetUserData(allocation, user_data));
        Ok(())
    }
}
