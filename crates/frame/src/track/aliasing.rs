//! The last users of memory that resources share.

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use super::id::{IdContents, RawHandle};
use super::intervals::{Intervals, count_steps};
use super::sync::{Edge, Sync};
use super::usage::AccessScope;

/// A resource that was the last user of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct User {
    /// Sequence number of its last use.
    pub(crate) used_at: u64,
    pub(crate) index: usize,
    /// Its whole memory range.
    pub(crate) bytes: (u64, u64),
}

/// The last users of some bytes, without those that a later user has already waited for.
#[derive(Debug)]
pub(crate) struct LastUsers {
    found: Vec<User>,
    covered: Intervals<bool>,
}

impl LastUsers {
    pub(crate) const fn new() -> Self {
        Self { found: Vec::new(), covered: Intervals::new(u64::MAX, false) }
    }

    pub(crate) fn clear(&mut self) {
        self.found.clear();
    }

    pub(crate) fn add(&mut self, user: User) {
        if self.found.last() != Some(&user) {
            self.found.push(user);
        }
    }

    /// Removes each user whose bytes a later user overlaps: the later one has waited for it.
    ///
    /// # Complexity
    ///
    /// O(n log n).
    pub(crate) fn retain_latest(&mut self) -> &[User] {
        let Self { found, covered } = self;
        count_steps(found.len());
        if found.len() > 1 {
            // Newest first.
            found.sort_unstable_by(|one, two| two.cmp(one));
            found.dedup();
            covered.fill(false);
            found.retain(|&User { bytes: (start, end), .. }| {
                let mut is_covered = false;
                covered.visit(start, end, |&by| is_covered |= by);
                covered.update(start, end, |_, _, by| *by = true);
                !is_covered
            });
        }
        found
    }
}

impl Default for LastUsers {
    fn default() -> Self {
        Self::new()
    }
}

/// The previous uses of memory that another resource takes over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PreviousUses {
    written: AccessScope,
    /// The stages to wait for.
    pub(crate) stages: Stages,
}

impl PreviousUses {
    pub(crate) fn add(&mut self, sync: &Sync) {
        if sync.readers.is_empty() && !sync.write.access.is_empty() {
            self.written = self.written | sync.write;
        }
        self.stages |= sync.last().stages;
    }

    /// Returns the initial state of the resource that takes over.
    pub(crate) fn sync(&self) -> Sync {
        let write = AccessScope::new(self.stages, self.written.access);
        Sync { write, ..Sync::fresh(vk::ImageLayout::UNDEFINED) }
    }

    /// Returns the memory barrier that makes previous writes available. An image barrier does not, because it covers
    /// only accesses through that image. The barrier includes the write accesses, because the synchronization checks of
    /// the validation layer consider only this barrier to precede the layout transition.
    pub(crate) fn memory_edge(&self, resource: &IdContents, dst: AccessScope) -> Option<Edge> {
        let image = matches!(resource.raw, RawHandle::Image { .. });
        (image && !self.written.is_empty()).then(|| Edge::memory(self.written, dst))
    }

    /// Returns all previous uses as one dependency.
    pub(crate) fn edge(&self, dst: AccessScope) -> Edge {
        Edge::memory(AccessScope::new(self.stages, self.written.access), dst)
    }
}
