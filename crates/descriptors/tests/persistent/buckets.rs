//! Sets share pools if their descriptor counts are equal.

use ash::vk;
use sublet_descriptors::{AllocateDescriptorSetError, DescriptorKind};

use crate::common::{Fixture, allocate, free};

#[test]
fn sets_share_pools_just_if_their_counts_are_the_same() {
    for fixture in Fixture::all() {
        let sets = fixture.sets();
        let pair = |first, second| fixture.layout(&[(first, 1), (second, 1)]);
        let (uniform, storage) = (DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer);
        let layouts =
            [pair(uniform, storage), pair(storage, uniform), fixture.uniform(), pair(uniform, uniform)];
        let live: Vec<_> = layouts.iter().map(|layout| allocate(&sets, layout)).collect();
        assert_eq!(sets.statistics().buckets, 3, "the first two are of one");
        assert_eq!(sets.statistics().pools, 3);
        live.into_iter().for_each(|set| free(&sets, set));
    }
}

#[test]
fn a_freed_set_serves_its_layout_without_a_call_of_the_driver() {
    let (fixture, layout, sets) = Fixture::with_sets();
    let set = allocate(&sets, &layout);
    free(&sets, set);
    fixture.gpu.reset_calls();
    for _ in 0..100 {
        let set = allocate(&sets, &layout);
        free(&sets, set);
    }
    assert_eq!(fixture.gpu.call_counts(), []);
}

#[test]
fn a_layout_that_is_made_anew_at_the_same_handle_gets_no_set_of_the_old_one() {
    let fixture = Fixture::new();
    let sets = fixture.sets_in_pools_of(4);
    // The counts are equal but the bindings differ, so a free set of one layout cannot serve the other.
    let old = fixture.layout(&[(DescriptorKind::UniformBuffer, 1), (DescriptorKind::StorageBuffer, 1)]);
    let set = allocate(&sets, &old);
    let handle = set.handle();
    free(&sets, set);
    let bindings = [
        vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1),
        vk::DescriptorSetLayoutBinding::default()
            .binding(1)
            .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
            .descriptor_count(1),
    ];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // The driver reuses the handle of a destroyed layout for the next one.
    let new = unsafe { sublet_descriptors::SetLayout::new(old.handle(), &info) }.unwrap();
    let set = allocate(&sets, &new);
    assert_ne!(set.handle(), handle);
    free(&sets, set);
}

#[test]
fn layouts_whose_descriptors_are_not_in_sets_are_refused_before_anything_is_done() {
    let fixture = Fixture::new();
    let sets = fixture.sets();
    let none = vk::DescriptorBindingFlags::empty();
    for flags in [
        vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
        vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT,
    ] {
        let layout = fixture.layout_with(&[(DescriptorKind::UniformBuffer, 1)], flags, none);
        let error = unsafe { sets.allocate(&layout) }.unwrap_err();
        assert_eq!(error, AllocateDescriptorSetError::NotForSets { flags });
        let error = unsafe { sets.allocate_many(&layout, 3) }.unwrap_err();
        assert_eq!(error, AllocateDescriptorSetError::NotForSets { flags });
    }
    assert_eq!(sets.statistics(), Default::default());
}

#[test]
fn a_layout_without_descriptors_has_sets() {
    for fixture in Fixture::all() {
        let layout = fixture.layout(&[]);
        let sets = fixture.sets();
        let live: Vec<_> = (0..40).map(|_| allocate(&sets, &layout)).collect();
        live.into_iter().for_each(|set| free(&sets, set));
    }
}
