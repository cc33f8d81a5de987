//! Measuring a simulated device yields its own profile.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;
use ash::vk::BufferUsageFlags as Usage;

use super::super::{ALL, Profile};
use super::images::{flat, levels};
use super::*;
use crate::Gpu;
use crate::facts::format::{
    BufferDescription, ImageDescription, Requirements, buffer_requirements, image_requirements,
};

fn measured(profile: &'static Profile) -> &'static Profile {
    let gpu = Gpu::new(profile);
    // SAFETY: the instance is live, and the physical device is its own.
    let found =
        unsafe { Profile::measure(gpu.instance(), gpu.physical_device(), gpu.api_version()) }.unwrap();
    // It knew how to ask, and left nothing behind.
    gpu.assert_silent();
    assert!(gpu.live().is_empty());
    // As it comes back from a file.
    Profile::from_json(&found.to_json()).unwrap()
}

/// Everything that a device says of itself, as text.
fn summary(profile: &'static Profile) -> String {
    let gpu = Gpu::new(profile);
    let (instance, device) = (gpu.instance(), gpu.physical_device());
    let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
    let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
    let mut indexing = vk::PhysicalDeviceDescriptorIndexingProperties::default();
    let mut inline = vk::PhysicalDeviceInlineUniformBlockProperties::default();
    let mut push = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
    let mut buffer = vk::PhysicalDeviceDescriptorBufferPropertiesEXT::default();
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut all = vk::PhysicalDeviceProperties2::default()
        .push_next(&mut maintenance3)
        .push_next(&mut maintenance4)
        .push_next(&mut indexing)
        .push_next(&mut inline)
        .push_next(&mut push)
        .push_next(&mut buffer)
        .push_next(&mut driver);
    if gpu.api_version() >= vk::API_VERSION_1_1 {
        // SAFETY: the instance is live and of that version, and the chain is valid.
        unsafe { instance.get_physical_device_properties2(device, &mut all) };
    } else {
        // SAFETY: the instance is live.
        all.properties = unsafe { instance.get_physical_device_properties(device) };
    }
    // The profile's name is in there.
    let properties = vk::PhysicalDeviceProperties { pipeline_cache_uuid: [0; 16], ..all.properties };
    // SAFETY: the instance is live.
    let memory = unsafe { instance.get_physical_device_memory_properties(device) };
    // SAFETY: the instance is live.
    let features = unsafe { instance.get_physical_device_features(device) };
    // Each without its link.
    maintenance3.p_next = std::ptr::null_mut();
    maintenance4.p_next = std::ptr::null_mut();
    indexing.p_next = std::ptr::null_mut();
    inline.p_next = std::ptr::null_mut();
    push.p_next = std::ptr::null_mut();
    buffer.p_next = std::ptr::null_mut();
    format!(
        "{properties:#?}{memory:#?}{features:#?}{maintenance3:#?}{maintenance4:#?}{indexing:#?}{inline:#?}{push:#?}\
         {buffer:#?}{:?}{:#?}",
        driver.driver_id,
        gpu.extensions(),
    )
}

fn lines_that_differ(one: &str, other: &str) -> Vec<String> {
    let pairs = one.lines().zip(other.lines());
    pairs.filter(|(one, other)| one != other).map(|(one, other)| format!("{one} became {other}")).collect()
}

#[test]
fn a_device_from_a_measured_profile_says_of_itself_what_the_device_said() {
    for profile in ALL {
        let (before, after) = (summary(profile), summary(measured(profile)));
        assert_eq!(before, after, "{}: {:#?}", profile.name, lines_that_differ(&before, &after));
    }
}

#[test]
fn features_are_measured_one_by_one() {
    for profile in ALL {
        // Vulkan 1.0 has no way to ask for most of them.
        if profile.api_version >= vk::API_VERSION_1_1 {
            assert_eq!(measured(profile).features, profile.features, "{}", profile.name);
        }
    }
}

#[test]
fn descriptor_pools_refuse_as_they_did() {
    for profile in ALL {
        // Before VK_KHR_maintenance1 it was wrong use to find out.
        if profile.api_version >= vk::API_VERSION_1_1 {
            assert_eq!(measured(profile).descriptor_pools, profile.descriptor_pools, "{}", profile.name);
        }
    }
}

fn buffers() -> Vec<BufferDescription> {
    let usages = [
        Usage::VERTEX_BUFFER | Usage::TRANSFER_DST,
        Usage::INDEX_BUFFER | Usage::TRANSFER_DST,
        Usage::INDEX_BUFFER,
        Usage::INDIRECT_BUFFER,
        Usage::UNIFORM_BUFFER,
        Usage::UNIFORM_BUFFER | Usage::STORAGE_BUFFER,
        Usage::STORAGE_BUFFER | Usage::SHADER_DEVICE_ADDRESS,
        Usage::STORAGE_TEXEL_BUFFER,
        Usage::TRANSFER_SRC,
        Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT | Usage::SHADER_DEVICE_ADDRESS,
    ];
    let sizes = [1, 10, 64, 65, 255, 4096, 5000, 1 << 20, (64 << 20) - 17, 64 << 20, 100 << 20, 1 << 30];
    let each = |usage| {
        sizes.map(|size| BufferDescription {
            size,
            usage,
            flags: vk::BufferCreateFlags::empty(),
            external: false,
        })
    };
    usages.into_iter().flat_map(each).collect()
}

fn images() -> Vec<ImageDescription> {
    let sides =
        [(1, 1), (5, 9), (31, 31), (90, 45), (333, 77), (1000, 10), (1280, 720), (2048, 2048), (3000, 3000)];
    let formats = [
        vk::Format::R8G8B8A8_UNORM,
        vk::Format::R8_UNORM,
        vk::Format::R16G16B16A16_SFLOAT,
        vk::Format::D32_SFLOAT,
        vk::Format::D24_UNORM_S8_UINT,
        vk::Format::BC1_RGB_UNORM_BLOCK,
        vk::Format::BC7_UNORM_BLOCK,
    ];
    let mut images = Vec::new();
    for format in formats {
        let depth = matches!(format, vk::Format::D32_SFLOAT | vk::Format::D24_UNORM_S8_UINT);
        let attachment = if depth {
            vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT
        } else {
            vk::ImageUsageFlags::COLOR_ATTACHMENT
        };
        for sides in sides {
            let image = ImageDescription { usage: vk::ImageUsageFlags::SAMPLED, ..flat(format, sides) };
            let mip_levels = levels(sides);
            images.extend([
                image,
                ImageDescription { mip_levels, ..image },
                ImageDescription { mip_levels, array_layers: 6, ..image },
                ImageDescription { usage: attachment, ..image },
                ImageDescription { usage: attachment | vk::ImageUsageFlags::TRANSIENT_ATTACHMENT, ..image },
                ImageDescription { external: true, ..image },
            ]);
            if !depth {
                images.push(ImageDescription { tiling: vk::ImageTiling::LINEAR, ..image });
            }
        }
    }
    images
}

/// Returns whether there is such an image, and a way to ask about it.
fn comparable(profile: &Profile, image: &ImageDescription) -> bool {
    !image.external || profile.features.external_memory && profile.api_version >= vk::API_VERSION_1_1
}

#[test]
fn buffers_need_what_they_needed() {
    for profile in ALL {
        let found = measured(profile);
        for buffer in buffers() {
            let descriptors = buffer.usage.contains(Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT);
            let address = buffer.usage.contains(Usage::SHADER_DEVICE_ADDRESS);
            if descriptors && !profile.features.descriptor_buffer
                || address && !profile.features.buffer_device_address
            {
                continue;
            }
            let needs = |profile| buffer_requirements(profile, &buffer);
            assert_eq!(
                needs(found),
                needs(profile),
                "{}: {} bytes, {:?}",
                profile.name,
                buffer.size,
                buffer.usage
            );
        }
    }
}

#[test]
fn images_need_what_they_needed() {
    for profile in ALL {
        let found = measured(profile);
        let differs = |image: &ImageDescription| -> Option<(Requirements, Requirements)> {
            let (before, after) = (image_requirements(profile, image), image_requirements(found, image));
            (before != after && comparable(profile, image)).then_some((before, after))
        };
        let wrong: Vec<_> = images()
            .iter()
            .filter_map(|image| {
                let (before, after) = differs(image)?;
                Some(format!(
                    "{:?} {:?} {}x{} {} levels, {} layers, {:?}: {before:?} became {after:?}",
                    image.format,
                    image.tiling,
                    image.extent.width,
                    image.extent.height,
                    image.mip_levels,
                    image.array_layers,
                    image.usage
                ))
            })
            .collect();
        assert!(
            wrong.is_empty(),
            "{}: {} differ, with {:?}:\n{}",
            profile.name,
            wrong.len(),
            found.images.tiles,
            wrong[..wrong.len().min(12)].join("\n")
        );
    }
}

#[test]
fn the_source_says_what_was_measured_and_what_was_not() {
    let whole = measured(Profile::by_name("nvidia-h200").unwrap());
    assert!(whole.source.starts_with("Measured by Sublet ") && !whole.source.contains("Not measured"));
    let part = measured(Profile::by_name("powervr-gx6250").unwrap_or(ALL[0]));
    assert!(part.source.starts_with("Measured by Sublet "), "{}", part.source);
    assert_eq!(name("llvmpipe (LLVM 15.0.6, 256 bits)"), "llvmpipe-llvm-15-0-6-256-bits");
    assert_eq!((name(""), name("  AMD™ Radeon ")), ("unnamed".to_owned(), "amd-radeon".to_owned()));
}

#[test]
fn a_device_of_vulkan_1_0_is_measured_as_far_as_it_goes() {
    for profile in ALL {
        let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_0).build();
        // SAFETY: the instance is live, and the physical device is its own.
        let found =
            unsafe { Profile::measure(gpu.instance(), gpu.physical_device(), gpu.api_version()) }.unwrap();
        gpu.assert_silent();
        assert!(found.heaps == profile.heaps && found.types == profile.types);
        assert!(found.source.contains("Not measured"), "{}", found.source);
        assert_eq!(found.images.tiles, measured(profile).images.tiles);
    }
}

#[test]
fn every_call_may_fail_and_nothing_stays() {
    let profile = Profile::by_name("nvidia-h200").unwrap();
    for call in [
        "vkEnumerateDeviceExtensionProperties",
        "vkCreateDevice",
        "vkCreateBuffer",
        "vkCreateImage",
        "vkCreateDescriptorSetLayout",
        "vkCreateDescriptorPool",
        "vkAllocateDescriptorSets",
    ] {
        let gpu = Gpu::new(profile);
        gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        // SAFETY: the instance is live, and the physical device is its own.
        let found = unsafe { Profile::measure(gpu.instance(), gpu.physical_device(), gpu.api_version()) };
        match call {
            "vkEnumerateDeviceExtensionProperties" | "vkCreateDevice" => {
                assert!(matches!(found, Err(MeasureError::Driver { call: failed, .. }) if failed == call));
            }
            // The others cost what they would have reported.
            _ => assert!(found.is_ok(), "{call}: {found:?}"),
        }
        gpu.assert_silent();
        assert!(gpu.live().is_empty());
        gpu.finish();
    }
}
