//! Fixture: a simulated GPU with two queues, and recordings that check whether they still own their resources.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::retire::{Clock, Ticket, TimelineId};
use sublet::sim::{Gpu, Kernel, Profile};
use sublet::{
    Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage,
};
use sublet_descriptors::{
    BindingModel, BufferDescriptor, Descriptor, DescriptorDevice, DescriptorDeviceCreateInfo, SetLayout,
};

use crate::subjects::Subject;

/// The number of distinguishable recordings.
const NUMBERS: u32 = 256;
const PARTS: u64 = 16;
const PART: u64 = 256;

pub(crate) struct Fixture {
    pub(crate) gpu: Gpu,
    pub(crate) device: DescriptorDevice,
    pub(crate) allocator: Arc<Allocator>,
    pub(crate) clock: Clock,
    pub(crate) timelines: [TimelineId; 2],
    /// Mismatches that dispatches found.
    faults: Arc<Mutex<Vec<String>>>,
    looks: Arc<AtomicU32>,
    dispatches: Cell<u32>,
    pool: vk::CommandPool,
    module: vk::ShaderModule,
    /// Each part starts with its number.
    source: (vk::Buffer, Allocation),
    target: (vk::Buffer, Allocation),
    next: Cell<u32>,
    /// The recordings whose copies must appear in the target.
    copies: RefCell<Vec<u32>>,
    made: RefCell<Made>,
}

#[derive(Default)]
struct Made {
    set_layouts: Vec<vk::DescriptorSetLayout>,
    pipeline_layouts: Vec<vk::PipelineLayout>,
    pipelines: Vec<vk::Pipeline>,
    fences: Vec<vk::Fence>,
}

pub(crate) struct Recording {
    pub(crate) commands: vk::CommandBuffer,
    pub(crate) ticket: Ticket,
    /// Unique among all recordings of the fixture.
    pub(crate) number: u32,
    dispatches: u32,
    copies: bool,
}

/// The number of driver objects. If it grew every frame, something would never be released.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Objects {
    pools: u64,
    buffers: u64,
    memories: u64,
}

impl Fixture {
    pub(crate) fn new(model: BindingModel) -> Self {
        let gpu = Gpu::builder(Profile::by_name("nvidia-h200").unwrap()).queues(2).build();
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let info = DescriptorDeviceCreateInfo { model, ..DescriptorDeviceCreateInfo::for_gpu(&gpu) };
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let (faults, looks) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
        let (found, count) = (Arc::clone(&faults), Arc::clone(&looks));
        gpu.set_kernel("look", move |kernel: &mut Kernel<'_>| {
            let [binding, element, expected] = [0, 4, 8].map(|at| {
                let mut word = [0; 4];
                kernel.read_push_constants(at, &mut word);
                u32::from_ne_bytes(word)
            });
            let seen = kernel.buffer(0, binding, element).read_u32(0);
            if seen != expected {
                found.lock().unwrap().push(format!("{seen} and not {expected}"));
            }
            count.fetch_add(1, Ordering::Relaxed);
        });
        let pool = unsafe { gpu.device().create_command_pool(&vk::CommandPoolCreateInfo::default(), None) };
        let code = [0x0723_0203];
        let info = vk::ShaderModuleCreateInfo::default().code(&code);
        let module = unsafe { gpu.device().create_shader_module(&info, None) }.unwrap();
        let buffer = |size, usage| {
            let wish = AllocationCreateInfo {
                flags: AllocationCreateFlags::HOST_ACCESS_RANDOM,
                ..AllocationCreateInfo::new(MemoryUsage::Auto)
            };
            let info = vk::BufferCreateInfo::default().size(size).usage(usage);
            unsafe { allocator.create_buffer(&info, &wish) }.unwrap()
        };
        let mut usage = vk::BufferUsageFlags::STORAGE_BUFFER;
        if model == BindingModel::Buffer {
            usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let mut source = buffer(PARTS * PART, usage);
        for part in 0..16_u32 {
            let offset = u64::from(part) * PART;
            allocator.copy_to_allocation(&part.to_ne_bytes(), &mut source.1, offset).unwrap();
        }
        let target = buffer(4 * u64::from(NUMBERS), vk::BufferUsageFlags::TRANSFER_DST);
        let clock = Clock::new();
        let timelines = [(); 2].map(|()| clock.add_timeline().unwrap());
        gpu.hold_submissions(true);
        Self {
            device,
            allocator: Arc::new(allocator),
            clock,
            timelines,
            faults,
            looks,
            dispatches: Cell::new(0),
            pool: pool.unwrap(),
            module,
            source,
            target,
            next: Cell::new(0),
            copies: RefCell::default(),
            made: RefCell::default(),
            gpu,
        }
    }

    pub(crate) fn vulkan(&self) -> &ash::Device {
        self.gpu.device()
    }

    pub(crate) fn fence(&self) -> vk::Fence {
        let info = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
        let fence = unsafe { self.vulkan().create_fence(&info, None) }.unwrap();
        self.made.borrow_mut().fences.push(fence);
        fence
    }

    /// Creates a layout of one storage buffer.
    pub(crate) fn set_layout(&self) -> SetLayout {
        let bindings = [vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)];
        let mut info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        if self.device.model() == BindingModel::Buffer {
            info = info.flags(vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT);
        }
        let handle = unsafe { self.vulkan().create_descriptor_set_layout(&info, None) }.unwrap();
        self.made.borrow_mut().set_layouts.push(handle);
        unsafe { SetLayout::new(handle, &info) }.unwrap()
    }

    pub(crate) const RANGE: vk::PushConstantRange =
        vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 12 };

    /// Creates a pipeline whose shader reads a storage buffer of set 0.
    pub(crate) fn pipeline(&self, set: vk::DescriptorSetLayout) -> (vk::PipelineLayout, vk::Pipeline) {
        let (sets, ranges) = ([set], [Self::RANGE]);
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&ranges);
        let layout = unsafe { self.vulkan().create_pipeline_layout(&info, None) }.unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(self.module)
            .name(c"look");
        let mut info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
        if self.device.model() == BindingModel::Buffer {
            info = info.flags(vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT);
        }
        let cache = vk::PipelineCache::null();
        let pipeline = unsafe { self.vulkan().create_compute_pipelines(cache, &[info], None) }.unwrap()[0];
        let mut made = self.made.borrow_mut();
        made.pipeline_layouts.push(layout);
        made.pipelines.push(pipeline);
        (layout, pipeline)
    }

    fn part(number: u32) -> u64 {
        PART * (u64::from(number) % PARTS)
    }

    /// Returns the descriptor of the recording with that number.
    pub(crate) fn descriptor(&self, number: u32) -> Descriptor {
        let range = BufferDescriptor::new(self.source.0, Self::part(number), PART);
        if self.device.model() != BindingModel::Buffer {
            return Descriptor::StorageBuffer(range);
        }
        let info = vk::BufferDeviceAddressInfo::default().buffer(self.source.0);
        let address = unsafe { self.vulkan().get_buffer_device_address(&info) };
        Descriptor::StorageBuffer(range.with_buffer_address(address))
    }

    pub(crate) fn write(&self, set: vk::DescriptorSet, number: u32) {
        let info =
            [vk::DescriptorBufferInfo { buffer: self.source.0, offset: Self::part(number), range: PART }];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .buffer_info(&info);
        unsafe { self.vulkan().update_descriptor_sets(&[write], &[]) };
    }

    /// Records a dispatch that must find the recording's own buffer at that element.
    pub(crate) fn look(
        &self,
        recording: &mut Recording,
        (layout, pipeline): (vk::PipelineLayout, vk::Pipeline),
        [binding, element]: [u32; 2],
    ) {
        let vulkan = self.vulkan();
        let expected = recording.number % 16;
        let words: Vec<u8> = [binding, element, expected].into_iter().flat_map(u32::to_ne_bytes).collect();
        let (commands, stages) = (recording.commands, vk::ShaderStageFlags::COMPUTE);
        unsafe { vulkan.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline) };
        unsafe { vulkan.cmd_push_constants(commands, layout, stages, 0, &words) };
        unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
        recording.dispatches += 1;
    }

    /// Records a copy of the upload's first word, which must be the recording's number.
    pub(crate) fn copy(&self, recording: &mut Recording, upload: &sublet::upload::Upload) {
        let dst_offset = 4 * u64::from(recording.number);
        let region = vk::BufferCopy { size: 4, ..upload.copy_to(dst_offset) };
        unsafe { self.vulkan().cmd_copy_buffer(recording.commands, upload.buffer, self.target.0, &[region]) };
        recording.copies = true;
    }

    /// Records the use of a resource of the subject until the ticket is done.
    pub(crate) fn record(&self, subject: &mut dyn Subject, ticket: Ticket) -> Recording {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        let commands = unsafe { self.vulkan().allocate_command_buffers(&info) }.unwrap()[0];
        let info = vk::CommandBufferBeginInfo::default();
        unsafe { self.vulkan().begin_command_buffer(commands, &info) }.unwrap();
        let number = self.next.get();
        assert!(number < NUMBERS);
        self.next.set(number + 1);
        let mut recording = Recording { commands, ticket, number, dispatches: 0, copies: false };
        subject.record(self, &mut recording);
        unsafe { self.vulkan().end_command_buffer(commands) }.unwrap();
        self.gpu.assert_silent();
        recording
    }

    pub(crate) fn submit(&self, queue: usize, recording: &Recording, fence: vk::Fence) {
        let commands = [recording.commands];
        let info = vk::SubmitInfo::default().command_buffers(&commands);
        unsafe { self.vulkan().queue_submit(self.gpu.queue_at(queue), &[info], fence) }.unwrap();
        self.dispatches.set(self.dispatches.get() + recording.dispatches);
        if recording.copies {
            self.copies.borrow_mut().push(recording.number);
        }
    }

    pub(crate) fn objects(&self) -> Objects {
        let live = self.gpu.live();
        Objects { pools: live.descriptor_pools, buffers: live.buffers, memories: live.memories }
    }

    /// Checks that nothing is in flight and that each execution found its own data.
    pub(crate) fn check(&self) {
        self.gpu.assert_silent();
        assert_eq!(self.gpu.pending_submissions(), 0);
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "dispatches found {faults:?}");
        assert_eq!(
            self.looks.load(Ordering::Relaxed),
            self.dispatches.get(),
            "dispatches that were executed"
        );
        let (_, memory) = &self.target;
        for number in self.copies.borrow().iter() {
            let offset = memory.offset() + 4 * u64::from(*number);
            let bytes = unsafe { self.gpu.read_memory(memory.memory(), offset, 4) }.unwrap();
            assert_eq!(bytes, number.to_ne_bytes(), "what recording {number} copied");
        }
    }

    /// Ends a test that has leaked objects.
    pub(crate) fn abandon(self) {
        let Self { gpu, device, allocator, .. } = self;
        drop(allocator);
        drop(device);
        drop(gpu);
    }

    /// Destroys everything. Checks that nothing is left and that the driver emitted no message.
    pub(crate) fn finish(self) {
        let vulkan = self.gpu.device();
        unsafe { vulkan.destroy_command_pool(self.pool, None) };
        let made = self.made.take();
        for pipeline in made.pipelines {
            unsafe { vulkan.destroy_pipeline(pipeline, None) };
        }
        for layout in made.pipeline_layouts {
            unsafe { vulkan.destroy_pipeline_layout(layout, None) };
        }
        for layout in made.set_layouts {
            unsafe { vulkan.destroy_descriptor_set_layout(layout, None) };
        }
        for fence in made.fences {
            unsafe { vulkan.destroy_fence(fence, None) };
        }
        unsafe { vulkan.destroy_shader_module(self.module, None) };
        for (buffer, memory) in [self.source, self.target] {
            unsafe { self.allocator.destroy_buffer(buffer, memory) }.unwrap();
        }
        self.allocator.validate();
        assert_eq!(Arc::into_inner(self.allocator).unwrap().destroy().len(), 0);
        assert_eq!(self.device.update_after_bind_used(), 0);
        drop(self.device);
        let messages = self.gpu.finish();
        assert!(messages.is_empty(), "{messages:?}");
    }
}
