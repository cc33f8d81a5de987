//! The judge of synchronization: whether each access is ordered after those before it that it conflicts with.
//!
//! Each access of the commands that a queue runs is kept as a [`Past`]: by whom, in which stages, and what has been
//! ordered after it since. A barrier changes what is known of all accesses before it; a new access asks those that it
//! overlaps. Submissions run in an order that their semaphores allow, so that one pass over them finds every lack of
//! order, whichever order they happen to run in. When the host has waited for a submission, what that submission and
//! all before it did is forgotten.
//!
//! The rules are those of the chapter "Synchronization and Cache Control":
//!
//! - A dependency orders what is in its first scope, or is ordered before that by another one (a chain), before what is
//!   in its second scope. Scopes of execution take logically earlier and later stages in.
//! - A write is made available by a barrier that names its stage, its access and its bytes; it is made visible by a
//!   barrier that comes after that, and only to the stages, accesses and bytes which that one names.
//! - A read needs the writes before it to be visible; a write too, and it needs the reads before it to be over.
//! - Accesses to an attachment between the beginning and the end of rendering are ordered implicitly.
//! - A change of layout is a write between the two halves of its barrier. So are a release and an acquire: the acquire
//!   comes after the semaphore, whatever its first stages are.

pub mod feed;
pub(crate) mod owners;
pub(crate) mod past;
pub(crate) mod scope;
pub(crate) mod spaces;

use std::collections::BTreeMap;
use std::ops::Range;

use ash::vk;
use ash::vk::Handle as _;

use owners::{Act, Misowned, Owners};
use past::{Access1, BarrierStep, Missing, Past};
use spaces::{AccessHistory, Space};

pub(crate) use owners::{Half, OwnershipTransfer, is_outside};
pub(crate) use scope::{DependencyScope, access2, stages2};

/// A recorded call: which one it is of its command buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) call: &'static str,
    pub(crate) index: u32,
    pub(crate) buffer: vk::CommandBuffer,
}

/// A call that a queue runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) timeline: usize,
    pub(crate) submission: u64,
    pub(crate) site: Site,
}

/// A barrier in a command.
#[derive(Debug, Clone)]
pub(crate) struct CommandBarrier {
    pub(crate) first: DependencyScope,
    pub(crate) second: DependencyScope,
    pub(crate) on: On,
    /// If it changes the owner.
    pub(crate) half: Option<Half>,
}

impl CommandBarrier {
    /// Returns true if others see it as a write: it changes a layout or an owner.
    pub(crate) fn changes(&self) -> bool {
        self.half.is_some() || matches!(self.on, On::Image { layouts: (old, new), .. } if old != new)
    }
}

/// The part that a barrier makes available and visible.
#[derive(Debug, Clone)]
pub(crate) enum On {
    All,
    Buffer { buffer: vk::Buffer, offset: u64, size: u64 },
    Image { image: vk::Image, range: vk::ImageSubresourceRange, layouts: (vk::ImageLayout, vk::ImageLayout) },
}

/// The resource of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Buffer(vk::Buffer),
    Image(vk::Image),
}

/// Units of a space: bytes of a memory, or subresources of an image.
#[derive(Debug, Clone)]
pub(crate) struct AccessRange {
    /// The handle of the memory, of the image, or of a sparse buffer.
    pub(crate) space: u64,
    pub(crate) of: Of,
    /// The offset of the resource in its space.
    pub(crate) base: u64,
    pub(crate) ranges: Vec<Range<u64>>,
    /// True if one family of queues owns it at a time.
    pub(crate) exclusive: bool,
}

impl Of {
    pub(crate) fn raw(self) -> u64 {
        match self {
            Self::Buffer(buffer) => buffer.as_raw(),
            Self::Image(image) => image.as_raw(),
        }
    }
}

/// An access of a command.
#[derive(Debug, Clone)]
pub(crate) struct CommandAccess {
    pub(crate) place: AccessRange,
    pub(crate) access: Access1,
    /// True if it needs what is there, also of what it does not touch: its family has to own that.
    pub(crate) keeps: bool,
}

impl CommandAccess {
    pub(crate) fn new(place: AccessRange, access: Access1) -> Self {
        Self { place, access, keeps: !access.write }
    }
}

/// A violation that the judge reports.
#[derive(Debug)]
pub(crate) enum Finding {
    Hazard(Box<Hazard>),
    Owner(Misowned),
}

/// Two accesses that nothing orders as it should.
#[derive(Debug)]
pub(crate) struct Hazard {
    pub(crate) before: Past,
    pub(crate) place: AccessRange,
    pub(crate) range: Range<u64>,
    pub(crate) missing: Missing,
    /// The later access; `None` is a change of layout.
    pub(crate) next: Option<Access1>,
}

/// The signal of a semaphore by a submission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signal {
    pub(crate) value: u64,
    pub(crate) timeline: usize,
    pub(crate) submission: u64,
    pub(crate) first: DependencyScope,
}

/// A semaphore that a submission waits for or signals, its value, and the stages that do.
pub(crate) type SemaphoreUse = (vk::Semaphore, u64, vk::PipelineStageFlags2);

/// The most signals that are remembered of one semaphore.
pub(crate) const MOST_SIGNALS: usize = 64;

/// The accesses of a device's queues that the host has not waited for.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    pub(crate) spaces: BTreeMap<u64, Space<AccessHistory>>,
    pub(crate) owners: Owners,
    /// True if an acquire needs first stages that the semaphore's wait has.
    pub(crate) strict: bool,
    /// The family of each queue.
    pub(crate) families: Vec<u32>,
    pub(crate) signals: BTreeMap<vk::Semaphore, Vec<Signal>>,
    /// The submission that signaled each fence.
    pub(crate) fences: BTreeMap<vk::Fence, (usize, u64)>,
    /// The last two calls between which a shader had a hazard.
    pub(crate) reported: Option<(Actor, Option<Actor>)>,
}

impl Judge {
    pub(crate) fn new(families: Vec<u32>) -> Self {
        Self { families, ..Self::default() }
    }

    /// Checks an operation of a queue against the owner. Nothing can be wrong where there is one family.
    pub(crate) fn own(&mut self, timeline: usize, place: &AccessRange, act: Act) -> Option<Finding> {
        let family = *self.families.get(timeline)?;
        if self.families.iter().all(|other| *other == family) {
            return None;
        }
        self.owners.act(family, place, act).map(Finding::Owner)
    }

    /// The accesses of one call: each is compared with those before the call, and then all become one of them.
    pub(crate) fn access(&mut self, actor: Actor, uses: &[CommandAccess]) -> Vec<Finding> {
        let mut found: Vec<_> = uses.iter().filter_map(|usage| self.check(actor, usage)).collect();
        for usage in uses {
            let act = if usage.keeps { Act::Use } else { Act::Overwrite };
            found.extend(self.own(actor.timeline, &usage.place, act));
        }
        for usage in uses {
            let past = Past::new(actor, usage.place.of, usage.access);
            let space = self.spaces.entry(usage.place.space).or_default();
            for range in &usage.place.ranges {
                space.change(range, |cell| {
                    cell.past.retain(|before| !before.is_over(actor.timeline, &usage.access));
                    cell.push(past.clone());
                });
            }
        }
        found
    }

    pub(crate) fn check(&self, actor: Actor, usage: &CommandAccess) -> Option<Finding> {
        let space = self.spaces.get(&usage.place.space)?;
        let cells = usage.place.ranges.iter().flat_map(|range| space.overlapping(range));
        // Writes that need no order among themselves, of one resource.
        let apart = |before: &Past| {
            before.access.unordered.is_some()
                && before.access.unordered == usage.access.unordered
                && before.of == usage.place.of
                && before.actor.timeline == actor.timeline
        };
        for (range, cell) in cells {
            let seen = cell.past.iter().any(|past| past.shows(&usage.access));
            for before in cell.reads_first().filter(|before| !apart(before)) {
                if let Some(missing) = before.missing(actor, &usage.access, seen) {
                    let (before, place) = (before.clone(), usage.place.clone());
                    let hazard = Hazard { before, place, range, missing, next: Some(usage.access) };
                    return Some(Finding::Hazard(Box::new(hazard)));
                }
            }
        }
        None
    }

    /// The barriers of one call, each with what it is about.
    pub(crate) fn barrier(
        &mut self,
        actor: Actor,
        bars: &[(CommandBarrier, Option<AccessRange>)],
        events: past::BarrierEvents<'_>,
    ) -> Vec<Finding> {
        for place in bars.iter().filter_map(|(_, place)| place.as_ref()) {
            if let Some(space) = self.spaces.get_mut(&place.space) {
                place.ranges.iter().for_each(|range| {
                    space.split(range.start);
                    space.split(range.end);
                });
            }
        }
        let strict = self.strict;
        let changes = || {
            let each = bars.iter().enumerate();
            each.filter_map(|(index, (bar, place))| match place {
                Some(place) if bar.changes() => Some((index, bar, place)),
                _ => None,
            })
        };
        let steps = |space: u64, at: u64| -> Vec<BarrierStep> {
            let here = |place: &Option<AccessRange>, bar: &CommandBarrier| match place {
                Some(place) => place.space == space && place.ranges.iter().any(|range| range.contains(&at)),
                None => matches!(bar.on, On::All),
            };
            let step = |(bar, place): &(CommandBarrier, Option<AccessRange>)| BarrierStep {
                first: bar.first,
                second: bar.second,
                here: here(place, bar),
                acquires: !strict && matches!(bar.half, Some(Half::Acquire(_))),
            };
            bars.iter().map(step).collect()
        };
        let mut found = Vec::new();
        for (_, bar, place) in changes() {
            let act = match (bar.half, &bar.on) {
                (Some(half), _) => Act::Half(half),
                (None, On::Image { layouts: (vk::ImageLayout::UNDEFINED, _), .. }) => Act::Discard,
                (None, _) => Act::Use,
            };
            found.extend(self.own(actor.timeline, place, act));
        }
        for (index, _, place) in changes() {
            let Some(space) = self.spaces.get(&place.space) else { continue };
            let mut cells = place.ranges.iter().flat_map(|range| space.overlapping(range));
            found.extend(cells.find_map(|(range, cell)| {
                let steps = steps(place.space, range.start);
                let own = steps.get(index)?;
                cell.reads_first().find_map(|before| {
                    let missing = before.missing_before(actor.timeline, &steps, own, events)?;
                    let (before, place, range) = (before.clone(), place.clone(), range.clone());
                    let hazard = Hazard { before, place, range, missing, next: None };
                    Some(Finding::Hazard(Box::new(hazard)))
                })
            }));
        }
        for (&name, space) in &mut self.spaces {
            for (start, cell) in space.cells() {
                let steps = steps(name, start);
                cell.past.iter_mut().for_each(|past| past.wait(actor.timeline, &steps, events));
            }
        }
        for (_, bar, place) in changes() {
            let past = Past::transition(actor, place.of, bar.second);
            let space = self.spaces.entry(place.space).or_default();
            for range in &place.ranges {
                space.change(range, |cell| cell.past = vec![past.clone()]);
            }
        }
        found
    }

    pub(crate) fn each(&mut self, mut change: impl FnMut(&mut Past)) {
        let cells = self.spaces.values_mut().flat_map(Space::cells);
        cells.for_each(|(_, cell)| cell.past.iter_mut().for_each(&mut change));
    }

    /// A submission begins: it has waited for semaphores.
    pub(crate) fn begin(
        &mut self,
        timeline: usize,
        submission: u64,
        waits: &[SemaphoreUse],
        binary: impl Fn(vk::Semaphore) -> bool,
    ) {
        for &(semaphore, value, stages) in waits {
            let Some(signals) = self.signals.get_mut(&semaphore) else { continue };
            let signal = if binary(semaphore) {
                if signals.is_empty() { None } else { Some(signals.remove(0)) }
            } else {
                satisfying(signals, value)
            };
            if let Some(signal) = signal {
                let second = DependencyScope::second(
                    stages,
                    vk::AccessFlags2::MEMORY_READ | vk::AccessFlags2::MEMORY_WRITE,
                );
                self.each(|past| past.wait_for(&signal, (timeline, submission), second));
            }
        }
    }

    /// A submission ends: it signals semaphores and a fence.
    pub(crate) fn end(
        &mut self,
        timeline: usize,
        submission: u64,
        signals: &[SemaphoreUse],
        fence: vk::Fence,
    ) {
        for &(semaphore, value, stages) in signals {
            let known = self.signals.entry(semaphore).or_default();
            if known.len() == MOST_SIGNALS {
                known.remove(0);
            }
            let first = DependencyScope::first(stages, vk::AccessFlags2::NONE);
            known.push(Signal { value, timeline, submission, first });
        }
        self.fences.insert(fence, (timeline, submission));
    }

    /// The host knows that a fence is signaled.
    pub(crate) fn host_saw_fence(&mut self, fence: vk::Fence) {
        if let Some((timeline, submission)) = self.fences.remove(&fence) {
            self.forget(timeline, submission);
        }
    }

    /// The host knows that a semaphore has reached a value.
    pub(crate) fn host_saw_value(&mut self, semaphore: vk::Semaphore, value: u64) {
        let signals = self.signals.get(&semaphore).map(Vec::as_slice).unwrap_or_default();
        let mut seen: Vec<_> = signals.iter().filter(|signal| signal.value <= value).copied().collect();
        seen.extend(satisfying(signals, value));
        seen.iter().for_each(|signal| self.forget(signal.timeline, signal.submission));
    }

    /// The host knows that queues are idle.
    pub(crate) fn host_saw_idle(&mut self, timelines: Range<usize>) {
        timelines.for_each(|timeline| self.forget(timeline, u64::MAX - 1));
    }

    pub(crate) fn forget(&mut self, timeline: usize, submission: u64) {
        self.spaces.retain(|_, space| space.retain(|past| !past.is_done(timeline, submission)));
    }
}

/// The signal after which a semaphore has a value.
pub(crate) fn satisfying(signals: &[Signal], value: u64) -> Option<Signal> {
    signals.iter().filter(|signal| signal.value >= value).min_by_key(|signal| signal.value).copied()
}

/// The name that the validation layer has for it. Unordered accesses of two queues are races.
pub(crate) fn rule(actor: Actor, finding: &Finding) -> &'static str {
    let hazard = match finding {
        Finding::Hazard(hazard) => hazard,
        Finding::Owner(Misowned { act: Act::Half(Half::Acquire(_)), .. }) => {
            return "VUID-vkQueueSubmit-pSubmits-02207";
        }
        Finding::Owner(_) => return "SUBLET-exclusive-ownership",
    };
    let races = hazard.missing == Missing::Semaphore && hazard.before.actor.timeline != actor.timeline;
    let next_writes = hazard.next.is_none_or(|next| next.write);
    match (races, next_writes, hazard.before.access.write) {
        (false, false, _) => "SYNC-HAZARD-READ-AFTER-WRITE",
        (false, true, false) => "SYNC-HAZARD-WRITE-AFTER-READ",
        (false, true, true) => "SYNC-HAZARD-WRITE-AFTER-WRITE",
        (true, false, _) => "SYNC-HAZARD-READ-RACING-WRITE",
        (true, true, false) => "SYNC-HAZARD-WRITE-RACING-READ",
        (true, true, true) => "SYNC-HAZARD-WRITE-RACING-WRITE",
    }
}
