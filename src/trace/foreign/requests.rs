//! Turns the recording of a foreign program into requests to an allocator.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{ForeignObject, MemoryNumber, ResourceNumber};
use super::program::ForeignProgram;
use super::records::ForeignRecords;
use crate::allocation::ResourceKind;
use crate::create_info::AllocationCreateFlags;
use crate::record::header::Header;
use crate::trace::{Allocate, AllocationNumber, Event, GrantedMemory, Needs, Record, Trace, Wanted};
use sublet_engines::cast::{index, widen};

/// The requests of a foreign program: the buffers and images that it binds. Its own division of memory into blocks is
/// not among them.
///
/// - A resource is a request with its requirements in the memory type that the program chose. It begins with the bind,
///   and ends with the resource or with its memory. Each plane of a disjoint image is a request.
/// - Resources in overlapping ranges of one memory alias. They are one request, which contains all of them, begins with
///   the first and ends with the last of them. A resource that overlaps several requests joins them.
/// - Memory that never gets a resource, that has ranges of sparse resources, or that is shared with another process or
///   API is a request of its own. Its kind is [`ResourceKind::Unknown`]. If the program did not name it, its name is
///   `memory without a resource`, or `shared memory`.
/// - A request is mapped persistently if its memory was mapped during its life. One for an image with optimal tiling is
///   not: such memory is mapped for other resources in it.
/// - A present call is a frame.
///
/// ```
/// use sublet::trace::{Event, ForeignMemoryFlags, MemoryNumber, Record, ResourceNumber, Trace};
///
/// let (memory, resource) = (MemoryNumber(1), ResourceNumber(1));
/// let flags = ForeignMemoryFlags::empty();
/// let events = [
///     Event::MemoryAllocated { memory, memory_type: 0, size: 1 << 20, flags, resource: None },
///     Event::BufferCreated { resource, size: 4096, usage: 0x80, flags: 0 },
///     Event::Bound { resource, plane: None, memory, offset: 0 },
/// ];
/// let records = events.map(|event| Record { event, ..Record::default() }).to_vec();
/// let requests = Trace { records, ..Trace::default() }.resource_requests();
/// let Event::Allocate(request) = &requests.records[0].event else { panic!() };
/// assert_eq!(request.resource.size, 4096, "the buffer, and not its block");
/// ```
#[derive(Debug, Default)]
pub struct ResourceRequests {
    header: Header,
    /// The number of added records.
    added: u64,
    /// The number of `records` from the opening records of a later part.
    opening: usize,
    program: ForeignProgram,
    records: Vec<Record>,
    /// The index of the record of each request.
    made: Vec<usize>,
    /// The requests for memory that later got a resource.
    withdrawn: BTreeSet<u32>,
    /// The requests that joined an earlier one, with its number.
    joined: BTreeMap<u32, u32>,
    live: BTreeMap<u32, LiveRequest>,
    /// The requests in each memory.
    memories: BTreeMap<MemoryNumber, RequestsInMemory>,
    /// The requests of each live resource: one, or one for each plane.
    resources: BTreeMap<ResourceNumber, Vec<u32>>,
    frames: u32,
}

#[derive(Debug)]
struct LiveRequest {
    memory: MemoryNumber,
    start: u64,
    end: u64,
    /// The number of bound resources and planes.
    users: u32,
}

#[derive(Debug, Default)]
struct RequestsInMemory {
    /// The request for all of it.
    whole: Option<u32>,
    /// By offset. They do not overlap.
    parts: BTreeSet<(u64, u32)>,
    /// Those without a persistent mapping.
    unmapped: BTreeSet<u32>,
}

impl Trace {
    /// Returns the requests of a foreign program, as a trace that [`Replay`](super::super::Replay) accepts. A trace that
    /// is not foreign is returned unchanged.
    ///
    /// # Complexity
    /// O(n log m) for n records and m live objects.
    #[must_use]
    pub fn resource_requests(&self) -> Self {
        if !self.is_foreign() {
            return self.clone();
        }
        let mut requests = ResourceRequests::new(self.header.clone());
        self.records.iter().for_each(|record| requests.add(record));
        requests.finish()
    }
}

impl ForeignRecords<'_> {
    /// Returns the requests in the remaining records: [`Trace::resource_requests`] without a trace of all records.
    #[must_use]
    pub fn resource_requests(mut self) -> Trace {
        let mut requests = ResourceRequests::new(self.header().clone());
        self.by_ref().for_each(|record| requests.add(&record));
        requests.finish()
    }
}

impl ResourceRequests {
    /// Begins with the header of the recording.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self { header, ..Self::default() }
    }

    /// Adds the next record of the foreign program.
    pub fn add(&mut self, record: &Record) {
        match &record.event {
            Event::MemoryAllocated { memory, .. } | Event::MemoryFreed { memory } => {
                self.free(*memory, record);
            }
            Event::ResourceDestroyed { resource }
            | Event::BufferCreated { resource, .. }
            | Event::ImageCreated { resource, .. } => self.destroy(*resource, record),
            Event::DeviceDestroyed => {
                let all: Vec<MemoryNumber> = self.memories.keys().copied().collect();
                all.into_iter().for_each(|memory| self.free(memory, record));
            }
            _ => {}
        }
        // A faulty file may bind a resource again, any number of times.
        let is_repeated = match record.event {
            Event::Bound { resource, plane, .. } => self.is_bound(resource, plane),
            _ => false,
        };
        self.program.follow(record);
        match &record.event {
            Event::Bound { .. } if is_repeated => {}
            Event::MemoryAllocated { memory, .. } => self.allocated(*memory, record),
            Event::MemoryMapped { memory, .. } => self.mapped(*memory),
            &Event::Bound { resource, plane, memory, .. } => self.bound(resource, plane, memory, record),
            Event::Named { object, name } => self.named(*object, name, record),
            Event::Presented => {
                self.push(record, Event::Frame { index: self.frames });
                self.frames = self.frames.wrapping_add(1);
            }
            _ => {}
        }
        self.added += 1;
        if self.added == self.header.opening_records {
            self.opening = self.records.len();
        }
    }

    /// Returns the requests. They are numbered without gaps. The [`opening_records`](Header::opening_records) of their
    /// header are those for the objects that are live at the start of a later part.
    #[must_use]
    pub fn finish(mut self) -> Trace {
        let mut numbers = Vec::with_capacity(self.made.len());
        let mut next = 0_u32;
        for number in (0..).take(self.made.len()) {
            let is_kept = !self.withdrawn.contains(&number) && !self.joined.contains_key(&number);
            numbers.push(is_kept.then_some(AllocationNumber(next)));
            next += u32::from(is_kept);
        }
        let numbered = |mut record: Record| {
            let number = match &mut record.event {
                Event::Allocate(made) => &mut made.allocation,
                Event::Free { allocation } | Event::SetName { allocation, .. } => allocation,
                _ => return Some(record),
            };
            *number = numbers.get(index(number.0)).copied().flatten()?;
            Some(record)
        };
        let rest = self.records.split_off(self.opening);
        let mut records: Vec<Record> = self.records.into_iter().filter_map(numbered).collect();
        self.header.opening_records = widen(records.len());
        records.extend(rest.into_iter().filter_map(numbered));
        Trace { header: self.header, records, unknown_events: 0 }
    }

    fn push(&mut self, record: &Record, event: Event) {
        self.records.push(Record { time: record.time, thread: record.thread, event });
    }

    /// Makes a request in a memory. `None` if there are too many.
    fn request(
        &mut self,
        memory: MemoryNumber,
        (resource, name): (Needs, Option<Box<str>>),
        (start, end): (u64, u64),
        record: &Record,
    ) -> Option<u32> {
        let number = u32::try_from(self.made.len()).ok().filter(|number| *number < u32::MAX)?;
        let flags = self.flags_of_mapping(number, memory, resource.kind);
        let block = self.program.memories.get(&memory)?;
        let wanted = Wanted {
            flags,
            memory_type_bits: 1_u32.checked_shl(block.memory_type).unwrap_or(0),
            name,
            has_chain: block.is_shared(),
            ..Wanted::default()
        };
        let granted = GrantedMemory {
            memory_type: block.memory_type,
            dedicated: block.is_shared() || block.dedicated_to.is_some(),
        };
        self.made.push(self.records.len());
        self.live.insert(number, LiveRequest { memory, start, end, users: 0 });
        let allocation = AllocationNumber(number);
        self.push(record, Event::Allocate(Box::new(Allocate { allocation, resource, wanted, granted })));
        Some(number)
    }

    /// Returns the flags of a request that contains a resource of this kind. If the memory is not mapped yet,
    /// [`Self::mapped`] adds them. No host reads an image with optimal tiling.
    fn flags_of_mapping(
        &mut self,
        number: u32,
        memory: MemoryNumber,
        kind: ResourceKind,
    ) -> AllocationCreateFlags {
        if kind == ResourceKind::ImageOptimal {
            return AllocationCreateFlags::empty();
        }
        if self.program.memories.get(&memory).is_some_and(|block| block.is_mapped) {
            return AllocationCreateFlags::MAPPED;
        }
        self.memories.entry(memory).or_default().unmapped.insert(number);
        AllocationCreateFlags::empty()
    }

    fn record_of(&mut self, number: u32) -> Option<&mut Allocate> {
        let at = *self.made.get(index(number))?;
        match &mut self.records.get_mut(at)?.event {
            Event::Allocate(made) => Some(made),
            _ => None,
        }
    }

    fn allocated(&mut self, memory: MemoryNumber, record: &Record) {
        let Some(block) = self.program.memories.get(&memory) else { return };
        let needs = Needs { size: block.size, kind: ResourceKind::Unknown, ..Needs::default() };
        let name = if block.is_shared() { SHARED } else { WITHOUT_RESOURCE };
        let end = block.size;
        let whole = self.request(memory, (needs, Some(name.into())), (0, end), record);
        self.memories.entry(memory).or_default().whole = whole;
    }

    fn is_bound(&self, resource: ResourceNumber, plane: Option<u32>) -> bool {
        self.program.resources.get(&resource).is_some_and(|live| live.binding(plane).is_some())
    }

    fn bound(&mut self, resource: ResourceNumber, plane: Option<u32>, memory: MemoryNumber, record: &Record) {
        let block = self.program.memories.get(&memory).filter(|block| !block.is_shared());
        let Some((_, live)) = block.zip(self.program.resources.get(&resource)) else { return };
        let Some(binding) = live.binding(plane).filter(|known| known.memory == memory) else { return };
        let (start, end) = (binding.offset, binding.offset.saturating_add(binding.size.max(1)));
        let needs = Needs { size: binding.size.max(1), ..live.needs(plane) };
        let name = live.name.clone();
        let inside = self.memories.entry(memory).or_default();
        if let Some(whole) = inside.whole.take() {
            self.withdrawn.insert(whole);
            inside.unmapped.remove(&whole);
            self.live.remove(&whole);
        }
        let below = inside.parts.range(..(end, 0)).rev().map(|&(_, number)| number);
        let overlaps = |number: &u32| self.live.get(number).is_some_and(|it| it.end > start);
        let mut aliases: Vec<u32> = below.take_while(overlaps).collect();
        aliases.sort_unstable();
        let number = match aliases.split_first() {
            Some((&first, others)) => {
                others.iter().for_each(|&other| self.join(first, other));
                let flags = self.flags_of_mapping(first, memory, needs.kind);
                self.widen(first, (start, end), &needs, flags);
                first
            }
            None => {
                let Some(number) = self.request(memory, (needs, name), (start, end), record) else { return };
                self.memories.entry(memory).or_default().parts.insert((start, number));
                number
            }
        };
        if let Some(live) = self.live.get_mut(&number) {
            live.users += 1;
            let numbers = self.resources.entry(resource).or_default();
            // The resource may have been in memory that was freed.
            numbers.retain(|&known| self.live.contains_key(&containing(&mut self.joined, known)));
            numbers.push(number);
        }
    }

    /// Puts a request into an earlier one of the same memory.
    fn join(&mut self, first: u32, other: u32) {
        let Some(joining) = self.live.remove(&other) else { return };
        self.joined.insert(other, first);
        if let Some(inside) = self.memories.get_mut(&joining.memory) {
            inside.parts.remove(&(joining.start, other));
            if inside.unmapped.remove(&other) {
                inside.unmapped.insert(first);
            }
        }
        if let Some(live) = self.live.get_mut(&first) {
            live.users = live.users.saturating_add(joining.users);
        }
        if let Some((needs, flags)) = self.record_of(other).map(|made| (made.resource, made.wanted.flags)) {
            self.widen(first, (joining.start, joining.end), &needs, flags);
        }
    }

    /// Extends a request by a resource, or by another request, that aliases its memory.
    fn widen(&mut self, number: u32, (start, end): (u64, u64), needs: &Needs, flags: AllocationCreateFlags) {
        let Some(live) = self.live.get_mut(&number) else { return };
        let (memory, before) = (live.memory, live.start);
        live.start = live.start.min(start);
        live.end = live.end.max(end);
        let (start, size) = (live.start, live.end - live.start);
        if let Some(inside) = self.memories.get_mut(&memory) {
            inside.parts.remove(&(before, number));
            inside.parts.insert((start, number));
        }
        if let Some(made) = self.record_of(number) {
            made.resource.size = size.max(made.resource.size);
            made.resource.alignment = made.resource.alignment.max(needs.alignment);
            made.resource.memory_type_bits &= needs.memory_type_bits;
            // Several resources share it.
            made.resource.prefers_dedicated = false;
            made.wanted.flags |= flags | AllocationCreateFlags::CAN_ALIAS;
        }
    }

    fn mapped(&mut self, memory: MemoryNumber) {
        let Some(inside) = self.memories.get_mut(&memory) else { return };
        for number in std::mem::take(&mut inside.unmapped) {
            if let Some(made) = self.record_of(number) {
                made.wanted.flags |= AllocationCreateFlags::MAPPED;
            }
        }
    }

    fn named(&mut self, object: ForeignObject, name: &str, record: &Record) {
        let numbers: Vec<u32> = match object {
            ForeignObject::Memory(memory) => {
                self.memories.get(&memory).and_then(|inside| inside.whole).into_iter().collect()
            }
            ForeignObject::Resource(resource) => self.resources.get(&resource).cloned().unwrap_or_default(),
        };
        for number in numbers {
            let number = containing(&mut self.joined, number);
            if !self.live.contains_key(&number) {
                continue;
            }
            let Some(made) = self.record_of(number) else { continue };
            match made.wanted.name.as_deref() {
                None | Some(WITHOUT_RESOURCE | SHARED) => made.wanted.name = Some(name.into()),
                Some(_) => {
                    let (allocation, name) = (AllocationNumber(number), Some(name.into()));
                    self.push(record, Event::SetName { allocation, name });
                }
            }
        }
    }

    fn destroy(&mut self, resource: ResourceNumber, record: &Record) {
        for number in self.resources.remove(&resource).unwrap_or_default() {
            let number = containing(&mut self.joined, number);
            // The memory may have been freed before.
            let Some(live) = self.live.get_mut(&number) else { continue };
            live.users -= 1;
            if live.users > 0 {
                continue;
            }
            let (memory, start) = (live.memory, live.start);
            self.live.remove(&number);
            if let Some(inside) = self.memories.get_mut(&memory) {
                inside.parts.remove(&(start, number));
                inside.unmapped.remove(&number);
            }
            self.push(record, Event::Free { allocation: AllocationNumber(number) });
        }
    }

    fn free(&mut self, memory: MemoryNumber, record: &Record) {
        let Some(freed) = self.memories.remove(&memory) else { return };
        let parts = freed.parts.into_iter().map(|(_, number)| number);
        for number in parts.chain(freed.whole) {
            self.live.remove(&number);
            self.push(record, Event::Free { allocation: AllocationNumber(number) });
        }
    }
}

/// Returns the request that contains a request now, and shortens the way to it.
fn containing(joined: &mut BTreeMap<u32, u32>, number: u32) -> u32 {
    let mut last = number;
    while let Some(&next) = joined.get(&last) {
        last = next;
    }
    let mut at = number;
    while let Some(next) = joined.get_mut(&at).filter(|next| **next != last) {
        at = std::mem::replace(next, last);
    }
    last
}

const WITHOUT_RESOURCE: &str = "memory without a resource";
const SHARED: &str = "shared memory";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_forgets_the_requests_of_freed_memory() {
        let mut requests = ResourceRequests::default();
        let resource = ResourceNumber(1);
        for memory in (1..=50).map(MemoryNumber) {
            let flags = crate::trace::ForeignMemoryFlags::empty();
            for event in [
                Event::MemoryAllocated { memory, memory_type: 0, size: 64, flags, resource: None },
                Event::Bound { resource, plane: None, memory, offset: 0 },
                Event::MemoryFreed { memory },
            ] {
                requests.add(&Record { event, ..Record::default() });
            }
        }
        assert_eq!(requests.resources[&resource].len(), 1);
    }
}
