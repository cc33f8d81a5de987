//! Writes the recordings of foreign programs, event by event.

use std::time::Duration;

use ash::vk;
use sublet::sim::Profile;
use sublet::trace::{
    Event, ForeignImage, ForeignMemoryFlags, ForeignObject, ForeignRequirements, Header, MemoryNumber,
    Record, ResourceNumber, Trace, TraceHeap, TraceMemoryType,
};

/// A foreign program on the device of a profile. Each call takes a microsecond.
pub struct Watched {
    pub trace: Trace,
    numbers: u64,
}

impl Watched {
    pub fn on(profile: &str) -> Self {
        let profile = Profile::by_name(profile).unwrap();
        let mut header = Header::default();
        header.program = "game".into();
        header.device_name = profile.device_name.into();
        header.heaps =
            profile.heaps.iter().map(|heap| TraceHeap { size: heap.size, flags: heap.flags }).collect();
        let types = profile.types.iter();
        header.memory_types =
            types.map(|kind| TraceMemoryType { heap: kind.heap, flags: kind.flags }).collect();
        header.buffer_image_granularity = 1;
        header.non_coherent_atom_size = 64;
        header.max_memory_allocation_count = 4096;
        Self { trace: Trace { header, ..Trace::default() }, numbers: 0 }
    }

    /// Returns the first memory type with exactly these flags, or else with at least them.
    pub fn type_with(&self, flags: vk::MemoryPropertyFlags) -> u32 {
        let types = &self.trace.header.memory_types;
        let exact = types.iter().position(|kind| kind.flags == flags);
        let found = exact.or_else(|| types.iter().position(|kind| kind.flags.contains(flags)));
        u32::try_from(found.unwrap()).unwrap()
    }

    pub fn event(&mut self, event: Event) {
        let time = Duration::from_micros(u64::try_from(self.trace.records.len()).unwrap());
        self.trace.records.push(Record { time, thread: 0, event });
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn allocate(&mut self, memory_type: u32, size: u64) -> MemoryNumber {
        let memory = MemoryNumber(self.number());
        let flags = ForeignMemoryFlags::empty();
        self.event(Event::MemoryAllocated { memory, memory_type, size, flags, resource: None });
        memory
    }

    /// Allocates memory that is dedicated to a resource, and binds it.
    pub fn dedicate(&mut self, memory_type: u32, resource: ResourceNumber, size: u64) -> MemoryNumber {
        let memory = MemoryNumber(self.number());
        let (flags, resource) = (ForeignMemoryFlags::DEDICATED, Some(resource));
        self.event(Event::MemoryAllocated { memory, memory_type, size, flags, resource });
        self.bind(resource.unwrap(), memory, 0);
        memory
    }

    pub fn buffer(&mut self, size: u64, usage: vk::BufferUsageFlags) -> ResourceNumber {
        let resource = ResourceNumber(self.number());
        self.event(Event::BufferCreated { resource, size, usage: usage.as_raw().into(), flags: 0 });
        self.requires(resource, size, u32::MAX);
        resource
    }

    pub fn image(&mut self, size: u64, usage: vk::ImageUsageFlags) -> ResourceNumber {
        let resource = ResourceNumber(self.number());
        let image = ForeignImage {
            format: vk::Format::R8G8B8A8_UNORM,
            width: 1920,
            height: 1080,
            depth: 1,
            mip_levels: 1,
            array_layers: 1,
            samples: 1,
            tiling: vk::ImageTiling::OPTIMAL,
            usage,
            flags: vk::ImageCreateFlags::empty(),
            image_type: vk::ImageType::TYPE_2D,
        };
        self.event(Event::ImageCreated { resource, image: Box::new(image) });
        self.requires(resource, size, u32::MAX);
        resource
    }

    pub fn requires(&mut self, resource: ResourceNumber, size: u64, memory_type_bits: u32) {
        let requirements =
            ForeignRequirements { size, alignment: 256, memory_type_bits, ..ForeignRequirements::default() };
        self.event(Event::Requirements { resource, requirements: Box::new(requirements) });
    }

    pub fn bind(&mut self, resource: ResourceNumber, memory: MemoryNumber, offset: u64) {
        self.event(Event::Bound { resource, plane: None, memory, offset });
    }

    pub fn map(&mut self, memory: MemoryNumber) {
        self.event(Event::MemoryMapped { memory, offset: 0, size: None });
    }

    pub fn name(&mut self, resource: ResourceNumber, name: &str) {
        self.event(Event::Named { object: ForeignObject::Resource(resource), name: name.into() });
    }

    pub fn destroy(&mut self, resource: ResourceNumber) {
        self.event(Event::ResourceDestroyed { resource });
    }

    pub fn free(&mut self, memory: MemoryNumber) {
        self.event(Event::MemoryFreed { memory });
    }
}

/// Returns a recording with events of any kind and order, as a damaged file may have them.
pub fn any_trace(random: &mut fastrand::Rng) -> Trace {
    let mut trace = Watched::on("amd-rx-6700-xt").trace;
    if random.bool() {
        trace.header.memory_types[2].heap = 99;
    }
    for _ in 0..random.usize(1..200) {
        let memory = MemoryNumber(random.u64(0..5) << random.u32(0..40));
        let resource = ResourceNumber(random.u64(0..8));
        let size = random.u64(..) >> random.u32(0..64);
        let flags = ForeignMemoryFlags::from_bits_retain(random.u32(0..20));
        let dedicated = random.bool().then_some(resource);
        let event = match random.u32(0..10) {
            0 => Event::MemoryAllocated {
                memory,
                memory_type: random.u32(0..40),
                size,
                flags,
                resource: dedicated,
            },
            1 => Event::MemoryFreed { memory },
            2 => Event::BufferCreated { resource, size, usage: size, flags: 0 },
            3 => Event::ResourceDestroyed { resource },
            4 => Event::Budget { heap: random.u32(..), budget: size, usage: random.u64(..) },
            5 => Event::MemoryMapped { memory, offset: size, size: None },
            6 => Event::DeviceDestroyed,
            _ => {
                let plane = random.bool().then(|| random.u32(0..9));
                Event::Bound { resource, plane, memory, offset: random.u64(..) >> random.u32(0..64) }
            }
        };
        trace.records.push(Record { event, ..Record::default() });
    }
    trace
}
