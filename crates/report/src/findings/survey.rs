//! Sums at each moment of a foreign recording, and facts about memory that has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ash::vk;
use serde::Serialize;

use super::finding::{FindingKind, FindingObject, MemoryFinding, largest_of};
use super::outcomes::{PresetOutcome, THE_PROGRAM};
use super::unused::UnusedMemory;
use crate::cast::index;
use crate::words::{bytes, count};
use sublet::trace::{Event, ForeignMemory, ForeignProgram, Header, MemoryNumber, Record};

/// The memory of a program at one moment of its recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct MomentSums {
    /// Number of records before the moment.
    pub record: u64,
    /// Time since the recording began.
    pub time: Duration,
    /// Bytes of all `VkDeviceMemory`.
    pub reserved_bytes: u64,
    /// Bytes of bound resources, and of memory without any that is shared or has ranges of sparse resources. Resources
    /// that alias count one by one.
    pub used_bytes: u64,
    /// Number of `VkDeviceMemory`.
    pub memory_count: u64,
}

/// The facts that the findings need.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) records: u64,
    pub(super) at_peak: MomentSums,
    pub(super) at_end: MomentSums,
    pub(super) peak_memory_count: u64,
    presents: bool,
    /// Host-visible memory that was never mapped.
    pub(super) never_mapped: BTreeSet<MemoryNumber>,
    unused: UnusedMemory,
    /// The records that allocated the live memory.
    allocated: BTreeMap<MemoryNumber, u64>,
    /// By memory type and result.
    failed: BTreeMap<(u32, i32), (u64, u64)>,
    /// By heap: usage and budget at the largest excess, and the number of times.
    over_budget: BTreeMap<u32, (u64, u64, u64)>,
    leaked: Vec<FindingObject>,
    leaked_memory: (u64, u64),
    /// The program's own blocks.
    pub(super) own: PresetOutcome,
    /// The program after the last record.
    pub(super) program: ForeignProgram,
    /// The sizes of the live memory whose use is unknown, and their sum.
    opaque: BTreeMap<MemoryNumber, u64>,
    opaque_bytes: u64,
}

impl Survey {
    pub(super) fn add(&mut self, header: &Header, record: &Record) {
        self.records += 1;
        match &record.event {
            Event::MemoryAllocated { memory, memory_type, size, .. } => {
                self.allocated.insert(*memory, self.records);
                if self.records > header.opening_records {
                    self.own.add_call(&header.memory_types, *memory_type, *size);
                }
            }
            Event::MemoryFreed { memory } => {
                self.own.driver_frees += 1;
                if let Some(freed) = self.program.memories.remove(memory) {
                    self.ended(header, *memory, &freed);
                    self.program.memories.insert(*memory, freed);
                }
            }
            Event::DeviceDestroyed => self.device_destroyed(header),
            Event::MemoryAllocationFailed { memory_type, size, result } => {
                let failed = self.failed.entry((*memory_type, result.as_raw())).or_default();
                *failed = (failed.0 + 1, failed.1.max(*size));
            }
            Event::Budget { heap, budget, usage } if usage > budget && index(*heap) < header.heaps.len() => {
                let over = self.over_budget.entry(*heap).or_default();
                over.2 += 1;
                if usage - budget > over.0.saturating_sub(over.1) {
                    (over.0, over.1) = (*usage, *budget);
                }
            }
            _ => {}
        }
        self.follow(record);
        let now = self.sums(record);
        self.peak_memory_count = self.peak_memory_count.max(now.memory_count);
        self.own.peak_used_bytes = self.own.peak_used_bytes.max(now.used_bytes);
        let most = |it: &MomentSums| (it.reserved_bytes, it.used_bytes);
        if most(&now) > most(&self.at_peak) {
            self.at_peak = now;
        }
        self.presents |= record.event == Event::Presented;
        if !is_end(&record.event, self.presents) {
            self.at_end = now;
        }
    }

    /// Ends with the last record.
    pub(super) fn finish(&mut self, header: &Header) {
        self.own.preset = THE_PROGRAM;
        self.own.peak_reserved_bytes = self.at_peak.reserved_bytes;
        self.own.peak_memory_count = self.at_peak.memory_count;
        self.own.end_reserved_bytes = self.at_end.reserved_bytes;
        let left = std::mem::take(&mut self.program);
        left.memories.iter().for_each(|(number, memory)| self.ended(header, *number, memory));
    }

    fn follow(&mut self, record: &Record) {
        let changed: Vec<MemoryNumber> = match &record.event {
            Event::MemoryAllocated { memory, .. }
            | Event::MemoryFreed { memory }
            | Event::Bound { memory, .. } => vec![*memory],
            Event::SparseBound { binding, .. } => binding.memory.into_iter().collect(),
            Event::ResourceDestroyed { resource }
            | Event::BufferCreated { resource, .. }
            | Event::ImageCreated { resource, .. } => {
                let live = self.program.resources.get(resource);
                live.into_iter().flat_map(|live| &live.bound).map(|binding| binding.memory).collect()
            }
            Event::DeviceDestroyed => self.opaque.keys().copied().collect(),
            _ => Vec::new(),
        };
        self.program.follow(record);
        for number in changed {
            let is_opaque = |memory: &&ForeignMemory| {
                (memory.is_shared() || memory.has_sparse) && memory.bound.is_empty()
            };
            let now = self.program.memories.get(&number).filter(is_opaque).map(|memory| memory.size);
            let before = match now {
                Some(size) => self.opaque.insert(number, size),
                None => self.opaque.remove(&number),
            };
            let sum = self.opaque_bytes.wrapping_add(now.unwrap_or(0));
            self.opaque_bytes = sum.wrapping_sub(before.unwrap_or(0));
        }
    }

    fn sums(&self, record: &Record) -> MomentSums {
        let mut now = MomentSums { record: self.records, time: record.time, ..MomentSums::default() };
        for usage in self.program.types.values() {
            now.reserved_bytes = now.reserved_bytes.saturating_add(usage.reserved_bytes);
            now.used_bytes = now.used_bytes.saturating_add(usage.used_bytes);
            now.memory_count += usage.memory_count;
        }
        now.used_bytes = now.used_bytes.saturating_add(self.opaque_bytes);
        now
    }

    fn ended(&mut self, header: &Header, number: MemoryNumber, memory: &ForeignMemory) {
        let flags = header.memory_types.get(index(memory.memory_type)).map(|kind| kind.flags);
        let begin = self.allocated.remove(&number).unwrap_or(0);
        self.unused.add(flags.unwrap_or_default(), (number, memory), (begin, self.records));
        let is_visible = flags.is_some_and(|flags| flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE));
        if is_visible && !memory.was_mapped {
            self.never_mapped.insert(number);
        }
    }

    fn device_destroyed(&mut self, header: &Header) {
        let left = std::mem::take(&mut self.program);
        for (number, memory) in &left.memories {
            self.ended(header, *number, memory);
            self.leaked_memory.0 += 1;
            self.leaked_memory.1 = self.leaked_memory.1.saturating_add(memory.size);
            self.leaked.push(FindingObject::memory(&left, *number, "memory that was not freed"));
        }
        for number in left.resources.keys() {
            self.leaked.push(FindingObject::resource(&left, *number, "was not destroyed"));
        }
    }

    pub(super) fn findings(&self, header: &Header) -> Vec<MemoryFinding> {
        let mut found = self.unused.findings(header);
        if !self.leaked.is_empty() {
            let (memories, size) = self.leaked_memory;
            let others = crate::cast::widen(self.leaked.len()) - memories;
            let text = format!(
                "{} and {} were still live when the program destroyed its device.",
                count(memories, "memory object"),
                count(others, "resource")
            );
            found.push(MemoryFinding::new(FindingKind::Leak, size, text, self.leaked.clone()));
        }
        if !self.failed.is_empty() {
            let times = self.failed.values().map(|(times, _)| times).sum();
            let objects = self.failed.iter().map(|(&(memory_type, result), &(times, largest))| {
                let result = vk::Result::from_raw(result);
                let about = format!("{}, {result:?}", largest_of(times));
                FindingObject::new(format!("memory type {memory_type}"), largest, about)
            });
            let text = format!("The driver refused {}.", count(times, "allocation"));
            let objects = objects.collect();
            found.push(MemoryFinding::of_many(FindingKind::AllocationFailed, 0, times, text, objects));
        }
        for (heap, &(usage, budget, times)) in &self.over_budget {
            let text = format!(
                "Heap {heap} had {} in use, and its budget was {}: {} over budget.",
                bytes(usage),
                bytes(budget),
                bytes(usage - budget)
            );
            let object = FindingObject::new(format!("heap {heap}"), usage, count(times, "time"));
            found.push(MemoryFinding::new(FindingKind::OverBudget, usage - budget, text, vec![object]));
        }
        found
    }
}

/// Returns true for the calls with which a program ends.
pub(super) fn is_end(event: &Event, presents: bool) -> bool {
    // Godot submits once more after it has destroyed most resources.
    let submits = matches!(event, Event::Submitted { .. } | Event::Budget { .. });
    presents && submits
        || matches!(
            event,
            Event::MemoryFreed { .. }
                | Event::MemoryUnmapped { .. }
                | Event::ResourceDestroyed { .. }
                | Event::DriverMemory { .. }
                | Event::DeviceLost
                | Event::DeviceDestroyed
        )
}
