//! Update templates.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::fixture::foreign;
use super::*;

const STORAGE: Type = Type::STORAGE_BUFFER;

#[repr(C)]
struct Data {
    before: u64,
    buffers: [vk::DescriptorBufferInfo; 2],
    bytes: [u8; 8],
    image: vk::DescriptorImageInfo,
}

fn entries() -> [vk::DescriptorUpdateTemplateEntry; 3] {
    let entry = |binding, kind, count, offset, stride| {
        vk::DescriptorUpdateTemplateEntry::default()
            .dst_binding(binding)
            .descriptor_type(kind)
            .descriptor_count(count)
            .offset(offset)
            .stride(stride)
    };
    [
        entry(0, STORAGE, 2, std::mem::offset_of!(Data, buffers), size_of::<vk::DescriptorBufferInfo>()),
        entry(1, Type::INLINE_UNIFORM_BLOCK, 8, std::mem::offset_of!(Data, bytes), 0),
        entry(2, Type::SAMPLER, 1, std::mem::offset_of!(Data, image), 0),
    ]
}

#[test]
fn a_template_finds_its_data() {
    let fixture = strict();
    let bindings = [many(0, STORAGE, 2), many(1, Type::INLINE_UNIFORM_BLOCK, 8), at(2, Type::SAMPLER)];
    let layout = fixture.layout(&bindings);
    let pool = fixture.inline_pool(&[(STORAGE, 2), (Type::INLINE_UNIFORM_BLOCK, 8), (Type::SAMPLER, 1)]);
    let set = fixture.set(pool, layout).unwrap();
    let entries = entries();
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET)
        .descriptor_set_layout(layout);
    let template = fixture.template(&info).unwrap();
    let (one, other, sampler) = (fixture.buffer(), fixture.buffer(), fixture.sampler());
    let buffer = |buffer, offset| vk::DescriptorBufferInfo { buffer, offset, range: 64 };
    let mut data = Data {
        before: u64::MAX,
        buffers: [buffer(one, 64), buffer(other, 128)],
        bytes: *b"sublet!!",
        image: vk::DescriptorImageInfo::default().sampler(sampler),
    };
    let update = |fixture: &DescriptorFixture, template, data: &Data| unsafe {
        fixture.device().update_descriptor_set_with_template(set, template, std::ptr::from_ref(data).cast());
    };
    update(&fixture, template, &data);
    fixture.expect_silence();
    assert_eq!(data.before, u64::MAX);
    let found = |element| match fixture.gpu.descriptor(set, 0, element) {
        Some(SimulatedDescriptor::Buffer { buffer, offset, .. }) => Some((buffer, offset)),
        _ => None,
    };
    assert_eq!([found(0), found(1)], [Some((one, 64)), Some((other, 128))]);
    assert_eq!(fixture.gpu.inline_uniform_data(set, 1).as_deref(), Some(&b"sublet!!"[..]));
    assert!(fixture.gpu.descriptor(set, 2, 0).is_some());
    // All of it or nothing.
    data.image.sampler = foreign();
    data.bytes = [0; 8];
    update(&fixture, template, &data);
    fixture.expect("VUID-VkWriteDescriptorSet-descriptorType-00325");
    assert_eq!(fixture.gpu.inline_uniform_data(set, 1).as_deref(), Some(&b"sublet!!"[..]));
    update(&fixture, foreign(), &data);
    fixture.expect("VUID-vkUpdateDescriptorSetWithTemplate-descriptorUpdateTemplate-parameter");
    unsafe { fixture.device().update_descriptor_set_with_template(set, template, std::ptr::null()) };
    fixture.expect("VUID-vkUpdateDescriptorSetWithTemplate-pData-01685");
}

#[test]
fn a_template_is_for_one_layout() {
    let fixture = strict();
    let (one, other) = (fixture.layout(&[at(0, STORAGE)]), fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]));
    let pool = fixture.pool(1, &[(Type::UNIFORM_BUFFER, 1)]);
    let set = fixture.set(pool, other).unwrap();
    let entries = [vk::DescriptorUpdateTemplateEntry::default().descriptor_count(1).descriptor_type(STORAGE)];
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET);
    let template = fixture.template(&info.descriptor_set_layout(one)).unwrap();
    let data = vk::DescriptorBufferInfo::default();
    let data = std::ptr::from_ref(&data).cast();
    unsafe { fixture.device().update_descriptor_set_with_template(set, template, data) };
    fixture.expect("VUID-vkUpdateDescriptorSetWithTemplate-descriptorSet-00358");
    unsafe { fixture.device().update_descriptor_set_with_template(foreign(), template, data) };
    fixture.expect("VUID-vkUpdateDescriptorSetWithTemplate-descriptorSet-parameter");
}

#[test]
fn templates_that_contradict_themselves() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE)]);
    let pipeline = fixture.pipeline_layout(&[layout]);
    let entries = [vk::DescriptorUpdateTemplateEntry::default()
        .dst_binding(3)
        .descriptor_count(1)
        .descriptor_type(STORAGE)];
    let set = vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET;
    let push = vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR;
    let info = vk::DescriptorUpdateTemplateCreateInfo::default();
    let full = info.descriptor_update_entries(&entries);
    let start = "VUID-VkDescriptorUpdateTemplate";
    for (info, rule) in [
        (info.template_type(set), "CreateInfo-descriptorUpdateEntryCount-arraylength"),
        (full.template_type(set), "CreateInfo-templateType-00350"),
        (full.template_type(push), "CreateInfo-templateType-00352"),
        (full.template_type(push).pipeline_layout(pipeline), "CreateInfo-templateType-00353"),
        (full.template_type(set).descriptor_set_layout(layout), "Entry-dstBinding-00354"),
    ] {
        assert_eq!(fixture.template(&info), Err(WRONG));
        fixture.expect(&format!("{start}{rule}"));
    }
}
