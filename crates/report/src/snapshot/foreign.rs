//! Snapshots of programs that allocate their memory without Sublet.

use std::collections::BTreeMap;

use ash::vk;

use super::parts::{Block, Chunk, Dedicated, Device, Entry, Heap, MemoryType, Vector};
use super::{Snapshot, text};
use crate::cast::index;
use crate::flags::{HEAP_FLAGS, TYPE_FLAGS, words};
use sublet::ResourceKind;
use sublet::trace::{
    ForeignMemory, ForeignProgram, ForeignShape, Header, MemoryNumber, ResourceNumber, Trace,
};

impl Snapshot {
    /// Returns the memory of a foreign program: each `VkDeviceMemory` is a block, and each bound resource an allocation
    /// in it. Memory that is dedicated to one resource is a dedicated allocation.
    ///
    /// The id of a block is the number of its memory in the recording, and the id of an allocation is the number of its
    /// resource. Resources that alias are one allocation, with the names of both. Memory that is shared with other
    /// processes, or has ranges of sparse resources, is one allocation of unknown kind.
    ///
    /// # Complexity
    /// O(n log n) for n live objects.
    ///
    /// ```
    /// use sublet::trace::{Event, ForeignMemoryFlags, ForeignProgram, Header, MemoryNumber, Record};
    /// use sublet::trace::{TraceHeap, TraceMemoryType};
    /// use sublet_report::Snapshot;
    ///
    /// let mut header = Header::default();
    /// header.heaps.push(TraceHeap { size: 1 << 30, ..TraceHeap::default() });
    /// header.memory_types.push(TraceMemoryType::default());
    /// let (memory, flags) = (MemoryNumber(1), ForeignMemoryFlags::empty());
    /// let event = Event::MemoryAllocated { memory, memory_type: 0, size: 4096, flags, resource: None };
    /// let mut program = ForeignProgram::default();
    /// program.follow(&Record { event, ..Record::default() });
    /// let snapshot = Snapshot::of_foreign(&header, &program);
    /// assert_eq!(snapshot.statistics().total.statistics.block_bytes, 4096);
    /// ```
    #[must_use]
    pub fn of_foreign(header: &Header, program: &ForeignProgram) -> Self {
        let mut snapshot = Self {
            run: Some(format!("{:x}-{:x}", header.process, header.started).into()),
            device: device(header),
            ..Self::default()
        };
        snapshot.set_heaps_and_types(header, program);
        let mut vectors = BTreeMap::<u32, Vector>::new();
        let ids = program.memories.keys().next_back().is_none_or(|last| u32::try_from(last.0).is_ok());
        let mut total = 0_u64;
        for (at, (number, memory)) in (0_u32..).zip(&program.memories) {
            let Some(kind) = snapshot.types.get(index(memory.memory_type)) else { continue };
            // A faulty recording may have more memory than there is. The sum of a snapshot fits `u64`.
            let Some(sum) = total.checked_add(memory.size) else { continue };
            total = sum;
            let vector = vectors.entry(memory.memory_type).or_insert_with(|| Vector {
                memory_type: memory.memory_type,
                heap: kind.heap,
                ..Vector::default()
            });
            match dedicated(program, memory) {
                Some(dedicated) => vector.dedicated.push(dedicated),
                None => {
                    let id = if ids { u32::try_from(number.0).unwrap_or(at) } else { at };
                    vector.block_size = vector.block_size.max(memory.size);
                    vector.blocks.push(block(program, id, *number, memory));
                }
            }
        }
        snapshot.vectors = vectors.into_values().collect();
        snapshot
    }

    /// Returns the memory of a foreign program after this number of its records. All of them if there are fewer.
    ///
    /// # Complexity
    /// O(n log m) for n records and m live objects.
    #[must_use]
    pub fn of_trace_at(trace: &Trace, records: usize) -> Self {
        let mut program = ForeignProgram::default();
        trace.records.iter().take(records).for_each(|record| program.follow(record));
        Self::of_foreign(&trace.header, &program)
    }

    /// Sets heaps and types. Types of heaps that do not exist end the list.
    fn set_heaps_and_types(&mut self, header: &Header, program: &ForeignProgram) {
        let heaps = header.heaps.iter().take(vk::MAX_MEMORY_HEAPS);
        self.heaps = (0..)
            .zip(heaps)
            .map(|(heap, it)| {
                let reserved = program.memories.values().filter(|memory| {
                    header.memory_types.get(index(memory.memory_type)).is_some_and(|kind| kind.heap == heap)
                });
                let reserved = reserved.fold(0, |sum: u64, memory| sum.saturating_add(memory.size));
                let (budget, usage) = program.budgets.get(&heap).copied().unwrap_or((it.size, reserved));
                Heap { size: it.size, flags: words(it.flags.as_raw(), HEAP_FLAGS), budget, usage }
            })
            .collect();
        let heaps = self.heaps.len();
        let types = header.memory_types.iter().take(vk::MAX_MEMORY_TYPES);
        let known = types.take_while(|kind| index(kind.heap) < heaps);
        self.types = known
            .map(|kind| MemoryType { heap: kind.heap, flags: words(kind.flags.as_raw(), TYPE_FLAGS) })
            .collect();
    }
}

fn device(header: &Header) -> Device {
    let version = header.device_api_version;
    let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
    let kind = u32::try_from(header.device_type.as_raw()).ok().and_then(text::device_kind);
    Device {
        name: Some(header.device_name.clone()),
        kind: Some(kind.unwrap_or("OTHER").into()),
        api_version: Some(format!("{major}.{minor}.{}", vk::api_version_patch(version)).into()),
        driver_version: Some(header.driver_version),
        vendor_id: Some(header.vendor_id),
        device_id: Some(header.device_id),
        max_memory_allocation_count: Some(header.max_memory_allocation_count),
        buffer_image_granularity: Some(header.buffer_image_granularity),
        non_coherent_atom_size: Some(header.non_coherent_atom_size),
    }
}

/// Returns the only resource of memory that is dedicated to it.
fn dedicated(program: &ForeignProgram, memory: &ForeignMemory) -> Option<Dedicated> {
    let resource = memory.dedicated_to?;
    let mut bound = memory.bound.iter();
    let (0, only, None) = *bound.next()? else { return None };
    if only != resource || bound.next().is_some() {
        return None;
    }
    let allocation = entry(program, resource, None);
    Some(Dedicated { size: memory.size, map_count: Some(memory.is_mapped.into()), allocation })
}

fn block(program: &ForeignProgram, id: u32, number: MemoryNumber, memory: &ForeignMemory) -> Block {
    let mut chunks = Vec::<Chunk>::new();
    let mut end = 0;
    let whole = |name: &str| Entry {
        id: Some(format!("memory {}", number.0).into()),
        kind: ResourceKind::Unknown,
        usage: 0,
        name: Some(memory.name.clone().unwrap_or_else(|| name.into())),
        user_data: None,
        caller: None,
    };
    if memory.is_shared() || memory.has_sparse {
        let name = if memory.has_sparse { "sparse ranges" } else { "shared memory" };
        let chunk = Chunk { offset: 0, size: memory.size, allocation: Some(whole(name)) };
        return Block { id, size: memory.size, map_count: memory.is_mapped.into(), chunks: vec![chunk] };
    }
    for &(offset, resource, plane) in &memory.bound {
        let bound = program.resources.get(&resource).and_then(|live| live.binding(plane));
        let size = bound.filter(|bound| bound.offset == offset).map_or(0, |bound| bound.size);
        let limit = offset.saturating_add(size).min(memory.size);
        if offset >= limit {
            continue;
        }
        let found = entry(program, resource, plane);
        match chunks.last_mut().filter(|_| offset < end) {
            Some(before) => {
                before.size = before.size.max(limit - before.offset);
                before.allocation = before.allocation.take().map(|before| aliased(before, &found));
            }
            None => {
                if offset > end {
                    chunks.push(Chunk { offset: end, size: offset - end, allocation: None });
                }
                chunks.push(Chunk { offset, size: limit - offset, allocation: Some(found) });
            }
        }
        end = end.max(limit);
    }
    if end < memory.size {
        chunks.push(Chunk { offset: end, size: memory.size - end, allocation: None });
    }
    Block { id, size: memory.size, map_count: memory.is_mapped.into(), chunks }
}

/// The longest name of resources that alias. The rest is left out.
const ALIASED_NAME_BYTES: usize = 120;

fn aliased(mut before: Entry, next: &Entry) -> Entry {
    let id = |entry: &Entry| entry.id.clone().unwrap_or_default();
    let name = |entry: &Entry| entry.name.clone().unwrap_or_else(|| id(entry));
    let joined = format!("{} + {}", name(&before), name(next));
    if joined.len() <= ALIASED_NAME_BYTES {
        before.name = Some(joined.into());
    }
    before.usage |= next.usage;
    if before.kind != next.kind {
        before.kind = ResourceKind::Unknown;
    }
    before
}

fn entry(program: &ForeignProgram, number: ResourceNumber, plane: Option<u32>) -> Entry {
    let plane_text = plane.map_or_else(String::new, |plane| format!(" plane {plane}"));
    let id = Some(format!("resource {}{plane_text}", number.0).into());
    let resource = program.resources.get(&number);
    Entry {
        id,
        kind: resource.map_or(ResourceKind::Unknown, |resource| resource.needs(plane).kind),
        usage: match resource.map(|resource| resource.shape) {
            Some(ForeignShape::Buffer { usage, .. }) => usage,
            Some(ForeignShape::Image(image)) => image.usage.as_raw().into(),
            _ => 0,
        },
        name: resource.and_then(|resource| resource.name.clone()),
        user_data: None,
        caller: None,
    }
}
