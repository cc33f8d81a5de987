//! Rejected requests, which change nothing.

use ash::vk;
use sublet_descriptors::{
    AccelerationStructureDescriptor, BindPoint, BindingModel, Descriptor, DescriptorKind as K,
    PipelineLayoutError, PipelineLayoutInfo, SetLayout, StageError, UseLayoutError,
};

use super::fixture::{Fixture, POINT, commit, dynamic, sets, storage, uniform, without_templates};

#[test]
fn at_most_32_sets_and_as_many_as_the_device_binds() {
    let fixture = Fixture::with_sets();
    let most = fixture.device.limits().max_bound_descriptor_sets.min(32);
    let layout = fixture.set_layout(&[(0, K::StorageBuffer, 1)]);
    let layouts = vec![layout; usize::try_from(most).unwrap() + 1];
    // SAFETY: the layout is rejected and never used.
    let error =
        unsafe { PipelineLayoutInfo::new(&fixture.device, vk::PipelineLayout::null(), &layouts, &[]) };
    assert_eq!(error.unwrap_err(), PipelineLayoutError::TooManySets { asked: u64::from(most) + 1, most });
    let all = fixture.try_pipeline(&layouts[1..], &[]).unwrap();
    assert_eq!(all.set_count(), most);
}

fn refused(fixture: &Fixture, sets: &[SetLayout]) -> PipelineLayoutError {
    // SAFETY: the layout is rejected and never used.
    unsafe { PipelineLayoutInfo::new(&fixture.device, vk::PipelineLayout::null(), sets, &[]) }.unwrap_err()
}

#[test]
fn one_set_of_push_descriptors_and_no_more_than_the_device_pushes() {
    let fixture = Fixture::with_sets();
    let (set, push) =
        (fixture.set_layout(&[(0, K::StorageBuffer, 1)]), fixture.push_layout(&[(0, K::StorageBuffer, 1)]));
    let error = refused(&fixture, &[push.clone(), set, push.clone()]);
    assert_eq!(error, PipelineLayoutError::TwoPushSets { first: 0, second: 2 });
    // Vulkan does not allow such a layout. A program that passes one anyway gets an error.
    let bindings = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
        .descriptor_count(1000)];
    let info = vk::DescriptorSetLayoutCreateInfo::default()
        .bindings(&bindings)
        .flags(vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR);
    // SAFETY: the layout is only inspected.
    let many = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
    let error = refused(&fixture, &[many]);
    assert!(
        matches!(error, PipelineLayoutError::TooManyPushDescriptors { set: 0, asked: 1000, .. }),
        "{error}"
    );

    let without =
        Fixture::new(sets().without_extension("VK_KHR_push_descriptor").build(), BindingModel::Sets);
    assert_eq!(refused(&without, &[push]), PipelineLayoutError::PushNotEnabled { set: 0 });
}

#[test]
fn layouts_for_descriptor_buffers_do_not_fit_a_device_that_binds_sets() {
    let fixture = Fixture::with_sets();
    let set = fixture.set_layout(&[(0, K::StorageBuffer, 1)]);
    let info = vk::DescriptorSetLayoutCreateInfo::default()
        .flags(vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT);
    // SAFETY: the layout is only inspected.
    let buffer = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
    let error = refused(&fixture, &[set, buffer]);
    assert_eq!(error, PipelineLayoutError::WrongModel { set: 1, model: BindingModel::Sets });
}

#[test]
fn the_descriptors_of_all_sets_together_are_within_the_limits() {
    let fixture = Fixture::with_sets();
    let most = fixture.device.limits().max_descriptor_set_uniform_buffers_dynamic;
    let one = fixture.set_layout(&[(0, K::UniformBufferDynamic, most)]);
    let other = fixture.set_layout(&[(0, K::UniformBufferDynamic, 1)]);
    let error = refused(&fixture, &[one.clone(), other]);
    let (kind, asked) = (K::UniformBufferDynamic, u64::from(most) + 1);
    assert_eq!(error, PipelineLayoutError::TooManyDescriptors { kind, asked, most });
    fixture.pipeline(&[one]);
}

/// Every staging error, each followed by a commit that shows that nothing changed.
#[test]
fn what_cannot_be_staged_is_said_and_nothing_of_it_is_staged() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let set = fixture.set_layout(&[
        (0, K::StorageBuffer, 4),
        (2, K::UniformBufferDynamic, 1),
        (5, K::InlineUniformBlock, 16),
    ]);
    let pushed = fixture.push_layout(&[(0, K::StorageBuffer, 1)]);
    let layout = fixture.pipeline(&[set, pushed]);
    let [a, b] = fixture.buffers();
    let commands = fixture.commands();
    assert_eq!(
        binder.stage(POINT, 0, 0, 0, &[storage(a, 0)]),
        Err(StageError::NoLayout { point: POINT, set: 0 })
    );
    binder.set_layout(POINT, &layout).unwrap();
    binder.stage(POINT, 0, 0, 0, &[storage(a, 0), storage(a, 256)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    let calls = fixture.all_calls();

    let (other, alignment) =
        ([storage(b, 0); 3], fixture.device.limits().min_uniform_buffer_offset_alignment);
    let mixed = [storage(b, 0), storage(b, 0), uniform(b, 0)];
    let (storages, inline, (null, some)) = (
        K::StorageBuffer,
        K::InlineUniformBlock,
        (vk::DescriptorSet::null(), fixture.bound(commands, &layout, 0).unwrap()),
    );
    use StageError::*;
    let graphics = NoLayout { point: BindPoint::Graphics, set: 0 };
    for (refused, error) in [
        (binder.stage(BindPoint::Graphics, 0, 0, 0, &other), graphics),
        (binder.stage(POINT, 2, 0, 0, &other), NoSuchSet { set: 2, sets: 2 }),
        (binder.stage(POINT, u32::MAX, 0, 0, &other), NoSuchSet { set: u32::MAX, sets: 2 }),
        (binder.stage(POINT, 0, 1, 0, &other), NoSuchBinding { set: 0, binding: 1 }),
        (binder.stage(POINT, 0, 0, 2, &other), OutOfRange { binding: 0, first: 2, asked: 3, count: 4 }),
        (
            binder.stage(POINT, 0, 0, u32::MAX, &other),
            OutOfRange { binding: 0, first: u32::MAX, asked: 3, count: 4 },
        ),
        // The last descriptor has another type, so the two before it are not staged either.
        (
            binder.stage(POINT, 0, 0, 0, &mixed),
            WrongType { binding: 0, expected: storages, given: K::UniformBuffer },
        ),
        (
            binder.stage(POINT, 0, 5, 0, &other[..1]),
            WrongType { binding: 5, expected: inline, given: storages },
        ),
        (
            binder.stage_inline(POINT, 0, 0, 0, &[0; 4]),
            WrongType { binding: 0, expected: storages, given: inline },
        ),
        (
            binder.stage_inline(POINT, 0, 5, 12, &[0; 8]),
            OutOfRange { binding: 5, first: 12, asked: 8, count: 16 },
        ),
        (binder.stage_inline(POINT, 0, 5, 2, &[1; 4]), Misaligned { binding: 5, given: 2, alignment: 4 }),
        (binder.stage_inline(POINT, 0, 5, 4, &[1; 6]), Misaligned { binding: 5, given: 6, alignment: 4 }),
        (binder.stage_dynamic_offset(POINT, 0, 0, 0, 256), NotDynamic { binding: 0, kind: storages }),
        (
            binder.stage_dynamic_offset(POINT, 0, 2, 1, 256),
            OutOfRange { binding: 2, first: 1, asked: 1, count: 1 },
        ),
        (binder.stage_dynamic_offset(POINT, 0, 2, 0, 1), Misaligned { binding: 2, given: 1, alignment }),
        (binder.stage_set(POINT, 0, null), NullSet { set: 0 }),
        (binder.stage_set(POINT, 1, some), NoSets { set: 1 }),
    ] {
        assert_eq!(refused, Err(error));
    }
    assert!(graphics.to_string().contains("call `set_layout` first"));

    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.all_calls(), calls, "nothing was changed");
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 0)), Some((a, 0)));
}

#[test]
fn samplers_of_a_layout_are_not_staged() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let sampler = fixture.sampler();
    let samplers = [sampler];
    let only = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::SAMPLER)
        .descriptor_count(1)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
        .immutable_samplers(&samplers)];
    let beside = [
        only[0],
        vk::DescriptorSetLayoutBinding::default()
            .binding(1)
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE),
    ];
    let none = vk::DescriptorSetLayoutCreateFlags::empty();
    let layout =
        fixture.pipeline(&[fixture.set_layout_of(&only, none), fixture.set_layout_of(&beside, none)]);
    let buffer = fixture.buffer();
    binder.set_layout(POINT, &layout).unwrap();
    for set in [0, 1] {
        let error = binder.stage(POINT, set, 0, 0, &[Descriptor::Sampler(sampler)]).unwrap_err();
        assert_eq!(error, StageError::Immutable { binding: 0 });
    }
    binder.stage(POINT, 1, 1, 0, &[storage(buffer, 0)]).unwrap();
    assert_eq!(binder.first_unstaged(POINT), None);
    let commands = fixture.commands();
    commit(&fixture, &mut binder, commands, POINT);
    // The set with only immutable samplers is bound as well, because shaders may use them.
    for set in [0, 1] {
        let (seen, _) =
            unsafe { fixture.gpu.bound_descriptor(commands, POINT.to_vk(), layout.handle(), (set, 0, 0)) }
                .unwrap();
        assert_eq!(seen.kind(), vk::DescriptorType::SAMPLER);
    }
    assert_eq!(fixture.gpu.calls("vkCmdBindDescriptorSets"), 1);
}

#[test]
fn a_layout_of_another_device_is_refused() {
    let (fixture, other) = (Fixture::with_sets(), Fixture::with_sets());
    let (mut binder, layout) = (fixture.binder(), other.pipeline(&[]));
    let error = binder.set_layout(POINT, &layout).unwrap_err();
    assert_eq!(error, UseLayoutError::Foreign { layout: layout.handle() });
}

#[test]
fn errors_say_what_was_asked_and_keep_their_source() {
    use std::error::Error as _;
    let stage = StageError::OutOfRange { binding: 0, first: 2, asked: 3, count: 4 };
    assert_eq!(stage.to_string(), "3 from 2 on, and binding 0 has 4");
    let fixture = Fixture::with_sets();
    fixture
        .gpu
        .faults()
        .fail_always("vkCreateDescriptorUpdateTemplate", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let set = fixture.set_layout(&[(0, K::StorageBuffer, 4)]);
    let error = fixture.try_pipeline(&[set], &[]).unwrap_err();
    assert!(matches!(error, PipelineLayoutError::Template(_)));
    // The message names the driver call, and its source is the bare result.
    assert!(error.to_string().contains("vkCreateDescriptorUpdateTemplate failed"), "{error}");
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&vk::Result::ERROR_OUT_OF_HOST_MEMORY));
    fixture.gpu.faults().clear();
}

#[test]
fn dynamic_buffers_are_bound_with_their_offsets() {
    let fixture = Fixture::with_sets();
    let set = fixture.set_layout(&[(0, K::UniformBufferDynamic, 2), (1, K::StorageBuffer, 1)]);
    let (mut binder, layout, commands) = fixture.start(&[set.clone(), set]);
    let other = fixture.pipeline(&[fixture.set_layout(&[(0, K::UniformBufferDynamic, 1)])]);
    let [a, b] = fixture.buffers();
    for set in [0, 1] {
        binder.stage(POINT, set, 0, 0, &[dynamic(a, 0), dynamic(b, 256)]).unwrap();
        binder.stage(POINT, set, 1, 0, &[storage(b, 512)]).unwrap();
    }
    binder.stage_dynamic_offset(POINT, 1, 0, 1, 512).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    let made = fixture.gpu.calls("vkAllocateDescriptorSets");
    assert_eq!(fixture.seen(commands, POINT, &layout, (1, 0, 1)), Some((b, 256 + 512)));
    assert_eq!(fixture.seen(commands, POINT, &layout, (1, 0, 0)), Some((a, 0)));
    // A changed offset binds the same set again, and no other.
    let [set0, set1] = [0, 1].map(|set| fixture.bound(commands, &layout, set).unwrap());
    binder.stage_dynamic_offset(POINT, 0, 0, 0, 256).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 0)), Some((a, 256)));
    assert_eq!(fixture.seen(commands, POINT, &layout, (1, 0, 1)), Some((b, 256 + 512)));
    assert_eq!([0, 1].map(|set| fixture.bound(commands, &layout, set).unwrap()), [set0, set1]);
    assert_eq!(fixture.calls(["vkAllocateDescriptorSets", "vkCmdBindDescriptorSets"]), [made, 2]);
    // The same offset again makes no call.
    binder.stage_dynamic_offset(POINT, 0, 0, 0, 256).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.gpu.calls("vkCmdBindDescriptorSets"), 2);
    // A set of another layout starts without offsets.
    binder.set_layout(POINT, &other).unwrap();
    binder.stage(POINT, 0, 0, 0, &[dynamic(b, 512)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.seen(commands, POINT, &other, (0, 0, 0)), Some((b, 512)));
}

/// Staging a set of billions of descriptors is rejected, because it would take hundreds of gigabytes. A million is
/// accepted.
#[test]
fn a_set_that_is_too_large_to_stage_is_refused() {
    let fixture = Fixture::new(without_templates().build(), BindingModel::Sets);
    let mut binder = fixture.binder();
    // The layouts are only inspected, so no device has to support them.
    let layout_of = |count| {
        let bindings = [vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::ACCELERATION_STRUCTURE_KHR)
            .descriptor_count(count)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let set = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
        unsafe { PipelineLayoutInfo::new(&fixture.device, vk::PipelineLayout::null(), &[set], &[]) }.unwrap()
    };
    let one = [Descriptor::AccelerationStructure(AccelerationStructureDescriptor {
        handle: vk::AccelerationStructureKHR::null(),
        address: None,
    })];
    let most = 1 << 22;
    for count in [most + 1, u32::MAX] {
        binder.set_layout(POINT, &layout_of(count)).unwrap();
        let error = binder.stage(POINT, 0, 0, 0, &one);
        assert_eq!(error, Err(StageError::SetTooLarge { set: 0, descriptors: count, most }));
    }
    binder.set_layout(POINT, &layout_of(1 << 20)).unwrap();
    binder.stage(POINT, 0, 0, 0, &one).unwrap();
}
