//! Resolution of lists against the submitted states.

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::memory::{Holder, Memories};
use super::{
    Global, IntervalState, MAX_QUEUES, NO_QUEUE, Queue, Release, SeenSubmission, Submission, TrackedQueue,
    TrackedResource, Wait, index,
};
use crate::track::aliasing::{LastUsers, PreviousUses, User};
use crate::track::batch::BarrierBatch;
use crate::track::error::ResolveError;
use crate::track::id::{IdContents, RawHandle, ResourceId};
use crate::track::local::{IntervalPhase, Local};
use crate::track::recorder::{self, Recorder};
use crate::track::sync::{Edge, Sync, is_external};
use crate::track::usage::{AccessScope, Use, stages_cover};

const ALL_ACCESS: Access = Access::from_raw(Access::MEMORY_READ.as_raw() | Access::MEMORY_WRITE.as_raw());

impl Global {
    /// Compares the first uses of lists with the submitted states, collects the barriers between them, and stores the
    /// states that the lists leave. The lists are submitted in this order, in one submission to `queue`.
    /// [Reset](Recorder::reset) them after the submission.
    ///
    /// First submit each of [`releases`](Submission::releases) to its queue. Then submit the lists, each after its
    /// [`preamble`](Submission::preamble), with the semaphores of [`waits`](Submission::waits).
    ///
    /// # Errors
    ///
    /// See [`ResolveError`]. The states are unchanged then.
    ///
    /// # Complexity
    ///
    /// Linear in the intervals that the lists use. Other resources cost nothing.
    #[doc(alias = "CommitFinalResourceStates")]
    pub fn resolve(
        &mut self,
        queue: Queue,
        lists: &[impl AsRef<Recorder>],
        submission: &mut Submission,
    ) -> Result<(), ResolveError> {
        if queue.global() != self.number {
            return Err(ResolveError::OtherQueue { queue });
        }
        for (list, recorder) in lists.iter().enumerate() {
            self.check(queue, list, recorder.as_ref())?;
        }
        submission.journal.start(self.number, &self.queues, self.sequence);
        for used in lists.iter().flat_map(|recorder| recorder.as_ref().entries()) {
            submission.journal.save(used.resource.slot, &self.entries[index(used.resource.slot)]);
        }
        let own = &mut self.queues[queue.index()];
        own.submitted += 1;
        submission.start(own.submitted, lists.len());
        let Self { entries, queues, memories, last_users, sequence, .. } = self;
        let mut resolver = Resolver { queues, queue, serial: submission.serial, list: 0, out: submission };
        for (list, recorder) in lists.iter().map(AsRef::as_ref).enumerate() {
            resolver.list = list;
            if recorder.ticks() > 0 {
                // Lists are numbered from 1.
                resolver.take_memories(entries, memories, last_users, (recorder, *sequence + 1));
            }
            for used in recorder.entries() {
                let entry = &mut entries[index(used.resource.slot)];
                used.cells.for_each(|start, end, local| {
                    if local.phase != IntervalPhase::Untouched {
                        entry.cells.update(start, end, |from, to, state| {
                            resolver.resolve_interval(&used.resource, from, to, state, local);
                        });
                    }
                });
                entry.join_states();
                entry.used_at = *sequence + u64::from(used.last_tick);
            }
            recorder.for_each_held(|memory, start, end, used| {
                let holder = Holder { slot: Some(used.resource.slot), list: 0 };
                resolver.out.journal.hold(memories, memory, (start, end), holder);
            });
            *sequence += u64::from(recorder.ticks()) + 1;
        }
        Ok(())
    }

    /// Validates a list before anything changes.
    fn check(&self, queue: Queue, list: usize, recorder: &Recorder) -> Result<(), ResolveError> {
        if recorder.queue() != queue {
            return Err(ResolveError::WrongQueue { list });
        }
        for used in recorder.entries() {
            let resource = ResourceId(used.resource);
            // The recorder has checked that it belongs to the `Global` of the list's queue.
            let entry = self.entries.get(index(used.resource.slot));
            let entry = entry.filter(|entry| entry.resource.generation == used.resource.generation);
            let Some(entry) = entry else {
                return Err(ResolveError::Destroyed { list, resource });
            };
            let mut split = false;
            used.cells.for_each(|_, _, local| split |= local.split != 0);
            if split {
                return Err(ResolveError::Split { list, resource });
            }
            if entry.mode.frozen().is_some_and(|frozen| !keeps_frozen(used, frozen)) {
                return Err(ResolveError::Frozen { list, resource });
            }
            if let Some(other) = self.frozen_alias(entry) {
                return Err(ResolveError::Frozen { list, resource: ResourceId(other.resource) });
            }
        }
        Ok(())
    }
}

/// Returns true if a list uses a frozen resource only as it was frozen.
fn keeps_frozen(used: &recorder::UsedResource, frozen: &Use) -> bool {
    let image = matches!(used.resource.raw, RawHandle::Image { .. });
    let mut keeps = used.taken.is_none();
    used.cells.for_each(|_, _, local| {
        let Local { phase, first, .. } = local;
        let reads = frozen.scope().covers(first.scope()) && (!image || first.layout == frozen.layout);
        keeps &= *phase == IntervalPhase::Untouched || (*phase == IntervalPhase::Open && reads);
    });
    keeps
}

/// The resolution of one submission.
struct Resolver<'a> {
    queues: &'a mut Vec<TrackedQueue>,
    queue: Queue,
    serial: u64,
    list: usize,
    out: &'a mut Submission,
}

impl Resolver<'_> {
    /// Orders an interval of a list after the submitted state, and stores the state that the list leaves.
    fn resolve_interval(
        &mut self,
        resource: &IdContents,
        from: u64,
        to: u64,
        state: &mut IntervalState,
        local: &Local,
    ) {
        if local.pending && self.resolve_first(resource, from, to, state, local) {
            return;
        }
        if local.phase == IntervalPhase::Closed {
            state.sync = local.sync;
            state.written = self.serial;
        }
        if !local.pending {
            (state.others, state.other_readers) = (0, Stages::NONE);
        }
        (state.queue, state.serial) = (self.queue.index, self.serial);
    }

    /// Handles the first use of an interval in a list. Returns true if it is a read that is concurrent with another
    /// queue, which keeps the state.
    fn resolve_first(
        &mut self,
        resource: &IdContents,
        from: u64,
        to: u64,
        state: &mut IntervalState,
        local: &Local,
    ) -> bool {
        let first = &local.first;
        let preamble = self.preamble_for(state);
        let stages = or_all(first.stages);
        // Stages that have waited for a semaphore. A layout transition must come after that wait.
        let mut waited = Stages::NONE;
        if state.queue != NO_QUEUE {
            if first.discards && !is_external(state.sync.owner) && state.sync.changes_owner(first) {
                // A use that discards the contents needs no release by the owner.
                state.sync.owner = first.family;
                state.sync.layout = vk::ImageLayout::UNDEFINED;
            }
            let between = !is_external(state.sync.owner) && !is_external(first.family);
            if between && state.sync.changes_owner(first) {
                self.transfer(resource, from, to, state, first);
                return false;
            }
            // A concurrent reader on another queue does not become the owner. If there is no owner yet, it takes over
            // the state.
            let owned = state.sync.owner == first.family || first.family == vk::QUEUE_FAMILY_IGNORED;
            let harmless = state.sync.is_read(first) && !local.then_written && owned;
            if harmless && state.queue != self.queue.index {
                if !state.sync.write.is_empty() {
                    self.wait(state.queue, state.written, stages);
                }
                state.others |= self.bit();
                state.other_readers |= stages;
                return true;
            }
            if !harmless {
                waited = self.wait_for_others(state, stages);
            }
        }
        let edge = follow_first(&mut state.sync, first, local.then_written);
        let mut writes = first.writes();
        if let Some(mut edge) = edge {
            if edge.transforms() {
                edge.src.stages |= waited;
                writes = true;
            }
            self.out.preambles[preamble].push(resource, from, to, &edge);
        }
        if writes {
            state.written = self.serial;
        }
        false
    }

    /// Returns the list whose preamble gets the barrier: the first, unless this submission itself used the interval.
    fn preamble_for(&self, state: &IntervalState) -> usize {
        let here = state.queue == self.queue.index && state.serial == self.serial;
        // The time of a concurrent read by another queue is not known.
        if here || state.others & self.bit() != 0 { self.list } else { 0 }
    }

    /// Returns the last submission to another queue before this one and its releases.
    fn newest(&self, queue: usize) -> u64 {
        let releases = &self.out.releases[..self.out.released];
        let released = releases.iter().any(|release| release.queue.index() == queue);
        self.queues[queue].submitted - u64::from(released)
    }

    fn bit(&self) -> u16 {
        1 << self.queue.index
    }

    /// Waits for all other queues that have used an interval, and moves its state to this queue.
    fn wait_for_others(&mut self, state: &mut IntervalState, stages: Stages) -> Stages {
        let foreign = state.queue != self.queue.index;
        let own = state.others & self.bit() != 0;
        let others = state.others & !self.bit();
        if foreign {
            self.wait(state.queue, state.serial, stages);
        }
        for other in 0..MAX_QUEUES {
            if others & (1 << other) != 0 {
                // The state does not store which submissions have read. The newest submission is not before any of
                // them.
                self.wait(u8::try_from(other).unwrap_or(NO_QUEUE), self.newest(other), stages);
            }
        }
        if foreign {
            let scope = AccessScope::new(stages, ALL_ACCESS);
            let mut sync = Sync::after_wait(scope, state.sync.layout, state.sync.owner);
            if own {
                sync.readers = state.other_readers;
            }
            state.sync = sync;
            // `written` is a submission to `queue`, which is the current queue now, even if the use only reads. Later
            // waits name this submission, which has waited for the write.
            state.written = self.serial;
        }
        (state.others, state.other_readers) = (0, Stages::NONE);
        if foreign || others != 0 { stages } else { Stages::NONE }
    }

    /// Transfers ownership from the current family to the family of this queue, with the layout of `first`.
    fn transfer(
        &mut self,
        resource: &IdContents,
        from: u64,
        to: u64,
        state: &mut IntervalState,
        first: &Use,
    ) {
        let Sync { layout, owner, .. } = state.sync;
        let next = if first.layout == vk::ImageLayout::UNDEFINED { layout } else { first.layout };
        let (layouts, families) = ((layout, next), (owner, first.family));
        let mut src = state.sync.last();
        let others = state.others & !(1 << state.queue);
        if others != 0 {
            // Other queues of the family have read: order the release after all of them.
            src.stages = Stages::ALL_COMMANDS;
        }
        let release = self.release(state.queue);
        release.batch.push(resource, from, to, &Edge { src, dst: AccessScope::NONE, layouts, families });
        let serial = release.serial;
        for other in 0..MAX_QUEUES {
            if others & (1 << other) != 0 {
                let family = self.queues[other].family;
                let index = u8::try_from(other).unwrap_or(NO_QUEUE);
                let queue = Queue { index, family, ..self.queue };
                let wait = Wait { queue, serial: self.newest(other), stages: Stages::ALL_COMMANDS };
                let release = self.release(state.queue);
                Submission::wait(&mut release.waits, wait);
            }
        }
        let stages = or_all(first.stages);
        self.wait(state.queue, serial, stages);
        let src = AccessScope::new(stages, Access::NONE);
        self.out.preambles[0].push(resource, from, to, &Edge { src, dst: first.scope(), layouts, families });
        state.sync.follow(first);
        (state.others, state.other_readers) = (0, Stages::NONE);
        state.written = self.serial;
    }

    /// Returns the submission to `queue` that releases ownership.
    fn release(&mut self, queue: u8) -> &mut Release {
        let index = usize::from(queue);
        let out = &mut *self.out;
        let known = out.releases[..out.released].iter().position(|release| release.queue.index == queue);
        let at = known.unwrap_or_else(|| {
            let from = &mut self.queues[index];
            from.submitted += 1;
            let queue = Queue { index: queue, family: from.family, ..self.queue };
            let serial = from.submitted;
            if let Some(release) = out.releases.get_mut(out.released) {
                release.batch.clear();
                release.waits.clear();
                (release.queue, release.serial) = (queue, serial);
            } else {
                out.releases.push(Release { queue, serial, waits: Vec::new(), batch: BarrierBatch::new() });
            }
            out.released += 1;
            out.released - 1
        });
        &mut out.releases[at]
    }

    fn wait(&mut self, on: u8, serial: u64, stages: Stages) {
        let family = self.queues[usize::from(on)].family;
        let seen = &mut self.queues[self.queue.index()].seen[usize::from(on)];
        if serial == 0 || (seen.serial >= serial && stages_cover(seen.stages, stages)) {
            return;
        }
        let queue = Queue { index: on, family, ..self.queue };
        let before = seen.serial;
        let wait = Wait { queue, serial: serial.max(before), stages };
        let wait = Submission::wait(&mut self.out.waits, wait);
        let stages = if wait.serial == before { wait.stages | seen.stages } else { wait.stages };
        *seen = SeenSubmission { serial: wait.serial, stages };
    }

    /// Transfers shared memory to the resources of a list.
    fn take_memories(
        &mut self,
        entries: &mut [TrackedResource],
        memories: &mut Memories,
        last_users: &mut LastUsers,
        (recorder, list): (&Recorder, u64),
    ) {
        for used in recorder.aliased() {
            let resource = &used.resource;
            let (Some(memory_range), Some(bytes)) = (resource.memory_range, resource.bytes()) else {
                continue;
            };
            let Some(memory) = memories.get(&memory_range.memory) else { continue };
            last_users.clear();
            memory.holders.visit(bytes.0, bytes.1, |holder| {
                // The list has waited for its own earlier users.
                let other = holder.slot.filter(|&slot| slot != resource.slot && holder.list != list);
                if let Some(TrackedResource { resource, used_at, .. }) =
                    other.map(|slot| &entries[index(slot)])
                {
                    if let Some(bytes) = resource.bytes() {
                        last_users.add(User { used_at: *used_at, index: index(resource.slot), bytes });
                    }
                }
            });
            let found = last_users.retain_latest();
            self.take_memory(entries, used, found);
            // If the list used only a part of the resource, it has not waited for the users of the rest yet.
            let waited = used.taken.is_some() || !found.is_empty() || is_used_whole(used);
            let holder = Holder { slot: Some(resource.slot), list: if waited { list } else { 0 } };
            self.out.journal.hold(memories, memory_range.memory, bytes, holder);
        }
    }

    /// Transfers memory to a resource from its last users.
    fn take_memory(
        &mut self,
        entries: &mut [TrackedResource],
        used: &recorder::UsedResource,
        found: &[User],
    ) {
        if found.is_empty() {
            return;
        }
        let resource = &used.resource;
        // The second scope: the list's own takeover, or all first uses.
        let taken = used.taken.map(|stages| AccessScope::new(stages, Access::NONE));
        let scope = taken.unwrap_or_else(|| first_scope(used));
        let (mut before, mut waited) = (PreviousUses::default(), false);
        for user in found {
            entries[user.index].cells.for_each(|_, _, state| {
                waited |= self.end_of(state, or_all(scope.stages), &mut before);
            });
        }
        if waited {
            before.stages |= or_all(scope.stages);
        }
        if before.stages.is_empty() {
            return;
        }
        let preamble = &mut self.out.preambles[self.list];
        if used.taken.is_some() {
            preamble.push_memory(&before.edge(scope));
            return;
        }
        if let Some(edge) = before.memory_edge(resource, scope) {
            preamble.push_memory(&edge);
        }
        let state = IntervalState {
            sync: before.sync(),
            queue: self.queue.index,
            serial: self.serial,
            written: self.serial,
            ..IntervalState::fresh(vk::ImageLayout::UNDEFINED)
        };
        entries[index(resource.slot)].cells.fill(state);
    }

    /// Adds the uses of a state whose memory another resource takes. Returns true if a semaphore orders some of them.
    fn end_of(&mut self, state: &IntervalState, stages: Stages, before: &mut PreviousUses) -> bool {
        let mut waited = false;
        if state.queue == self.queue.index {
            before.add(&state.sync);
        } else if state.queue != NO_QUEUE {
            self.wait(state.queue, state.serial, stages);
            waited = true;
        }
        for other in (0..MAX_QUEUES).filter(|other| state.others & (1 << other) != 0) {
            if other == self.queue.index() {
                before.stages |= state.other_readers;
            } else {
                self.wait(u8::try_from(other).unwrap_or(NO_QUEUE), self.newest(other), stages);
                waited = true;
            }
        }
        waited
    }
}

/// Returns true if every part of a resource has a first use that waits for uses before the list.
fn is_used_whole(used: &recorder::UsedResource) -> bool {
    let mut whole = true;
    used.cells.for_each(|_, _, local| whole &= local.pending);
    whole
}

/// Returns the union of all first uses of a resource in a list.
fn first_scope(used: &recorder::UsedResource) -> AccessScope {
    let mut scope = AccessScope::NONE;
    used.cells.for_each(|_, _, local| {
        if local.pending {
            scope = scope | local.first.scope();
        }
    });
    scope
}

/// Returns the stages, or all stages if there are none: a use without stages waits with all.
fn or_all(stages: Stages) -> Stages {
    if stages.is_empty() { Stages::ALL_COMMANDS } else { stages }
}

/// Orders the first use of a list after a state of the same queue.
fn follow_first(sync: &mut Sync, first: &Use, then_written: bool) -> Option<Edge> {
    let missing = sync.readers & !first.stages;
    let reads = sync.is_read(first);
    let edge = sync.advance(first);
    if !reads || !then_written || missing.is_empty() {
        return edge;
    }
    // The list orders its write only after its own readers, so these wait for the earlier readers.
    let mut edge = edge.unwrap_or(Edge {
        src: AccessScope::NONE,
        dst: AccessScope::new(first.stages, Access::NONE),
        layouts: (sync.layout, sync.layout),
        families: Edge::NO_FAMILIES,
    });
    edge.src.stages |= missing;
    Some(edge)
}
