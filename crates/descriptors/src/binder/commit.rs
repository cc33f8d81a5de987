//! A commit creates and binds stale sets. Steps that can fail come first.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::area::{CommittedSet, SetArea};
use super::mask::{bits, runs};
use super::plan::{BindMethod, SetPlan};
use super::point::BindPointState;
use super::source::BinderSource;
use super::writes::for_writes;
use super::{BindPoint, Binder, CommitError, PipelineLayoutInfo};
use crate::driver::{BindTarget, DescriptorDriver};
use sublet::upload::AllocatorRef;

/// The command buffer and bind point of a commit.
#[derive(Clone, Copy)]
pub(super) struct CommitTarget {
    pub(super) commands: vk::CommandBuffer,
    pub(super) point: BindPoint,
}

impl CommitTarget {
    pub(super) fn of(&self, layout: &PipelineLayoutInfo, set: usize) -> BindTarget {
        BindTarget {
            commands: self.commands,
            bind_point: self.point.to_vk(),
            layout: layout.handle(),
            set: sublet_engines::cast::narrow(set),
        }
    }
}

impl<A: AllocatorRef> Binder<A> {
    /// Binds the stale sets of a bind point. Call it right before a draw or a dispatch.
    ///
    /// Does nothing if nothing is stale. Otherwise it creates and binds every staged set that differs from the bound
    /// one. A set that only has to be bound again, for example with a new dynamic offset, is not created again. The
    /// binder neither writes nor binds sets or descriptors that were never staged, and shaders must not use them (see
    /// [`first_unstaged`](Self::first_unstaged)).
    ///
    /// # Errors
    /// [`CommitError`] if there is no space. Nothing was recorded, and stale sets are still stale, so the caller may
    /// retry.
    ///
    /// # Safety
    /// 1. `commands` is in the recording state, nobody else uses it meanwhile, and it is the one that
    ///    [`begin`](Self::begin) was called for (VUID-vkCmdBindDescriptorSets-commandBuffer-recording). It supports the
    ///    bind point.
    /// 2. The staged objects are live and fit their bindings according to Vulkan
    ///    (VUID-vkUpdateDescriptorSets-pDescriptorWrites-06493, VUID-VkDescriptorGetInfoEXT-type-parameter), and stay
    ///    live until the device is done with the recording. So do the pipeline layout and its set layouts.
    /// 3. Since the last `begin`, no other code has bound sets or descriptor buffers at this bind point in the command
    ///    buffer.
    ///
    /// # Complexity
    /// O(descriptors of stale sets). Takes no lock, and allocates no host memory once an earlier commit was as large.
    #[inline]
    #[doc(alias = "CommitStagedDescriptorsForDraw")]
    #[doc(alias = "CommitStagedDescriptorsForDispatch")]
    #[doc(alias = "CommitGraphicsRootDescriptorTables")]
    pub unsafe fn commit(
        &mut self,
        commands: vk::CommandBuffer,
        point: BindPoint,
    ) -> Result<(), CommitError> {
        if self.points[point.at()].stale() == 0 {
            return Ok(());
        }
        let target = CommitTarget { commands, point };
        match self.source {
            // SAFETY: the caller keeps the promises of `commit_sets`, which are the same.
            BinderSource::Sets(_) => unsafe { self.commit_sets(target) },
            // SAFETY: the caller keeps the promises of `commit_bytes`, which are the same.
            BinderSource::Pages(_) => unsafe { self.commit_bytes(target) },
        }
    }

    /// # Safety
    /// Same as [`Self::commit`].
    unsafe fn commit_sets(&mut self, target: CommitTarget) -> Result<(), CommitError> {
        let Self { device, points, source, offsets, .. } = self;
        let (driver, point) = (device.driver(), &mut points[target.point.at()]);
        let BinderSource::Sets(transient) = source else { return Ok(()) };
        let stale = point.refresh();
        let Some(layout) = &point.layout else { return Ok(()) };
        let push = layout.push_mask();
        let fresh = point.changed & !push;
        let plans = layout.plans();

        let mut sets = [vk::DescriptorSet::null(); MAX_SETS];
        for set in bits(fresh) {
            // If the commit fails later, the set is freed with the others of the recording. SAFETY: the caller
            // promises, here and in `new`, that the layout is live and that the recording is the one of the next flush.
            let made = unsafe { transient.allocate(&plans[set].layout) };
            sets[set] = made.map_err(CommitError::Sets)?;
        }
        for set in bits(fresh) {
            let area = &mut point.areas[set];
            // SAFETY: the set was just created for this layout, and nothing uses it yet; the caller promises that the
            // staged objects are live.
            unsafe { write_set(driver, sets[set], &plans[set], area) };
            area.set_made(CommittedSet::Set(sets[set]));
        }
        for set in bits(stale & !push & !fresh) {
            let area = &point.areas[set];
            sets[set] = match area.made {
                Some(CommittedSet::Set(made)) => made,
                _ => area.given_set(),
            };
        }
        for (first, count) in runs(stale & !push) {
            offsets.clear();
            for area in &point.areas[first..first + count] {
                offsets.extend_from_slice(&area.offsets);
            }
            // SAFETY: the caller promises that the command buffer is being recorded, and that the program's sets fit.
            // The other sets were created for these layouts, and there is one offset for each of their dynamic
            // descriptors.
            unsafe { driver.cmd_bind_sets(&target.of(layout, first), &sets[first..first + count], offsets) };
        }
        // SAFETY: the caller keeps the promises of `Self::commit`.
        unsafe { push_stale(driver, target, point, stale) };
        (point.changed, point.rebind) = (0, 0);
        Ok(())
    }
}

const MAX_SETS: usize = sublet_engines::cast::index(super::layout::MAX_SETS);

/// Writes all staged descriptors into a set.
///
/// # Safety
/// The set has this layout, and nothing uses it. The staged objects are live.
unsafe fn write_set(driver: &DescriptorDriver, set: vk::DescriptorSet, plan: &SetPlan, area: &SetArea) {
    if !area.is_ready() {
        // All samplers of the set are immutable.
        return;
    }
    if let (Some(template), 0) = (plan.template, area.missing) {
        // SAFETY: the template was created for this set layout, and reads the words of a complete area; the caller
        // promises that the objects are live.
        unsafe { driver.update_with_template(set, template, area.words.as_ptr().cast()) };
        return;
    }
    for_writes(set, plan, area, |writes| {
        // SAFETY: the writes are of staged descriptors, with the types of their bindings; the rest is the caller's
        // promise.
        unsafe { driver.update_sets(writes, &[]) };
    });
}

/// Pushes the descriptors of the stale push descriptor set.
///
/// # Safety
/// Same as [`Binder::commit`].
pub(super) unsafe fn push_stale(
    driver: &DescriptorDriver,
    target: CommitTarget,
    point: &mut BindPointState,
    stale: u32,
) {
    let Some(layout) = &point.layout else { return };
    for set in bits(stale & layout.push_mask()) {
        let (plan, area) = (&layout.plans()[set], &mut point.areas[set]);
        debug_assert!(plan.way == BindMethod::Push);
        let target_of_set = target.of(layout, set);
        let template = plan.push_templates.get(target.point.at()).copied().flatten();
        if let (Some(template), 0) = (template, area.missing) {
            let words = area.words.as_ptr().cast();
            // SAFETY: the template was created for this set of the pipeline layout and this bind point, and reads the
            // words of a complete area; the rest is the caller's promise.
            unsafe { driver.cmd_push_with_template(&target_of_set, template, words) };
        } else {
            for_writes(vk::DescriptorSet::null(), plan, area, |writes| {
                // SAFETY: the writes are of staged descriptors, with the types of their bindings; the rest is the
                // caller's promise.
                unsafe { driver.cmd_push(&target_of_set, writes) };
            });
        }
        area.set_made(CommittedSet::Pushed);
    }
}
