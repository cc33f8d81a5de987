//! Heaps that secondary command buffers inherit.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

/// Records a secondary command buffer that inherits the heap, and has `commands`.
fn secondary(
    fixture: &HeapFixture,
    pool: vk::CommandPool,
    inherited: ffi::BindHeapInfoEXT,
    commands: impl FnOnce(vk::CommandBuffer),
) -> vk::CommandBuffer {
    let device = fixture.kernels.device();
    let info = vk::CommandBufferAllocateInfo::default()
        .command_pool(pool)
        .level(vk::CommandBufferLevel::SECONDARY)
        .command_buffer_count(1);
    let buffer = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
    let mut heaps = ffi::CommandBufferInheritanceDescriptorHeapInfoEXT {
        p_resource_heap_bind_info: &inherited,
        ..Default::default()
    };
    let inheritance = vk::CommandBufferInheritanceInfo::default().push_next(&mut heaps);
    let begin = vk::CommandBufferBeginInfo::default().inheritance_info(&inheritance);
    unsafe { device.begin_command_buffer(buffer, &begin) }.unwrap();
    commands(buffer);
    unsafe { device.end_command_buffer(buffer) }.unwrap();
    buffer
}

#[test]
fn a_secondary_command_buffer_inherits_the_heap_that_is_bound() {
    let fixture = HeapFixture::new();
    let device = fixture.kernels.device();
    let [heap, other] = [fixture.heap(), fixture.heap()];
    let target = fixture.kernels.buffer(1024, STORAGE);
    fixture.kernels.write(heap, 16, &fixture.buffer(Type::STORAGE_BUFFER, target.address, 64));
    fixture.kernels.gpu.set_kernel("main", increment);
    let pipeline = fixture.pipeline(vk::PipelineLayout::null(), &[constant(BUFFERS, 0, 16)]).unwrap();
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let dispatch = |commands| {
        unsafe { device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline) };
        unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
    };
    let inherits = secondary(&fixture, pool, resources(heap), dispatch);
    let execute = |commands| unsafe { device.cmd_execute_commands(commands, &[inherits]) };
    fixture.kernels.run(|commands| {
        fixture.bind(commands, heap);
        execute(commands);
        // The heap stays bound.
        execute(commands);
        dispatch(commands);
    });
    assert!(fixture.kernels.reports().is_empty());
    assert_eq!(fixture.kernels.bytes(target, 1), [3]);
    fixture.kernels.run(execute);
    assert_eq!(fixture.kernels.reports(), ["VUID-vkCmdExecuteCommands-commandBuffer-11474"]);
    fixture.kernels.run(|commands| {
        fixture.bind(commands, other);
        execute(commands);
    });
    assert_eq!(fixture.kernels.reports(), ["VUID-vkCmdExecuteCommands-commandBuffer-11352"]);
    secondary(&fixture, pool, resources(heap), |commands| fixture.bind(commands, heap));
    assert_eq!(fixture.kernels.reports(), ["VUID-vkCmdBindResourceHeapEXT-commandBuffer-11238"]);
}
