//! Fixture: a simulated device with layouts, buffers and a command buffer, and the descriptors that its pipelines read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::retire::Clock;
use sublet::sim::{self, Gpu, GpuBuilder, Kernel};
use sublet::{
    Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage,
};
use sublet_descriptors::{
    BindPoint, Binder, BinderCreateInfo, BindingModel, BufferDescriptor, Descriptor, DescriptorDevice,
    DescriptorDeviceCreateInfo, DescriptorKind, PipelineLayoutError, PipelineLayoutInfo, SetLayout,
};

use super::held::{End, Held, hold};

pub(crate) type TestBinder = Binder<Arc<Allocator>>;

pub(crate) const POINT: BindPoint = BindPoint::Compute;
pub(crate) const BUFFER_SIZE: u64 = 4096;

/// A binding: number, type, count.
pub(crate) type Shape = (u32, DescriptorKind, u32);

/// Set, binding, element.
pub(crate) type ArrayElement = (u32, u32, u32);

/// The descriptors that each dispatch reads, and the [`content`] that it must find there.
#[derive(Default)]
struct Looks {
    orders: VecDeque<Vec<(ArrayElement, u32)>>,
    done: u32,
    faults: Vec<String>,
}

/// Returns the value that a shader reads from the buffer with this `number`, at an offset that is a multiple of 256.
pub(crate) fn content(number: usize, offset: u64) -> u32 {
    u32::try_from(number * 100).unwrap() + u32::try_from(offset / 256).unwrap()
}

pub(crate) struct Fixture {
    looks: Arc<Mutex<Looks>>,
    module: Cell<vk::ShaderModule>,
    pipelines: RefCell<BTreeMap<vk::PipelineLayout, vk::Pipeline>>,
    pub(crate) gpu: Gpu,
    pub(crate) device: DescriptorDevice,
    pub(crate) allocator: Arc<Allocator>,
    pool: vk::CommandPool,
    pub(crate) set_layouts: RefCell<Vec<vk::DescriptorSetLayout>>,
    pipeline_layouts: RefCell<Vec<vk::PipelineLayout>>,
    buffers: RefCell<Vec<(vk::Buffer, Allocation)>>,
    samplers: RefCell<Vec<vk::Sampler>>,
}

/// A GPU with push descriptors and update templates.
pub(crate) fn sets() -> GpuBuilder {
    Gpu::builder(sim::Profile::by_name("nvidia-h200").unwrap())
}

/// The same without update templates.
pub(crate) fn without_templates() -> GpuBuilder {
    sets()
        .api_version(vk::API_VERSION_1_0)
        .extension("VK_KHR_push_descriptor")
        .extension("VK_KHR_maintenance1")
}

impl Fixture {
    pub(crate) fn new(gpu: Gpu, model: BindingModel) -> Held<Self> {
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let info = DescriptorDeviceCreateInfo { model, ..DescriptorDeviceCreateInfo::for_gpu(&gpu) };
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let info = vk::CommandPoolCreateInfo::default();
        let pool = unsafe { gpu.device().create_command_pool(&info, None) }.unwrap();
        let looks = Arc::new(Mutex::new(Looks::default()));
        let found = Arc::clone(&looks);
        gpu.set_kernel("look", move |kernel: &mut Kernel<'_>| {
            let order = found.lock().unwrap().orders.pop_front().unwrap();
            for ((set, binding, element), expected) in order {
                let seen = kernel.buffer(set, binding, element).read_u32(0);
                if seen != expected {
                    let place = (set, binding, element);
                    found.lock().unwrap().faults.push(format!("{place:?}: {seen} and not {expected}"));
                }
            }
            found.lock().unwrap().done += 1;
        });
        hold(Self {
            looks,
            module: Cell::default(),
            pipelines: RefCell::default(),
            gpu,
            device,
            allocator: Arc::new(allocator),
            pool,
            set_layouts: RefCell::default(),
            pipeline_layouts: RefCell::default(),
            buffers: RefCell::default(),
            samplers: RefCell::default(),
        })
    }

    pub(crate) fn with_sets() -> Held<Self> {
        Self::new(sets().build(), BindingModel::Sets)
    }

    /// Uses descriptor buffers on the GPU of this name.
    pub(crate) fn with_buffers(name: &str) -> Held<Self> {
        Self::new(Gpu::new(sim::Profile::by_name(name).unwrap()), BindingModel::Buffer)
    }

    pub(crate) fn binder(&self) -> Held<TestBinder> {
        self.binder_with(&BinderCreateInfo::default())
    }

    pub(crate) fn binder_with(&self, info: &BinderCreateInfo<'_>) -> Held<TestBinder> {
        hold(unsafe { Binder::new(&self.device, Arc::clone(&self.allocator), info) }.unwrap())
    }

    /// Creates a binder with a pipeline layout of these sets.
    pub(crate) fn with_layout(&self, sets: &[SetLayout]) -> (Held<TestBinder>, PipelineLayoutInfo) {
        let (mut binder, layout) = (self.binder(), self.pipeline(sets));
        binder.set_layout(POINT, &layout).unwrap();
        (binder, layout)
    }

    /// The same with a command buffer in the recording state.
    pub(crate) fn start(
        &self,
        sets: &[SetLayout],
    ) -> (Held<TestBinder>, PipelineLayoutInfo, vk::CommandBuffer) {
        let (binder, layout) = self.with_layout(sets);
        (binder, layout, self.commands())
    }

    /// Creates a set layout with the flag that the device's binding model needs.
    pub(crate) fn set_layout(&self, shapes: &[Shape]) -> SetLayout {
        self.set_layout_with(shapes, vk::DescriptorSetLayoutCreateFlags::empty())
    }

    pub(crate) fn push_layout(&self, shapes: &[Shape]) -> SetLayout {
        self.set_layout_with(shapes, vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR)
    }

    pub(crate) fn set_layout_with(
        &self,
        shapes: &[Shape],
        flags: vk::DescriptorSetLayoutCreateFlags,
    ) -> SetLayout {
        let bindings: Vec<_> = shapes
            .iter()
            .map(|&(number, kind, count)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(number)
                    .descriptor_type(kind.to_vk())
                    .descriptor_count(count)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE | vk::ShaderStageFlags::FRAGMENT)
            })
            .collect();
        self.set_layout_of(&bindings, flags)
    }

    pub(crate) fn set_layout_of(
        &self,
        bindings: &[vk::DescriptorSetLayoutBinding<'_>],
        mut flags: vk::DescriptorSetLayoutCreateFlags,
    ) -> SetLayout {
        if self.device.model() == BindingModel::Buffer {
            flags |= vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT;
        }
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(bindings).flags(flags);
        let handle = unsafe { self.gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
        self.set_layouts.borrow_mut().push(handle);
        unsafe { SetLayout::new(handle, &info) }.unwrap()
    }

    pub(crate) fn pipeline(&self, sets: &[SetLayout]) -> PipelineLayoutInfo {
        self.pipeline_with(sets, &[])
    }

    pub(crate) fn pipeline_with(
        &self,
        sets: &[SetLayout],
        ranges: &[vk::PushConstantRange],
    ) -> PipelineLayoutInfo {
        self.try_pipeline(sets, ranges).unwrap()
    }

    pub(crate) fn try_pipeline(
        &self,
        sets: &[SetLayout],
        ranges: &[vk::PushConstantRange],
    ) -> Result<PipelineLayoutInfo, PipelineLayoutError> {
        let handles: Vec<_> = sets.iter().map(SetLayout::handle).collect();
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&handles).push_constant_ranges(ranges);
        let handle = unsafe { self.gpu.device().create_pipeline_layout(&info, None) }.unwrap();
        self.pipeline_layouts.borrow_mut().push(handle);
        unsafe { PipelineLayoutInfo::new(&self.device, handle, sets, ranges) }
    }

    pub(crate) fn buffer(&self) -> vk::Buffer {
        let mut usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::UNIFORM_BUFFER;
        if self.device.model() == BindingModel::Buffer {
            usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let info = vk::BufferCreateInfo::default().size(BUFFER_SIZE).usage(usage);
        let wish = AllocationCreateInfo {
            flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        let (buffer, mut memory) = unsafe { self.allocator.create_buffer(&info, &wish) }.unwrap();
        let number = self.buffers.borrow().len();
        for offset in (0..BUFFER_SIZE).step_by(256) {
            let bytes = content(number, offset).to_ne_bytes();
            self.allocator.copy_to_allocation(&bytes, &mut memory, offset).unwrap();
        }
        self.buffers.borrow_mut().push((buffer, memory));
        buffer
    }

    pub(crate) fn sampler(&self) -> vk::Sampler {
        let info = vk::SamplerCreateInfo::default();
        let sampler = unsafe { self.gpu.device().create_sampler(&info, None) }.unwrap();
        self.samplers.borrow_mut().push(sampler);
        sampler
    }

    /// Returns the address of a buffer, if the model is descriptor buffers.
    fn address(&self, buffer: vk::Buffer) -> Option<vk::DeviceAddress> {
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        let has = self.device.model() == BindingModel::Buffer;
        has.then(|| unsafe { self.gpu.device().get_buffer_device_address(&info) })
    }

    /// Describes 64 bytes of a buffer.
    pub(crate) fn range(&self, buffer: vk::Buffer, offset: u64) -> BufferDescriptor {
        let range = BufferDescriptor::new(buffer, offset, 64);
        self.address(buffer).map_or(range, |address| range.with_buffer_address(address))
    }

    pub(crate) fn storage(&self, buffer: vk::Buffer, offset: u64) -> Descriptor {
        Descriptor::StorageBuffer(self.range(buffer, offset))
    }

    pub(crate) fn uniform(&self, buffer: vk::Buffer, offset: u64) -> Descriptor {
        Descriptor::UniformBuffer(self.range(buffer, offset))
    }

    /// Returns the value that a shader reads through a descriptor of this buffer and offset.
    pub(crate) fn content(&self, buffer: vk::Buffer, offset: u64) -> u32 {
        let number = self.buffers.borrow().iter().position(|(known, _)| *known == buffer).unwrap();
        content(number, offset)
    }

    /// Returns a pipeline of the layout, whose shader reads the descriptors that the dispatch names.
    fn compute(&self, layout: &PipelineLayoutInfo) -> vk::Pipeline {
        let device = self.gpu.device();
        if self.module.get() == vk::ShaderModule::null() {
            let code = [0x0723_0203];
            let info = vk::ShaderModuleCreateInfo::default().code(&code);
            self.module.set(unsafe { device.create_shader_module(&info, None) }.unwrap());
        }
        *self.pipelines.borrow_mut().entry(layout.handle()).or_insert_with(|| {
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(self.module.get())
                .name(c"look");
            let mut flags = vk::PipelineCreateFlags::empty();
            if self.device.model() == BindingModel::Buffer {
                flags |= vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT;
            }
            let info =
                vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.handle()).flags(flags);
            unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) }.unwrap()[0]
        })
    }

    /// Records a dispatch that must find these contents.
    pub(crate) fn dispatch(
        &self,
        commands: vk::CommandBuffer,
        layout: &PipelineLayoutInfo,
        expected: impl IntoIterator<Item = (ArrayElement, u32)>,
    ) {
        self.dispatch_any(commands, layout);
        self.looks.lock().unwrap().orders.push_back(expected.into_iter().collect());
    }

    /// Records a dispatch without expectations.
    pub(crate) fn dispatch_any(&self, commands: vk::CommandBuffer, layout: &PipelineLayoutInfo) {
        let pipeline = self.compute(layout);
        let device = self.gpu.device();
        unsafe { device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline) };
        unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
    }

    /// Runs a command buffer to its end. Panics if a dispatch did not find its contents.
    #[track_caller]
    pub(crate) fn run(&self, commands: vk::CommandBuffer) {
        let device = self.gpu.device();
        unsafe { device.end_command_buffer(commands) }.unwrap();
        let buffers = [commands];
        let submit = [vk::SubmitInfo::default().command_buffers(&buffers)];
        unsafe { device.queue_submit(self.gpu.queue(), &submit, vk::Fence::null()) }.unwrap();
        unsafe { device.device_wait_idle() }.unwrap();
        self.gpu.assert_silent();
        let looks = self.looks.lock().unwrap();
        assert!(looks.faults.is_empty(), "{:#?}", looks.faults);
        assert!(looks.orders.is_empty(), "{} dispatches did not run", looks.orders.len());
    }

    /// Ends and runs a recording of the binder, and collects the resources that it used.
    #[track_caller]
    pub(crate) fn finish(&self, binder: &mut TestBinder, commands: vk::CommandBuffer) {
        let clock = Clock::new();
        let ticket = clock.open(clock.add_timeline().unwrap());
        binder.flush(ticket).unwrap();
        self.run(commands);
        clock.submit(ticket, 1).unwrap();
        clock.completed(ticket.timeline(), 1);
        binder.collect(&clock).unwrap();
        binder.validate();
    }

    pub(crate) fn buffers<const N: usize>(&self) -> [vk::Buffer; N] {
        std::array::from_fn(|_| self.buffer())
    }

    /// Returns a command buffer in the recording state.
    pub(crate) fn commands(&self) -> vk::CommandBuffer {
        let device = self.gpu.device();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
        let info = vk::CommandBufferBeginInfo::default();
        unsafe { device.begin_command_buffer(commands, &info) }.unwrap();
        commands
    }

    /// Returns the buffer and offset that a shader finds, or `None` if nothing is bound or written.
    pub(crate) fn seen(
        &self,
        commands: vk::CommandBuffer,
        point: BindPoint,
        layout: &PipelineLayoutInfo,
        at: (u32, u32, u32),
    ) -> Option<(vk::Buffer, u64)> {
        match unsafe { self.gpu.bound_descriptor(commands, point.to_vk(), layout.handle(), at) }? {
            (sim::SimulatedDescriptor::Buffer { buffer, offset, .. }, dynamic) => {
                Some((buffer, offset + dynamic))
            }
            other => panic!("{other:?} is no buffer"),
        }
    }

    pub(crate) fn bound(
        &self,
        commands: vk::CommandBuffer,
        layout: &PipelineLayoutInfo,
        set: u32,
    ) -> Option<vk::DescriptorSet> {
        self.gpu.bound_set(commands, POINT.to_vk(), layout.handle(), set).map(|(set, _)| set)
    }

    /// Returns the number of calls of each function.
    pub(crate) fn calls<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        names.map(|name| self.gpu.calls(name))
    }

    /// Returns the number of all driver calls, for tests that expect none.
    pub(crate) fn all_calls(&self) -> u64 {
        self.gpu.call_counts().iter().map(|(_, count)| count).sum()
    }
}

impl End for TestBinder {
    fn end(self) {
        unsafe { self.destroy() };
    }
}

impl End for Fixture {
    fn end(self) {
        self.gpu.assert_silent();
        let device = self.gpu.device();
        unsafe { device.destroy_command_pool(self.pool, None) };
        for (buffer, memory) in self.buffers.take() {
            unsafe { self.allocator.destroy_buffer(buffer, memory) }.unwrap();
        }
        for layout in self.pipeline_layouts.take() {
            unsafe { device.destroy_pipeline_layout(layout, None) };
        }
        for layout in self.set_layouts.take() {
            unsafe { device.destroy_descriptor_set_layout(layout, None) };
        }
        for sampler in self.samplers.take() {
            unsafe { device.destroy_sampler(sampler, None) };
        }
        for pipeline in self.pipelines.take().into_values() {
            unsafe { device.destroy_pipeline(pipeline, None) };
        }
        unsafe { device.destroy_shader_module(self.module.get(), None) };
        let Self { gpu, device, allocator, .. } = self;
        drop((device, allocator));
        let messages = gpu.finish();
        assert!(messages.is_empty(), "{messages:?}");
    }
}

/// Describes a storage buffer of 64 bytes.
pub(crate) fn storage(buffer: vk::Buffer, offset: u64) -> Descriptor {
    Descriptor::StorageBuffer(BufferDescriptor::new(buffer, offset, 64))
}

pub(crate) fn uniform(buffer: vk::Buffer, offset: u64) -> Descriptor {
    Descriptor::UniformBuffer(BufferDescriptor::new(buffer, offset, 64))
}

pub(crate) fn dynamic(buffer: vk::Buffer, offset: u64) -> Descriptor {
    Descriptor::UniformBufferDynamic(BufferDescriptor::new(buffer, offset, 64))
}

/// Commits, checks the binder's state, and checks that the driver emitted no message.
#[track_caller]
pub(crate) fn commit(
    fixture: &Fixture,
    binder: &mut TestBinder,
    commands: vk::CommandBuffer,
    point: BindPoint,
) {
    unsafe { binder.commit(commands, point) }.unwrap();
    binder.validate();
    fixture.gpu.assert_silent();
}
