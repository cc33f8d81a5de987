//! Layouts that keep the rules, and layouts that break them.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::fixture::foreign;
use super::*;
use vk::DescriptorBindingFlags as Flags;
use vk::DescriptorSetLayoutCreateFlags as LayoutFlags;

/// Makes a layout that breaks a rule, and asks whether it could be made.
#[track_caller]
fn refused(fixture: &DescriptorFixture, info: &vk::DescriptorSetLayoutCreateInfo<'_>, rule: &str) {
    assert_eq!(fixture.try_layout(info), Err(WRONG));
    fixture.expect(rule);
    let mut support = vk::DescriptorSetLayoutSupport::default();
    unsafe { fixture.device().get_descriptor_set_layout_support(info, &mut support) };
    assert_eq!(support.supported, vk::FALSE);
    fixture.expect(rule);
}

#[test]
fn bindings_that_contradict_themselves() {
    let fixture = strict();
    let samplers = [foreign()];
    let push = LayoutFlags::PUSH_DESCRIPTOR_KHR;
    let none = LayoutFlags::empty();
    let inline = Type::INLINE_UNIFORM_BLOCK;
    let too_many = vec![many(0, Type::UNIFORM_BUFFER, 20), many(1, Type::STORAGE_BUFFER, 13)];
    let unknown = vec![at(0, Type::SAMPLER).immutable_samplers(&samplers)];
    for (bindings, flags, rule) in [
        (vec![at(3, Type::SAMPLER); 2], none, "CreateInfo-binding-00279"),
        (unknown, none, "Binding-descriptorType-00282"),
        (vec![at(0, Type::UNIFORM_BUFFER_DYNAMIC)], push, "CreateInfo-flags-00280"),
        (vec![many(0, inline, 4)], push, "CreateInfo-flags-02208"),
        (too_many, push, "CreateInfo-flags-00281"),
        (vec![many(0, inline, 6)], none, "Binding-descriptorType-02209"),
        (vec![many(0, inline, 260)], none, "Binding-descriptorType-08004"),
        (vec![at(0, Type::MUTABLE_EXT)], none, "CreateInfo-pBindings-07303"),
    ] {
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        refused(&fixture, &info, &format!("VUID-VkDescriptorSetLayout{rule}"));
    }
}

#[test]
fn binding_flags_that_contradict_themselves() {
    let fixture = strict();
    let (after, variable) = (Flags::UPDATE_AFTER_BIND, Flags::VARIABLE_DESCRIPTOR_COUNT);
    let two = [at(0, Type::UNIFORM_BUFFER), at(1, Type::UNIFORM_BUFFER)];
    let dynamic = [at(0, Type::STORAGE_BUFFER_DYNAMIC)];
    let none = LayoutFlags::empty();
    let (push, pool) = (LayoutFlags::PUSH_DESCRIPTOR_KHR, LayoutFlags::UPDATE_AFTER_BIND_POOL);
    let cases: [(&[_], LayoutFlags, &[Flags], &str); 7] = [
        (&two, none, &[after], "BindingFlagsCreateInfo-bindingCount-03002"),
        (&two, none, &[after, after], "CreateInfo-flags-03000"),
        (&two, none, &[variable, Flags::empty()], "BindingFlagsCreateInfo-pBindingFlags-03004"),
        (&dynamic, pool, &[after], "BindingFlagsCreateInfo-None-03011"),
        (&dynamic, none, &[variable], "BindingFlagsCreateInfo-pBindingFlags-03015"),
        (&two[..1], push, &[variable], "BindingFlagsCreateInfo-flags-03003"),
        (&two[..1], push, &[Flags::UPDATE_UNUSED_WHILE_PENDING], "BindingFlagsCreateInfo-flags-03003"),
    ];
    for (bindings, layout_flags, flags, rule) in cases {
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(bindings).flags(layout_flags);
        refused(&fixture, &info.push_next(&mut flags), &format!("VUID-VkDescriptorSetLayout{rule}"));
    }
}

#[test]
fn a_layout_that_updates_after_bind_has_no_dynamic_buffers() {
    let fixture = strict();
    let bindings = [at(0, Type::UNIFORM_BUFFER), at(1, Type::UNIFORM_BUFFER_DYNAMIC)];
    let flags = [Flags::UPDATE_AFTER_BIND, Flags::empty()];
    let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    let info = vk::DescriptorSetLayoutCreateInfo::default()
        .bindings(&bindings)
        .flags(LayoutFlags::UPDATE_AFTER_BIND_POOL)
        .push_next(&mut flags);
    refused(&fixture, &info, "VUID-VkDescriptorSetLayoutCreateInfo-descriptorType-03001");
}

#[test]
fn a_layout_that_is_not_supported_is_not_made() {
    let mut limits = profile("nvidia-h200").limits.descriptors;
    limits.max_per_set_descriptors = 1000;
    limits.per_stage.storage_buffers = 16;
    let fixture = DescriptorFixture::new(Gpu::builder(profile("nvidia-h200")).descriptor_limits(limits));
    for bindings in [[many(0, Type::STORAGE_BUFFER, 17)], [many(0, Type::SAMPLED_IMAGE, 1001)]] {
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let mut support = vk::DescriptorSetLayoutSupport::default();
        unsafe { fixture.device().get_descriptor_set_layout_support(&info, &mut support) };
        assert_eq!(support.supported, vk::FALSE);
        fixture.expect_silence();
        let refused = fixture.try_layout(&info);
        fixture.refuses("VUID-vkCreateDescriptorSetLayout-support-09582", refused);
    }
    fixture.layout(&[many(0, Type::STORAGE_BUFFER, 16), many(1, Type::SAMPLED_IMAGE, 984)]);
}

#[test]
fn flags_and_types_whose_features_are_not_enabled() {
    // It has inline uniform blocks and push descriptors, and nothing of descriptor indexing.
    let fixture = DescriptorFixture::new(Gpu::builder(profile("lavapipe")));
    let bindings = [at(0, Type::STORAGE_BUFFER)];
    let (none, after) = (LayoutFlags::empty(), LayoutFlags::UPDATE_AFTER_BIND_POOL);
    for (flag, layout, rule) in [
        (Flags::UPDATE_AFTER_BIND, after, "StorageBufferUpdateAfterBind-03008"),
        (Flags::UPDATE_UNUSED_WHILE_PENDING, none, "UpdateUnusedWhilePending-03012"),
        (Flags::PARTIALLY_BOUND, none, "PartiallyBound-03013"),
        (Flags::VARIABLE_DESCRIPTOR_COUNT, none, "VariableDescriptorCount-03014"),
    ] {
        let flags = [flag];
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(layout);
        let rule = format!("VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBinding{rule}");
        refused(&fixture, &info.push_next(&mut flags), &rule);
    }
    let types = [Type::STORAGE_BUFFER];
    let lists = [vk::MutableDescriptorTypeListEXT::default().descriptor_types(&types)];
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    let bindings = [at(0, Type::MUTABLE_EXT)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut mutable);
    refused(&fixture, &info, "VUID-VkDescriptorSetLayoutCreateInfo-descriptorType-04595");
    let fixture = DescriptorFixture::new(Gpu::builder(profile("swiftshader")));
    let bindings = [many(0, Type::INLINE_UNIFORM_BLOCK, 16)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    refused(&fixture, &info, "VUID-VkDescriptorSetLayoutBinding-descriptorType-04604");
}

#[test]
fn a_mutable_list_has_no_types_that_cannot_change() {
    let fixture = strict();
    for (kind, number) in [
        (Type::MUTABLE_EXT, 4600),
        (Type::UNIFORM_BUFFER_DYNAMIC, 4601),
        (Type::STORAGE_BUFFER_DYNAMIC, 4602),
        (Type::INLINE_UNIFORM_BLOCK, 4603),
    ] {
        let types = [Type::STORAGE_BUFFER, kind];
        let lists = [vk::MutableDescriptorTypeListEXT::default().descriptor_types(&types)];
        let mut mutable =
            vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
        let bindings = [at(0, Type::MUTABLE_EXT)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut mutable);
        let rule = format!("VUID-VkMutableDescriptorTypeListEXT-pDescriptorTypes-0{number}");
        refused(&fixture, &info, &rule);
    }
}

#[test]
fn support_says_how_many_a_variable_binding_may_have() {
    let mut limits = profile("nvidia-h200").limits.descriptors;
    limits.max_per_set_descriptors = 1000;
    limits.per_set.storage_buffers = 100;
    limits.per_stage.storage_buffers = 90;
    let fixture = DescriptorFixture::new(Gpu::builder(profile("nvidia-h200")).descriptor_limits(limits));
    let ask = |kind, count, fixed| {
        let bindings = [many(0, Type::SAMPLER, fixed), many(1, kind, count)];
        let flags = [Flags::empty(), Flags::VARIABLE_DESCRIPTOR_COUNT];
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut flags);
        let mut most = vk::DescriptorSetVariableDescriptorCountLayoutSupport::default();
        let mut support = vk::DescriptorSetLayoutSupport::default().push_next(&mut most);
        unsafe { fixture.device().get_descriptor_set_layout_support(&info, &mut support) };
        let supported = support.supported != vk::FALSE;
        (supported, most.max_variable_descriptor_count)
    };
    assert_eq!(ask(Type::STORAGE_BUFFER, 10, 10), (true, 90));
    assert_eq!(ask(Type::STORAGE_BUFFER, 91, 10), (false, 0));
    assert_eq!(ask(Type::SAMPLED_IMAGE, 10, 10), (true, 990));
    assert_eq!(ask(Type::SAMPLED_IMAGE, 10, 1001), (false, 0));
    fixture.expect_silence();
}

#[test]
fn pipeline_layouts_keep_to_the_limits() {
    let mut limits = profile("nvidia-h200").limits.descriptors;
    limits.max_bound_descriptor_sets = 3;
    limits.max_push_constants_size = 64;
    limits.per_set.storage_buffers = 5;
    limits.per_stage.sampled_images = 4;
    limits.per_set_update_after_bind.uniform_buffers = 8;
    let fixture = DescriptorFixture::new(Gpu::builder(profile("nvidia-h200")).descriptor_limits(limits));
    let storage = fixture.layout(&[many(0, Type::STORAGE_BUFFER, 2), at(1, Type::STORAGE_BUFFER_DYNAMIC)]);
    let images = fixture.layout(&[many(0, Type::SAMPLED_IMAGE, 2), at(1, Type::UNIFORM_TEXEL_BUFFER)]);
    let after = fixture.flagged(&[many(0, Type::UNIFORM_BUFFER, 6)], &[Flags::UPDATE_AFTER_BIND]);
    let uniforms = fixture.layout(&[many(0, Type::UNIFORM_BUFFER, 3)]);
    let push = fixture.push_layout(&[at(0, Type::UNIFORM_BUFFER)]);
    let stages = vk::ShaderStageFlags::COMPUTE;
    let range = |offset, size| vk::PushConstantRange { stage_flags: stages, offset, size };
    let no_stage = vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::empty(), ..range(0, 4) };
    let cases: [(&[_], &[_], &str); 14] = [
        (&[uniforms; 4], &[], "VUID-VkPipelineLayoutCreateInfo-setLayoutCount-00286"),
        (&[storage, storage], &[], "VUID-VkPipelineLayoutCreateInfo-descriptorType-03031"),
        (&[images, images], &[], "VUID-VkPipelineLayoutCreateInfo-descriptorType-06939"),
        (&[after, uniforms], &[], "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-03037"),
        (&[push, push], &[], "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-00293"),
        (&[foreign()], &[], "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter"),
        (&[], &[range(0, 4), range(4, 4)], "VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-00292"),
        (&[], &[range(64, 4)], "VUID-VkPushConstantRange-offset-00294"),
        (&[], &[range(2, 4)], "VUID-VkPushConstantRange-offset-00295"),
        (&[], &[range(0, 0)], "VUID-VkPushConstantRange-size-00296"),
        (&[], &[range(0, 6)], "VUID-VkPushConstantRange-size-00297"),
        (&[], &[range(4, 64)], "VUID-VkPushConstantRange-size-00298"),
        (&[], &[range(4, u32::MAX - 3)], "VUID-VkPushConstantRange-size-00298"),
        (&[], &[no_stage], "VUID-VkPushConstantRange-stageFlags-requiredbitmask"),
    ];
    for (sets, ranges, rule) in cases {
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(sets).push_constant_ranges(ranges);
        let made = unsafe { fixture.device().create_pipeline_layout(&info, None) };
        assert_eq!(made, Err(WRONG), "{rule}");
        fixture.expect(rule);
    }
    fixture.pipeline_layout_with(&[storage, images, after], &[range(0, 64)]);
    fixture.expect_silence();
}
