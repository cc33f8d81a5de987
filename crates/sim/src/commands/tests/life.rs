//! The life of command pools and command buffers.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;

use super::bench::{Bench, DST, SRC};

#[test]
fn commands_are_recorded_between_begin_and_end_only() {
    let mut bench = Bench::simple();
    let target = bench.mapped(8, SRC | DST);
    let commands = bench.commands;
    let device = bench.device().clone();
    let copy = [vk::BufferCopy { src_offset: 0, dst_offset: 4, size: 4 }];
    let none = vk::DependencyFlags::empty();
    let stages = vk::PipelineStageFlags::ALL_COMMANDS;
    let (layout, image) = (vk::ImageLayout::GENERAL, vk::Image::null());
    unsafe { device.cmd_fill_buffer(commands, target.buffer, 0, 4, 0) };
    bench.expect("VUID-vkCmdFillBuffer-commandBuffer-recording");
    unsafe { device.cmd_copy_buffer(commands, target.buffer, target.buffer, &copy) };
    bench.expect("VUID-vkCmdCopyBuffer-commandBuffer-recording");
    let info = vk::CopyBufferInfo2::default();
    unsafe { device.cmd_copy_buffer2(commands, &info) };
    bench.expect("VUID-vkCmdCopyBuffer2-commandBuffer-recording");
    unsafe { device.cmd_update_buffer(commands, target.buffer, 0, &[0; 4]) };
    bench.expect("VUID-vkCmdUpdateBuffer-commandBuffer-recording");
    unsafe { device.cmd_copy_image(commands, image, layout, image, layout, &[]) };
    bench.expect("VUID-vkCmdCopyImage-commandBuffer-recording");
    unsafe { device.cmd_copy_buffer_to_image(commands, target.buffer, image, layout, &[]) };
    bench.expect("VUID-vkCmdCopyBufferToImage-commandBuffer-recording");
    unsafe { device.cmd_copy_image_to_buffer(commands, image, layout, target.buffer, &[]) };
    bench.expect("VUID-vkCmdCopyImageToBuffer-commandBuffer-recording");
    let black = vk::ClearColorValue::default();
    unsafe { device.cmd_clear_color_image(commands, image, layout, &black, &[]) };
    bench.expect("VUID-vkCmdClearColorImage-commandBuffer-recording");
    unsafe { device.cmd_pipeline_barrier(commands, stages, stages, none, &[], &[], &[]) };
    bench.expect("VUID-vkCmdPipelineBarrier-commandBuffer-recording");
    let info = vk::DependencyInfo::default();
    unsafe { device.cmd_pipeline_barrier2(commands, &info) };
    bench.expect("VUID-vkCmdPipelineBarrier2-commandBuffer-recording");
    unsafe { device.cmd_execute_commands(commands, &[]) };
    bench.expect("VUID-vkCmdExecuteCommands-commandBuffer-recording");
    assert!(unsafe { device.end_command_buffer(commands) }.is_err());
    bench.expect("VUID-vkEndCommandBuffer-commandBuffer-00059");
}

#[test]
fn a_command_buffer_is_submitted_when_it_is_executable() {
    let bench = Bench::simple();
    assert!(bench.submit().is_err());
    bench.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
    bench.begin();
    assert!(bench.submit().is_err());
    bench.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
    let info = vk::CommandBufferBeginInfo::default();
    assert!(unsafe { bench.device().begin_command_buffer(bench.commands, &info) }.is_err());
    bench.expect("VUID-vkBeginCommandBuffer-commandBuffer-00049");
    bench.end();
    bench.submit().unwrap();
    bench.expect_silence();
}

#[test]
fn a_command_buffer_for_one_time_is_submitted_once() {
    let bench = Bench::simple();
    let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
    unsafe { bench.device().begin_command_buffer(bench.commands, &info) }.unwrap();
    bench.end();
    bench.submit().unwrap();
    assert!(bench.submit().is_err());
    bench.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
}

#[test]
fn a_command_buffer_that_names_a_destroyed_buffer_is_invalid() {
    let bench = Bench::simple();
    let info = vk::BufferCreateInfo::default().size(64).usage(DST);
    let buffer = unsafe { bench.device().create_buffer(&info, None) }.unwrap();
    let needs = unsafe { bench.device().get_buffer_memory_requirements(buffer) };
    let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
    let memory = unsafe { bench.device().allocate_memory(&info, None) }.unwrap();
    unsafe { bench.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
    bench.begin();
    unsafe { bench.device().cmd_fill_buffer(bench.commands, buffer, 0, 4, 0) };
    bench.end();
    unsafe { bench.device().destroy_buffer(buffer, None) };
    unsafe { bench.device().free_memory(memory, None) };
    bench.expect_silence();
    assert!(bench.submit().is_err());
    bench.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
}

#[test]
fn recording_again_forgets_what_was_recorded() {
    let mut bench = Bench::simple();
    let target = bench.mapped(8, DST);
    let info = vk::BufferCreateInfo::default().size(8).usage(DST);
    let forgotten = unsafe { bench.device().create_buffer(&info, None) }.unwrap();
    unsafe { bench.device().bind_buffer_memory(forgotten, target.memory, 0) }.unwrap();
    bench.expect("SUBLET-overlap");
    bench.begin();
    unsafe { bench.device().cmd_fill_buffer(bench.commands, forgotten, 0, 4, u32::MAX) };
    bench.end();
    bench.gpu.hold_submissions(true);
    bench.begin();
    unsafe { bench.device().cmd_fill_buffer(bench.commands, target.buffer, 4, 4, u32::MAX) };
    bench.end();
    bench.submit().unwrap();
    // The buffer of the first recording is not in use, but the command buffer is.
    unsafe { bench.device().destroy_buffer(forgotten, None) };
    bench.gpu.hold_submissions(false);
    bench.expect_silence();
    assert_eq!(target.read(), [0, 0, 0, 0, 255, 255, 255, 255]);
    let none = vk::CommandBufferResetFlags::empty();
    unsafe { bench.device().reset_command_buffer(bench.commands, none) }.unwrap();
    bench.expect_silence();
    assert!(bench.submit().is_err());
    bench.expect("VUID-vkQueueSubmit-pCommandBuffers-00070");
}

#[test]
fn without_the_flag_a_pool_is_reset_as_a_whole() {
    let bench = Bench::simple();
    let device = bench.device();
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(2);
    let buffers = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    assert_ne!(buffers[0], buffers[1]);
    let begin = || {
        let info = vk::CommandBufferBeginInfo::default();
        unsafe { device.begin_command_buffer(buffers[0], &info) }
    };
    begin().unwrap();
    unsafe { device.end_command_buffer(buffers[0]) }.unwrap();
    assert!(begin().is_err());
    bench.expect("VUID-vkBeginCommandBuffer-commandBuffer-00050");
    let none = vk::CommandBufferResetFlags::empty();
    assert!(unsafe { device.reset_command_buffer(buffers[0], none) }.is_err());
    bench.expect("VUID-vkResetCommandBuffer-commandBuffer-00046");
    unsafe { device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty()) }.unwrap();
    begin().unwrap();
    unsafe { device.free_command_buffers(pool, &buffers) };
    unsafe { device.destroy_command_pool(pool, None) };
    bench.expect_silence();
}

#[test]
fn wrong_pools_are_reported() {
    let bench = Bench::simple();
    let device = bench.device();
    let info = vk::CommandPoolCreateInfo::default().queue_family_index(1);
    assert!(unsafe { device.create_command_pool(&info, None) }.is_err());
    bench.expect("VUID-vkCreateCommandPool-queueFamilyIndex-01937");
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    unsafe { device.free_command_buffers(pool, &[bench.commands]) };
    bench.expect("VUID-vkFreeCommandBuffers-pCommandBuffers-parent");
    unsafe { device.destroy_command_pool(pool, None) };
    unsafe { device.destroy_command_pool(pool, None) };
    bench.expect("VUID-vkDestroyCommandPool-commandPool-parameter");
    assert!(unsafe { device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty()) }.is_err());
    bench.expect("VUID-vkResetCommandPool-commandPool-parameter");
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    assert!(unsafe { device.allocate_command_buffers(&info) }.is_err());
    bench.expect("VUID-VkCommandBufferAllocateInfo-commandPool-parameter");
}

#[test]
fn pools_and_buffers_in_flight_are_not_reset_nor_destroyed() {
    let bench = Bench::simple();
    let device = bench.device();
    bench.begin();
    bench.end();
    bench.gpu.hold_submissions(true);
    bench.submit().unwrap();
    let none = vk::CommandBufferResetFlags::empty();
    assert!(unsafe { device.reset_command_buffer(bench.commands, none) }.is_err());
    bench.expect("VUID-vkResetCommandBuffer-commandBuffer-00045");
    assert!(unsafe { device.reset_command_pool(bench.pool, vk::CommandPoolResetFlags::empty()) }.is_err());
    bench.expect("VUID-vkResetCommandPool-commandPool-00040");
    let info = vk::CommandBufferBeginInfo::default();
    assert!(unsafe { device.begin_command_buffer(bench.commands, &info) }.is_err());
    bench.expect("VUID-vkBeginCommandBuffer-commandBuffer-00049");
    assert!(bench.submit().is_err());
    bench.expect("VUID-vkQueueSubmit-pCommandBuffers-00071");
    unsafe { device.free_command_buffers(bench.pool, &[bench.commands]) };
    bench.expect("VUID-vkFreeCommandBuffers-pCommandBuffers-00047");
    assert_eq!(bench.gpu.run_pending(), 1);
    bench.expect_silence();
}

#[test]
fn a_pool_in_flight_is_not_destroyed() {
    let bench = Bench::simple();
    let device = bench.device();
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    let buffers = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    unsafe { device.begin_command_buffer(buffers[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    unsafe { device.end_command_buffer(buffers[0]) }.unwrap();
    bench.gpu.hold_submissions(true);
    let info = vk::SubmitInfo::default().command_buffers(&buffers);
    unsafe { device.queue_submit(bench.gpu.queue(), &[info], vk::Fence::null()) }.unwrap();
    unsafe { device.destroy_command_pool(pool, None) };
    bench.expect("VUID-vkDestroyCommandPool-commandPool-00041");
    bench.gpu.run_pending();
    bench.expect_silence();
}

#[test]
fn resources_in_flight_are_not_destroyed() {
    let mut bench = Bench::simple();
    let target = bench.mapped(8, DST);
    let info = vk::BufferCreateInfo::default().size(8).usage(DST);
    let doomed = unsafe { bench.device().create_buffer(&info, None) }.unwrap();
    unsafe { bench.device().bind_buffer_memory(doomed, target.memory, 0) }.unwrap();
    bench.reports();
    bench.begin();
    unsafe { bench.device().cmd_fill_buffer(bench.commands, doomed, 0, 4, u32::MAX) };
    bench.end();
    bench.gpu.hold_submissions(true);
    bench.submit().unwrap();
    assert_eq!(target.read(), [0; 8]);
    unsafe { bench.device().destroy_buffer(doomed, None) };
    bench.expect("VUID-vkDestroyBuffer-buffer-00922");
    bench.gpu.hold_submissions(false);
    // The command finds its buffer gone, and leaves the memory alone.
    bench.expect("VUID-vkDestroyBuffer-buffer-00922");
    assert_eq!(target.read(), [0; 8]);
}

#[test]
fn a_primary_command_buffer_runs_secondary_ones() {
    let mut bench = Bench::simple();
    let target = bench.mapped(8, DST);
    let info = vk::CommandBufferAllocateInfo::default()
        .command_pool(bench.pool)
        .level(vk::CommandBufferLevel::SECONDARY)
        .command_buffer_count(1);
    let device = bench.device().clone();
    let secondary = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
    let info = vk::CommandBufferBeginInfo::default();
    assert!(unsafe { device.begin_command_buffer(secondary, &info) }.is_err());
    bench.expect("VUID-vkBeginCommandBuffer-commandBuffer-00051");
    let inheritance = vk::CommandBufferInheritanceInfo::default();
    unsafe { device.begin_command_buffer(secondary, &info.inheritance_info(&inheritance)) }.unwrap();
    unsafe { device.cmd_fill_buffer(secondary, target.buffer, 4, 4, u32::MAX) };
    bench.run(|device, commands| unsafe { device.cmd_execute_commands(commands, &[secondary]) });
    bench.expect("VUID-vkCmdExecuteCommands-pCommandBuffers-00089");
    unsafe { device.end_command_buffer(secondary) }.unwrap();
    bench.run(|device, commands| unsafe { device.cmd_execute_commands(commands, &[secondary]) });
    assert_eq!(target.read(), [0, 0, 0, 0, 255, 255, 255, 255]);
    bench.expect_silence();
    bench.run(|device, commands| unsafe { device.cmd_execute_commands(commands, &[commands]) });
    bench.expect("VUID-vkCmdExecuteCommands-pCommandBuffers-00088");
    let buffers = [secondary];
    let info = vk::SubmitInfo::default().command_buffers(&buffers);
    assert!(unsafe { device.queue_submit(bench.gpu.queue(), &[info], vk::Fence::null()) }.is_err());
    bench.expect("VUID-VkSubmitInfo-pCommandBuffers-00075");
}

#[test]
fn a_device_takes_its_command_buffers_along() {
    let bench = Bench::simple();
    let commands = bench.commands;
    drop(bench);
    assert!(crate::objects::registry::command_buffer(commands).is_none());
}
