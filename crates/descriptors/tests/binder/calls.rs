//! The binder calls the driver only for changes.

use ash::vk;
use sublet::retire::Clock;
use sublet_descriptors::{BindPoint, BindingModel, Descriptor, DescriptorKind as K};

use super::fixture::{Fixture, POINT, commit, sets, storage, uniform, without_templates};

const ALLOCATE: &str = "vkAllocateDescriptorSets";
const BIND: &str = "vkCmdBindDescriptorSets";
const TEMPLATE: &str = "vkUpdateDescriptorSetWithTemplate";
const WRITE: &str = "vkUpdateDescriptorSets";
const PUSH: &str = "vkCmdPushDescriptorSetKHR";
const PUSH_TEMPLATE: &str = "vkCmdPushDescriptorSetWithTemplateKHR";

#[test]
fn nothing_stale_is_nothing_done() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let layout = fixture.pipeline(&[fixture.set_layout(&[(0, K::StorageBuffer, 1)])]);
    let buffer = fixture.buffer();
    let commands = fixture.commands();
    let before = fixture.all_calls();
    commit(&fixture, &mut binder, commands, POINT);
    binder.set_layout(POINT, &layout).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.all_calls(), before, "nothing is staged");
    binder.stage(POINT, 0, 0, 0, &[storage(buffer, 0)]).unwrap();
    assert_eq!(fixture.all_calls(), before, "staging calls nothing");
    commit(&fixture, &mut binder, commands, POINT);
    let after = fixture.all_calls();
    assert!(after > before);
    for _ in 0..10 {
        // Staging the same descriptors again makes no call.
        binder.stage(POINT, 0, 0, 0, &[storage(buffer, 0)]).unwrap();
        binder.stage(POINT, 0, 0, 0, &[]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
    }
    assert_eq!(fixture.all_calls(), after);
}

#[test]
fn only_modified_sets_are_made_anew() {
    let fixture = Fixture::with_sets();
    let set = fixture.set_layout(&[(0, K::StorageBuffer, 1), (3, K::UniformBuffer, 2)]);
    let (mut binder, layout, commands) = fixture.start(&[set.clone(), set.clone(), set]);
    let [a, b] = fixture.buffers();
    for set in 0..3 {
        binder.stage(POINT, set, 0, 0, &[storage(a, 0)]).unwrap();
        binder.stage(POINT, set, 3, 0, &[uniform(a, 256), uniform(a, 512)]).unwrap();
    }
    commit(&fixture, &mut binder, commands, POINT);
    // Consecutive sets are bound by one call.
    assert_eq!(fixture.calls([ALLOCATE, TEMPLATE, WRITE, BIND]), [3, 3, 0, 1]);
    let before = [0, 1, 2].map(|set| fixture.bound(commands, &layout, set).unwrap());
    binder.stage(POINT, 1, 3, 1, &[uniform(b, 768)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.calls([ALLOCATE, TEMPLATE, WRITE, BIND]), [4, 4, 0, 2]);
    let after = [0, 1, 2].map(|set| fixture.bound(commands, &layout, set).unwrap());
    assert_eq!((after[0], after[2]), (before[0], before[2]));
    assert_ne!(after[1], before[1], "a set that is in use is not written");
    assert_eq!(fixture.seen(commands, POINT, &layout, (1, 3, 1)), Some((b, 768)));
    assert_eq!(fixture.seen(commands, POINT, &layout, (1, 3, 0)), Some((a, 256)));
    // Sets that are not consecutive need two calls.
    for set in [0, 2] {
        binder.stage(POINT, set, 0, 0, &[storage(b, 0)]).unwrap();
    }
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.calls([ALLOCATE, BIND]), [6, 4]);
    assert_eq!(fixture.seen(commands, POINT, &layout, (2, 0, 0)), Some((b, 0)));
}

#[test]
fn the_same_content_again_makes_no_set() {
    let fixture = Fixture::with_sets();
    let (mut binder, _layout, commands) = fixture.start(&[fixture.set_layout(&[(0, K::StorageBuffer, 2)])]);
    let [a, b] = fixture.buffers();
    binder.stage(POINT, 0, 0, 0, &[storage(a, 0), storage(b, 0)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    let calls = fixture.all_calls();
    // Staging another descriptor and then the first again makes no call.
    binder.stage(POINT, 0, 0, 1, &[storage(a, 0)]).unwrap();
    binder.stage(POINT, 0, 0, 1, &[storage(b, 0)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.all_calls(), calls);
}

#[test]
fn a_new_command_buffer_has_nothing_bound_and_everything_staged() {
    let fixture = Fixture::with_sets();
    let (mut binder, layout) = fixture.with_layout(&[
        fixture.set_layout(&[(0, K::StorageBuffer, 1)]),
        fixture.push_layout(&[(0, K::UniformBuffer, 1)]),
    ]);
    let buffer = fixture.buffer();
    binder.stage(POINT, 0, 0, 0, &[storage(buffer, 0)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[uniform(buffer, 256)]).unwrap();
    for _ in 0..3 {
        let commands = fixture.commands();
        binder.begin();
        commit(&fixture, &mut binder, commands, POINT);
        assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 0)), Some((buffer, 0)));
        assert_eq!(fixture.seen(commands, POINT, &layout, (1, 0, 0)), Some((buffer, 256)));
    }
    assert_eq!(fixture.calls([BIND, PUSH_TEMPLATE]), [3, 3]);
}

#[test]
fn forgetting_unstages_all_and_the_layout_must_be_set_again() {
    let fixture = Fixture::with_sets();
    let (mut binder, layout, commands) = fixture.start(&[fixture.set_layout(&[(0, K::StorageBuffer, 2)])]);
    let [a, b] = fixture.buffers();
    binder.stage(POINT, 0, 0, 0, &[storage(a, 0), storage(a, 0)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    binder.forget();
    binder.validate();
    assert!(binder.stage(POINT, 0, 0, 0, &[storage(a, 0)]).is_err());
    let calls = fixture.all_calls();
    binder.set_layout(POINT, &layout).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.all_calls(), calls, "what was staged before is not bound again");
    binder.stage(POINT, 0, 0, 1, &[storage(b, 0)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 1)), Some((b, 0)));
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 0)), None, "it was forgotten");
}

#[test]
fn draws_and_dispatches_have_sets_of_their_own() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let layout = fixture.pipeline(&[fixture.set_layout(&[(0, K::StorageBuffer, 1)])]);
    let [a, b] = fixture.buffers();
    let commands = fixture.commands();
    let points = [(BindPoint::Graphics, a), (BindPoint::Compute, b)];
    for (point, buffer) in points {
        binder.set_layout(point, &layout).unwrap();
        binder.stage(point, 0, 0, 0, &[storage(buffer, 0)]).unwrap();
    }
    commit(&fixture, &mut binder, commands, BindPoint::Graphics);
    assert_eq!(fixture.seen(commands, BindPoint::Graphics, &layout, (0, 0, 0)), Some((a, 0)));
    assert_eq!(fixture.seen(commands, BindPoint::Compute, &layout, (0, 0, 0)), None);
    commit(&fixture, &mut binder, commands, BindPoint::Compute);
    for (point, buffer) in points {
        assert_eq!(fixture.seen(commands, point, &layout, (0, 0, 0)), Some((buffer, 0)));
    }
    // A dispatch between two draws does not affect the sets of the draws.
    let calls = fixture.all_calls();
    commit(&fixture, &mut binder, commands, BindPoint::Graphics);
    assert_eq!(fixture.all_calls(), calls);
}

#[test]
fn push_descriptors_and_push_constants_take_no_room() {
    let fixture = Fixture::with_sets();
    let mut binder = fixture.binder();
    let ranges = [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 16 }];
    let layout = fixture.pipeline_with(
        &[fixture.push_layout(&[(0, K::StorageBuffer, 2), (1, K::UniformBuffer, 1)])],
        &ranges,
    );
    let [a, b] = fixture.buffers();
    let commands = fixture.commands();
    binder.set_layout(POINT, &layout).unwrap();
    for draw in 0..10_u64 {
        binder.stage(POINT, 0, 0, 0, &[storage(a, 0), storage(b, draw * 256)]).unwrap();
        binder.stage(POINT, 0, 1, 0, &[uniform(a, 256)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
        assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 1)), Some((b, draw * 256)));
        assert_eq!(fixture.seen(commands, POINT, &layout, (0, 1, 0)), Some((a, 256)));
    }
    assert_eq!(
        fixture.calls([PUSH, PUSH_TEMPLATE, "vkCreateDescriptorPool", ALLOCATE, BIND]),
        [0, 10, 0, 0, 0]
    );
}

#[test]
fn without_templates_everything_is_written() {
    let fixture = Fixture::new(without_templates().build(), BindingModel::Sets);
    let (mut binder, layout, commands) = fixture.start(&[
        fixture.set_layout(&[(0, K::StorageBuffer, 2), (4, K::UniformBuffer, 3)]),
        fixture.push_layout(&[(0, K::StorageBuffer, 1)]),
    ]);
    let [a, b] = fixture.buffers();
    binder.stage(POINT, 0, 0, 0, &[storage(a, 0), storage(b, 0)]).unwrap();
    binder.stage(POINT, 0, 4, 0, &[uniform(a, 256), uniform(b, 256), uniform(b, 512)]).unwrap();
    binder.stage(POINT, 1, 0, 0, &[storage(b, 768)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    for (at, seen) in
        [((0, 0, 1), (b, 0)), ((0, 4, 0), (a, 256)), ((0, 4, 2), (b, 512)), ((1, 0, 0), (b, 768))]
    {
        assert_eq!(fixture.seen(commands, POINT, &layout, at), Some(seen));
    }
    assert_eq!(fixture.calls([TEMPLATE, WRITE, PUSH_TEMPLATE, PUSH]), [0, 1, 0, 1]);
}

#[test]
fn what_is_staged_in_part_is_written_in_part_and_the_rest_is_left_alone() {
    let fixture = Fixture::with_sets();
    let (mut binder, layout, commands) = fixture.start(&[
        fixture.set_layout(&[
            (0, K::StorageBuffer, 5),
            (1, K::InlineUniformBlock, 16),
            (2, K::UniformBuffer, 1),
        ]),
        fixture.set_layout(&[(0, K::StorageBuffer, 1)]),
        fixture.push_layout(&[(0, K::StorageBuffer, 2)]),
    ]);
    let buffer = fixture.buffer();
    binder.stage(POINT, 0, 0, 1, &[storage(buffer, 0), storage(buffer, 256)]).unwrap();
    binder.stage(POINT, 0, 0, 4, &[storage(buffer, 512)]).unwrap();
    binder.stage(POINT, 2, 0, 1, &[storage(buffer, 768)]).unwrap();
    let missing = binder.first_unstaged(POINT).unwrap();
    assert_eq!((missing.set, missing.binding, missing.element), (0, 0, 0));
    commit(&fixture, &mut binder, commands, POINT);
    let seen = |set, binding, element| fixture.seen(commands, POINT, &layout, (set, binding, element));
    assert_eq!(
        [0, 1, 2, 3, 4].map(|element| seen(0, 0, element)),
        [None, Some((buffer, 0)), Some((buffer, 256)), None, Some((buffer, 512))]
    );
    assert_eq!(seen(0, 2, 0), None);
    assert_eq!(fixture.bound(commands, &layout, 1), None, "nothing of it was staged");
    assert_eq!((seen(2, 0, 0), seen(2, 0, 1)), (None, Some((buffer, 768))));
    assert_eq!(fixture.calls([TEMPLATE, WRITE, PUSH_TEMPLATE, PUSH]), [0, 1, 0, 1]);
    // The remaining descriptors make the set complete, so a template writes it.
    binder.stage(POINT, 0, 0, 0, &[storage(buffer, 1024)]).unwrap();
    binder.stage(POINT, 0, 0, 3, &[storage(buffer, 1280)]).unwrap();
    binder.stage(POINT, 0, 2, 0, &[uniform(buffer, 1536)]).unwrap();
    binder.stage_inline(POINT, 0, 1, 4, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.calls([TEMPLATE, WRITE]), [1, 1]);
    let inline = fixture.gpu.bound_inline_data(commands, POINT.to_vk(), layout.handle(), (0, 1)).unwrap();
    assert_eq!(inline, [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 3)), Some((buffer, 1280)));
}

#[test]
fn descriptors_are_values_and_nothing_that_held_them_has_to_stay() {
    let fixture = Fixture::with_sets();
    let (mut binder, layout, commands) = fixture.start(&[fixture.set_layout(&[(0, K::StorageBuffer, 2)])]);
    let [a, b] = fixture.buffers();
    let mut staged: Vec<Descriptor> = vec![storage(a, 0), storage(a, 256)];
    binder.stage(POINT, 0, 0, 0, &staged).unwrap();
    staged.fill(storage(b, 0));
    drop(staged);
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 1)), Some((a, 256)));
}

#[test]
fn many_draws_with_small_changes_are_a_set_and_a_bind_each() {
    const DRAWS: u64 = 100;
    let fixture = Fixture::with_sets();
    let frame = fixture.set_layout(&[(0, K::UniformBuffer, 1), (1, K::StorageBuffer, 6)]);
    let object = fixture.set_layout(&[(0, K::UniformBuffer, 1), (1, K::StorageBuffer, 2)]);
    let (mut binder, _layout, commands) = fixture.start(&[frame, object]);
    let [a, b] = fixture.buffers();
    binder.stage(POINT, 0, 0, 0, &[uniform(a, 0)]).unwrap();
    binder.stage(POINT, 0, 1, 0, &[storage(b, 0); 6]).unwrap();
    binder.stage(POINT, 1, 1, 0, &[storage(b, 0); 2]).unwrap();
    fixture.gpu.reset_calls();
    for draw in 0..DRAWS {
        binder.stage(POINT, 1, 0, 0, &[uniform(if draw % 2 == 0 { a } else { b }, draw % 16 * 256)]).unwrap();
        commit(&fixture, &mut binder, commands, POINT);
    }
    assert_eq!(fixture.calls([ALLOCATE, TEMPLATE, WRITE, BIND]), [DRAWS + 1, DRAWS + 1, 0, DRAWS]);
}

#[test]
fn sets_of_the_program_are_bound_as_they_are_and_give_way_to_what_is_staged_later() {
    let fixture = Fixture::with_sets();
    let (mut binder, mut other) = (fixture.binder(), fixture.binder());
    let shapes = [(0, K::StorageBuffer, 2)];
    let layout = fixture.pipeline(&[fixture.set_layout(&shapes), fixture.set_layout(&shapes)]);
    let [a, b] = fixture.buffers();
    let commands = fixture.commands();
    // A set that another binder created.
    other.set_layout(POINT, &layout).unwrap();
    other.stage(POINT, 0, 0, 0, &[storage(a, 0), storage(a, 256)]).unwrap();
    commit(&fixture, &mut other, commands, POINT);
    let given = fixture.bound(commands, &layout, 0).unwrap();

    let commands = fixture.commands();
    binder.set_layout(POINT, &layout).unwrap();
    binder.stage(POINT, 0, 0, 0, &[storage(b, 0), storage(b, 256)]).unwrap();
    binder.stage_set(POINT, 0, given).unwrap();
    binder.stage_set(POINT, 1, given).unwrap();
    let made = fixture.gpu.calls(ALLOCATE);
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!([0, 1].map(|set| fixture.bound(commands, &layout, set)), [Some(given); 2]);
    assert_eq!(fixture.calls([ALLOCATE, BIND]), [made, 2]);
    binder.stage_set(POINT, 1, given).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.gpu.calls(BIND), 2, "it is bound");
    assert_eq!(binder.first_unstaged(POINT), None);
    // The program's sets are bound in the next command buffer, too.
    let commands = fixture.commands();
    binder.begin();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!([0, 1].map(|set| fixture.bound(commands, &layout, set)), [Some(given); 2]);
    // Descriptors replace the program's set. Those staged before it are dropped.
    binder.stage(POINT, 0, 0, 1, &[storage(b, 512)]).unwrap();
    commit(&fixture, &mut binder, commands, POINT);
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 1)), Some((b, 512)));
    assert_eq!(fixture.seen(commands, POINT, &layout, (0, 0, 0)), None);
    assert_eq!(fixture.bound(commands, &layout, 1), Some(given));
}

#[test]
fn sets_come_back_when_their_recording_is_done() {
    let fixture = Fixture::with_sets();
    let (mut binder, _layout) = fixture.with_layout(&[fixture.set_layout(&[(0, K::StorageBuffer, 1)])]);
    let [a, b] = fixture.buffers();
    let (clock, device) = (Clock::new(), fixture.gpu.device());
    let timeline = clock.add_timeline().unwrap();
    for frame in 1..=20_u64 {
        let commands = fixture.commands();
        let ticket = clock.open(timeline);
        for draw in 0..10 {
            binder.stage(POINT, 0, 0, 0, &[storage(if draw % 2 == 0 { a } else { b }, 0)]).unwrap();
            commit(&fixture, &mut binder, commands, POINT);
        }
        binder.flush(ticket).unwrap();
        binder.validate();
        unsafe { device.end_command_buffer(commands) }.unwrap();
        let buffers = [commands];
        let submit = [vk::SubmitInfo::default().command_buffers(&buffers)];
        unsafe { device.queue_submit(fixture.gpu.queue(), &submit, vk::Fence::null()) }.unwrap();
        clock.submit(ticket, frame).unwrap();
        unsafe { device.device_wait_idle() }.unwrap();
        clock.completed(timeline, frame);
        binder.collect(&clock).unwrap();
    }
    let pools = fixture.gpu.calls("vkCreateDescriptorPool");
    assert!(pools <= 4, "{pools} pools were made");
}

#[test]
fn bind_points_are_vulkans() {
    let fixture = Fixture::new(sets().build(), BindingModel::Sets);
    let mut binder = fixture.binder();
    let layout = fixture.pipeline(&[fixture.push_layout(&[(0, K::StorageBuffer, 1)])]);
    let buffer = fixture.buffer();
    let commands = fixture.commands();
    for point in [BindPoint::Graphics, BindPoint::Compute] {
        binder.set_layout(point, &layout).unwrap();
        binder.stage(point, 0, 0, 0, &[storage(buffer, 0)]).unwrap();
        commit(&fixture, &mut binder, commands, point);
        assert_eq!(fixture.seen(commands, point, &layout, (0, 0, 0)), Some((buffer, 0)));
    }
    assert_eq!(fixture.calls([PUSH, PUSH_TEMPLATE]), [0, 2]);
}
