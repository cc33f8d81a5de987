//! Sets that submissions use.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;
use vk::DescriptorBindingFlags as Flags;

const STORAGE: Type = Type::STORAGE_BUFFER;
const FREE: vk::DescriptorPoolCreateFlags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;

/// A set of one storage buffer in a submission that is not done.
fn pending() -> (Kit, vk::DescriptorPool, vk::DescriptorSet) {
    let mut kit = strict();
    let layout = kit.layout(&[at(0, STORAGE)]);
    let pipeline = kit.pipeline_layout(&[layout]);
    let pool = kit.pool_with(4, &[(STORAGE, 4)], FREE);
    let set = kit.set(pool, layout).unwrap();
    kit.pend(pipeline, set);
    (kit, pool, set)
}

#[test]
fn a_pool_is_not_reset_while_a_submission_uses_a_set_of_it() {
    let (kit, pool, _) = pending();
    assert_eq!(kit.reset(pool), Err(WRONG));
    kit.expect("VUID-vkResetDescriptorPool-descriptorPool-00313");
    assert_eq!(kit.gpu.live().descriptor_sets, 1);
    kit.gpu.run_pending();
    kit.reset(pool).unwrap();
    kit.expect_silence();
}

#[test]
fn a_pool_is_not_destroyed_while_a_submission_uses_a_set_of_it() {
    let (mut kit, pool, _) = pending();
    kit.destroy_pool(pool);
    kit.expect("VUID-vkDestroyDescriptorPool-descriptorPool-00303");
    assert_eq!(kit.gpu.live().descriptor_sets, 0);
}

#[test]
fn a_set_is_not_freed_while_a_submission_uses_it() {
    let (kit, pool, set) = pending();
    assert_eq!(kit.free(pool, set), Err(WRONG));
    kit.expect("VUID-vkFreeDescriptorSets-pDescriptorSets-00309");
    kit.gpu.run_pending();
    kit.free(pool, set).unwrap();
    kit.expect_silence();
}

#[test]
fn a_set_is_not_written_while_a_submission_uses_it() {
    let (mut kit, _, set) = pending();
    let buffer = kit.buffer();
    kit.write_buffer(set, (0, 0), STORAGE, buffer);
    kit.expect("VUID-vkUpdateDescriptorSets-None-03047");
    assert_eq!(kit.gpu.descriptor(set, 0, 0), None);
    kit.gpu.run_pending();
    kit.write_buffer(set, (0, 0), STORAGE, buffer);
    kit.expect_silence();
}

#[test]
fn a_set_that_waits_in_two_submissions_is_in_use_until_both_are_done() {
    let mut kit = strict();
    let layout = kit.layout(&[at(0, STORAGE)]);
    let pipeline = kit.pipeline_layout(&[layout]);
    let pool = kit.pool(1, &[(STORAGE, 1)]);
    let set = kit.set(pool, layout).unwrap();
    let semaphore = {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        unsafe { kit.device().create_semaphore(&info, None) }.unwrap()
    };
    let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
    unsafe { kit.device().begin_command_buffer(kit.commands, &info) }.unwrap();
    kit.bind(pipeline, 0, &[set]);
    kit.end();
    let (semaphores, values, buffers) = ([semaphore], [1], [kit.commands]);
    let mut waits = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&values);
    let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
    let second = vk::SubmitInfo::default()
        .command_buffers(&buffers)
        .wait_semaphores(&semaphores)
        .wait_dst_stage_mask(&stages)
        .push_next(&mut waits);
    let first = vk::SubmitInfo::default().command_buffers(&buffers);
    unsafe { kit.device().queue_submit(kit.gpu.queue(), &[first, second], vk::Fence::null()) }.unwrap();
    // The first is done, and the second waits.
    assert_eq!(kit.gpu.pending_submissions(), 1);
    assert_eq!(kit.reset(pool), Err(WRONG));
    kit.expect("VUID-vkResetDescriptorPool-descriptorPool-00313");
    let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(1);
    unsafe { kit.device().signal_semaphore(&info) }.unwrap();
    kit.gpu.run_pending();
    kit.reset(pool).unwrap();
    unsafe { kit.device().destroy_semaphore(semaphore, None) };
}

/// Reports for a set that is written before and after a command buffer with it is submitted, and whether that can be
/// submitted.
fn updates(flags: Flags) -> (bool, Vec<&'static str>) {
    let mut kit = strict();
    let layout = kit.flagged(&[at(0, STORAGE)], &[flags]);
    let pipeline = kit.pipeline_layout(&[layout]);
    let pool = kit.pool_with(4, &[(STORAGE, 4)], vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND);
    let set = kit.set(pool, layout).unwrap();
    let buffer = kit.buffer();
    kit.gpu.hold_submissions(true);
    kit.begin();
    kit.bind(pipeline, 0, &[set]);
    kit.end();
    kit.write_buffer(set, (0, 0), STORAGE, buffer);
    assert_eq!(kit.reports(), [""; 0]);
    let survives = kit.submit().is_ok();
    if !survives {
        kit.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
        kit.begin();
        kit.bind(pipeline, 0, &[set]);
        kit.end();
        kit.submit().unwrap();
    }
    kit.write_buffer(set, (0, 0), STORAGE, buffer);
    (survives, kit.reports())
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
        let mut kit = strict();
        let layout = kit.layout(&[at(0, STORAGE)]);
        let pipeline = kit.pipeline_layout(&[layout]);
        let pool = kit.pool(4, &[(STORAGE, 4)]);
        let set = kit.set(pool, layout).unwrap();
        kit.begin();
        kit.bind(pipeline, 0, &[set]);
        kit.end();
        if destroy {
            kit.destroy_pool(pool);
        } else {
            kit.reset(pool).unwrap();
        }
        assert_eq!(kit.submit(), Err(WRONG));
        kit.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
    }
}

#[test]
fn a_copy_into_a_set_that_a_submission_uses() {
    let (mut kit, pool, set) = pending();
    let layout = kit.layout(&[at(0, STORAGE)]);
    let source = kit.set(pool, layout).unwrap();
    let buffer = kit.buffer();
    kit.write_buffer(source, (0, 0), STORAGE, buffer);
    let copy = vk::CopyDescriptorSet::default().src_set(source).dst_set(set).descriptor_count(1);
    unsafe { kit.device().update_descriptor_sets(&[], &[copy]) };
    kit.expect("VUID-vkUpdateDescriptorSets-None-03047");
    // To read it is no harm.
    let copy = vk::CopyDescriptorSet::default().src_set(set).dst_set(source).descriptor_count(1);
    unsafe { kit.device().update_descriptor_sets(&[], &[copy]) };
    kit.expect_silence();
}
