//! Bindings of a command buffer: compatibility of pipeline layouts, dynamic offsets, push descriptors and constants.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::kit::foreign;
use super::*;

const UNIFORM: Type = Type::UNIFORM_BUFFER;
const STORAGE: Type = Type::STORAGE_BUFFER;
const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;
const STAGES: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;

/// Three layouts, a pool with many sets of each, and a command buffer that is being recorded.
fn bench() -> (Kit, [vk::DescriptorSetLayout; 3], vk::DescriptorPool) {
    let mut kit = strict();
    let layouts =
        [kit.layout(&[at(0, UNIFORM)]), kit.layout(&[at(0, STORAGE)]), kit.layout(&[at(1, STORAGE)])];
    let pool = kit.pool(64, &[(UNIFORM, 64), (STORAGE, 64)]);
    kit.begin();
    (kit, layouts, pool)
}

#[test]
fn leading_sets_stay_when_layouts_are_compatible_so_far() {
    let (mut kit, [a, b, c], pool) = bench();
    let (abc, acb) = (kit.pipeline_layout(&[a, b, c]), kit.pipeline_layout(&[a, c, b]));
    let sets = kit.sets(pool, &[a, b, c]).unwrap();
    kit.bind(abc, 0, &sets);
    assert_eq!([0, 1, 2].map(|number| kit.bound(abc, number)), [0, 1, 2].map(|at| Some(sets[at])));
    // The other layout sees the set that both have alike.
    assert_eq!([0, 1, 2].map(|number| kit.bound(acb, number)), [Some(sets[0]), None, None]);
    // Set 1 is of another layout now: it disturbs set 2, and not set 0.
    kit.bind(acb, 1, &[sets[2]]);
    assert_eq!([0, 1, 2].map(|number| kit.bound(acb, number)), [Some(sets[0]), Some(sets[2]), None]);
    assert_eq!([0, 1, 2].map(|number| kit.bound(abc, number)), [Some(sets[0]), None, None]);
    kit.end();
    kit.expect_silence();
}

#[test]
fn sets_above_stay_when_the_one_that_is_bound_again_is_compatible() {
    let (mut kit, [a, b, c], pool) = bench();
    let layout = kit.pipeline_layout(&[a, b, c]);
    let sets = kit.sets(pool, &[a, b, c, a]).unwrap();
    kit.bind(layout, 0, &sets[..3]);
    kit.bind(layout, 0, &[sets[3]]);
    assert_eq!(
        [0, 1, 2].map(|number| kit.bound(layout, number)),
        [Some(sets[3]), Some(sets[1]), Some(sets[2])]
    );
    // In any order.
    let other = kit.pipeline_layout(&[b, a]);
    let more = kit.sets(pool, &[b, a]).unwrap();
    kit.bind(other, 1, &[more[1]]);
    kit.bind(other, 0, &[more[0]]);
    assert_eq!([0, 1].map(|number| kit.bound(other, number)), [Some(more[0]), Some(more[1])]);
    assert_eq!(kit.bound(layout, 0), None);
    kit.end();
}

#[test]
fn binding_above_an_incompatible_set_disturbs_it() {
    let (mut kit, [a, b, _], pool) = bench();
    let (ab, bb) = (kit.pipeline_layout(&[a, b]), kit.pipeline_layout(&[b, b]));
    let sets = kit.sets(pool, &[a, b]).unwrap();
    kit.bind(ab, 0, &[sets[0]]);
    kit.bind(bb, 1, &[sets[1]]);
    // Set 1 was bound with another layout below it, and so was set 0.
    assert_eq!([kit.bound(ab, 0), kit.bound(ab, 1)], [None, None]);
    assert_eq!([kit.bound(bb, 0), kit.bound(bb, 1)], [None, Some(sets[1])]);
    kit.end();
}

#[test]
fn layouts_with_other_push_constants_are_not_compatible() {
    let (mut kit, [a, ..], pool) = bench();
    let range = vk::PushConstantRange { stage_flags: STAGES, offset: 0, size: 16 };
    let plain = kit.pipeline_layout(&[a]);
    let constants = kit.pipeline_layout_with(&[a], &[range]);
    let set = kit.set(pool, a).unwrap();
    kit.bind(plain, 0, &[set]);
    assert_eq!([kit.bound(plain, 0), kit.bound(constants, 0)], [Some(set), None]);
    kit.end();
}

#[test]
fn layouts_that_say_the_same_are_the_same() {
    let (mut kit, [a, ..], pool) = bench();
    let twin = kit.layout(&[at(0, UNIFORM)]);
    let (one, other) = (kit.pipeline_layout(&[a]), kit.pipeline_layout(&[twin]));
    let set = kit.set(pool, twin).unwrap();
    kit.bind(one, 0, &[set]);
    assert_eq!(kit.bound(other, 0), Some(set));
    // Layouts may go once they have been used; what is bound stays.
    kit.destroy_layout(twin);
    assert_eq!(kit.bound(other, 0), Some(set));
    kit.end();
    kit.submit().unwrap();
    kit.expect_silence();
}

#[test]
fn bind_points_have_sets_of_their_own() {
    let (mut kit, [a, ..], pool) = bench();
    let layout = kit.pipeline_layout(&[a]);
    let set = kit.set(pool, a).unwrap();
    let (graphics, commands) = (vk::PipelineBindPoint::GRAPHICS, kit.commands);
    unsafe { kit.device().cmd_bind_descriptor_sets(commands, graphics, layout, 0, &[set], &[]) };
    assert_eq!(kit.gpu.bound_set(commands, graphics, layout, 0), Some((set, Vec::new())));
    assert_eq!(kit.bound(layout, 0), None);
    kit.end();
}

#[test]
fn a_secondary_command_buffer_inherits_nothing_and_leaves_nothing() {
    let (mut kit, [a, ..], pool) = bench();
    let layout = kit.pipeline_layout(&[a]);
    let sets = kit.sets(pool, &[a, a]).unwrap();
    let device = kit.device();
    let info = vk::CommandPoolCreateInfo::default();
    let own = unsafe { device.create_command_pool(&info, None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default()
        .command_pool(own)
        .level(vk::CommandBufferLevel::SECONDARY)
        .command_buffer_count(1);
    let secondary = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
    let inherited = vk::CommandBufferInheritanceInfo::default();
    let info = vk::CommandBufferBeginInfo::default().inheritance_info(&inherited);
    unsafe { device.begin_command_buffer(secondary, &info) }.unwrap();
    unsafe { device.cmd_bind_descriptor_sets(secondary, COMPUTE, layout, 0, &[sets[1]], &[]) };
    unsafe { device.end_command_buffer(secondary) }.unwrap();
    kit.bind(layout, 0, &[sets[0]]);
    unsafe { device.cmd_execute_commands(kit.commands, &[secondary]) };
    assert_eq!(kit.bound(layout, 0), None);
    kit.end();
    kit.gpu.hold_submissions(true);
    kit.submit().unwrap();
    // Both sets are in use, the secondary's too.
    for set in &sets {
        kit.write_buffer(*set, (0, 0), UNIFORM, foreign());
    }
    kit.reports();
    assert_eq!(kit.reset(pool), Err(WRONG));
    kit.expect("VUID-vkResetDescriptorPool-descriptorPool-00313");
    kit.gpu.run_pending();
    unsafe { kit.device().destroy_command_pool(own, None) };
}

#[test]
fn dynamic_offsets_go_to_their_buffers_in_order() {
    let mut kit = strict();
    let bindings =
        [many(0, Type::STORAGE_BUFFER_DYNAMIC, 2), at(1, UNIFORM), at(2, Type::UNIFORM_BUFFER_DYNAMIC)];
    let layout = kit.layout(&bindings);
    let pipeline = kit.pipeline_layout(&[layout, layout]);
    let sizes = [(Type::STORAGE_BUFFER_DYNAMIC, 4), (UNIFORM, 2), (Type::UNIFORM_BUFFER_DYNAMIC, 2)];
    let pool = kit.pool(2, &sizes);
    let sets = kit.sets(pool, &[layout; 2]).unwrap();
    let buffer = kit.buffer();
    for &set in &sets {
        kit.write_buffer(set, (0, 0), Type::STORAGE_BUFFER_DYNAMIC, buffer);
        kit.write_buffer(set, (0, 1), Type::STORAGE_BUFFER_DYNAMIC, buffer);
        kit.write_buffer(set, (1, 0), UNIFORM, buffer);
        kit.write_buffer(set, (2, 0), Type::UNIFORM_BUFFER_DYNAMIC, buffer);
    }
    kit.begin();
    kit.bind_at(pipeline, 0, &sets, &[16, 32, 64, 48, 0, 128]);
    kit.expect_silence();
    let offset = |set, binding, element| {
        let found =
            unsafe { kit.gpu.bound_descriptor(kit.commands, COMPUTE, pipeline, (set, binding, element)) };
        found.map(|(_, offset)| offset)
    };
    assert_eq!(
        [offset(0, 0, 0), offset(0, 0, 1), offset(0, 1, 0), offset(0, 2, 0)],
        [Some(16), Some(32), Some(0), Some(64)]
    );
    assert_eq!([offset(1, 0, 0), offset(1, 0, 1), offset(1, 2, 0)], [Some(48), Some(0), Some(128)]);
    assert_eq!(kit.gpu.bound_set(kit.commands, COMPUTE, pipeline, 1), Some((sets[1], vec![48, 0, 128])));
    let set = &sets[..1];
    for (offsets, rule) in [
        (&[0, 0][..], "VUID-vkCmdBindDescriptorSets-dynamicOffsetCount-00359"),
        (&[0, 0, 0, 0], "VUID-vkCmdBindDescriptorSets-dynamicOffsetCount-00359"),
        (&[0, 0, 16], "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01971"),
        (&[4, 0, 0], "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01972"),
        (&[784, 0, 0], "VUID-vkCmdBindDescriptorSets-pDescriptorSets-01979"),
        (&[1 << 30, 0, 0], "VUID-vkCmdBindDescriptorSets-pDescriptorSets-01979"),
    ] {
        kit.bind_at(pipeline, 0, set, offsets);
        kit.expect(rule);
    }
    kit.end();
}

#[test]
fn sets_that_cannot_be_bound() {
    let (mut kit, [a, b, _], pool) = bench();
    let layout = kit.pipeline_layout(&[a, b]);
    let set = kit.set(pool, a).unwrap();
    kit.bind(layout, 1, &[set]);
    kit.expect("VUID-vkCmdBindDescriptorSets-pDescriptorSets-00358");
    kit.bind(layout, 2, &[set]);
    kit.expect("VUID-vkCmdBindDescriptorSets-firstSet-00360");
    kit.bind(layout, 0, &[foreign()]);
    kit.expect("VUID-vkCmdBindDescriptorSets-pDescriptorSets-parameter");
    kit.bind(foreign(), 0, &[set]);
    kit.expect("VUID-vkCmdBindDescriptorSets-layout-parameter");
    kit.bind(layout, 0, &[]);
    kit.expect("VUID-vkCmdBindDescriptorSets-descriptorSetCount-arraylength");
    kit.reset(pool).unwrap();
    kit.bind(layout, 0, &[set]);
    kit.expect("VUID-vkCmdBindDescriptorSets-pDescriptorSets-parameter");
    kit.end();
    kit.bind(layout, 0, &[set]);
    kit.expect("VUID-vkCmdBindDescriptorSets-commandBuffer-recording");
}

fn push(kit: &Kit, layout: vk::PipelineLayout, set: u32, binding: u32, buffer: vk::Buffer) {
    let loader = ash::khr::push_descriptor::Device::new(kit.gpu.instance(), kit.device());
    let infos = [vk::DescriptorBufferInfo { buffer, offset: 0, range: 256 }];
    let write = vk::WriteDescriptorSet::default().dst_binding(binding);
    let writes = [write.descriptor_type(STORAGE).buffer_info(&infos)];
    unsafe { loader.cmd_push_descriptor_set(kit.commands, COMPUTE, layout, set, &writes) };
}

fn pushed(kit: &Kit, layout: vk::PipelineLayout, place: (u32, u32, u32)) -> Option<vk::Buffer> {
    match unsafe { kit.gpu.bound_descriptor(kit.commands, COMPUTE, layout, place) }?.0 {
        Descriptor::Buffer { buffer, .. } => Some(buffer),
        _ => None,
    }
}

#[test]
fn push_descriptors_add_up_until_the_layout_changes() {
    let mut kit = strict();
    let push_layout = kit.push_layout(&[at(0, STORAGE), at(1, STORAGE)]);
    let set_layout = kit.layout(&[at(0, UNIFORM)]);
    let layout = kit.pipeline_layout(&[set_layout, push_layout]);
    let other = kit.pipeline_layout(&[push_layout]);
    let (one, two) = (kit.buffer(), kit.buffer());
    kit.begin();
    push(&kit, layout, 1, 0, one);
    push(&kit, layout, 1, 1, two);
    assert_eq!([pushed(&kit, layout, (1, 0, 0)), pushed(&kit, layout, (1, 1, 0))], [Some(one), Some(two)]);
    push(&kit, layout, 1, 0, two);
    assert_eq!([pushed(&kit, layout, (1, 0, 0)), pushed(&kit, layout, (1, 1, 0))], [Some(two), Some(two)]);
    assert_eq!(kit.bound(layout, 1), None);
    kit.expect_silence();
    let twin = kit.push_layout(&[at(0, STORAGE), at(1, STORAGE), at(2, STORAGE)]);
    let third = kit.pipeline_layout(&[set_layout, twin]);
    push(&kit, third, 1, 1, one);
    assert_eq!([pushed(&kit, third, (1, 0, 0)), pushed(&kit, third, (1, 1, 0))], [None, Some(one)]);
    push(&kit, other, 0, 1, one);
    assert_eq!([pushed(&kit, other, (0, 0, 0)), pushed(&kit, other, (0, 1, 0))], [None, Some(one)]);
    assert_eq!(pushed(&kit, layout, (1, 0, 0)), None);
    kit.end();
}

#[test]
fn what_cannot_be_pushed() {
    let mut kit = strict();
    let push_layout = kit.push_layout(&[at(0, STORAGE)]);
    let set_layout = kit.layout(&[at(0, STORAGE)]);
    let layout = kit.pipeline_layout(&[set_layout, push_layout]);
    let buffer = kit.buffer();
    kit.begin();
    for (set, binding, buffer, rule) in [
        (2, 0, buffer, "VUID-vkCmdPushDescriptorSet-set-00364"),
        (0, 0, buffer, "VUID-vkCmdPushDescriptorSet-set-00365"),
        (1, 1, buffer, "VUID-VkWriteDescriptorSet-dstBinding-00315"),
        (1, 0, foreign(), "VUID-VkDescriptorBufferInfo-buffer-parameter"),
    ] {
        push(&kit, layout, set, binding, buffer);
        kit.expect(rule);
    }
    push(&kit, foreign(), 1, 0, buffer);
    kit.expect("VUID-vkCmdPushDescriptorSet-layout-parameter");
    kit.end();
    // A set of such a layout comes from no pool.
    let pool = kit.pool(1, &[(STORAGE, 1)]);
    assert_eq!(kit.set(pool, push_layout), Err(WRONG));
    kit.expect("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-00308");
}

#[test]
fn templates_push_too() {
    let mut kit = strict();
    let push_layout = kit.push_layout(&[at(0, STORAGE)]);
    let set_layout = kit.layout(&[at(0, UNIFORM)]);
    let layout = kit.pipeline_layout(&[set_layout, push_layout]);
    let other = kit.pipeline_layout(&[push_layout]);
    let entries = [vk::DescriptorUpdateTemplateEntry::default().descriptor_count(1).descriptor_type(STORAGE)];
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
        .pipeline_bind_point(COMPUTE)
        .pipeline_layout(layout)
        .set(1);
    let template = kit.template(&info).unwrap();
    let buffer = kit.buffer();
    let data = vk::DescriptorBufferInfo { buffer, offset: 0, range: 256 };
    let loader = ash::khr::push_descriptor::Device::new(kit.gpu.instance(), kit.device());
    let push = |layout, set, data: *const vk::DescriptorBufferInfo| unsafe {
        let commands = kit.commands;
        loader.cmd_push_descriptor_set_with_template(commands, template, layout, set, data.cast());
    };
    kit.begin();
    push(layout, 1, &raw const data);
    kit.expect_silence();
    assert_eq!(pushed(&kit, layout, (1, 0, 0)), Some(buffer));
    push(other, 0, &raw const data);
    kit.expect("VUID-vkCmdPushDescriptorSetWithTemplate-layout-07993");
    push(layout, 1, std::ptr::null());
    kit.expect("VUID-vkCmdPushDescriptorSetWithTemplate-pData-01686");
    kit.end();
}

#[test]
fn push_constants_are_kept_by_byte() {
    let mut kit = strict();
    let range = |stage_flags, offset, size| vk::PushConstantRange { stage_flags, offset, size };
    let vertex = vk::ShaderStageFlags::VERTEX;
    let layout = kit.pipeline_layout_with(&[], &[range(STAGES, 0, 16), range(vertex, 8, 16)]);
    let other = kit.pipeline_layout_with(&[], &[range(STAGES, 0, 32)]);
    kit.begin();
    let push = |layout, stages, offset, bytes: &[u8]| unsafe {
        kit.device().cmd_push_constants(kit.commands, layout, stages, offset, bytes);
    };
    let found = |layout, offset, size| kit.gpu.push_constants(kit.commands, layout, offset, size);
    push(layout, STAGES, 0, &[1; 8]);
    push(layout, STAGES | vertex, 8, &[2; 4]);
    assert_eq!(found(layout, 4, 8), Some(vec![1, 1, 1, 1, 2, 2, 2, 2]));
    assert_eq!(found(layout, 0, 16), None);
    assert_eq!(found(other, 0, 4), None);
    kit.expect_silence();
    for (stages, offset, bytes, rule) in [
        (STAGES, 2, 4, "VUID-vkCmdPushConstants-offset-00368"),
        (STAGES, 0, 2, "VUID-vkCmdPushConstants-size-00369"),
        (STAGES, 0, 0, "VUID-vkCmdPushConstants-size-arraylength"),
        (STAGES, 256, 4, "VUID-vkCmdPushConstants-offset-00370"),
        (STAGES, 252, 8, "VUID-vkCmdPushConstants-size-00371"),
        (STAGES, 16, 4, "VUID-vkCmdPushConstants-offset-01795"),
        (STAGES, 4, 8, "VUID-vkCmdPushConstants-offset-01796"),
    ] {
        push(layout, stages, offset, &[0; 8][..bytes]);
        kit.expect(rule);
    }
    push(foreign(), STAGES, 0, &[0; 4]);
    kit.expect("VUID-vkCmdPushConstants-layout-parameter");
    // Pushed with a layout of other ranges, what was there is not any more.
    push(other, STAGES, 0, &[3; 4]);
    assert_eq!([found(other, 0, 4), found(other, 4, 4), found(layout, 4, 4)], [Some(vec![3; 4]), None, None]);
    kit.end();
}
