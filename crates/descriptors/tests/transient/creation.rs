//! Creation of transient sets.

use ash::vk;
use sublet::sim::{Gpu, profiles::Profile};
use sublet_descriptors::{
    CreateTransientSetsError, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorFeatures,
    DescriptorKind, LargeSets, PoolSizing, PoolTemplateError, TransientError, TransientSets,
    TransientSetsCreateInfo,
};

use crate::fixture::*;

#[test]
fn vulkan_1_1_or_maintenance1_is_needed() {
    let gpu = Gpu::builder(Profile::by_name("nvidia-h200").unwrap()).api_version(vk::API_VERSION_1_0).build();
    let all = DescriptorDeviceCreateInfo::for_gpu(&gpu);
    for has in [false, true] {
        let mut info = all.clone();
        info.features.set(DescriptorFeatures::MAINTENANCE1, has);
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let made = TransientSets::new(&device, &TransientSetsCreateInfo::default());
        if has {
            made.unwrap();
        } else {
            let missing = DescriptorFeatures::MAINTENANCE1;
            assert_eq!(made.unwrap_err(), CreateTransientSetsError::Unsupported { missing });
        }
    }
    assert_eq!(gpu.calls("vkCreateDescriptorPool"), 0);
}

fn template(info: &vk::DescriptorPoolCreateInfo<'_>) -> Result<TransientSetsCreateInfo, PoolTemplateError> {
    // SAFETY: in these tests create-infos are valid, except for the rejected values.
    unsafe { TransientSetsCreateInfo::from_create_info(info) }
}

#[test]
fn a_create_info_is_the_template_for_all_pools() {
    let mut fixture = Fixture::new();
    let sizes = [size(UNIFORM, 256), size(STORAGE, 100), size(STORAGE, 28)];
    let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
    let info =
        template(&vk::DescriptorPoolCreateInfo::default().max_sets(256).pool_sizes(&sizes).flags(flags));
    let info = info.unwrap();
    assert_eq!((info.sets_per_pool, info.flags), (256, flags));
    assert_eq!((info.sizing, info.large_sets, info.min_pools), (PoolSizing::Fixed, LargeSets::Refuse, 2));
    assert_eq!(info.counts.get(DescriptorKind::StorageBuffer), 128);
    let layout = fixture.layout(&[(STORAGE, 1)]);
    let mut sets = fixture.sets(&info);
    many(&mut sets, &layout, 128);
    assert_eq!(sets.statistics().free_pools, 1);
    allocate(&mut sets, &layout).unwrap();
    assert_eq!(sets.statistics().free_pools, 0);
}

#[test]
fn chains_that_are_known_are_read_and_others_are_refused() {
    let sizes =
        [size(vk::DescriptorType::INLINE_UNIFORM_BLOCK, 64), size(vk::DescriptorType::MUTABLE_EXT, 4)];
    let types = [UNIFORM, STORAGE];
    let lists = [
        vk::MutableDescriptorTypeListEXT::default(),
        vk::MutableDescriptorTypeListEXT::default().descriptor_types(&types),
    ];
    let mut inline =
        vk::DescriptorPoolInlineUniformBlockCreateInfo::default().max_inline_uniform_block_bindings(3);
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    let info = vk::DescriptorPoolCreateInfo::default()
        .max_sets(1)
        .pool_sizes(&sizes)
        .push_next(&mut inline)
        .push_next(&mut mutable);
    let read = template(&info).unwrap();
    assert_eq!(read.counts.inline_uniform_bindings(), 3);
    assert_eq!(read.mutable_types, types);

    let unknown = vk::MemoryDedicatedAllocateInfo::default();
    let mut info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    info.p_next = std::ptr::from_ref(&unknown).cast();
    let s_type = vk::StructureType::MEMORY_DEDICATED_ALLOCATE_INFO;
    assert_eq!(template(&info).unwrap_err(), PoolTemplateError::UnknownStructure { s_type });
}

#[test]
fn sets_and_sizes_are_not_zero_and_do_not_overflow() {
    let none = vk::DescriptorPoolCreateFlags::empty();
    let of = |sets, sizes: &[vk::DescriptorPoolSize]| {
        TransientSetsCreateInfo::from_sizes(sets, sizes, none).unwrap_err()
    };
    assert_eq!(of(0, &[size(UNIFORM, 1)]), PoolTemplateError::NoSets);
    assert_eq!(of(1, &[]), PoolTemplateError::NoSizes);
    assert_eq!(of(1, &[size(UNIFORM, 1), size(STORAGE, 0)]), PoolTemplateError::ZeroSize { index: 1 });
    let descriptor_type = vk::DescriptorType::BLOCK_MATCH_IMAGE_QCOM;
    let error = PoolTemplateError::UnknownType { index: 0, descriptor_type };
    assert_eq!(of(1, &[size(descriptor_type, 1)]), error);
    let many = [size(UNIFORM, u32::MAX), size(STORAGE, 1), size(UNIFORM, 1)];
    assert_eq!(of(1, &many), PoolTemplateError::TooMany { descriptor_type: UNIFORM });
    // C programs can pass a count without an array.
    let info = vk::DescriptorPoolCreateInfo { max_sets: 1, pool_size_count: 3, ..Default::default() };
    assert_eq!(template(&info).unwrap_err(), PoolTemplateError::NoSizes);

    let fixture = Fixture::new();
    for (sets_per_pool, max_sets_per_pool) in [(0, 1), (1, 0)] {
        let info = TransientSetsCreateInfo { sets_per_pool, max_sets_per_pool, ..Default::default() };
        assert_eq!(TransientSets::new(&fixture.device, &info).unwrap_err(), CreateTransientSetsError::NoSets);
    }
    // The numbers are absurd, and no pool is created.
    let most = 1 << 20;
    for min_pools in [usize::MAX, most + 1] {
        let info = TransientSetsCreateInfo { min_pools, ..fixed(4, &[size(UNIFORM, 4)]) };
        let error = CreateTransientSetsError::MinPools { min_pools, max_pools: most };
        assert_eq!(TransientSets::new(&fixture.device, &info).unwrap_err(), error);
    }
    assert_eq!(fixture.gpu.calls("vkCreateDescriptorPool"), 0);
    for (max_pools, most) in [(usize::MAX, most), (3, 3)] {
        let info = TransientSetsCreateInfo { max_pools, ..fixed(4, &[size(UNIFORM, 4)]) };
        let mut sets = TransientSets::new(&fixture.device, &info).unwrap();
        let error = TransientError::TooManyPools { asked: usize::MAX, max_pools: most };
        assert_eq!(sets.reserve(usize::MAX), Err(error));
        assert_eq!(sets.statistics().pools, 2);
    }
    let info = TransientSetsCreateInfo { min_pools: 3, max_pools: 2, ..Default::default() };
    let error = CreateTransientSetsError::MinPools { min_pools: 3, max_pools: 2 };
    assert_eq!(TransientSets::new(&fixture.device, &info).unwrap_err(), error);
}

#[test]
fn it_goes_to_the_thread_that_records() {
    let mut fixture = Fixture::new();
    let layout = fixture.layout(&[(UNIFORM, 1)]);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (mut sets, layout) = (fixture.sets(&TransientSetsCreateInfo::default()), layout.clone());
            std::thread::spawn(move || {
                many(&mut sets, &layout, 200);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
