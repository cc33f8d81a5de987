//! The sets that survive a change of the pipeline layout.

use ash::vk;
use sublet_descriptors::DescriptorKind as K;

use super::fixture::{Fixture, POINT, commit, storage, uniform};

const BIND: &str = "vkCmdBindDescriptorSets";
const ALLOCATE: &str = "vkAllocateDescriptorSets";

fn range(size: u32) -> vk::PushConstantRange {
    vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size }
}

#[test]
fn sets_before_the_first_incompatible_one_stay_bound() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let (frame, material) =
        (fixture.set_layout(&[(0, K::UniformBuffer, 1)]), fixture.set_layout(&[(0, K::StorageBuffer, 1)]));
    let other = fixture.set_layout(&[(0, K::StorageBuffer, 2)]);
    let one = fixture.pipeline(&[frame.clone(), material.clone(), frame.clone()]);
    let two = fixture.pipeline(&[frame.clone(), other, frame]);
    let buffer = fixture.buffer();
    let commands = fixture.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[uniform(buffer, 0)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[storage(buffer, 256)]).unwrap();
    binder.stage(POINT, 2, 0, 0, &[uniform(buffer, 512)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    let bound = [0, 2].map(|set| fixture.bound(commands, &one, set).unwrap());

    binder.set_layout(POINT, &two).unwrap();
    binder.validate();
    fixture.gpu.reset_calls();
    binder.stage(POINT, 1, 0, 0, &[storage(buffer, 768), storage(buffer, 1024)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    // Set 0 is untouched, set 1 is allocated, and set 2 is bound again without a new allocation.
    assert_eq!(fixture.calls([ALLOCATE, BIND]), [1, 1]);
    assert_eq!([0, 2].map(|set| fixture.bound(commands, &two, set).unwrap()), bound);
    assert_eq!(fixture.seen(commands, POINT, &two, (2, 0, 0)), Some((buffer, 512)));
    assert_eq!(fixture.seen(commands, POINT, &two, (1, 0, 1)), Some((buffer, 1024)));
    assert_eq!((one.compatible_sets(&two), one.compatible_sets(&one.clone())), (1, 3));
}

/// A well-known Direct3D 12 sample clears its mask of stale tables when the root signature changes, although it claims
/// to bind the staged ones again.
#[test]
fn what_was_staged_and_not_committed_survives_a_change_of_the_layout() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let (frame, material) =
        (fixture.set_layout(&[(0, K::UniformBuffer, 1)]), fixture.set_layout(&[(0, K::StorageBuffer, 1)]));
    let one = fixture.pipeline_with(&[frame.clone(), material.clone()], &[range(16)]);
    // The push constants differ, so no set of it is compatible.
    let two = fixture.pipeline_with(&[frame, material], &[range(32)]);
    assert_eq!(one.compatible_sets(&two), 0);
    let [a, b] = fixture.buffers();
    let commands = fixture.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[uniform(a, 0)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[storage(a, 256)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    binder.stage(POINT, 0, 0, 0, &[uniform(b, 512)]).unwrap();
    binder.set_layout(POINT, &two).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    // Both the stale set and the set bound with the layout before.
    assert_eq!(fixture.seen(commands, POINT, &two, (0, 0, 0)), Some((b, 512)));
    assert_eq!(fixture.seen(commands, POINT, &two, (1, 0, 0)), Some((a, 256)));
    assert_eq!(fixture.gpu.calls(ALLOCATE), 3, "the second set is the one that there was");
}

/// In a well-known Direct3D 12 sample, the counts of the former root signature remain for tables that the new one
/// lacks.
#[test]
fn nothing_of_a_former_layout_stays_where_the_new_one_has_another_set_or_none() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let (wide, narrow) =
        (fixture.set_layout(&[(0, K::StorageBuffer, 4)]), fixture.set_layout(&[(0, K::StorageBuffer, 2)]));
    let both = fixture.pipeline(&[wide.clone(), wide.clone()]);
    let short = fixture.pipeline(std::slice::from_ref(&wide));
    let other = fixture.pipeline(&[wide, narrow]);
    let buffer = fixture.buffer();
    let commands = fixture.commands();
    binder.set_layout(POINT, &both).unwrap();
    for set in [0, 1] {
        binder.stage(POINT, set, 0, 0, &[storage(buffer, 0); 4]).unwrap();
    }
    binder.set_layout(POINT, &short).unwrap();
    binder.validate();
    let error = binder.stage(POINT, 1, 0, 0, &[storage(buffer, 256)]).unwrap_err();
    assert_eq!(error, sublet_descriptors::StageError::NoSuchSet { set: 1, sets: 1 });
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.gpu.calls(ALLOCATE), 1, "set 1 is not there");
    // The set does not return with a layout that has such a set again ...
    binder.set_layout(POINT, &both).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!((fixture.gpu.calls(ALLOCATE), fixture.bound(commands, &both, 1)), (1, None));
    // ... and the former descriptor count does not apply to the new set.
    binder.stage(POINT, 1, 0, 0, &[storage(buffer, 0); 4]).unwrap();
    binder.set_layout(POINT, &other).unwrap();
    let error = binder.stage(POINT, 1, 0, 2, &[storage(buffer, 256)]).unwrap_err();
    assert!(matches!(error, sublet_descriptors::StageError::OutOfRange { count: 2, .. }), "{error}");
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!((fixture.gpu.calls(ALLOCATE), fixture.bound(commands, &other, 1)), (1, None));
    let unstaged = binder.first_unstaged(POINT).unwrap();
    assert_eq!((unstaged.set, unstaged.element), (1, 0));
}

#[test]
fn layouts_that_are_defined_alike_are_compatible() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let shapes = [(0, K::UniformBuffer, 1), (1, K::StorageBuffer, 3)];
    let (one, two) =
        (fixture.pipeline(&[fixture.set_layout(&shapes)]), fixture.pipeline(&[fixture.set_layout(&shapes)]));
    let buffer = fixture.buffer();
    let commands = fixture.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[uniform(buffer, 0)]).unwrap();
    binder.stage(POINT, 0, 1, 0, &[storage(buffer, 0); 3]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    let calls = fixture.all_calls();
    binder.set_layout(POINT, &two).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.all_calls(), calls, "all of it is bound");
    assert_eq!(fixture.seen(commands, POINT, &two, (0, 1, 2)), Some((buffer, 0)));
}

#[test]
fn push_descriptors_survive_a_change_of_the_layout_as_sets_do() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let (set, push) =
        (fixture.set_layout(&[(0, K::UniformBuffer, 1)]), fixture.push_layout(&[(0, K::StorageBuffer, 2)]));
    let one = fixture.pipeline(&[push.clone(), set.clone()]);
    let compatible = fixture.pipeline(std::slice::from_ref(&push));
    let other = fixture.pipeline_with(&[push, set], &[range(16)]);
    let buffer = fixture.buffer();
    let commands = fixture.commands();
    binder.set_layout(POINT, &one).unwrap();
    binder.stage(POINT, 0, 0, 0, &[storage(buffer, 0), storage(buffer, 256)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[uniform(buffer, 512)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    let calls = fixture.all_calls();
    binder.set_layout(POINT, &compatible).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.all_calls(), calls, "they are still pushed");
    binder.set_layout(POINT, &other).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.gpu.calls("vkCmdPushDescriptorSetWithTemplateKHR"), 2);
    assert_eq!(fixture.seen(commands, POINT, &other, (0, 0, 1)), Some((buffer, 256)));
}
