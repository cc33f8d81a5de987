//! Wrong use of descriptor buffers: each is reported once, by its rule, and does nothing.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::find::*;
use crate::Gpu;
use crate::facts::profiles::Profile;

#[test]
fn a_descriptor_of_what_is_not_there_is_refused() {
    let fixture = KernelFixture::new("nvidia-h200");
    let extension = Extension::of(&fixture);
    let (uniform, plain) = (fixture.buffer(256, UNIFORM), fixture.buffer(256, Usage::STORAGE_BUFFER));
    assert_eq!(plain.address, 0);
    let gone = fixture.buffer(256, STORAGE);
    fixture.destroy(gone);
    let (at, all) = (uniform.address, vk::WHOLE_SIZE);
    let wrong = [
        (Type::UNIFORM_BUFFER, (at, 16), 16, "VUID-vkGetDescriptorEXT-dataSize-08125"),
        (Type::UNIFORM_BUFFER, (at, 16), 4, "VUID-vkGetDescriptorEXT-dataSize-08125"),
        (Type::UNIFORM_BUFFER, (at, 16), 257, "VUID-vkGetDescriptorEXT-dataSize-08125"),
        (Type::UNIFORM_BUFFER_DYNAMIC, (at, 16), 8, "VUID-VkDescriptorGetInfoEXT-type-08018"),
        (Type::UNIFORM_BUFFER, (0, all), 8, "VUID-VkDescriptorAddressInfoEXT-address-08043"),
        (Type::STORAGE_BUFFER, (gone.address, 16), 16, "VUID-VkDescriptorAddressInfoEXT-None-08044"),
        (Type::UNIFORM_BUFFER, (at + 256, 16), 8, "VUID-VkDescriptorAddressInfoEXT-None-08044"),
        (Type::UNIFORM_BUFFER, (at, 257), 8, "VUID-VkDescriptorAddressInfoEXT-range-08045"),
        (Type::UNIFORM_BUFFER, (at + 64, 193), 8, "VUID-VkDescriptorAddressInfoEXT-range-08045"),
        (Type::UNIFORM_BUFFER, (at, all), 8, "VUID-VkDescriptorAddressInfoEXT-nullDescriptor-08939"),
        (Type::UNIFORM_BUFFER, (at, 0), 8, "VUID-VkDescriptorAddressInfoEXT-range-08940"),
        (Type::UNIFORM_BUFFER, (at + 4, 16), 8, "VUID-VkDescriptorGetInfoEXT-type-12265"),
        (Type::STORAGE_BUFFER, (at, 16), 16, "VUID-VkDescriptorGetInfoEXT-type-12221"),
    ];
    for (kind, buffer, size, rule) in wrong {
        let bytes = extension.buffer_of_size(kind, buffer, size);
        assert_eq!((bytes, fixture.reports()), (vec![0; size], vec![rule]));
    }
    let null = (vk::ImageView::null(), vk::Sampler::null());
    let wrong = [
        (Type::SAMPLED_IMAGE, "VUID-VkDescriptorDataEXT-type-08035"),
        (Type::STORAGE_IMAGE, "VUID-VkDescriptorDataEXT-type-08036"),
        (Type::COMBINED_IMAGE_SAMPLER, "VUID-VkDescriptorGetInfoEXT-type-08019"),
    ];
    for (kind, rule) in wrong {
        assert_eq!(extension.image(kind, null.0, null.1), [0; 4]);
        assert_eq!(fixture.reports(), [rule]);
    }
}

#[test]
fn the_same_descriptor_has_the_same_bytes_and_another_has_others() {
    for name in profiles() {
        let fixture = KernelFixture::new(name);
        let extension = Extension::of(&fixture);
        let buffer = fixture.buffer(1024, STORAGE);
        let of = |address, range| extension.buffer(Type::STORAGE_BUFFER, address, range);
        let first = of(buffer.address, 64);
        assert_eq!(of(buffer.address, 64), first);
        assert_ne!(of(buffer.address + 256, 64), first);
        assert_ne!(of(buffer.address, 128), first);
    }
}

#[test]
fn layouts_that_are_not_for_descriptor_buffers_have_no_places() {
    let fixture = KernelFixture::new("nvidia-h200");
    let extension = Extension::of(&fixture);
    let plain = fixture.set_layout(LayoutFlags::empty(), &[(Type::STORAGE_BUFFER, 1)]);
    let good = fixture.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &[(Type::STORAGE_BUFFER, 1)]);
    let _ = extension.size(plain);
    let _ = extension.offset(plain, 0);
    let _ = extension.size(vk::DescriptorSetLayout::null());
    let _ = extension.offset(good, 1);
    let expected = [
        "VUID-vkGetDescriptorSetLayoutSizeEXT-layout-08012",
        "VUID-vkGetDescriptorSetLayoutBindingOffsetEXT-layout-08014",
        "VUID-vkGetDescriptorSetLayoutSizeEXT-layout-parameter",
        "SUBLET-vkGetDescriptorSetLayoutBindingOffsetEXT-binding",
    ];
    assert_eq!(fixture.reports(), expected);
}

#[test]
fn descriptor_buffers_are_what_they_say_they_are() {
    let fixture = KernelFixture::new("amd-rx-6800-windows");
    let extension = Extension::of(&fixture);
    let resources = fixture.buffer(1024, RESOURCES);
    let both = fixture.buffer(1024, BOTH);
    let plain = fixture.buffer(1024, STORAGE);
    let push = fixture.buffer(1024, Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT | RESOURCES);
    let gone = fixture.buffer(1024, RESOURCES);
    fixture.destroy(gone);
    let one = |buffer: Buffer, offset: u64, usage: Usage| vec![(buffer.address + offset, usage)];
    let limits = extension.limits;
    let many =
        |count: u32, buffer: Buffer, usage| vec![(buffer.address, usage); usize::try_from(count).unwrap()];
    let pushes = push_usage();
    let too_many = many(limits.max_bindings + 1, resources, RESOURCES);
    let samplers = many(limits.max_sampler_bindings + 1, both, BOTH);
    let wrong = [
        (vec![], "VUID-vkCmdBindDescriptorBuffersEXT-bufferCount-arraylength"),
        (too_many, "VUID-vkCmdBindDescriptorBuffersEXT-bufferCount-08051"),
        (samplers, "VUID-vkCmdBindDescriptorBuffersEXT-maxSamplerDescriptorBufferBindings-08048"),
        (many(2, push, pushes), "VUID-vkCmdBindDescriptorBuffersEXT-None-08050"),
        (one(push, 0, pushes), "VUID-VkDescriptorBufferBindingInfoEXT-bufferlessPushDescriptors-08056"),
        (one(resources, 64, RESOURCES), "VUID-VkDescriptorBufferBindingInfoEXT-address-08057"),
        (one(resources, 0, STORAGE), "VUID-VkDescriptorBufferBindingInfoEXT-usage-10998"),
        (one(plain, 0, RESOURCES), "VUID-VkDescriptorBufferBindingInfoEXT-usage-08123"),
        (one(gone, 0, RESOURCES), "VUID-VkDescriptorBufferBindingInfoEXT-usage-08123"),
        (one(resources, 0, BOTH), "VUID-VkDescriptorBufferBindingInfoEXT-usage-08122"),
        (one(both, 0, RESOURCES), "VUID-vkCmdBindDescriptorBuffersEXT-pBindingInfos-08055"),
        (one(resources, 1024, RESOURCES), "VUID-VkDescriptorBufferBindingInfoEXT-usage-08123"),
    ];
    for (buffers, rule) in wrong {
        fixture.record(|commands| extension.bind(commands, &buffers));
        assert_eq!(fixture.reports(), [rule]);
    }
    fixture.record(|commands| {
        extension.bind(commands, &[(resources.address + 256, RESOURCES), (both.address, BOTH)])
    });
}

fn push_usage() -> Usage {
    Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT | RESOURCES
}

#[test]
fn buffers_for_descriptors_have_an_address_space_of_their_own() {
    let create = |fixture: &KernelFixture, size, usage| {
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        unsafe { fixture.device().create_buffer(&info, None) }
    };
    let fixture = KernelFixture::new("amd-rx-6800-windows");
    let half = fixture.gpu.profile().limits.descriptor_buffer.unwrap().address_space / 2;
    let first = create(&fixture, half, RESOURCES).unwrap();
    let (second, third) = (create(&fixture, half, BOTH).unwrap(), create(&fixture, 1, RESOURCES));
    assert_eq!(third, Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
    unsafe { fixture.device().destroy_buffer(first, None) };
    let push = create(&fixture, 64, Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT);
    assert!(push.is_err() && create(&fixture, half + 1, BOTH).is_err());
    let expected = [
        "VUID-VkBufferCreateInfo-usage-08098",
        "VUID-VkBufferCreateInfo-usage-08103",
        "VUID-VkBufferCreateInfo-usage-08098",
    ];
    assert_eq!(fixture.reports(), expected);
    unsafe { fixture.device().destroy_buffer(second, None) };
    let fixture = KernelFixture::new("nvidia-h200");
    assert!(create(&fixture, 64, push_usage()).is_err());
    assert_eq!(fixture.reports(), ["VUID-VkBufferCreateInfo-usage-08102"]);
    let fixture = KernelFixture::new("lavapipe");
    assert!(create(&fixture, 64, RESOURCES).is_err());
    assert_eq!(fixture.reports(), ["VUID-VkBufferCreateInfo-usage-parameter"]);
}

#[test]
fn sets_lie_at_multiples_of_the_alignment_and_within_their_buffer() {
    for name in profiles() {
        let fixture = KernelFixture::new(name);
        let extension = Extension::of(&fixture);
        let kinds = [(Type::STORAGE_BUFFER, 4)];
        let set_layout = fixture.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &kinds);
        let plain_set = fixture.set_layout(LayoutFlags::empty(), &kinds);
        let (layout, plain) = (fixture.layout(&[set_layout]), fixture.layout(&[plain_set]));
        let size = extension.size(set_layout);
        let alignment = extension.limits.offset_alignment;
        let descriptors = fixture.buffer(size * 2, RESOURCES);
        let (most, none) = (extension.limits.max_bindings, vk::PipelineLayout::null());
        let wrong = [
            (layout, 0, (0, alignment / 2), "pOffsets-08061"),
            (layout, 0, (0, size + alignment), "pOffsets-08063"),
            (layout, 0, (1, 0), "pBufferIndices-08065"),
            (layout, 0, (most, 0), "pBufferIndices-08064"),
            (layout, 1, (0, 0), "firstSet-08066"),
            (plain, 0, (0, 0), "firstSet-09006"),
            (none, 0, (0, 0), "layout-parameter"),
        ];
        for (layout, set, place, rule) in wrong {
            fixture.record(|commands| {
                extension.bind(commands, &[(descriptors.address, RESOURCES)]);
                extension.set(commands, layout, set, place);
            });
            let rule = format!("VUID-vkCmdSetDescriptorBufferOffsetsEXT-{rule}");
            assert_eq!(fixture.reports(), [rule], "{name}");
        }
        fixture.record(|commands| {
            extension.set(commands, layout, 0, (0, 0));
            extension.bind(commands, &[(descriptors.address, RESOURCES)]);
            extension.set(commands, layout, 0, (0, size));
        });
        assert_eq!(fixture.reports(), ["VUID-vkCmdSetDescriptorBufferOffsetsEXT-pBufferIndices-08065"]);
    }
}

#[test]
fn a_pipeline_takes_its_descriptors_from_one_place_or_from_the_other() {
    let fixture = KernelFixture::new("nvidia-h200");
    let extension = Extension::of(&fixture);
    let set_layout = fixture.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &[(Type::STORAGE_BUFFER, 1)]);
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"main");
    let descriptors = fixture.buffer(extension.size(set_layout), RESOURCES);
    fixture.gpu.set_kernel("main", |kernel| assert!(kernel.buffer(0, 0, 0).is_empty()));
    fixture.dispatch(pipeline, |commands| extension.at_start(commands, layout, descriptors, RESOURCES));
    assert_eq!(fixture.reports(), ["VUID-vkCmdDispatch-None-08117"]);
}

#[test]
fn a_descriptor_buffer_in_flight_must_not_be_destroyed() {
    let fixture = KernelFixture::new("nvidia-h200");
    let extension = Extension::of(&fixture);
    let descriptors = fixture.buffer(1024, RESOURCES);
    let commands = fixture.record(|commands| extension.bind(commands, &[(descriptors.address, RESOURCES)]));
    fixture.gpu.hold_submissions(true);
    fixture.submit(commands).unwrap();
    fixture.destroy(descriptors);
    assert_eq!(fixture.reports(), ["VUID-vkDestroyBuffer-buffer-00922"]);
    fixture.gpu.run_pending();
    assert!(fixture.submit(commands).is_err());
    assert_eq!(fixture.reports(), ["VUID-vkQueueSubmit-pCommandBuffers-00070"]);
}

#[test]
fn without_the_feature_nothing_works() {
    let profile = Profile::by_name("nvidia-h200").unwrap();
    let gpu = Gpu::builder(profile).extension("VK_KHR_buffer_device_address").build();
    let name = c"vkGetDescriptorEXT";
    let function = unsafe { gpu.instance().get_device_proc_addr(gpu.device().handle(), name.as_ptr()) };
    assert!(function.is_none());
    // With the extension, and without the feature.
    let names = [c"VK_EXT_descriptor_buffer".as_ptr()];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&names);
    let gpu = Gpu::new(profile);
    let device = unsafe { gpu.instance().create_device(gpu.physical_device(), &info, None) }.unwrap();
    let functions = ash::ext::descriptor_buffer::Device::new(gpu.instance(), &device);
    let _ = unsafe { functions.get_descriptor_set_layout_size(vk::DescriptorSetLayout::null()) };
    let mut bytes = [0; 8];
    let info = vk::DescriptorGetInfoEXT::default().ty(Type::UNIFORM_BUFFER);
    unsafe { functions.get_descriptor(&info, &mut bytes) };
    let reports: Vec<_> = gpu.take_messages().iter().map(|message| message.vuid).collect();
    assert_eq!(
        reports,
        ["VUID-vkGetDescriptorSetLayoutSizeEXT-None-08011", "VUID-vkGetDescriptorEXT-None-08015"]
    );
    unsafe { device.destroy_device(None) };
}
