//! Mappings out of a shader's record.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

/// In a heap at an index in the shader's record.
fn by_record(mask: u32, shader_record_offset: u32, stride: u32) -> ffi::DescriptorSetAndBindingMappingEXT {
    let shader_record_index = ffi::DescriptorMappingSourceShaderRecordIndexEXT {
        shader_record_offset,
        heap_index_stride: stride,
        heap_array_stride: stride,
        ..Default::default()
    };
    let data = ffi::DescriptorMappingSourceDataEXT { shader_record_index };
    mapping(mask, source::HEAP_WITH_SHADER_RECORD_INDEX, data)
}

fn record_data(mask: u32, offset: u32) -> ffi::DescriptorSetAndBindingMappingEXT {
    let data = ffi::DescriptorMappingSourceDataEXT { shader_record_data_offset: offset };
    mapping(mask, source::SHADER_RECORD_DATA, data)
}

fn record_address(mask: u32, offset: u32) -> ffi::DescriptorSetAndBindingMappingEXT {
    let data = ffi::DescriptorMappingSourceDataEXT { shader_record_address_offset: offset };
    mapping(mask, source::SHADER_RECORD_ADDRESS, data)
}

#[test]
fn mappings_out_of_a_shaders_record_are_held_to_their_rules() {
    let fixture = HeapFixture::new();
    let (uniform, image) = (resource::UNIFORM_BUFFER, resource::SAMPLED_IMAGE);
    let several = |mut of: ffi::DescriptorSetAndBindingMappingEXT| {
        of.binding_count = 2;
        vec![of]
    };
    let sampler = vk::SamplerCreateInfo::default().border_color(vk::BorderColor::INT_CUSTOM_EXT);
    let embedded = |sampler: &vk::SamplerCreateInfo<'_>| {
        let mut of = by_record(resource::SAMPLER, 0, 32);
        // A union is read and written whole.
        let mut index = unsafe { of.source_data.shader_record_index };
        index.p_embedded_sampler = std::ptr::from_ref(sampler).cast();
        of.source_data = ffi::DescriptorMappingSourceDataEXT { shader_record_index: index };
        of
    };
    let plain = vk::SamplerCreateInfo::default();
    let mut combined = by_record(BUFFERS, 0, 16);
    let mut index = unsafe { combined.source_data.shader_record_index };
    index.use_combined_image_sampler_index = vk::TRUE;
    combined.source_data = ffi::DescriptorMappingSourceDataEXT { shader_record_index: index };
    refused(
        &fixture,
        [
            (
                vec![by_record(BUFFERS, 2, 16)],
                "VUID-VkDescriptorMappingSourceShaderRecordIndexEXT-shaderRecordOffset-11269",
            ),
            (
                vec![embedded(&sampler)],
                "VUID-VkDescriptorMappingSourceShaderRecordIndexEXT-pEmbeddedSampler-11449",
            ),
            (several(embedded(&plain)), "VUID-VkDescriptorSetAndBindingMappingEXT-source-11389"),
            (vec![combined], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11358"),
            (vec![by_record(image, 0, 16)], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11251"),
            (vec![by_record(BUFFERS, 0, 8)], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11252"),
            (several(record_data(uniform, 0)), "VUID-VkDescriptorSetAndBindingMappingEXT-source-11248"),
            (several(record_address(BUFFERS, 0)), "VUID-VkDescriptorSetAndBindingMappingEXT-source-11248"),
            (vec![record_data(uniform, 6)], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11249"),
            (vec![record_address(BUFFERS, 12)], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11250"),
            (vec![record_data(BUFFERS, 0)], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11356"),
            (vec![record_address(image, 0)], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11357"),
        ],
    );
    // At the edge of the rules: the pipeline is made, and a compute shader finds no record.
    for mapping in [by_record(BUFFERS, 4, 16), record_data(uniform, 4), record_address(BUFFERS, 8)] {
        let look = |kernel: &mut Kernel<'_>| drop(kernel.buffer(0, 0, 0));
        assert_eq!(fixture.run(&[mapping], look, |_| {}), ["SUBLET-descriptor-binding"]);
    }
}
