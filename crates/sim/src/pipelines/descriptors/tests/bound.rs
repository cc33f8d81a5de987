//! Bindings of a command buffer: compatibility of pipeline layouts, dynamic offsets, push descriptors and constants.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::fixture::foreign;
use super::*;

const UNIFORM: Type = Type::UNIFORM_BUFFER;
const STORAGE: Type = Type::STORAGE_BUFFER;
const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;
const STAGES: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;

/// Three layouts, a pool with many sets of each, and a command buffer that is being recorded.
fn fixture() -> (DescriptorFixture, [vk::DescriptorSetLayout; 3], vk::DescriptorPool) {
    let fixture = strict();
    let layouts = [
        fixture.layout(&[at(0, UNIFORM)]),
        fixture.layout(&[at(0, STORAGE)]),
        fixture.layout(&[at(1, STORAGE)]),
    ];
    let pool = fixture.pool(64, &[(UNIFORM, 64), (STORAGE, 64)]);
    fixture.begin();
    (fixture, layouts, pool)
}

#[test]
fn leading_sets_stay_when_layouts_are_compatible_so_far() {
    let (fixture, [a, b, c], pool) = fixture();
    let (abc, acb) = (fixture.pipeline_layout(&[a, b, c]), fixture.pipeline_layout(&[a, c, b]));
    let sets = fixture.sets(pool, &[a, b, c]).unwrap();
    fixture.bind(abc, 0, &sets);
    assert_eq!([0, 1, 2].map(|number| fixture.bound(abc, number)), [0, 1, 2].map(|at| Some(sets[at])));
    // The other layout sees the set that both have alike.
    assert_eq!([0, 1, 2].map(|number| fixture.bound(acb, number)), [Some(sets[0]), None, None]);
    // Set 1 is of another layout now: it disturbs set 2, and not set 0.
    fixture.bind(acb, 1, &[sets[2]]);
    assert_eq!([0, 1, 2].map(|number| fixture.bound(acb, number)), [Some(sets[0]), Some(sets[2]), None]);
    assert_eq!([0, 1, 2].map(|number| fixture.bound(abc, number)), [Some(sets[0]), None, None]);
    fixture.end();
    fixture.expect_silence();
}

#[test]
fn sets_above_stay_when_the_one_that_is_bound_again_is_compatible() {
    let (fixture, [a, b, c], pool) = fixture();
    let layout = fixture.pipeline_layout(&[a, b, c]);
    let sets = fixture.sets(pool, &[a, b, c, a]).unwrap();
    fixture.bind(layout, 0, &sets[..3]);
    fixture.bind(layout, 0, &[sets[3]]);
    assert_eq!(
        [0, 1, 2].map(|number| fixture.bound(layout, number)),
        [Some(sets[3]), Some(sets[1]), Some(sets[2])]
    );
    // In any order.
    let other = fixture.pipeline_layout(&[b, a]);
    let more = fixture.sets(pool, &[b, a]).unwrap();
    fixture.bind(other, 1, &[more[1]]);
    fixture.bind(other, 0, &[more[0]]);
    assert_eq!([0, 1].map(|number| fixture.bound(other, number)), [Some(more[0]), Some(more[1])]);
    assert_eq!(fixture.bound(layout, 0), None);
    fixture.end();
}

#[test]
fn binding_above_an_incompatible_set_disturbs_it() {
    let (fixture, [a, b, _], pool) = fixture();
    let (ab, bb) = (fixture.pipeline_layout(&[a, b]), fixture.pipeline_layout(&[b, b]));
    let sets = fixture.sets(pool, &[a, b]).unwrap();
    fixture.bind(ab, 0, &[sets[0]]);
    fixture.bind(bb, 1, &[sets[1]]);
    // Set 1 was bound with another layout below it, and so was set 0.
    assert_eq!([fixture.bound(ab, 0), fixture.bound(ab, 1)], [None, None]);
    assert_eq!([fixture.bound(bb, 0), fixture.bound(bb, 1)], [None, Some(sets[1])]);
    fixture.end();
}

#[test]
fn layouts_with_other_push_constants_are_not_compatible() {
    let (fixture, [a, ..], pool) = fixture();
    let range = vk::PushConstantRange { stage_flags: STAGES, offset: 0, size: 16 };
    let plain = fixture.pipeline_layout(&[a]);
    let constants = fixture.pipeline_layout_with(&[a], &[range]);
    let set = fixture.set(pool, a).unwrap();
    fixture.bind(plain, 0, &[set]);
    assert_eq!([fixture.bound(plain, 0), fixture.bound(constants, 0)], [Some(set), None]);
    fixture.end();
}

#[test]
fn layouts_that_say_the_same_are_the_same() {
    let (fixture, [a, ..], pool) = fixture();
    let twin = fixture.layout(&[at(0, UNIFORM)]);
    let (one, other) = (fixture.pipeline_layout(&[a]), fixture.pipeline_layout(&[twin]));
    let set = fixture.set(pool, twin).unwrap();
    fixture.bind(one, 0, &[set]);
    assert_eq!(fixture.bound(other, 0), Some(set));
    // Layouts may go once they have been used; what is bound stays.
    fixture.destroy_layout(twin);
    assert_eq!(fixture.bound(other, 0), Some(set));
    fixture.end();
    fixture.submit().unwrap();
    fixture.expect_silence();
}

#[test]
fn bind_points_have_sets_of_their_own() {
    let (fixture, [a, ..], pool) = fixture();
    let layout = fixture.pipeline_layout(&[a]);
    let set = fixture.set(pool, a).unwrap();
    let (graphics, commands) = (vk::PipelineBindPoint::GRAPHICS, fixture.commands);
    unsafe { fixture.device().cmd_bind_descriptor_sets(commands, graphics, layout, 0, &[set], &[]) };
    assert_eq!(fixture.gpu.bound_set(commands, graphics, layout, 0), Some((set, Vec::new())));
    assert_eq!(fixture.bound(layout, 0), None);
    fixture.end();
}

#[test]
fn a_secondary_command_buffer_inherits_nothing_and_leaves_nothing() {
    let (fixture, [a, ..], pool) = fixture();
    let layout = fixture.pipeline_layout(&[a]);
    let sets = fixture.sets(pool, &[a, a]).unwrap();
    let device = fixture.device();
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
    fixture.bind(layout, 0, &[sets[0]]);
    unsafe { device.cmd_execute_commands(fixture.commands, &[secondary]) };
    assert_eq!(fixture.bound(layout, 0), None);
    fixture.end();
    fixture.gpu.hold_submissions(true);
    fixture.submit().unwrap();
    // Both sets are in use, the secondary's too.
    for set in &sets {
        fixture.write_buffer(*set, (0, 0), UNIFORM, foreign());
    }
    fixture.reports();
    fixture.refuses("VUID-vkResetDescriptorPool-descriptorPool-00313", fixture.reset(pool));
    fixture.gpu.run_pending();
}

#[test]
fn dynamic_offsets_go_to_their_buffers_in_order() {
    let fixture = strict();
    let bindings =
        [many(0, Type::STORAGE_BUFFER_DYNAMIC, 2), at(1, UNIFORM), at(2, Type::UNIFORM_BUFFER_DYNAMIC)];
    let layout = fixture.layout(&bindings);
    let pipeline = fixture.pipeline_layout(&[layout, layout]);
    let sizes = [(Type::STORAGE_BUFFER_DYNAMIC, 4), (UNIFORM, 2), (Type::UNIFORM_BUFFER_DYNAMIC, 2)];
    let pool = fixture.pool(2, &sizes);
    let sets = fixture.sets(pool, &[layout; 2]).unwrap();
    let buffer = fixture.buffer();
    for &set in &sets {
        fixture.write_buffer(set, (0, 0), Type::STORAGE_BUFFER_DYNAMIC, buffer);
        fixture.write_buffer(set, (0, 1), Type::STORAGE_BUFFER_DYNAMIC, buffer);
        fixture.write_buffer(set, (1, 0), UNIFORM, buffer);
        fixture.write_buffer(set, (2, 0), Type::UNIFORM_BUFFER_DYNAMIC, buffer);
    }
    fixture.begin();
    fixture.bind_at(pipeline, 0, &sets, &[16, 32, 64, 48, 0, 128]);
    fixture.expect_silence();
    let offset = |set, binding, element| {
        let found = unsafe {
            fixture.gpu.bound_descriptor(fixture.commands, COMPUTE, pipeline, (set, binding, element))
        };
        found.map(|(_, offset)| offset)
    };
    assert_eq!(
        [offset(0, 0, 0), offset(0, 0, 1), offset(0, 1, 0), offset(0, 2, 0)],
        [Some(16), Some(32), Some(0), Some(64)]
    );
    assert_eq!([offset(1, 0, 0), offset(1, 0, 1), offset(1, 2, 0)], [Some(48), Some(0), Some(128)]);
    assert_eq!(
        fixture.gpu.bound_set(fixture.commands, COMPUTE, pipeline, 1),
        Some((sets[1], vec![48, 0, 128]))
    );
    let set = &sets[..1];
    for (offsets, rule) in [
        (&[0, 0][..], "VUID-vkCmdBindDescriptorSets-dynamicOffsetCount-00359"),
        (&[0, 0, 0, 0], "VUID-vkCmdBindDescriptorSets-dynamicOffsetCount-00359"),
        (&[0, 0, 16], "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01971"),
        (&[4, 0, 0], "VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01972"),
        (&[784, 0, 0], "VUID-vkCmdBindDescriptorSets-pDescriptorSets-01979"),
        (&[1 << 30, 0, 0], "VUID-vkCmdBindDescriptorSets-pDescriptorSets-01979"),
    ] {
        fixture.bind_at(pipeline, 0, set, offsets);
        fixture.expect(rule);
    }
    fixture.end();
}

#[test]
fn sets_that_cannot_be_bound() {
    let (fixture, [a, b, _], pool) = fixture();
    let layout = fixture.pipeline_layout(&[a, b]);
    let set = fixture.set(pool, a).unwrap();
    fixture.bind(layout, 1, &[set]);
    fixture.expect("VUID-vkCmdBindDescriptorSets-pDescriptorSets-00358");
    fixture.bind(layout, 2, &[set]);
    fixture.expect("VUID-vkCmdBindDescriptorSets-firstSet-00360");
    fixture.bind(layout, 0, &[foreign()]);
    fixture.expect("VUID-vkCmdBindDescriptorSets-pDescriptorSets-parameter");
    fixture.bind(foreign(), 0, &[set]);
    fixture.expect("VUID-vkCmdBindDescriptorSets-layout-parameter");
    fixture.bind(layout, 0, &[]);
    fixture.expect("VUID-vkCmdBindDescriptorSets-descriptorSetCount-arraylength");
    fixture.reset(pool).unwrap();
    fixture.bind(layout, 0, &[set]);
    fixture.expect("VUID-vkCmdBindDescriptorSets-pDescriptorSets-parameter");
    fixture.end();
    fixture.bind(layout, 0, &[set]);
    fixture.expect("VUID-vkCmdBindDescriptorSets-commandBuffer-recording");
}

fn push(fixture: &DescriptorFixture, layout: vk::PipelineLayout, set: u32, binding: u32, buffer: vk::Buffer) {
    let loader = ash::khr::push_descriptor::Device::new(fixture.gpu.instance(), fixture.device());
    let infos = [vk::DescriptorBufferInfo { buffer, offset: 0, range: 256 }];
    let write = vk::WriteDescriptorSet::default().dst_binding(binding);
    let writes = [write.descriptor_type(STORAGE).buffer_info(&infos)];
    unsafe { loader.cmd_push_descriptor_set(fixture.commands, COMPUTE, layout, set, &writes) };
}

fn pushed(
    fixture: &DescriptorFixture,
    layout: vk::PipelineLayout,
    place: (u32, u32, u32),
) -> Option<vk::Buffer> {
    match unsafe { fixture.gpu.bound_descriptor(fixture.commands, COMPUTE, layout, place) }?.0 {
        SimulatedDescriptor::Buffer { buffer, .. } => Some(buffer),
        _ => None,
    }
}

#[test]
fn push_descriptors_add_up_until_the_layout_changes() {
    let fixture = strict();
    let push_layout = fixture.push_layout(&[at(0, STORAGE), at(1, STORAGE)]);
    let set_layout = fixture.layout(&[at(0, UNIFORM)]);
    let layout = fixture.pipeline_layout(&[set_layout, push_layout]);
    let other = fixture.pipeline_layout(&[push_layout]);
    let (one, two) = (fixture.buffer(), fixture.buffer());
    fixture.begin();
    push(&fixture, layout, 1, 0, one);
    push(&fixture, layout, 1, 1, two);
    assert_eq!(
        [pushed(&fixture, layout, (1, 0, 0)), pushed(&fixture, layout, (1, 1, 0))],
        [Some(one), Some(two)]
    );
    push(&fixture, layout, 1, 0, two);
    assert_eq!(
        [pushed(&fixture, layout, (1, 0, 0)), pushed(&fixture, layout, (1, 1, 0))],
        [Some(two), Some(two)]
    );
    assert_eq!(fixture.bound(layout, 1), None);
    fixture.expect_silence();
    let twin = fixture.push_layout(&[at(0, STORAGE), at(1, STORAGE), at(2, STORAGE)]);
    let third = fixture.pipeline_layout(&[set_layout, twin]);
    push(&fixture, third, 1, 1, one);
    assert_eq!([pushed(&fixture, third, (1, 0, 0)), pushed(&fixture, third, (1, 1, 0))], [None, Some(one)]);
    push(&fixture, other, 0, 1, one);
    assert_eq!([pushed(&fixture, other, (0, 0, 0)), pushed(&fixture, other, (0, 1, 0))], [None, Some(one)]);
    assert_eq!(pushed(&fixture, layout, (1, 0, 0)), None);
    fixture.end();
}

#[test]
fn what_cannot_be_pushed() {
    let fixture = strict();
    let push_layout = fixture.push_layout(&[at(0, STORAGE)]);
    let set_layout = fixture.layout(&[at(0, STORAGE)]);
    let layout = fixture.pipeline_layout(&[set_layout, push_layout]);
    let buffer = fixture.buffer();
    fixture.begin();
    for (set, binding, buffer, rule) in [
        (2, 0, buffer, "VUID-vkCmdPushDescriptorSet-set-00364"),
        (0, 0, buffer, "VUID-vkCmdPushDescriptorSet-set-00365"),
        (1, 1, buffer, "VUID-VkWriteDescriptorSet-dstBinding-00315"),
        (1, 0, foreign(), "VUID-VkDescriptorBufferInfo-buffer-parameter"),
    ] {
        push(&fixture, layout, set, binding, buffer);
        fixture.expect(rule);
    }
    push(&fixture, foreign(), 1, 0, buffer);
    fixture.expect("VUID-vkCmdPushDescriptorSet-layout-parameter");
    fixture.end();
    // A set of such a layout comes from no pool.
    let pool = fixture.pool(1, &[(STORAGE, 1)]);
    fixture.refuses("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-00308", fixture.set(pool, push_layout));
}

#[test]
fn templates_push_too() {
    let fixture = strict();
    let push_layout = fixture.push_layout(&[at(0, STORAGE)]);
    let set_layout = fixture.layout(&[at(0, UNIFORM)]);
    let layout = fixture.pipeline_layout(&[set_layout, push_layout]);
    let other = fixture.pipeline_layout(&[push_layout]);
    let entries = [vk::DescriptorUpdateTemplateEntry::default().descriptor_count(1).descriptor_type(STORAGE)];
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
        .pipeline_bind_point(COMPUTE)
        .pipeline_layout(layout)
        .set(1);
    let template = fixture.template(&info).unwrap();
    let buffer = fixture.buffer();
    let data = vk::DescriptorBufferInfo { buffer, offset: 0, range: 256 };
    let loader = ash::khr::push_descriptor::Device::new(fixture.gpu.instance(), fixture.device());
    let push = |layout, set, data: *const vk::DescriptorBufferInfo| unsafe {
        let commands = fixture.commands;
        loader.cmd_push_descriptor_set_with_template(commands, template, layout, set, data.cast());
    };
    fixture.begin();
    push(layout, 1, &raw const data);
    fixture.expect_silence();
    assert_eq!(pushed(&fixture, layout, (1, 0, 0)), Some(buffer));
    push(other, 0, &raw const data);
    fixture.expect("VUID-vkCmdPushDescriptorSetWithTemplate-layout-07993");
    push(layout, 1, std::ptr::null());
    fixture.expect("VUID-vkCmdPushDescriptorSetWithTemplate-pData-01686");
    fixture.end();
}

#[test]
fn push_constants_are_kept_by_byte() {
    let fixture = strict();
    let range = |stage_flags, offset, size| vk::PushConstantRange { stage_flags, offset, size };
    let vertex = vk::ShaderStageFlags::VERTEX;
    let layout = fixture.pipeline_layout_with(&[], &[range(STAGES, 0, 16), range(vertex, 8, 16)]);
    let other = fixture.pipeline_layout_with(&[], &[range(STAGES, 0, 32)]);
    fixture.begin();
    let push = |layout, stages, offset, bytes: &[u8]| unsafe {
        fixture.device().cmd_push_constants(fixture.commands, layout, stages, offset, bytes);
    };
    let found = |layout, offset, size| fixture.gpu.push_constants(fixture.commands, layout, offset, size);
    push(layout, STAGES, 0, &[1; 8]);
    push(layout, STAGES | vertex, 8, &[2; 4]);
    assert_eq!(found(layout, 4, 8), Some(vec![1, 1, 1, 1, 2, 2, 2, 2]));
    assert_eq!(found(layout, 0, 16), None);
    assert_eq!(found(other, 0, 4), None);
    fixture.expect_silence();
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
        fixture.expect(rule);
    }
    push(foreign(), STAGES, 0, &[0; 4]);
    fixture.expect("VUID-vkCmdPushConstants-layout-parameter");
    // Pushed with a layout of other ranges, what was there is not any more.
    push(other, STAGES, 0, &[3; 4]);
    assert_eq!([found(other, 0, 4), found(other, 4, 4), found(layout, 4, 4)], [Some(vec![3; 4]), None, None]);
    fixture.end();
}
