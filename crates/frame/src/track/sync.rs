//! The state of one interval, and the rules for the barrier between two uses.

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::usage::{AccessScope, Use, WRITES};

/// Returns true for families outside of this device. They are above all real families, and below
/// `QUEUE_FAMILY_IGNORED`.
pub(crate) const fn is_external(family: u32) -> bool {
    family == vk::QUEUE_FAMILY_EXTERNAL || family == vk::QUEUE_FAMILY_FOREIGN_EXT
}

const VERTEX_FETCH: Stages = Stages::from_raw(
    Stages::VERTEX_INPUT.as_raw() | Stages::INDEX_INPUT.as_raw() | Stages::VERTEX_ATTRIBUTE_INPUT.as_raw(),
);

/// The last write and the reads since.
///
/// S1: every reader was ordered after the write, so waiting for the readers also waits for the write.
/// S2: if there are readers, the write is available: the barrier before the first reader did that. After a vertex or
/// index read, a later write still needs a memory dependency: draws declare whole bound ranges, so the read may have
/// covered only a part.
/// S3: the write is visible to each scope in `visible`. Scopes may be missing; then the next reader gets another
/// barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sync {
    /// Stages of the last write or layout transition, and its accesses that are not available yet.
    pub(crate) write: AccessScope,
    /// Stages that have read since.
    pub(crate) readers: Stages,
    /// Scopes to which the write is visible. Two products of stages and accesses, because one would claim too much. If
    /// the vertex shader sees uniforms and the fragment shader images, the vertex shader does not see images.
    pub(crate) visible: [AccessScope; 2],
    pub(crate) layout: vk::ImageLayout,
    /// `QUEUE_FAMILY_IGNORED` without an owner.
    pub(crate) owner: u32,
    /// All accesses of the last write, if it was unordered.
    pub(crate) unordered: Access,
}

/// A dependency between two uses of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) src: AccessScope,
    pub(crate) dst: AccessScope,
    pub(crate) layouts: (vk::ImageLayout, vk::ImageLayout),
    /// Both `QUEUE_FAMILY_IGNORED` unless the owner changes.
    pub(crate) families: (u32, u32),
}

impl Edge {
    pub(crate) const NO_FAMILIES: (u32, u32) = (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED);

    pub(crate) const fn memory(src: AccessScope, dst: AccessScope) -> Self {
        let layouts = (vk::ImageLayout::UNDEFINED, vk::ImageLayout::UNDEFINED);
        Self { src, dst, layouts, families: Self::NO_FAMILIES }
    }

    /// Returns true for a layout transition or an ownership transfer.
    pub(crate) fn transforms(&self) -> bool {
        self.layouts.0 != self.layouts.1 || self.families.0 != self.families.1
    }
}

impl Sync {
    /// Returns the state of an unused interval.
    pub(crate) const fn fresh(layout: vk::ImageLayout) -> Self {
        Self::after_wait(AccessScope::NONE, layout, vk::QUEUE_FAMILY_IGNORED)
    }

    /// Returns the state after a semaphore wait: all previous uses are available, and visible to `scope`.
    pub(crate) const fn after_wait(scope: AccessScope, layout: vk::ImageLayout, owner: u32) -> Self {
        Self {
            write: AccessScope::new(scope.stages, Access::NONE),
            readers: Stages::NONE,
            visible: [scope, AccessScope::NONE],
            layout,
            owner,
            unordered: Access::NONE,
        }
    }

    /// Returns the scope that a later use has to wait for.
    pub(crate) fn last(&self) -> AccessScope {
        if self.readers.is_empty() { self.write } else { AccessScope::new(self.readers, Access::NONE) }
    }

    pub(crate) fn changes_layout(&self, next: &Use) -> bool {
        next.layout != self.layout && next.layout != vk::ImageLayout::UNDEFINED
    }

    /// Returns true if ownership changes. An interval without an owner needs no release, except to an external owner.
    pub(crate) fn changes_owner(&self, next: &Use) -> bool {
        let (from, to) = (self.owner, next.family);
        let nobody = vk::QUEUE_FAMILY_IGNORED;
        from != to && (is_external(from) || is_external(to) || (from != nobody && to != nobody))
    }

    /// Returns true if readers may have read only a part of the write; see S2.
    fn was_fetched(&self) -> bool {
        self.readers.intersects(VERTEX_FETCH)
    }

    fn sees(&self, scope: AccessScope) -> bool {
        self.visible[0].covers(scope) || (!self.visible[1].is_empty() && self.visible[1].covers(scope))
    }

    /// Returns true if a read by `scope` needs no barrier.
    pub(crate) fn is_visible_to(&self, scope: AccessScope) -> bool {
        self.write.is_empty() || self.sees(scope)
    }

    /// Returns true if `next` only reads, in the same layout and with the same owner.
    #[inline]
    pub(crate) fn is_read(&self, next: &Use) -> bool {
        !next.writes() && !self.changes_layout(next) && !self.changes_owner(next)
    }

    /// Returns true if `next` continues the unordered writes of the last use.
    pub(crate) fn continues(&self, next: &Use) -> bool {
        next.unordered
            && self.unordered == next.access
            && self.readers.is_empty()
            && self.write == AccessScope::new(next.stages, next.written())
            && !self.changes_layout(next)
            && !self.changes_owner(next)
    }

    /// Applies the next use, and returns the dependency on previous uses, if one is needed.
    #[inline]
    pub(crate) fn advance(&mut self, next: &Use) -> Option<Edge> {
        if !self.is_read(next) {
            return self.write(next);
        }
        // Without an owner (a host write), the first reader becomes the owner.
        self.owner = next.family;
        self.read(next.scope())
    }

    #[inline]
    fn read(&mut self, scope: AccessScope) -> Option<Edge> {
        self.readers |= scope.stages;
        if self.is_visible_to(scope) {
            return None;
        }
        self.make_visible(scope);
        let layouts = (self.layout, self.layout);
        // Includes the write access again, although the first reader made it available: each dependency is complete by
        // itself.
        Some(Edge { src: self.write, dst: scope, layouts, families: Edge::NO_FAMILIES })
    }

    /// Adds `scope` to the visible scopes, if they can represent it.
    fn make_visible(&mut self, scope: AccessScope) {
        for seen in &mut self.visible {
            if seen.is_empty() {
                *seen = scope;
                return;
            }
            // Otherwise the union would be no product of stages and accesses.
            if seen.stages == scope.stages || seen.access == scope.access {
                *seen = *seen | scope;
                return;
            }
        }
        self.visible[1] = scope;
    }

    fn write(&mut self, next: &Use) -> Option<Edge> {
        if self.continues(next) {
            // S3: visibility covers only the writes before the split dependency.
            self.visible = [AccessScope::NONE; 2];
            return None;
        }
        let moves = self.changes_owner(next);
        let transforms = self.changes_layout(next) || moves;
        let scope = next.scope();
        let read = AccessScope::new(next.stages, next.access & !WRITES);
        let edge = if !transforms && self.readers.is_empty() && (self.write.is_empty() || self.sees(scope)) {
            None
        } else {
            let layout = if next.layout == vk::ImageLayout::UNDEFINED { self.layout } else { next.layout };
            // S1 and S2: after readers, a write needs an execution dependency only. Its own reads need visibility.
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
                dst: AccessScope::new(next.stages, access),
                layouts: (if discards { vk::ImageLayout::UNDEFINED } else { self.layout }, layout),
                families: if moves { (self.owner, next.family) } else { Edge::NO_FAMILIES },
            })
        };
        self.follow(next);
        edge
    }

    /// Sets the state after a use that writes or changes the layout or owner.
    pub(crate) fn follow(&mut self, next: &Use) {
        // A use without stages transfers the resource to an external owner: the next use waits for all commands.
        let stages = if next.stages.is_empty() { Stages::ALL_COMMANDS } else { next.stages };
        let layout = if next.layout == vk::ImageLayout::UNDEFINED { self.layout } else { next.layout };
        *self = Self {
            write: AccessScope::new(stages, next.written()),
            readers: if next.writes() { Stages::NONE } else { next.stages },
            visible: [if next.writes() { AccessScope::NONE } else { next.scope() }, AccessScope::NONE],
            layout,
            owner: next.family,
            unordered: if next.writes() && next.unordered { next.access } else { Access::NONE },
        };
    }
}
