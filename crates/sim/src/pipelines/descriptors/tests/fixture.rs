//! A GPU with short names for the steps that tests of descriptors share. It destroys what it makes.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use std::ops::Deref;

use ash::vk;
use ash::vk::DescriptorType as Type;
use ash::vk::Handle as _;

use crate::GpuBuilder;
use crate::commands::tests::fixture::CommandFixture;
use crate::tests::destroy_all;

pub(super) struct DescriptorFixture(CommandFixture);

impl Deref for DescriptorFixture {
    type Target = CommandFixture;

    fn deref(&self) -> &CommandFixture {
        &self.0
    }
}

/// One descriptor at a binding.
pub(super) fn at(binding: u32, kind: Type) -> vk::DescriptorSetLayoutBinding<'static> {
    many(binding, kind, 1)
}

pub(super) fn many(binding: u32, kind: Type, count: u32) -> vk::DescriptorSetLayoutBinding<'static> {
    vk::DescriptorSetLayoutBinding::default()
        .binding(binding)
        .descriptor_type(kind)
        .descriptor_count(count)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
}

impl DescriptorFixture {
    pub(super) fn new(builder: GpuBuilder) -> Self {
        Self(CommandFixture::of(builder.build()))
    }

    pub(super) fn try_layout(
        &self,
        info: &vk::DescriptorSetLayoutCreateInfo<'_>,
    ) -> Result<vk::DescriptorSetLayout, vk::Result> {
        unsafe { self.device().create_descriptor_set_layout(info, None) }
    }

    pub(super) fn layout(&self, bindings: &[vk::DescriptorSetLayoutBinding<'_>]) -> vk::DescriptorSetLayout {
        self.try_layout(&vk::DescriptorSetLayoutCreateInfo::default().bindings(bindings)).unwrap()
    }

    /// A layout with binding flags, and the flags that they need.
    pub(super) fn flagged(
        &self,
        bindings: &[vk::DescriptorSetLayoutBinding<'_>],
        flags: &[vk::DescriptorBindingFlags],
    ) -> vk::DescriptorSetLayout {
        let after = flags.iter().any(|flags| flags.contains(vk::DescriptorBindingFlags::UPDATE_AFTER_BIND));
        let pool = vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL;
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(bindings).push_next(&mut flags);
        self.try_layout(&if after { info.flags(pool) } else { info }).unwrap()
    }

    pub(super) fn push_layout(
        &self,
        bindings: &[vk::DescriptorSetLayoutBinding<'_>],
    ) -> vk::DescriptorSetLayout {
        let flags = vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
        self.try_layout(&vk::DescriptorSetLayoutCreateInfo::default().bindings(bindings).flags(flags))
            .unwrap()
    }

    pub(super) fn destroy_layout(&self, layout: vk::DescriptorSetLayout) {
        unsafe { self.device().destroy_descriptor_set_layout(layout, None) };
    }

    pub(super) fn pipeline_layout(&self, sets: &[vk::DescriptorSetLayout]) -> vk::PipelineLayout {
        self.pipeline_layout_with(sets, &[])
    }

    pub(super) fn pipeline_layout_with(
        &self,
        sets: &[vk::DescriptorSetLayout],
        ranges: &[vk::PushConstantRange],
    ) -> vk::PipelineLayout {
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(sets).push_constant_ranges(ranges);
        unsafe { self.device().create_pipeline_layout(&info, None) }.unwrap()
    }

    pub(super) fn try_pool(
        &self,
        info: &vk::DescriptorPoolCreateInfo<'_>,
    ) -> Result<vk::DescriptorPool, vk::Result> {
        unsafe { self.device().create_descriptor_pool(info, None) }
    }

    pub(super) fn pool(&self, max_sets: u32, sizes: &[(Type, u32)]) -> vk::DescriptorPool {
        self.pool_with(max_sets, sizes, vk::DescriptorPoolCreateFlags::empty())
    }

    pub(super) fn pool_with(
        &self,
        max_sets: u32,
        sizes: &[(Type, u32)],
        flags: vk::DescriptorPoolCreateFlags,
    ) -> vk::DescriptorPool {
        let sizes = pool_sizes(sizes);
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(max_sets).pool_sizes(&sizes).flags(flags);
        self.try_pool(&info).unwrap()
    }

    /// A pool for one set with one inline uniform block.
    pub(super) fn inline_pool(&self, sizes: &[(Type, u32)]) -> vk::DescriptorPool {
        let sizes = pool_sizes(sizes);
        let mut inline =
            vk::DescriptorPoolInlineUniformBlockCreateInfo::default().max_inline_uniform_block_bindings(1);
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        self.try_pool(&info.push_next(&mut inline)).unwrap()
    }

    pub(super) fn destroy_pool(&self, pool: vk::DescriptorPool) {
        unsafe { self.device().destroy_descriptor_pool(pool, None) };
    }

    pub(super) fn reset(&self, pool: vk::DescriptorPool) -> Result<(), vk::Result> {
        unsafe { self.device().reset_descriptor_pool(pool, vk::DescriptorPoolResetFlags::empty()) }
    }

    pub(super) fn sets(
        &self,
        pool: vk::DescriptorPool,
        layouts: &[vk::DescriptorSetLayout],
    ) -> Result<Vec<vk::DescriptorSet>, vk::Result> {
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(layouts);
        unsafe { self.device().allocate_descriptor_sets(&info) }
    }

    pub(super) fn set(
        &self,
        pool: vk::DescriptorPool,
        layout: vk::DescriptorSetLayout,
    ) -> Result<vk::DescriptorSet, vk::Result> {
        Ok(self.sets(pool, &[layout])?[0])
    }

    /// A set with so many descriptors in its variable binding.
    pub(super) fn variable(
        &self,
        pool: vk::DescriptorPool,
        layout: vk::DescriptorSetLayout,
        count: u32,
    ) -> Result<vk::DescriptorSet, vk::Result> {
        let (layouts, counts) = ([layout], [count]);
        let mut counts =
            vk::DescriptorSetVariableDescriptorCountAllocateInfo::default().descriptor_counts(&counts);
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        Ok(unsafe { self.device().allocate_descriptor_sets(&info.push_next(&mut counts)) }?[0])
    }

    pub(super) fn free(&self, pool: vk::DescriptorPool, set: vk::DescriptorSet) -> Result<(), vk::Result> {
        unsafe { self.device().free_descriptor_sets(pool, &[set]) }
    }

    pub(super) fn sampler(&self) -> vk::Sampler {
        unsafe { self.device().create_sampler(&vk::SamplerCreateInfo::default(), None) }.unwrap()
    }

    pub(super) fn template(
        &self,
        info: &vk::DescriptorUpdateTemplateCreateInfo<'_>,
    ) -> Result<vk::DescriptorUpdateTemplate, vk::Result> {
        unsafe { self.device().create_descriptor_update_template(info, None) }
    }

    /// A uniform, storage and texel buffer of 1024 bytes.
    pub(super) fn buffer(&self) -> vk::Buffer {
        let usage = vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER
            | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER;
        self.local(1024, usage)
    }

    pub(super) fn buffer_view(&self, buffer: vk::Buffer) -> vk::BufferView {
        let info = vk::BufferViewCreateInfo::default()
            .buffer(buffer)
            .format(vk::Format::R8G8B8A8_UNORM)
            .range(vk::WHOLE_SIZE);
        unsafe { self.device().create_buffer_view(&info, None) }.unwrap()
    }

    pub(super) fn image_view(&self, usage: vk::ImageUsageFlags) -> vk::ImageView {
        self.view_of(vk::Format::R8G8B8A8_UNORM, vk::ImageAspectFlags::COLOR, usage)
    }

    pub(super) fn view_of(
        &self,
        format: vk::Format,
        aspects: vk::ImageAspectFlags,
        usage: vk::ImageUsageFlags,
    ) -> vk::ImageView {
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(format)
            .extent(vk::Extent3D { width: 4, height: 4, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(usage);
        let image = self.image(&info);
        let range = crate::tests::whole(aspects);
        let info = vk::ImageViewCreateInfo::default().image(image).subresource_range(range);
        unsafe { self.device().create_image_view(&info, None) }.unwrap()
    }

    /// Writes one buffer to one descriptor.
    pub(super) fn write_buffer(
        &self,
        set: vk::DescriptorSet,
        (binding, element): (u32, u32),
        kind: Type,
        buffer: vk::Buffer,
    ) {
        let info = vk::DescriptorBufferInfo { buffer, offset: 0, range: 256 };
        self.write_buffers(set, (binding, element), kind, &[info]);
    }

    pub(super) fn write_buffers(
        &self,
        set: vk::DescriptorSet,
        (binding, element): (u32, u32),
        kind: Type,
        infos: &[vk::DescriptorBufferInfo],
    ) {
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(binding)
            .dst_array_element(element)
            .descriptor_type(kind)
            .buffer_info(infos);
        unsafe { self.device().update_descriptor_sets(&[write], &[]) };
    }

    pub(super) fn write_image(
        &self,
        set: vk::DescriptorSet,
        (binding, element): (u32, u32),
        kind: Type,
        info: vk::DescriptorImageInfo,
    ) {
        let infos = [info];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(binding)
            .dst_array_element(element)
            .descriptor_type(kind)
            .image_info(&infos);
        unsafe { self.device().update_descriptor_sets(&[write], &[]) };
    }

    pub(super) fn bind(&self, layout: vk::PipelineLayout, first: u32, sets: &[vk::DescriptorSet]) {
        self.bind_at(layout, first, sets, &[]);
    }

    pub(super) fn bind_at(
        &self,
        layout: vk::PipelineLayout,
        first: u32,
        sets: &[vk::DescriptorSet],
        offsets: &[u32],
    ) {
        let point = vk::PipelineBindPoint::COMPUTE;
        let commands = self.commands;
        unsafe { self.device().cmd_bind_descriptor_sets(commands, point, layout, first, sets, offsets) };
    }

    /// The set that is bound at a number, as a pipeline with a layout sees it.
    pub(super) fn bound(&self, layout: vk::PipelineLayout, number: u32) -> Option<vk::DescriptorSet> {
        let point = vk::PipelineBindPoint::COMPUTE;
        Some(self.gpu.bound_set(self.commands, point, layout, number)?.0)
    }

    /// Records a command buffer that binds a set, and submits it; it does not run yet.
    pub(super) fn pend(&self, layout: vk::PipelineLayout, set: vk::DescriptorSet) {
        self.gpu.hold_submissions(true);
        self.begin();
        self.bind(layout, 0, &[set]);
        self.end();
        self.submit().unwrap();
    }
}

pub(super) fn pool_sizes(sizes: &[(Type, u32)]) -> Vec<vk::DescriptorPoolSize> {
    sizes.iter().map(|&(ty, descriptor_count)| vk::DescriptorPoolSize { ty, descriptor_count }).collect()
}

impl Drop for DescriptorFixture {
    fn drop(&mut self) {
        unsafe { self.device().device_wait_idle() }.unwrap();
        destroy_all(&self.gpu);
        if !std::thread::panicking() {
            assert!(self.gpu.live().is_empty(), "{:?}", self.gpu.live());
            assert_eq!(self.gpu.take_messages(), []);
        }
    }
}

/// A handle that no object of the GPU has.
pub(super) fn foreign<H: vk::Handle>() -> H {
    H::from_raw(0x1234)
}

pub(super) fn null_set() -> vk::DescriptorSet {
    vk::DescriptorSet::from_raw(0)
}
