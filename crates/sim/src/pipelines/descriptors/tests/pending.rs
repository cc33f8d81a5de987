//! Sets that submissions use.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;
use vk::DescriptorBindingFlags as Flags;

const STORAGE: Type = Type::STORAGE_BUFFER;
const FREE: vk::DescriptorPoolCreateFlags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;

/// A set of one storage buffer in a submission that is not done.
fn pending() -> (DescriptorFixture, vk::DescriptorPool, vk::DescriptorSet) {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let pipeline = fixture.pipeline_layout(&[layout]);
    let pool = fixture.pool_with(4, &[(STORAGE, 4)], FREE);
    let set = fixture.set(pool, layout).unwrap();
    fixture.pend(pipeline, set);
    (fixture, pool, set)
}

#[test]
fn a_pool_is_not_reset_while_a_submission_uses_a_set_of_it() {
    let (fixture, pool, _) = pending();
    fixture.refuses("VUID-vkResetDescriptorPool-descriptorPool-00313", fixture.reset(pool));
    assert_eq!(fixture.gpu.live().descriptor_sets, 1);
    fixture.gpu.run_pending();
    fixture.reset(pool).unwrap();
    fixture.expect_silence();
}

#[test]
fn a_pool_is_not_destroyed_while_a_submission_uses_a_set_of_it() {
    let (fixture, pool, _) = pending();
    fixture.destroy_pool(pool);
    fixture.expect("VUID-vkDestroyDescriptorPool-descriptorPool-00303");
    assert_eq!(fixture.gpu.live().descriptor_sets, 0);
}

#[test]
fn a_set_is_not_freed_while_a_submission_uses_it() {
    let (fixture, pool, set) = pending();
    fixture.refuses("VUID-vkFreeDescriptorSets-pDescriptorSets-00309", fixture.free(pool, set));
    fixture.gpu.run_pending();
    fixture.free(pool, set).unwrap();
    fixture.expect_silence();
}

#[test]
fn a_set_is_not_written_while_a_submission_uses_it() {
    let (fixture, _, set) = pending();
    let buffer = fixture.buffer();
    fixture.write_buffer(set, (0, 0), STORAGE, buffer);
    fixture.expect("VUID-vkUpdateDescriptorSets-None-03047");
    assert_eq!(fixture.gpu.descriptor(set, 0, 0), None);
    fixture.gpu.run_pending();
    fixture.write_buffer(set, (0, 0), STORAGE, buffer);
    fixture.expect_silence();
}

#[test]
fn a_set_that_waits_in_two_submissions_is_in_use_until_both_are_done() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let pipeline = fixture.pipeline_layout(&[layout]);
    let pool = fixture.pool(1, &[(STORAGE, 1)]);
    let set = fixture.set(pool, layout).unwrap();
    let semaphore = {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        unsafe { fixture.device().create_semaphore(&info, None) }.unwrap()
    };
    let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
    unsafe { fixture.device().begin_command_buffer(fixture.commands, &info) }.unwrap();
    fixture.bind(pipeline, 0, &[set]);
    fixture.end();
    let (semaphores, values, buffers) = ([semaphore], [1], [fixture.commands]);
    let mut waits = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&values);
    let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
    let second = vk::SubmitInfo::default()
        .command_buffers(&buffers)
        .wait_semaphores(&semaphores)
        .wait_dst_stage_mask(&stages)
        .push_next(&mut waits);
    let first = vk::SubmitInfo::default().command_buffers(&buffers);
    unsafe { fixture.device().queue_submit(fixture.gpu.queue(), &[first, second], vk::Fence::null()) }
        .unwrap();
    // The first is done, and the second waits.
    assert_eq!(fixture.gpu.pending_submissions(), 1);
    fixture.refuses("VUID-vkResetDescriptorPool-descriptorPool-00313", fixture.reset(pool));
    let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(1);
    unsafe { fixture.device().signal_semaphore(&info) }.unwrap();
    fixture.gpu.run_pending();
    fixture.reset(pool).unwrap();
}

/// Reports for a set that is written before and after a command buffer with it is submitted, and whether that can be
/// submitted.
fn updates(flags: Flags) -> (bool, Vec<&'static str>) {
    let fixture = strict();
    let layout = fixture.flagged(&[at(0, STORAGE)], &[flags]);
    let pipeline = fixture.pipeline_layout(&[layout]);
    let pool = fixture.pool_with(4, &[(STORAGE, 4)], vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND);
    let set = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    fixture.gpu.hold_submissions(true);
    fixture.begin();
    fixture.bind(pipeline, 0, &[set]);
    fixture.end();
    fixture.write_buffer(set, (0, 0), STORAGE, buffer);
    assert_eq!(fixture.reports(), [""; 0]);
    let survives = fixture.submit().is_ok();
    if !survives {
        fixture.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
        fixture.begin();
        fixture.bind(pipeline, 0, &[set]);
        fixture.end();
        fixture.submit().unwrap();
    }
    fixture.write_buffer(set, (0, 0), STORAGE, buffer);
    (survives, fixture.reports())
}

#[test]
fn when_a_set_may_be_written_is_a_matter_of_its_flags() {
    let none = Flags::empty();
    assert_eq!(updates(none), (false, vec!["VUID-vkUpdateDescriptorSets-None-03047"]));
    assert_eq!(updates(Flags::PARTIALLY_BOUND), (false, vec!["VUID-vkUpdateDescriptorSets-None-03047"]));
    assert_eq!(updates(Flags::UPDATE_AFTER_BIND), (true, vec!["SUBLET-update-while-pending"]));
    assert_eq!(updates(Flags::UPDATE_UNUSED_WHILE_PENDING), (true, vec![]));
    assert_eq!(updates(Flags::UPDATE_AFTER_BIND | Flags::UPDATE_UNUSED_WHILE_PENDING), (true, vec![]));
}

#[test]
fn a_command_buffer_does_not_survive_the_end_of_its_sets() {
    for destroy in [false, true] {
        let fixture = strict();
        let layout = fixture.layout(&[at(0, STORAGE)]);
        let pipeline = fixture.pipeline_layout(&[layout]);
        let pool = fixture.pool(4, &[(STORAGE, 4)]);
        let set = fixture.set(pool, layout).unwrap();
        fixture.begin();
        fixture.bind(pipeline, 0, &[set]);
        fixture.end();
        if destroy {
            fixture.destroy_pool(pool);
        } else {
            fixture.reset(pool).unwrap();
        }
        fixture.refuses("VUID-vkQueueSubmit-pCommandBuffers-00070", fixture.submit());
    }
}

#[test]
fn a_copy_into_a_set_that_a_submission_uses() {
    let (fixture, pool, set) = pending();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let source = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    fixture.write_buffer(source, (0, 0), STORAGE, buffer);
    let copy = vk::CopyDescriptorSet::default().src_set(source).dst_set(set).descriptor_count(1);
    unsafe { fixture.device().update_descriptor_sets(&[], &[copy]) };
    fixture.expect("VUID-vkUpdateDescriptorSets-None-03047");
    // To read it is no harm.
    let copy = vk::CopyDescriptorSet::default().src_set(set).dst_set(source).descriptor_count(1);
    unsafe { fixture.device().update_descriptor_sets(&[], &[copy]) };
    fixture.expect_silence();
}
