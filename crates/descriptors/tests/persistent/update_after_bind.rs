//! The device's limit for update-after-bind descriptors.

use ash::vk;
use sublet::sim::{DescriptorPoolPolicy, Gpu, profiles::Profile};
use sublet_descriptors::{AllocateDescriptorSetError, DescriptorKind, SetLayout};

use crate::common::{Fixture, Held, POLICIES, allocate, builder, free};

fn fixture(policy: DescriptorPoolPolicy, limit: u32) -> Held<Fixture> {
    let mut limits = Profile::by_name("nvidia-h200").unwrap().limits.descriptors;
    limits.max_update_after_bind_descriptors_in_all_pools = limit;
    Fixture::of(builder().descriptor_pools(policy).descriptor_limits(limits), None)
}

fn table(fixture: &Fixture, count: u32) -> SetLayout {
    fixture.layout_with(
        &[(DescriptorKind::SampledImage, count)],
        vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL,
        vk::DescriptorBindingFlags::UPDATE_AFTER_BIND,
    )
}

fn refused(error: AllocateDescriptorSetError) -> (u64, u64) {
    let AllocateDescriptorSetError::UpdateAfterBindLimit { needed, left, source } = error else {
        panic!("{error:?}");
    };
    assert_eq!(source.result, vk::Result::ERROR_FRAGMENTATION);
    (needed, left)
}

#[test]
fn the_limit_is_kept_to_and_told_and_given_back_with_the_pool() {
    for policy in [DescriptorPoolPolicy::Strict, DescriptorPoolPolicy::CountsSets] {
        let fixture = fixture(policy, 1000);
        let layout = table(&fixture, 100);
        let sets = fixture.sets();
        let mut live: Vec<_> = (0..10).map(|_| allocate(&sets, &layout)).collect();
        assert_eq!(fixture.device.update_after_bind_used(), 1000);
        assert_eq!(refused(unsafe { sets.allocate(&layout) }.unwrap_err()), (100, 0));
        sets.validate();
        free(&sets, live.remove(3));
        live.push(allocate(&sets, &layout));
        live.into_iter().for_each(|set| free(&sets, set));
        sets.trim();
        assert_eq!(fixture.device.update_after_bind_used(), 0);
    }
}

#[test]
fn near_the_limit_pools_are_small_and_idle_ones_make_way() {
    for policy in POLICIES {
        let fixture = fixture(policy, 1000);
        let [small, large] = [table(&fixture, 10), table(&fixture, 600)];
        let sets = fixture.sets();
        let one = allocate(&sets, &small);
        assert_eq!(fixture.device.update_after_bind_used(), 160);
        let big = allocate(&sets, &large);
        assert_eq!(fixture.device.update_after_bind_used(), 760, "a pool of one set: more do not fit");
        if policy != DescriptorPoolPolicy::NeverRefuses {
            assert_eq!(refused(unsafe { sets.allocate(&large) }.unwrap_err()), (600, 240));
        }
        free(&sets, big);
        // Another layout needs 600 more, and the idle pool occupies the limit.
        let other = fixture.layout_with(
            &[(DescriptorKind::StorageImage, 600)],
            vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL,
            vk::DescriptorBindingFlags::UPDATE_AFTER_BIND,
        );
        let big = allocate(&sets, &other);
        assert_eq!(fixture.device.update_after_bind_used(), 760, "{policy:?}");
        free(&sets, big);
        free(&sets, one);
    }
}

/// "Descriptor pool creation may fail" above the limit (`VkDescriptorPoolCreateInfo`): in Mesa it succeeds.
#[test]
fn past_the_limit_the_driver_is_asked() {
    let fixture = fixture(DescriptorPoolPolicy::NeverRefuses, 1000);
    let layout = table(&fixture, 100);
    let (one, other) = (fixture.sets(), fixture.sets());
    let mut live: Vec<_> = (0..10).map(|_| allocate(&one, &layout)).collect();
    assert_eq!(fixture.device.update_after_bind_used(), 1000, "it is kept as long as it can be");
    live.extend((0..200).map(|_| allocate(&one, &layout)));
    assert!(one.statistics().pools < 30, "{:?}", one.statistics());
    let set = allocate(&other, &layout);
    free(&other, set);
    live.into_iter().for_each(|set| free(&one, set));
}

/// wgpu 9078: the bytes of an inline uniform block were counted as descriptors. With this GPU's limit of 1,048,576,
/// only 2,048 sets of two blocks of 256 bytes were possible.
#[test]
fn bytes_of_inline_uniform_blocks_do_not_count() {
    let fixture = Fixture::of(Gpu::builder(Profile::by_name("intel-arc-a770").unwrap()), None);
    let blocks = fixture.layout_with(
        &[(DescriptorKind::InlineUniformBlock, 256); 2],
        vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL,
        vk::DescriptorBindingFlags::empty(),
    );
    let sets = fixture.sets();
    let live: Vec<_> = (0..4096).map(|_| unsafe { sets.allocate(&blocks) }.unwrap()).collect();
    let used = fixture.device.update_after_bind_used();
    assert!((2 * 4096..3 * 4096).contains(&used), "{used}");
    live.into_iter().for_each(|set| unsafe { sets.free(set) }.unwrap());
    sets.validate();
}

#[test]
fn allocators_of_one_device_share_the_limit() {
    let fixture = fixture(DescriptorPoolPolicy::Strict, 1000);
    let layout = table(&fixture, 1000);
    let (one, other) = (fixture.sets(), fixture.sets());
    let set = allocate(&one, &layout);
    assert_eq!(refused(unsafe { other.allocate(&layout) }.unwrap_err()), (1000, 0));
    free(&one, set);
    one.trim();
    let set = allocate(&other, &layout);
    free(&other, set);
}

#[test]
fn sets_with_and_without_update_after_bind_are_of_different_pools() {
    let fixture = fixture(DescriptorPoolPolicy::Strict, 1 << 20);
    let sets = fixture.sets();
    let after = allocate(&sets, &table(&fixture, 4));
    let before = allocate(&sets, &fixture.layout(&[(DescriptorKind::SampledImage, 4)]));
    assert_eq!(sets.statistics().buckets, 2);
    assert_eq!(fixture.device.update_after_bind_used(), 64);
    for set in [after, before] {
        free(&sets, set);
    }
}
