//! Bindings with a variable count.

use ash::vk;
use sublet_descriptors::{AllocateDescriptorSetError, DescriptorKind, SetLayout};

use crate::common::{Fixture, allocate, free};

fn table(fixture: &Fixture, most: u32) -> SetLayout {
    fixture.layout_with(
        &[(DescriptorKind::UniformBuffer, 1), (DescriptorKind::SampledImage, most)],
        vk::DescriptorSetLayoutCreateFlags::empty(),
        vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT,
    )
}

#[test]
fn a_variable_set_takes_what_is_asked_for_and_not_the_most_there_can_be() {
    for fixture in Fixture::all() {
        let layout = table(&fixture, 500_000);
        let sets = fixture.sets();
        let live: Vec<_> = [0, 1, 10, 10, 4000]
            .map(|count| unsafe { sets.allocate_variable(&layout, count) }.unwrap())
            .into();
        sets.validate();
        assert_eq!(sets.statistics().buckets, 4, "each count has pools of its own");
        assert_eq!(
            sets.statistics().capacity,
            16 + 16 + 16 + 4,
            "16,384 descriptors are enough for four of 4,001"
        );
        live.into_iter().for_each(|set| free(&sets, set));
    }
}

#[test]
fn sets_of_one_layout_and_different_counts_are_never_exchanged() {
    let fixture = Fixture::new();
    let layout = table(&fixture, 100);
    let sets = fixture.sets();
    let small = unsafe { sets.allocate_variable(&layout, 1) }.unwrap();
    let handle = small.handle();
    free(&sets, small);
    let large = unsafe { sets.allocate_variable(&layout, 100) }.unwrap();
    assert_ne!(large.handle(), handle);
    let small = unsafe { sets.allocate_variable(&layout, 1) }.unwrap();
    assert_eq!(small.handle(), handle);
    for set in [small, large] {
        free(&sets, set);
    }
}

#[test]
fn without_a_count_there_is_all_that_the_layout_allows() {
    let fixture = Fixture::new();
    let layout = table(&fixture, 100);
    let sets = fixture.sets();
    let all = allocate(&sets, &layout);
    let same = unsafe { sets.allocate_variable(&layout, 100) }.unwrap();
    assert_eq!(sets.statistics().buckets, 1);
    let many = unsafe { sets.allocate_many(&layout, 3) }.unwrap();
    assert_eq!(sets.statistics().buckets, 1);
    many.into_iter().chain([all, same]).for_each(|set| free(&sets, set));
}

#[test]
fn counts_that_the_layout_does_not_have_are_refused() {
    let fixture = Fixture::new();
    let sets = fixture.sets();
    let error = unsafe { sets.allocate_variable(&table(&fixture, 100), 101) }.unwrap_err();
    assert_eq!(error, AllocateDescriptorSetError::VariableCountTooHigh { asked: 101, most: 100 });
    let error = unsafe { sets.allocate_variable(&fixture.uniform(), 7) }.unwrap_err();
    assert_eq!(error, AllocateDescriptorSetError::NoVariableBinding { asked: 7 });
    assert_eq!(sets.statistics(), Default::default());
}
