//! Descriptors in memory that shaders find.
#![expect(unsafe_code, reason = "tests call Vulkan")]

pub(super) use ash::vk;
pub(super) use ash::vk::BufferUsageFlags as Usage;
pub(super) use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
pub(super) use ash::vk::DescriptorType as Type;

pub(super) use crate::execution::kernel::tests::fixture::{Buffer, KernelFixture, POINT};
use crate::facts::arithmetic::{align_up, host_size, widen};
use crate::facts::profiles::{ALL, DescriptorBufferLimits};
use crate::objects::descriptors::contents::SimulatedDescriptor;

pub(super) const RESOURCES: Usage =
    Usage::from_raw(Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT.as_raw() | Usage::SHADER_DEVICE_ADDRESS.as_raw());
pub(super) const BOTH: Usage =
    Usage::from_raw(RESOURCES.as_raw() | Usage::SAMPLER_DESCRIPTOR_BUFFER_EXT.as_raw());
pub(super) const STORAGE: Usage =
    Usage::from_raw(Usage::STORAGE_BUFFER.as_raw() | Usage::SHADER_DEVICE_ADDRESS.as_raw());
pub(super) const UNIFORM: Usage =
    Usage::from_raw(Usage::UNIFORM_BUFFER.as_raw() | Usage::SHADER_DEVICE_ADDRESS.as_raw());

/// The functions of the extension, and the sizes that the GPU says.
pub(super) struct Extension {
    pub(super) functions: ash::ext::descriptor_buffer::Device,
    pub(super) limits: DescriptorBufferLimits,
}

impl Extension {
    pub(super) fn of(fixture: &KernelFixture) -> Self {
        Self {
            functions: ash::ext::descriptor_buffer::Device::new(fixture.gpu.instance(), fixture.device()),
            limits: fixture.gpu.profile().limits.descriptor_buffer.unwrap(),
        }
    }

    /// The bytes of a buffer's descriptor.
    pub(super) fn buffer(&self, kind: Type, address: u64, range: u64) -> Vec<u8> {
        self.buffer_of_size(kind, (address, range), self.limits.size(kind).unwrap())
    }

    pub(super) fn buffer_of_size(&self, kind: Type, (address, range): (u64, u64), size: usize) -> Vec<u8> {
        let format = vk::Format::R32_UINT;
        let buffer = vk::DescriptorAddressInfoEXT::default().address(address).range(range).format(format);
        let data = vk::DescriptorDataEXT { p_storage_buffer: &buffer };
        self.get(kind, data, size)
    }

    pub(super) fn image(&self, kind: Type, view: vk::ImageView, sampler: vk::Sampler) -> Vec<u8> {
        let image =
            vk::DescriptorImageInfo { sampler, image_view: view, image_layout: vk::ImageLayout::GENERAL };
        let data = vk::DescriptorDataEXT { p_sampled_image: &image };
        self.get(kind, data, self.limits.size(kind).unwrap())
    }

    pub(super) fn get(&self, kind: Type, data: vk::DescriptorDataEXT<'_>, size: usize) -> Vec<u8> {
        let info = vk::DescriptorGetInfoEXT::default().ty(kind).data(data);
        let mut bytes = vec![0; size];
        unsafe { self.functions.get_descriptor(&info, &mut bytes) };
        bytes
    }

    pub(super) fn size(&self, layout: vk::DescriptorSetLayout) -> u64 {
        unsafe { self.functions.get_descriptor_set_layout_size(layout) }
    }

    pub(super) fn offset(&self, layout: vk::DescriptorSetLayout, binding: u32) -> u64 {
        unsafe { self.functions.get_descriptor_set_layout_binding_offset(layout, binding) }
    }

    pub(super) fn bind(&self, commands: vk::CommandBuffer, buffers: &[(u64, Usage)]) {
        let info = |&(address, usage): &(u64, Usage)| {
            vk::DescriptorBufferBindingInfoEXT::default().address(address).usage(usage)
        };
        let infos: Vec<_> = buffers.iter().map(info).collect();
        unsafe { self.functions.cmd_bind_descriptor_buffers(commands, &infos) };
    }

    /// Binds a buffer for descriptors, with the first set at its start.
    pub(super) fn at_start(
        &self,
        commands: vk::CommandBuffer,
        layout: vk::PipelineLayout,
        buffer: Buffer,
        usage: Usage,
    ) {
        self.bind(commands, &[(buffer.address, usage)]);
        self.set(commands, layout, 0, (0, 0));
    }

    pub(super) fn set(
        &self,
        commands: vk::CommandBuffer,
        layout: vk::PipelineLayout,
        set: u32,
        place: (u32, u64),
    ) {
        let (buffers, offsets) = ([place.0], [place.1]);
        unsafe {
            self.functions.cmd_set_descriptor_buffer_offsets(commands, POINT, layout, set, &buffers, &offsets)
        };
    }
}

/// The profiles that have descriptor buffers.
pub(super) fn profiles() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|profile| profile.features.descriptor_buffer).map(|profile| profile.name)
}

pub(super) fn pipeline(fixture: &KernelFixture, layout: vk::PipelineLayout) -> vk::Pipeline {
    fixture.try_pipeline(layout, c"main", vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT).unwrap()
}

/// A set layout for descriptor buffers, a pipeline layout with that one set, and a pipeline.
pub(super) fn one_set(
    fixture: &KernelFixture,
    kinds: &[(Type, u32)],
) -> (vk::DescriptorSetLayout, vk::PipelineLayout, vk::Pipeline) {
    let set_layout = fixture.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, kinds);
    let layout = fixture.layout(&[set_layout]);
    (set_layout, layout, pipeline(fixture, layout))
}

/// The first byte of a buffer that the device sees.
pub(super) fn first(fixture: &KernelFixture, buffer: Buffer) -> u8 {
    fixture.bytes(buffer, 1)[0]
}

#[test]
fn a_gpu_says_what_its_profile_says() {
    for name in profiles() {
        let fixture = KernelFixture::new(name);
        let limits = Extension::of(&fixture).limits;
        let mut buffers = vk::PhysicalDeviceDescriptorBufferPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut buffers);
        let (instance, physical) = (fixture.gpu.instance(), fixture.gpu.physical_device());
        unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
        assert_eq!(buffers.descriptor_buffer_offset_alignment, limits.offset_alignment);
        assert_eq!(buffers.storage_buffer_descriptor_size, limits.storage_buffer);
        assert_eq!(buffers.robust_uniform_buffer_descriptor_size, limits.uniform_buffer);
        assert_eq!(buffers.max_resource_descriptor_buffer_range, limits.max_range);
        let mut features = vk::PhysicalDeviceDescriptorBufferFeaturesEXT::default();
        let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut features);
        unsafe { instance.get_physical_device_features2(physical, &mut all) };
        assert_eq!((features.descriptor_buffer, features.descriptor_buffer_capture_replay), (1, 0));
    }
}

#[test]
fn a_shader_finds_each_set_at_its_offset() {
    for name in profiles() {
        let fixture = KernelFixture::new(name);
        let extension = Extension::of(&fixture);
        let kinds = [(Type::UNIFORM_BUFFER, 3), (Type::STORAGE_BUFFER, 5)];
        let set_layout = fixture.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &kinds);
        let layout = fixture.layout(&[set_layout, set_layout]);
        let pipeline = pipeline(&fixture, layout);
        let size = extension.size(set_layout);
        let (from, to) = (fixture.buffer(1024, UNIFORM), fixture.buffer(1024, STORAGE));
        let descriptors = fixture.buffer(size * 4, RESOURCES);
        // Sets 1 and 3 of the buffer; elements 2 and 4 of their bindings.
        for set in [1, 3] {
            let start = set * size;
            let (uniform, storage) = (extension.offset(set_layout, 0), extension.offset(set_layout, 1));
            let element = start + uniform + 2 * widen(extension.limits.uniform_buffer);
            let bytes = extension.buffer(Type::UNIFORM_BUFFER, from.address + set * 256, 16);
            fixture.write(descriptors, element, &bytes);
            let element = start + storage + 4 * widen(extension.limits.storage_buffer);
            let bytes = extension.buffer(Type::STORAGE_BUFFER, to.address + set * 256, 32);
            fixture.write(descriptors, element, &bytes);
            fixture.write(from, set * 256, &[u8::try_from(set).unwrap() * 10]);
        }
        fixture.gpu.set_kernel("main", |kernel| {
            for set in [0, 1] {
                let (from, to) = (kernel.buffer(set, 0, 2), kernel.buffer(set, 1, 4));
                assert_eq!((from.len(), to.len()), (16, 32));
                to.write_u32(28, from.read_u32(0));
            }
        });
        fixture.dispatch(pipeline, |commands| {
            extension.bind(commands, &[(descriptors.address, RESOURCES)]);
            extension.set(commands, layout, 0, (0, size));
            extension.set(commands, layout, 1, (0, size * 3));
        });
        let bytes = fixture.bytes(to, 1024);
        assert_eq!((bytes[256 + 28], bytes[768 + 28]), (10, 30), "{name}");
    }
}

#[test]
fn a_shader_finds_images_and_samplers() {
    for name in profiles() {
        let fixture = KernelFixture::new(name);
        let extension = Extension::of(&fixture);
        let kinds = [
            (Type::SAMPLER, 4),
            (Type::SAMPLED_IMAGE, 4),
            (Type::COMBINED_IMAGE_SAMPLER, 4),
            (Type::STORAGE_BUFFER, 1),
        ];
        let (set_layout, layout, pipeline) = one_set(&fixture, &kinds);
        let device = fixture.device();
        let info = crate::tests::image_info(16, vk::ImageTiling::OPTIMAL);
        let image = unsafe { device.create_image(&info, None) }.unwrap();
        let needs = unsafe { device.get_image_memory_requirements(image) };
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(needs.memory_type_bits.trailing_zeros());
        let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
        unsafe { device.bind_image_memory(image, memory, 0) }.unwrap();
        let range = crate::tests::whole(vk::ImageAspectFlags::COLOR);
        let info = vk::ImageViewCreateInfo::default().image(image).subresource_range(range);
        let view = unsafe { device.create_image_view(&info, None) }.unwrap();
        let sampler = unsafe { device.create_sampler(&vk::SamplerCreateInfo::default(), None) }.unwrap();
        let descriptors = fixture.buffer(extension.size(set_layout), BOTH);
        let limits = extension.limits;
        let place = |binding, element: usize, size: usize| {
            extension.offset(set_layout, binding) + widen(element) * widen(size)
        };
        let bytes =
            extension.get(Type::SAMPLER, vk::DescriptorDataEXT { p_sampler: &sampler }, limits.sampler);
        fixture.write(descriptors, place(0, 1, limits.sampler), &bytes);
        let bytes = extension.image(Type::SAMPLED_IMAGE, view, vk::Sampler::null());
        fixture.write(descriptors, place(1, 2, limits.sampled_image), &bytes);
        let bytes = extension.image(Type::COMBINED_IMAGE_SAMPLER, view, sampler);
        if limits.single_array {
            fixture.write(descriptors, place(2, 3, limits.combined_image_sampler), &bytes);
        } else {
            // All images first, and then all samplers.
            let (first, second) = bytes.split_at(limits.sampled_image);
            fixture.write(descriptors, place(2, 3, limits.sampled_image), first);
            let samplers = place(2, 4, limits.sampled_image);
            fixture.write(descriptors, samplers + 3 * widen(limits.sampler), second);
        }
        fixture.gpu.set_kernel("main", move |kernel| {
            assert_eq!(kernel.sampler(0, 0, 1), sampler);
            assert_eq!(kernel.image(0, 1, 2), view);
            assert_eq!((kernel.image(0, 2, 3), kernel.sampler(0, 2, 3)), (view, sampler));
        });
        let dispatch = |commands| {
            unsafe { device.cmd_bind_pipeline(commands, POINT, pipeline) };
            extension.at_start(commands, layout, descriptors, BOTH);
            unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
        };
        fixture.run(dispatch);
        fixture.gpu.assert_silent();
        // The resource of a descriptor in memory may be destroyed. Only a shader's access shows it.
        unsafe { device.destroy_sampler(sampler, None) };
        unsafe { device.destroy_image_view(view, None) };
        fixture.gpu.set_kernel("main", |kernel| {
            kernel.sampler(0, 0, 1);
            kernel.image(0, 1, 2);
            kernel.image(0, 2, 3);
        });
        fixture.run(dispatch);
        assert_eq!(fixture.reports(), ["SUBLET-descriptor-destroyed"; 3]);
    }
}

#[test]
fn bytes_that_are_no_descriptor_are_reported_and_read_zeroes() {
    for name in profiles() {
        let fixture = KernelFixture::new(name);
        let extension = Extension::of(&fixture);
        let kinds = [(Type::STORAGE_BUFFER, 6)];
        let (set_layout, layout, pipeline) = one_set(&fixture, &kinds);
        let descriptors = fixture.buffer(extension.size(set_layout), RESOURCES);
        let both = UNIFORM | STORAGE;
        let (kept, destroyed) = (fixture.buffer(256, both), fixture.buffer(256, STORAGE));
        fixture.write(kept, 0, &[0xff; 256]);
        let size = extension.limits.storage_buffer;
        let base = extension.offset(set_layout, 0);
        let write = |element: usize, bytes: &[u8]| {
            fixture.write(descriptors, base + widen(element) * widen(size), bytes);
        };
        let good = extension.buffer(Type::STORAGE_BUFFER, kept.address, 256);
        write(0, &good);
        // Element 1 is not written. Element 2 is overwritten in its middle, element 3 is another one's second half.
        write(2, &good);
        fixture.write(descriptors, base + 2 * widen(size) + 2, &[0xaa]);
        write(3, &[&good[size / 2..], &good[..size / 2]].concat());
        write(4, &extension.buffer(Type::STORAGE_BUFFER, destroyed.address, 256));
        // A descriptor of another type, as far as it goes.
        let mut uniform = extension.buffer(Type::UNIFORM_BUFFER, kept.address, 256);
        uniform.resize(size, 0);
        write(5, &uniform);
        fixture.destroy(destroyed);
        fixture.gpu.set_kernel("main", |kernel| {
            for element in 0..6 {
                let word = kernel.buffer(0, 0, element).read_u32(0);
                assert_eq!(word, if element == 0 { u32::MAX } else { 0 }, "element {element}");
            }
        });
        fixture.dispatch(pipeline, |commands| extension.at_start(commands, layout, descriptors, RESOURCES));
        let last = if extension.limits.uniform_buffer == size {
            "SUBLET-descriptor-type"
        } else {
            "SUBLET-descriptor-garbage"
        };
        let expected = [
            "SUBLET-descriptor-unwritten",
            "SUBLET-descriptor-garbage",
            "SUBLET-descriptor-garbage",
            "SUBLET-descriptor-destroyed",
            last,
        ];
        assert_eq!(fixture.reports(), expected, "{name}");
    }
}

#[test]
fn descriptors_that_the_queue_writes_are_there_for_what_follows() {
    let fixture = KernelFixture::new("nvidia-h200");
    let extension = Extension::of(&fixture);
    let (set_layout, layout, pipeline) = one_set(&fixture, &[(Type::STORAGE_BUFFER, 1)]);
    let target = fixture.buffer(64, STORAGE);
    let staging = fixture.buffer(64, Usage::TRANSFER_SRC);
    let descriptors = fixture.buffer(extension.size(set_layout), RESOURCES | Usage::TRANSFER_DST);
    fixture.write(staging, 0, &extension.buffer(Type::STORAGE_BUFFER, target.address, 64));
    fixture.gpu.set_kernel("main", |kernel| kernel.buffer(0, 0, 0).write(0, &[9]));
    fixture.run(|commands| {
        let dst_offset = extension.offset(set_layout, 0);
        let copy = [vk::BufferCopy { src_offset: 0, dst_offset, size: 16 }];
        unsafe { fixture.device().cmd_copy_buffer(commands, staging.handle, descriptors.handle, &copy) };
        unsafe { fixture.device().cmd_bind_pipeline(commands, POINT, pipeline) };
        extension.at_start(commands, layout, descriptors, RESOURCES);
        unsafe { fixture.device().cmd_dispatch(commands, 1, 1, 1) };
    });
    assert_eq!(first(&fixture, target), 9);
}

#[test]
fn what_lies_in_memory_can_be_looked_at_as_what_is_bound() {
    let fixture = KernelFixture::new("amd-rx-6700-xt");
    let extension = Extension::of(&fixture);
    let set_layout = fixture.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &[(Type::STORAGE_BUFFER, 2)]);
    let layout = fixture.layout(&[set_layout]);
    let descriptors = fixture.buffer(extension.size(set_layout), RESOURCES);
    let target = fixture.buffer(256, STORAGE);
    let bytes = extension.buffer(Type::STORAGE_BUFFER, target.address + 64, 32);
    fixture.write(descriptors, extension.offset(set_layout, 0) + widen(bytes.len()), &bytes);
    let commands = fixture.record(|commands| extension.at_start(commands, layout, descriptors, RESOURCES));
    let look = |element| unsafe { fixture.gpu.bound_descriptor(commands, POINT, layout, (0, 0, element)) };
    let (kind, buffer) = (Type::STORAGE_BUFFER, target.handle);
    assert_eq!(look(1), Some((SimulatedDescriptor::Buffer { kind, buffer, offset: 64, range: 32 }, 0)));
    assert_eq!(look(0), None);
    assert_eq!(fixture.gpu.bound_set(commands, POINT, layout, 0), None);
}

#[test]
fn inline_uniform_blocks_are_the_bytes_themselves() {
    let fixture = KernelFixture::new("amd-rx-6800-windows");
    let extension = Extension::of(&fixture);
    let kinds = [(Type::STORAGE_BUFFER, 1), (Type::INLINE_UNIFORM_BLOCK, 32)];
    let (set_layout, layout, pipeline) = one_set(&fixture, &kinds);
    let target = fixture.buffer(64, STORAGE);
    let descriptors = fixture.buffer(extension.size(set_layout), RESOURCES);
    let storage = extension.buffer(Type::STORAGE_BUFFER, target.address, 64);
    fixture.write(descriptors, extension.offset(set_layout, 0), &storage);
    let block = extension.offset(set_layout, 1);
    assert_eq!(block % 16, 0);
    fixture.write(descriptors, block + 28, &[5, 0, 0, 0]);
    fixture.gpu.set_kernel("main", |kernel| {
        let block = kernel.buffer(0, 1, 0);
        assert_eq!(block.len(), 32);
        kernel.buffer(0, 0, 0).write_u32(0, block.read_u32(28));
    });
    fixture.dispatch(pipeline, |commands| extension.at_start(commands, layout, descriptors, RESOURCES));
    assert_eq!(first(&fixture, target), 5);
}

#[test]
fn binding_descriptor_buffers_again_forgets_the_offsets() {
    let fixture = KernelFixture::new("nvidia-h200");
    let extension = Extension::of(&fixture);
    let (set_layout, layout, pipeline) = one_set(&fixture, &[(Type::STORAGE_BUFFER, 1)]);
    let descriptors = fixture.buffer(extension.size(set_layout), RESOURCES);
    fixture.gpu.set_kernel("main", |kernel| assert!(kernel.buffer(0, 0, 0).is_empty()));
    fixture.dispatch(pipeline, |commands| {
        extension.at_start(commands, layout, descriptors, RESOURCES);
        extension.bind(commands, &[(descriptors.address, RESOURCES)]);
    });
    assert_eq!(fixture.reports(), ["VUID-vkCmdDispatch-None-08600"]);
}

#[test]
fn a_variable_count_goes_as_far_as_the_buffer() {
    let fixture = KernelFixture::new("nvidia-h200");
    let extension = Extension::of(&fixture);
    let device = fixture.device();
    let bindings = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(Type::STORAGE_BUFFER)
        .descriptor_count(1 << 16)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)];
    let flags = [vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT];
    let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    let info = vk::DescriptorSetLayoutCreateInfo::default()
        .flags(LayoutFlags::DESCRIPTOR_BUFFER_EXT)
        .bindings(&bindings)
        .push_next(&mut flags);
    let set_layout = unsafe { device.create_descriptor_set_layout(&info, None) }.unwrap();
    let layout = fixture.layout(&[set_layout]);
    let pipeline = pipeline(&fixture, layout);
    let base = extension.offset(set_layout, 0);
    let size = widen(extension.limits.storage_buffer);
    // Room for eight of them only.
    let descriptors = fixture.buffer(align_up(base, 64).unwrap() + 8 * size, RESOURCES);
    let target = fixture.buffer(64, STORAGE);
    let bytes = extension.buffer(Type::STORAGE_BUFFER, target.address, 64);
    fixture.write(descriptors, base + 7 * size, &bytes);
    fixture.gpu.set_kernel("main", |kernel| {
        kernel.buffer(0, 0, 7).write(0, &[3]);
        kernel.buffer(0, 0, 8).write(0, &[4]);
    });
    fixture.dispatch(pipeline, |commands| extension.at_start(commands, layout, descriptors, RESOURCES));
    assert_eq!(fixture.reports(), ["SUBLET-descriptor-destroyed"]);
    assert_eq!(first(&fixture, target), 3);
    assert!(host_size(extension.size(set_layout)).unwrap() >= (1 << 16) * 16);
}
