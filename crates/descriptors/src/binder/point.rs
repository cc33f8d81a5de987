//! The staged and bound sets of one bind point.
//!
//! Invariants, asserted by `validate`:
//! - P1: `staged` contains only sets of the layout, and `changed`, `rebind` and `given` are subsets of it.
//! - P2: a staged set that is neither in `changed` nor in `rebind` is bound in the command buffer as staged, with a
//!   compatible pipeline layout.
//! - P3: `given` contains exactly the areas with a set of the program.

use super::area::SetArea;
use super::layout::PipelineLayoutInfo;
use super::mask::{bits, lowest};

#[derive(Debug, Default)]
pub(super) struct BindPointState {
    pub(super) layout: Option<PipelineLayoutInfo>,
    /// One for each set of the layout, plus unused areas of earlier layouts with more sets.
    pub(super) areas: Vec<SetArea>,
    /// Sets with staged content.
    pub(super) staged: u32,
    /// Sets that may differ from their last result.
    pub(super) changed: u32,
    /// Sets that are not bound, or not with the current offsets.
    pub(super) rebind: u32,
    /// The program's own sets.
    pub(super) given: u32,
}

impl BindPointState {
    /// Returns the sets that a commit must check.
    #[inline]
    pub(super) fn stale(&self) -> u32 {
        self.changed | self.rebind
    }

    /// Returns the number of sets in the layout; 0 without a layout.
    pub(super) fn sets(&self) -> u32 {
        self.layout.as_ref().map_or(0, PipelineLayoutInfo::set_count)
    }

    /// Changes the layout to `new`.
    pub(super) fn set_layout(&mut self, new: &PipelineLayoutInfo) {
        let old = match self.layout.take() {
            Some(old) if old.is_same(new) => {
                self.layout = Some(old);
                return;
            }
            old => old,
        };
        let compatible = old.as_ref().map_or(0, |old| old.compatible_sets(new));
        let old_plans = old.as_ref().map_or(&[][..], PipelineLayoutInfo::plans);
        let plans = new.plans();
        if self.areas.len() < plans.len() {
            self.areas.resize_with(plans.len(), SetArea::default);
        }
        let mut kept = 0;
        for (set, area) in self.areas.iter_mut().enumerate() {
            let plan = plans.get(set);
            let same = |(old, new): (&super::plan::SetPlan, &super::plan::SetPlan)| {
                old.layout.is_identical(&new.layout)
            };
            if old_plans.get(set).zip(plan).is_some_and(same) {
                kept |= 1 << set;
            } else {
                area.replace(plan);
            }
        }
        self.staged &= kept;
        self.given &= kept;
        self.changed &= kept;
        // Sets before the first incompatible one stay bound. The others stay staged, and are bound again.
        self.rebind = (self.rebind & kept) | (self.staged & !lowest(sublet_engines::cast::index(compatible)));
        for (set, plan) in plans.iter().enumerate() {
            let bit = 1 << set;
            if plan.is_staged_by_itself() && self.staged & bit == 0 {
                self.staged |= bit;
                self.changed |= bit;
                self.rebind |= bit;
            }
        }
        self.layout = Some(new.clone());
    }

    /// Clears the bound state. The next commit creates all staged sets again.
    pub(super) fn begin(&mut self) {
        self.rebind = self.staged;
        self.changed = self.staged & !self.given;
        for set in bits(self.staged) {
            self.areas[set].forget_made();
        }
    }

    /// Clears the staged state and the layout.
    pub(super) fn forget(&mut self) {
        self.layout = None;
        (self.staged, self.changed, self.rebind, self.given) = (0, 0, 0, 0);
        for area in &mut self.areas {
            area.replace(None);
        }
    }

    /// Marks all sets as unbound, after a change of descriptor buffers.
    pub(super) fn unbind_all(&mut self) {
        self.rebind = self.staged;
    }

    /// Records that descriptors of a set were staged.
    #[inline]
    pub(super) fn touch(&mut self, set: usize) {
        let bit = 1 << set;
        // Staged descriptors replace the program's own set, so the set must be bound again.
        let mask = if self.given & bit == 0 { 0 } else { bit };
        self.given &= !bit;
        self.rebind |= mask | (bit & !self.staged);
        self.staged |= bit;
        self.changed |= bit;
    }

    /// Records that a set of the program was staged.
    pub(super) fn touch_given(&mut self, set: usize) {
        let bit = 1 << set;
        self.staged |= bit;
        self.given |= bit;
        self.rebind |= bit;
        self.changed &= !bit;
    }

    /// Removes sets from `changed` that were staged again with the same content. Returns the stale sets.
    #[inline]
    pub(super) fn refresh(&mut self) -> u32 {
        for set in bits(self.changed) {
            if self.areas[set].is_as_made() {
                self.changed &= !(1 << set);
            }
        }
        self.stale()
    }

    /// Asserts the invariants of the [module](self).
    pub(super) fn validate(&self) {
        let sets = self.layout.as_ref().map_or(0, |layout| layout.plans().len());
        assert_eq!(self.staged & !lowest(sets), 0, "P1");
        for part in [self.changed, self.rebind, self.given] {
            assert_eq!(part & !self.staged, 0, "P1");
        }
        let plans = self.layout.as_ref().map_or(&[][..], PipelineLayoutInfo::plans);
        for (set, (plan, area)) in plans.iter().zip(&self.areas).enumerate() {
            let is_given = self.given & (1 << set) != 0;
            assert_eq!(is_given, area.is_given(), "P3: set {set}");
            assert_eq!(area.offsets.len(), plan.dynamics, "P3: set {set}");
            area.validate(plan);
            let made_now = self.changed & (1 << set) == 0 && !is_given && self.staged & (1 << set) != 0;
            assert!(!made_now || area.made.is_some(), "P2: set {set}");
        }
    }
}
