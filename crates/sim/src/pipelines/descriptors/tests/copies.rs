//! Copies between sets.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

const STORAGE: Type = Type::STORAGE_BUFFER;

fn copy(
    (src, src_binding, src_element): (vk::DescriptorSet, u32, u32),
    (dst, dst_binding, dst_element): (vk::DescriptorSet, u32, u32),
    count: u32,
) -> vk::CopyDescriptorSet<'static> {
    vk::CopyDescriptorSet::default()
        .src_set(src)
        .src_binding(src_binding)
        .src_array_element(src_element)
        .dst_set(dst)
        .dst_binding(dst_binding)
        .dst_array_element(dst_element)
        .descriptor_count(count)
}

#[test]
fn copies_move_what_is_written_and_what_is_not() {
    let fixture = strict();
    let layout = fixture.layout(&[many(0, STORAGE, 3)]);
    let pool = fixture.pool(2, &[(STORAGE, 6)]);
    let sets = fixture.sets(pool, &[layout; 2]).unwrap();
    let (one, other) = (fixture.buffer(), fixture.buffer());
    fixture.write_buffer(sets[0], (0, 0), STORAGE, one);
    fixture.write_buffer(sets[1], (0, 2), STORAGE, other);
    // Element 1 of the source was never written.
    let copies = [copy((sets[0], 0, 0), (sets[1], 0, 1), 2)];
    unsafe { fixture.device().update_descriptor_sets(&[], &copies) };
    fixture.expect_silence();
    let buffer = |element| match fixture.gpu.descriptor(sets[1], 0, element) {
        Some(SimulatedDescriptor::Buffer { buffer, .. }) => Some(buffer),
        _ => None,
    };
    assert_eq!([buffer(0), buffer(1), buffer(2)], [None, Some(one), None]);
}

#[test]
fn copies_see_what_the_same_call_writes() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let pool = fixture.pool(2, &[(STORAGE, 2)]);
    let sets = fixture.sets(pool, &[layout; 2]).unwrap();
    let infos = [vk::DescriptorBufferInfo { buffer: fixture.buffer(), offset: 0, range: vk::WHOLE_SIZE }];
    let write =
        vk::WriteDescriptorSet::default().dst_set(sets[0]).descriptor_type(STORAGE).buffer_info(&infos);
    let copies = [copy((sets[0], 0, 0), (sets[1], 0, 0), 1)];
    unsafe { fixture.device().update_descriptor_sets(&[write], &copies) };
    assert_eq!(fixture.gpu.descriptor(sets[1], 0, 0), fixture.gpu.descriptor(sets[0], 0, 0));
    assert!(fixture.gpu.descriptor(sets[1], 0, 0).is_some());
}

#[test]
fn copies_that_do_not_fit() {
    let fixture = strict();
    let layout = fixture.layout(&[many(0, STORAGE, 3), at(1, Type::UNIFORM_BUFFER)]);
    let pool = fixture.pool(2, &[(STORAGE, 6), (Type::UNIFORM_BUFFER, 2)]);
    let sets = fixture.sets(pool, &[layout; 2]).unwrap();
    let (src, dst) = (sets[0], sets[1]);
    let null = vk::DescriptorSet::null();
    for (copy, rule) in [
        (copy((null, 0, 0), (dst, 0, 0), 1), "VUID-VkCopyDescriptorSet-srcSet-parameter"),
        (copy((src, 0, 0), (null, 0, 0), 1), "VUID-VkCopyDescriptorSet-dstSet-parameter"),
        (copy((src, 9, 0), (dst, 0, 0), 1), "VUID-VkCopyDescriptorSet-srcBinding-00345"),
        (copy((src, 0, 0), (dst, 9, 0), 1), "VUID-VkCopyDescriptorSet-dstBinding-00347"),
        (copy((src, 0, 3), (dst, 0, 0), 1), "VUID-VkCopyDescriptorSet-srcArrayElement-00346"),
        (copy((src, 0, 0), (dst, 0, 3), 1), "VUID-VkCopyDescriptorSet-dstArrayElement-00348"),
        (copy((src, 0, 0), (dst, 1, 0), 1), "VUID-VkCopyDescriptorSet-dstBinding-02632"),
        (copy((src, 0, 0), (src, 0, 1), 2), "VUID-VkCopyDescriptorSet-srcSet-00349"),
    ] {
        unsafe { fixture.device().update_descriptor_sets(&[], &[copy]) };
        fixture.expect(rule);
    }
    let after = fixture.flagged(&[many(0, STORAGE, 3)], &[vk::DescriptorBindingFlags::UPDATE_AFTER_BIND]);
    let pool = fixture.pool_with(1, &[(STORAGE, 3)], vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND);
    let after = fixture.set(pool, after).unwrap();
    for (copy, rule) in [
        (copy((after, 0, 0), (dst, 0, 0), 1), "VUID-VkCopyDescriptorSet-srcSet-01918"),
        (copy((src, 0, 0), (after, 0, 0), 1), "VUID-VkCopyDescriptorSet-srcSet-04885"),
    ] {
        unsafe { fixture.device().update_descriptor_sets(&[], &[copy]) };
        fixture.expect(rule);
    }
}
