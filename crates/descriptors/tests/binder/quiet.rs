//! A device whose descriptor functions do nothing, to measure the binder alone. Memory and buffers are simulated, so
//! that pages of descriptors can be written.

use std::ffi::{CStr, c_char, c_void};
use std::sync::{LazyLock, OnceLock};

use ash::vk;
use ash::vk::Handle as _;
use sublet::sim::{Gpu, NullGpu, Profile};
use sublet::{Allocator, AllocatorCreateInfo};
use sublet_descriptors::{
    Binder, BinderCreateInfo, BindingModel, BufferDescriptor, Descriptor, DescriptorDevice,
    DescriptorDeviceCreateInfo, DescriptorKind, ImageDescriptor, PipelineLayoutInfo, SetLayout,
};

static LOOKUP: OnceLock<vk::PFN_vkGetDeviceProcAddr> = OnceLock::new();
/// A device whose functions do nothing. Those named in [`QUIET`] ignore their handles.
static NULL: LazyLock<NullGpu> = LazyLock::new(|| NullGpu::new(Profile::by_name("nvidia-h200").unwrap()));

const QUIET: [&CStr; 11] = [
    c"vkCreateDescriptorPool",
    c"vkDestroyDescriptorPool",
    c"vkResetDescriptorPool",
    c"vkAllocateDescriptorSets",
    c"vkCreateDescriptorUpdateTemplate",
    c"vkDestroyDescriptorUpdateTemplate",
    c"vkUpdateDescriptorSetWithTemplate",
    c"vkCmdBindDescriptorSets",
    c"vkCmdPushDescriptorSetWithTemplateKHR",
    c"vkCmdBindDescriptorBuffersEXT",
    c"vkCmdSetDescriptorBufferOffsetsEXT",
];

unsafe extern "system" fn descriptor(
    _: vk::Device,
    _: *const vk::DescriptorGetInfoEXT<'_>,
    size: usize,
    bytes: *mut c_void,
) {
    // SAFETY: the caller's buffer has `size` bytes.
    unsafe { bytes.write_bytes(1, size) };
}

unsafe extern "system" fn lookup(device: vk::Device, p_name: *const c_char) -> vk::PFN_vkVoidFunction {
    // SAFETY: names end with a zero byte.
    let name = unsafe { CStr::from_ptr(p_name) };
    if name == c"vkGetDescriptorEXT" {
        let typed: vk::PFN_vkGetDescriptorEXT = descriptor;
        // SAFETY: the caller calls the function of this name with this type.
        return Some(unsafe {
            std::mem::transmute::<vk::PFN_vkGetDescriptorEXT, unsafe extern "system" fn()>(typed)
        });
    }
    if name == c"vkSetDebugUtilsObjectNameEXT" {
        return None;
    }
    let get = NULL.instance().fp_v1_0().get_device_proc_addr;
    let (get, device) =
        if QUIET.contains(&name) { (&get, NULL.device().handle()) } else { (LOOKUP.get()?, device) };
    // SAFETY: the caller upholds the same requirements, for either device.
    unsafe { get(device, p_name) }
}

/// The ways to bind descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Sets,
    Push,
    Buffer,
}

pub(crate) struct Quiet {
    // The fields are dropped in this order.
    pub(crate) binder: Binder<std::rc::Rc<Allocator>>,
    pub(crate) layout: PipelineLayoutInfo,
    pub(crate) commands: vk::CommandBuffer,
    set_layout: vk::DescriptorSetLayout,
    pipeline_layout: vk::PipelineLayout,
    gpu: Gpu,
}

/// The shape of a set: three uniform buffers, two storage buffers and four textures.
pub(crate) const SHAPES: [(DescriptorKind, u32); 3] = [
    (DescriptorKind::UniformBuffer, 3),
    (DescriptorKind::StorageBuffer, 2),
    (DescriptorKind::CombinedImageSampler, 4),
];

/// Returns descriptors for the set's bindings. They differ for each `which`.
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
        // SAFETY: the handles are live, and outlive the value.
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
        // SAFETY: the layout was created from this create-info.
        let sets = [unsafe { SetLayout::new(set_layout, &info) }.unwrap()];
        // SAFETY: the pipeline layout was created from these, and outlives the value.
        let layout = unsafe { PipelineLayoutInfo::new(&device, pipeline_layout, &sets, &[]) }.unwrap();
        // SAFETY: the allocator belongs to the device.
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
        // SAFETY: the device does not use it any more.
        unsafe { gpu.device().destroy_pipeline_layout(pipeline_layout, None) };
        // SAFETY: the device does not use it any more.
        unsafe { gpu.device().destroy_descriptor_set_layout(set_layout, None) };
        assert!(gpu.finish().is_empty());
    }
}
