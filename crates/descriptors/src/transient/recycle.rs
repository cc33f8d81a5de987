//! Flushes, resets and destroys pools.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use super::{CollectPoolsError, TransientSets};
use crate::DescriptorQuirks;
use sublet::retire::{ClockView, MixedClocks, OtherClock, Ticket};
use sublet_engines::RegionId;

impl TransientSets {
    /// Assigns all sets that were allocated since the last call to the recording of `ticket`.
    ///
    /// Call it when a recording is complete, before or after its submission: once for each command buffer, or once per
    /// frame. Without new sets it does nothing.
    ///
    /// # Errors
    /// [`MixedClocks`] if sets wait for tickets of another clock, so that no clock would report all as done. Nothing
    /// was changed.
    pub fn flush(&mut self, ticket: Ticket) -> Result<(), MixedClocks> {
        if self.lists.iter().all(|list| list.used().grants == 0) {
            return Ok(());
        }
        for list in &self.lists {
            list.check(ticket)?;
        }
        for list in &mut self.lists {
            list.flush(ticket, self.info.share_pools);
        }
        Ok(())
    }

    /// Resets the pools whose recordings are done. Returns their number. Their sets are freed.
    ///
    /// # Errors
    /// [`CollectPoolsError`] if the driver failed to reset some, which the next call retries, or if sets wait for
    /// tickets of another clock. All others are free.
    ///
    /// ```
    /// # use sublet::{retire::Clock, sim}; use sublet_descriptors::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
    /// # let info = vk::DescriptorSetLayoutCreateInfo::default();
    /// # let handle = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }?;
    /// # let layout = unsafe { SetLayout::new(handle, &info) }?;
    /// # let clock = Clock::new();
    /// # let timeline = clock.add_timeline()?;
    /// # let mut sets = TransientSets::new(&device, &TransientSetsCreateInfo::default())?;
    /// let ticket = clock.open(timeline);
    /// // SAFETY: the layout is live, and nothing uses the set.
    /// unsafe { sets.allocate(&layout) }?;
    /// sets.flush(ticket)?;
    /// assert_eq!(sets.collect(&clock)?, 0);
    /// clock.discard(ticket)?; // it will not be submitted
    /// assert_eq!(sets.collect(&clock)?, 1);
    /// # drop(sets);
    /// # unsafe { gpu.device().destroy_descriptor_set_layout(handle, None) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn collect(&mut self, clock: &ClockView) -> Result<usize, CollectPoolsError> {
        let leaks = self.device.quirks().contains(DescriptorQuirks::RESET_LEAKS);
        let (mut collected, mut left, mut first) = (0, 0, None);
        let mut other = None::<OtherClock>;
        for which in 0..self.lists.len() {
            if let Some(new) = self.lists[which].collect(clock) {
                let so_far = other.map_or((new.ticket, 0), |other| (other.ticket, other.tickets));
                other = Some(OtherClock {
                    ticket: so_far.0.min(new.ticket),
                    tickets: so_far.1 + new.tickets,
                    collected: 0,
                });
            }
            let mut kept = 0;
            for at in 0..self.lists[which].ready.len() {
                let region = self.lists[which].ready[at];
                if leaks {
                    self.destroy_free(which, region);
                    collected += 1;
                    continue;
                }
                let list = &mut self.lists[which];
                let Some(slot) = list.slot_mut(region) else { continue };
                // SAFETY: only this value uses the pool. The device is done with its sets: all tickets of its flushes
                // are done, and callers of `allocate` promised the rest.
                match unsafe { slot.pool.reset(&self.device) } {
                    Ok(()) => {
                        list.recycle(region);
                        collected += 1;
                    }
                    Err(error) => {
                        list.ready[kept] = region;
                        kept += 1;
                        first = first.or(Some(error));
                    }
                }
            }
            self.lists[which].ready.truncate(kept);
            left += kept;
        }
        match (first, other) {
            (None, None) => Ok(collected),
            (source, other) => {
                let other_clock = other.map(|other| OtherClock { collected, ..other });
                Err(CollectPoolsError { collected, left, source, other_clock })
            }
        }
    }

    /// Destroys free pools, the longest unused first, until [`min_pools`](super::TransientSetsCreateInfo::min_pools)
    /// are left or none is free. Returns the number of destroyed pools.
    ///
    /// Call it at the end of a level or when memory is short: a pool that stays free for many frames is not needed.
    pub fn trim(&mut self) -> usize {
        let before = self.pools();
        for which in 0..self.lists.len() {
            self.lists[which].close_idle();
            while self.pools() > self.info.min_pools {
                let list = &mut self.lists[which];
                let region = if list.ready.is_empty() {
                    if list.free.is_empty() {
                        break;
                    }
                    list.free.remove(0)
                } else {
                    list.ready.remove(0)
                };
                self.destroy_free(which, region);
            }
        }
        before - self.pools()
    }

    /// Destroys a pool that is in no place and not in use by the device: it has no sets, or all their tickets are done.
    pub(super) fn destroy_free(&mut self, which: usize, region: RegionId) {
        debug_assert!(self.lists[which].is_idle(region), "the device may use it");
        if let Some(pool) = self.lists[which].remove(region) {
            // SAFETY: the device is done with its sets, as callers of `allocate` promised (see above).
            unsafe { pool.destroy(&self.device) };
        }
    }

    /// Destroys all pools with all their sets. No flush or collect is required before.
    ///
    /// Dropping the value destroys only the pools that the device is known to be done with. It leaks the others, which
    /// may be in use, with a `tracing` warning.
    ///
    /// # Safety
    /// The device is done with all sets (VUID-vkDestroyDescriptorPool-descriptorPool-00303), for example after
    /// `vkDeviceWaitIdle`.
    pub unsafe fn destroy(mut self) {
        for list in &mut self.lists {
            for pool in list.take_all() {
                // SAFETY: the caller's promise: the device is done with all sets, as it is after `vkDeviceWaitIdle`.
                unsafe { pool.destroy(&self.device) };
            }
        }
    }
}

impl Drop for TransientSets {
    fn drop(&mut self) {
        let mut left = 0_usize;
        for list in &mut self.lists {
            let busy: Vec<RegionId> = list.regions().filter(|&region| !list.is_idle(region)).collect();
            for region in busy {
                // Drops the handle without destroying the pool.
                left += usize::from(list.remove(region).is_some());
            }
            for pool in list.take_all() {
                // SAFETY: the device is done with the pool's sets: it has none, or all their tickets are done, as
                // callers of `allocate` promised.
                unsafe { pool.destroy(&self.device) };
            }
        }
        if left != 0 {
            tracing::warn!(
                name: "transient_sets_leaked", target: "sublet::leak", pools = left, owner = %self.info.name,
                "transient sets were dropped while the device may use some: their pools are not destroyed"
            );
        }
    }
}
