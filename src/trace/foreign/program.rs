//! The live objects of a foreign program, at a moment of its recording.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ash::vk;

use super::facts::{
    DriverMemoryAction, DriverMemoryReport, ForeignImage, ForeignMemoryFlags, ForeignObject,
    ForeignRequirements, MemoryNumber, ResourceNumber,
};
use crate::allocation::ResourceKind;
use crate::trace::{Event, Needs, Record};
use sublet_engines::cast::index;

/// The live objects of a foreign program. Follows its recording, one record at a time.
///
/// ```
/// use sublet::trace::{Event, ForeignMemoryFlags, ForeignProgram, MemoryNumber, Record};
///
/// let memory = MemoryNumber(1);
/// let flags = ForeignMemoryFlags::empty();
/// let event = Event::MemoryAllocated { memory, memory_type: 0, size: 4096, flags, resource: None };
/// let mut program = ForeignProgram::default();
/// program.follow(&Record { event, ..Record::default() });
/// assert_eq!(program.memories[&memory].size, 4096);
/// program.follow(&Record { event: Event::MemoryFreed { memory }, ..Record::default() });
/// assert!(program.memories.is_empty());
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ForeignProgram {
    /// The live memory.
    pub memories: BTreeMap<MemoryNumber, ForeignMemory>,
    /// The live buffers and images.
    pub resources: BTreeMap<ResourceNumber, ForeignResource>,
    /// Sums over the live memory of each memory type.
    pub types: BTreeMap<u32, ForeignUsage>,
    /// The last budget and usage of each heap in bytes, if the program or the layer queried them.
    pub budgets: BTreeMap<u32, (u64, u64)>,
    /// The live memory of the driver's own objects, by the driver's number.
    pub driver_memory: BTreeMap<u64, DriverMemoryReport>,
}

/// Sums over the live memory of one memory type in a [`ForeignProgram`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ForeignUsage {
    /// Number of `VkDeviceMemory`.
    pub memory_count: u64,
    /// Their bytes.
    pub reserved_bytes: u64,
    /// Number of bound resources and planes.
    pub resource_count: u64,
    /// Their bytes. Resources that alias count one by one.
    pub used_bytes: u64,
}

/// A `VkDeviceMemory` of a foreign program.
///
/// ```
/// use sublet::trace::{Event, ForeignMemoryFlags, ForeignProgram, MemoryNumber, Record};
///
/// let memory = MemoryNumber(1);
/// let flags = ForeignMemoryFlags::EXPORTABLE;
/// let event = Event::MemoryAllocated { memory, memory_type: 0, size: 4096, flags, resource: None };
/// let mut program = ForeignProgram::default();
/// program.follow(&Record { event, ..Record::default() });
/// assert!(program.memories[&memory].is_shared());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ForeignMemory {
    /// Index of the memory type.
    pub memory_type: u32,
    /// Bytes.
    pub size: u64,
    /// Its kind.
    pub flags: ForeignMemoryFlags,
    /// The resource that it is dedicated to.
    pub dedicated_to: Option<ResourceNumber>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The time of its allocation since the start of the recording.
    pub allocated: Duration,
    /// True while it is mapped.
    pub is_mapped: bool,
    /// True if it was ever mapped.
    pub was_mapped: bool,
    /// True if a range was ever flushed or invalidated.
    pub was_synchronized: bool,
    /// True if a resource, or a range of a sparse one, was ever bound to it.
    pub was_bound: bool,
    /// True if a range of a sparse resource was ever bound to it.
    pub has_sparse: bool,
    /// The bound resources by offset, with the plane of the image. Ranges of sparse resources are not among them.
    pub bound: BTreeSet<(u64, ResourceNumber, Option<u32>)>,
}

/// A buffer or an image of a foreign program.
///
/// ```
/// use sublet::trace::{Event, ForeignProgram, Record, ResourceNumber};
///
/// let resource = ResourceNumber(1);
/// let event = Event::BufferCreated { resource, size: 256, usage: 0x80, flags: 0 };
/// let mut program = ForeignProgram::default();
/// program.follow(&Record { event, ..Record::default() });
/// assert_eq!(program.resources[&resource].needs(None).size, 256);
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ForeignResource {
    /// The kind of resource.
    pub shape: ForeignShape,
    /// The known requirements, at most one of each plane.
    pub requirements: Vec<ForeignRequirements>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The time of its creation since the start of the recording.
    pub created: Duration,
    /// The memory of it, or of its planes.
    pub bound: Vec<ForeignBinding>,
}

/// The kind of a foreign program's resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ForeignShape {
    /// Its creation is not in the recording.
    #[default]
    Unknown,
    /// A buffer.
    Buffer {
        /// Bytes.
        size: u64,
        /// `VkBufferUsageFlags2`.
        usage: u64,
        /// `VkBufferCreateFlags`.
        flags: u32,
    },
    /// An image.
    Image(ForeignImage),
}

/// The range of a foreign program's memory that a resource, or one plane of it, is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ForeignBinding {
    /// The plane of a disjoint image; `None` for all of the resource.
    pub plane: Option<u32>,
    /// The memory.
    pub memory: MemoryNumber,
    /// Bytes from its start.
    pub offset: u64,
    /// Bytes that the resource requires.
    pub size: u64,
}

impl ForeignMemory {
    /// Returns true if the memory is shared with another process or API, whatever is bound to it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.flags.intersects(ForeignMemoryFlags::IMPORTED | ForeignMemoryFlags::EXPORTABLE)
    }
}

impl ForeignResource {
    /// Returns the memory of the resource, or that of one of its planes.
    #[must_use]
    pub fn binding(&self, plane: Option<u32>) -> Option<&ForeignBinding> {
        self.bound.iter().find(|binding| binding.plane == plane)
    }

    /// Returns the requirements of the resource or of a plane, as for a request to an allocator. Missing
    /// requirements are estimated: a buffer's size, and one byte for an image.
    #[must_use]
    pub fn needs(&self, plane: Option<u32>) -> Needs {
        let mut needs = Needs::default();
        let copies = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        match &self.shape {
            ForeignShape::Unknown => {}
            ForeignShape::Buffer { size, usage, .. } => {
                let [a, b, c, d, ..] = usage.to_le_bytes();
                let low = u32::from_le_bytes([a, b, c, d]);
                needs.kind = ResourceKind::Buffer;
                needs.size = *size;
                needs.usage = low & USAGE_BITS;
                needs.device_access = Some(usage & !u64::from(copies.as_raw()) != 0);
                needs.device_address = low & vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.as_raw() != 0;
            }
            ForeignShape::Image(image) => {
                needs.kind = match image.tiling {
                    vk::ImageTiling::OPTIMAL => ResourceKind::ImageOptimal,
                    vk::ImageTiling::LINEAR => ResourceKind::ImageLinear,
                    _ => ResourceKind::ImageUnknown,
                };
                needs.usage = image.usage.as_raw() & USAGE_BITS;
                // The bits of transfers are the same for buffers and images.
                needs.device_access = Some(image.usage.as_raw() & !copies.as_raw() != 0);
            }
        }
        if let Some(known) = self.requirements.iter().find(|known| known.plane == plane) {
            needs.size = known.size;
            needs.alignment = known.alignment;
            needs.memory_type_bits = known.memory_type_bits;
            needs.prefers_dedicated = known.prefers_dedicated;
            needs.requires_dedicated = known.requires_dedicated;
        }
        needs
    }
}

/// The bits of [`Needs::usage`].
const USAGE_BITS: u32 = (1 << 23) - 1;

impl ForeignProgram {
    /// Applies a record. Calls for unknown objects, memory of a type beyond Vulkan's limit, and events that are not
    /// foreign change nothing.
    ///
    /// # Complexity
    /// O(log n) for n live objects; O(n log n) for freed memory with n bound resources.
    pub fn follow(&mut self, record: &Record) {
        let time = record.time;
        match &record.event {
            &Event::MemoryAllocated { memory, memory_type, size, flags, resource } => {
                self.free(memory);
                // Readers sum over all types after each record.
                if index(memory_type) >= vk::MAX_MEMORY_TYPES {
                    return;
                }
                let live = ForeignMemory {
                    memory_type,
                    size,
                    flags,
                    dedicated_to: resource,
                    allocated: time,
                    was_mapped: flags.contains(ForeignMemoryFlags::WAS_MAPPED),
                    was_synchronized: flags.contains(ForeignMemoryFlags::WAS_SYNCHRONIZED),
                    was_bound: flags.contains(ForeignMemoryFlags::WAS_BOUND),
                    ..ForeignMemory::default()
                };
                self.memories.insert(memory, live);
                let usage = self.types.entry(memory_type).or_default();
                usage.memory_count += 1;
                usage.reserved_bytes = usage.reserved_bytes.wrapping_add(size);
            }
            Event::MemoryFreed { memory } => self.free(*memory),
            Event::MemoryMapped { memory, .. } => self.change(*memory, |memory| {
                memory.is_mapped = true;
                memory.was_mapped = true;
            }),
            Event::MemoryUnmapped { memory } => self.change(*memory, |memory| memory.is_mapped = false),
            Event::MemoryFlushed { memory, .. } | Event::MemoryInvalidated { memory, .. } => {
                self.change(*memory, |memory| memory.was_synchronized = true);
            }
            &Event::BufferCreated { resource, size, usage, flags } => {
                self.create(resource, ForeignShape::Buffer { size, usage, flags }, time);
            }
            Event::ImageCreated { resource, image } => {
                self.create(*resource, ForeignShape::Image(**image), time);
            }
            Event::Requirements { resource, requirements } => {
                let Some(live) = self.resources.get_mut(resource) else { return };
                live.requirements.retain(|known| known.plane != requirements.plane);
                if live.requirements.len() < MAX_PLANES {
                    live.requirements.push(**requirements);
                }
            }
            &Event::Bound { resource, plane, memory, offset } => self.bind(resource, plane, memory, offset),
            Event::ResourceDestroyed { resource } => self.destroy(*resource),
            Event::SparseBound { binding, .. } => {
                if let Some(memory) = binding.memory {
                    self.change(memory, |memory| {
                        memory.was_bound = true;
                        memory.has_sparse = true;
                    });
                }
            }
            Event::Named { object: ForeignObject::Memory(memory), name } => {
                self.change(*memory, |memory| memory.name = Some(name.clone()));
            }
            Event::Named { object: ForeignObject::Resource(resource), name } => {
                if let Some(live) = self.resources.get_mut(resource) {
                    live.name = Some(name.clone());
                }
            }
            &Event::Budget { heap, budget, usage } if index(heap) < vk::MAX_MEMORY_HEAPS => {
                self.budgets.insert(heap, (budget, usage));
            }
            Event::DriverMemory { report } => match report.action {
                DriverMemoryAction::Allocated | DriverMemoryAction::Imported => {
                    self.driver_memory.insert(report.object, **report);
                }
                DriverMemoryAction::Freed | DriverMemoryAction::Unimported => {
                    self.driver_memory.remove(&report.object);
                }
                DriverMemoryAction::Failed => {}
            },
            Event::DeviceDestroyed => *self = Self::default(),
            _ => {}
        }
    }

    fn change(&mut self, memory: MemoryNumber, change: impl FnOnce(&mut ForeignMemory)) {
        self.memories.get_mut(&memory).map(change);
    }

    fn create(&mut self, resource: ResourceNumber, shape: ForeignShape, created: Duration) {
        self.destroy(resource);
        self.resources.insert(resource, ForeignResource { shape, created, ..ForeignResource::default() });
    }

    fn bind(&mut self, resource: ResourceNumber, plane: Option<u32>, memory: MemoryNumber, offset: u64) {
        let Some(live) = self.memories.get_mut(&memory) else { return };
        let bound = self.resources.entry(resource).or_default();
        // A resource is bound once. A faulty file may bind it again.
        if bound.bound.len() >= MAX_PLANES || bound.binding(plane).is_some() {
            return;
        }
        let size = bound.needs(plane).size;
        bound.bound.push(ForeignBinding { plane, memory, offset, size });
        live.was_bound = true;
        live.bound.insert((offset, resource, plane));
        let usage = self.types.entry(live.memory_type).or_default();
        usage.resource_count += 1;
        usage.used_bytes = usage.used_bytes.wrapping_add(size);
    }

    /// Takes a binding that ended out of the sums.
    fn unbound(&mut self, memory_type: u32, size: u64) {
        let usage = self.types.entry(memory_type).or_default();
        usage.resource_count -= 1;
        // Sums of a faulty recording wrap, and get right again when its memory ends.
        usage.used_bytes = usage.used_bytes.wrapping_sub(size);
    }

    fn destroy(&mut self, resource: ResourceNumber) {
        let Some(ended) = self.resources.remove(&resource) else { return };
        for binding in ended.bound {
            let Some(memory) = self.memories.get_mut(&binding.memory) else { continue };
            if memory.bound.remove(&(binding.offset, resource, binding.plane)) {
                let memory_type = memory.memory_type;
                self.unbound(memory_type, binding.size);
            }
        }
    }

    fn free(&mut self, memory: MemoryNumber) {
        let Some(freed) = self.memories.remove(&memory) else { return };
        for (_, resource, plane) in freed.bound {
            let Some(live) = self.resources.get_mut(&resource) else { continue };
            let ended = |binding: &ForeignBinding| (binding.memory, binding.plane) == (memory, plane);
            let Some(at) = live.bound.iter().position(ended) else { continue };
            let size = live.bound.remove(at).size;
            self.unbound(freed.memory_type, size);
        }
        let usage = self.types.entry(freed.memory_type).or_default();
        usage.memory_count -= 1;
        usage.reserved_bytes = usage.reserved_bytes.wrapping_sub(freed.size);
        if usage.memory_count == 0 {
            self.types.remove(&freed.memory_type);
        }
    }
}

/// More than the planes of any image, so that each list of them is short in a faulty file, too.
const MAX_PLANES: usize = 8;
