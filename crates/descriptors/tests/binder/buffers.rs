//! Descriptor buffers: bytes in the bound page, and offsets. Every dispatch checks the descriptors that its shader
//! reads.

use ash::vk;
use sublet_descriptors::{
    BindPoint, BinderCreateInfo, BindingModel, BufferDescriptor, CommitError, Descriptor,
    DescriptorDataError, DescriptorKind as K, DescriptorSizes, ImageDescriptor, PipelineLayoutError,
    SetLayout, StageError, UseLayoutError,
};

use super::fixture::{ArrayElement, Fixture, POINT, commit, sets};

/// GPUs with two different descriptor layouts, and a driver that needs separate arrays for images and samplers and a
/// buffer for push descriptors.
const GPUS: [&str; 3] = ["nvidia-h200", "amd-rx-6700-xt", "amd-rx-6800-windows"];

const BIND: &str = "vkCmdBindDescriptorBuffersEXT";
const OFFSETS: &str = "vkCmdSetDescriptorBufferOffsetsEXT";
const GET: &str = "vkGetDescriptorEXT";

#[test]
fn descriptors_are_bytes_in_one_bound_buffer() {
    for name in GPUS {
        let fixture = Fixture::with_buffers(name);
        let set = fixture.set_layout(&[
            (0, K::UniformBuffer, 1),
            (1, K::StorageBuffer, 3),
            (4, K::InlineUniformBlock, 16),
        ]);
        let (mut binder, layout, commands) = fixture.start(&[set.clone(), set]);
        let [a, b] = fixture.buffers();
        for set in [0, 1] {
            let offset = u64::from(set) * 256;
            binder.stage(POINT, set, 0, 0, &[fixture.uniform(a, offset)]).unwrap();
            let three = [fixture.storage(b, offset), fixture.storage(a, 512), fixture.storage(b, 768)];
            binder.stage(POINT, set, 1, 0, &three).unwrap();
            binder.stage_inline(POINT, set, 4, 0, &[7, 0, 0, 0]).unwrap();
        }
        assert_eq!(fixture.gpu.calls(GET), 0, "staging calls nothing");
        commit(&fixture, &mut binder, commands, POINT);
        assert_eq!(fixture.calls([BIND, OFFSETS, GET]), [1, 1, 8]);
        let expected = |second: vk::Buffer| {
            [0, 1].into_iter().flat_map(move |set| {
                let offset = u64::from(set) * 256;
                let second = if set == 1 { second } else { a };
                [
                    ((set, 0, 0), (a, offset)),
                    ((set, 1, 0), (b, offset)),
                    ((set, 1, 1), (second, 512)),
                    ((set, 1, 2), (b, 768)),
                ]
            })
        };
        let read = |second| -> Vec<(ArrayElement, u32)> {
            let inline = [((0, 4, 0), 7), ((1, 4, 0), 7)];
            expected(second)
                .map(|(place, (buffer, offset))| (place, fixture.content(buffer, offset)))
                .chain(inline)
                .collect()
        };
        fixture.dispatch(commands, &layout, read(a));
        // One descriptor changes: the set's bytes are copied to another offset, with one `vkGetDescriptorEXT` call.
        binder.stage(POINT, 1, 1, 1, &[fixture.storage(b, 512)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
        assert_eq!(fixture.calls([BIND, OFFSETS, GET]), [1, 2, 9]);
        fixture.dispatch(commands, &layout, read(b));
        // The change is undone before the commit, so nothing is written.
        binder.stage(POINT, 1, 1, 1, &[fixture.storage(a, 512)]).unwrap();
        binder.stage(POINT, 1, 1, 1, &[fixture.storage(b, 512)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
        assert_eq!(fixture.calls([BIND, OFFSETS]), [1, 2]);
        fixture.dispatch(commands, &layout, read(b));
        fixture.finish(&mut binder, commands);
        // In the next command buffer all descriptors are fetched again, because a handle may name another object by
        // then.
        let commands = fixture.commands();
        commit(&fixture, &mut binder, commands, POINT);
        assert_eq!(fixture.calls([BIND, OFFSETS, GET]), [2, 3, 18]);
        fixture.dispatch(commands, &layout, read(b));
        fixture.finish(&mut binder, commands);
    }
}

/// A well-known Direct3D 12 sample marks every table of the root signature stale on a switch of heaps, and copies
/// handles that were never staged.
#[test]
fn another_page_takes_all_that_is_staged_and_nothing_that_never_was() {
    for name in GPUS {
        let fixture = Fixture::with_buffers(name);
        let shapes = [(0, K::StorageBuffer, 4)];
        let set = fixture.set_layout(&shapes);
        let never = fixture.set_layout(&[(0, K::StorageBuffer, 4), (1, K::UniformBuffer, 1)]);
        let layout = fixture.pipeline(&[set.clone(), never, set]);
        // The page holds only a few commits.
        let mut binder = fixture.binder_with(&BinderCreateInfo { page_size: 4096, ..Default::default() });
        let [a, b] = fixture.buffers();
        let commands = fixture.commands();
        binder.set_layout(POINT, &layout).unwrap();
        binder.stage(POINT, 0, 0, 0, &[fixture.storage(a, 0), fixture.storage(a, 256)]).unwrap();
        let mut switches = 0;
        for draw in 0..200_u64 {
            let buffer = if draw % 2 == 0 { a } else { b };
            let offset = draw % 16 * 256;
            binder.stage(POINT, 2, 0, 3, &[fixture.storage(buffer, offset)]).unwrap();
            let before = fixture.calls([BIND, GET]);
            commit(&fixture, &mut binder, commands, POINT);
            let after = fixture.calls([BIND, GET]);
            switches += after[0] - before[0];
            // Known bytes are copied. The driver is called only for newly staged descriptors, never for unstaged ones.
            assert!(after[1] - before[1] <= if draw == 0 { 3 } else { 1 }, "{name}: draw {draw}");
            fixture.dispatch(
                commands,
                &layout,
                [
                    ((0, 0, 0), fixture.content(a, 0)),
                    ((0, 0, 1), fixture.content(a, 256)),
                    ((2, 0, 3), fixture.content(buffer, offset)),
                ],
            );
        }
        assert!(switches > 3, "{name}: {switches} pages");
        fixture.finish(&mut binder, commands);
    }
}

#[test]
fn set_1_that_was_never_staged_has_no_offset() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let set = fixture.set_layout(&[(0, K::StorageBuffer, 1)]);
    let (mut binder, layout, commands) = fixture.start(&[set.clone(), set.clone(), set]);
    let buffer = fixture.buffer();
    for set in [0, 2] {
        binder.stage(POINT, set, 0, 0, &[fixture.storage(buffer, 0)]).unwrap();
    }
    commit(&fixture, &mut binder, commands, POINT);
    // Two calls, because the set between them is not staged.
    assert_eq!(fixture.calls([BIND, OFFSETS, GET]), [1, 2, 2]);
    fixture.dispatch(commands, &layout, [((0, 0, 0), 0), ((2, 0, 0), 0)]);
    fixture.finish(&mut binder, commands);
}

#[test]
fn one_page_is_bound_for_a_command_buffer_and_for_both_bind_points() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let layout = fixture.pipeline(&[fixture.set_layout(&[(0, K::StorageBuffer, 1)])]);
    let mut binder = fixture.binder();
    let buffer = fixture.buffer();
    for _ in 0..3 {
        let commands = fixture.commands();
        fixture.gpu.reset_calls();
        for draw in 0..50_u64 {
            for point in [BindPoint::Graphics, POINT] {
                binder.set_layout(point, &layout).unwrap();
                binder.stage(point, 0, 0, 0, &[fixture.storage(buffer, draw % 16 * 256)]).unwrap();
                commit(&fixture, &mut binder, commands, point);
            }
            fixture.dispatch(commands, &layout, [((0, 0, 0), fixture.content(buffer, draw % 16 * 256))]);
        }
        assert_eq!(fixture.calls([BIND, OFFSETS]), [1, 100]);
        fixture.finish(&mut binder, commands);
    }
}

#[test]
fn a_page_that_is_bound_for_draws_unbinds_what_dispatches_had() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let layout = fixture.pipeline(&[fixture.set_layout(&[(0, K::StorageBuffer, 4)])]);
    let mut binder = fixture.binder_with(&BinderCreateInfo { page_size: 1024, ..Default::default() });
    let [a, b] = fixture.buffers();
    let commands = fixture.commands();
    for point in [BindPoint::Graphics, POINT] {
        binder.set_layout(point, &layout).unwrap();
    }
    binder.stage(POINT, 0, 0, 0, &[fixture.storage(a, 256); 4]).unwrap();
    for draw in 0..40 {
        binder.stage(BindPoint::Graphics, 0, 0, 0, &[fixture.storage(b, draw % 16 * 256); 4]).unwrap();
        commit(&fixture, &mut binder, commands, BindPoint::Graphics);
        commit(&fixture, &mut binder, commands, POINT);
        fixture.dispatch(
            commands,
            &layout,
            [((0, 0, 0), fixture.content(a, 256)), ((0, 0, 3), fixture.content(a, 256))],
        );
    }
    assert!(fixture.gpu.calls(BIND) > 1);
    fixture.finish(&mut binder, commands);
}

#[test]
fn what_is_pushed_is_seen_beside_descriptor_buffers() {
    for name in GPUS {
        let fixture = Fixture::with_buffers(name);
        let push = fixture.push_layout(&[(0, K::StorageBuffer, 2)]);
        let layout = fixture.pipeline(&[push.clone(), fixture.set_layout(&[(0, K::UniformBuffer, 1)])]);
        let only = fixture.pipeline(&[push]);
        let mut binder = fixture.binder_with(&BinderCreateInfo { page_size: 1024, ..Default::default() });
        let [a, b] = fixture.buffers();
        let commands = fixture.commands();
        // Only push descriptors.
        binder.set_layout(POINT, &only).unwrap();
        binder.stage(POINT, 0, 0, 0, &[fixture.storage(b, 512), fixture.storage(a, 0)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
        fixture.dispatch(
            commands,
            &only,
            [((0, 0, 0), fixture.content(b, 512)), ((0, 0, 1), fixture.content(a, 0))],
        );
        binder.set_layout(POINT, &layout).unwrap();
        for draw in 0..40 {
            let offset = draw % 16 * 256;
            binder.stage(POINT, 1, 0, 0, &[fixture.uniform(a, offset)]).unwrap();
            if draw % 4 == 0 {
                binder.stage(POINT, 0, 0, 0, &[fixture.storage(a, offset)]).unwrap();
            }
            commit(&fixture, &mut binder, commands, POINT);
            fixture.dispatch(
                commands,
                &layout,
                [
                    ((0, 0, 0), fixture.content(a, draw / 4 * 4 % 16 * 256)),
                    ((0, 0, 1), fixture.content(a, 0)),
                    ((1, 0, 0), fixture.content(a, offset)),
                ],
            );
        }
        assert!(fixture.gpu.calls(BIND) > 1, "{name}");
        fixture.finish(&mut binder, commands);
    }
}

#[test]
fn a_layout_whose_sets_are_larger_than_a_page_is_refused() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let layout = fixture.pipeline(&[fixture.set_layout(&[(0, K::StorageBuffer, 200)])]);
    let mut binder = fixture.binder_with(&BinderCreateInfo { page_size: 1024, ..Default::default() });
    let error = binder.set_layout(POINT, &layout).unwrap_err();
    assert!(matches!(error, UseLayoutError::LargerThanPage { bytes: 3264, page_size: 1024 }), "{error:?}");
    let error = binder.stage(POINT, 0, 0, 0, &[]).unwrap_err();
    assert_eq!(error, StageError::NoLayout { point: POINT, set: 0 });
}

#[test]
fn what_descriptor_buffers_want_is_asked_for_when_it_is_staged() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let (mut binder, _layout) = fixture.with_layout(&[fixture.set_layout(&[(0, K::StorageBuffer, 2)])]);
    let buffer = fixture.buffer();
    let without = Descriptor::StorageBuffer(BufferDescriptor::new(buffer, 0, 64));
    let error = binder.stage(POINT, 0, 0, 0, &[fixture.storage(buffer, 0), without]).unwrap_err();
    let source = DescriptorDataError::NoAddress { kind: K::StorageBuffer };
    assert_eq!(error, StageError::Data { binding: 0, element: 1, source });
    assert_eq!(binder.first_unstaged(POINT).map(|missing| missing.element), Some(0), "neither is staged");
    let set = vk::DescriptorSet::null();
    assert_eq!(binder.stage_set(POINT, 0, set), Err(StageError::NoSets { set: 0 }));
}

#[test]
fn dynamic_buffers_and_layouts_for_sets_do_not_fit_descriptor_buffers() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let other = Fixture::new(sets().build(), BindingModel::Sets);
    let set = other.set_layout(&[(0, K::StorageBuffer, 2)]);
    // SAFETY: the layout is rejected and never used.
    let error = unsafe {
        sublet_descriptors::PipelineLayoutInfo::new(&fixture.device, vk::PipelineLayout::null(), &[set], &[])
    };
    assert_eq!(error.unwrap_err(), PipelineLayoutError::WrongModel { set: 0, model: BindingModel::Buffer });
}

#[test]
fn a_commit_without_room_has_recorded_nothing_and_can_be_made_again() {
    for call in ["vkAllocateMemory", "vkCreateBuffer", "vkBindBufferMemory"] {
        let fixture = Fixture::with_buffers("nvidia-h200");
        let (mut binder, layout, commands) =
            fixture.start(&[fixture.set_layout(&[(0, K::StorageBuffer, 2)])]);
        let [a, b] = fixture.buffers();
        binder.stage(POINT, 0, 0, 0, &[fixture.storage(a, 0), fixture.storage(b, 256)]).unwrap();
        fixture.gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        for _ in 0..2 {
            let error = unsafe { binder.commit(commands, POINT) }.unwrap_err();
            assert!(matches!(error, CommitError::Pages(_)), "{error}");
            binder.validate();
        }
        assert_eq!(fixture.calls([BIND, OFFSETS]), [0, 0], "{call}");
        fixture.gpu.faults().clear();
        binder.stage(POINT, 0, 0, 0, &[fixture.storage(b, 512)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
        fixture.dispatch(
            commands,
            &layout,
            [((0, 0, 0), fixture.content(b, 512)), ((0, 0, 1), fixture.content(b, 256))],
        );
        fixture.finish(&mut binder, commands);
    }
}

#[test]
fn a_limit_of_memory_is_kept_and_lifted_when_recordings_are_done() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let layout = fixture.pipeline(&[fixture.set_layout(&[(0, K::StorageBuffer, 4)])]);
    let info = BinderCreateInfo { page_size: 1024, memory_limit: Some(2048), ..Default::default() };
    let mut binder = fixture.binder_with(&info);
    let buffer = fixture.buffer();
    for _ in 0..2 {
        let commands = fixture.commands();
        binder.set_layout(POINT, &layout).unwrap();
        let mut committed = 0;
        let error = loop {
            binder.stage(POINT, 0, 0, 0, &[fixture.storage(buffer, committed % 16 * 256); 4]).unwrap();
            match unsafe { binder.commit(commands, POINT) } {
                Ok(()) => committed += 1,
                Err(error) => break error,
            }
            assert!(committed < 100);
        };
        assert!(matches!(error, CommitError::Pages(_)), "{error}");
        assert!(committed >= 16, "{committed}");
        fixture.finish(&mut binder, commands);
    }
}

/// On drivers that require it, combined image samplers have all images before all samplers.
#[test]
fn images_and_samplers_are_where_the_driver_wants_them() {
    for name in GPUS {
        let fixture = Fixture::with_buffers(name);
        let device = fixture.gpu.device();
        let (mut binder, layout, commands) = fixture
            .start(&[fixture.set_layout(&[(0, K::CombinedImageSampler, 3), (1, K::StorageBuffer, 1)])]);
        let buffer = fixture.buffer();
        let samplers = [(); 3].map(|()| fixture.sampler());
        let image_info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 4, height: 4, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::SAMPLED);
        let wish = sublet::AllocationCreateInfo::new(sublet::MemoryUsage::Auto);
        let (image, memory) = unsafe { fixture.allocator.create_image(&image_info, &wish) }.unwrap();
        let views = [(); 3].map(|()| {
            let range = vk::ImageSubresourceRange::default()
                .aspect_mask(vk::ImageAspectFlags::COLOR)
                .level_count(1)
                .layer_count(1);
            let info = vk::ImageViewCreateInfo::default()
                .image(image)
                .view_type(vk::ImageViewType::TYPE_2D)
                .format(vk::Format::R8G8B8A8_UNORM)
                .subresource_range(range);
            unsafe { device.create_image_view(&info, None) }.unwrap()
        });
        let combined = std::array::from_fn::<_, 3, _>(|at| Descriptor::CombinedImageSampler {
            sampler: samplers[at],
            image: ImageDescriptor::new(views[at], vk::ImageLayout::GENERAL),
        });
        binder.stage(POINT, 0, 0, 0, &combined).unwrap();
        binder.stage(POINT, 0, 1, 0, &[fixture.storage(buffer, 256)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
        fixture.gpu.set_kernel("look", move |kernel| {
            for (element, (view, sampler)) in (0..).zip(views.into_iter().zip(samplers)) {
                assert_eq!(kernel.image(0, 0, element), view);
                assert_eq!(kernel.sampler(0, 0, element), sampler);
            }
            assert_eq!(kernel.buffer(0, 1, 0).read_u32(0), 1);
        });
        fixture.dispatch_any(commands, &layout);
        fixture.finish(&mut binder, commands);
        for view in views {
            unsafe { device.destroy_image_view(view, None) };
        }
        unsafe { fixture.allocator.destroy_image(image, memory) }.unwrap();
    }
}

#[test]
fn descriptor_buffers_of_the_program_are_bound_beside_the_page() {
    for name in GPUS {
        let fixture = Fixture::with_buffers(name);
        let set = fixture.set_layout(&[(0, K::StorageBuffer, 2)]);
        let (mut binder, layout, commands) = fixture.start(&[set.clone(), set.clone()]);
        let [a, b] = fixture.buffers();
        let own = OwnBuffer::new(&fixture, &set, [(a, 256), (b, 256)]);

        fixture.gpu.reset_calls();
        for draw in 0..8 {
            binder.stage(POINT, 0, 0, 0, &[fixture.storage(b, draw * 256), fixture.storage(a, 0)]).unwrap();
            binder.stage_buffer(POINT, 1, &own.info, OWN_OFFSET).unwrap();
            commit(&fixture, &mut binder, commands, POINT);
            fixture.dispatch(
                commands,
                &layout,
                [
                    ((0, 0, 0), fixture.content(b, draw * 256)),
                    ((0, 0, 1), fixture.content(a, 0)),
                    ((1, 0, 0), fixture.content(a, 256)),
                    ((1, 0, 1), fixture.content(b, 256)),
                ],
            );
        }
        assert_eq!(fixture.calls([BIND, OFFSETS]), [1, 8], "{name}");
        // Staged descriptors replace the program's set.
        binder.stage(POINT, 1, 0, 1, &[fixture.storage(a, 512)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
        fixture.dispatch(
            commands,
            &layout,
            [((1, 0, 1), fixture.content(a, 512)), ((0, 0, 1), fixture.content(a, 0))],
        );
        fixture.finish(&mut binder, commands);
        // In the next command buffer the program's set is bound from the start, for draws as well.
        let commands = fixture.commands();
        fixture.gpu.reset_calls();
        for point in [BindPoint::Graphics, POINT] {
            binder.set_layout(point, &layout).unwrap();
            binder.stage_buffer(point, 0, &own.info, OWN_OFFSET).unwrap();
            commit(&fixture, &mut binder, commands, point);
        }
        assert_eq!(fixture.calls([BIND]), [1], "{name}");
        fixture.dispatch(
            commands,
            &layout,
            [((0, 0, 0), fixture.content(a, 256)), ((1, 0, 1), fixture.content(a, 512))],
        );
        fixture.finish(&mut binder, commands);
        let misaligned = binder.stage_buffer(POINT, 0, &own.info, 1).unwrap_err();
        assert!(matches!(misaligned, StageError::MisalignedSet { set: 0, given: 1, .. }), "{misaligned}");
        let null = vk::DescriptorBufferBindingInfoEXT::default();
        assert_eq!(binder.stage_buffer(POINT, 0, &null, 0), Err(StageError::NullSet { set: 0 }));
        own.destroy(&fixture);
    }
}

#[test]
fn more_descriptor_buffers_than_can_be_bound_are_refused_whole() {
    let fixture = Fixture::with_buffers("nvidia-h200");
    let set = fixture.set_layout(&[(0, K::StorageBuffer, 2)]);
    let (mut binder, layout, commands) = fixture.start(&vec![set.clone(); 6]);
    let buffer = fixture.buffer();
    let own: Vec<_> =
        (0..5).map(|_| OwnBuffer::new(&fixture, &set, [(buffer, 256), (buffer, 512)])).collect();
    for (set, own) in (0..).zip(&own) {
        binder.stage_buffer(POINT, set, &own.info, OWN_OFFSET).unwrap();
    }
    let error = unsafe { binder.commit(commands, POINT) }.unwrap_err();
    assert_eq!(error, CommitError::TooManyBuffers { most: 4 });
    assert_eq!(fixture.calls([BIND, OFFSETS]), [0, 0]);
    binder.validate();
    binder.stage_buffer(POINT, 4, &own[0].info, OWN_OFFSET).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    fixture.dispatch(commands, &layout, (0..5).map(|set| ((set, 0, 1), fixture.content(buffer, 512))));
    fixture.finish(&mut binder, commands);
    own.into_iter().for_each(|own| own.destroy(&fixture));
}

/// The offset of the set in an [`OwnBuffer`].
const OWN_OFFSET: u64 = 512;

/// A descriptor buffer of the program, with one set of two storage buffers.
struct OwnBuffer {
    buffer: vk::Buffer,
    memory: sublet::Allocation,
    info: vk::DescriptorBufferBindingInfoEXT<'static>,
}

impl OwnBuffer {
    fn new(fixture: &Fixture, set: &SetLayout, content: [(vk::Buffer, u64); 2]) -> Self {
        let device = ash::ext::descriptor_buffer::Device::new(fixture.gpu.instance(), fixture.gpu.device());
        let usage = vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT;
        let buffer_info = vk::BufferCreateInfo::default()
            .size(4096)
            .usage(usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        let wish = sublet::AllocationCreateInfo {
            flags: sublet::AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
            min_alignment: 256,
            ..sublet::AllocationCreateInfo::new(sublet::MemoryUsage::Auto)
        };
        let (buffer, mut memory) = unsafe { fixture.allocator.create_buffer(&buffer_info, &wish) }.unwrap();
        let offset = unsafe { device.get_descriptor_set_layout_binding_offset(set.handle(), 0) };
        let size = DescriptorSizes::of(&fixture.device).get(K::StorageBuffer).unwrap();
        for (at, (target, start)) in (0..).zip(content) {
            let range = fixture.range(target, start);
            let address =
                vk::DescriptorAddressInfoEXT::default().address(range.address.unwrap()).range(range.range);
            let data = vk::DescriptorDataEXT { p_storage_buffer: &address };
            let info = vk::DescriptorGetInfoEXT::default().ty(vk::DescriptorType::STORAGE_BUFFER).data(data);
            let mut bytes = vec![0; usize::try_from(size).unwrap()];
            unsafe { device.get_descriptor(&info, &mut bytes) };
            fixture
                .allocator
                .copy_to_allocation(&bytes, &mut memory, OWN_OFFSET + offset + at * size)
                .unwrap();
        }
        let address = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        let address = unsafe { fixture.gpu.device().get_buffer_device_address(&address) };
        let info = vk::DescriptorBufferBindingInfoEXT::default().address(address).usage(usage);
        Self { buffer, memory, info }
    }

    fn destroy(self, fixture: &Fixture) {
        unsafe { fixture.allocator.destroy_buffer(self.buffer, self.memory) }.unwrap();
    }
}
