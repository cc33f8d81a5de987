//! Layouts of all kinds: the space that each uses, and the pools that it needs.

use ash::vk;
use sublet::sim::DescriptorPoolPolicy;
use sublet_descriptors::{
    CreateDescriptorPoolError, DescriptorCounts, DescriptorDevice, DescriptorDeviceCreateInfo,
    DescriptorFeatures, DescriptorKind, PoolSizing, SetLayout, TransientError, TransientSets,
    TransientSetsCreateInfo,
};

use crate::fixture::*;

type LayoutFlags = vk::DescriptorSetLayoutCreateFlags;
const INLINE: vk::DescriptorType = vk::DescriptorType::INLINE_UNIFORM_BLOCK;

/// A layout whose last binding has a variable count of at most `most` images.
fn variable_layout(fixture: &mut Fixture, most: u32) -> SetLayout {
    let bindings = bindings(&[(UNIFORM, 1), (IMAGE, most)]);
    let flags = [vk::DescriptorBindingFlags::empty(), vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT];
    let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    fixture.layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut flags))
}

fn allocate_variable(
    sets: &mut TransientSets,
    layout: &SetLayout,
    count: u32,
) -> Result<vk::DescriptorSet, TransientError> {
    unsafe { sets.allocate_variable(layout, count) }
}

#[test]
fn a_variable_count_takes_what_is_asked_and_not_the_maximum() {
    for policy in POLICIES {
        let mut fixture = Fixture::with_policy(policy);
        let layout = variable_layout(&mut fixture, 1000);
        let mut sets = fixture.sets(&fixed(64, &[size(UNIFORM, 64), size(IMAGE, 1000)]));
        for _ in 0..50 {
            allocate_variable(&mut sets, &layout, 20).unwrap();
        }
        assert_eq!(sets.statistics().sealed, 0, "{policy:?}");
        allocate_variable(&mut sets, &layout, 1).unwrap();
        assert_eq!(sets.statistics().free_pools, 0, "the second pool is open");
        let error = TransientError::VariableCount { count: 1001, max: 1000 };
        assert_eq!(allocate_variable(&mut sets, &layout, 1001), Err(error));
        let pools = sets.statistics().pools;
        allocate(&mut sets, &layout).unwrap();
        assert_eq!(sets.statistics().pools, pools + 1, "without a count it is the maximum");
        allocate_variable(&mut sets, &layout, 0).unwrap();
    }
}

#[test]
fn inline_uniform_blocks_are_counted_in_bytes_and_in_bindings() {
    for policy in POLICIES {
        let mut fixture = Fixture::with_policy(policy);
        let layout = fixture.layout(&[(INLINE, 64), (INLINE, 32)]);
        let small = fixture.layout(&[(INLINE, 4)]);
        let info = TransientSetsCreateInfo {
            counts: DescriptorCounts::new()
                .with(DescriptorKind::InlineUniformBlock, 96 * 5)
                .with_inline_uniform_bindings(20),
            sizing: PoolSizing::Fixed,
            ..Default::default()
        };
        let mut sets = fixture.sets(&info);
        // The bytes run out first,
        many(&mut sets, &layout, 6);
        assert_eq!(sets.statistics().free_pools, 0);
        fixture.drop_recording(&mut sets);
        sets.collect(&fixture.clock).unwrap();
        // and here the bindings do.
        many(&mut sets, &small, 20);
        assert_eq!(sets.statistics().free_pools, 1);
        allocate(&mut sets, &small).unwrap();
        assert_eq!(sets.statistics().free_pools, 0);
        drop(sets);
        // Here the pool sizes are learned from the layouts alone.
        let mut sets = fixture.sets(&TransientSetsCreateInfo::default());
        for at in 0..300 {
            allocate(&mut sets, if at % 3 == 0 { &layout } else { &small }).unwrap();
        }
    }
}

#[test]
fn a_layout_without_descriptors_has_sets() {
    let mut fixture = Fixture::with_policy(DescriptorPoolPolicy::Strict);
    let layout = fixture.layout(&[]);
    let mut sets = fixture.sets(&TransientSetsCreateInfo::default());
    many(&mut sets, &layout, 200);
}

#[test]
fn sets_that_are_updated_after_they_are_bound_have_pools_of_their_own() {
    let mut fixture = Fixture::with_policy(DescriptorPoolPolicy::Strict);
    let plain = fixture.layout(&[(UNIFORM, 1)]);
    let after_bind = fixture.layout_with(&[(UNIFORM, 1)], LayoutFlags::UPDATE_AFTER_BIND_POOL);
    let mut sets = fixture.sets(&TransientSetsCreateInfo::default());
    allocate(&mut sets, &plain).unwrap();
    assert_eq!(fixture.device.update_after_bind_used(), 0);
    allocate(&mut sets, &after_bind).unwrap();
    assert_eq!(fixture.device.update_after_bind_used(), 64);
    assert_eq!(sets.statistics().pools, 2);
    many(&mut sets, &plain, 63);
    many(&mut sets, &after_bind, 63);
    assert_eq!(sets.statistics().pools, 2, "each counts for itself");
    fixture.drop_recording(&mut sets);
    assert_eq!(sets.collect(&fixture.clock), Ok(2));
    drop(sets);
    // If all pools have `UPDATE_AFTER_BIND`, one pool serves both layouts.
    let info = TransientSetsCreateInfo {
        flags: vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
        ..Default::default()
    };
    let mut sets = fixture.sets(&info);
    allocate(&mut sets, &plain).unwrap();
    allocate(&mut sets, &after_bind).unwrap();
    assert_eq!(sets.statistics().pools, 1);
}

/// The pools stay within a limit of 100 descriptors as long as possible. Above it the driver is called, and one driver
/// refuses while another does not.
#[test]
fn the_devices_limit_for_update_after_bind_is_kept_until_the_driver_is_asked() {
    let limits = sublet::sim::profiles::DescriptorLimits {
        max_update_after_bind_descriptors_in_all_pools: 100,
        ..sublet::sim::profiles::Profile::by_name("nvidia-h200").unwrap().limits.descriptors
    };
    let fixture =
        |policy| Fixture::with(|builder| builder.descriptor_limits(limits).descriptor_pools(policy));
    let mut refusing = fixture(DescriptorPoolPolicy::Strict);
    let layout = refusing.layout_with(&[(UNIFORM, 1)], LayoutFlags::UPDATE_AFTER_BIND_POOL);
    let mut sets = refusing.sets(&TransientSetsCreateInfo::default());
    let mut got = 0;
    let error = loop {
        match allocate(&mut sets, &layout) {
            Ok(_) => got += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(got, 100, "smaller pools use up what is left");
    let TransientError::Pool {
        source: CreateDescriptorPoolError::UpdateAfterBindLimit { needed: 1, left: 0, source },
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(source.result, vk::Result::ERROR_FRAGMENTATION);
    let mut granting = fixture(DescriptorPoolPolicy::NeverRefuses);
    let layout = granting.layout_with(&[(UNIFORM, 1)], LayoutFlags::UPDATE_AFTER_BIND_POOL);
    let mut sets = granting.sets(&TransientSetsCreateInfo::default());
    many(&mut sets, &layout, 100);
    assert_eq!(granting.device.update_after_bind_used(), 100, "as long as it can be kept, it is");
    many(&mut sets, &layout, 1000);
    assert!(sets.statistics().pools < 60, "{:?}", sets.statistics());
}

#[test]
fn layouts_that_have_no_sets_are_refused_before_any_vulkan_call() {
    let fixture = Fixture::new();
    for flags in [
        LayoutFlags::PUSH_DESCRIPTOR_KHR,
        LayoutFlags::DESCRIPTOR_BUFFER_EXT,
        LayoutFlags::HOST_ONLY_POOL_EXT,
    ] {
        let bindings = bindings(&[(UNIFORM, 1)]);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        // SAFETY: the create-info is valid, and the layout is only inspected.
        let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
        let mut sets = fixture.sets(&TransientSetsCreateInfo::default());
        let calls = fixture.gpu.call_counts();
        assert_eq!(allocate(&mut sets, &layout), Err(TransientError::NoSetsOfLayout { flags }));
        assert_eq!(fixture.gpu.call_counts(), calls);
    }
}

#[test]
fn types_of_features_that_are_not_enabled_are_refused() {
    let fixture = Fixture::new();
    for (kind, feature) in [
        (INLINE, DescriptorFeatures::INLINE_UNIFORM_BLOCK),
        (vk::DescriptorType::MUTABLE_EXT, DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE),
    ] {
        let mut info = DescriptorDeviceCreateInfo::for_gpu(&fixture.gpu);
        info.features.remove(feature);
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let bindings = bindings(&[(kind, 16)]);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the create-info is valid, and the layout is only inspected.
        let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
        let mut sets = TransientSets::new(&device, &TransientSetsCreateInfo::default()).unwrap();
        let source = CreateDescriptorPoolError::Unsupported { missing: feature };
        assert_eq!(allocate(&mut sets, &layout), Err(TransientError::Pool { source }));
    }
}

/// Creates a layout with a binding of mutable descriptors.
fn mutable_layout(fixture: &mut Fixture, count: u32, types: &[vk::DescriptorType]) -> SetLayout {
    let bindings = bindings(&[(vk::DescriptorType::MUTABLE_EXT, count)]);
    let lists = [vk::MutableDescriptorTypeListEXT::default().descriptor_types(types)];
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    fixture
        .layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut mutable))
}

#[test]
fn mutable_descriptors_come_from_pools_that_take_the_types_of_all_layouts() {
    for mutable_types in [vec![], vec![UNIFORM, STORAGE, IMAGE]] {
        let mut fixture = Fixture::with(|builder| {
            builder.extension("VK_EXT_mutable_descriptor_type").descriptor_pools(DescriptorPoolPolicy::Strict)
        });
        let buffers = mutable_layout(&mut fixture, 3, &[UNIFORM, STORAGE]);
        let images = mutable_layout(&mut fixture, 2, &[IMAGE]);
        let info = TransientSetsCreateInfo { mutable_types: mutable_types.clone(), ..Default::default() };
        let mut sets = fixture.sets(&info);
        for _ in 0..100 {
            allocate(&mut sets, &buffers).unwrap();
            allocate(&mut sets, &images).unwrap();
        }
        let texels = mutable_layout(&mut fixture, 1, &[UNIFORM, vk::DescriptorType::STORAGE_TEXEL_BUFFER]);
        let got = allocate(&mut sets, &texels);
        let descriptor_type = vk::DescriptorType::STORAGE_TEXEL_BUFFER;
        match got {
            Ok(_) => assert!(mutable_types.is_empty()),
            Err(error) => assert_eq!(error, TransientError::MutableType { descriptor_type }),
        }
    }
}
