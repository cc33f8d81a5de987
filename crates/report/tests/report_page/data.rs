//! Test snapshots of a simulated GPU with most features.

use ash::vk;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, Leak,
    MemoryUsage, Pool, PoolCreateInfo, Tracking, sim,
};
use sublet_report::Snapshot;

/// The contents of a program, which can take several snapshots.
pub(crate) struct Program {
    // `None` after `leave`. Before the GPU, because it must drop first.
    allocator: Option<Allocator>,
    _gpu: sim::Gpu,
    buffers: Vec<(vk::Buffer, Allocation)>,
    images: Vec<(vk::Image, Allocation)>,
    pool: Option<Pool>,
    random: fastrand::Rng,
}

const NAMES: &[&str] = &[
    "terrain mesh",
    "castle mesh",
    "river flow map",
    "dragon skin",
    "shadow cascade",
    "light list",
    "ui atlas",
];

impl Program {
    /// Returns a program that holds nothing yet.
    pub(crate) fn new() -> Self {
        Self::on("nvidia-rtx-5070-ti", 4 << 20)
    }

    pub(crate) fn on(profile: &str, block_size: u64) -> Self {
        let gpu = sim::Gpu::new(sim::Profile::by_name(profile).unwrap());
        let info = AllocatorCreateInfo {
            preferred_large_heap_block_size: block_size,
            tracking: Tracking::CALLER | Tracking::USER_DATA,
            ..AllocatorCreateInfo::for_gpu(&gpu)
        };
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        let random = fastrand::Rng::with_seed(20);
        Self {
            allocator: Some(allocator),
            _gpu: gpu,
            buffers: Vec::new(),
            images: Vec::new(),
            pool: None,
            random,
        }
    }

    /// Returns a program that has run for a while: buffers and images of all kinds, some freed, some dedicated, and a
    /// pool.
    pub(crate) fn in_use() -> Self {
        let mut program = Self::new();
        program.make_pool();
        for number in 0..120_u32 {
            program.step(number);
        }
        for at in (0..program.buffers.len()).rev().step_by(4) {
            program.free_buffer(at);
        }
        program
    }

    fn allocator(&self) -> &Allocator {
        self.allocator.as_ref().unwrap()
    }

    fn make_pool(&mut self) {
        let sample = vk::BufferCreateInfo::default().size(1).usage(vk::BufferUsageFlags::TRANSFER_SRC);
        let upload = self.upload();
        let memory_type =
            unsafe { self.allocator().find_memory_type_index_for_buffer_info(&sample, &upload) }.unwrap();
        let info = PoolCreateInfo {
            block_size: 1 << 20,
            min_block_count: 2,
            algorithm: Algorithm::Linear,
            name: Some("streaming"),
            ..PoolCreateInfo::new(memory_type)
        };
        self.pool = Some(self.allocator().create_pool(&info).unwrap());
    }

    fn upload(&self) -> AllocationCreateInfo<'static> {
        AllocationCreateInfo {
            usage: MemoryUsage::Auto,
            flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED,
            ..AllocationCreateInfo::default()
        }
    }

    fn step(&mut self, number: u32) {
        let at = usize::try_from(number).unwrap();
        let name = (number % 7 != 3).then_some(NAMES[at % NAMES.len()]);
        let size = self.random.u64(1..1500) << 8;
        let auto = AllocationCreateInfo {
            name,
            user_data: u64::from(number) << 40,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        match number % 6 {
            0 | 1 => self.buffer(size, vk::BufferUsageFlags::VERTEX_BUFFER, &auto),
            2 => self.image(256 + 64 * (number % 5), vk::ImageTiling::OPTIMAL, &auto),
            3 => self.buffer(
                size,
                vk::BufferUsageFlags::TRANSFER_SRC,
                &AllocationCreateInfo { name, ..self.upload() },
            ),
            4 if number % 8 == 4 => {
                let flags = AllocationCreateFlags::DEDICATED_MEMORY;
                self.buffer(
                    size * 4,
                    vk::BufferUsageFlags::STORAGE_BUFFER,
                    &AllocationCreateInfo { flags, ..auto },
                );
            }
            4 => self.image(64, vk::ImageTiling::LINEAR, &auto),
            _ => {
                let pool = self.pool.take().unwrap();
                let info = AllocationCreateInfo { name, ..AllocationCreateInfo::in_pool(&pool) };
                self.buffer(size / 8 + 256, vk::BufferUsageFlags::TRANSFER_SRC, &info);
                self.pool = Some(pool);
            }
        }
    }

    pub(crate) fn buffer(&mut self, size: u64, usage: vk::BufferUsageFlags, info: &AllocationCreateInfo<'_>) {
        let usage = usage | vk::BufferUsageFlags::TRANSFER_DST;
        let buffer = vk::BufferCreateInfo::default().size(size).usage(usage);
        self.buffers.push(unsafe { self.allocator().create_buffer(&buffer, info) }.unwrap());
    }

    /// Same as [`Self::buffer`], with a name.
    pub(crate) fn named(&mut self, size: u64, name: &str) {
        let info = AllocationCreateInfo { name: Some(name), ..AllocationCreateInfo::new(MemoryUsage::Auto) };
        self.buffer(size, vk::BufferUsageFlags::VERTEX_BUFFER, &info);
    }

    fn image(&mut self, edge: u32, tiling: vk::ImageTiling, info: &AllocationCreateInfo<'_>) {
        let image = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: edge, height: edge, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(tiling)
            .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST);
        self.images.push(unsafe { self.allocator().create_image(&image, info) }.unwrap());
    }

    pub(crate) fn free_buffer(&mut self, at: usize) {
        let (buffer, allocation) = self.buffers.swap_remove(at);
        unsafe { self.allocator().destroy_buffer(buffer, allocation) }.unwrap();
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.allocator())
    }

    /// Returns the contents as a VMA statistics string, which has no ids and fewer details.
    pub(crate) fn stats_string(&self) -> String {
        sublet_report::stats_string(self.allocator(), true)
    }

    /// Ends without freeing its memory.
    pub(crate) fn leave(mut self) -> Vec<Leak> {
        self.allocator.take().unwrap().destroy()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let Some(allocator) = self.allocator.take() else { return };
        for (buffer, allocation) in self.buffers.drain(..) {
            unsafe { allocator.destroy_buffer(buffer, allocation) }.unwrap();
        }
        for (image, allocation) in self.images.drain(..) {
            unsafe { allocator.destroy_image(image, allocation) }.unwrap();
        }
        if let Some(pool) = self.pool.take() {
            unsafe { allocator.destroy_pool(pool) }.unwrap();
        }
    }
}

/// Formats "49,152,000".
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
