//! The life of layouts, pools, samplers and templates: the order of destruction, leaks, and stale handles.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use std::ffi::c_void;

use super::fixture::foreign;
use super::*;

const STORAGE: Type = Type::STORAGE_BUFFER;

#[test]
fn a_layout_may_go_before_its_sets_but_then_they_are_not_updated() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let pool = fixture.pool(1, &[(STORAGE, 1)]);
    let set = fixture.set(pool, layout).unwrap();
    fixture.destroy_layout(layout);
    fixture.expect_silence();
    let buffer = fixture.buffer();
    fixture.write_buffer(set, (0, 0), STORAGE, buffer);
    fixture.expect("VUID-VkWriteDescriptorSet-dstSet-00320");
    fixture.refuses("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter", fixture.set(pool, layout));
}

#[test]
fn sets_are_freed_only_where_the_pool_lets_them() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
    let (plain, free, other) = (
        fixture.pool(2, &[(STORAGE, 2)]),
        fixture.pool_with(2, &[(STORAGE, 2)], flags),
        fixture.pool_with(2, &[(STORAGE, 2)], flags),
    );
    let (in_plain, in_free) = (fixture.set(plain, layout).unwrap(), fixture.set(free, layout).unwrap());
    fixture.refuses("VUID-vkFreeDescriptorSets-descriptorPool-00312", fixture.free(plain, in_plain));
    fixture.refuses("VUID-vkFreeDescriptorSets-pDescriptorSets-parent", fixture.free(other, in_free));
    fixture.refuses("VUID-vkFreeDescriptorSets-descriptorPool-parameter", fixture.free(foreign(), in_free));
    // One that is wrong keeps the others.
    let twice = [in_free, in_free];
    assert_eq!(unsafe { fixture.device().free_descriptor_sets(free, &twice) }, Err(WRONG));
    fixture.expect("VUID-vkFreeDescriptorSets-pDescriptorSets-00310");
    assert_eq!(unsafe { fixture.device().free_descriptor_sets(free, &[in_free, in_plain]) }, Err(WRONG));
    fixture.expect("VUID-vkFreeDescriptorSets-pDescriptorSets-parent");
    fixture.free(free, in_free).unwrap();
    for set in [in_free, foreign()] {
        fixture.refuses("VUID-vkFreeDescriptorSets-pDescriptorSets-00310", fixture.free(free, set));
    }
    fixture.reset(free).unwrap();
    let again = fixture.set(free, layout).unwrap();
    fixture.destroy_pool(free);
    fixture.write_buffer(again, (0, 0), STORAGE, foreign());
    fixture.expect("VUID-VkWriteDescriptorSet-dstSet-00320");
}

#[test]
fn pools_that_contradict_themselves() {
    let fixture = strict();
    let none = vk::DescriptorPoolCreateFlags::empty();
    let host_only = vk::DescriptorPoolCreateFlags::HOST_ONLY_EXT;
    for (max_sets, size, flags, rule) in [
        (0, (STORAGE, 1), none, "VUID-VkDescriptorPoolCreateInfo-descriptorPoolOverallocation-09227"),
        (1, (STORAGE, 0), none, "VUID-VkDescriptorPoolSize-descriptorCount-00302"),
        (1, (Type::INLINE_UNIFORM_BLOCK, 6), none, "VUID-VkDescriptorPoolSize-type-02218"),
        (
            1,
            (STORAGE, 1),
            host_only | vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
            "VUID-VkDescriptorPoolCreateInfo-flags-04607",
        ),
        (
            1,
            (STORAGE, 1),
            vk::DescriptorPoolCreateFlags::ALLOW_OVERALLOCATION_SETS_NV,
            "VUID-VkDescriptorPoolCreateInfo-flags-09228",
        ),
    ] {
        let sizes = fixture::pool_sizes(&[size]);
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(max_sets).pool_sizes(&sizes).flags(flags);
        assert_eq!(fixture.try_pool(&info), Err(WRONG));
        fixture.expect(rule);
    }
    let (one, other) = ([STORAGE, Type::UNIFORM_BUFFER], [STORAGE]);
    let lists =
        [&one[..], &other].map(|types| vk::MutableDescriptorTypeListEXT::default().descriptor_types(types));
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    let sizes = fixture::pool_sizes(&[(Type::MUTABLE_EXT, 1), (Type::MUTABLE_EXT, 1)]);
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    assert_eq!(fixture.try_pool(&info.push_next(&mut mutable)), Err(WRONG));
    fixture.expect("VUID-VkDescriptorPoolCreateInfo-pPoolSizes-04787");
    let old = DescriptorFixture::new(Gpu::builder(profile("lavapipe")));
    for (size, flags, rule) in [
        ((Type::MUTABLE_EXT, 1), none, "VUID-VkDescriptorPoolCreateInfo-mutableDescriptorType-04608"),
        ((STORAGE, 1), host_only, "VUID-VkDescriptorPoolCreateInfo-flags-04609"),
    ] {
        let sizes = fixture::pool_sizes(&[size]);
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes).flags(flags);
        assert_eq!(old.try_pool(&info), Err(WRONG));
        old.expect(rule);
    }
}

#[test]
fn sets_that_a_pool_cannot_hold() {
    let fixture = strict();
    let after = fixture.flagged(&[at(0, STORAGE)], &[vk::DescriptorBindingFlags::UPDATE_AFTER_BIND]);
    let flags = vk::DescriptorSetLayoutCreateFlags::HOST_ONLY_POOL_EXT;
    let host_only = fixture.try_layout(&vk::DescriptorSetLayoutCreateInfo::default().flags(flags)).unwrap();
    let plain = fixture.layout(&[many(0, STORAGE, 4)]);
    let pool = fixture.pool(4, &[(STORAGE, 9)]);
    for (pool, layout, rule) in [
        (pool, after, "VUID-VkDescriptorSetAllocateInfo-pSetLayouts-03044"),
        (pool, host_only, "VUID-VkDescriptorSetAllocateInfo-pSetLayouts-04610"),
        (pool, foreign(), "VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter"),
        (foreign(), plain, "VUID-VkDescriptorSetAllocateInfo-descriptorPool-parameter"),
    ] {
        assert_eq!(fixture.set(pool, layout), Err(WRONG));
        fixture.expect(rule);
    }
    assert_eq!(fixture.sets(pool, &[]), Err(WRONG));
    fixture.expect("VUID-VkDescriptorSetAllocateInfo-descriptorSetCount-arraylength");
    let flag = vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT;
    let variable = fixture.flagged(&[many(0, STORAGE, 4)], &[flag]);
    assert_eq!(fixture.variable(pool, variable, 5), Err(WRONG));
    fixture.expect("VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-pSetLayouts-03046");
    // A count for a layout without a variable binding means nothing.
    fixture.variable(pool, plain, 5).unwrap();
    fixture.expect_silence();
    let (layouts, counts) = ([variable; 2], [1]);
    let mut counts =
        vk::DescriptorSetVariableDescriptorCountAllocateInfo::default().descriptor_counts(&counts);
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    let made = unsafe { fixture.device().allocate_descriptor_sets(&info.push_next(&mut counts)) };
    fixture.refuses("VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-descriptorSetCount-03045", made);
}

#[test]
fn a_set_for_the_host_is_copied_from_and_not_bound() {
    let fixture = strict();
    let flags = vk::DescriptorSetLayoutCreateFlags::HOST_ONLY_POOL_EXT;
    let bindings = [at(0, STORAGE)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(&bindings);
    let layout = fixture.try_layout(&info).unwrap();
    let pipeline = fixture.pipeline_layout(&[layout]);
    let pool = fixture.pool_with(1, &[(STORAGE, 1)], vk::DescriptorPoolCreateFlags::HOST_ONLY_EXT);
    let set = fixture.set(pool, layout).unwrap();
    fixture.begin();
    fixture.bind(pipeline, 0, &[set]);
    fixture.end();
    fixture.expect("VUID-vkCmdBindDescriptorSets-pDescriptorSets-04616");
}

#[test]
fn everything_is_counted_and_what_is_left_behind_is_reported() {
    let gpu = Gpu::new(profile("nvidia-h200"));
    let device = gpu.device();
    let bindings = [at(0, Type::SAMPLER)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    let layout = [unsafe { device.create_descriptor_set_layout(&info, None) }.unwrap()];
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layout);
    unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
    unsafe { device.create_sampler(&vk::SamplerCreateInfo::default(), None) }.unwrap();
    let sizes = fixture::pool_sizes(&[(Type::SAMPLER, 3)]);
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(3).pool_sizes(&sizes);
    let pool = unsafe { device.create_descriptor_pool(&info, None) }.unwrap();
    let layouts = layout.repeat(2);
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    unsafe { device.allocate_descriptor_sets(&info) }.unwrap();
    let entries = [vk::DescriptorUpdateTemplateEntry::default().descriptor_count(1)];
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET)
        .descriptor_set_layout(layout[0]);
    unsafe { device.create_descriptor_update_template(&info, None) }.unwrap();
    let live = gpu.live();
    assert_eq!((live.descriptor_pools, live.descriptor_sets, live.descriptor_set_layouts), (1, 2, 1));
    assert_eq!((live.descriptor_update_templates, live.samplers, live.pipeline_layouts), (1, 1, 1));
    assert!(!live.is_empty());
    let messages = gpu.finish();
    assert!(messages.iter().all(|message| message.vuid == "VUID-vkDestroyDevice-device-05137"));
    let texts: Vec<_> = messages.iter().map(|message| message.text.as_str()).collect();
    for name in ["POOL", "with 2 sets", "SET_LAYOUT", "PIPELINE_LAYOUT", "SAMPLER", "UPDATE_TEMPLATE"] {
        assert!(texts.iter().any(|text| text.contains(name)), "{name} in {texts:?}");
    }
    assert_eq!(texts.len(), 5);
}

#[test]
fn stale_and_foreign_handles_are_reported_and_null_is_nothing() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let pool = fixture.pool(1, &[(STORAGE, 1)]);
    fixture.destroy_pool(pool);
    fixture.destroy_layout(layout);
    fixture.expect_silence();
    unsafe { fixture.device().destroy_descriptor_pool(pool, None) };
    fixture.expect("VUID-vkDestroyDescriptorPool-descriptorPool-parameter");
    fixture.refuses("VUID-vkResetDescriptorPool-descriptorPool-parameter", fixture.reset(pool));
    unsafe { fixture.device().destroy_descriptor_set_layout(layout, None) };
    fixture.expect("VUID-vkDestroyDescriptorSetLayout-descriptorSetLayout-parameter");
    unsafe { fixture.device().destroy_pipeline_layout(foreign(), None) };
    fixture.expect("VUID-vkDestroyPipelineLayout-pipelineLayout-parameter");
    unsafe { fixture.device().destroy_sampler(foreign(), None) };
    fixture.expect("VUID-vkDestroySampler-sampler-parameter");
    unsafe { fixture.device().destroy_descriptor_update_template(foreign(), None) };
    fixture.expect("VUID-vkDestroyDescriptorUpdateTemplate-descriptorUpdateTemplate-parameter");
    unsafe { fixture.device().destroy_descriptor_pool(vk::DescriptorPool::null(), None) };
    unsafe { fixture.device().destroy_descriptor_set_layout(vk::DescriptorSetLayout::null(), None) };
    unsafe { fixture.device().destroy_pipeline_layout(vk::PipelineLayout::null(), None) };
    unsafe { fixture.device().destroy_sampler(vk::Sampler::null(), None) };
    unsafe {
        fixture.device().destroy_descriptor_update_template(vk::DescriptorUpdateTemplate::null(), None)
    };
    fixture.expect_silence();
}

unsafe extern "system" fn allocation(
    count: *mut c_void,
    size: usize,
    _: usize,
    _: vk::SystemAllocationScope,
) -> *mut c_void {
    unsafe { *count.cast::<i32>() += 1 };
    let bytes = vec![0_u128; size.div_ceil(16)].into_boxed_slice();
    Box::into_raw(bytes).cast()
}

unsafe extern "system" fn free(count: *mut c_void, bytes: *mut c_void) {
    unsafe { *count.cast::<i32>() -= 1 };
    // As large as the driver asks for, always.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes.cast::<u128>(), 4)) });
}

#[test]
fn host_memory_of_descriptor_objects_comes_from_the_callbacks() {
    let fixture = strict();
    let mut count = 0_i32;
    let callbacks = vk::AllocationCallbacks {
        p_user_data: (&raw mut count).cast(),
        pfn_allocation: Some(allocation),
        pfn_free: Some(free),
        ..Default::default()
    };
    let some = Some(&callbacks);
    let device = fixture.device();
    let sizes = fixture::pool_sizes(&[(STORAGE, 1)]);
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    let pool = unsafe { device.create_descriptor_pool(&info, some) }.unwrap();
    let info = vk::DescriptorSetLayoutCreateInfo::default();
    let layout = unsafe { device.create_descriptor_set_layout(&info, some) }.unwrap();
    let info = vk::PipelineLayoutCreateInfo::default();
    let pipeline = unsafe { device.create_pipeline_layout(&info, some) }.unwrap();
    let sampler = unsafe { device.create_sampler(&vk::SamplerCreateInfo::default(), some) }.unwrap();
    assert_eq!(unsafe { (&raw const count).read_volatile() }, 4);
    unsafe { device.destroy_descriptor_pool(pool, some) };
    unsafe { device.destroy_descriptor_set_layout(layout, some) };
    unsafe { device.destroy_pipeline_layout(pipeline, some) };
    unsafe { device.destroy_sampler(sampler, some) };
    assert_eq!(unsafe { (&raw const count).read_volatile() }, 0);
    fixture.expect_silence();
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    let pool = unsafe { device.create_descriptor_pool(&info, None) }.unwrap();
    unsafe { device.destroy_descriptor_pool(pool, some) };
    fixture.expect("VUID-vkDestroyDescriptorPool-descriptorPool-00305");
}
