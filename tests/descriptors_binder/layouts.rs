//! The sets that survive a change of the pipeline layout.

use ash::vk;
use sublet::descriptor::DescriptorKind as K;

use super::kit::{Kit, POINT, commit, storage, uniform};

const BIND: &str = "vkCmdBindDescriptorSets";
const ALLOCATE: &str = "vkAllocateDescriptorSets";

fn range(size: u32) -> vk::PushConstantRange {
    vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size }
}

#[test]
fn sets_before_the_first_incompatible_one_stay_bound() {
    let kit = Kit::with_sets();
    let mut binder = kit.binder();
    let (frame, material) =
        (kit.set_layout(&[(0, K::UniformBuffer, 1)]), kit.set_layout(&[(0, K::StorageBuffer, 1)]));
    let other = kit.set_layout(&[(0, K::StorageBuffer, 2)]);
    let one = kit.pipeline(&[frame.clone(), material.clone(), frame.clone()]);
    let two = kit.pipeline(&[frame.clone(), other, frame]);
    let buffer = kit.buffer();
    let commands = kit.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[uniform(buffer, 0)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[storage(buffer, 256)]).unwrap();
    binder.stage(POINT, 2, 0, 0, &[uniform(buffer, 512)]).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    let bound = [0, 2].map(|set| kit.bound(commands, &one, set).unwrap());

    binder.set_layout(POINT, &two).unwrap();
    binder.validate();
    kit.gpu.reset_calls();
    binder.stage(POINT, 1, 0, 0, &[storage(buffer, 768), storage(buffer, 1024)]).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    // Set 0 is untouched, set 1 is allocated, and set 2 is bound again without a new allocation.
    assert_eq!(kit.calls([ALLOCATE, BIND]), [1, 1]);
    assert_eq!([0, 2].map(|set| kit.bound(commands, &two, set).unwrap()), bound);
    assert_eq!(kit.seen(commands, POINT, &two, (2, 0, 0)), Some((buffer, 512)));
    assert_eq!(kit.seen(commands, POINT, &two, (1, 0, 1)), Some((buffer, 1024)));
    assert_eq!((one.compatible_sets(&two), one.compatible_sets(&one.clone())), (1, 3));
}

/// A well-known Direct3D 12 sample clears its mask of stale tables when the root signature changes, although it claims
/// to bind the staged ones again.
#[test]
fn what_was_staged_and_not_committed_survives_a_change_of_the_layout() {
    let kit = Kit::with_sets();
    let mut binder = kit.binder();
    let (frame, material) =
        (kit.set_layout(&[(0, K::UniformBuffer, 1)]), kit.set_layout(&[(0, K::StorageBuffer, 1)]));
    let one = kit.pipeline_with(&[frame.clone(), material.clone()], &[range(16)]);
    // The push constants differ, so no set of it is compatible.
    let two = kit.pipeline_with(&[frame, material], &[range(32)]);
    assert_eq!(one.compatible_sets(&two), 0);
    let [a, b] = kit.buffers();
    let commands = kit.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[uniform(a, 0)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[storage(a, 256)]).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    binder.stage(POINT, 0, 0, 0, &[uniform(b, 512)]).unwrap();
    binder.set_layout(POINT, &two).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    // Both the stale set and the set bound with the layout before.
    assert_eq!(kit.seen(commands, POINT, &two, (0, 0, 0)), Some((b, 512)));
    assert_eq!(kit.seen(commands, POINT, &two, (1, 0, 0)), Some((a, 256)));
    assert_eq!(kit.gpu.calls(ALLOCATE), 3, "the second set is the one that there was");
}

/// In a well-known Direct3D 12 sample, the counts of the former root signature remain for tables that the new one
/// lacks.
#[test]
fn nothing_of_a_former_layout_stays_where_the_new_one_has_another_set_or_none() {
    let kit = Kit::with_sets();
    let mut binder = kit.binder();
    let (wide, narrow) =
        (kit.set_layout(&[(0, K::StorageBuffer, 4)]), kit.set_layout(&[(0, K::StorageBuffer, 2)]));
    let both = kit.pipeline(&[wide.clone(), wide.clone()]);
    let short = kit.pipeline(std::slice::from_ref(&wide));
    let other = kit.pipeline(&[wide, narrow]);
    let buffer = kit.buffer();
    let commands = kit.commands();
    binder.set_layout(POINT, &both).unwrap();
    for set in [0, 1] {
        binder.stage(POINT, set, 0, 0, &[storage(buffer, 0); 4]).unwrap();
    }
    binder.set_layout(POINT, &short).unwrap();
    binder.validate();
    let error = binder.stage(POINT, 1, 0, 0, &[storage(buffer, 256)]).unwrap_err();
    assert_eq!(error, sublet::descriptor::StageError::NoSuchSet { set: 1, sets: 1 });
    commit(&kit, &mut binder, commands, POINT);
    assert_eq!(kit.gpu.calls(ALLOCATE), 1, "set 1 is not there");
    // The set does not return with a layout that has such a set again ...
    binder.set_layout(POINT, &both).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    assert_eq!((kit.gpu.calls(ALLOCATE), kit.bound(commands, &both, 1)), (1, None));
    // ... and the former descriptor count does not apply to the new set.
    binder.stage(POINT, 1, 0, 0, &[storage(buffer, 0); 4]).unwrap();
    binder.set_layout(POINT, &other).unwrap();
    let error = binder.stage(POINT, 1, 0, 2, &[storage(buffer, 256)]).unwrap_err();
    assert!(matches!(error, sublet::descriptor::StageError::OutOfRange { count: 2, .. }), "{error}");
    commit(&kit, &mut binder, commands, POINT);
    assert_eq!((kit.gpu.calls(ALLOCATE), kit.bound(commands, &other, 1)), (1, None));
    let unstaged = binder.first_unstaged(POINT).unwrap();
    assert_eq!((unstaged.set, unstaged.element), (1, 0));
}

#[test]
fn layouts_that_are_defined_alike_are_compatible() {
    let kit = Kit::with_sets();
    let mut binder = kit.binder();
    let shapes = [(0, K::UniformBuffer, 1), (1, K::StorageBuffer, 3)];
    let (one, two) = (kit.pipeline(&[kit.set_layout(&shapes)]), kit.pipeline(&[kit.set_layout(&shapes)]));
    let buffer = kit.buffer();
    let commands = kit.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[uniform(buffer, 0)]).unwrap();
    binder.stage(POINT, 0, 1, 0, &[storage(buffer, 0); 3]).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    let calls = kit.all_calls();
    binder.set_layout(POINT, &two).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    assert_eq!(kit.all_calls(), calls, "all of it is bound");
    assert_eq!(kit.seen(commands, POINT, &two, (0, 1, 2)), Some((buffer, 0)));
}

#[test]
fn push_descriptors_survive_a_change_of_the_layout_as_sets_do() {
    let kit = Kit::with_sets();
    let mut binder = kit.binder();
    let (set, push) =
        (kit.set_layout(&[(0, K::UniformBuffer, 1)]), kit.push_layout(&[(0, K::StorageBuffer, 2)]));
    let one = kit.pipeline(&[push.clone(), set.clone()]);
    let compatible = kit.pipeline(std::slice::from_ref(&push));
    let other = kit.pipeline_with(&[push, set], &[range(16)]);
    let buffer = kit.buffer();
    let commands = kit.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[storage(buffer, 0), storage(buffer, 256)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[uniform(buffer, 512)]).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    let calls = kit.all_calls();
    binder.set_layout(POINT, &compatible).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    assert_eq!(kit.all_calls(), calls, "they are still pushed");
    binder.set_layout(POINT, &other).unwrap();
    commit(&kit, &mut binder, commands, POINT);
    assert_eq!(kit.gpu.calls("vkCmdPushDescriptorSetWithTemplateKHR"), 2);
    assert_eq!(kit.seen(commands, POINT, &other, (0, 0, 1)), Some((buffer, 256)));
}
