//! The history of a program that allocates its memory without Sublet.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::History;
use super::builder::{Described, HistoryBuilder};
use super::parts::{ForeignId, NEVER};
#[cfg(feature = "findings")]
use crate::findings::Findings;
use crate::snapshot::{Snapshot, Vector};
use sublet::ResourceKind;
use sublet::trace::{
    Event, ForeignImage, ForeignMemoryFlags, ForeignObject, ForeignProgram, ForeignShape, Header,
    MemoryNumber, Record, ResourceNumber,
};

impl History {
    /// Collects the memory of a foreign program: each `VkDeviceMemory`, and each resource in it. The records come from a
    /// [`Trace`](sublet::trace::Trace), or from [`ForeignRecords`](sublet::trace::ForeignRecords) if they are many. Memory
    /// that is shared with other processes, or has ranges of sparse resources, is one allocation of unknown kind.
    ///
    /// # Complexity
    /// O(n log m) for n records and m live objects.
    ///
    /// ```
    /// use sublet::trace::{Event, ForeignMemoryFlags, Header, MemoryNumber, Record, TraceHeap, TraceMemoryType};
    /// use sublet_report::History;
    ///
    /// let mut header = Header::default();
    /// header.heaps.push(TraceHeap { size: 1 << 30, ..TraceHeap::default() });
    /// header.memory_types.push(TraceMemoryType::default());
    /// let (memory, flags) = (MemoryNumber(1), ForeignMemoryFlags::empty());
    /// let event = Event::MemoryAllocated { memory, memory_type: 0, size: 4096, flags, resource: None };
    /// let history = History::of_foreign(&header, [Record { event, ..Record::default() }]);
    /// assert!(history.to_html().contains(r#""size":[4096]"#));
    /// ```
    #[must_use]
    pub fn of_foreign<R: Borrow<Record>>(header: &Header, records: impl IntoIterator<Item = R>) -> Self {
        let mut watcher = Watcher::new(header);
        records.into_iter().for_each(|record| watcher.add(record.borrow()));
        watcher.builder.finish()
    }

    /// Same as [`Self::of_foreign`], and the findings from the same pass over the records: see
    /// [`Findings::of_records`].
    #[cfg(feature = "findings")]
    #[must_use]
    pub fn with_findings<R: Borrow<Record>>(
        header: &Header,
        records: impl IntoIterator<Item = R>,
    ) -> (Self, Findings) {
        let mut watcher = Watcher::new(header);
        let watched = records.into_iter().inspect(|record| watcher.add(record.borrow()));
        let findings = Findings::foreign(header, watched);
        (watcher.builder.finish(), findings)
    }
}

struct Watcher {
    builder: HistoryBuilder,
    program: ForeignProgram,
    /// The heap of each memory type.
    types: Vec<u32>,
    memories: BTreeMap<MemoryNumber, u32>,
    /// Live placements of resources and their planes, and of whole memory.
    placed: BTreeMap<ForeignId, (u32, MemoryNumber)>,
    /// Bytes of the driver's own objects in each heap.
    driver: BTreeMap<u32, u64>,
    presented: u64,
    submitted: u64,
}

impl Watcher {
    fn new(header: &Header) -> Self {
        let empty = Snapshot::of_foreign(header, &ForeignProgram::default());
        let mut watcher = Self {
            types: empty.types.iter().map(|kind| kind.heap).collect(),
            builder: HistoryBuilder::new(empty),
            program: ForeignProgram::default(),
            memories: BTreeMap::new(),
            placed: BTreeMap::new(),
            driver: BTreeMap::new(),
            presented: 0,
            submitted: 0,
        };
        watcher.builder.set_foreign();
        watcher
    }

    fn add(&mut self, record: &Record) {
        self.builder.next_call(u64::try_from(record.time.as_nanos()).unwrap_or(u64::MAX));
        self.before(&record.event);
        self.program.follow(record);
        self.after(&record.event);
    }

    /// Ends what the event ends, while its properties are known.
    fn before(&mut self, event: &Event) {
        match event {
            Event::MemoryAllocated { memory, .. } | Event::MemoryFreed { memory } => self.free(*memory),
            Event::BufferCreated { resource, .. }
            | Event::ImageCreated { resource, .. }
            | Event::ResourceDestroyed { resource } => self.destroy(*resource),
            Event::DriverMemory { report } => {
                if let Some(old) = self.program.driver_memory.get(&report.object) {
                    let (heap, size) = (old.heap, old.size);
                    self.change_driver_memory(heap, |sum| sum.saturating_sub(size));
                }
            }
            Event::DeviceDestroyed => {
                let all: Vec<MemoryNumber> = self.memories.keys().copied().collect();
                all.into_iter().for_each(|memory| self.free(memory));
            }
            _ => {}
        }
    }

    fn after(&mut self, event: &Event) {
        match event {
            Event::MemoryAllocated { memory, .. } => self.allocate(*memory),
            Event::MemoryAllocationFailed { .. } => self.builder.failure(),
            Event::Bound { resource, plane, .. } => self.bind(*resource, *plane),
            Event::SparseBound { binding, .. } => {
                if let Some(memory) = binding.memory {
                    self.place_whole(memory, "sparse ranges");
                }
            }
            Event::Named { object: ForeignObject::Resource(resource), name } => {
                for (_, (placed, _)) in self.placed.range_mut(ForeignId::all_of(*resource)) {
                    *placed = self.builder.rename(*placed, Some(name));
                }
            }
            Event::Named { object: ForeignObject::Memory(memory), name } => {
                if let Some(&memory) = self.memories.get(memory) {
                    self.builder.rename_memory(memory, name);
                }
            }
            Event::Presented => {
                self.builder.frame(self.presented, true);
                self.presented += 1;
            }
            Event::Submitted { .. } => {
                self.builder.frame(self.submitted, false);
                self.submitted += 1;
            }
            Event::Budget { heap, budget, .. } => self.builder.budget(*heap, *budget),
            Event::DriverMemory { report } => self.add_driver_memory(report.object),
            _ => {}
        }
    }

    fn allocate(&mut self, number: MemoryNumber) {
        let Some(memory) = self.program.memories.get(&number) else { return };
        let Some(&heap) = usize::try_from(memory.memory_type).ok().and_then(|at| self.types.get(at)) else {
            return;
        };
        let vector =
            self.builder.vector(Vector { memory_type: memory.memory_type, heap, ..Vector::default() });
        let dedicated = memory.flags.contains(ForeignMemoryFlags::DEDICATED);
        let shown = u32::try_from(number.0).unwrap_or(NEVER);
        let (size, is_shared) = (memory.size, memory.is_shared());
        let memory = self.builder.begin_memory(vector, shown, size, dedicated);
        self.memories.insert(number, memory);
        if is_shared {
            self.place_whole(number, "shared memory");
        }
    }

    fn free(&mut self, number: MemoryNumber) {
        let Some(memory) = self.memories.remove(&number) else { return };
        let bound = self.program.memories.get(&number).into_iter().flat_map(|memory| &memory.bound);
        let resources = bound.map(|&(_, resource, plane)| ForeignId::of(resource, plane));
        let ids: Vec<ForeignId> = resources.chain([ForeignId::whole(number)]).collect();
        ids.into_iter().for_each(|id| self.end(id));
        self.builder.end_memory(memory);
    }

    fn end(&mut self, id: ForeignId) {
        if let Some((placed, _)) = self.placed.remove(&id) {
            self.builder.end(placed);
        }
    }

    fn destroy(&mut self, resource: ResourceNumber) {
        let ids: Vec<ForeignId> = self.placed.range(ForeignId::all_of(resource)).map(|(&id, _)| id).collect();
        ids.into_iter().for_each(|id| self.end(id));
    }

    fn bind(&mut self, number: ResourceNumber, plane: Option<u32>) {
        let id = ForeignId::of(number, plane);
        let Some(resource) = self.program.resources.get(&number) else { return };
        let Some(binding) = resource.binding(plane) else { return };
        let Some(&memory) = self.memories.get(&binding.memory) else { return };
        let is_whole = self.placed.contains_key(&ForeignId::whole(binding.memory));
        // A resource is bound once. A faulty file may bind it again.
        if is_whole || self.placed.contains_key(&id) {
            return;
        }
        let (usage, note) = match &resource.shape {
            ForeignShape::Buffer { usage, .. } => (*usage, None),
            ForeignShape::Image(image) => (image.usage.as_raw().into(), Some(described(image))),
            _ => (0, None),
        };
        let kind = resource.needs(plane).kind;
        let it = Described {
            number: id.0,
            size: binding.size,
            kind,
            usage,
            name: resource.name.as_deref(),
            note: note.as_deref(),
        };
        let placed = self.builder.place(memory, binding.offset, it, true);
        self.placed.insert(id, (placed, binding.memory));
    }

    /// Places one allocation of unknown kind over all of a memory, instead of its resources.
    fn place_whole(&mut self, number: MemoryNumber, name: &str) {
        let id = ForeignId::whole(number);
        let (Some(&memory), Some(live)) = (self.memories.get(&number), self.program.memories.get(&number))
        else {
            return;
        };
        if self.placed.contains_key(&id) {
            return;
        }
        let (size, name) = (live.size, live.name.clone().unwrap_or_else(|| name.into()));
        let bound: Vec<ForeignId> =
            live.bound.iter().map(|&(_, resource, plane)| ForeignId::of(resource, plane)).collect();
        bound.into_iter().for_each(|id| self.end(id));
        let kind = ResourceKind::Unknown;
        let it = Described { number: id.0, size, kind, usage: 0, name: Some(&name), note: None };
        let placed = self.builder.place(memory, 0, it, true);
        self.placed.insert(id, (placed, number));
    }

    /// Adds what the driver holds now for an object, after [`Self::before`] has taken the old size out.
    fn add_driver_memory(&mut self, object: u64) {
        let Some(report) = self.program.driver_memory.get(&object) else { return };
        let (heap, size) = (report.heap, report.size);
        self.change_driver_memory(heap, |sum| sum.saturating_add(size));
    }

    fn change_driver_memory(&mut self, heap: u32, change: impl FnOnce(u64) -> u64) {
        let sum = self.driver.entry(heap).or_default();
        *sum = change(*sum);
        let bytes = *sum;
        self.builder.driver_memory(heap, bytes);
    }
}

/// Returns the extent and the format of an image: `1024 × 1024, R8G8B8A8_UNORM, 11 mip levels`.
fn described(image: &ForeignImage) -> String {
    let mut text = format!("{} × {}", image.width, image.height);
    // Writing into a string does not fail.
    if image.depth > 1 {
        let _ = write!(text, " × {}", image.depth);
    }
    let _ = write!(text, ", {:?}", image.format);
    let parts =
        [(image.mip_levels, "mip levels"), (image.array_layers, "layers"), (image.samples, "samples")];
    for (count, word) in parts.into_iter().filter(|(count, _)| *count > 1) {
        let _ = write!(text, ", {count} {word}");
    }
    text
}
