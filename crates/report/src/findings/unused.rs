//! Memory that was never bound, mapped or synchronized, and the most of it at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ash::vk;

use super::finding::{FindingKind, FindingObject, MemoryFinding, label};
use crate::words::{bytes, count};
use sublet::trace::{ForeignMemory, Header, MemoryNumber};

const VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_VISIBLE;
const COHERENT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_COHERENT;
const LOCAL: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;

/// The ended memory that the program did not use in one of three ways.
#[derive(Default)]
pub(super) struct UnusedMemory {
    never_bound: Vec<MemoryLife>,
    never_mapped: Vec<MemoryLife>,
    never_synchronized: Vec<MemoryLife>,
}

/// Memory, from the record that allocates it to the one that frees it.
#[derive(Clone)]
struct MemoryLife {
    number: MemoryNumber,
    name: Option<Box<str>>,
    size: u64,
    begin: u64,
    end: u64,
}

impl UnusedMemory {
    /// Adds memory that has ended.
    pub(super) fn add(
        &mut self,
        flags: vk::MemoryPropertyFlags,
        (number, memory): (MemoryNumber, &ForeignMemory),
        (begin, end): (u64, u64),
    ) {
        let life = || MemoryLife { number, name: memory.name.clone(), size: memory.size, begin, end };
        if !memory.was_bound && !memory.is_shared() {
            self.never_bound.push(life());
        } else if flags.contains(VISIBLE) && !memory.was_mapped && !memory.is_shared() {
            self.never_mapped.push(life());
        }
        let is_synchronized = memory.was_synchronized || flags.contains(COHERENT);
        if flags.contains(VISIBLE) && memory.was_mapped && !is_synchronized {
            self.never_synchronized.push(life());
        }
    }

    pub(super) fn findings(&self, header: &Header) -> Vec<MemoryFinding> {
        let text = "Allocated and never bound to a resource";
        let mut found = vec![finding(FindingKind::NeverBound, &self.never_bound, text, "no resource")];
        // Without memory of the device's own, host-visible memory is all there is.
        let is_private = |flags: vk::MemoryPropertyFlags| flags.contains(LOCAL) && !flags.contains(VISIBLE);
        if header.memory_types.iter().any(|kind| is_private(kind.flags)) {
            let text = "Host-visible, bound, and never mapped";
            found.push(finding(FindingKind::NeverMapped, &self.never_mapped, text, "never mapped"));
        }
        let (text, about) =
            ("Not coherent, mapped, and never flushed or invalidated", "mapped, and never flushed");
        found.push(finding(FindingKind::NeverSynchronized, &self.never_synchronized, text, about));
        found.into_iter().flatten().collect()
    }
}

/// Returns the finding of the most bytes that were live at the same time.
fn finding(kind: FindingKind, lives: &[MemoryLife], text: &str, about: &str) -> Option<MemoryFinding> {
    let mut lives: Vec<&MemoryLife> = lives.iter().collect();
    lives.sort_by_key(|life| life.begin);
    let (mut live, mut now, mut peak) = (BinaryHeap::new(), 0_u64, 0);
    let mut objects = Vec::new();
    for life in &lives {
        while live.peek().is_some_and(|&Reverse((end, _))| end < life.begin) {
            let ended = live.pop().map_or(0, |Reverse((_, size))| size);
            now = now.saturating_sub(ended);
        }
        live.push(Reverse((life.end, life.size)));
        now = now.saturating_add(life.size);
        if now > peak {
            peak = now;
            objects.push(*life);
        }
    }
    objects.sort_by_key(|life| Reverse(life.size));
    let objects = objects.into_iter().take(MemoryFinding::MAX_OBJECTS);
    let objects = objects.map(|life| {
        FindingObject::new(label("memory", life.number.0, life.name.as_deref()), life.size, about)
    });
    let found = crate::cast::widen(lives.len());
    let text = format!("{text}: {} with {}.", count(found, "memory object"), bytes(peak));
    // Only synchronization saves no memory.
    let saved = if kind == FindingKind::NeverSynchronized { 0 } else { peak };
    (found > 0).then(|| MemoryFinding::of_many(kind, saved, found, text, objects.collect()))
}
