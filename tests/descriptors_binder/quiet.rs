//! A device whose descriptor functions do nothing, for measuring what the binder itself does. Memory and buffers are
//! the simulated device's, so that pages of descriptors can be written.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use ash::vk::Handle as _;
use sublet::descriptor::{
    Binder, BinderCreateInfo, BindingModel, BufferDescriptor, Descriptor, DescriptorDevice,
    DescriptorDeviceCreateInfo, DescriptorKind, ImageDescriptor, PipelineLayoutInfo, SetLayout,
};
use sublet::sim::{Gpu, Profile};
use sublet::{Allocator, AllocatorCreateInfo};

static LOOKUP: OnceLock<vk::PFN_vkGetDeviceProcAddr> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(1);

unsafe extern "system" fn create_pool(
    _: vk::Device,
    _: *const vk::DescriptorPoolCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    pool: *mut vk::DescriptorPool,
) -> vk::Result {
    // SAFETY: where the caller wants the handle.
    unsafe { pool.write(vk::DescriptorPool::from_raw(NEXT.fetch_add(1, Ordering::Relaxed))) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_pool(
    _: vk::Device,
    _: vk::DescriptorPool,
    _: *const vk::AllocationCallbacks<'_>,
) {
}

unsafe extern "system" fn reset_pool(
    _: vk::Device,
    _: vk::DescriptorPool,
    _: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn allocate_sets(
    _: vk::Device,
    _: *const vk::DescriptorSetAllocateInfo<'_>,
    set: *mut vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: where the caller wants the handle of the one set.
    unsafe { set.write(vk::DescriptorSet::from_raw(NEXT.fetch_add(1, Ordering::Relaxed))) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn create_template(
    _: vk::Device,
    _: *const vk::DescriptorUpdateTemplateCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    template: *mut vk::DescriptorUpdateTemplate,
) -> vk::Result {
    // SAFETY: where the caller wants the handle.
    unsafe { template.write(vk::DescriptorUpdateTemplate::from_raw(1)) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_template(
    _: vk::Device,
    _: vk::DescriptorUpdateTemplate,
    _: *const vk::AllocationCallbacks<'_>,
) {
}

unsafe extern "system" fn with_template(
    _: vk::Device,
    _: vk::DescriptorSet,
    _: vk::DescriptorUpdateTemplate,
    _: *const c_void,
) {
}

unsafe extern "system" fn bind_sets(
    _: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    _: vk::PipelineLayout,
    _: u32,
    _: u32,
    _: *const vk::DescriptorSet,
    _: u32,
    _: *const u32,
) {
}

unsafe extern "system" fn push_template(
    _: vk::CommandBuffer,
    _: vk::DescriptorUpdateTemplate,
    _: vk::PipelineLayout,
    _: u32,
    _: *const c_void,
) {
}

unsafe extern "system" fn descriptor(
    _: vk::Device,
    _: *const vk::DescriptorGetInfoEXT<'_>,
    size: usize,
    bytes: *mut c_void,
) {
    // SAFETY: as many bytes as the caller says.
    unsafe { bytes.write_bytes(1, size) };
}

unsafe extern "system" fn bind_buffers(
    _: vk::CommandBuffer,
    _: u32,
    _: *const vk::DescriptorBufferBindingInfoEXT<'_>,
) {
}

unsafe extern "system" fn set_offsets(
    _: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    _: vk::PipelineLayout,
    _: u32,
    _: u32,
    _: *const u32,
    _: *const vk::DeviceSize,
) {
}

macro_rules! function {
    ($function:path as $pfn:ident) => {{
        let typed: vk::$pfn = $function;
        // SAFETY: whoever asks for the name calls it with this type.
        Some(unsafe { std::mem::transmute::<vk::$pfn, unsafe extern "system" fn()>(typed) })
    }};
}

unsafe extern "system" fn lookup(device: vk::Device, name: *const c_char) -> vk::PFN_vkVoidFunction {
    // SAFETY: names end with a zero.
    match unsafe { CStr::from_ptr(name) }.to_str().ok()? {
        "vkCreateDescriptorPool" => function!(create_pool as PFN_vkCreateDescriptorPool),
        "vkDestroyDescriptorPool" => function!(destroy_pool as PFN_vkDestroyDescriptorPool),
        "vkResetDescriptorPool" => function!(reset_pool as PFN_vkResetDescriptorPool),
        "vkAllocateDescriptorSets" => function!(allocate_sets as PFN_vkAllocateDescriptorSets),
        "vkCreateDescriptorUpdateTemplate" => {
            function!(create_template as PFN_vkCreateDescriptorUpdateTemplate)
        }
        "vkDestroyDescriptorUpdateTemplate" => {
            function!(destroy_template as PFN_vkDestroyDescriptorUpdateTemplate)
        }
        "vkUpdateDescriptorSetWithTemplate" => {
            function!(with_template as PFN_vkUpdateDescriptorSetWithTemplate)
        }
        "vkCmdBindDescriptorSets" => function!(bind_sets as PFN_vkCmdBindDescriptorSets),
        "vkCmdPushDescriptorSetWithTemplateKHR" => {
            function!(push_template as PFN_vkCmdPushDescriptorSetWithTemplateKHR)
        }
        "vkGetDescriptorEXT" => function!(descriptor as PFN_vkGetDescriptorEXT),
        "vkCmdBindDescriptorBuffersEXT" => function!(bind_buffers as PFN_vkCmdBindDescriptorBuffersEXT),
        "vkCmdSetDescriptorBufferOffsetsEXT" => {
            function!(set_offsets as PFN_vkCmdSetDescriptorBufferOffsetsEXT)
        }
        "vkSetDebugUtilsObjectNameEXT" => None,
        // SAFETY: the caller's own promise.
        _ => unsafe { LOOKUP.get()?(device, name) },
    }
}

/// How descriptors are bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Sets,
    Push,
    Buffer,
}

pub(crate) struct Quiet {
    // Dropped in this order.
    pub(crate) binder: Binder<std::rc::Rc<Allocator>>,
    pub(crate) layout: PipelineLayoutInfo,
    pub(crate) commands: vk::CommandBuffer,
    set_layout: vk::DescriptorSetLayout,
    pipeline_layout: vk::PipelineLayout,
    gpu: Gpu,
}

/// What a set has: three uniform buffers, two storage buffers and four textures.
pub(crate) const SHAPES: [(DescriptorKind, u32); 3] = [
    (DescriptorKind::UniformBuffer, 3),
    (DescriptorKind::StorageBuffer, 2),
    (DescriptorKind::CombinedImageSampler, 4),
];

/// Descriptors of the set's bindings; `which` tells them apart.
pub(crate) fn descriptors(which: u64) -> ([Descriptor; 3], [Descriptor; 2], [Descriptor; 4]) {
    let buffer = |offset| {
        BufferDescriptor::new(vk::Buffer::from_raw(which), offset, 256).with_buffer_address(which << 20)
    };
    let image = |raw| Descriptor::CombinedImageSampler {
        sampler: vk::Sampler::from_raw(which),
        image: ImageDescriptor::new(vk::ImageView::from_raw(raw), vk::ImageLayout::GENERAL),
    };
    (
        [0, 256, 512].map(|offset| Descriptor::UniformBuffer(buffer(offset))),
        [768, 1024].map(|offset| Descriptor::StorageBuffer(buffer(offset))),
        [1, 2, 3, 4].map(image),
    )
}

impl Quiet {
    pub(crate) fn new(way: Way) -> Self {
        let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
        let _ = LOOKUP.set(gpu.instance().fp_v1_0().get_device_proc_addr);
        // SAFETY: the handles are live and outlive the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let mut info = DescriptorDeviceCreateInfo::for_gpu(&gpu);
        info.model = if way == Way::Buffer { BindingModel::Buffer } else { BindingModel::Sets };
        info.functions.get_device_proc_addr = Some(lookup);
        // SAFETY: the handles are live, and outlive everything.
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let bindings: Vec<_> = (0..)
            .zip(SHAPES)
            .map(|(number, (kind, count))| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(number)
                    .descriptor_type(kind.to_vk())
                    .descriptor_count(count)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(match way {
            Way::Sets => vk::DescriptorSetLayoutCreateFlags::empty(),
            Way::Push => vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
            Way::Buffer => vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT,
        });
        // SAFETY: the create-info is valid.
        let set_layout = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
        let layouts = [set_layout];
        let pipeline = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        // SAFETY: the create-info is valid.
        let pipeline_layout = unsafe { gpu.device().create_pipeline_layout(&pipeline, None) }.unwrap();
        // SAFETY: the layout was made from it.
        let sets = [unsafe { SetLayout::new(set_layout, &info) }.unwrap()];
        // SAFETY: the pipeline layout was made from these, and lives longer.
        let layout = unsafe { PipelineLayoutInfo::new(&device, pipeline_layout, &sets, &[]) }.unwrap();
        // SAFETY: the allocator is of the device.
        let binder =
            unsafe { Binder::new(&device, std::rc::Rc::new(allocator), &BinderCreateInfo::default()) };
        let binder = binder.unwrap();
        Self { binder, layout, commands: vk::CommandBuffer::from_raw(1), set_layout, pipeline_layout, gpu }
    }

    pub(crate) fn close(self) {
        let Self { binder, layout, set_layout, pipeline_layout, gpu, .. } = self;
        // SAFETY: nothing was submitted.
        unsafe { binder.destroy() };
        drop(layout);
        // SAFETY: nobody uses it any more.
        unsafe { gpu.device().destroy_pipeline_layout(pipeline_layout, None) };
        // SAFETY: nobody uses it any more.
        unsafe { gpu.device().destroy_descriptor_set_layout(set_layout, None) };
        assert!(gpu.finish().is_empty());
    }
}
