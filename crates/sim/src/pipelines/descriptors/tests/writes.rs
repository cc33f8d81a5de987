//! A write is read back; a wrong write is reported and changes nothing.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::fixture::foreign;
use super::*;

const UNIFORM: Type = Type::UNIFORM_BUFFER;
const STORAGE: Type = Type::STORAGE_BUFFER;

fn whole(buffer: vk::Buffer) -> vk::DescriptorBufferInfo {
    vk::DescriptorBufferInfo { buffer, offset: 0, range: vk::WHOLE_SIZE }
}

#[test]
fn what_is_written_is_found() {
    let fixture = strict();
    let bindings = [
        many(0, UNIFORM, 2),
        at(2, Type::UNIFORM_TEXEL_BUFFER),
        at(3, Type::COMBINED_IMAGE_SAMPLER),
        at(4, Type::STORAGE_IMAGE),
        many(5, Type::INLINE_UNIFORM_BLOCK, 16),
    ];
    let layout = fixture.layout(&bindings);
    let pool = fixture.inline_pool(&[
        (UNIFORM, 2),
        (Type::UNIFORM_TEXEL_BUFFER, 1),
        (Type::COMBINED_IMAGE_SAMPLER, 1),
        (Type::STORAGE_IMAGE, 1),
        (Type::INLINE_UNIFORM_BLOCK, 16),
    ]);
    let set = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    let texels = fixture.buffer_view(buffer);
    let sampler = fixture.sampler();
    let view = fixture.image_view(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE);
    let info = vk::DescriptorBufferInfo { buffer, offset: 256, range: 128 };
    fixture.write_buffers(set, (0, 1), UNIFORM, &[info]);
    let views = [texels];
    let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(2);
    let write = write.descriptor_type(Type::UNIFORM_TEXEL_BUFFER).texel_buffer_view(&views);
    unsafe { fixture.device().update_descriptor_sets(&[write], &[]) };
    let read = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
    let combined = vk::DescriptorImageInfo { sampler, image_view: view, image_layout: read };
    fixture.write_image(set, (3, 0), Type::COMBINED_IMAGE_SAMPLER, combined);
    let general = vk::ImageLayout::GENERAL;
    let image = vk::DescriptorImageInfo { sampler: foreign(), image_view: view, image_layout: general };
    fixture.write_image(set, (4, 0), Type::STORAGE_IMAGE, image);
    let mut data = vk::WriteDescriptorSetInlineUniformBlock::default().data(&[1, 2, 3, 4]);
    let mut write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(5).dst_array_element(8);
    write = write.descriptor_type(Type::INLINE_UNIFORM_BLOCK).push_next(&mut data);
    write.descriptor_count = 4;
    unsafe { fixture.device().update_descriptor_sets(&[write], &[]) };

    let gpu = &fixture.gpu;
    assert_eq!(gpu.descriptor(set, 0, 0), None);
    let expected = SimulatedDescriptor::Buffer { kind: UNIFORM, buffer, offset: 256, range: 128 };
    assert_eq!(gpu.descriptor(set, 0, 1), Some(expected));
    let expected = SimulatedDescriptor::Texels { kind: Type::UNIFORM_TEXEL_BUFFER, view: texels };
    assert_eq!(gpu.descriptor(set, 2, 0), Some(expected));
    let kind = Type::COMBINED_IMAGE_SAMPLER;
    assert_eq!(
        gpu.descriptor(set, 3, 0),
        Some(SimulatedDescriptor::Image { kind, sampler, view, layout: read })
    );
    let (kind, sampler) = (Type::STORAGE_IMAGE, vk::Sampler::null());
    assert_eq!(
        gpu.descriptor(set, 4, 0),
        Some(SimulatedDescriptor::Image { kind, sampler, view, layout: general })
    );
    assert_eq!(gpu.inline_uniform_data(set, 5), Some(vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]));
    fixture.expect_silence();
}

#[test]
fn a_write_goes_on_in_the_bindings_behind() {
    let fixture = strict();
    let layout = fixture.layout(&[many(0, STORAGE, 2), many(1, STORAGE, 0), many(2, STORAGE, 2)]);
    let pool = fixture.pool(1, &[(STORAGE, 4)]);
    let set = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    fixture.write_buffers(set, (0, 1), STORAGE, &[whole(buffer); 3]);
    fixture.expect_silence();
    let written = |binding, element| fixture.gpu.descriptor(set, binding, element).is_some();
    assert_eq!([written(0, 0), written(0, 1), written(2, 0), written(2, 1)], [false, true, true, true]);
    fixture.write_buffers(set, (0, 1), STORAGE, &[whole(buffer); 4]);
    fixture.expect("VUID-VkWriteDescriptorSet-dstArrayElement-00321");
}

#[test]
fn a_write_does_not_go_on_into_another_kind_of_binding() {
    let fixture = strict();
    let mut vertex = at(1, STORAGE);
    vertex.stage_flags = vk::ShaderStageFlags::VERTEX;
    for second in [at(1, UNIFORM), vertex] {
        let layout = fixture.layout(&[at(0, STORAGE), second]);
        let pool = fixture.pool(1, &[(STORAGE, 2), (UNIFORM, 1)]);
        let set = fixture.set(pool, layout).unwrap();
        let buffer = fixture.buffer();
        fixture.write_buffers(set, (0, 0), STORAGE, &[whole(buffer); 2]);
        fixture.expect("VUID-VkWriteDescriptorSet-descriptorCount-00317");
        assert_eq!(fixture.gpu.descriptor(set, 0, 0), None);
    }
    let flags = [vk::DescriptorBindingFlags::PARTIALLY_BOUND, vk::DescriptorBindingFlags::empty()];
    let layout = fixture.flagged(&[at(0, STORAGE), at(1, STORAGE)], &flags);
    let pool = fixture.pool(1, &[(STORAGE, 2)]);
    let set = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    fixture.write_buffers(set, (0, 0), STORAGE, &[whole(buffer); 2]);
    fixture.expect("VUID-VkWriteDescriptorSet-descriptorCount-03048");
}

#[test]
fn one_wrong_write_keeps_all_others_of_its_call_out() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, STORAGE), at(1, STORAGE)]);
    let pool = fixture.pool(1, &[(STORAGE, 2)]);
    let set = fixture.set(pool, layout).unwrap();
    let infos = [whole(fixture.buffer())];
    let write = |binding| {
        let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding);
        write.descriptor_type(STORAGE).buffer_info(&infos)
    };
    unsafe { fixture.device().update_descriptor_sets(&[write(0), write(7)], &[]) };
    fixture.expect("VUID-VkWriteDescriptorSet-dstBinding-00315");
    assert_eq!(fixture.gpu.descriptor(set, 0, 0), None);
}

#[test]
fn writes_to_places_that_are_not_there() {
    let fixture = strict();
    let layout = fixture.layout(&[many(0, STORAGE, 2), many(2, STORAGE, 1)]);
    let pool = fixture.pool(4, &[(STORAGE, 12)]);
    let set = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    for (place, kind, rule) in [
        ((3, 0), STORAGE, "VUID-VkWriteDescriptorSet-dstBinding-00315"),
        ((1, 0), STORAGE, "VUID-VkWriteDescriptorSet-dstBinding-00316"),
        ((0, 0), UNIFORM, "VUID-VkWriteDescriptorSet-descriptorType-00319"),
        ((0, 2), STORAGE, "VUID-VkWriteDescriptorSet-dstArrayElement-00321"),
        ((0, u32::MAX), STORAGE, "VUID-VkWriteDescriptorSet-dstArrayElement-00321"),
        ((2, 1), STORAGE, "VUID-VkWriteDescriptorSet-dstArrayElement-00321"),
    ] {
        fixture.write_buffer(set, place, kind, buffer);
        fixture.expect(rule);
    }
    fixture.write_buffers(set, (0, 0), STORAGE, &[]);
    fixture.expect("VUID-VkWriteDescriptorSet-descriptorCount-arraylength");
    for handle in [foreign(), vk::DescriptorSet::null()] {
        fixture.write_buffer(handle, (0, 0), STORAGE, buffer);
        fixture.expect("VUID-VkWriteDescriptorSet-dstSet-00320");
    }
    fixture.reset(pool).unwrap();
    fixture.write_buffer(set, (0, 0), STORAGE, buffer);
    fixture.expect("VUID-VkWriteDescriptorSet-dstSet-00320");
}

#[test]
fn a_variable_binding_ends_where_the_set_says() {
    let fixture = strict();
    let layout =
        fixture.flagged(&[many(0, STORAGE, 100)], &[vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT]);
    let pool = fixture.pool(2, &[(STORAGE, 10)]);
    let set = fixture.variable(pool, layout, 3).unwrap();
    let buffer = fixture.buffer();
    fixture.write_buffer(set, (0, 2), STORAGE, buffer);
    fixture.expect_silence();
    fixture.write_buffer(set, (0, 3), STORAGE, buffer);
    fixture.expect("VUID-VkWriteDescriptorSet-dstArrayElement-00321");
    let empty = fixture.variable(pool, layout, 0).unwrap();
    fixture.write_buffer(empty, (0, 0), STORAGE, buffer);
    fixture.expect("VUID-VkWriteDescriptorSet-dstArrayElement-00321");
}

#[test]
fn buffers_that_do_not_fit_their_descriptors() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, UNIFORM), at(1, STORAGE)]);
    let pool = fixture.pool(1, &[(UNIFORM, 1), (STORAGE, 1)]);
    let set = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    let plain = fixture.local(1024, vk::BufferUsageFlags::TRANSFER_DST);
    let large = fixture.local(1 << 20, vk::BufferUsageFlags::UNIFORM_BUFFER);
    let info = |buffer, offset, range| vk::DescriptorBufferInfo { buffer, offset, range };
    let cases = [
        (UNIFORM, info(foreign(), 0, 16), "VUID-VkDescriptorBufferInfo-buffer-parameter"),
        (UNIFORM, info(vk::Buffer::null(), 0, vk::WHOLE_SIZE), "VUID-VkDescriptorBufferInfo-buffer-02998"),
        (UNIFORM, info(plain, 0, 16), "VUID-VkWriteDescriptorSet-descriptorType-00330"),
        (STORAGE, info(plain, 0, 16), "VUID-VkWriteDescriptorSet-descriptorType-00331"),
        (UNIFORM, info(buffer, 32, 16), "VUID-VkWriteDescriptorSet-descriptorType-00327"),
        (STORAGE, info(buffer, 8, 16), "VUID-VkWriteDescriptorSet-descriptorType-00328"),
        (UNIFORM, info(large, 0, 1 << 17), "VUID-VkWriteDescriptorSet-descriptorType-00332"),
        (UNIFORM, info(large, 0, vk::WHOLE_SIZE), "VUID-VkWriteDescriptorSet-descriptorType-00332"),
        (STORAGE, info(buffer, 1024, 16), "VUID-VkDescriptorBufferInfo-offset-00340"),
        (STORAGE, info(buffer, 0, 0), "VUID-VkDescriptorBufferInfo-range-00341"),
        (STORAGE, info(buffer, 512, 513), "VUID-VkDescriptorBufferInfo-range-00342"),
    ];
    for (kind, info, rule) in cases {
        let binding = u32::from(kind == STORAGE);
        fixture.write_buffers(set, (binding, 0), kind, &[info]);
        fixture.expect(rule);
        assert_eq!(fixture.gpu.descriptor(set, binding, 0), None);
    }
    // Without memory, and without an array.
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let bare = unsafe { fixture.device().create_buffer(&info, None) }.unwrap();
    fixture.write_buffers(set, (1, 0), STORAGE, &[whole(bare)]);
    fixture.expect("VUID-VkWriteDescriptorSet-descriptorType-00329");
    unsafe { fixture.device().destroy_buffer(bare, None) };
    fixture.write_buffers(set, (1, 0), STORAGE, &[whole(bare)]);
    fixture.expect("VUID-VkDescriptorBufferInfo-buffer-parameter");
    let mut write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(1).descriptor_type(STORAGE);
    write.descriptor_count = 1;
    unsafe { fixture.device().update_descriptor_sets(&[write], &[]) };
    fixture.expect("VUID-VkWriteDescriptorSet-descriptorType-00324");
}

#[test]
fn views_and_samplers_that_do_not_fit_their_descriptors() {
    let fixture = strict();
    let bindings = [
        at(0, Type::SAMPLED_IMAGE),
        at(1, Type::STORAGE_IMAGE),
        at(2, Type::SAMPLER),
        at(3, Type::UNIFORM_TEXEL_BUFFER),
        at(4, Type::INPUT_ATTACHMENT),
    ];
    let layout = fixture.layout(&bindings);
    let pool = fixture.pool(1, &bindings.map(|binding| (binding.descriptor_type, 1)));
    let set = fixture.set(pool, layout).unwrap();
    let sampled = fixture.image_view(vk::ImageUsageFlags::SAMPLED);
    let stored = fixture.image_view(vk::ImageUsageFlags::STORAGE);
    let read = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
    let image = |view, layout| vk::DescriptorImageInfo {
        sampler: vk::Sampler::null(),
        image_view: view,
        image_layout: layout,
    };
    for (binding, info, rule) in [
        (0, image(stored, read), "VUID-VkWriteDescriptorSet-descriptorType-00337"),
        (0, image(foreign(), read), "VUID-VkWriteDescriptorSet-descriptorType-02996"),
        (0, image(vk::ImageView::null(), read), "VUID-VkWriteDescriptorSet-descriptorType-02997"),
        (1, image(sampled, vk::ImageLayout::GENERAL), "VUID-VkWriteDescriptorSet-descriptorType-00339"),
        (1, image(stored, read), "VUID-VkWriteDescriptorSet-descriptorType-04152"),
        (2, image(sampled, read), "VUID-VkWriteDescriptorSet-descriptorType-00325"),
        (4, image(sampled, read), "VUID-VkWriteDescriptorSet-descriptorType-00338"),
    ] {
        fixture.write_image(
            set,
            (binding, 0),
            bindings[usize::try_from(binding).unwrap()].descriptor_type,
            info,
        );
        fixture.expect(rule);
    }
    let only_storage = fixture.local(256, vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER);
    let texels = fixture.buffer_view(only_storage);
    for (view, rule) in [
        (texels, "VUID-VkWriteDescriptorSet-descriptorType-08765"),
        (foreign(), "VUID-VkWriteDescriptorSet-descriptorType-02994"),
        (vk::BufferView::null(), "VUID-VkWriteDescriptorSet-descriptorType-02995"),
    ] {
        let views = [view];
        let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(3);
        let write = write.descriptor_type(Type::UNIFORM_TEXEL_BUFFER).texel_buffer_view(&views);
        unsafe { fixture.device().update_descriptor_sets(&[write], &[]) };
        fixture.expect(rule);
    }
}

#[test]
fn inline_uniform_blocks_are_written_in_fours() {
    let fixture = strict();
    let kind = Type::INLINE_UNIFORM_BLOCK;
    let layout = fixture.layout(&[many(0, kind, 16)]);
    let pool = fixture.inline_pool(&[(kind, 16)]);
    let set = fixture.set(pool, layout).unwrap();
    let bytes = [7; 20];
    for (offset, count, data, rule) in [
        (2, 4, 4, "VUID-VkWriteDescriptorSet-descriptorType-02219"),
        (0, 6, 6, "VUID-VkWriteDescriptorSet-descriptorType-02220"),
        (0, 8, 4, "VUID-VkWriteDescriptorSet-descriptorType-02221"),
        (0, 20, 20, "VUID-VkWriteDescriptorSet-dstArrayElement-00321"),
    ] {
        let mut block = vk::WriteDescriptorSetInlineUniformBlock::default().data(&bytes[..data]);
        let write = vk::WriteDescriptorSet::default().dst_set(set).dst_array_element(offset);
        let mut write = write.descriptor_type(kind).push_next(&mut block);
        write.descriptor_count = count;
        unsafe { fixture.device().update_descriptor_sets(&[write], &[]) };
        fixture.expect(rule);
    }
    assert_eq!(fixture.gpu.inline_uniform_data(set, 0), None);
}

#[test]
fn immutable_samplers_are_there_and_stay() {
    let fixture = strict();
    let (own, other) = (fixture.sampler(), fixture.sampler());
    let samplers = [own];
    let bindings = [
        at(0, Type::SAMPLER).immutable_samplers(&samplers),
        at(1, Type::COMBINED_IMAGE_SAMPLER).immutable_samplers(&samplers),
    ];
    let layout = fixture.layout(&bindings);
    let pool = fixture.pool(1, &[(Type::SAMPLER, 1), (Type::COMBINED_IMAGE_SAMPLER, 1)]);
    let set = fixture.set(pool, layout).unwrap();
    let sampler_of = |fixture: &DescriptorFixture, binding| match fixture.gpu.descriptor(set, binding, 0) {
        Some(SimulatedDescriptor::Image { sampler, .. }) => Some(sampler),
        _ => None,
    };
    assert_eq!((sampler_of(&fixture, 0), sampler_of(&fixture, 1)), (Some(own), None));
    let view = fixture.image_view(vk::ImageUsageFlags::SAMPLED);
    let read = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
    let info = vk::DescriptorImageInfo { sampler: other, image_view: view, image_layout: read };
    fixture.write_image(set, (1, 0), Type::COMBINED_IMAGE_SAMPLER, info);
    fixture.expect_silence();
    assert_eq!(sampler_of(&fixture, 1), Some(own));
    fixture.write_image(set, (0, 0), Type::SAMPLER, info);
    fixture.expect("VUID-VkWriteDescriptorSet-descriptorType-02752");
}

#[test]
fn a_descriptor_is_of_depth_or_of_stencil() {
    let fixture = strict();
    let layout = fixture.layout(&[at(0, Type::SAMPLED_IMAGE)]);
    let pool = fixture.pool(1, &[(Type::SAMPLED_IMAGE, 1)]);
    let set = fixture.set(pool, layout).unwrap();
    let (depth, stencil) = (vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL);
    for (aspects, fits) in [(depth, true), (stencil, true), (depth | stencil, false)] {
        let format = vk::Format::D32_SFLOAT_S8_UINT;
        let view = fixture.view_of(format, aspects, vk::ImageUsageFlags::SAMPLED);
        let layout = vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL;
        let info = vk::DescriptorImageInfo::default().image_view(view).image_layout(layout);
        fixture.write_image(set, (0, 0), Type::SAMPLED_IMAGE, info);
        if fits {
            fixture.expect_silence()
        } else {
            fixture.expect("VUID-VkDescriptorImageInfo-imageView-01976")
        }
    }
}

#[test]
fn a_mutable_descriptor_becomes_what_its_list_has() {
    let fixture = strict();
    let types = [STORAGE, UNIFORM];
    let lists = [vk::MutableDescriptorTypeListEXT::default().descriptor_types(&types)];
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    let bindings = [many(0, Type::MUTABLE_EXT, 2)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut mutable);
    let layout = fixture.try_layout(&info).unwrap();
    let pool = fixture.pool(1, &[(Type::MUTABLE_EXT, 2)]);
    let set = fixture.set(pool, layout).unwrap();
    let buffer = fixture.buffer();
    for kind in types {
        fixture.write_buffer(set, (0, 1), kind, buffer);
        assert_eq!(fixture.gpu.descriptor(set, 0, 1).map(|descriptor| descriptor.kind()), Some(kind));
    }
    fixture.expect_silence();
    let info = vk::DescriptorImageInfo::default().sampler(fixture.sampler());
    fixture.write_image(set, (0, 0), Type::SAMPLER, info);
    fixture.expect("VUID-VkWriteDescriptorSet-dstSet-04611");
}
