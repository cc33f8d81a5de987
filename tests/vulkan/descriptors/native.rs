//! Vulkan's own heaps: images, samplers, texel buffers, growth, both kinds of command buffers, and a heap for programs
//! that support all models.

use ash::vk;
use sublet::retire::Clock;
use sublet::sim::Kernel;
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_descriptors::{
    BindingMapping, BindingModel, BindlessHeap, BindlessHeapCreateInfo, BindlessKind, Descriptor,
    DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorFeatures, DescriptorHeap, DescriptorKind,
    DescriptorSource, HeapArrays, HeapCreateInfo, HeapKind, HeapStore, HeapWriteError, ImageDescriptor,
    NativeStore, TexelBufferDescriptor, heap_ffi,
};
use sublet_examples::Compute;

use super::{Data, heaps, show_to_host, words};
use crate::{Buffer, Fixture, Image, on_each_device};

const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;

pub(super) const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;

pub(super) type Heap<'a> = DescriptorHeap<NativeStore<&'a Allocator>>;

/// Reads an image with a sampler of the heap and with an embedded sampler, and writes an array and an image. Push data
/// has their slots.
const LOOK: &[u8] = include_bytes!("look.spv");

/// Copies 64 texels, plus 5, between two images of one dimension. [`texel_buffers`] makes them texel buffers.
const TEXELS: &[u8] = include_bytes!("texels.spv");

pub(super) fn on_each_native_device(test: impl Fn(&Fixture<'_>)) {
    on_each_device(|fixture| {
        if fixture.descriptor_features().contains(DescriptorFeatures::DESCRIPTOR_HEAP) {
            test(fixture);
        } else {
            println!("{}: skipped, no descriptor heaps", fixture.context.device_name());
        }
    });
}

pub(super) fn info(kind: HeapKind, types: &[DescriptorKind]) -> HeapCreateInfo<'_> {
    let arrays = HeapArrays::PerType;
    HeapCreateInfo { slots: 6, types, arrays, ..HeapCreateInfo::new(kind) }
}

pub(super) fn heap<'a>(
    fixture: &'a Fixture<'_>,
    device: &DescriptorDevice,
    info: &HeapCreateInfo<'_>,
) -> Heap<'a> {
    DescriptorHeap::new(NativeStore::new(device, fixture.allocator, info).unwrap())
}

fn destroy<S: HeapStore>(heap: DescriptorHeap<S>, free: impl FnOnce(S)) {
    free(heap.into_store());
}

/// Pushes words from the start of push data on.
pub(super) fn push(device: &DescriptorDevice, commands: vk::CommandBuffer, words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    // SAFETY: the command buffer is being recorded, and every device allows 256 bytes.
    unsafe { device.cmd_push_data(commands, 0, &bytes) };
}

fn pushed(kernel: &Kernel<'_>, at: u32) -> u32 {
    let mut bytes = [0; 4];
    kernel.read_push_constants(at * 4, &mut bytes);
    u32::from_le_bytes(bytes)
}

/// Creates an image of two texels. It is in the general layout from the submission on.
pub(super) fn picture(fixture: &Fixture<'_>, texels: [[u8; 4]; 2]) -> Image {
    let host = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let mut staging = fixture.buffer(8, vk::BufferUsageFlags::TRANSFER_SRC, &host);
    fixture.allocator.copy_to_allocation(texels.as_flattened(), &mut staging.1, 0).unwrap();
    let usage = vk::ImageUsageFlags::SAMPLED
        | vk::ImageUsageFlags::STORAGE
        | vk::ImageUsageFlags::TRANSFER_SRC
        | vk::ImageUsageFlags::TRANSFER_DST;
    let image = image_of_two_texels(fixture, usage);
    fixture
        .context
        .submit(|device, commands| {
            let general = vk::ImageLayout::GENERAL;
            let first = (vk::PipelineStageFlags::TRANSFER, vk::AccessFlags::TRANSFER_WRITE);
            to_general(device, commands, &image, first);
            // SAFETY: both have two texels, and the transfer usage.
            unsafe {
                device.cmd_copy_buffer_to_image(commands, staging.0, image.0, general, &[two_texels()])
            };
        })
        .unwrap();
    fixture.destroy(staging);
    image
}

pub(super) fn image_of_two_texels(fixture: &Fixture<'_>, usage: vk::ImageUsageFlags) -> Image {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(FORMAT)
        .extent(vk::Extent3D { width: 2, height: 1, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(usage);
    fixture.image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto))
}

/// Moves a new image into the general layout, before its first access.
pub(super) fn to_general(
    device: &ash::Device,
    commands: vk::CommandBuffer,
    image: &Image,
    (stage, access): (vk::PipelineStageFlags, vk::AccessFlags),
) {
    let barrier = vk::ImageMemoryBarrier::default()
        .dst_access_mask(access)
        .new_layout(vk::ImageLayout::GENERAL)
        .image(image.0)
        .subresource_range(whole());
    let from = vk::PipelineStageFlags::TOP_OF_PIPE;
    let no_flags = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded, outside of rendering.
    unsafe { device.cmd_pipeline_barrier(commands, from, stage, no_flags, &[], &[], &[barrier]) };
}

fn whole() -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange::default()
        .aspect_mask(vk::ImageAspectFlags::COLOR)
        .level_count(1)
        .layer_count(1)
}

fn two_texels() -> vk::BufferImageCopy {
    let part = vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1);
    let image_extent = vk::Extent3D { width: 2, height: 1, depth: 1 };
    vk::BufferImageCopy::default().image_subresource(part).image_extent(image_extent)
}

pub(super) fn view(image: &Image) -> vk::ImageViewCreateInfo<'static> {
    vk::ImageViewCreateInfo::default()
        .image(image.0)
        .view_type(vk::ImageViewType::TYPE_2D)
        .format(FORMAT)
        .subresource_range(whole())
}

/// Returns the first bytes of an image in the general layout.
pub(super) fn texels(fixture: &Fixture<'_>, image: &Image) -> [u8; 8] {
    let host = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_RANDOM,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let down = fixture.buffer(8, vk::BufferUsageFlags::TRANSFER_DST, &host);
    fixture
        .context
        .submit(|device, commands| {
            let general = vk::ImageLayout::GENERAL;
            // SAFETY: both have two texels, and the transfer usage.
            unsafe { device.cmd_copy_image_to_buffer(commands, image.0, general, down.0, &[two_texels()]) };
        })
        .unwrap();
    let mut bytes = [0; 8];
    fixture.allocator.copy_from_allocation(&down.1, 0, &mut bytes).unwrap();
    fixture.destroy(down);
    bytes
}

pub(super) fn write_image(heap: &Heap<'_>, kind: DescriptorKind, image: &Image) -> u32 {
    let range = heap.allocate(1).unwrap();
    let view = view(image);
    let no_view = ImageDescriptor::new(vk::ImageView::null(), vk::ImageLayout::GENERAL);
    let source = match kind {
        DescriptorKind::SampledImage => DescriptorSource::SampledImage { image: no_view, info: &view },
        _ => DescriptorSource::StorageImage { image: no_view, info: &view },
    };
    // SAFETY: the image is live, and no shader reads the slot.
    unsafe { heap.write_source(range.id(), 0, &source) }.unwrap()
}

/// A sampler is in the heap or embedded in the shader. Linear and nearest filtering give different reds at the border
/// of two texels; repeating and clamping give different reds beside the image.
#[test]
fn images_and_samplers_are_read_through_native_heaps() {
    on_each_native_device(|fixture| {
        simulate_look(fixture);
        let device = fixture.descriptor_device();
        let types =
            [DescriptorKind::SampledImage, DescriptorKind::StorageImage, DescriptorKind::StorageBuffer];
        let resources = heap(fixture, &device, &info(HeapKind::Resource, &types));
        let store =
            NativeStore::with_embedded_samplers(&device, fixture.allocator, &info(HeapKind::Sampler, &[]));
        let samplers = DescriptorHeap::new(store.unwrap());
        let data = Data::new(fixture, 1);
        let picture =
            [picture(fixture, [[20, 30, 40, 255], [220, 0, 0, 255]]), picture(fixture, [[0; 4]; 2])];
        // The first slots stay empty, so that the indices are not zero.
        let unused = [resources.allocate(1).unwrap(), samplers.allocate(1).unwrap()];
        let from = write_image(&resources, DescriptorKind::SampledImage, &picture[0]);
        let to = write_image(&resources, DescriptorKind::StorageImage, &picture[1]);
        let range = resources.allocate(1).unwrap();
        // SAFETY: the buffer is live, and no shader reads the slot.
        let numbers =
            unsafe { resources.write(range.id(), 0, &Descriptor::StorageBuffer(data.target(0))) }.unwrap();
        let by_filter = [vk::Filter::LINEAR, vk::Filter::NEAREST].map(|filter| {
            let info = vk::SamplerCreateInfo::default().mag_filter(filter).min_filter(filter);
            let range = samplers.allocate(1).unwrap();
            let source = DescriptorSource::Sampler { sampler: vk::Sampler::null(), info: &info };
            // SAFETY: the create-info is valid, and no shader reads the slot.
            unsafe { samplers.write_source(range.id(), 0, &source) }.unwrap()
        });
        // The default filter is the nearest texel, and the default address mode is to repeat.
        let nearest = vk::SamplerCreateInfo::default();
        let mappings = resources.store().mappings(0).chain(samplers.store().mappings(1));
        let mappings = mappings.chain([BindingMapping::embedded_sampler(2, 0, &nearest)]);
        let compute = Compute::with_heaps(fixture.context, &words(LOOK), mappings).unwrap();
        for (sampler, reds) in by_filter.into_iter().zip([119..=121, 220..=220]) {
            let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
                // SAFETY: the command buffer is being recorded, and inherits nothing; here and below.
                unsafe { resources.store().cmd_bind(commands) };
                // SAFETY: as above.
                unsafe { samplers.store().cmd_bind(commands) };
                push(&device, commands, &[from, sampler, to, numbers]);
                // SAFETY: it is a compute pipeline.
                unsafe { vulkan.cmd_bind_pipeline(commands, COMPUTE, compute.pipeline) };
                // SAFETY: everything that the pipeline needs is bound.
                unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
                show_to_host(vulkan, commands);
            };
            fixture.context.submit(record).unwrap();
            let found = data.read(0);
            assert!(reds.contains(&found[0]), "{} is not in {reds:?}", found[0]);
            assert_eq!(found[1], 20, "the embedded sampler repeats");
        }
        // The closure that replaces the shader writes no texels.
        if fixture.context.gpu().is_none() {
            assert_eq!(texels(fixture, &picture[1])[..4], [20, 30, 40, 255]);
        }
        drop((compute, unused));
        // SAFETY: all submissions were waited for, and their command buffers are freed; here and below.
        destroy(resources, |store| unsafe { store.destroy() });
        // SAFETY: as above.
        destroy(samplers, |store| unsafe { store.destroy() });
        picture.into_iter().for_each(|image| fixture.destroy_image(image));
        data.destroy();
    });
}

fn simulate_look(fixture: &Fixture<'_>) {
    let Some(gpu) = fixture.context.gpu() else { return };
    gpu.set_kernel("main", |kernel| {
        let [image, sampler, target, numbers] = [0, 1, 2, 3].map(|at| pushed(kernel, at));
        assert_ne!(kernel.mapped_image(0, 0, image), vk::Image::null());
        assert_ne!(kernel.mapped_image(0, 1, target), kernel.mapped_image(0, 0, image));
        let filter = kernel.mapped_sampler(1, 0, sampler).unwrap().mag_filter;
        let embedded = kernel.mapped_sampler(2, 0, 0).unwrap();
        assert_eq!(embedded.address_mode_u, vk::SamplerAddressMode::REPEAT);
        let numbers = kernel.buffer(0, 2, numbers);
        numbers.write_u32(0, if filter == vk::Filter::LINEAR { 120 } else { 220 });
        numbers.write_u32(4, 20);
    });
}

/// Changes images of one dimension to texel buffers, which WGSL does not have.
fn texel_buffers(code: &[u8]) -> Vec<u32> {
    const CAPABILITY: u32 = 17;
    const TYPE_IMAGE: u32 = 25;
    const IMAGE_FETCH: u32 = 95;
    let code = words(code);
    let (head, mut rest) = code.split_at(5);
    let mut changed = head.to_vec();
    while let Some(&first) = rest.first() {
        let (instruction, others) = rest.split_at(usize::try_from(first >> 16).unwrap());
        rest = others;
        let mut instruction = instruction.to_vec();
        match (first & 0xffff, instruction.get(1)) {
            // Sampled1D and Image1D become SampledBuffer and ImageBuffer.
            (CAPABILITY, Some(43 | 44)) => instruction[1] += 3,
            (TYPE_IMAGE, _) => instruction[3] = 5,
            // A texel buffer has no levels.
            (IMAGE_FETCH, _) => {
                instruction.truncate(5);
                instruction[0] = 5 << 16 | IMAGE_FETCH;
            }
            _ => {}
        }
        changed.extend(instruction);
    }
    changed
}

#[test]
fn texel_buffers_are_read_and_written_through_a_native_heap() {
    on_each_native_device(|fixture| {
        if let Some(gpu) = fixture.context.gpu() {
            gpu.set_kernel("main", |kernel| {
                let [from, to] = [0, 1].map(|binding| kernel.buffer(0, binding, pushed(kernel, binding)));
                for at in 0..64 {
                    to.write_u32(at * 4, from.read_u32(at * 4) + 5);
                }
            });
        }
        let device = fixture.descriptor_device();
        let types = [DescriptorKind::UniformTexelBuffer, DescriptorKind::StorageTexelBuffer];
        let heap = heap(fixture, &device, &info(HeapKind::Resource, &types));
        let (buffer, address) = texel_buffer(fixture);
        let [from, to] = [0, 1].map(|at| {
            let range = heap.allocate(2).unwrap();
            let texels = TexelBufferDescriptor::new(vk::BufferView::null());
            let texels = texels.with_range(address + at * 256, 256, vk::Format::R32_UINT);
            let descriptor = if at == 0 {
                Descriptor::UniformTexelBuffer(texels)
            } else {
                Descriptor::StorageTexelBuffer(texels)
            };
            // SAFETY: the buffer is live, and no shader reads the slot.
            unsafe { heap.write(range.id(), 1, &descriptor) }.unwrap()
        });
        let code = texel_buffers(TEXELS);
        let compute = Compute::with_heaps(fixture.context, &code, heap.store().mappings(0)).unwrap();
        let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
            // SAFETY: the command buffer is being recorded, and inherits nothing.
            unsafe { heap.store().cmd_bind(commands) };
            push(&device, commands, &[from, to]);
            // SAFETY: it is a compute pipeline.
            unsafe { vulkan.cmd_bind_pipeline(commands, COMPUTE, compute.pipeline) };
            // SAFETY: everything that the pipeline needs is bound.
            unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
            show_to_host(vulkan, commands);
        };
        fixture.context.submit(record).unwrap();
        let mut bytes = [0; 512];
        fixture.allocator.copy_from_allocation(&buffer.1, 0, &mut bytes).unwrap();
        let found: Vec<_> =
            bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert!(found[64..].iter().zip(0..).all(|(&word, at)| word == at * 3 + 5), "{:?}", &found[64..]);
        drop(compute);
        // SAFETY: all submissions were waited for, and their command buffers are freed.
        destroy(heap, |store| unsafe { store.destroy() });
        fixture.destroy(buffer);
    });
}

/// Returns a buffer with 64 multiples of three, and as many zeros, and its address.
fn texel_buffer(fixture: &Fixture<'_>) -> (Buffer, vk::DeviceAddress) {
    let usage = vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER
        | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let host = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_RANDOM,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let mut buffer = fixture.buffer(512, usage, &host);
    let mut bytes: Vec<u8> = (0..64_u32).flat_map(|at| (at * 3).to_le_bytes()).collect();
    bytes.resize(512, 0);
    fixture.allocator.copy_to_allocation(&bytes, &mut buffer.1, 0).unwrap();
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.0);
    // SAFETY: the buffer is live and bound, and has the usage for addresses.
    let address = unsafe { fixture.context.device().get_buffer_device_address(&info) };
    (buffer, address)
}

/// A heap grows while the store with the old slots is still in flight.
#[test]
fn a_native_heap_grows_and_keeps_its_descriptors() {
    on_each_native_device(|fixture| {
        heaps::simulate(fixture.context, 1);
        let device = fixture.descriptor_device();
        let of_buffers = info(HeapKind::Resource, heaps::TYPES);
        let info = HeapCreateInfo { slots: 3, max_slots: 48, ..of_buffers };
        let heap = heap(fixture, &device, &info);
        let mut data = Data::new(fixture, 3);
        let fixed = heap.allocate(3).unwrap();
        let all = [data.task_as_array(0), data.target(0), data.source(1)].map(Descriptor::StorageBuffer);
        // SAFETY: the buffer is live, and no shader reads the slots.
        unsafe { heap.write_many(fixed.id(), 0, &all) }.unwrap();
        let mappings = heap.store().mappings(0);
        let compute = Compute::with_heaps(fixture.context, &heaps::shader(1), mappings).unwrap();
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let run = |add, source: u32, data: &mut Data<'_>| {
            data.set_task(0, [add, source, 0, 0]);
            let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
                // SAFETY: the command buffer is being recorded, and inherits nothing.
                unsafe { heap.store().cmd_bind(commands) };
                dispatch(vulkan, commands, &compute);
            };
            fixture.context.submit(record).unwrap();
        };
        let ticket = clock.open(timeline);
        run(7, 2, &mut data);
        data.expect(0, 1, 7);
        let old = heap.store().bind_info().heap_range.address;
        let more = heap.allocate(2).unwrap();
        assert!(heap.store().slots() > 3);
        assert_ne!(heap.store().bind_info().heap_range.address, old, "the old store is still in flight");
        // SAFETY: the buffer is live, and no shader reads the slot.
        unsafe { heap.write(more.id(), 1, &Descriptor::StorageBuffer(data.source(2))) }.unwrap();
        // SAFETY: the recording is submitted, and its command buffer is freed.
        assert_eq!(unsafe { heap.retire_outgrown(ticket) }, 1);
        clock.submit(ticket, 1).unwrap();
        clock.completed(timeline, 1);
        heap.collect(&clock).unwrap();
        run(8, 2, &mut data);
        data.expect(0, 1, 8);
        run(9, more.index(1).unwrap(), &mut data);
        data.expect(0, 2, 9);
        drop(compute);
        // SAFETY: all submissions were waited for, and their command buffers are freed.
        destroy(heap, |store| unsafe { store.destroy() });
        data.destroy();
    });
}

fn dispatch(vulkan: &ash::Device, commands: vk::CommandBuffer, compute: &Compute<'_>) {
    // SAFETY: the command buffer is being recorded, and it is a compute pipeline.
    unsafe { vulkan.cmd_bind_pipeline(commands, COMPUTE, compute.pipeline) };
    // SAFETY: the callers bind everything that the pipeline needs.
    unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
    show_to_host(vulkan, commands);
}

/// The same program binds sets, descriptor buffers or heaps. This is the variant with heaps.
#[test]
fn a_bindless_heap_is_native_if_the_program_requests_it() {
    on_each_native_device(|fixture| {
        heaps::simulate(fixture.context, 1);
        let model = BindingModel::Heap;
        let info = DescriptorDeviceCreateInfo { model, ..fixture.context.descriptor_info() };
        // SAFETY: the context created instance and device as its info states, and outlives the objects created from
        // the value.
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let mut data = Data::new(fixture, 2);
        let defaults = [Descriptor::UniformBuffer(data.task(0)), Descriptor::StorageBuffer(data.task(0))];
        let of_buffers = self::info(HeapKind::Resource, heaps::TYPES);
        let info = BindlessHeapCreateInfo {
            heap: of_buffers,
            defaults: &defaults,
            ..BindlessHeapCreateInfo::new(HeapKind::Resource)
        };
        // SAFETY: the buffer outlives the heap.
        let heap = unsafe { BindlessHeap::create(&device, fixture.allocator, &info) }.unwrap();
        assert_eq!((heap.kind(), heap.layout()), (BindlessKind::Native, vk::DescriptorSetLayout::null()));
        let range = heap.allocate(3).unwrap();
        let all = [data.task_as_array(0), data.target(0), data.source(1)].map(Descriptor::StorageBuffer);
        // SAFETY: the buffer is live, and no shader reads the slots.
        unsafe { heap.write_many(range.id(), 0, &all) }.unwrap();
        let sampler = Descriptor::Sampler(vk::Sampler::null());
        // SAFETY: the call is rejected.
        let refused = unsafe { heap.write(range.id(), 0, &sampler) };
        assert_eq!(refused, Err(HeapWriteError::Kind { kind: DescriptorKind::Sampler }));
        data.set_task(0, [3, 2, 0, 0]);
        let compute = Compute::with_heaps(fixture.context, &heaps::shader(1), heap.mappings(0)).unwrap();
        // SAFETY: the context submits nothing else.
        assert_eq!(unsafe { heap.flush(0) }, 0);
        let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
            // SAFETY: the command buffer is being recorded, and there is one heap.
            unsafe { BindlessHeap::cmd_bind(commands, 0, &[], &[&heap]) };
            dispatch(vulkan, commands, &compute);
        };
        fixture.context.submit(record).unwrap();
        data.expect(0, 1, 3);
        drop(compute);
        // SAFETY: all submissions were waited for, and their command buffers are freed.
        unsafe { heap.destroy() };
        data.destroy();
    });
}

/// A secondary command buffer inherits the heaps of the primary one, or binds them itself.
#[test]
fn secondary_command_buffers_use_native_heaps() {
    on_each_native_device(|fixture| {
        heaps::simulate(fixture.context, 1);
        let device = fixture.descriptor_device();
        let heap = heap(fixture, &device, &info(HeapKind::Resource, heaps::TYPES));
        let mut data = Data::new(fixture, 2);
        let range = heap.allocate(3).unwrap();
        let all = [data.task_as_array(0), data.target(0), data.source(1)].map(Descriptor::StorageBuffer);
        // SAFETY: the buffer is live, and no shader reads the slots.
        unsafe { heap.write_many(range.id(), 0, &all) }.unwrap();
        let mappings = heap.store().mappings(0);
        let compute = Compute::with_heaps(fixture.context, &heaps::shader(1), mappings).unwrap();
        let vulkan = fixture.context.device();
        let info =
            vk::CommandPoolCreateInfo::default().queue_family_index(fixture.context.queue_family_index());
        // SAFETY: the device has a queue of this family.
        let pool = unsafe { vulkan.create_command_pool(&info, None) }.unwrap();
        for (add, inherits) in [(11, true), (12, false)] {
            data.set_task(0, [add, 2, 0, 0]);
            let secondary = secondary(fixture, pool, &heap, inherits, &compute);
            let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
                if inherits {
                    // SAFETY: the command buffer is being recorded, and is primary.
                    unsafe { heap.store().cmd_bind(commands) };
                }
                // SAFETY: it is executable, and was recorded for the heaps that are bound.
                unsafe { vulkan.cmd_execute_commands(commands, &[secondary]) };
            };
            fixture.context.submit(record).unwrap();
            data.expect(0, 1, add);
        }
        // SAFETY: all submissions were waited for.
        unsafe { vulkan.destroy_command_pool(pool, None) };
        drop(compute);
        // SAFETY: as above, and the command buffers are freed.
        destroy(heap, |store| unsafe { store.destroy() });
        data.destroy();
    });
}

/// Records a dispatch with the heap.
fn secondary(
    fixture: &Fixture<'_>,
    pool: vk::CommandPool,
    heap: &Heap<'_>,
    inherits: bool,
    compute: &Compute<'_>,
) -> vk::CommandBuffer {
    let vulkan = fixture.context.device();
    let info = vk::CommandBufferAllocateInfo::default()
        .command_pool(pool)
        .level(vk::CommandBufferLevel::SECONDARY)
        .command_buffer_count(1);
    // SAFETY: the pool is live.
    let commands = unsafe { vulkan.allocate_command_buffers(&info) }.unwrap()[0];
    let bound = heap.store().bind_info();
    let mut heaps = heap_ffi::CommandBufferInheritanceDescriptorHeapInfoEXT {
        p_resource_heap_bind_info: &bound,
        ..Default::default()
    };
    let mut inheritance = vk::CommandBufferInheritanceInfo::default();
    if inherits {
        inheritance = inheritance.push_next(&mut heaps);
    }
    let info = vk::CommandBufferBeginInfo::default().inheritance_info(&inheritance);
    // SAFETY: the command buffer is new, and the chain is valid.
    unsafe { vulkan.begin_command_buffer(commands, &info) }.unwrap();
    if !inherits {
        // SAFETY: the command buffer is being recorded, and inherits nothing.
        unsafe { heap.store().cmd_bind(commands) };
    }
    dispatch(vulkan, commands, compute);
    // SAFETY: it is being recorded.
    unsafe { vulkan.end_command_buffer(commands) }.unwrap();
    commands
}
