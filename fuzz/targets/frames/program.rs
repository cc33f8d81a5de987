//! Runs a program, and compares it with the model.
#![expect(unsafe_code, reason = "creates resources")]

use std::sync::Arc;

use ash::vk;
use sublet::sim::Gpu;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, DefragmentationAlgorithm, MemoryUsage};
use sublet_descriptors::{DescriptorDevice, DescriptorDeviceCreateInfo};
use sublet_frame::track::Subresources;
use sublet_frame::{
    Buffer, CommandList, Compactor, CompactorCreateInfo, Features, Frames, FramesCreateInfo, Image,
    ImageData, ListError, QueueInfo,
};
use sublet_fuzz::{Choice, finished};

use crate::call::{Call, Command, Input, Kind};
use crate::model::{Effect, Model};

const MOST_RESOURCES: usize = 8;
const MOST_LISTS: usize = 4;
const BYTES: u64 = 256;
/// Width and height of an image in texels.
const SIDE: u32 = 4;
const MIPS: u32 = 3;
const LAYERS: u32 = 2;
const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;
/// The calls that fail.
const CALLS: &[&str] = &[
    "vkAllocateMemory",
    "vkCreateBuffer",
    "vkCreateImage",
    "vkMapMemory",
    "vkBindBufferMemory2",
    "vkBindImageMemory2",
    "vkCreateCommandPool",
    "vkAllocateCommandBuffers",
    "vkBeginCommandBuffer",
    "vkEndCommandBuffer",
    "vkResetCommandPool",
    "vkQueueSubmit",
    "vkQueueSubmit2",
    "vkCreateFence",
    "vkWaitForFences",
    "vkGetSemaphoreCounterValue",
    "vkWaitSemaphores",
    "vkFlushMappedMemoryRanges",
    "vkInvalidateMappedMemoryRanges",
];

enum Resource {
    Buffer(Buffer),
    Image(Image),
}

struct Held {
    owner: usize,
    resource: Resource,
    /// Its index in the model.
    model: usize,
}

/// A list that is being recorded.
struct Open {
    owner: usize,
    list: CommandList,
    effects: Vec<Effect>,
}

struct Program<'a> {
    gpu: &'a Gpu,
    frames: [Frames; 2],
    compactors: [Compactor; 2],
    held: Vec<Held>,
    open: Vec<Open>,
    model: Model,
}

fn mip_bytes(mip: u32) -> usize {
    let side = usize::try_from(SIDE >> mip).unwrap_or(0);
    side * side * 4
}

fn subresource(mip: u32, layer: u32) -> usize {
    usize::try_from(mip * LAYERS + layer).unwrap_or(0)
}

fn color(value: u8) -> vk::ClearColorValue {
    vk::ClearColorValue { float32: [f32::from(value) / 255.0; 4] }
}

fn frames(gpu: &Gpu, allocator: &Arc<Allocator>, descriptors: &DescriptorDevice) -> Option<Frames> {
    let queues = [0, 1].map(|at| QueueInfo { queue: gpu.queue_at(at), family: gpu.queue_family_index() });
    let (instance, device, physical) = (gpu.instance(), gpu.device(), gpu.physical_device());
    let info = FramesCreateInfo {
        features: Features::for_gpu(gpu),
        descriptors: Some(descriptors),
        ..FramesCreateInfo::new(instance, device, physical, gpu.api_version(), allocator, &queues)
    };
    // SAFETY: all handles belong to the simulated device, which outlives the frames.
    unsafe { Frames::new(&info) }.ok()
}

fn compactor(frames: &Frames) -> Compactor {
    Compactor::new(CompactorCreateInfo {
        algorithm: DefragmentationAlgorithm::Full,
        max_moves_per_frame: 3,
        start_bytes: 0,
        start_heap_usage: 0.0,
        ..CompactorCreateInfo::new(frames.queue(0))
    })
}

/// Runs a program with two `Frames`, and drops what it leaves.
pub(crate) fn run(input: &Input) {
    let gpu = sublet_fuzz::gpu(input.profile).queues(2).hazards(true).build();
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator =
        unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.expect("the GPU is complete");
    let allocator = Arc::new(allocator);
    // SAFETY: as above.
    let descriptors = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) };
    let descriptors = descriptors.expect("the GPU is complete");
    if let (Some(one), Some(two)) =
        (frames(&gpu, &allocator, &descriptors), frames(&gpu, &allocator, &descriptors))
    {
        gpu.hold_submissions(input.holds);
        let frames = [one, two];
        let compactors = frames.each_ref().map(compactor);
        let (held, open, model) = (Vec::new(), Vec::new(), Model::default());
        let mut program = Program { gpu: &gpu, frames, compactors, held, open, model };
        for call in &input.calls.0 {
            program.call(*call);
        }
        gpu.faults().clear();
        program.finish();
    }
    drop(descriptors);
    allocator.validate();
    let leaks = Arc::into_inner(allocator).expect("the frames are gone").destroy();
    assert!(leaks.is_empty(), "{leaks:?}");
    finished(&gpu);
}

impl Program<'_> {
    fn call(&mut self, call: Call) {
        match call {
            Call::CreateBuffer { owner } => self.create_buffer(usize::from(owner)),
            Call::CreateImage { owner } => self.create_image(usize::from(owner)),
            Call::Forget { which } => {
                // The frames keep resources that lists use.
                if let Some(at) = which.at(self.held.len()) {
                    self.held.swap_remove(at);
                }
            }
            Call::Open { owner, queue } => {
                if self.open.len() == MOST_LISTS {
                    return;
                }
                let frames = &self.frames[usize::from(owner)];
                if let Ok(list) = frames.list(frames.queue(usize::from(queue))) {
                    self.open.push(Open { owner: usize::from(owner), list, effects: Vec::new() });
                }
            }
            Call::Record { list, command } => self.record(list, command),
            Call::DropList { list } => {
                if let Some(at) = list.at(self.open.len()) {
                    self.open.remove(at);
                }
            }
            Call::Submit { owner, queue, first, second } => {
                self.submit(usize::from(owner), usize::from(queue), [Some(first), second]);
            }
            Call::Read { wait } => self.read(wait),
            Call::Fail(fault) => fault.inject(self.gpu, CALLS),
            _ => self.tend(call),
        }
    }

    /// Calls on frames. They fail if the driver does.
    fn tend(&mut self, call: Call) {
        match call {
            Call::Begin { owner } => drop(self.frames[usize::from(owner)].begin()),
            Call::End { owner } => self.frames[usize::from(owner)].end(),
            Call::Wait { owner } => drop(self.frames[usize::from(owner)].wait_idle()),
            Call::Trim { owner } => {
                drop(self.frames[usize::from(owner)].trim());
                self.frames[usize::from(owner)].allocator().validate();
            }
            Call::Compact { owner } => {
                let owner = usize::from(owner);
                self.compactors[owner].request();
                drop(self.compactors[owner].step(&self.frames[owner]));
            }
            _ => {}
        }
    }

    /// Writes a new resource with a list of its own.
    fn zeroed(&mut self, owner: usize, resource: Resource, sizes: Vec<usize>) {
        let frames = &self.frames[owner];
        let Ok(mut list) = frames.list(frames.queue(0)) else { return };
        let written = match &resource {
            Resource::Buffer(buffer) => list.fill_buffer(buffer, 0..BYTES, 0),
            // SAFETY: the format is a color.
            Resource::Image(image) => unsafe { list.clear_color(image, &Subresources::ALL, color(0)) },
        };
        if written.is_ok() && frames.submit(frames.queue(0), [list]).is_ok() {
            let model = self.model.add(sizes.into_iter());
            self.held.push(Held { owner, resource, model });
        }
    }

    fn create_buffer(&mut self, owner: usize) {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(BYTES).usage(usage);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        if self.held.len() == MOST_RESOURCES {
            return;
        }
        // SAFETY: the create-info is valid.
        if let Ok(buffer) = unsafe { self.frames[owner].create_buffer(&info, &auto) } {
            self.zeroed(owner, Resource::Buffer(buffer), vec![usize::try_from(BYTES).unwrap_or(0)]);
        }
    }

    fn create_image(&mut self, owner: usize) {
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: SIDE, height: SIDE, depth: 1 })
            .mip_levels(MIPS)
            .array_layers(LAYERS)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        if self.held.len() == MOST_RESOURCES {
            return;
        }
        // SAFETY: the create-info is valid.
        if let Ok(image) = unsafe { self.frames[owner].create_image(&info, &auto) } {
            let sizes = (0..MIPS).flat_map(|mip| (0..LAYERS).map(move |_| mip_bytes(mip)));
            self.zeroed(owner, Resource::Image(image), sizes.collect());
        }
    }

    fn record(&mut self, list: Choice, command: Command) {
        let Some(at) = list.at(self.open.len()) else { return };
        let (Some(one), Some(other)) = (command.one.of(&self.held), command.other.of(&self.held)) else {
            return;
        };
        let open = &mut self.open[at];
        let effect = match (&one.resource, &other.resource) {
            (Resource::Buffer(buffer), Resource::Buffer(from)) => {
                on_buffers(&mut open.list, (buffer, one.model), (from, other.model), command)
            }
            (Resource::Image(image), Resource::Image(from)) => {
                on_images(&mut open.list, (image, one.model), (from, other.model), command)
            }
            (Resource::Image(image), Resource::Buffer(buffer)) => {
                between(&mut open.list, (image, one.model), (buffer, other.model), command)
            }
            (Resource::Buffer(buffer), Resource::Image(image)) => {
                between(&mut open.list, (image, other.model), (buffer, one.model), command)
            }
        };
        let Some(effect) = effect else { return };
        // A command on no byte is accepted for any buffer.
        if let Some(effect) = effect.as_ref().ok().filter(|effect| !effect.is_empty()) {
            let uses_both = matches!(effect, Effect::Copy { .. });
            let is_own = one.owner == open.owner && (!uses_both || other.owner == open.owner);
            assert!(is_own, "a resource of other frames was accepted");
        }
        open.effects.extend(effect);
    }

    fn submit(&mut self, owner: usize, queue: usize, which: [Option<Choice>; 2]) {
        let mut lists = Vec::new();
        for choice in which.into_iter().flatten() {
            let Some(at) = choice.at(self.open.len()) else { break };
            lists.push(self.open.remove(at));
        }
        let frames = &self.frames[owner];
        let queue = frames.queue(queue);
        let fits = lists.iter().all(|open| open.owner == owner && open.list.queue() == queue);
        let (lists, effects): (Vec<_>, Vec<_>) =
            lists.into_iter().map(|open| (open.list, open.effects)).unzip();
        if frames.submit(queue, lists).is_ok() {
            assert!(fits, "a list of another queue was accepted");
            effects.into_iter().flatten().for_each(|effect| self.model.apply(owner, effect));
        }
    }

    /// Compares the next read-back.
    fn read(&mut self, wait: bool) {
        let Some(expected) = self.model.expected.pop_front() else { return };
        if wait {
            let _ = self.frames[expected.owner].wait(&expected.read);
        }
        expected.compare();
        if !expected.read.is_ready() {
            self.model.expected.push_front(expected);
        }
    }

    fn finish(self) {
        let Self { gpu, frames, compactors, held, open, model } = self;
        frames[0].allocator().validate();
        gpu.hold_submissions(false);
        gpu.run_pending();
        drop((open, held));
        for frames in &frames {
            let _ = frames.wait_idle();
        }
        model.expected.iter().for_each(|expected| expected.compare());
        drop((model, compactors, frames));
    }
}

/// A command on buffers; `None` if it is one on images.
fn on_buffers(
    list: &mut CommandList,
    (buffer, model): (&Buffer, usize),
    (from, from_model): (&Buffer, usize),
    command: Command,
) -> Option<Result<Effect, ListError>> {
    let (to, at) = ((model, 0), usize::from(command.at));
    let (start, len) = (u64::from(command.at), u64::from(command.len));
    let bytes = vec![command.value; usize::from(command.len)];
    let written = |bytes| Effect::Write { to, at, bytes };
    Some(match command.kind {
        Kind::Fill => {
            let (start, len) = (start & !3, len & !3);
            let at = at & !3;
            let bytes = vec![command.value; bytes.len() & !3];
            list.fill_buffer(buffer, start..start + len, u32::from_le_bytes([command.value; 4]))
                .map(|()| Effect::Write { to, at, bytes })
        }
        Kind::Update => list.update_buffer(buffer, start, &bytes).map(|()| written(bytes)),
        Kind::Upload => list.upload(buffer, start, &bytes).map(|()| written(bytes)),
        Kind::Copy => {
            let from_at = usize::from(command.other_at);
            let region = vk::BufferCopy { src_offset: command.other_at.into(), dst_offset: start, size: len };
            let (from_surface, len) = ((from_model, 0), bytes.len());
            list.copy_buffer(from, buffer, &[region]).map(|()| Effect::Copy {
                from: from_surface,
                from_at,
                to,
                at,
                len,
            })
        }
        Kind::ReadBuffer => list.read_buffer(buffer, start..start + len).map(|read| Effect::Read {
            from: to,
            at,
            len: bytes.len(),
            read,
        }),
        _ => return None,
    })
}

fn layers_of(mip: u32, layer: u32) -> vk::ImageSubresourceLayers {
    vk::ImageSubresourceLayers { aspect_mask: COLOR, mip_level: mip, base_array_layer: layer, layer_count: 1 }
}

fn extent(mip: u32) -> vk::Extent3D {
    vk::Extent3D { width: SIDE >> mip, height: SIDE >> mip, depth: 1 }
}

/// A command on images; `None` if it is one on buffers.
fn on_images(
    list: &mut CommandList,
    (image, model): (&Image, usize),
    (from, from_model): (&Image, usize),
    command: Command,
) -> Option<Result<Effect, ListError>> {
    let (mip, layer) = (command.mip.one(&[0, 1, 2]), command.layer.one(&[0, 1]));
    let to = (model, subresource(mip, layer));
    let len = mip_bytes(mip);
    let bytes = vec![command.value; len];
    Some(match command.kind {
        Kind::UploadImage => list
            .upload_image(image, &[ImageData::new(mip, layer, &bytes)])
            .map(|()| Effect::Write { to, at: 0, bytes: bytes.clone() }),
        Kind::ReadImage => list.read_image(image, mip, layer..layer + 1, COLOR).map(|read| Effect::Read {
            from: to,
            at: 0,
            len,
            read,
        }),
        Kind::ClearImage => {
            let part = Subresources::ALL.mips(mip..mip + 1).layers(layer..layer + 1);
            // SAFETY: the format is a color.
            unsafe { list.clear_color(image, &part, color(command.value)) }.map(|()| Effect::Write {
                to,
                at: 0,
                bytes,
            })
        }
        Kind::CopyImage => {
            let other_layer = command.other.one(&[0, 1]);
            let region = vk::ImageCopy {
                src_subresource: layers_of(mip, other_layer),
                dst_subresource: layers_of(mip, layer),
                extent: extent(mip),
                ..Default::default()
            };
            let from_surface = (from_model, subresource(mip, other_layer));
            if from_surface == to {
                return None;
            }
            // SAFETY: the formats are the same.
            unsafe { list.copy_image(from, image, &[region]) }.map(|()| Effect::Copy {
                from: from_surface,
                from_at: 0,
                to,
                at: 0,
                len,
            })
        }
        _ => return None,
    })
}

/// A copy between an image and a buffer; `None` if it is another command.
fn between(
    list: &mut CommandList,
    (image, of_image): (&Image, usize),
    (buffer, of_buffer): (&Buffer, usize),
    command: Command,
) -> Option<Result<Effect, ListError>> {
    let (mip, layer) = (command.mip.one(&[0, 1, 2]), command.layer.one(&[0, 1]));
    let texels = (of_image, subresource(mip, layer));
    let len = mip_bytes(mip);
    // The region must be inside the buffer.
    let offset = u64::from(command.at & !3).min(BYTES - len as u64);
    let at = usize::try_from(offset).unwrap_or(0);
    let region = vk::BufferImageCopy {
        buffer_offset: offset,
        image_subresource: layers_of(mip, layer),
        image_extent: extent(mip),
        ..Default::default()
    };
    let bytes = (of_buffer, 0);
    Some(match command.kind {
        // SAFETY: offset and format are valid; the list checks the range.
        Kind::CopyFromBuffer => unsafe { list.copy_buffer_to_image(buffer, image, &[region]) }
            .map(|()| Effect::Copy { from: bytes, from_at: at, to: texels, at: 0, len }),
        // SAFETY: as above.
        Kind::CopyToBuffer => unsafe { list.copy_image_to_buffer(image, buffer, &[region]) }
            .map(|()| Effect::Copy { from: texels, from_at: 0, to: bytes, at, len }),
        _ => return None,
    })
}
