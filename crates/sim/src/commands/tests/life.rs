//! The life of command pools and command buffers.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;

use super::fixture::{CommandFixture, DST, SRC};

#[test]
fn commands_are_recorded_between_begin_and_end_only() {
    let fixture = CommandFixture::simple();
    let target = fixture.mapped(8, SRC | DST);
    let commands = fixture.commands;
    let device = fixture.device().clone();
    let buffer = target.buffer;
    let copy = [vk::BufferCopy { src_offset: 0, dst_offset: 4, size: 4 }];
    let (none, stages) = (vk::DependencyFlags::empty(), vk::PipelineStageFlags::ALL_COMMANDS);
    let (layout, image, black) =
        (vk::ImageLayout::GENERAL, vk::Image::null(), vk::ClearColorValue::default());
    let (copy2, barrier2) = (vk::CopyBufferInfo2::default(), vk::DependencyInfo::default());
    let calls: [(&str, &dyn Fn()); 11] = [
        ("FillBuffer", &|| unsafe { device.cmd_fill_buffer(commands, buffer, 0, 4, 0) }),
        ("CopyBuffer", &|| unsafe { device.cmd_copy_buffer(commands, buffer, buffer, &copy) }),
        ("CopyBuffer2", &|| unsafe { device.cmd_copy_buffer2(commands, &copy2) }),
        ("UpdateBuffer", &|| unsafe { device.cmd_update_buffer(commands, buffer, 0, &[0; 4]) }),
        ("CopyImage", &|| unsafe { device.cmd_copy_image(commands, image, layout, image, layout, &[]) }),
        ("CopyBufferToImage", &|| unsafe {
            device.cmd_copy_buffer_to_image(commands, buffer, image, layout, &[]);
        }),
        ("CopyImageToBuffer", &|| unsafe {
            device.cmd_copy_image_to_buffer(commands, image, layout, buffer, &[]);
        }),
        ("ClearColorImage", &|| unsafe {
            device.cmd_clear_color_image(commands, image, layout, &black, &[])
        }),
        ("PipelineBarrier", &|| unsafe {
            device.cmd_pipeline_barrier(commands, stages, stages, none, &[], &[], &[]);
        }),
        ("PipelineBarrier2", &|| unsafe { device.cmd_pipeline_barrier2(commands, &barrier2) }),
        ("ExecuteCommands", &|| unsafe { device.cmd_execute_commands(commands, &[]) }),
    ];
    for (name, call) in calls {
        call();
        fixture.expect(&format!("VUID-vkCmd{name}-commandBuffer-recording"));
    }
    fixture.refuses("VUID-vkEndCommandBuffer-commandBuffer-00059", unsafe {
        device.end_command_buffer(commands)
    });
}

#[test]
fn a_command_buffer_is_submitted_when_it_is_executable() {
    let fixture = CommandFixture::simple();
    fixture.refuses("VUID-vkQueueSubmit-pCommandBuffers-00070", fixture.submit());
    fixture.begin();
    fixture.refuses("VUID-vkQueueSubmit-pCommandBuffers-00070", fixture.submit());
    let info = vk::CommandBufferBeginInfo::default();
    assert!(unsafe { fixture.device().begin_command_buffer(fixture.commands, &info) }.is_err());
    fixture.expect("VUID-vkBeginCommandBuffer-commandBuffer-00049");
    fixture.end();
    fixture.submit().unwrap();
    fixture.expect_silence();
}

#[test]
fn a_command_buffer_for_one_time_is_submitted_once() {
    let fixture = CommandFixture::simple();
    let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
    unsafe { fixture.device().begin_command_buffer(fixture.commands, &info) }.unwrap();
    fixture.end();
    fixture.submit().unwrap();
    fixture.refuses("VUID-vkQueueSubmit-pCommandBuffers-00070", fixture.submit());
}

#[test]
fn a_command_buffer_that_names_a_destroyed_buffer_is_invalid() {
    let fixture = CommandFixture::simple();
    let info = vk::BufferCreateInfo::default().size(64).usage(DST);
    let buffer = unsafe { fixture.device().create_buffer(&info, None) }.unwrap();
    let needs = unsafe { fixture.device().get_buffer_memory_requirements(buffer) };
    let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
    let memory = unsafe { fixture.device().allocate_memory(&info, None) }.unwrap();
    unsafe { fixture.device().bind_buffer_memory(buffer, memory, 0) }.unwrap();
    fixture.begin();
    unsafe { fixture.device().cmd_fill_buffer(fixture.commands, buffer, 0, 4, 0) };
    fixture.end();
    unsafe { fixture.device().destroy_buffer(buffer, None) };
    unsafe { fixture.device().free_memory(memory, None) };
    fixture.expect_silence();
    fixture.refuses("VUID-vkQueueSubmit-pCommandBuffers-00070", fixture.submit());
}

#[test]
fn recording_again_forgets_what_was_recorded() {
    let fixture = CommandFixture::simple();
    let target = fixture.mapped(8, DST);
    let info = vk::BufferCreateInfo::default().size(8).usage(DST);
    let forgotten = unsafe { fixture.device().create_buffer(&info, None) }.unwrap();
    unsafe { fixture.device().bind_buffer_memory(forgotten, target.memory, 0) }.unwrap();
    fixture.expect("SUBLET-overlap");
    fixture.begin();
    unsafe { fixture.device().cmd_fill_buffer(fixture.commands, forgotten, 0, 4, u32::MAX) };
    fixture.end();
    fixture.gpu.hold_submissions(true);
    fixture.begin();
    unsafe { fixture.device().cmd_fill_buffer(fixture.commands, target.buffer, 4, 4, u32::MAX) };
    fixture.end();
    fixture.submit().unwrap();
    // The buffer of the first recording is not in use, but the command buffer is.
    unsafe { fixture.device().destroy_buffer(forgotten, None) };
    fixture.gpu.hold_submissions(false);
    fixture.expect_silence();
    assert_eq!(target.read(), [0, 0, 0, 0, 255, 255, 255, 255]);
    let none = vk::CommandBufferResetFlags::empty();
    unsafe { fixture.device().reset_command_buffer(fixture.commands, none) }.unwrap();
    fixture.expect_silence();
    fixture.refuses("VUID-vkQueueSubmit-pCommandBuffers-00070", fixture.submit());
}

#[test]
fn without_the_flag_a_pool_is_reset_as_a_whole() {
    let fixture = CommandFixture::simple();
    let device = fixture.device();
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
    fixture.refuses("VUID-vkBeginCommandBuffer-commandBuffer-00050", begin());
    let none = vk::CommandBufferResetFlags::empty();
    assert!(unsafe { device.reset_command_buffer(buffers[0], none) }.is_err());
    fixture.expect("VUID-vkResetCommandBuffer-commandBuffer-00046");
    unsafe { device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty()) }.unwrap();
    begin().unwrap();
    unsafe { device.free_command_buffers(pool, &buffers) };
    unsafe { device.destroy_command_pool(pool, None) };
    fixture.expect_silence();
}

#[test]
fn wrong_pools_are_reported() {
    let fixture = CommandFixture::simple();
    let device = fixture.device();
    let info = vk::CommandPoolCreateInfo::default().queue_family_index(1);
    assert!(unsafe { device.create_command_pool(&info, None) }.is_err());
    fixture.expect("VUID-vkCreateCommandPool-queueFamilyIndex-01937");
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    unsafe { device.free_command_buffers(pool, &[fixture.commands]) };
    fixture.expect("VUID-vkFreeCommandBuffers-pCommandBuffers-parent");
    unsafe { device.destroy_command_pool(pool, None) };
    unsafe { device.destroy_command_pool(pool, None) };
    fixture.expect("VUID-vkDestroyCommandPool-commandPool-parameter");
    assert!(unsafe { device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty()) }.is_err());
    fixture.expect("VUID-vkResetCommandPool-commandPool-parameter");
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    assert!(unsafe { device.allocate_command_buffers(&info) }.is_err());
    fixture.expect("VUID-VkCommandBufferAllocateInfo-commandPool-parameter");
}

#[test]
fn pools_and_buffers_in_flight_are_not_reset_nor_destroyed() {
    let fixture = CommandFixture::simple();
    let device = fixture.device();
    fixture.begin();
    fixture.end();
    fixture.gpu.hold_submissions(true);
    fixture.submit().unwrap();
    let none = vk::CommandBufferResetFlags::empty();
    assert!(unsafe { device.reset_command_buffer(fixture.commands, none) }.is_err());
    fixture.expect("VUID-vkResetCommandBuffer-commandBuffer-00045");
    assert!(unsafe { device.reset_command_pool(fixture.pool, vk::CommandPoolResetFlags::empty()) }.is_err());
    fixture.expect("VUID-vkResetCommandPool-commandPool-00040");
    let info = vk::CommandBufferBeginInfo::default();
    assert!(unsafe { device.begin_command_buffer(fixture.commands, &info) }.is_err());
    fixture.expect("VUID-vkBeginCommandBuffer-commandBuffer-00049");
    fixture.refuses("VUID-vkQueueSubmit-pCommandBuffers-00071", fixture.submit());
    unsafe { device.free_command_buffers(fixture.pool, &[fixture.commands]) };
    fixture.expect("VUID-vkFreeCommandBuffers-pCommandBuffers-00047");
    assert_eq!(fixture.gpu.run_pending(), 1);
    fixture.expect_silence();
}

#[test]
fn a_pool_in_flight_is_not_destroyed() {
    let fixture = CommandFixture::simple();
    let device = fixture.device();
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    let buffers = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    unsafe { device.begin_command_buffer(buffers[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    unsafe { device.end_command_buffer(buffers[0]) }.unwrap();
    fixture.gpu.hold_submissions(true);
    let info = vk::SubmitInfo::default().command_buffers(&buffers);
    unsafe { device.queue_submit(fixture.gpu.queue(), &[info], vk::Fence::null()) }.unwrap();
    unsafe { device.destroy_command_pool(pool, None) };
    fixture.expect("VUID-vkDestroyCommandPool-commandPool-00041");
    fixture.gpu.run_pending();
    fixture.expect_silence();
}

#[test]
fn resources_in_flight_are_not_destroyed() {
    let fixture = CommandFixture::simple();
    let target = fixture.mapped(8, DST);
    let info = vk::BufferCreateInfo::default().size(8).usage(DST);
    let doomed = unsafe { fixture.device().create_buffer(&info, None) }.unwrap();
    unsafe { fixture.device().bind_buffer_memory(doomed, target.memory, 0) }.unwrap();
    fixture.reports();
    fixture.begin();
    unsafe { fixture.device().cmd_fill_buffer(fixture.commands, doomed, 0, 4, u32::MAX) };
    fixture.end();
    fixture.gpu.hold_submissions(true);
    fixture.submit().unwrap();
    assert_eq!(target.read(), [0; 8]);
    unsafe { fixture.device().destroy_buffer(doomed, None) };
    fixture.expect("VUID-vkDestroyBuffer-buffer-00922");
    fixture.gpu.hold_submissions(false);
    // The command finds its buffer gone, and leaves the memory alone.
    fixture.expect("VUID-vkDestroyBuffer-buffer-00922");
    assert_eq!(target.read(), [0; 8]);
}

#[test]
fn a_primary_command_buffer_runs_secondary_ones() {
    let fixture = CommandFixture::simple();
    let target = fixture.mapped(8, DST);
    let info = vk::CommandBufferAllocateInfo::default()
        .command_pool(fixture.pool)
        .level(vk::CommandBufferLevel::SECONDARY)
        .command_buffer_count(1);
    let device = fixture.device().clone();
    let secondary = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
    let info = vk::CommandBufferBeginInfo::default();
    assert!(unsafe { device.begin_command_buffer(secondary, &info) }.is_err());
    fixture.expect("VUID-vkBeginCommandBuffer-commandBuffer-00051");
    let inheritance = vk::CommandBufferInheritanceInfo::default();
    unsafe { device.begin_command_buffer(secondary, &info.inheritance_info(&inheritance)) }.unwrap();
    unsafe { device.cmd_fill_buffer(secondary, target.buffer, 4, 4, u32::MAX) };
    fixture.run(|device, commands| unsafe { device.cmd_execute_commands(commands, &[secondary]) });
    fixture.expect("VUID-vkCmdExecuteCommands-pCommandBuffers-00089");
    unsafe { device.end_command_buffer(secondary) }.unwrap();
    fixture.run(|device, commands| unsafe { device.cmd_execute_commands(commands, &[secondary]) });
    assert_eq!(target.read(), [0, 0, 0, 0, 255, 255, 255, 255]);
    fixture.expect_silence();
    fixture.run(|device, commands| unsafe { device.cmd_execute_commands(commands, &[commands]) });
    fixture.expect("VUID-vkCmdExecuteCommands-pCommandBuffers-00088");
    let buffers = [secondary];
    let info = vk::SubmitInfo::default().command_buffers(&buffers);
    assert!(unsafe { device.queue_submit(fixture.gpu.queue(), &[info], vk::Fence::null()) }.is_err());
    fixture.expect("VUID-VkSubmitInfo-pCommandBuffers-00075");
}

#[test]
fn a_device_takes_its_command_buffers_along() {
    let fixture = CommandFixture::simple();
    let commands = fixture.commands;
    drop(fixture);
    assert!(crate::objects::registry::command_buffer(commands).is_none());
}
