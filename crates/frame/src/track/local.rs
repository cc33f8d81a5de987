//! The state of an interval within one list.

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::sync::{Edge, Sync};
use super::usage::{AccessScope, Use, WRITES};

/// The knowledge of a list about an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntervalPhase {
    /// Not used in this list.
    Untouched,
    /// Only read, in one layout: further readers can join the first use.
    Open,
    /// The state is known.
    Closed,
}

/// The state of an interval within one list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Local {
    pub(crate) phase: IntervalPhase,
    /// True if `first` is valid. False if the state comes from a resource that shares memory.
    pub(crate) pending: bool,
    /// The first use, which waits for uses before the list. Readers that follow directly are merged into it.
    pub(crate) first: Use,
    /// The first use reads, and the list writes later: the readers before the list have to finish too.
    pub(crate) then_written: bool,
    /// A storage barrier was requested before the first use.
    pub(crate) fenced: bool,
    /// The id of the split dependency that is not joined yet, or 0.
    pub(crate) split: u32,
    pub(crate) sync: Sync,
    /// The commands of the last use and of the last write or layout change.
    pub(crate) step: u32,
    pub(crate) changed: u32,
}

/// The effect of a use.
pub(crate) enum UseEffect {
    Nothing,
    Barrier(Edge),
    /// The barrier of this command must also cover this use.
    Widen,
    Twice,
    Split,
}

const NEVER: Use = Use::buffer(Stages::NONE, Access::NONE);

impl Local {
    pub(crate) const UNTOUCHED: Self = Self {
        phase: IntervalPhase::Untouched,
        pending: false,
        first: NEVER,
        then_written: false,
        fenced: false,
        split: 0,
        sync: Sync::fresh(vk::ImageLayout::UNDEFINED),
        step: 0,
        changed: 0,
    };

    #[inline]
    pub(crate) fn advance(&mut self, next: &Use, step: u32) -> UseEffect {
        if self.split != 0 {
            return UseEffect::Split;
        }
        match self.phase {
            IntervalPhase::Untouched => {
                self.begin(next, step);
                return UseEffect::Nothing;
            }
            IntervalPhase::Open if self.sync.is_read(next) => {
                self.first.stages |= next.stages;
                self.first.access |= next.access;
                self.first.discards &= next.discards;
                self.sync.readers |= next.stages;
                self.sync.visible[0] = self.first.scope();
                self.step = step;
                return UseEffect::Nothing;
            }
            IntervalPhase::Open | IntervalPhase::Closed => {}
        }
        let reads = self.sync.is_read(next);
        if reads && self.changed == step {
            if self.sync.readers.is_empty() {
                return UseEffect::Twice;
            }
            // `next` is another read by the command that changed the layout.
            let joined = self.sync.visible[0] | next.scope();
            self.sync.write.stages |= next.stages;
            self.sync.readers |= next.stages;
            self.sync.visible[0] = joined;
            return UseEffect::Widen;
        }
        if !reads && self.step == step && !self.sync.continues(next) {
            return UseEffect::Twice;
        }
        self.then_written |= self.phase == IntervalPhase::Open;
        self.phase = IntervalPhase::Closed;
        self.step = step;
        if !reads {
            self.changed = step;
        }
        self.sync.advance(next).map_or(UseEffect::Nothing, UseEffect::Barrier)
    }

    /// Returns true if `next` only reads, and its stages have read the same before. Most uses do.
    #[inline]
    pub(crate) fn repeats(&self, next: &Use, family: u32, step: u32) -> bool {
        let seen = self.sync.visible[0];
        (self.sync.readers & seen.stages).contains(next.stages)
            && (seen.access & !WRITES).contains(next.access)
            && self.sync.layout == next.layout
            && self.sync.owner == family
            && self.changed != step
            && self.split == 0
            && !self.first.discards
    }

    /// Begins a split dependency, if `next` only reads and the previous state is known.
    pub(crate) fn split(&mut self, next: &Use, step: u32, id: u32) -> UseEffect {
        if self.split != 0 {
            return UseEffect::Split;
        }
        let joins = self.phase == IntervalPhase::Open && self.sync.is_read(next);
        if next.writes() || self.phase == IntervalPhase::Untouched || joins {
            return UseEffect::Nothing;
        }
        if self.step == step {
            return UseEffect::Twice;
        }
        self.then_written |= self.phase == IntervalPhase::Open;
        self.phase = IntervalPhase::Closed;
        // The reader itself is declared later.
        let known = self.sync;
        let reads = known.is_read(next);
        let edge = self.sync.advance(next);
        self.sync.readers = Stages::NONE;
        if reads {
            (self.sync.readers, self.sync.owner) = (known.readers, known.owner);
        }
        let Some(edge) = edge else {
            return UseEffect::Nothing;
        };
        self.split = id;
        UseEffect::Barrier(edge)
    }

    /// Sets the state to `usage`, which undeclared commands have established. Returns false if the list has not
    /// declared a use before them.
    pub(crate) fn assume(&mut self, usage: &Use, step: u32) -> bool {
        if self.phase == IntervalPhase::Untouched || self.split != 0 {
            return false;
        }
        self.then_written |= self.phase == IntervalPhase::Open;
        self.phase = IntervalPhase::Closed;
        (self.step, self.changed) = (step, step);
        self.sync.follow(usage);
        true
    }

    fn begin(&mut self, next: &Use, step: u32) {
        self.pending = true;
        self.first = *next;
        self.first.unordered &= !self.fenced;
        self.sync.follow(next);
        self.step = step;
        if next.writes() || next.stages.is_empty() {
            self.phase = IntervalPhase::Closed;
            self.changed = step;
        } else {
            self.phase = IntervalPhase::Open;
            // The write before the reader is not known.
            self.sync.write = AccessScope::NONE;
        }
    }

    /// Ends the permission of unordered writes to follow one another without a barrier.
    pub(crate) fn fence(&mut self) {
        self.fenced = true;
        self.sync.unordered = Access::NONE;
    }
}
