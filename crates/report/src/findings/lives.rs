//! The program before shutdown, and how long its memory and its attachments live.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ash::vk;

use super::churn::Churn;
use super::finding::{FindingKind, FindingObject, MemoryFinding, label_of_resource};
use super::survey::{MomentSums, is_end};
use crate::cast::widen;
use crate::words::{bytes, count};
use sublet::trace::{Event, ForeignProgram, ForeignShape, MemoryNumber, Record, ResourceNumber};

/// The most attachments that are compared with each other.
const MAX_ATTACHMENTS: usize = 1000;

/// An attachment, from its bind to its end.
struct AttachmentLife {
    label: Box<str>,
    memory: MemoryNumber,
    size: u64,
    begin: Duration,
    end: Duration,
}

/// The facts about a program's memory over time.
#[derive(Default)]
pub(super) struct Lives {
    /// The program before shutdown: after the last call that frees nothing.
    pub(super) at_end: ForeignProgram,
    /// The records after that call.
    ending: Vec<Record>,
    /// The time of the first record: a later part of a recording does not begin at 0.
    start: Option<Duration>,
    /// The times of allocations with their bytes, and of frees and frames, before shutdown.
    allocated: Vec<(Duration, u64)>,
    freed: Vec<Duration>,
    presented: Vec<Duration>,
    attachments: Vec<AttachmentLife>,
    /// The live attachments, with the time of their bind.
    live: BTreeMap<ResourceNumber, Duration>,
    /// The lives of the memory of attachments.
    memories: BTreeMap<MemoryNumber, (Duration, Duration)>,
}

impl Lives {
    /// Takes the next record, before which the program was in this state.
    pub(super) fn before(&mut self, program: &ForeignProgram, record: &Record) {
        match &record.event {
            Event::MemoryFreed { memory } => {
                if let Some((_, end)) = self.memories.get_mut(memory) {
                    *end = record.time;
                }
                for (_, resource, _) in program.memories.get(memory).iter().flat_map(|it| &it.bound) {
                    self.end(program, *resource, record.time);
                }
            }
            Event::ResourceDestroyed { resource } => self.end(program, *resource, record.time),
            _ => {}
        }
    }

    /// Takes the same record, after which the program is in this state.
    pub(super) fn after(&mut self, program: &ForeignProgram, record: &Record) {
        self.start.get_or_insert(record.time);
        if is_end(&record.event, !self.presented.is_empty()) {
            self.ending.push(record.clone());
        } else {
            std::mem::take(&mut self.ending).iter().for_each(|ending| self.follow(ending));
            self.follow(record);
        }
        if let Event::Bound { resource, memory, .. } = &record.event {
            let found = program.resources.get(resource);
            let is_noted = self.attachments.len() + self.live.len() < MAX_ATTACHMENTS;
            if is_noted && found.is_some_and(|found| is_attachment(&found.shape)) {
                self.live.insert(*resource, record.time);
                let begin = program.memories.get(memory).map_or(record.time, |it| it.allocated);
                self.memories.insert(*memory, (begin, Duration::MAX));
            }
        }
    }

    /// Takes a record before shutdown.
    fn follow(&mut self, record: &Record) {
        self.at_end.follow(record);
        match record.event {
            Event::MemoryAllocated { size, .. } => self.allocated.push((record.time, size)),
            Event::MemoryFreed { .. } => self.freed.push(record.time),
            Event::Presented => self.presented.push(record.time),
            _ => {}
        }
    }

    /// Ends with the last record.
    pub(super) fn finish(&mut self, program: &ForeignProgram) {
        let rest: Vec<ResourceNumber> = self.live.keys().copied().collect();
        rest.into_iter().for_each(|resource| self.end(program, resource, Duration::MAX));
    }

    fn end(&mut self, program: &ForeignProgram, resource: ResourceNumber, end: Duration) {
        let Some(begin) = self.live.remove(&resource) else { return };
        let Some(found) = program.resources.get(&resource) else { return };
        let Some(binding) = found.bound.first() else { return };
        let label = label_of_resource(program, resource);
        let (memory, size) = (binding.memory, binding.size);
        self.attachments.push(AttachmentLife { label, memory, size, begin, end });
    }

    pub(super) fn findings(&self, at_end: &MomentSums) -> Vec<MemoryFinding> {
        let start = self.start.unwrap_or_default();
        let middle = (start + at_end.time) / 2;
        let late = |times: &[Duration]| widen(times.iter().filter(|time| **time > middle).count());
        let allocated = self.allocated.iter().filter(|(time, _)| *time > middle);
        let churn = Churn {
            allocated: widen(allocated.clone().count()),
            allocated_bytes: allocated.fold(0, |sum, (_, size)| sum.saturating_add(*size)),
            freed: late(&self.freed),
            frames: late(&self.presented),
        };
        churn.finding(at_end.time.saturating_sub(start)).into_iter().chain(self.aliasing()).collect()
    }

    /// Pairs each attachment with one that lives at another time, while both have memory. Greedy: the largest first.
    fn aliasing(&self) -> Option<MemoryFinding> {
        let mut order: Vec<&AttachmentLife> = self.attachments.iter().collect();
        order.sort_by_key(|attachment| std::cmp::Reverse(attachment.size));
        let whole = |attachment: &AttachmentLife| self.memories.get(&attachment.memory).copied();
        let mut used = BTreeSet::new();
        let (mut saved, mut objects) = (0_u64, Vec::new());
        for (at, one) in order.iter().enumerate() {
            if used.contains(&at) {
                continue;
            }
            let fits = |(_, other): &(usize, &&AttachmentLife)| {
                let apart = one.end <= other.begin || other.end <= one.begin;
                let (begin, end) = (one.begin.min(other.begin), one.end.max(other.end));
                let reserved = |memory: Option<(Duration, Duration)>| {
                    memory.is_some_and(|(first, last)| first <= begin && last >= end)
                };
                apart && one.memory != other.memory && reserved(whole(one)) && reserved(whole(other))
            };
            let mut others = order.iter().enumerate().skip(at + 1).filter(|(at, _)| !used.contains(at));
            let Some((partner, other)) = others.find(fits) else { continue };
            used.insert(partner);
            saved = saved.saturating_add(other.size);
            let about = format!("could share memory with {}", one.label);
            objects.push(FindingObject::new(other.label.clone(), other.size, about));
        }
        let text = format!(
            "{} could share memory with attachments that live at other times: {}.",
            count(widen(objects.len()), "attachment"),
            bytes(saved)
        );
        (!objects.is_empty()).then(|| MemoryFinding::new(FindingKind::Aliasing, saved, text, objects))
    }
}

fn is_attachment(shape: &ForeignShape) -> bool {
    let attachments = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
    matches!(shape, ForeignShape::Image(image) if image.usage.intersects(attachments))
}
