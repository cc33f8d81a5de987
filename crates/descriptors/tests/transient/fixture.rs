//! Fixture: a simulated GPU, layouts, and commands that use sets.

use ash::vk;
use sublet::retire::{Clock, Ticket, TimelineId};
use sublet::sim::{DescriptorPoolPolicy, DescriptorQuirk, Gpu, GpuBuilder, profiles::Profile};
use sublet_descriptors::{
    DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorQuirks, SetLayout, TransientError, TransientSets,
    TransientSetsCreateInfo,
};

pub(crate) use crate::held::{End, Held, hold};

pub(crate) const POLICIES: [DescriptorPoolPolicy; 3] =
    [DescriptorPoolPolicy::Strict, DescriptorPoolPolicy::CountsSets, DescriptorPoolPolicy::NeverRefuses];

pub(crate) const UNIFORM: vk::DescriptorType = vk::DescriptorType::UNIFORM_BUFFER;
pub(crate) const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
pub(crate) const IMAGE: vk::DescriptorType = vk::DescriptorType::SAMPLED_IMAGE;

pub(crate) fn size(kind: vk::DescriptorType, count: u32) -> vk::DescriptorPoolSize {
    vk::DescriptorPoolSize { ty: kind, descriptor_count: count }
}

/// Pools of one size.
pub(crate) fn fixed(max_sets: u32, sizes: &[vk::DescriptorPoolSize]) -> TransientSetsCreateInfo {
    TransientSetsCreateInfo::from_sizes(max_sets, sizes, vk::DescriptorPoolCreateFlags::empty()).unwrap()
}

pub(crate) struct Fixture {
    pub(crate) gpu: Gpu,
    pub(crate) device: DescriptorDevice,
    pub(crate) clock: Clock,
    pub(crate) timeline: TimelineId,
    layouts: Vec<vk::DescriptorSetLayout>,
    pipeline_layouts: Vec<vk::PipelineLayout>,
    commands: vk::CommandPool,
}

impl Fixture {
    pub(crate) fn new() -> Held<Self> {
        Self::with(|builder| builder)
    }

    pub(crate) fn with_policy(policy: DescriptorPoolPolicy) -> Held<Self> {
        Self::with(|builder| builder.descriptor_pools(policy))
    }

    /// Creates a driver with a fault. `known` is the quirk that the library assumes.
    pub(crate) fn with_quirk(fault: DescriptorQuirk, known: DescriptorQuirks) -> Held<Self> {
        let change = |builder: GpuBuilder| {
            builder.descriptor_quirks(fault).descriptor_pools(DescriptorPoolPolicy::Strict)
        };
        Self::build(change, Some(known))
    }

    pub(crate) fn with(change: impl FnOnce(GpuBuilder) -> GpuBuilder) -> Held<Self> {
        Self::build(change, None)
    }

    fn build(change: impl FnOnce(GpuBuilder) -> GpuBuilder, quirks: Option<DescriptorQuirks>) -> Held<Self> {
        let gpu = change(Gpu::builder(Profile::by_name("nvidia-h200").unwrap())).build();
        let info = DescriptorDeviceCreateInfo { quirks, ..DescriptorDeviceCreateInfo::for_gpu(&gpu) };
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.queue_family_index());
        let commands = unsafe { gpu.device().create_command_pool(&info, None) }.unwrap();
        hold(Self {
            gpu,
            device,
            clock,
            timeline,
            layouts: Vec::new(),
            pipeline_layouts: Vec::new(),
            commands,
        })
    }

    pub(crate) fn sets(&self, info: &TransientSetsCreateInfo) -> Held<TransientSets> {
        hold(TransientSets::new(&self.device, info).unwrap())
    }

    /// Creates a layout with these types and counts.
    pub(crate) fn layout(&mut self, kinds: &[(vk::DescriptorType, u32)]) -> SetLayout {
        self.layout_with(kinds, vk::DescriptorSetLayoutCreateFlags::empty())
    }

    pub(crate) fn layout_with(
        &mut self,
        kinds: &[(vk::DescriptorType, u32)],
        flags: vk::DescriptorSetLayoutCreateFlags,
    ) -> SetLayout {
        let bindings = bindings(kinds);
        self.layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags))
    }

    pub(crate) fn layout_of(&mut self, info: &vk::DescriptorSetLayoutCreateInfo<'_>) -> SetLayout {
        let handle = unsafe { self.gpu.device().create_descriptor_set_layout(info, None) }.unwrap();
        self.layouts.push(handle);
        unsafe { SetLayout::new(handle, info) }.unwrap()
    }

    /// Submits commands that bind the sets. They stay in flight while submissions are held.
    pub(crate) fn submit(&mut self, layout: &SetLayout, sets: &[vk::DescriptorSet]) {
        let device = self.gpu.device();
        let layouts = [layout.handle()];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        let pipeline_layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
        self.pipeline_layouts.push(pipeline_layout);
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(self.commands).command_buffer_count(1);
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
        unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
        for &set in sets {
            let point = vk::PipelineBindPoint::COMPUTE;
            unsafe {
                device.cmd_bind_descriptor_sets(commands[0], point, pipeline_layout, 0, &[set], &[]);
            };
        }
        unsafe { device.end_command_buffer(commands[0]) }.unwrap();
        let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
        unsafe { device.queue_submit(self.gpu.queue(), &submits, vk::Fence::null()) }.unwrap();
    }

    /// Opens a ticket, which is done once `discard` is called with it.
    pub(crate) fn open(&self) -> Ticket {
        self.clock.open(self.timeline)
    }

    pub(crate) fn discard(&self, ticket: Ticket) {
        self.clock.discard(ticket).unwrap();
    }

    /// Ends a recording that uses the allocated sets and is never submitted.
    pub(crate) fn drop_recording(&self, sets: &mut TransientSets) {
        let ticket = self.open();
        sets.flush(ticket).unwrap();
        self.discard(ticket);
    }

    /// Returns the number of live descriptor pools.
    pub(crate) fn live_pools(&self) -> u64 {
        self.gpu.live().descriptor_pools
    }
}

impl End for Fixture {
    fn end(self) {
        let device = self.gpu.device();
        unsafe { device.device_wait_idle() }.unwrap();
        unsafe { device.destroy_command_pool(self.commands, None) };
        for &layout in &self.pipeline_layouts {
            unsafe { device.destroy_pipeline_layout(layout, None) };
        }
        for &layout in &self.layouts {
            unsafe { device.destroy_descriptor_set_layout(layout, None) };
        }
        assert_eq!(self.device.update_after_bind_used(), 0, "reserved for good");
        assert_eq!(self.live_pools(), 0, "pools are left");
        assert_eq!(self.gpu.descriptor_pool_overruns(), 0);
        drop(self.device);
        let messages = self.gpu.finish();
        assert!(messages.is_empty(), "{messages:?}");
    }
}

/// Returns a layout of one uniform buffer, and an allocator for its sets.
pub(crate) fn uniform(
    mut fixture: Held<Fixture>,
    info: &TransientSetsCreateInfo,
) -> (Held<Fixture>, SetLayout, Held<TransientSets>) {
    let layout = fixture.layout(&[(UNIFORM, 1)]);
    let sets = fixture.sets(info);
    (fixture, layout, sets)
}

pub(crate) fn bindings(kinds: &[(vk::DescriptorType, u32)]) -> Vec<vk::DescriptorSetLayoutBinding<'static>> {
    let binding = |(number, &(kind, count)): (u32, &(vk::DescriptorType, u32))| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(number)
            .descriptor_type(kind)
            .descriptor_count(count)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
    };
    (0..).zip(kinds).map(binding).collect()
}

/// Allocates a set. In these tests the layouts are live, and the next flush covers the set.
pub(crate) fn allocate(
    sets: &mut TransientSets,
    layout: &SetLayout,
) -> Result<vk::DescriptorSet, TransientError> {
    unsafe { sets.allocate(layout) }
}

/// Allocates `count` sets.
pub(crate) fn many(sets: &mut TransientSets, layout: &SetLayout, count: u32) {
    for _ in 0..count {
        allocate(sets, layout).unwrap();
    }
}

impl End for TransientSets {
    fn end(self) {
        unsafe { self.destroy() };
    }
}
