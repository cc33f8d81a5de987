//! Allocates one set: from the current pool, or from the next one.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::list::OpenPool;
use super::typical_counts::Size;
use super::{AFTER_BIND, LargeSets, PoolSizing, TransientError, TransientSets};
use crate::events::PoolEventKind;
use crate::layout::SetSource;
use crate::pool::{is_exhausted, keeps_limit};
use crate::{CreateDescriptorPoolError, DescriptorCounts, SetLayout};
use sublet::device::DriverError;
use sublet_engines::RegionId;

/// A request for a set.
#[derive(Clone, Copy)]
struct TransientRequest<'a> {
    layout: vk::DescriptorSetLayout,
    /// The count of the variable binding, if there is one.
    variable: Option<u32>,
    need: &'a DescriptorCounts,
}

/// The result of one pool.
enum PoolAttempt {
    Set(vk::DescriptorSet),
    /// The counted capacity of the pool is too small; no driver call was made.
    NoRoom,
    /// The driver reports that the pool is full.
    Refused(DriverError),
    Failed(DriverError),
}

#[cold]
fn not_allocated(want: TransientRequest<'_>, source: DriverError) -> TransientError {
    TransientError::Driver { need: Box::new(*want.need), source }
}

impl TransientSets {
    /// Allocates a set. A variable binding gets the maximum number of descriptors.
    ///
    /// # Errors
    /// See [`TransientError`].
    ///
    /// # Safety
    /// 1. The layout's handle is live, and belongs to this value's device
    ///    (VUID-VkDescriptorSetAllocateInfo-commonparent).
    /// 2. Only recordings of the ticket of the next [`flush`](Self::flush) use the set. Once a clock that is passed to
    ///    [`collect`](Self::collect) reports the ticket as done, the device does not use the set any more
    ///    (VUID-vkResetDescriptorPool-descriptorPool-00313). Nothing uses it after this value is destroyed.
    #[inline]
    #[doc(alias = "request_descriptor_set")]
    pub unsafe fn allocate(&mut self, layout: &SetLayout) -> Result<vk::DescriptorSet, TransientError> {
        let which = match layout.source() {
            SetSource::Plain => self.plain,
            SetSource::AfterBind => AFTER_BIND,
            SetSource::Special => {
                // SAFETY: the caller keeps the promises of this function; the count is the layout's maximum.
                return unsafe { self.allocate_special(layout, layout.max_variable_count()) };
            }
        };
        let list = &mut self.lists[which];
        let (open, need) = (list.current, layout.most());
        let mut failed = None;
        if list.engine.allocate_in(open.region, need) {
            // SAFETY: the pool is live and only this value uses it. It is an update-after-bind pool if the layout
            // requires one (VUID-VkDescriptorSetAllocateInfo-pSetLayouts-03044). The caller promises that the layout is
            // live; a layout without sets would be `Special`.
            match unsafe { self.device.driver().allocate_set(open.handle, layout.handle()) } {
                Ok(set) => return Ok(set),
                Err(error) => failed = Some(self.undo(which, open.region, need, error)),
            }
        }
        let want = TransientRequest { layout: layout.handle(), variable: None, need };
        // SAFETY: the caller keeps the promises of this function. Pools of this list support sets of a plain layout.
        unsafe { self.allocate_slow(which, want, failed) }
    }

    /// Allocates a set with `count` descriptors in its variable binding. It uses no more than these of the pool.
    ///
    /// # Errors
    /// [`TransientError::VariableCount`] if the count exceeds the layout's maximum; otherwise see [`TransientError`].
    ///
    /// # Safety
    /// Same as [`Self::allocate`].
    ///
    /// ```
    /// # use sublet::sim; use sublet_descriptors::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
    /// # let info = vk::DescriptorSetLayoutCreateInfo::default();
    /// # let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }?;
    /// let mut sets = TransientSets::new(&device, &TransientSetsCreateInfo::default())?;
    /// // SAFETY: the call fails before it calls Vulkan: the layout has no variable binding.
    /// let error = unsafe { sets.allocate_variable(&layout, 10) }.unwrap_err();
    /// assert_eq!(error, TransientError::VariableCount { count: 10, max: 0 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn allocate_variable(
        &mut self,
        layout: &SetLayout,
        count: u32,
    ) -> Result<vk::DescriptorSet, TransientError> {
        let max = layout.max_variable_count().unwrap_or(0);
        if count > max || layout.max_variable_count().is_none() {
            return Err(TransientError::VariableCount { count, max });
        }
        // SAFETY: the caller keeps the promises of `Self::allocate`.
        unsafe { self.allocate_special(layout, Some(count)) }
    }

    /// Allocates a set of a [`SetSource::Special`] layout.
    ///
    /// # Safety
    /// Same as [`Self::allocate`]; `variable` is given if the layout has a variable count, and within its maximum.
    #[inline(never)]
    unsafe fn allocate_special(
        &mut self,
        layout: &SetLayout,
        variable: Option<u32>,
    ) -> Result<vk::DescriptorSet, TransientError> {
        self.check_layout(layout)?;
        let which = if layout.is_update_after_bind() { AFTER_BIND } else { self.plain };
        let need = variable.map_or(*layout.most(), |count| layout.counts_with(count));
        let want = TransientRequest { layout: layout.handle(), variable, need: &need };
        let open = self.lists[which].current;
        // SAFETY: the caller keeps the promises of `Self::allocate`; `check_layout` verified that there are such sets.
        let failed = match unsafe { self.attempt(which, open.region, want) } {
            PoolAttempt::Set(set) => return Ok(set),
            PoolAttempt::NoRoom => None,
            PoolAttempt::Refused(error) | PoolAttempt::Failed(error) => Some(error),
        };
        // SAFETY: the caller keeps the promises of `Self::allocate`; `check_layout` verified that there are such sets.
        unsafe { self.allocate_slow(which, want, failed) }
    }

    /// Checks that these pools support sets of a layout.
    fn check_layout(&self, layout: &SetLayout) -> Result<(), TransientError> {
        use vk::DescriptorSetLayoutCreateFlags as Flags;
        let flags = layout.flags();
        let host_only = flags.contains(Flags::HOST_ONLY_POOL_EXT)
            && !self.info.flags.contains(vk::DescriptorPoolCreateFlags::HOST_ONLY_EXT);
        if flags.intersects(Flags::PUSH_DESCRIPTOR_KHR | Flags::DESCRIPTOR_BUFFER_EXT) || host_only {
            return Err(TransientError::NoSetsOfLayout { flags });
        }
        if self.info.mutable_types.is_empty() {
            return Ok(());
        }
        let types = layout.bindings().iter().flat_map(|binding| &*binding.mutable_types);
        match types.into_iter().find(|kind| !self.info.mutable_types.contains(kind)) {
            Some(&descriptor_type) => Err(TransientError::MutableType { descriptor_type }),
            None => Ok(()),
        }
    }

    /// Gives the counts of a set back to the engine, after the driver failed to allocate it. Returns the error.
    #[cold]
    fn undo(
        &mut self,
        which: usize,
        region: RegionId,
        need: &DescriptorCounts,
        error: DriverError,
    ) -> DriverError {
        let undone = self.lists[which].engine.free_in(region, need);
        debug_assert!(undone.is_ok(), "it was taken just before");
        error
    }

    /// Tries one pool.
    ///
    /// # Safety
    /// Same as [`Self::allocate`]; the region belongs to this list, and the layout has sets in pools of this list.
    unsafe fn attempt(&mut self, which: usize, region: RegionId, want: TransientRequest<'_>) -> PoolAttempt {
        let list = &mut self.lists[which];
        if !list.engine.allocate_in(region, want.need) {
            return PoolAttempt::NoRoom;
        }
        let Some(slot) = list.slot(region) else { return PoolAttempt::NoRoom };
        // SAFETY: the pool is live and only this value uses it, and it is an update-after-bind pool if the layout
        // requires one. The caller promises that the layout is live, has sets in such pools, and allows the variable
        // count.
        match unsafe { slot.pool.allocate(&self.device, want.layout, want.variable) } {
            Ok(set) => PoolAttempt::Set(set),
            Err(error) => {
                let error = self.undo(which, region, want.need, error);
                if is_exhausted(error) { PoolAttempt::Refused(error) } else { PoolAttempt::Failed(error) }
            }
        }
    }

    /// Slow path: the current pool has no room, or the driver failed to allocate from it.
    ///
    /// Tries the second open pool, then a free one, then a new one. If the driver fails to allocate from a new pool,
    /// the function stops.
    ///
    /// # Safety
    /// Same as [`Self::attempt`].
    #[cold]
    #[inline(never)]
    unsafe fn allocate_slow(
        &mut self,
        which: usize,
        want: TransientRequest<'_>,
        failed: Option<DriverError>,
    ) -> Result<vk::DescriptorSet, TransientError> {
        let OpenPool { region: current, .. } = self.lists[which].current;
        match failed {
            Some(source) if !is_exhausted(source) => return Err(not_allocated(want, source)),
            Some(source) => {
                self.count_refusal(which, current, source);
                self.lists[which].shut(current);
            }
            None => {}
        }
        let capacity = &self.info.counts;
        if self.info.large_sets == LargeSets::Refuse && !capacity.is_zero() && !want.need.fits(capacity) {
            let (need, capacity) = (Box::new(*want.need), Box::new(*capacity));
            return Err(TransientError::TooLarge { need, capacity });
        }
        // After a failure, the second pool has become the current one.
        let OpenPool { region: current, .. } = self.lists[which].current;
        let OpenPool { region: second, .. } = self.lists[which].second;
        let second = if failed.is_some() { current } else { second };
        // SAFETY: the caller keeps the promises of `Self::attempt`.
        match unsafe { self.attempt(which, second, want) } {
            PoolAttempt::Set(set) => {
                if failed.is_none() {
                    self.lists[which].swap();
                }
                return Ok(set);
            }
            PoolAttempt::NoRoom => {}
            PoolAttempt::Refused(source) => {
                self.count_refusal(which, second, source);
                self.lists[which].shut(second);
            }
            PoolAttempt::Failed(source) => return Err(not_allocated(want, source)),
        }
        // SAFETY: the caller keeps the promises of `Self::attempt`.
        unsafe { self.allocate_in_next(which, want) }
    }

    /// Allocates from a pool without sets: a free one, or a new one.
    ///
    /// # Safety
    /// Same as [`Self::attempt`].
    unsafe fn allocate_in_next(
        &mut self,
        which: usize,
        want: TransientRequest<'_>,
    ) -> Result<vk::DescriptorSet, TransientError> {
        let free = self.lists[which].take_free(want.need);
        let mut worn = None;
        if let Some(region) = free {
            // SAFETY: the caller keeps the promises of `Self::attempt`.
            match unsafe { self.attempt(which, region, want) } {
                PoolAttempt::Set(set) => {
                    self.lists[which].open(region);
                    return Ok(set);
                }
                // The pool had sets before: the driver's resets may not restore the full capacity. Try a new pool.
                PoolAttempt::Refused(source)
                    if self.lists[which].slot(region).is_some_and(|slot| !slot.fresh) =>
                {
                    self.count_refusal(which, region, source);
                    worn = Some(region);
                }
                attempt => return Err(self.put_aside(which, region, want, &attempt)),
            }
        }
        let region = match self.make_pool(which, want.need, &mut worn) {
            Ok(region) => region,
            Err(error) => {
                self.lists[which].free.extend(worn);
                return Err(error);
            }
        };
        // SAFETY: the caller keeps the promises of `Self::attempt`.
        match unsafe { self.attempt(which, region, want) } {
            PoolAttempt::Set(set) => {
                self.lists[which].open(region);
                if let Some(worn) = worn {
                    self.destroy_free(which, worn);
                }
                Ok(set)
            }
            attempt => {
                self.lists[which].free.extend(worn);
                Err(self.put_aside(which, region, want, &attempt))
            }
        }
    }

    /// Counts a failure of the driver to allocate from a pool with sufficient counted capacity.
    fn count_refusal(&mut self, which: usize, region: RegionId, error: DriverError) {
        self.refusals += 1;
        if let Some(slot) = self.lists[which].slot(region) {
            slot.pool.happened(PoolEventKind::Exhausted(error));
        }
    }

    /// Returns a pool without sets to the free pools after it failed to provide a set: other layouts may use it.
    fn put_aside(
        &mut self,
        which: usize,
        region: RegionId,
        want: TransientRequest<'_>,
        attempt: &PoolAttempt,
    ) -> TransientError {
        let capacity = self.lists[which].engine.region_counts(region).capacity.counts;
        self.lists[which].free.push(region);
        let (need, capacity) = (Box::new(*want.need), Box::new(capacity));
        match *attempt {
            PoolAttempt::Refused(source) => {
                self.count_refusal(which, region, source);
                TransientError::Refused { need, capacity, source }
            }
            PoolAttempt::Failed(source) => TransientError::Driver { need, source },
            // Unreachable: a new pool has room for the set.
            PoolAttempt::Set(_) | PoolAttempt::NoRoom => TransientError::TooLarge { need, capacity },
        }
    }

    /// Creates a pool with room for `need`. At the limit it replaces a free pool, the worn one first.
    fn make_pool(
        &mut self,
        which: usize,
        need: &DescriptorCounts,
        worn: &mut Option<RegionId>,
    ) -> Result<RegionId, TransientError> {
        let max_pools = self.info.max_pools;
        if self.pools() >= max_pools {
            if let Some(worn) = worn.take() {
                self.destroy_free(which, worn);
            } else if let Some(list) = (0..self.lists.len()).find(|&list| !self.lists[list].free.is_empty()) {
                let oldest = self.lists[list].free.remove(0);
                self.destroy_free(list, oldest);
            } else {
                return Err(TransientError::PoolLimit { max_pools });
            }
        }
        let size = self.next_size(which, need);
        let fits = |sets: &Self, size: &Size| keeps_limit(&sets.device, &size.counts, sets.flags_of(which));
        // Free pools and spare room also count towards the device's limit. Both are given up before the limit is
        // exceeded, and before a driver failure becomes an error.
        let mut first = size;
        let kept = fits(self, &size);
        if !kept {
            let smallest = self.give_up_spare(which, need, size);
            if fits(self, &smallest) {
                first = smallest;
            }
        }
        let mut made = self.create_pool(which, &first);
        if matches!(made, Err(CreateDescriptorPoolError::UpdateAfterBindLimit { .. })) {
            let smallest = self.give_up_spare(which, need, size);
            made = self.create_pool(which, &smallest);
        }
        made.map_err(|source| TransientError::Pool { source })
    }

    /// Destroys the free pools of a list, and returns the size of the smallest pool for `need`.
    fn give_up_spare(&mut self, which: usize, need: &DescriptorCounts, size: Size) -> Size {
        while let Some(region) = self.lists[which].free.pop() {
            self.destroy_free(which, region);
        }
        match self.info.sizing {
            PoolSizing::Learned => Size { grants: 1, counts: *need },
            PoolSizing::Fixed => size,
        }
    }
}
