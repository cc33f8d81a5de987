//! Heaps of `VK_EXT_descriptor_heap`: the descriptors that shaders find, and requests that the store rejects.

use ash::vk;
use sublet::sim::{DescriptorHeapLimits, Gpu, Kernel, Profile};
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_descriptors::{
    BindingMapping, CreateHeapError, Descriptor, DescriptorDataError, DescriptorFeatures, DescriptorHeap,
    DescriptorKind, DescriptorSource, HeapCreateInfo, HeapKind, HeapMappings, HeapStore, HeapWriteError,
    ImageDescriptor, MappingSource, NativeStore, heap_ffi,
};

use crate::common::{Fixture, hold};
use crate::held::{End, Held};

const POINT: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;
const TYPES: &[DescriptorKind] = &[DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer];
const DRIVERS: [DescriptorHeapLimits; 2] = [DescriptorHeapLimits::MESA_ANV, DescriptorHeapLimits::NVIDIA];

type Heap<'a> = DescriptorHeap<NativeStore<&'a Allocator>>;

impl End for NativeStore<&Allocator> {
    fn end(self) {
        unsafe { self.destroy() };
    }
}

pub fn fixture(limits: DescriptorHeapLimits) -> Held<Fixture> {
    let profile = Profile::by_name("nvidia-rtx-5070-ti").unwrap();
    Fixture::with(Gpu::builder(profile).descriptor_heap(limits).build(), |features| features)
}

fn small(kind: HeapKind, types: &[DescriptorKind]) -> HeapCreateInfo<'_> {
    HeapCreateInfo { slots: 16, types, ..HeapCreateInfo::new(kind) }
}

fn heap<'a>(fixture: &'a Fixture, info: &HeapCreateInfo<'_>) -> Held<Heap<'a>> {
    hold(DescriptorHeap::new(NativeStore::new(&fixture.device, &fixture.allocator, info).unwrap()))
}

/// Runs a closure as the shader of one dispatch, in a pipeline with heaps. `record` binds them.
pub fn dispatch(
    fixture: &Fixture,
    mappings: impl IntoIterator<Item = BindingMapping>,
    kernel: impl Fn(&mut Kernel<'_>) + Send + Sync + 'static,
    record: impl FnOnce(vk::CommandBuffer),
) {
    let device = fixture.gpu.device();
    fixture.gpu.set_kernel("main", kernel);
    let code = [0x0723_0203];
    let mut module = vk::ShaderModuleCreateInfo::default().code(&code);
    let mut mappings = HeapMappings::new(mappings);
    let mut flags =
        vk::PipelineCreateFlags2CreateInfoKHR::default().flags(heap_ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP);
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .name(c"main")
        .push_next(&mut module)
        .push_next(mappings.info());
    let infos = [vk::ComputePipelineCreateInfo::default().stage(stage).push_next(&mut flags)];
    let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &infos, None) };
    let pipeline = made.unwrap()[0];
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    record(commands[0]);
    unsafe { device.cmd_bind_pipeline(commands[0], POINT, pipeline) };
    unsafe { device.cmd_dispatch(commands[0], 1, 1, 1) };
    unsafe { device.end_command_buffer(commands[0]) }.unwrap();
    let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
    unsafe { device.queue_submit(fixture.gpu.queue(), &submits, vk::Fence::null()) }.unwrap();
    unsafe { device.queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    unsafe { device.destroy_command_pool(pool, None) };
    unsafe { device.destroy_pipeline(pipeline, None) };
}

pub fn word(kernel: &Kernel<'_>, at: u32) -> u32 {
    let mut bytes = [0; 4];
    kernel.read_push_constants(4 * at, &mut bytes);
    u32::from_le_bytes(bytes)
}

#[test]
fn a_shader_for_sets_finds_what_was_written() {
    for limits in DRIVERS {
        let fixture = fixture(limits);
        let heap = heap(&fixture, &small(HeapKind::Resource, TYPES));
        let [uniforms, buffers] = [DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer]
            .map(|it| heap.store().binding(it).unwrap());
        fixture.put(0, 7);
        // A preceding range, so that the indices are not zero.
        let other = heap.allocate(3).unwrap();
        let range = heap.allocate(2).unwrap();
        unsafe { heap.write_many(range.id(), 0, &[fixture.uniform(0), fixture.storage(1)]) }.unwrap();
        let kernel = move |kernel: &mut Kernel<'_>| {
            let value = kernel.buffer(3, uniforms, word(kernel, 0)).read_u32(0);
            kernel.buffer(3, buffers, word(kernel, 1)).write_u32(0, value + 1);
        };
        dispatch(&fixture, heap.store().mappings(3), kernel, |commands| {
            let words = [range.index(0).unwrap(), range.index(1).unwrap()];
            let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            unsafe { heap.store().cmd_bind(commands) };
            unsafe { fixture.device.cmd_push_data(commands, 0, &data) };
        });
        assert_eq!((fixture.get(0), fixture.get(1)), (7, 8));
        unsafe { heap.free(other) }.unwrap();
    }
}

#[test]
fn a_shader_for_heaps_finds_a_slot_at_its_offset() {
    for limits in DRIVERS {
        let fixture = fixture(limits);
        let heap = heap(&fixture, &small(HeapKind::Resource, TYPES));
        let range = heap.allocate(9).unwrap();
        let index = unsafe { heap.write(range.id(), 8, &fixture.storage(2)) }.unwrap();
        let offset = heap.store().offset_of(index).unwrap();
        assert_eq!(heap.store().address_of(index).unwrap() - heap.store().address_of(0).unwrap(), offset);
        let kernel = move |kernel: &mut Kernel<'_>| kernel.heap_buffer(offset).write_u32(0, 5);
        dispatch(&fixture, [], kernel, |commands| unsafe { heap.store().cmd_bind(commands) });
        assert_eq!(fixture.get(2), 5);
    }
}

#[test]
fn images_and_samplers_are_written_from_create_infos() {
    for limits in DRIVERS {
        let fixture = fixture(limits);
        let images = heap(&fixture, &HeapCreateInfo { slots: 8, ..HeapCreateInfo::new(HeapKind::Resource) });
        let info = small(HeapKind::Sampler, &[]);
        let store = NativeStore::with_embedded_samplers(&fixture.device, &fixture.allocator, &info).unwrap();
        let samplers = hold(DescriptorHeap::new(store));
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 4, height: 4, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::SAMPLED);
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let (image, memory) = unsafe { fixture.allocator.create_image(&info, &auto) }.unwrap();
        let whole = vk::ImageSubresourceRange::default()
            .aspect_mask(vk::ImageAspectFlags::COLOR)
            .level_count(1)
            .layer_count(1);
        let view = vk::ImageViewCreateInfo::default()
            .image(image)
            .view_type(vk::ImageViewType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .subresource_range(whole);
        let texture = images.allocate(2).unwrap();
        let layout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
        let no_view = ImageDescriptor::new(vk::ImageView::null(), layout);
        let source = DescriptorSource::SampledImage { image: no_view, info: &view };
        let at = unsafe { images.write_source(texture.id(), 1, &source) }.unwrap();
        let linear = vk::SamplerCreateInfo::default().min_filter(vk::Filter::LINEAR).max_lod(3.5);
        let sampler = samplers.allocate(1).unwrap();
        let source = DescriptorSource::Sampler { sampler: vk::Sampler::null(), info: &linear };
        let slot = unsafe { samplers.write_source(sampler.id(), 0, &source) }.unwrap();
        let nearest = vk::SamplerCreateInfo::default().mag_filter(vk::Filter::NEAREST).mip_lod_bias(1.5);
        let binding = images.store().binding(DescriptorKind::SampledImage).unwrap();
        let kernel = move |kernel: &mut Kernel<'_>| {
            assert_eq!(kernel.mapped_image(0, binding, at), image);
            let found = kernel.mapped_sampler(1, 0, slot).unwrap();
            assert_eq!((found.min_filter, found.max_lod), (vk::Filter::LINEAR, 3.5));
            assert_eq!(kernel.mapped_sampler(2, 0, 0).unwrap().mip_lod_bias, 1.5);
        };
        let mappings = images
            .store()
            .mappings(0)
            .chain(samplers.store().mappings(1))
            .chain([BindingMapping::embedded_sampler(2, 0, &nearest)]);
        dispatch(&fixture, mappings, kernel, |commands| {
            unsafe { images.store().cmd_bind(commands) };
            unsafe { samplers.store().cmd_bind(commands) };
        });
        fixture.gpu.assert_silent();
        unsafe { fixture.allocator.destroy_image(image, memory) }.unwrap();
    }
}

#[test]
fn what_the_driver_reserves_lies_behind_the_slots() {
    for limits in DRIVERS {
        let fixture = fixture(limits);
        let resources = heap(&fixture, &small(HeapKind::Resource, TYPES));
        let store = resources.store();
        assert_eq!(store.stride(), limits.buffer.next_multiple_of(limits.image_alignment));
        assert_eq!(store.reserved(), 16 * store.stride()..16 * store.stride() + limits.resource_reserved);
        let info = store.bind_info();
        assert_eq!(info.heap_range.address % limits.resource_heap_alignment, 0);
        assert_eq!(info.heap_range.size, store.reserved().end);
        let samplers = heap(&fixture, &small(HeapKind::Sampler, &[]));
        assert_eq!(
            samplers.store().reserved().end - samplers.store().reserved().start,
            limits.sampler_reserved
        );
        assert_eq!(samplers.store().kind(), HeapKind::Sampler);
        assert_eq!((store.offset_of(16), store.address_of(16)), (None, None));
    }
}

#[test]
fn a_heap_beyond_the_limits_is_refused() {
    let limits = DescriptorHeapLimits::NVIDIA;
    let fixture = fixture(limits);
    let of = |kind, slots| HeapCreateInfo { slots, ..HeapCreateInfo::new(kind) };
    // The reserved range counts towards the limit of 4,096 samplers of 32 bytes.
    let fits = u32::try_from((limits.max_sampler_heap - limits.sampler_reserved) / limits.sampler).unwrap();
    drop(heap(&fixture, &of(HeapKind::Sampler, fits)));
    let made = NativeStore::new(&fixture.device, &fixture.allocator, &of(HeapKind::Sampler, fits + 1));
    let Err(CreateHeapError::Limit { limit, asked, allowed }) = made else { panic!("{made:?}") };
    assert_eq!((limit, allowed), ("maxSamplerHeapSize", 128 << 10));
    assert_eq!(asked, (128 << 10) + 32);
    let embedded = NativeStore::with_embedded_samplers(
        &fixture.device,
        &fixture.allocator,
        &of(HeapKind::Sampler, fits),
    );
    assert!(matches!(embedded, Err(CreateHeapError::Limit { .. })), "{embedded:?}");
    let combined = [DescriptorKind::CombinedImageSampler];
    let made = NativeStore::new(&fixture.device, &fixture.allocator, &small(HeapKind::Resource, &combined));
    assert!(matches!(made, Err(CreateHeapError::Kind { .. })), "{made:?}");
}

#[test]
fn a_device_without_the_feature_has_no_such_heap() {
    let fixture = Fixture::new("nvidia-h200");
    let made = NativeStore::new(&fixture.device, &fixture.allocator, &HeapCreateInfo::default());
    let missing = DescriptorFeatures::DESCRIPTOR_HEAP;
    assert!(matches!(made, Err(CreateHeapError::Unsupported { missing: it }) if it == missing), "{made:?}");
    assert_eq!(fixture.device.max_push_data_size(), 0);
}

#[test]
fn a_descriptor_that_says_too_little_is_not_written() {
    let fixture = fixture(DescriptorHeapLimits::MESA_ANV);
    let heap = heap(&fixture, &HeapCreateInfo { slots: 4, ..HeapCreateInfo::new(HeapKind::Resource) });
    let range = heap.allocate(2).unwrap();
    let view = vk::Handle::from_raw(1);
    let image = Descriptor::SampledImage(ImageDescriptor::new(view, vk::ImageLayout::GENERAL));
    // SAFETY: the call is rejected before any shader runs.
    let written = unsafe { heap.write_many(range.id(), 0, &[fixture.storage(0), image]) };
    let kind = DescriptorKind::SampledImage;
    assert_eq!(written, Err(HeapWriteError::Data(DescriptorDataError::NoCreateInfo { kind })));
    assert_eq!(fixture.gpu.calls("vkWriteResourceDescriptorsEXT"), 0, "nothing was written");
    let written = unsafe { heap.write(range.id(), 0, &fixture.sampler(0)) };
    assert_eq!(written, Err(HeapWriteError::Kind { kind: DescriptorKind::Sampler }));
    let written = unsafe { heap.store().write_bytes(0, DescriptorKind::StorageBuffer, &[0; 64]) };
    assert_eq!(written, Err(HeapWriteError::Unlike { from: 64, to: 0 }));
}

#[test]
fn eight_descriptors_are_one_call() {
    let fixture = fixture(DescriptorHeapLimits::NVIDIA);
    let heap = heap(&fixture, &small(HeapKind::Resource, TYPES));
    let range = heap.allocate(11).unwrap();
    let all: Vec<_> = (0..11).map(|at| fixture.storage(at)).collect();
    unsafe { heap.write_many(range.id(), 0, &all) }.unwrap();
    assert_eq!(fixture.gpu.calls("vkWriteResourceDescriptorsEXT"), 2);
    let binding = heap.store().binding(DescriptorKind::StorageBuffer).unwrap();
    let kernel = move |kernel: &mut Kernel<'_>| {
        for at in 0..11 {
            kernel.buffer(0, binding, at).write_u32(0, 100 + at);
        }
    };
    dispatch(&fixture, heap.store().mappings(0), kernel, |commands| unsafe {
        heap.store().cmd_bind(commands)
    });
    assert!((0..11).all(|at| u64::from(fixture.get(at)) == 100 + at));
}

#[test]
fn a_write_that_the_driver_fails_leaves_the_slot() {
    let fixture = fixture(DescriptorHeapLimits::NVIDIA);
    let heap = heap(&fixture, &small(HeapKind::Resource, TYPES));
    let range = heap.allocate(1).unwrap();
    unsafe { heap.write(range.id(), 0, &fixture.storage(0)) }.unwrap();
    fixture.gpu.faults().fail_nth("vkWriteResourceDescriptorsEXT", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let written = unsafe { heap.write(range.id(), 0, &fixture.storage(1)) };
    assert!(matches!(written, Err(HeapWriteError::Driver(_))), "{written:?}");
    let kernel = |kernel: &mut Kernel<'_>| kernel.heap_buffer(0).write_u32(0, 3);
    dispatch(&fixture, [], kernel, |commands| unsafe { heap.store().cmd_bind(commands) });
    assert_eq!(fixture.get(0), 3);
}

#[test]
fn a_stage_has_its_mappings_in_its_chain() {
    let mappings = [BindingMapping::array(0, 4, 1, 64, 32), BindingMapping::array(1, 5, 2, 128, 64)];
    let mut mappings = HeapMappings::new(mappings);
    let stage = vk::PipelineShaderStageCreateInfo::default().push_next(mappings.info());
    let info = stage.p_next.cast::<heap_ffi::ShaderDescriptorSetAndBindingMappingInfoEXT>();
    let info = unsafe { &*info };
    assert_eq!((info.s_type.as_raw(), info.mapping_count), (1_000_135_006, 2));
    let all = unsafe { std::slice::from_raw_parts(info.p_mappings, 2) };
    let second = &all[1];
    assert_eq!((second.s_type.as_raw(), second.descriptor_set, second.first_binding), (1_000_135_005, 1, 5));
    let constant = unsafe { second.source_data.constant_offset };
    assert_eq!((constant.heap_offset, constant.heap_array_stride), (128, 64));
}

/// No shader uses these. The numbers and offsets are those of the specification.
#[test]
fn sources_in_a_record_of_a_shader_are_as_vulkan_has_them() {
    let of = |source| {
        let resources = heap_ffi::resource_type::UNIFORM_BUFFER;
        BindingMapping { set: 2, binding: 3, count: 1, resources, source }.to_vk()
    };
    let index = heap_ffi::DescriptorMappingSourceShaderRecordIndexEXT {
        heap_offset: 64,
        shader_record_offset: 8,
        heap_index_stride: 32,
        heap_array_stride: 16,
        ..Default::default()
    };
    let raw = of(MappingSource::HeapWithShaderRecordIndex(index));
    assert_eq!((raw.source, raw.descriptor_set, raw.first_binding, raw.binding_count), (8, 2, 3, 1));
    let found = unsafe { raw.source_data.shader_record_index };
    assert_eq!((found.heap_offset, found.shader_record_offset), (64, 8));
    assert_eq!((found.heap_index_stride, found.heap_array_stride), (32, 16));
    let raw = of(MappingSource::ShaderRecordData(24));
    assert_eq!((raw.source, unsafe { raw.source_data.shader_record_data_offset }), (9, 24));
    let raw = of(MappingSource::ShaderRecordAddress(40));
    assert_eq!((raw.source, unsafe { raw.source_data.shader_record_address_offset }), (10, 40));
}
