//! Calls that most of these tests make.
#![expect(unsafe_code, reason = "tests call Vulkan")]

pub(crate) use std::ffi::c_void;

pub(crate) use ash::vk;

pub(crate) use crate::facts::profiles::{ALL, Profile};
pub(crate) use crate::{Gpu, Message};

/// A profile with memory that is host visible but not coherent.
pub(crate) fn non_coherent() -> (&'static Profile, u32) {
    let with = ALL.iter().find_map(|profile| Some((*profile, type_with(profile, VISIBLE, COHERENT)?)));
    with.expect("a profile with non-coherent memory")
}

pub(crate) const VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_VISIBLE;
pub(crate) const COHERENT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_COHERENT;
pub(crate) const NONE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::empty();

/// The first memory type with some flags and without others.
pub(crate) fn type_with(
    profile: &Profile,
    with: vk::MemoryPropertyFlags,
    without: vk::MemoryPropertyFlags,
) -> Option<u32> {
    let special = vk::MemoryPropertyFlags::PROTECTED | vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD;
    let without = without | special;
    let found =
        profile.types.iter().position(|kind| kind.flags.contains(with) && !kind.flags.intersects(without));
    found.map(crate::facts::arithmetic::narrow)
}

pub(crate) fn profile(name: &str) -> &'static Profile {
    Profile::by_name(name).expect("a profile of this name")
}

/// A GPU with one coherent memory type, which everything can use.
pub(crate) fn simple() -> Gpu {
    Gpu::new(profile("lavapipe"))
}

pub(crate) fn buffer(gpu: &Gpu, size: u64, usage: vk::BufferUsageFlags) -> vk::Buffer {
    let info = vk::BufferCreateInfo::default().size(size).usage(usage);
    unsafe { gpu.device().create_buffer(&info, None) }.unwrap()
}

pub(crate) fn storage(gpu: &Gpu, size: u64) -> vk::Buffer {
    buffer(gpu, size, vk::BufferUsageFlags::STORAGE_BUFFER)
}

/// The first level and layer.
pub(crate) fn whole(aspect_mask: vk::ImageAspectFlags) -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange { aspect_mask, level_count: 1, layer_count: 1, ..Default::default() }
}

pub(crate) fn image_info(size: u32, tiling: vk::ImageTiling) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: size, height: size, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .tiling(tiling)
        .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST)
}

pub(crate) fn image(gpu: &Gpu, size: u32) -> vk::Image {
    unsafe { gpu.device().create_image(&image_info(size, vk::ImageTiling::OPTIMAL), None) }.unwrap()
}

pub(crate) fn needs(gpu: &Gpu, buffer: vk::Buffer) -> vk::MemoryRequirements {
    unsafe { gpu.device().get_buffer_memory_requirements(buffer) }
}

pub(crate) fn image_needs(gpu: &Gpu, image: vk::Image) -> vk::MemoryRequirements {
    unsafe { gpu.device().get_image_memory_requirements(image) }
}

pub(crate) fn allocate(gpu: &Gpu, size: u64, kind: u32) -> vk::DeviceMemory {
    let info = vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(kind);
    unsafe { gpu.device().allocate_memory(&info, None) }.unwrap()
}

pub(crate) fn map(
    gpu: &Gpu,
    memory: vk::DeviceMemory,
    offset: u64,
    size: u64,
) -> Result<*mut c_void, vk::Result> {
    unsafe { gpu.device().map_memory(memory, offset, size, vk::MemoryMapFlags::empty()) }
}

pub(crate) fn range(memory: vk::DeviceMemory, offset: u64, size: u64) -> vk::MappedMemoryRange<'static> {
    vk::MappedMemoryRange::default().memory(memory).offset(offset).size(size)
}

/// A command buffer that fills a buffer with sevens, and its pool.
pub(crate) fn filling(gpu: &Gpu, buffer: vk::Buffer) -> (vk::CommandPool, Vec<vk::CommandBuffer>) {
    let device = gpu.device();
    let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.queue_family_index());
    let pool = unsafe { device.create_command_pool(&info, None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    unsafe { device.cmd_fill_buffer(commands[0], buffer, 0, vk::WHOLE_SIZE, 7) };
    unsafe { device.end_command_buffer(commands[0]) }.unwrap();
    (pool, commands)
}

/// Destroys all that is alive on a GPU, what uses other objects before them.
pub(crate) fn destroy_all(gpu: &Gpu) {
    let (device, Some(object)) = (gpu.device(), gpu.state()) else { return };
    macro_rules! destroy {
        ($($destroy:ident: $($objects:ident).+;)*) => {$(
            let handles: Vec<_> = object.state.lock().$($objects).+.keys().copied().collect();
            handles.into_iter().for_each(|handle| unsafe { device.$destroy(handle, None) });
        )*};
    }
    destroy! {
        destroy_command_pool: commands.pools;
        destroy_pipeline: pipelines.pipelines;
        destroy_shader_module: pipelines.modules;
        destroy_framebuffer: passes.framebuffers;
        destroy_render_pass: passes.passes;
        destroy_descriptor_update_template: descriptors.templates;
        destroy_descriptor_pool: descriptors.pools;
        destroy_pipeline_layout: descriptors.pipeline_layouts;
        destroy_descriptor_set_layout: descriptors.layouts;
        destroy_sampler: descriptors.samplers;
        destroy_buffer_view: buffer_views;
        destroy_image_view: image_views;
        destroy_buffer: buffers;
        destroy_image: images;
        free_memory: memories;
        destroy_fence: sync.fences;
        destroy_semaphore: sync.semaphores;
        destroy_event: sync.events;
    }
}

/// The identifiers of the reports since the last call.
pub(crate) fn reports(gpu: &Gpu) -> Vec<&'static str> {
    gpu.take_messages().iter().map(|message: &Message| message.vuid).collect()
}

/// Asserts that a call was refused, and that it reported `rule` alone.
#[track_caller]
pub(crate) fn refuses<T>(gpu: &Gpu, rule: &str, result: Result<T, vk::Result>) {
    assert_eq!(result.err(), Some(WRONG), "{rule}");
    assert_eq!(reports(gpu), [rule]);
}

/// The result of a call that breaks a rule.
pub(crate) const WRONG: vk::Result = vk::Result::ERROR_VALIDATION_FAILED_EXT;
