//! Dispatches that read and write buffers.
#![expect(unsafe_code, reason = "tests call Vulkan")]

pub(super) use std::sync::atomic::{AtomicU32, Ordering};

pub(super) use vk::BufferUsageFlags as Usage;
pub(super) use vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
pub(super) use vk::DescriptorType as Type;

use super::super::*;
pub(super) use super::fixture::{Buffer, KernelFixture, POINT, STAGE};
pub(super) use crate::Gpu;
pub(super) use crate::facts::profiles::Profile;

/// A set of a pool of its own.
pub(super) fn set(
    fixture: &KernelFixture,
    layout: vk::DescriptorSetLayout,
    kinds: &[Type],
) -> vk::DescriptorSet {
    let sizes: Vec<_> = kinds.iter().map(|&ty| vk::DescriptorPoolSize { ty, descriptor_count: 8 }).collect();
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    let pool = unsafe { fixture.device().create_descriptor_pool(&info, None) }.unwrap();
    let layouts = [layout];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    unsafe { fixture.device().allocate_descriptor_sets(&info) }.unwrap()[0]
}

pub(super) fn write_buffer(
    fixture: &KernelFixture,
    set: vk::DescriptorSet,
    binding: u32,
    kind: Type,
    buffer: (vk::Buffer, u64, u64),
) {
    let infos = [vk::DescriptorBufferInfo { buffer: buffer.0, offset: buffer.1, range: buffer.2 }];
    let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding).descriptor_type(kind);
    unsafe { fixture.device().update_descriptor_sets(&[write.buffer_info(&infos)], &[]) };
}

/// Binds a pipeline and a set, and dispatches one workgroup.
pub(super) fn dispatch(
    fixture: &KernelFixture,
    commands: vk::CommandBuffer,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
    dynamic: &[u32],
) {
    let device = fixture.device();
    unsafe { device.cmd_bind_pipeline(commands, POINT, pipeline) };
    unsafe { device.cmd_bind_descriptor_sets(commands, POINT, layout, 0, &[set], dynamic) };
    unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
}

/// Copies 4 bytes from binding 0 to binding 1.
pub(super) fn copy(kernel: &mut Kernel<'_>) {
    let word = kernel.buffer(0, 0, 0).read_u32(0);
    kernel.buffer(0, 1, 0).write_u32(0, word);
}

pub(super) const UNIFORM_AND_STORAGE: [(Type, u32); 2] =
    [(Type::UNIFORM_BUFFER, 1), (Type::STORAGE_BUFFER, 1)];

pub(super) fn uniform_and_storage(fixture: &KernelFixture) -> (Buffer, Buffer) {
    (fixture.buffer(256, Usage::UNIFORM_BUFFER), fixture.buffer(256, Usage::STORAGE_BUFFER))
}

#[test]
fn a_shader_reads_and_writes_through_a_set() {
    let fixture = KernelFixture::new("nvidia-h200");
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &UNIFORM_AND_STORAGE);
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"copy");
    let (from, to) = uniform_and_storage(&fixture);
    let set = set(&fixture, set_layout, &[Type::UNIFORM_BUFFER, Type::STORAGE_BUFFER]);
    write_buffer(&fixture, set, 0, Type::UNIFORM_BUFFER, (from.handle, 64, 16));
    write_buffer(&fixture, set, 1, Type::STORAGE_BUFFER, (to.handle, 16, vk::WHOLE_SIZE));
    fixture.gpu.set_kernel("copy", |kernel| {
        assert_eq!((kernel.buffer(0, 0, 0).len(), kernel.buffer(0, 1, 0).len()), (16, 240));
        copy(kernel);
    });
    fixture.write(from, 64, &[1, 2, 3, 4]);
    fixture.run(|commands| dispatch(&fixture, commands, pipeline, layout, set, &[]));
    assert_eq!(fixture.bytes(to, 20)[16..], [1, 2, 3, 4]);
}

#[test]
fn a_dynamic_offset_is_added() {
    let fixture = KernelFixture::new("nvidia-h200");
    let kinds = [Type::UNIFORM_BUFFER_DYNAMIC, Type::STORAGE_BUFFER_DYNAMIC];
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &kinds.map(|kind| (kind, 1)));
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"copy");
    let (from, to) = uniform_and_storage(&fixture);
    let set = set(&fixture, set_layout, &kinds);
    write_buffer(&fixture, set, 0, kinds[0], (from.handle, 64, 16));
    write_buffer(&fixture, set, 1, kinds[1], (to.handle, 16, 16));
    fixture.gpu.set_kernel("copy", copy);
    fixture.write(from, 128, &[5, 6, 7, 8]);
    fixture.run(|commands| dispatch(&fixture, commands, pipeline, layout, set, &[64, 32]));
    assert_eq!(fixture.bytes(to, 52)[48..], [5, 6, 7, 8]);
}

#[test]
fn a_shader_sees_push_descriptors_and_push_constants() {
    let fixture = KernelFixture::new("nvidia-h200");
    let set_layout = fixture.set_layout(LayoutFlags::PUSH_DESCRIPTOR_KHR, &UNIFORM_AND_STORAGE);
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"add");
    let (from, to) = uniform_and_storage(&fixture);
    fixture.gpu.set_kernel("add", |kernel| {
        let mut constant = [0; 4];
        kernel.read_push_constants(4, &mut constant);
        let sum = kernel.buffer(0, 0, 0).read_u32(0) + u32::from_le_bytes(constant);
        kernel.buffer(0, 1, 0).write_u32(0, sum);
    });
    fixture.write(from, 0, &30_u32.to_le_bytes());
    let push = ash::khr::push_descriptor::Device::new(fixture.gpu.instance(), fixture.device());
    fixture.run(|commands| {
        let info =
            |buffer: Buffer| [vk::DescriptorBufferInfo { buffer: buffer.handle, offset: 0, range: 16 }];
        let infos = [info(from), info(to)];
        let kinds = [Type::UNIFORM_BUFFER, Type::STORAGE_BUFFER];
        let write = |binding, kind, info| {
            vk::WriteDescriptorSet::default().dst_binding(binding).descriptor_type(kind).buffer_info(info)
        };
        let writes = [write(0, kinds[0], &infos[0]), write(1, kinds[1], &infos[1])];
        let constants = [0, 0, 0, 0, 12, 0, 0, 0];
        unsafe { fixture.device().cmd_bind_pipeline(commands, POINT, pipeline) };
        unsafe { push.cmd_push_descriptor_set(commands, POINT, layout, 0, &writes) };
        unsafe { fixture.device().cmd_push_constants(commands, layout, STAGE, 0, &constants) };
        unsafe { fixture.device().cmd_dispatch(commands, 1, 1, 1) };
    });
    assert_eq!(fixture.bytes(to, 4), 42_u32.to_le_bytes());
}

#[test]
fn push_constants_that_nobody_pushed_are_reported() {
    let fixture = KernelFixture::new("nvidia-h200");
    let layout = fixture.layout(&[]);
    let pipeline = fixture.pipeline(layout, c"read");
    fixture.gpu.set_kernel("read", |kernel| {
        let mut constant = [9; 8];
        kernel.read_push_constants(0, &mut constant);
        assert_eq!(constant, [0; 8]);
    });
    fixture.dispatch(pipeline, |commands| {
        unsafe { fixture.device().cmd_push_constants(commands, layout, STAGE, 0, &[1; 4]) };
    });
    assert_eq!(fixture.reports(), ["VUID-vkCmdDispatch-maintenance4-08602"]);
}

#[test]
fn a_device_address_leads_to_its_buffer_and_no_further() {
    let fixture = KernelFixture::new("nvidia-h200");
    let layout = fixture.layout(&[]);
    let pipeline = fixture.pipeline(layout, c"fill");
    let target = fixture.buffer(64, Usage::STORAGE_BUFFER | Usage::SHADER_DEVICE_ADDRESS);
    let other = fixture.buffer(64, Usage::STORAGE_BUFFER | Usage::SHADER_DEVICE_ADDRESS);
    assert!(target.address != 0 && target.address.abs_diff(other.address) >= 64);
    let address = target.address;
    fixture.gpu.set_kernel("fill", move |kernel| {
        let inside = kernel.memory(address + 16);
        assert_eq!(inside.len(), 48);
        inside.write(44, &[7; 4]);
        inside.write(45, &[8; 4]);
        assert_eq!(kernel.memory(address + 64).read_u32(0), 0);
        assert!(kernel.memory(0).is_empty());
    });
    fixture.dispatch(pipeline, |_| ());
    assert_eq!(fixture.bytes(target, 64)[56..], [0, 0, 0, 0, 7, 7, 7, 7]);
    assert_eq!(fixture.reports(), ["SUBLET-descriptor-range", "SUBLET-address", "SUBLET-address"]);
}

#[test]
fn every_way_that_a_descriptor_can_be_wrong_is_a_report_and_reads_zeroes() {
    let fixture = KernelFixture::new("nvidia-h200");
    let kinds = [(Type::UNIFORM_BUFFER, 2), (Type::STORAGE_BUFFER, 1), (Type::SAMPLED_IMAGE, 1)];
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &kinds);
    let layout = fixture.layout(&[set_layout, set_layout]);
    let pipeline = fixture.pipeline(layout, c"wrong");
    let (from, to) = uniform_and_storage(&fixture);
    fixture.write(from, 0, &[1; 32]);
    let set = set(&fixture, set_layout, &[Type::UNIFORM_BUFFER, Type::STORAGE_BUFFER, Type::SAMPLED_IMAGE]);
    write_buffer(&fixture, set, 0, Type::UNIFORM_BUFFER, (from.handle, 0, 16));
    write_buffer(&fixture, set, 1, Type::STORAGE_BUFFER, (to.handle, 0, 16));
    fixture.gpu.set_kernel("wrong", |kernel| {
        let zero = |set, binding, element| assert_eq!(kernel.buffer(set, binding, element).read_u32(0), 0);
        zero(0, 0, 1);
        zero(0, 2, 0);
        zero(0, 0, 2);
        zero(0, 3, 0);
        zero(2, 0, 0);
        zero(1, 0, 0);
        let uniform = kernel.buffer(0, 0, 0);
        assert_eq!(uniform.read_u32(12), 0x0101_0101);
        assert_eq!(uniform.read_u32(13), 0);
        assert_eq!(uniform.read_u32(u64::MAX), 0);
        uniform.write(0, &[2; 4]);
        assert!(vk::Handle::is_null(kernel.image(0, 0, 0)));
    });
    let gone = fixture.record(|commands| dispatch(&fixture, commands, pipeline, layout, set, &[]));
    fixture.submit(gone).unwrap();
    let expected = [
        "SUBLET-descriptor-unwritten",
        "SUBLET-descriptor-unwritten",
        "SUBLET-descriptor-binding",
        "SUBLET-descriptor-binding",
        "SUBLET-descriptor-binding",
        "VUID-vkCmdDispatch-None-08600",
        "SUBLET-descriptor-range",
        "SUBLET-descriptor-range",
        "SUBLET-descriptor-read-only",
        "SUBLET-descriptor-type",
    ];
    assert_eq!(fixture.reports(), expected);
    assert_eq!(fixture.bytes(from, 16), [1; 16]);
    // A buffer that a descriptor describes is known to be gone only when a shader looks.
    fixture.gpu.set_kernel("wrong", |kernel| assert_eq!(kernel.buffer(0, 0, 0).read_u32(0), 0));
    fixture.destroy(from);
    fixture.run(|commands| dispatch(&fixture, commands, pipeline, layout, set, &[]));
    assert_eq!(fixture.reports(), ["SUBLET-descriptor-destroyed"]);
}

#[test]
fn shaders_see_what_was_flushed_and_no_more() {
    let fixture = KernelFixture::new("qualcomm-adreno-620");
    let profile = fixture.gpu.profile();
    let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE;
    let kind = profile.types.iter().position(|kind| {
        kind.flags.contains(wanted) && !kind.flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT)
    });
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &[(Type::STORAGE_BUFFER, 1)]);
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"look");
    let device = fixture.device();
    let info = vk::BufferCreateInfo::default().size(256).usage(Usage::STORAGE_BUFFER);
    let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    let info =
        vk::MemoryAllocateInfo::default().allocation_size(4096).memory_type_index(narrow(kind.unwrap()));
    let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    let set = set(&fixture, set_layout, &[Type::STORAGE_BUFFER]);
    write_buffer(&fixture, set, 0, Type::STORAGE_BUFFER, (buffer, 0, vk::WHOLE_SIZE));
    let flags = vk::MemoryMapFlags::empty();
    let data = unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, flags) }.unwrap().cast::<u32>();
    unsafe { data.write(77) };
    let seen = Arc::new(AtomicU32::new(0));
    let store = Arc::clone(&seen);
    fixture
        .gpu
        .set_kernel("look", move |kernel| store.store(kernel.buffer(0, 0, 0).read_u32(0), Ordering::Relaxed));
    fixture.run(|commands| dispatch(&fixture, commands, pipeline, layout, set, &[]));
    assert_eq!(seen.load(Ordering::Relaxed), 0);
    let range = [vk::MappedMemoryRange::default().memory(memory).size(vk::WHOLE_SIZE)];
    unsafe { device.flush_mapped_memory_ranges(&range) }.unwrap();
    fixture.run(|commands| dispatch(&fixture, commands, pipeline, layout, set, &[]));
    assert_eq!(seen.load(Ordering::Relaxed), 77);
}

#[test]
fn texel_buffers_and_inline_uniform_blocks_are_bytes_too() {
    let fixture = KernelFixture::new("nvidia-h200");
    let kinds = [(Type::STORAGE_TEXEL_BUFFER, 1), (Type::INLINE_UNIFORM_BLOCK, 16)];
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &kinds);
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"texels");
    let texels = fixture.buffer(256, Usage::STORAGE_TEXEL_BUFFER);
    let info = vk::BufferViewCreateInfo::default().buffer(texels.handle).format(vk::Format::R32_UINT);
    let view = unsafe { fixture.device().create_buffer_view(&info.offset(16).range(32), None) }.unwrap();
    let sizes = [
        vk::DescriptorPoolSize { ty: Type::STORAGE_TEXEL_BUFFER, descriptor_count: 1 },
        vk::DescriptorPoolSize { ty: Type::INLINE_UNIFORM_BLOCK, descriptor_count: 16 },
    ];
    let mut blocks =
        vk::DescriptorPoolInlineUniformBlockCreateInfo::default().max_inline_uniform_block_bindings(1);
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes).push_next(&mut blocks);
    let pool = unsafe { fixture.device().create_descriptor_pool(&info, None) }.unwrap();
    let layouts = [set_layout];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    let set = unsafe { fixture.device().allocate_descriptor_sets(&info) }.unwrap()[0];
    let mut inline = vk::WriteDescriptorSetInlineUniformBlock::default().data(&[3; 8]);
    let views = [view];
    let writes = [
        vk::WriteDescriptorSet::default()
            .dst_set(set)
            .descriptor_type(Type::STORAGE_TEXEL_BUFFER)
            .texel_buffer_view(&views),
        vk::WriteDescriptorSet { descriptor_count: 8, ..Default::default() }
            .dst_set(set)
            .dst_binding(1)
            .descriptor_type(Type::INLINE_UNIFORM_BLOCK)
            .push_next(&mut inline),
    ];
    unsafe { fixture.device().update_descriptor_sets(&writes, &[]) };
    fixture.gpu.set_kernel("texels", |kernel| {
        let (texels, block) = (kernel.buffer(0, 0, 0), kernel.buffer(0, 1, 0));
        assert_eq!((texels.len(), block.len()), (32, 16));
        texels.write_u32(0, block.read_u32(4));
        texels.write_u32(4, block.read_u32(8));
        block.write(0, &[1]);
    });
    fixture.run(|commands| dispatch(&fixture, commands, pipeline, layout, set, &[]));
    assert_eq!(fixture.reports(), ["SUBLET-descriptor-read-only"]);
    assert_eq!(fixture.bytes(texels, 24)[16..], [3, 3, 3, 3, 0, 0, 0, 0]);
}

/// One dispatch after another, with a barrier between them that makes `from` visible to shaders, if there is one.
pub(super) fn hazards_of(entry: &'static str, barrier: Option<vk::AccessFlags>) -> Vec<&'static str> {
    let gpu = Gpu::builder(Profile::by_name("nvidia-h200").unwrap()).hazards(true).build();
    let fixture = KernelFixture::of(gpu);
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &UNIFORM_AND_STORAGE);
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, &std::ffi::CString::new(entry).unwrap());
    let (from, to) = uniform_and_storage(&fixture);
    let set = set(&fixture, set_layout, &[Type::UNIFORM_BUFFER, Type::STORAGE_BUFFER]);
    write_buffer(&fixture, set, 0, Type::UNIFORM_BUFFER, (from.handle, 0, 16));
    write_buffer(&fixture, set, 1, Type::STORAGE_BUFFER, (to.handle, 0, 16));
    fixture.gpu.set_kernel("copy", copy);
    fixture.gpu.set_kernel("count", |kernel| {
        let buffer = kernel.buffer(0, 1, 0);
        buffer.write_u32(4, buffer.read_u32(4) + 1);
        buffer.write_u32(4, buffer.read_u32(4) + 1);
    });
    fixture.gpu.set_kernel("read", |kernel| {
        let _ = kernel.buffer(0, 1, 0).read_u32(0) + kernel.buffer(0, 0, 0).read_u32(0);
    });
    fixture.run(|commands| {
        dispatch(&fixture, commands, pipeline, layout, set, &[]);
        if let Some(from) = barrier {
            let shader = vk::PipelineStageFlags::COMPUTE_SHADER;
            let both = vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE;
            let bars = [vk::MemoryBarrier::default().src_access_mask(from).dst_access_mask(both)];
            let none = vk::DependencyFlags::empty();
            unsafe { fixture.device().cmd_pipeline_barrier(commands, shader, shader, none, &bars, &[], &[]) };
        }
        dispatch(&fixture, commands, pipeline, layout, set, &[]);
    });
    fixture.reports()
}

#[test]
fn dispatches_that_write_the_same_bytes_need_a_barrier() {
    let written = Some(vk::AccessFlags::SHADER_WRITE);
    assert_eq!(hazards_of("copy", None), ["SYNC-HAZARD-WRITE-AFTER-WRITE"]);
    assert_eq!(hazards_of("copy", Some(vk::AccessFlags::SHADER_READ)), ["SYNC-HAZARD-WRITE-AFTER-WRITE"]);
    assert_eq!(hazards_of("copy", written), [""; 0]);
    assert_eq!(hazards_of("count", None), ["SYNC-HAZARD-READ-AFTER-WRITE"]);
    assert_eq!(hazards_of("count", written), [""; 0]);
    assert_eq!(hazards_of("read", None), [""; 0]);
}

/// A buffer is copied from, a dispatch whose size is in another one writes it, and that one is filled. The barriers
/// before and behind the dispatch order execution, and have transfers on their other sides.
pub(super) fn hazards_around(
    before: vk::PipelineStageFlags,
    behind: vk::PipelineStageFlags,
) -> Vec<&'static str> {
    let fixture =
        KernelFixture::of(Gpu::builder(Profile::by_name("nvidia-h200").unwrap()).hazards(true).build());
    let device = fixture.device();
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &[(Type::STORAGE_BUFFER, 1)]);
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"write");
    fixture.gpu.set_kernel("write", |kernel| kernel.buffer(0, 0, 0).write_u32(0, 1));
    let written = fixture.buffer(64, Usage::STORAGE_BUFFER | Usage::TRANSFER_SRC);
    let numbers = fixture.buffer(64, Usage::INDIRECT_BUFFER | Usage::TRANSFER_DST);
    let other = fixture.buffer(64, Usage::TRANSFER_DST);
    fixture.write(numbers, 0, &[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    let set = set(&fixture, set_layout, &[Type::STORAGE_BUFFER]);
    write_buffer(&fixture, set, 0, Type::STORAGE_BUFFER, (written.handle, 0, 64));
    fixture.run(|commands| {
        let (transfer, none) = (vk::PipelineStageFlags::TRANSFER, vk::DependencyFlags::empty());
        let region = [vk::BufferCopy { size: 64, ..Default::default() }];
        unsafe { device.cmd_copy_buffer(commands, written.handle, other.handle, &region) };
        unsafe { device.cmd_pipeline_barrier(commands, transfer, before, none, &[], &[], &[]) };
        unsafe { device.cmd_bind_pipeline(commands, POINT, pipeline) };
        unsafe { device.cmd_bind_descriptor_sets(commands, POINT, layout, 0, &[set], &[]) };
        unsafe { device.cmd_dispatch_indirect(commands, numbers.handle, 0) };
        unsafe { device.cmd_pipeline_barrier(commands, behind, transfer, none, &[], &[], &[]) };
        unsafe { device.cmd_fill_buffer(commands, numbers.handle, 0, 64, 0) };
    });
    fixture.reports()
}

#[test]
fn a_barrier_orders_logically_earlier_stages_before_logically_later_ones() {
    use vk::PipelineStageFlags as Stages;
    let (indirect, shader) = (Stages::DRAW_INDIRECT, Stages::COMPUTE_SHADER);
    // The shader is later than what waits, and the size is read earlier than what is waited for.
    assert_eq!(hazards_around(indirect, shader), [""; 0]);
    assert_eq!(hazards_around(shader, indirect), [""; 0]);
    assert_eq!(hazards_around(Stages::VERTEX_SHADER, shader), ["SYNC-HAZARD-WRITE-AFTER-READ"]);
    assert_eq!(hazards_around(indirect, Stages::TRANSFER), ["SYNC-HAZARD-WRITE-AFTER-READ"]);
}
