//! Lists meet what was before them.
#![forbid(unsafe_code)]

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::memory::{Holder, Memories};
use super::{
    Entry, Global, MAX_QUEUES, NOBODY, Queue, QueueState, Release, Seen, State, Submission, Wait, index,
};
use crate::track::batch::Batch;
use crate::track::error::ResolveError;
use crate::track::id::{Raw, Resource, ResourceId};
use crate::track::local::{Local, Phase};
use crate::track::places::{Before, LastUsers, User};
use crate::track::recorder::{self, Recorder};
use crate::track::sync::{Edge, Sync, is_outside};
use crate::track::usage::{Scope, Use, stages_cover};

const ALL_ACCESS: Access = Access::from_raw(Access::MEMORY_READ.as_raw() | Access::MEMORY_WRITE.as_raw());

impl Global {
    /// Compares the first uses in lists with what was submitted before them, names what has to come in front, and takes
    /// over what the lists leave. The lists are submitted in this order, in one submission to `queue`, and after that
    /// they are [reset](Recorder::reset).
    ///
    /// Submit what [`releases`](Submission::releases) has, each to its queue; then the lists, each behind its
    /// [`front`](Submission::front), with the semaphores of [`waits`](Submission::waits).
    ///
    /// # Errors
    ///
    /// See [`ResolveError`]. Nothing has changed then.
    ///
    /// # Complexity
    ///
    /// That of the intervals that the lists use. Other resources cost nothing.
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
        let mut meeting = Meeting { queues, queue, serial: submission.serial, list: 0, out: submission };
        for (list, recorder) in lists.iter().map(AsRef::as_ref).enumerate() {
            meeting.list = list;
            if recorder.ticks() > 0 {
                // Lists are numbered from 1.
                meeting.take_places(entries, memories, last_users, (recorder, *sequence + 1));
            }
            for used in recorder.entries() {
                let entry = &mut entries[index(used.resource.slot)];
                used.cells.for_each(|start, end, local| {
                    if local.phase != Phase::Untouched {
                        entry.cells.update(start, end, |from, to, state| {
                            meeting.meet(&used.resource, from, to, state, local);
                        });
                    }
                });
                entry.join_states();
                entry.used_at = *sequence + u64::from(used.last_tick);
            }
            recorder.for_each_held(|memory, start, end, used| {
                let holder = Holder { slot: Some(used.resource.slot), list: 0 };
                meeting.out.journal.hold(memories, memory, (start, end), holder);
            });
            *sequence += u64::from(recorder.ticks()) + 1;
        }
        Ok(())
    }

    /// What is wrong with a list, before anything changes.
    fn check(&self, queue: Queue, list: usize, recorder: &Recorder) -> Result<(), ResolveError> {
        if recorder.queue() != queue {
            return Err(ResolveError::WrongQueue { list });
        }
        for used in recorder.entries() {
            let resource = ResourceId(used.resource);
            // It is of this one, as the list's queue is: the recorder has seen to that.
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
            if entry.standing.frozen().is_some_and(|frozen| !keeps_frozen(used, frozen)) {
                return Err(ResolveError::Frozen { list, resource });
            }
            if let Some(other) = self.frozen_beside(entry) {
                return Err(ResolveError::Frozen { list, resource: ResourceId(other.resource) });
            }
        }
        Ok(())
    }
}

/// Whether a list does nothing with a resource but what it was frozen for.
fn keeps_frozen(used: &recorder::Entry, frozen: &Use) -> bool {
    let image = matches!(used.resource.raw, Raw::Image { .. });
    let mut keeps = used.taken.is_none();
    used.cells.for_each(|_, _, local| {
        let Local { phase, first, .. } = local;
        let reads = frozen.scope().covers(first.scope()) && (!image || first.layout == frozen.layout);
        keeps &= *phase == Phase::Untouched || (*phase == Phase::Open && reads);
    });
    keeps
}

/// One submission as it meets the states.
struct Meeting<'a> {
    queues: &'a mut Vec<QueueState>,
    queue: Queue,
    serial: u64,
    list: usize,
    out: &'a mut Submission,
}

impl Meeting<'_> {
    /// An interval of a list meets the state that it finds, and leaves its own.
    fn meet(&mut self, resource: &Resource, from: u64, to: u64, state: &mut State, local: &Local) {
        if local.pending && self.meet_first(resource, from, to, state, local) {
            return;
        }
        if local.phase == Phase::Closed {
            state.sync = local.sync;
            state.written = self.serial;
        }
        if !local.pending {
            (state.others, state.other_readers) = (0, Stages::NONE);
        }
        (state.queue, state.serial) = (self.queue.index, self.serial);
    }

    /// The first use of an interval in a list. True if it reads beside the queue whose state it stays.
    fn meet_first(
        &mut self,
        resource: &Resource,
        from: u64,
        to: u64,
        state: &mut State,
        local: &Local,
    ) -> bool {
        let first = &local.first;
        let front = self.front_for(state);
        let stages = some(first.stages);
        // Stages at which a semaphore was waited for: what changes a layout has to come after that.
        let mut waited = Stages::NONE;
        if state.queue != NOBODY {
            if first.discards && !is_outside(state.sync.owner) && state.sync.moves(first) {
                // Who wants no contents needs no owner to give them.
                state.sync.owner = first.family;
                state.sync.layout = vk::ImageLayout::UNDEFINED;
            }
            let between = !is_outside(state.sync.owner) && !is_outside(first.family);
            if between && state.sync.moves(first) {
                self.transfer(resource, from, to, state, first);
                return false;
            }
            // A reader beside another queue becomes no owner: where there is none yet, it takes the state over.
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
            self.out.fronts[front].push(resource, from, to, &edge);
        }
        if writes {
            state.written = self.serial;
        }
        false
    }

    /// The list in front of which a barrier comes: the first one, unless the submission itself used what it is about.
    fn front_for(&self, state: &State) -> usize {
        let here = state.queue == self.queue.index && state.serial == self.serial;
        // Of a read beside another queue it is not known when it was.
        if here || state.others & self.bit() != 0 { self.list } else { 0 }
    }

    /// The last submission to another queue before this one and what it releases.
    fn newest(&self, queue: usize) -> u64 {
        let releases = &self.out.releases[..self.out.released];
        let released = releases.iter().any(|release| release.queue.index() == queue);
        self.queues[queue].submitted - u64::from(released)
    }

    fn bit(&self) -> u16 {
        1 << self.queue.index
    }

    /// Waits for all queues but this one that have used an interval, and makes the state one of this queue.
    fn wait_for_others(&mut self, state: &mut State, stages: Stages) -> Stages {
        let foreign = state.queue != self.queue.index;
        let own = state.others & self.bit() != 0;
        let others = state.others & !self.bit();
        if foreign {
            self.wait(state.queue, state.serial, stages);
        }
        for other in 0..MAX_QUEUES {
            if others & (1 << other) != 0 {
                // Which of its submissions read is not kept: the newest one is after all that did.
                self.wait(u8::try_from(other).unwrap_or(NOBODY), self.newest(other), stages);
            }
        }
        if foreign {
            let scope = Scope::new(stages, ALL_ACCESS);
            let mut sync = Sync::after_wait(scope, state.sync.layout, state.sync.owner);
            if own {
                sync.readers = state.other_readers;
            }
            state.sync = sync;
            // The submission that waits stands for the write from now on: `written` counts submissions of `queue`, which
            // becomes this one also where the use only reads.
            state.written = self.serial;
        }
        (state.others, state.other_readers) = (0, Stages::NONE);
        if foreign || others != 0 { stages } else { Stages::NONE }
    }

    /// Ownership goes from the family that has it to this queue's, with whatever layout comes next.
    fn transfer(&mut self, resource: &Resource, from: u64, to: u64, state: &mut State, first: &Use) {
        let Sync { layout, owner, .. } = state.sync;
        let next = if first.layout == vk::ImageLayout::UNDEFINED { layout } else { first.layout };
        let (layouts, families) = ((layout, next), (owner, first.family));
        let mut src = state.sync.last();
        let others = state.others & !(1 << state.queue);
        if others != 0 {
            // Other queues of the family have read: the release comes after them.
            src.stages = Stages::ALL_COMMANDS;
        }
        let release = self.release(state.queue);
        release.batch.push(resource, from, to, &Edge { src, dst: Scope::NONE, layouts, families });
        let serial = release.serial;
        for other in 0..MAX_QUEUES {
            if others & (1 << other) != 0 {
                let family = self.queues[other].family;
                let index = u8::try_from(other).unwrap_or(NOBODY);
                let queue = Queue { index, family, ..self.queue };
                let wait = Wait { queue, serial: self.newest(other), stages: Stages::ALL_COMMANDS };
                let release = self.release(state.queue);
                Submission::wait(&mut release.waits, wait);
            }
        }
        let stages = some(first.stages);
        self.wait(state.queue, serial, stages);
        let src = Scope::new(stages, Access::NONE);
        self.out.fronts[0].push(resource, from, to, &Edge { src, dst: first.scope(), layouts, families });
        state.sync.follow(first);
        (state.others, state.other_readers) = (0, Stages::NONE);
        state.written = self.serial;
    }

    /// The submission to another queue that gives away what this one needs.
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
                out.releases.push(Release { queue, serial, waits: Vec::new(), batch: Batch::new() });
            }
            out.released += 1;
            out.released - 1
        });
        &mut out.releases[at]
    }

    /// Names a semaphore, unless this queue has waited for it already.
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
        *seen = Seen { serial: wait.serial, stages };
    }

    /// Lets memory go over to the resources of a list that share it with others.
    fn take_places(
        &mut self,
        entries: &mut [Entry],
        memories: &mut Memories,
        last_users: &mut LastUsers,
        (recorder, list): (&Recorder, u64),
    ) {
        for used in recorder.placed() {
            let resource = &used.resource;
            let (Some(place), Some(bytes)) = (resource.place, resource.bytes()) else { continue };
            let Some(memory) = memories.get(&place.memory) else { continue };
            last_users.clear();
            memory.holders.visit(bytes.0, bytes.1, |holder| {
                // What the list itself had before, it has waited for.
                let other = holder.slot.filter(|&slot| slot != resource.slot && holder.list != list);
                if let Some(Entry { resource, used_at, .. }) = other.map(|slot| &entries[index(slot)]) {
                    if let Some(bytes) = resource.bytes() {
                        last_users.add(User { used_at: *used_at, index: index(resource.slot), bytes });
                    }
                }
            });
            let found = last_users.settle();
            self.take_place(entries, used, found);
            // Where the list has used a part alone, what used the rest before is not waited for yet.
            let waited = used.taken.is_some() || !found.is_empty() || is_used_whole(used);
            let holder = Holder { slot: Some(resource.slot), list: if waited { list } else { 0 } };
            self.out.journal.hold(memories, place.memory, bytes, holder);
        }
    }

    /// Lets memory go over to a resource from those that used it last.
    fn take_place(&mut self, entries: &mut [Entry], used: &recorder::Entry, found: &[User]) {
        if found.is_empty() {
            return;
        }
        let resource = &used.resource;
        // What the list itself waits for when it takes the memory over, or all that waits in front of it.
        let taken = used.taken.map(|stages| Scope::new(stages, Access::NONE));
        let scope = taken.unwrap_or_else(|| first_scope(used));
        let (mut before, mut waited) = (Before::default(), false);
        for user in found {
            entries[user.index].cells.for_each(|_, _, state| {
                waited |= self.end_of(state, some(scope.stages), &mut before);
            });
        }
        if waited {
            before.stages |= some(scope.stages);
        }
        if before.stages.is_empty() {
            return;
        }
        let front = &mut self.out.fronts[self.list];
        if used.taken.is_some() {
            front.push_memory(&before.edge(scope));
            return;
        }
        if let Some(edge) = before.memory_edge(resource, scope) {
            front.push_memory(&edge);
        }
        let state = State {
            sync: before.sync(),
            queue: self.queue.index,
            serial: self.serial,
            written: self.serial,
            ..State::fresh(vk::ImageLayout::UNDEFINED)
        };
        entries[index(resource.slot)].cells.fill(state);
    }

    /// Adds what has to end of a state whose memory goes to somebody else. True if a semaphore does that.
    fn end_of(&mut self, state: &State, stages: Stages, before: &mut Before) -> bool {
        let mut waited = false;
        if state.queue == self.queue.index {
            before.add(&state.sync);
        } else if state.queue != NOBODY {
            self.wait(state.queue, state.serial, stages);
            waited = true;
        }
        for other in (0..MAX_QUEUES).filter(|other| state.others & (1 << other) != 0) {
            if other == self.queue.index() {
                before.stages |= state.other_readers;
            } else {
                self.wait(u8::try_from(other).unwrap_or(NOBODY), self.newest(other), stages);
                waited = true;
            }
        }
        waited
    }
}

/// Whether the first use of every part of a resource in a list meets what was before the list.
fn is_used_whole(used: &recorder::Entry) -> bool {
    let mut whole = true;
    used.cells.for_each(|_, _, local| whole &= local.pending);
    whole
}

/// All first uses of a resource in a list.
fn first_scope(used: &recorder::Entry) -> Scope {
    let mut scope = Scope::NONE;
    used.cells.for_each(|_, _, local| {
        if local.pending {
            scope = scope | local.first.scope();
        }
    });
    scope
}

/// Who names no stage waits with all.
fn some(stages: Stages) -> Stages {
    if stages.is_empty() { Stages::ALL_COMMANDS } else { stages }
}

/// The first use of a list on a state of the same queue.
fn follow_first(sync: &mut Sync, first: &Use, then_written: bool) -> Option<Edge> {
    let missing = sync.readers & !first.stages;
    let reads = sync.is_read(first);
    let edge = sync.advance(first);
    if !reads || !then_written || missing.is_empty() {
        return edge;
    }
    // The list orders its write after its own readers alone: these order themselves after the others.
    let mut edge = edge.unwrap_or(Edge {
        src: Scope::NONE,
        dst: Scope::new(first.stages, Access::NONE),
        layouts: (sync.layout, sync.layout),
        families: Edge::NO_FAMILIES,
    });
    edge.src.stages |= missing;
    Some(edge)
}
