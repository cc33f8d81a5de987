//! The second pass over a foreign recording: how long its memory and its attachments live.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ash::vk;

use super::churn::Churn;
use super::finding::{FindingKind, FindingObject, MemoryFinding, label_of_resource};
use super::survey::Survey;
use crate::cast::index;
use crate::words::{bytes, count};
use sublet::trace::{Event, ForeignProgram, ForeignShape, Header, MemoryNumber, Record, ResourceNumber};

const VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_VISIBLE;
const COHERENT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_COHERENT;
const LOCAL: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;

/// The most attachments that are compared with each other.
const MAX_ATTACHMENTS: usize = 1000;

/// Memory of one kind that is live at the same time.
#[derive(Default)]
struct Concurrent {
    bytes: u64,
    peak_bytes: u64,
    /// The live memory at the peak.
    live: BTreeSet<MemoryNumber>,
    peak: Vec<FindingObject>,
    count: u64,
}

impl Concurrent {
    fn begin(&mut self, program: &ForeignProgram, number: MemoryNumber, about: &str) {
        let size = program.memories.get(&number).map_or(0, |memory| memory.size);
        self.live.insert(number);
        self.bytes = self.bytes.saturating_add(size);
        self.count += 1;
        if self.bytes > self.peak_bytes {
            self.peak_bytes = self.bytes;
            // The largest objects suffice, and a long list would be built at each allocation.
            self.peak.push(FindingObject::memory(program, number, about));
            if self.peak.len() > 2 * MemoryFinding::MAX_OBJECTS {
                self.peak.sort_by_key(|object| std::cmp::Reverse(object.bytes));
                self.peak.truncate(MemoryFinding::MAX_OBJECTS);
            }
        }
    }

    fn end(&mut self, number: MemoryNumber, size: u64) {
        if self.live.remove(&number) {
            self.bytes = self.bytes.saturating_sub(size);
        }
    }
}

/// An attachment, from its bind to its end.
struct AttachmentLife {
    label: Box<str>,
    memory: MemoryNumber,
    size: u64,
    begin: Duration,
    end: Duration,
}

/// The facts that the second pass collects.
#[derive(Default)]
pub(super) struct Lives {
    /// The program before shutdown: after the last call that frees nothing.
    pub(super) at_end: ForeignProgram,
    never_bound: Concurrent,
    never_mapped: Concurrent,
    never_synchronized: Concurrent,
    churn: Churn,
    /// The time of the first record: a later part of a recording does not begin at 0.
    start: Duration,
    attachments: Vec<AttachmentLife>,
    /// The live attachments, with the time of their bind.
    live: BTreeMap<ResourceNumber, Duration>,
    /// The lives of the memory of attachments.
    memories: BTreeMap<MemoryNumber, (Duration, Duration)>,
}

impl Lives {
    pub(super) fn new(
        header: &Header,
        survey: &Survey,
        records: impl Iterator<Item: Borrow<Record>>,
    ) -> Self {
        let mut lives = Self::default();
        let mut program = ForeignProgram::default();
        for (at, record) in (1..).zip(records) {
            let record = record.borrow();
            if at == 1 {
                lives.start = record.time;
            }
            lives.before(&program, record);
            program.follow(record);
            lives.after(&program, (header, survey), at, record);
            if at == survey.at_end.record {
                lives.at_end = program.clone();
            }
        }
        let rest: Vec<ResourceNumber> = lives.live.keys().copied().collect();
        rest.into_iter().for_each(|resource| lives.end(&program, resource, Duration::MAX));
        lives
    }

    fn before(&mut self, program: &ForeignProgram, record: &Record) {
        match &record.event {
            Event::MemoryFreed { memory } => {
                let size = program.memories.get(memory).map_or(0, |memory| memory.size);
                for kind in [&mut self.never_bound, &mut self.never_mapped, &mut self.never_synchronized] {
                    kind.end(*memory, size);
                }
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

    fn after(
        &mut self,
        program: &ForeignProgram,
        (header, survey): (&Header, &Survey),
        at: u64,
        record: &Record,
    ) {
        let is_late = record.time > (self.start + survey.at_end.time) / 2 && at <= survey.at_end.record;
        match &record.event {
            Event::MemoryAllocated { memory, memory_type, size, .. } => {
                let flags = header.memory_types.get(index(*memory_type)).map(|kind| kind.flags);
                let flags = flags.unwrap_or_default();
                if survey.never_bound.contains(memory) {
                    self.never_bound.begin(program, *memory, "no resource");
                } else if flags.contains(VISIBLE)
                    && survey.never_mapped.contains(memory)
                    && !program.memories.get(memory).is_none_or(|memory| memory.is_shared())
                {
                    self.never_mapped.begin(program, *memory, "never mapped");
                }
                if flags.contains(VISIBLE)
                    && !flags.contains(COHERENT)
                    && survey.never_synchronized.contains(memory)
                {
                    self.never_synchronized.begin(program, *memory, "mapped, and never flushed");
                }
                if is_late {
                    self.churn.allocated += 1;
                    self.churn.allocated_bytes = self.churn.allocated_bytes.saturating_add(*size);
                }
            }
            Event::MemoryFreed { .. } if is_late => self.churn.freed += 1,
            Event::Presented if is_late => self.churn.frames += 1,
            Event::Bound { resource, memory, .. } => {
                let found = program.resources.get(resource);
                let is_noted = self.attachments.len() + self.live.len() < MAX_ATTACHMENTS;
                if is_noted && found.is_some_and(|found| is_attachment(&found.shape)) {
                    self.live.insert(*resource, record.time);
                    let begin = program.memories.get(memory).map_or(record.time, |it| it.allocated);
                    self.memories.insert(*memory, (begin, Duration::MAX));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, program: &ForeignProgram, resource: ResourceNumber, end: Duration) {
        let Some(begin) = self.live.remove(&resource) else { return };
        let Some(found) = program.resources.get(&resource) else { return };
        let Some(binding) = found.bound.first() else { return };
        let label = label_of_resource(program, resource);
        let (memory, size) = (binding.memory, binding.size);
        self.attachments.push(AttachmentLife { label, memory, size, begin, end });
    }

    pub(super) fn findings(&self, header: &Header, survey: &Survey) -> Vec<MemoryFinding> {
        let concurrent = |kind, found: &Concurrent, saves: bool, text: &str| {
            let saved = if saves { found.peak_bytes } else { 0 };
            let text =
                format!("{text}: {} with {}.", count(found.count, "memory object"), bytes(found.peak_bytes));
            let objects = found.peak.clone();
            (found.count > 0).then(|| MemoryFinding::of_many(kind, saved, found.count, text, objects))
        };
        // Without memory of the device's own, host-visible memory is all there is.
        let has_private = header
            .memory_types
            .iter()
            .any(|kind| kind.flags.contains(LOCAL) && !kind.flags.contains(VISIBLE));
        let text = "Allocated and never bound to a resource";
        let bound = concurrent(FindingKind::NeverBound, &self.never_bound, true, text);
        let text = "Host-visible, bound, and never mapped";
        let mapped = concurrent(FindingKind::NeverMapped, &self.never_mapped, true, text);
        let text = "Not coherent, mapped, and never flushed or invalidated";
        let synchronized = concurrent(FindingKind::NeverSynchronized, &self.never_synchronized, false, text);
        let mapped = mapped.filter(|_| has_private);
        let all = bound.into_iter().chain(mapped).chain(synchronized);
        all.chain(self.churn.finding(survey.at_end.time.saturating_sub(self.start)))
            .chain(self.aliasing())
            .collect()
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
            count(crate::cast::widen(objects.len()), "attachment"),
            bytes(saved)
        );
        (!objects.is_empty()).then(|| MemoryFinding::new(FindingKind::Aliasing, saved, text, objects))
    }
}

fn is_attachment(shape: &ForeignShape) -> bool {
    let attachments = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
    matches!(shape, ForeignShape::Image(image) if image.usage.intersects(attachments))
}
