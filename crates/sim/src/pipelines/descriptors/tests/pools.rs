//! When pools are full, and what they give back.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

fn fixture(policy: DescriptorPoolPolicy) -> DescriptorFixture {
    DescriptorFixture::new(Gpu::builder(profile("nvidia-h200")).descriptor_pools(policy))
}

#[test]
fn a_strict_pool_ends_with_its_sets() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
    let pool = fixture.pool(4, &[(Type::UNIFORM_BUFFER, 100)]);
    assert_eq!(fixture.sets(pool, &[layout; 4]).unwrap().len(), 4);
    assert_eq!(fixture.set(pool, layout), Err(FULL));
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 0);
    fixture.reset(pool).unwrap();
    assert_eq!(fixture.sets(pool, &[layout; 4]).unwrap().len(), 4);
}

#[test]
fn a_strict_pool_ends_with_the_descriptors_of_any_type() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER), many(1, Type::STORAGE_BUFFER, 3)]);
    let pool = fixture.pool(100, &[(Type::UNIFORM_BUFFER, 100), (Type::STORAGE_BUFFER, 8)]);
    assert!(fixture.sets(pool, &[layout; 2]).is_ok());
    assert_eq!(fixture.set(pool, layout), Err(FULL));
    // Sizes of one type are one.
    let pool =
        fixture.pool(100, &[(Type::STORAGE_BUFFER, 2), (Type::UNIFORM_BUFFER, 9), (Type::STORAGE_BUFFER, 4)]);
    assert!(fixture.sets(pool, &[layout; 2]).is_ok());
    assert_eq!(fixture.set(pool, layout), Err(FULL));
    // A type that the pool was not made for.
    let pool = fixture.pool(100, &[(Type::STORAGE_BUFFER, 8)]);
    assert_eq!(fixture.set(pool, layout), Err(FULL));
}

#[test]
fn a_pool_that_counts_sets_takes_any_descriptors() {
    let fixture = fixture(DescriptorPoolPolicy::CountsSets);
    let layout = fixture.layout(&[many(0, Type::UNIFORM_BUFFER, 5)]);
    let pool = fixture.pool(8, &[(Type::STORAGE_BUFFER, 8)]);
    assert!(fixture.sets(pool, &[layout; 8]).is_ok());
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 40);
    assert_eq!(fixture.set(pool, layout), Err(FULL));
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 40);
}

#[test]
fn a_pool_that_never_refuses_counts_what_it_should_have_refused() {
    let fixture = fixture(DescriptorPoolPolicy::NeverRefuses);
    let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
    let pool = fixture.pool(4, &[(Type::UNIFORM_BUFFER, 4)]);
    for _ in 0..4 {
        fixture.set(pool, layout).unwrap();
    }
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 0);
    for _ in 0..5000 {
        fixture.set(pool, layout).unwrap();
    }
    // A set and a descriptor each.
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 10_000);
    fixture.reset(pool).unwrap();
    fixture.sets(pool, &[layout; 4]).unwrap();
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 10_000);
}

#[test]
fn what_went_past_a_pool_is_not_given_back_twice() {
    let fixture = fixture(DescriptorPoolPolicy::CountsSets);
    let layout = fixture.layout(&[many(0, Type::UNIFORM_BUFFER, 3)]);
    let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
    let pool = fixture.pool_with(10, &[(Type::UNIFORM_BUFFER, 4)], flags);
    let (first, second) = (fixture.set(pool, layout).unwrap(), fixture.set(pool, layout).unwrap());
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 2);
    // The second had one of the pool's.
    fixture.free(pool, second).unwrap();
    fixture.set(pool, layout).unwrap();
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 4);
    fixture.free(pool, first).unwrap();
    fixture.set(pool, layout).unwrap();
    assert_eq!(fixture.gpu.descriptor_pool_overruns(), 4);
}

#[test]
fn sets_that_are_freed_make_room_again() {
    let fixture = strict();
    let layout = fixture.layout(&[many(0, Type::SAMPLED_IMAGE, 2)]);
    let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
    let pool = fixture.pool_with(2, &[(Type::SAMPLED_IMAGE, 4)], flags);
    let sets = fixture.sets(pool, &[layout; 2]).unwrap();
    assert_eq!(fixture.set(pool, layout), Err(FULL));
    fixture.free(pool, sets[0]).unwrap();
    fixture.free(pool, fixture::null_set()).unwrap();
    let again = fixture.set(pool, layout).unwrap();
    assert!(!sets.contains(&again));
    assert_eq!(fixture.gpu.live().descriptor_sets, 2);
}

#[test]
fn a_call_for_many_sets_that_fails_allocates_none() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
    let pool = fixture.pool(3, &[(Type::UNIFORM_BUFFER, 3)]);
    let layouts = [layout; 4];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    let mut out = [fixture::foreign::<vk::DescriptorSet>(); 4];
    let allocate = fixture.device().fp_v1_0().allocate_descriptor_sets;
    let result = unsafe { allocate(fixture.device().handle(), &raw const info, out.as_mut_ptr()) };
    assert_eq!((result, out), (FULL, [vk::DescriptorSet::null(); 4]));
    assert_eq!(fixture.gpu.live().descriptor_sets, 0);
    assert!(fixture.sets(pool, &[layout; 3]).is_ok());
}

#[test]
fn inline_uniform_blocks_take_bytes_and_bindings() {
    let fixture = strict();
    let layout =
        fixture.layout(&[many(0, Type::INLINE_UNIFORM_BLOCK, 16), many(1, Type::INLINE_UNIFORM_BLOCK, 4)]);
    let pool = |bytes, bindings| {
        let sizes = fixture::pool_sizes(&[(Type::INLINE_UNIFORM_BLOCK, bytes)]);
        let mut inline = vk::DescriptorPoolInlineUniformBlockCreateInfo::default()
            .max_inline_uniform_block_bindings(bindings);
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(100).pool_sizes(&sizes);
        fixture.try_pool(&info.push_next(&mut inline)).unwrap()
    };
    let (few_bytes, few_bindings) = (pool(44, 100), pool(400, 5));
    for pool in [few_bytes, few_bindings] {
        assert!(fixture.sets(pool, &[layout; 2]).is_ok());
        assert_eq!(fixture.set(pool, layout), Err(FULL));
    }
    // Without the structure there are no bindings.
    let none = fixture.pool(100, &[(Type::INLINE_UNIFORM_BLOCK, 400)]);
    assert_eq!(fixture.set(none, layout), Err(FULL));
}

#[test]
fn a_variable_count_takes_what_was_asked_for_and_not_the_most() {
    let fixture = strict();
    let flags = vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT;
    let bindings = [at(0, Type::SAMPLER), many(1, Type::SAMPLED_IMAGE, 1000)];
    let layout = fixture.flagged(&bindings, &[vk::DescriptorBindingFlags::empty(), flags]);
    let pool = fixture.pool(10, &[(Type::SAMPLER, 10), (Type::SAMPLED_IMAGE, 12)]);
    fixture.variable(pool, layout, 7).unwrap();
    assert_eq!(fixture.variable(pool, layout, 6), Err(FULL));
    fixture.variable(pool, layout, 5).unwrap();
    // Without counts there are none of them.
    fixture.set(pool, layout).unwrap();
    fixture.expect_silence();
}

#[test]
fn mutable_descriptors_come_from_sizes_whose_lists_have_their_types() {
    let fixture = strict();
    let layout = |fixture: &DescriptorFixture, types: &[Type]| {
        let lists = [vk::MutableDescriptorTypeListEXT::default().descriptor_types(types)];
        let mut mutable =
            vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
        let bindings = [many(0, Type::MUTABLE_EXT, 2)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut mutable);
        fixture.try_layout(&info).unwrap()
    };
    let buffers = layout(&fixture, &[Type::STORAGE_BUFFER, Type::UNIFORM_BUFFER]);
    let images = layout(&fixture, &[Type::SAMPLED_IMAGE]);
    let types = [Type::STORAGE_BUFFER, Type::UNIFORM_BUFFER, Type::UNIFORM_TEXEL_BUFFER];
    let lists = [vk::MutableDescriptorTypeListEXT::default().descriptor_types(&types)];
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    let sizes = fixture::pool_sizes(&[(Type::MUTABLE_EXT, 4)]);
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(10).pool_sizes(&sizes);
    let listed = fixture.try_pool(&info.push_next(&mut mutable)).unwrap();
    assert_eq!(fixture.set(listed, images), Err(FULL));
    assert!(fixture.sets(listed, &[buffers; 2]).is_ok());
    assert_eq!(fixture.set(listed, buffers), Err(FULL));
    // Without lists, of every type.
    let any = fixture.pool(10, &[(Type::MUTABLE_EXT, 4)]);
    assert!(fixture.sets(any, &[buffers, images]).is_ok());
    assert_eq!(fixture.set(any, images), Err(FULL));
}

#[test]
fn each_profile_refuses_as_its_driver_does() {
    for &profile in ALL {
        let fixture = DescriptorFixture::new(Gpu::builder(profile));
        let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
        let few_sets = fixture.pool(1, &[(Type::UNIFORM_BUFFER, 9)]);
        let few_descriptors = fixture.pool(9, &[(Type::UNIFORM_BUFFER, 1)]);
        let all = |pool| (0..2).all(|_| fixture.set(pool, layout).is_ok());
        let expected = match profile.descriptor_pools {
            DescriptorPoolPolicy::Strict => (false, false),
            DescriptorPoolPolicy::CountsSets => (false, true),
            DescriptorPoolPolicy::NeverRefuses => (true, true),
        };
        assert_eq!((all(few_sets), all(few_descriptors)), expected, "{}", profile.name);
        // There is no result for it before VK_KHR_maintenance1.
        let old = vk::api_version_minor(profile.api_version) == 0;
        assert_eq!(fixture.reports().len(), if old { 2 } else { 0 }, "{}", profile.name);
    }
}

#[test]
fn without_maintenance1_asking_for_too_much_is_an_error_of_the_program() {
    let builder = Gpu::builder(profile("nvidia-h200"))
        .api_version(vk::API_VERSION_1_0)
        .descriptor_pools(DescriptorPoolPolicy::Strict)
        .extension("VK_KHR_bind_memory2");
    let fixture = DescriptorFixture::new(builder);
    let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
    let few_sets = fixture.pool(1, &[(Type::UNIFORM_BUFFER, 9)]);
    let few_descriptors = fixture.pool(9, &[(Type::UNIFORM_BUFFER, 1)]);
    for (pool, rule) in [
        (few_sets, "VUID-VkDescriptorSetAllocateInfo-apiVersion-07895"),
        (few_descriptors, "VUID-VkDescriptorSetAllocateInfo-apiVersion-07896"),
    ] {
        fixture.set(pool, layout).unwrap();
        fixture.refuses(rule, fixture.set(pool, layout));
    }
}

#[test]
fn any_call_can_be_made_to_fail_with_any_result() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
    let pool = fixture.pool(8, &[(Type::UNIFORM_BUFFER, 8)]);
    for result in [vk::Result::ERROR_FRAGMENTED_POOL, FULL, vk::Result::ERROR_OUT_OF_HOST_MEMORY] {
        fixture.gpu.faults().fail_nth("vkAllocateDescriptorSets", 1, result);
        fixture.set(pool, layout).unwrap();
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        let mut out = fixture::foreign::<vk::DescriptorSet>();
        let allocate = fixture.device().fp_v1_0().allocate_descriptor_sets;
        let answer = unsafe { allocate(fixture.device().handle(), &raw const info, &raw mut out) };
        assert_eq!((answer, out), (result, vk::DescriptorSet::null()));
    }
    assert_eq!(fixture.gpu.live().descriptor_sets, 3);
}

#[test]
fn pools_that_update_after_bind_share_one_limit() {
    let mut limits = profile("nvidia-h200").limits.descriptors;
    limits.max_update_after_bind_descriptors_in_all_pools = 10;
    let flags = vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND;
    let builder = Gpu::builder(profile("nvidia-h200")).descriptor_limits(limits);
    let fixture = DescriptorFixture::new(builder.clone().descriptor_pools(DescriptorPoolPolicy::Strict));
    let first = fixture.pool_with(1, &[(Type::UNIFORM_BUFFER, 4), (Type::SAMPLER, 3)], flags);
    let sizes = fixture::pool_sizes(&[(Type::STORAGE_IMAGE, 4)]);
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes).flags(flags);
    assert_eq!(fixture.try_pool(&info), Err(vk::Result::ERROR_FRAGMENTATION));
    // Others do not count.
    fixture.pool(1, &[(Type::STORAGE_IMAGE, 1000)]);
    fixture.destroy_pool(first);
    fixture.try_pool(&info).unwrap();
    // An inline uniform block is one descriptor, whatever its bytes.
    let sizes = fixture::pool_sizes(&[(Type::INLINE_UNIFORM_BLOCK, 1024)]);
    for (bindings, expected) in [(6, true), (1, false)] {
        let mut inline = vk::DescriptorPoolInlineUniformBlockCreateInfo::default()
            .max_inline_uniform_block_bindings(bindings);
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes).flags(flags);
        assert_eq!(fixture.try_pool(&info.push_next(&mut inline)).is_ok(), expected, "{bindings}");
    }
    let lenient = DescriptorFixture::new(builder.descriptor_pools(DescriptorPoolPolicy::NeverRefuses));
    lenient.pool_with(1, &[(Type::UNIFORM_BUFFER, 13)], flags);
    assert_eq!(lenient.gpu.descriptor_pool_overruns(), 0, "a program may ask");
}
