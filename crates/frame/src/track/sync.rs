//! What is known of one interval, and the rule by which a use follows another one.
#![forbid(unsafe_code)]

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::usage::{Scope, Use, WRITES};

/// The families that are no queue of this device. They are above all real ones, and below `QUEUE_FAMILY_IGNORED`.
pub(crate) const fn is_outside(family: u32) -> bool {
    family == vk::QUEUE_FAMILY_EXTERNAL || family == vk::QUEUE_FAMILY_FOREIGN_EXT
}

/// The stages that read vertices and indices.
const FETCHING: Stages = Stages::from_raw(
    Stages::VERTEX_INPUT.as_raw() | Stages::INDEX_INPUT.as_raw() | Stages::VERTEX_ATTRIBUTE_INPUT.as_raw(),
);

/// The last write, and who has read since.
///
/// S1: whatever reads was ordered after the write, so that who waits for the readers has waited for the write.
/// S2: if there are readers, the write is available: the barrier in front of the first reader saw to that.
///     Where it was vertices or indices that were read, not all of it may have been: whoever draws declares what is
///     bound. To who writes again the write is made visible then, as if nobody had read.
/// S3: `visible` has no scope to which the write is not visible. It may lack some: then a barrier is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sync {
    /// Stages of the last write or change of layout, and those of its accesses that are not available yet.
    pub(crate) write: Scope,
    /// Stages that read since.
    pub(crate) readers: Stages,
    /// To whom the write is visible. Two products of stages and accesses, because one would claim too much: what
    /// vertex shaders see as uniforms and fragment shaders as images, vertex shaders do not see as images.
    pub(crate) visible: [Scope; 2],
    pub(crate) layout: vk::ImageLayout,
    /// `QUEUE_FAMILY_IGNORED` where nobody owns it.
    pub(crate) owner: u32,
    /// All accesses of the last write, if it was an unordered one.
    pub(crate) unordered: Access,
}

/// A dependency between two uses of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) src: Scope,
    pub(crate) dst: Scope,
    pub(crate) layouts: (vk::ImageLayout, vk::ImageLayout),
    /// Both `QUEUE_FAMILY_IGNORED` unless the owner changes.
    pub(crate) families: (u32, u32),
}

impl Edge {
    pub(crate) const NO_FAMILIES: (u32, u32) = (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED);

    /// A dependency of memory alone.
    pub(crate) const fn memory(src: Scope, dst: Scope) -> Self {
        let layouts = (vk::ImageLayout::UNDEFINED, vk::ImageLayout::UNDEFINED);
        Self { src, dst, layouts, families: Self::NO_FAMILIES }
    }

    /// Whether it is more than a dependency.
    pub(crate) fn transforms(&self) -> bool {
        self.layouts.0 != self.layouts.1 || self.families.0 != self.families.1
    }
}

impl Sync {
    /// Never used.
    pub(crate) const fn fresh(layout: vk::ImageLayout) -> Self {
        Self::after_wait(Scope::NONE, layout, vk::QUEUE_FAMILY_IGNORED)
    }

    /// Everything before is available, and visible to `scope`.
    pub(crate) const fn after_wait(scope: Scope, layout: vk::ImageLayout, owner: u32) -> Self {
        Self {
            write: Scope::new(scope.stages, Access::NONE),
            readers: Stages::NONE,
            visible: [scope, Scope::NONE],
            layout,
            owner,
            unordered: Access::NONE,
        }
    }

    /// What a later use has to wait for.
    pub(crate) fn last(&self) -> Scope {
        if self.readers.is_empty() { self.write } else { Scope::new(self.readers, Access::NONE) }
    }

    pub(crate) fn changes_layout(&self, next: &Use) -> bool {
        next.layout != self.layout && next.layout != vk::ImageLayout::UNDEFINED
    }

    /// Whether ownership goes to somebody else. Nobody gives nothing, except to the outside.
    pub(crate) fn moves(&self, next: &Use) -> bool {
        let (from, to) = (self.owner, next.family);
        let nobody = vk::QUEUE_FAMILY_IGNORED;
        from != to && (is_outside(from) || is_outside(to) || (from != nobody && to != nobody))
    }

    /// Whether what was written may not have been read in whole.
    fn was_fetched(&self) -> bool {
        self.readers.intersects(FETCHING)
    }

    fn sees(&self, scope: Scope) -> bool {
        self.visible[0].covers(scope) || (!self.visible[1].is_empty() && self.visible[1].covers(scope))
    }

    /// Whether readers of `scope` need nothing any more.
    pub(crate) fn shows(&self, scope: Scope) -> bool {
        self.write.is_empty() || self.sees(scope)
    }

    /// Whether `next` neither writes nor changes anything, so that it needs no order among readers.
    #[inline]
    pub(crate) fn is_read(&self, next: &Use) -> bool {
        !next.writes() && !self.changes_layout(next) && !self.moves(next)
    }

    /// Whether `next` is one more of the unordered writes that were the last use.
    pub(crate) fn continues(&self, next: &Use) -> bool {
        next.unordered
            && self.unordered == next.access
            && self.readers.is_empty()
            && self.write == Scope::new(next.stages, next.written())
            && !self.changes_layout(next)
            && !self.moves(next)
    }

    /// The next use: what has to be between it and the ones before, if anything has.
    #[inline]
    pub(crate) fn advance(&mut self, next: &Use) -> Option<Edge> {
        if !self.is_read(next) {
            return self.write(next);
        }
        // What the host wrote belongs to nobody until it is read.
        self.owner = next.family;
        self.read(next.scope())
    }

    #[inline]
    fn read(&mut self, scope: Scope) -> Option<Edge> {
        self.readers |= scope.stages;
        if self.shows(scope) {
            return None;
        }
        self.show(scope);
        let layouts = (self.layout, self.layout);
        // The access again, although an earlier reader had it made available: the dependency then stands for itself.
        Some(Edge { src: self.write, dst: scope, layouts, families: Edge::NO_FAMILIES })
    }

    /// Notes that the write is visible to `scope`, where that can be noted.
    fn show(&mut self, scope: Scope) {
        for seen in &mut self.visible {
            if seen.is_empty() {
                *seen = scope;
                return;
            }
            // Only such unions are products.
            if seen.stages == scope.stages || seen.access == scope.access {
                *seen = *seen | scope;
                return;
            }
        }
        self.visible[1] = scope;
    }

    fn write(&mut self, next: &Use) -> Option<Edge> {
        if self.continues(next) {
            // S3: a dependency whose reader never came has shown only the writes before it.
            self.visible = [Scope::NONE; 2];
            return None;
        }
        let moves = self.moves(next);
        let transforms = self.changes_layout(next) || moves;
        let scope = next.scope();
        let read = Scope::new(next.stages, next.access & !WRITES);
        let edge = if !transforms && self.readers.is_empty() && (self.write.is_empty() || self.sees(scope)) {
            None
        } else {
            let layout = if next.layout == vk::ImageLayout::UNDEFINED { self.layout } else { next.layout };
            // S1 and S2: behind readers, a write needs their end and nothing of memory; what it reads, it has to see.
            let access = if transforms || self.readers.is_empty() || self.was_fetched() {
                next.access
            } else if self.write.is_empty() && self.visible[0].is_empty() || self.sees(read) {
                Access::NONE
            } else {
                read.access
            };
            let discards = next.discards && self.changes_layout(next);
            Some(Edge {
                src: self.last(),
                dst: Scope::new(next.stages, access),
                layouts: (if discards { vk::ImageLayout::UNDEFINED } else { self.layout }, layout),
                families: if moves { (self.owner, next.family) } else { Edge::NO_FAMILIES },
            })
        };
        self.follow(next);
        edge
    }

    /// Becomes what it is after a use that wrote or changed something.
    pub(crate) fn follow(&mut self, next: &Use) {
        // Who names no stage hands over to something else; what comes after waits for everything.
        let stages = if next.stages.is_empty() { Stages::ALL_COMMANDS } else { next.stages };
        let layout = if next.layout == vk::ImageLayout::UNDEFINED { self.layout } else { next.layout };
        *self = Self {
            write: Scope::new(stages, next.written()),
            readers: if next.writes() { Stages::NONE } else { next.stages },
            visible: [if next.writes() { Scope::NONE } else { next.scope() }, Scope::NONE],
            layout,
            owner: next.family,
            unordered: if next.writes() && next.unordered { next.access } else { Access::NONE },
        };
    }
}
