//! Wrong use of descriptor buffers: each is reported once, by its rule, and does nothing.

use super::*;
use crate::Gpu;
use crate::facts::profiles::Profile;

#[test]
fn a_descriptor_of_what_is_not_there_is_refused() {
    let bench = Bench::new("nvidia-h200");
    let extension = Extension::of(&bench);
    let (uniform, plain) = (bench.buffer(256, UNIFORM), bench.buffer(256, Usage::STORAGE_BUFFER));
    assert_eq!(plain.address, 0);
    let gone = bench.buffer(256, STORAGE);
    bench.destroy(gone);
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
        assert_eq!((bytes, bench.reports()), (vec![0; size], vec![rule]));
    }
    let null = (vk::ImageView::null(), vk::Sampler::null());
    let wrong = [
        (Type::SAMPLED_IMAGE, "VUID-VkDescriptorDataEXT-type-08035"),
        (Type::STORAGE_IMAGE, "VUID-VkDescriptorDataEXT-type-08036"),
        (Type::COMBINED_IMAGE_SAMPLER, "VUID-VkDescriptorGetInfoEXT-type-08019"),
    ];
    for (kind, rule) in wrong {
        assert_eq!(extension.image(kind, null.0, null.1), [0; 4]);
        assert_eq!(bench.reports(), [rule]);
    }
    bench.end();
}

#[test]
fn the_same_descriptor_has_the_same_bytes_and_another_has_others() {
    for name in profiles() {
        let bench = Bench::new(name);
        let extension = Extension::of(&bench);
        let buffer = bench.buffer(1024, STORAGE);
        let of = |address, range| extension.buffer(Type::STORAGE_BUFFER, address, range);
        let first = of(buffer.address, 64);
        assert_eq!(of(buffer.address, 64), first);
        assert_ne!(of(buffer.address + 256, 64), first);
        assert_ne!(of(buffer.address, 128), first);
        bench.end();
    }
}

#[test]
fn layouts_that_are_not_for_descriptor_buffers_have_no_places() {
    let bench = Bench::new("nvidia-h200");
    let extension = Extension::of(&bench);
    let plain = bench.set_layout(LayoutFlags::empty(), &[(Type::STORAGE_BUFFER, 1)]);
    let good = bench.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &[(Type::STORAGE_BUFFER, 1)]);
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
    assert_eq!(bench.reports(), expected);
    bench.end();
}

#[test]
fn descriptor_buffers_are_what_they_say_they_are() {
    let bench = Bench::new("amd-rx-6800-windows");
    let extension = Extension::of(&bench);
    let resources = bench.buffer(1024, RESOURCES);
    let both = bench.buffer(1024, BOTH);
    let plain = bench.buffer(1024, STORAGE);
    let push = bench.buffer(1024, Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT | RESOURCES);
    let gone = bench.buffer(1024, RESOURCES);
    bench.destroy(gone);
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
        bench.record(|commands| extension.bind(commands, &buffers));
        assert_eq!(bench.reports(), [rule]);
    }
    bench.record(|commands| {
        extension.bind(commands, &[(resources.address + 256, RESOURCES), (both.address, BOTH)])
    });
    bench.end();
}

fn push_usage() -> Usage {
    Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT | RESOURCES
}

#[test]
fn buffers_for_descriptors_have_an_address_space_of_their_own() {
    let create = |bench: &Bench, size, usage| {
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        unsafe { bench.device().create_buffer(&info, None) }
    };
    let bench = Bench::new("amd-rx-6800-windows");
    let half = bench.gpu.profile().limits.descriptor_buffer.unwrap().address_space / 2;
    let first = create(&bench, half, RESOURCES).unwrap();
    let (second, third) = (create(&bench, half, BOTH).unwrap(), create(&bench, 1, RESOURCES));
    assert_eq!(third, Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
    unsafe { bench.device().destroy_buffer(first, None) };
    let push = create(&bench, 64, Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT);
    assert!(push.is_err() && create(&bench, half + 1, BOTH).is_err());
    let expected = [
        "VUID-VkBufferCreateInfo-usage-08098",
        "VUID-VkBufferCreateInfo-usage-08103",
        "VUID-VkBufferCreateInfo-usage-08098",
    ];
    assert_eq!(bench.reports(), expected);
    unsafe { bench.device().destroy_buffer(second, None) };
    bench.end();
    let bench = Bench::new("nvidia-h200");
    assert!(create(&bench, 64, push_usage()).is_err());
    assert_eq!(bench.reports(), ["VUID-VkBufferCreateInfo-usage-08102"]);
    bench.end();
    let bench = Bench::new("lavapipe");
    assert!(create(&bench, 64, RESOURCES).is_err());
    assert_eq!(bench.reports(), ["VUID-VkBufferCreateInfo-usage-parameter"]);
    bench.end();
}

#[test]
fn sets_lie_at_multiples_of_the_alignment_and_within_their_buffer() {
    for name in profiles() {
        let bench = Bench::new(name);
        let extension = Extension::of(&bench);
        let kinds = [(Type::STORAGE_BUFFER, 4)];
        let set_layout = bench.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &kinds);
        let plain_set = bench.set_layout(LayoutFlags::empty(), &kinds);
        let (layout, plain) = (bench.layout(&[set_layout]), bench.layout(&[plain_set]));
        let size = extension.size(set_layout);
        let alignment = extension.limits.offset_alignment;
        let descriptors = bench.buffer(size * 2, RESOURCES);
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
            bench.record(|commands| {
                extension.bind(commands, &[(descriptors.address, RESOURCES)]);
                extension.set(commands, layout, set, place);
            });
            let rule = format!("VUID-vkCmdSetDescriptorBufferOffsetsEXT-{rule}");
            assert_eq!(bench.reports(), [rule], "{name}");
        }
        bench.record(|commands| {
            extension.set(commands, layout, 0, (0, 0));
            extension.bind(commands, &[(descriptors.address, RESOURCES)]);
            extension.set(commands, layout, 0, (0, size));
        });
        assert_eq!(bench.reports(), ["VUID-vkCmdSetDescriptorBufferOffsetsEXT-pBufferIndices-08065"]);
        bench.end();
    }
}

#[test]
fn a_pipeline_takes_its_descriptors_from_one_place_or_from_the_other() {
    let bench = Bench::new("nvidia-h200");
    let extension = Extension::of(&bench);
    let set_layout = bench.set_layout(LayoutFlags::DESCRIPTOR_BUFFER_EXT, &[(Type::STORAGE_BUFFER, 1)]);
    let layout = bench.layout(&[set_layout]);
    let pipeline = bench.pipeline(layout, c"main");
    let descriptors = bench.buffer(extension.size(set_layout), RESOURCES);
    bench.gpu.set_kernel("main", |kernel| assert!(kernel.buffer(0, 0, 0).is_empty()));
    bench.dispatch(pipeline, |commands| extension.at_start(commands, layout, descriptors, RESOURCES));
    assert_eq!(bench.reports(), ["VUID-vkCmdDispatch-None-08117"]);
    bench.end();
}

#[test]
fn a_descriptor_buffer_in_flight_must_not_be_destroyed() {
    let bench = Bench::new("nvidia-h200");
    let extension = Extension::of(&bench);
    let descriptors = bench.buffer(1024, RESOURCES);
    let commands = bench.record(|commands| extension.bind(commands, &[(descriptors.address, RESOURCES)]));
    bench.gpu.hold_submissions(true);
    bench.submit(commands).unwrap();
    bench.destroy(descriptors);
    assert_eq!(bench.reports(), ["VUID-vkDestroyBuffer-buffer-00922"]);
    bench.gpu.run_pending();
    assert!(bench.submit(commands).is_err());
    assert_eq!(bench.reports(), ["VUID-vkQueueSubmit-pCommandBuffers-00070"]);
    bench.end();
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
