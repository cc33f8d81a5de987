//! The judge without a driver: a test tells it what queues do, for uses that no command of the simulated driver makes.
//! Stages count as what they name: the order among the stages of a pipeline is not used.

use std::ops::Range;

use ash::vk;
use ash::vk::Handle as _;
use vk::AccessFlags2 as Access;
use vk::PipelineStageFlags2 as Stages;

use super::owners::{Half, OwnershipTransfer};
use super::past::{Access1, Unordered};
use super::scope::WRITES;
use super::{
    AccessRange, Actor, CommandAccess, CommandBarrier, DependencyScope, Finding, Judge, Of, On, Site,
};

/// A part of a resource: bytes, or subresources by their numbers.
#[derive(Debug, Clone)]
pub struct FeedPart {
    /// The name of the resource.
    pub resource: u64,
    /// The unit of memory that the first byte or subresource is in.
    pub base: u64,
    /// The parts, counted from the first.
    pub ranges: Vec<Range<u64>>,
    /// True if one family of queues owns it at a time.
    pub exclusive: bool,
}

/// A use by a command.
#[derive(Debug, Clone)]
pub struct FeedUse {
    /// The part that is accessed.
    pub part: FeedPart,
    /// The stages that use it.
    pub stages: Stages,
    /// How they do.
    pub access: Access,
    /// True if it needs what is there, also of what it does not touch.
    pub keeps: bool,
    /// True if its writes need no order with others like it.
    pub unordered: bool,
}

/// A barrier.
#[derive(Debug, Clone)]
pub struct FeedBarrier {
    /// The first scope.
    pub src: (Stages, Access),
    /// The second scope.
    pub dst: (Stages, Access),
    /// The part that it covers; everything if `None`.
    pub on: Option<FeedPart>,
    /// The layout that it leads from and to.
    pub layouts: (vk::ImageLayout, vk::ImageLayout),
    /// The family that gives it away, and the one that gets it, if they differ.
    pub families: (u32, u32),
}

/// Hands the judge one step after another. Each answers the rules that it breaks.
#[derive(Debug)]
pub struct Feed {
    judge: Judge,
    families: Vec<u32>,
    /// The number of each queue's submission, and of its call.
    at: Vec<(u64, u32)>,
}

impl FeedPart {
    fn place(&self) -> AccessRange {
        AccessRange {
            space: 0,
            of: Of::Buffer(vk::Buffer::from_raw(self.resource)),
            base: self.base,
            ranges: self.ranges.iter().map(|range| self.base + range.start..self.base + range.end).collect(),
            exclusive: self.exclusive,
        }
    }
}

impl Feed {
    /// Queues of these families.
    pub fn new(families: &[u32]) -> Self {
        let at = vec![(0, 0); families.len()];
        let judge = Judge { strict: true, ..Judge::new(families.to_vec()) };
        Self { judge, families: families.to_vec(), at }
    }

    fn actor(&mut self, timeline: usize) -> Actor {
        let at = &mut self.at[timeline];
        at.1 += 1;
        let site = Site { call: "", index: at.1, buffer: vk::CommandBuffer::null() };
        Actor { timeline, submission: at.0, site }
    }

    fn rules(actor: Actor, found: &[Finding]) -> Vec<&'static str> {
        found.iter().map(|finding| super::rule(actor, finding)).collect()
    }

    /// A queue runs a command.
    pub fn command(&mut self, timeline: usize, uses: &[FeedUse]) -> Vec<&'static str> {
        let actor = self.actor(timeline);
        let mut all = Vec::new();
        for usage in uses {
            let FeedUse { stages, access, .. } = *usage;
            let unordered = usage.unordered.then_some(Unordered::Kind(stages, access));
            // One stage and one access at a time: all of them need an order.
            let mut kinds: Vec<_> = bits(stages.as_raw())
                .flat_map(|stage| bits(access.as_raw()).map(move |kind| (stage, kind)))
                .collect();
            // Reads come first, for the write to take their place.
            kinds.sort_by_key(|(_, kind)| writes(Access::from_raw(*kind)));
            all.extend(kinds.into_iter().map(|(stage, kind)| {
                let (stages, access) = (Stages::from_raw(stage), Access::from_raw(kind));
                let access = Access1 { stages, access, write: writes(access), area: None, unordered };
                CommandAccess { place: usage.part.place(), access, keeps: usage.keeps }
            }));
        }
        Self::rules(actor, &self.judge.access(actor, &all))
    }

    /// A queue runs the barriers of a call, or waits with them for an event.
    pub fn barriers(
        &mut self,
        timeline: usize,
        bars: &[FeedBarrier],
        event: Option<u64>,
    ) -> Vec<&'static str> {
        let actor = self.actor(timeline);
        let (bars, event) = (self.bars(timeline, bars), event.map(|event| [vk::Event::from_raw(event)]));
        let found = self.judge.barrier(actor, &bars, event.as_ref().map(|event| &event[..]));
        Self::rules(actor, &found)
    }

    fn bars(&self, timeline: usize, bars: &[FeedBarrier]) -> Vec<(CommandBarrier, Option<AccessRange>)> {
        let each = bars.iter().map(|bar| {
            let (from, to) = bar.families;
            let transfer = OwnershipTransfer { from, to, layouts: bar.layouts };
            let half = (from != to).then(|| match self.families[timeline] == to {
                true => Half::Acquire(transfer),
                false => Half::Release(transfer),
            });
            let place = bar.on.as_ref().map(FeedPart::place);
            let on = match place {
                None => On::All,
                Some(_) => On::Image {
                    image: vk::Image::null(),
                    range: vk::ImageSubresourceRange::default(),
                    layouts: bar.layouts,
                },
            };
            let (first, second) =
                (DependencyScope::named(bar.src.0, bar.src.1), DependencyScope::named(bar.dst.0, bar.dst.1));
            (CommandBarrier { first, second, on, half }, place)
        });
        each.collect()
    }

    /// A queue sets an event.
    pub fn set(&mut self, timeline: usize, event: u64, stages: Stages) {
        let first = DependencyScope::named(stages, Access::NONE).order;
        self.judge.each(|past| past.mark(timeline, vk::Event::from_raw(event), first));
    }

    /// A submission ends, and the queue's own semaphore gets a value.
    pub fn signal(&mut self, timeline: usize, value: u64) {
        let signals = [(semaphore(timeline), value, Stages::ALL_COMMANDS)];
        self.judge.end(timeline, self.at[timeline].0, &signals, vk::Fence::null());
        self.at[timeline].0 += 1;
    }

    /// A submission waits for the semaphore of a queue. False if nobody has signaled it.
    pub fn wait(&mut self, timeline: usize, on: usize, value: u64, stages: Stages) -> bool {
        let signals = self.judge.signals.get(&semaphore(on)).map(Vec::as_slice);
        let known = signals.and_then(|signals| super::satisfying(signals, value)).is_some();
        self.judge.begin(timeline, self.at[timeline].0, &[(semaphore(on), value, stages)], |_| false);
        known
    }
}

/// Returns whether an access writes.
pub fn writes(access: Access) -> bool {
    WRITES.intersects(access)
}

fn semaphore(timeline: usize) -> vk::Semaphore {
    vk::Semaphore::from_raw(crate::facts::arithmetic::widen(timeline) + 1)
}

fn bits(mask: u64) -> impl Iterator<Item = u64> {
    (0..u64::BITS).map(|bit| 1 << bit).filter(move |bit| mask & bit != 0)
}
