//! Who used the bytes of a memory that resources share.
#![forbid(unsafe_code)]

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use super::id::{Raw, Resource};
use super::intervals::{Intervals, count_steps};
use super::sync::{Edge, Sync};
use super::usage::Scope;

/// A resource that was the last one to use some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct User {
    /// When it was used last.
    pub(crate) used_at: u64,
    pub(crate) index: usize,
    /// All of its bytes.
    pub(crate) bytes: (u64, u64),
}

/// Those who used some bytes last, without those for whom one of the others has waited.
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

    /// Drops everybody of whose bytes another one has used some later: that one has waited.
    ///
    /// # Complexity
    ///
    /// O(n log n).
    pub(crate) fn settle(&mut self) -> &[User] {
        let Self { found, covered } = self;
        count_steps(found.len());
        if found.len() > 1 {
            // The newest first.
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

/// What was done to memory that another resource takes over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    written: Scope,
    /// All that has to end.
    pub(crate) stages: Stages,
}

impl Before {
    pub(crate) fn add(&mut self, sync: &Sync) {
        if sync.readers.is_empty() && !sync.write.access.is_empty() {
            self.written = self.written | sync.write;
        }
        self.stages |= sync.last().stages;
    }

    /// The state of all of the resource that takes over.
    pub(crate) fn sync(&self) -> Sync {
        let write = Scope::new(self.stages, self.written.access);
        Sync { write, ..Sync::fresh(vk::ImageLayout::UNDEFINED) }
    }

    /// What makes the writes of others available, where the barrier of the resource does not: that of an image is about
    /// memory as the image sees it. It names the writes too, because the layer's checks of synchronization take it as the
    /// only thing that comes before the change of layout.
    pub(crate) fn memory_edge(&self, resource: &Resource, dst: Scope) -> Option<Edge> {
        let image = matches!(resource.raw, Raw::Image { .. });
        (image && !self.written.is_empty()).then(|| Edge::memory(self.written, dst))
    }

    /// The whole of it as one dependency.
    pub(crate) fn edge(&self, dst: Scope) -> Edge {
        Edge::memory(Scope::new(self.stages, self.written.access), dst)
    }
}
