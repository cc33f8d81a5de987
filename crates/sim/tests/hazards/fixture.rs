//! Three buffers and an image on some device, and the programs that use them.

use std::cell::OnceCell;

use super::painter::Painter;
use ash::vk;
use vk::{AccessFlags2 as Access, ImageLayout as Layout, PipelineStageFlags2 as Stages};

pub(crate) type Buffer = usize;
pub(crate) const A: Buffer = 0;
pub(crate) const B: Buffer = 1;
pub(crate) const C: Buffer = 2;

/// Levels and layers of the image: the first, and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) levels: (u32, u32),
    pub(crate) layers: (u32, u32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bar {
    src: (Stages, Access),
    dst: (Stages, Access),
    on: On,
    families: (u32, u32),
}

#[derive(Debug, Clone, Copy)]
enum On {
    Memory,
    Buffer(Buffer, (u64, u64)),
    Image(Part, (Layout, Layout)),
}

/// No change of owner.
const SAME: (u32, u32) = (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED);

impl Bar {
    pub(crate) fn memory(src: (Stages, Access), dst: (Stages, Access)) -> Self {
        Self { src, dst, on: On::Memory, families: SAME }
    }

    pub(crate) fn buffer(
        buffer: Buffer,
        range: (u64, u64),
        src: (Stages, Access),
        dst: (Stages, Access),
    ) -> Self {
        Self { src, dst, on: On::Buffer(buffer, range), families: SAME }
    }

    pub(crate) fn image(
        part: Part,
        layouts: (Layout, Layout),
        src: (Stages, Access),
        dst: (Stages, Access),
    ) -> Self {
        Self { src, dst, on: On::Image(part, layouts), families: SAME }
    }

    /// From one family of queues to another.
    pub(crate) fn moves(self, from: u32, to: u32) -> Self {
        Self { families: (from, to), ..self }
    }
}

/// A step of a program. Ranges are offset and size, in bytes; columns of the image are the first, and how many.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Copy(Buffer, Buffer, (u64, u64)),
    Fill(Buffer, (u64, u64)),
    Update(Buffer, (u64, u64)),
    ToImage(Buffer, Part, Layout, (i32, u32)),
    FromImage(Buffer, Part, Layout),
    Clear(Part),
    /// Halves a level into the next, each in its layout.
    Blit(Part, Layout, Layout),
    /// All barriers of a call have the same stages, so that either interface can say it.
    /// Clears the first level of the first layer, an attachment meanwhile, and draws.
    Render(Vec<Draw>),
    Barrier(Vec<Bar>),
    /// The two halves of a dependency. Both name the same barriers.
    Set(Vec<Bar>),
    Wait(Vec<Bar>),
    /// Another command buffer of the same submission.
    Again,
    /// Another submission.
    Submit,
    /// The host waits.
    Idle,
}

/// Three vertices of 4 bytes each, from the first on of buffer A.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Draw {
    Plain,
    /// Those that 6 bytes of buffer B name.
    Indexed,
    /// As many as 16 bytes of buffer C say.
    Indirect,
}

/// Which of the two interfaces says what the barriers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    First,
    Second,
}

pub(crate) struct HazardFixture<'a> {
    device: &'a ash::Device,
    queue: vk::Queue,
    /// By family.
    pools: Vec<vk::CommandPool>,
    buffers: Vec<vk::Buffer>,
    image: vk::Image,
    event: vk::Event,
    memories: Vec<vk::DeviceMemory>,
    /// Made by the first program that draws.
    painter: OnceCell<Painter<'a>>,
}

const SIZE: u64 = 4096;

impl<'a> HazardFixture<'a> {
    pub(crate) fn new(device: &'a ash::Device, queue: vk::Queue) -> Self {
        Self::of_families(device, queue, 1)
    }

    pub(crate) fn of_families(device: &'a ash::Device, queue: vk::Queue, families: u32) -> Self {
        let pool = |family| {
            let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
            unsafe { device.create_command_pool(&info, None) }.unwrap()
        };
        let pools = (0..families).map(pool).collect();
        let mut memories = Vec::new();
        let mut memory = |needs: vk::MemoryRequirements| {
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(needs.memory_type_bits.trailing_zeros());
            let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
            memories.push(memory);
            memory
        };
        let usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::VERTEX_BUFFER
            | vk::BufferUsageFlags::INDEX_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER;
        let info = vk::BufferCreateInfo::default().size(SIZE).usage(usage);
        let buffers = [(); 3].map(|()| {
            let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
            let memory = memory(unsafe { device.get_buffer_memory_requirements(buffer) });
            unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
            buffer
        });
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 16, height: 16, depth: 1 })
            .mip_levels(2)
            .array_layers(2)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(
                vk::ImageUsageFlags::TRANSFER_SRC
                    | vk::ImageUsageFlags::TRANSFER_DST
                    | vk::ImageUsageFlags::COLOR_ATTACHMENT,
            );
        let image = unsafe { device.create_image(&info, None) }.unwrap();
        let bound = memory(unsafe { device.get_image_memory_requirements(image) });
        unsafe { device.bind_image_memory(image, bound, 0) }.unwrap();
        let event = unsafe { device.create_event(&vk::EventCreateInfo::default(), None) }.unwrap();
        let buffers = buffers.to_vec();
        Self { device, queue, pools, buffers, image, event, memories, painter: OnceCell::new() }
    }

    /// Submits commands to some queue. It waits for a semaphore with a value, in some stages.
    pub(crate) fn batch(
        &self,
        (queue, family): (vk::Queue, usize),
        ops: &[Op],
        waits: &[(vk::Semaphore, u64, Stages)],
        signals: &[(vk::Semaphore, u64, Stages)],
        fence: vk::Fence,
    ) {
        let commands = self.begin(family);
        ops.iter().for_each(|op| self.record(commands, op, Form::Second));
        unsafe { self.device.end_command_buffer(commands) }.unwrap();
        let info = |&(semaphore, value, stages): &(vk::Semaphore, u64, Stages)| {
            vk::SemaphoreSubmitInfo::default().semaphore(semaphore).value(value).stage_mask(stages)
        };
        let waits: Vec<_> = waits.iter().map(info).collect();
        let signals: Vec<_> = signals.iter().map(info).collect();
        let commands = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
        let work = vk::SubmitInfo2::default()
            .command_buffer_infos(&commands)
            .wait_semaphore_infos(&waits)
            .signal_semaphore_infos(&signals);
        unsafe { self.device.queue_submit2(queue, &[work], fence) }.unwrap();
    }

    /// Records and submits a program, and waits for it.
    pub(crate) fn run(&self, ops: &[Op], form: Form) {
        let mut commands = vec![self.begin(0)];
        for op in ops {
            let last = commands[commands.len() - 1];
            match op {
                Op::Again => {
                    unsafe { self.device.end_command_buffer(last) }.unwrap();
                    commands.push(self.begin(0));
                }
                Op::Submit => {
                    self.submit(&commands);
                    commands = vec![self.begin(0)];
                }
                Op::Idle => unsafe { self.device.queue_wait_idle(self.queue) }.unwrap(),
                op => self.record(last, op, form),
            }
        }
        self.submit(&commands);
        unsafe { self.device.queue_wait_idle(self.queue) }.unwrap();
    }

    fn begin(&self, family: usize) -> vk::CommandBuffer {
        let pool = self.pools[family];
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = unsafe { self.device.allocate_command_buffers(&info) }.unwrap()[0];
        let info = vk::CommandBufferBeginInfo::default();
        unsafe { self.device.begin_command_buffer(commands, &info) }.unwrap();
        commands
    }

    fn submit(&self, commands: &[vk::CommandBuffer]) {
        unsafe { self.device.end_command_buffer(commands[commands.len() - 1]) }.unwrap();
        let work = [vk::SubmitInfo::default().command_buffers(commands)];
        unsafe { self.device.queue_submit(self.queue, &work, vk::Fence::null()) }.unwrap();
    }

    fn record(&self, commands: vk::CommandBuffer, op: &Op, form: Form) {
        let device = self.device;
        match op {
            Op::Copy(from, to, (offset, size)) => {
                let region = [vk::BufferCopy { src_offset: *offset, dst_offset: *offset, size: *size }];
                let (from, to) = (self.buffers[*from], self.buffers[*to]);
                unsafe { device.cmd_copy_buffer(commands, from, to, &region) };
            }
            Op::Fill(buffer, (offset, size)) => unsafe {
                device.cmd_fill_buffer(commands, self.buffers[*buffer], *offset, *size, 7);
            },
            Op::Update(buffer, (offset, size)) => {
                let bytes = vec![7; usize::try_from(*size).unwrap()];
                unsafe { device.cmd_update_buffer(commands, self.buffers[*buffer], *offset, &bytes) };
            }
            Op::ToImage(buffer, part, layout, columns) => {
                let (buffer, region) = (self.buffers[*buffer], [region(part, *columns)]);
                unsafe { device.cmd_copy_buffer_to_image(commands, buffer, self.image, *layout, &region) };
            }
            Op::FromImage(buffer, part, layout) => {
                let (buffer, region) = (self.buffers[*buffer], [region(part, (0, 16))]);
                unsafe { device.cmd_copy_image_to_buffer(commands, self.image, *layout, buffer, &region) };
            }
            Op::Blit(part, from, to) => {
                let level = |mip_level: u32| vk::ImageSubresourceLayers {
                    mip_level,
                    ..region(part, (0, 16)).image_subresource
                };
                let corners = |size| [vk::Offset3D::default(), vk::Offset3D { x: size, y: size, z: 1 }];
                let region = vk::ImageBlit {
                    src_subresource: level(part.levels.0),
                    src_offsets: corners(16),
                    dst_subresource: level(part.levels.0 + 1),
                    dst_offsets: corners(8),
                };
                let (image, filter) = (self.image, vk::Filter::LINEAR);
                unsafe { device.cmd_blit_image(commands, image, *from, image, *to, &[region], filter) };
            }
            Op::Clear(part) => {
                let (layout, color) = (Layout::TRANSFER_DST_OPTIMAL, vk::ClearColorValue::default());
                let range = [range(part)];
                unsafe { device.cmd_clear_color_image(commands, self.image, layout, &color, &range) };
            }
            Op::Render(draws) => {
                let painter = self.painter.get_or_init(|| Painter::new(device, self.image, form));
                painter.render(commands, draws, [self.buffers[A], self.buffers[B], self.buffers[C]]);
            }
            Op::Barrier(bars) | Op::Set(bars) | Op::Wait(bars) if form == Form::First => {
                self.first(commands, op, bars);
            }
            Op::Barrier(bars) | Op::Set(bars) | Op::Wait(bars) => self.second(commands, op, bars),
            Op::Again | Op::Submit | Op::Idle => unreachable!(),
        }
    }

    fn first(&self, commands: vk::CommandBuffer, op: &Op, bars: &[Bar]) {
        let stages = |stages: Stages| vk::PipelineStageFlags::from_raw(stages.as_raw().try_into().unwrap());
        let access = |access: Access| vk::AccessFlags::from_raw(access.as_raw().try_into().unwrap());
        let (mut memory, mut buffers, mut images) = (Vec::new(), Vec::new(), Vec::new());
        for bar in bars {
            let (src, dst) = (access(bar.src.1), access(bar.dst.1));
            match bar.on {
                // A barrier without accesses is one of execution: it is none, in this interface.
                On::Memory if bar.src.1.is_empty() && bar.dst.1.is_empty() => {}
                On::Memory => {
                    memory.push(vk::MemoryBarrier::default().src_access_mask(src).dst_access_mask(dst));
                }
                On::Buffer(buffer, (offset, size)) => buffers.push(
                    vk::BufferMemoryBarrier::default()
                        .src_access_mask(src)
                        .dst_access_mask(dst)
                        .src_queue_family_index(bar.families.0)
                        .dst_queue_family_index(bar.families.1)
                        .buffer(self.buffers[buffer])
                        .offset(offset)
                        .size(size),
                ),
                On::Image(part, (old, new)) => images.push(
                    vk::ImageMemoryBarrier::default()
                        .src_access_mask(src)
                        .dst_access_mask(dst)
                        .old_layout(old)
                        .new_layout(new)
                        .src_queue_family_index(bar.families.0)
                        .dst_queue_family_index(bar.families.1)
                        .image(self.image)
                        .subresource_range(range(&part)),
                ),
            }
        }
        let (src, dst) = (stages(bars[0].src.0), stages(bars[0].dst.0));
        let none = vk::DependencyFlags::empty();
        let (device, events) = (self.device, [self.event]);
        match op {
            Op::Set(_) => unsafe { device.cmd_set_event(commands, self.event, src) },
            Op::Wait(_) => unsafe {
                device.cmd_wait_events(commands, &events, src, dst, &memory, &buffers, &images);
            },
            _ => unsafe {
                device.cmd_pipeline_barrier(commands, src, dst, none, &memory, &buffers, &images);
            },
        }
    }

    fn second(&self, commands: vk::CommandBuffer, op: &Op, bars: &[Bar]) {
        let (mut memory, mut buffers, mut images) = (Vec::new(), Vec::new(), Vec::new());
        for Bar { src, dst, on, families } in bars {
            match *on {
                On::Memory => memory.push(
                    vk::MemoryBarrier2::default()
                        .src_stage_mask(src.0)
                        .src_access_mask(src.1)
                        .dst_stage_mask(dst.0)
                        .dst_access_mask(dst.1),
                ),
                On::Buffer(buffer, (offset, size)) => buffers.push(
                    vk::BufferMemoryBarrier2::default()
                        .src_stage_mask(src.0)
                        .src_access_mask(src.1)
                        .dst_stage_mask(dst.0)
                        .dst_access_mask(dst.1)
                        .src_queue_family_index(families.0)
                        .dst_queue_family_index(families.1)
                        .buffer(self.buffers[buffer])
                        .offset(offset)
                        .size(size),
                ),
                On::Image(part, (old, new)) => images.push(
                    vk::ImageMemoryBarrier2::default()
                        .src_stage_mask(src.0)
                        .src_access_mask(src.1)
                        .dst_stage_mask(dst.0)
                        .dst_access_mask(dst.1)
                        .old_layout(old)
                        .new_layout(new)
                        .src_queue_family_index(families.0)
                        .dst_queue_family_index(families.1)
                        .image(self.image)
                        .subresource_range(range(&part)),
                ),
            }
        }
        let info = vk::DependencyInfo::default()
            .memory_barriers(&memory)
            .buffer_memory_barriers(&buffers)
            .image_memory_barriers(&images);
        let (device, event) = (self.device, self.event);
        match op {
            Op::Set(_) => unsafe { device.cmd_set_event2(commands, event, &info) },
            Op::Wait(_) => unsafe { device.cmd_wait_events2(commands, &[event], &[info]) },
            _ => unsafe { device.cmd_pipeline_barrier2(commands, &info) },
        }
    }
}

impl Drop for HazardFixture<'_> {
    fn drop(&mut self) {
        drop(self.painter.take());
        for &pool in &self.pools {
            unsafe { self.device.destroy_command_pool(pool, None) };
        }
        for &buffer in &self.buffers {
            unsafe { self.device.destroy_buffer(buffer, None) };
        }
        unsafe { self.device.destroy_image(self.image, None) };
        unsafe { self.device.destroy_event(self.event, None) };
        for &memory in &self.memories {
            unsafe { self.device.free_memory(memory, None) };
        }
    }
}

fn range(part: &Part) -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        base_mip_level: part.levels.0,
        level_count: part.levels.1,
        base_array_layer: part.layers.0,
        layer_count: part.layers.1,
    }
}

fn region(part: &Part, (x, width): (i32, u32)) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        image_subresource: vk::ImageSubresourceLayers {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            mip_level: part.levels.0,
            base_array_layer: part.layers.0,
            layer_count: part.layers.1,
        },
        image_offset: vk::Offset3D { x, y: 0, z: 0 },
        image_extent: vk::Extent3D { width, height: 16, depth: 1 },
        ..Default::default()
    }
}
