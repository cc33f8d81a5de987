//! One access that is over, and what is ordered after it.

use ash::vk;
use vk::AccessFlags2 as Access;
use vk::PipelineStageFlags2 as Stages;

use super::scope::DependencyScope;
use super::{Actor, Of};

/// A part of a subresource, in texels: from the first to behind the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TexelArea {
    pub(crate) from: [i64; 3],
    pub(crate) to: [i64; 3],
}

impl TexelArea {
    fn overlaps(&self, other: &Self) -> bool {
        (0..3).all(|axis| self.from[axis] < other.to[axis] && other.from[axis] < self.to[axis])
    }

    fn contains(&self, other: &Self) -> bool {
        (0..3).all(|axis| self.from[axis] <= other.from[axis] && other.to[axis] <= self.to[axis])
    }
}

/// An access to a resource. No area is all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access1 {
    pub(crate) stages: Stages,
    pub(crate) access: Access,
    pub(crate) write: bool,
    pub(crate) area: Option<TexelArea>,
    /// The uses that it belongs to, if those need no order among themselves.
    pub(crate) unordered: Option<Unordered>,
}

/// Uses of a resource that need no barrier among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unordered {
    /// Writes of a kind that do not care which is last.
    Kind(Stages, Access),
    /// Those of an attachment, from the beginning of rendering to its end, in one submission: they are in order by
    /// themselves ("Rasterization Order").
    Rendering { address: usize, submission: u64 },
}

impl Access1 {
    fn overlaps(&self, other: &Self) -> bool {
        match (&self.area, &other.area) {
            (Some(own), Some(other)) => own.overlaps(other),
            _ => true,
        }
    }

    /// Returns whether it is about all that `other` is about.
    fn covers(&self, other: &Self) -> bool {
        match (&self.area, &other.area) {
            (None, _) => true,
            (Some(own), Some(other)) => own.contains(other),
            (Some(_), None) => false,
        }
    }
}

/// The order of an access, as a queue sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AccessOrder {
    timeline: usize,
    /// The stages of later commands that execute after it.
    after: Stages,
    /// To whom its bytes are visible.
    visible: Vec<(Stages, Access)>,
    /// The first submission whose end is after it.
    done: u64,
}

/// An event that was set when the access was over, for the stages that it had reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventMark {
    event: vk::Event,
    reached: Stages,
}

/// An access that is over. A barrier that changes a layout is one too: a write in no stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) actor: Actor,
    pub(crate) of: Of,
    pub(crate) access: Access1,
    available: bool,
    orders: Vec<AccessOrder>,
    marks: Vec<EventMark>,
}

/// The missing link between two accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Semaphore,
    Execution,
    Available,
    Visible,
}

/// A barrier, as one access sees it.
pub(crate) struct BarrierStep {
    pub(crate) first: DependencyScope,
    pub(crate) second: DependencyScope,
    /// True if it makes what was written here available and visible.
    pub(crate) here: bool,
    /// True if it acquires from another family: then it is after the semaphore, whatever its first stages are.
    pub(crate) acquires: bool,
}

impl Past {
    pub(crate) fn new(actor: Actor, of: Of, access: Access1) -> Self {
        let own = AccessOrder {
            timeline: actor.timeline,
            after: Stages::NONE,
            visible: Vec::new(),
            done: actor.submission,
        };
        Self { actor, of, access, available: false, orders: vec![own], marks: Vec::new() }
    }

    /// The write of a barrier that changes a layout. It precedes the barrier's second scope.
    pub(crate) fn transition(actor: Actor, of: Of, second: DependencyScope) -> Self {
        let access =
            Access1 { stages: Stages::NONE, access: Access::NONE, write: true, area: None, unordered: None };
        let mut past = Self::new(actor, of, access);
        past.available = true;
        past.extend(actor.timeline, second, true);
        past
    }

    pub(crate) fn is_transition(&self) -> bool {
        self.access.stages.is_empty()
    }

    fn order(&self, timeline: usize) -> Option<&AccessOrder> {
        self.orders.iter().find(|order| order.timeline == timeline)
    }

    /// The stages that a first scope has to have, so that the access is in it.
    fn reached(&self, timeline: usize) -> Stages {
        let own = if self.actor.timeline == timeline { self.access.stages } else { Stages::NONE };
        self.order(timeline).map_or(own, |order| order.after | own)
    }

    fn extend(&mut self, timeline: usize, second: DependencyScope, seen: bool) {
        if self.order(timeline).is_none() {
            let new = AccessOrder { timeline, after: Stages::NONE, visible: Vec::new(), done: u64::MAX };
            self.orders.push(new);
        }
        let Some(order) = self.orders.iter_mut().find(|order| order.timeline == timeline) else { return };
        order.after |= second.order;
        let to = (second.stages, second.access);
        if seen
            && !order.visible.iter().any(|(stages, access)| stages.contains(to.0) && access.contains(to.1))
        {
            order.visible.push(to);
        }
    }

    /// The missing link from this access to `next` of `actor`. `seen` says whether somebody has read between the two
    /// what this wrote.
    pub(crate) fn missing(&self, actor: Actor, next: &Access1, seen: bool) -> Option<Missing> {
        // Accesses of one shader's invocations among themselves are not compared.
        if self.actor == actor {
            return None;
        }
        let timeline = actor.timeline;
        if !self.access.overlaps(next) || !(self.access.write || next.write) {
            return None;
        }
        let order = self.order(timeline);
        let after = order.is_some_and(|order| order.after.intersects(next.stages));
        if after && (!self.access.write || next.write && seen && self.available) {
            return None;
        }
        let visible = order.is_some_and(|order| {
            let mut visible = order.visible.iter();
            visible.any(|(stages, access)| stages.intersects(next.stages) && access.intersects(next.access))
        });
        if self.access.write && visible {
            return None;
        }
        Some(match order {
            None => Missing::Semaphore,
            Some(_) if !after && self.actor.timeline != timeline && self.reached(timeline).is_empty() => {
                Missing::Semaphore
            }
            Some(_) if !after => Missing::Execution,
            Some(_) if !self.available => Missing::Available,
            Some(_) => Missing::Visible,
        })
    }

    /// Returns whether `next` leaves nothing of this to be remembered: a write that covers it, or a later read by the
    /// same.
    pub(crate) fn is_over(&self, timeline: usize, next: &Access1) -> bool {
        let same =
            !self.access.write && self.actor.timeline == timeline && next.stages.contains(self.access.stages);
        next.covers(&self.access) && (next.write || same)
    }

    /// Returns whether this read follows a write and covers what `next` writes of it.
    pub(crate) fn shows(&self, write: &Access1) -> bool {
        !self.access.write && self.access.covers(write)
    }

    fn makes_available(&self, timeline: usize, step: &BarrierStep) -> bool {
        step.here
            && self.access.write
            && self.actor.timeline == timeline
            && step.first.stages.intersects(self.access.stages)
            && step.first.access.intersects(self.access.access)
    }

    /// The missing link from this access to the layout change of a barrier.
    pub(crate) fn missing_before(
        &self,
        timeline: usize,
        steps: &[BarrierStep],
        own: &BarrierStep,
        events: BarrierEvents<'_>,
    ) -> Option<Missing> {
        let reached = self.reached_at(timeline, events);
        let after =
            |reached: Stages| reached.intersects(own.first.order) || own.acquires && !reached.is_empty();
        if !reached.is_some_and(after) {
            return Some(if self.order(timeline).is_none() {
                Missing::Semaphore
            } else {
                Missing::Execution
            });
        }
        let available = !self.access.write
            || self.available
            || steps.iter().any(|step| self.makes_available(timeline, step));
        if available { None } else { Some(Missing::Available) }
    }

    fn reached_at(&self, timeline: usize, events: BarrierEvents<'_>) -> Option<Stages> {
        match events {
            None => Some(self.reached(timeline)),
            Some(events) => {
                let set = self.marks.iter().filter(|mark| events.contains(&mark.event));
                set.map(|mark| mark.reached).reduce(|all, reached| all | reached)
            }
        }
    }

    /// Applies the barriers of one call. All start from what was before the call, or before the event was set.
    pub(crate) fn wait(&mut self, timeline: usize, steps: &[BarrierStep], events: BarrierEvents<'_>) {
        let Some(reached) = self.reached_at(timeline, events) else { return };
        self.available |= steps.iter().any(|step| self.makes_available(timeline, step));
        let available = self.available && self.access.write;
        for step in steps.iter().filter(|step| reached.intersects(step.first.order)) {
            self.extend(timeline, step.second, available && step.here);
        }
    }

    /// Applies the wait for a semaphore to all accesses before its signal.
    pub(crate) fn wait_for(&mut self, signal: &super::Signal, actor: (usize, u64), second: DependencyScope) {
        let before = self.order(signal.timeline).is_some_and(|order| order.done <= signal.submission);
        if !before || !signal.first.order.intersects(self.reached(signal.timeline)) && !self.is_transition() {
            return;
        }
        self.available = true;
        self.extend(actor.0, second, self.access.write);
        if let Some(order) = self.orders.iter_mut().find(|order| order.timeline == actor.0) {
            order.done = order.done.min(actor.1);
        }
    }

    /// Returns whether it is over when a submission is.
    pub(crate) fn is_done(&self, timeline: usize, submission: u64) -> bool {
        self.order(timeline).is_some_and(|order| order.done <= submission)
    }

    /// Remembers what has been reached when an event is set.
    pub(crate) fn mark(&mut self, timeline: usize, event: vk::Event, first: Stages) {
        self.unmark(event);
        let reached = self.reached(timeline) & first;
        if !reached.is_empty() {
            self.marks.push(EventMark { event, reached });
        }
    }

    pub(crate) fn unmark(&mut self, event: vk::Event) {
        self.marks.retain(|mark| mark.event != event);
    }
}

/// The events that a barrier waits for, if it is one in two halves.
pub(crate) type BarrierEvents<'a> = Option<&'a [vk::Event]>;
