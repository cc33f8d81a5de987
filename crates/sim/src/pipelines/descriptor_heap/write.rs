//! `vkWriteResourceDescriptorsEXT` and `vkWriteSamplerDescriptorsEXT`: the bytes of descriptors.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;
use ash::vk::DescriptorType as Type;

use crate::facts::arithmetic::{host_size, is_aligned, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::ffi;
use crate::facts::profiles::DescriptorHeapLimits;
use crate::memory::usage::heap_limits;
use crate::memory::usage::no_heaps;
use crate::objects::descriptor_table::Meaning;
use crate::objects::descriptors::names::buffer_needs;
use crate::objects::entry::on_device;
use crate::objects::heaps::{HeapImage, SamplerState};
use crate::objects::state::{DeviceObject, DeviceState};

/// The object that a program wants a descriptor of, copied out of the union that it passes. `None` for the null
/// descriptor.
enum WrittenDescriptor {
    Image(Option<HeapImage>),
    Texels(Option<(ffi::DeviceAddressRangeKHR, vk::Format)>),
    Range(Option<ffi::DeviceAddressRangeKHR>),
    Nothing,
}

/// Writes descriptors one after another, until one breaks a rule.
///
/// # Safety
///
/// Each range of `to` is valid for writes.
unsafe fn write_all<T>(
    device: &DeviceObject,
    infos: &[T],
    to: &[ffi::HostAddressRangeEXT],
    [enabled, count, too_small]: [&'static str; 3],
    size: impl Fn(&DescriptorHeapLimits, &T) -> Option<u64>,
    mut write: impl FnMut(&mut DeviceState, &T, &mut [u8]) -> Result<bool, Broken>,
) -> vk::Result {
    let Some(limits) = heap_limits(device) else {
        let (rule, text) = no_heaps(enabled);
        return device.refuse(rule, text);
    };
    if infos.is_empty() {
        return device.refuse(count, "there are no descriptors to write");
    }
    for (info, range) in infos.iter().zip(to) {
        // `write` refuses types without a size, and says why.
        let size = size(&limits, info).unwrap_or(0);
        if widen(range.size) < size {
            let text = format!("size is {}, and such a descriptor has {size} bytes", range.size);
            return device.refuse(too_small, text);
        }
        let mut bytes = vec![0; host_size(size).unwrap_or(0)];
        let mut state = device.state.lock();
        let written = write(&mut state, info, &mut bytes);
        drop(state);
        match written {
            Ok(true) => {}
            Ok(false) => return vk::Result::ERROR_OUT_OF_HOST_MEMORY,
            Err((rule, text)) => return device.refuse(rule, text),
        }
        if range.address.is_null() {
            return device.refuse("VUID-VkHostAddressRangeEXT-address-parameter", "address is NULL");
        }
        // SAFETY: the promise of `write_all`: `size` bytes, which are no more than the range has. `bytes` is our own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), range.address.cast(), bytes.len()) };
    }
    vk::Result::SUCCESS
}

pub(crate) unsafe extern "system" fn samplers(
    device: vk::Device,
    count: u32,
    p_samplers: *const vk::SamplerCreateInfo<'_>,
    p_descriptors: *const ffi::HostAddressRangeEXT,
) -> vk::Result {
    on_device(device, "vkWriteSamplerDescriptorsEXT", |device| {
        // SAFETY: VUID-vkWriteSamplerDescriptorsEXT-pSamplers-parameter.
        let infos = unsafe { chain::array(p_samplers, count) };
        // SAFETY: VUID-vkWriteSamplerDescriptorsEXT-pDescriptors-parameter.
        let to = unsafe { chain::array(p_descriptors, count) };
        let rules = [
            "VUID-vkWriteSamplerDescriptorsEXT-descriptorHeap-11202",
            "VUID-vkWriteSamplerDescriptorsEXT-samplerCount-arraylength",
            "VUID-vkWriteSamplerDescriptorsEXT-size-11203",
        ];
        let write = |state: &mut DeviceState, info: &vk::SamplerCreateInfo<'_>, to: &mut [u8]| {
            // SAFETY: a valid chain: VUID-VkSamplerCreateInfo-pNext-pNext.
            let conversion = unsafe { chain::find::<vk::SamplerYcbcrConversionInfo<'_>>(info.p_next) };
            refuse_if!(conversion.is_some() => "VUID-vkWriteSamplerDescriptorsEXT-pSamplers-11204",
                "a sampler with a conversion is embedded into its shader");
            let sampler = SamplerState::new(info);
            refuse_if!(sampler.has_custom_border() => "VUID-vkWriteSamplerDescriptorsEXT-borderColor-11444",
                "the border has a custom color, and no VkSamplerCustomBorderColorIndexCreateInfoEXT");
            Ok(state.descriptor_bytes.encode(Meaning::HeapSampler(sampler), to))
        };
        // SAFETY: each may be written: VUID-VkHostAddressRangeEXT-address-parameter.
        unsafe { write_all(device, infos, to, rules, |limits, _| Some(limits.sampler), write) }
    })
}

pub(crate) unsafe extern "system" fn resources(
    device: vk::Device,
    count: u32,
    p_resources: *const ffi::ResourceDescriptorInfoEXT,
    p_descriptors: *const ffi::HostAddressRangeEXT,
) -> vk::Result {
    on_device(device, "vkWriteResourceDescriptorsEXT", |device| {
        // SAFETY: VUID-vkWriteResourceDescriptorsEXT-pResources-parameter.
        let infos = unsafe { chain::array(p_resources, count) };
        // SAFETY: VUID-vkWriteResourceDescriptorsEXT-pDescriptors-parameter.
        let to = unsafe { chain::array(p_descriptors, count) };
        let rules = [
            "VUID-vkWriteResourceDescriptorsEXT-descriptorHeap-11206",
            "VUID-vkWriteResourceDescriptorsEXT-resourceCount-arraylength",
            "VUID-vkWriteResourceDescriptorsEXT-size-11207",
        ];
        let write = |state: &mut DeviceState, info: &ffi::ResourceDescriptorInfoEXT, to: &mut [u8]| {
            // SAFETY: what goes with the type is in the union: VUID-vkWriteResourceDescriptorsEXT-pResources-parameter.
            let asked = unsafe { asked(info) };
            write_one(device, state, info.ty, &asked, to)
        };
        // SAFETY: each may be written: VUID-VkHostAddressRangeEXT-address-parameter.
        unsafe {
            write_all(
                device,
                infos,
                to,
                rules,
                |limits, info| limits.size(info.ty).filter(|_| info.ty != Type::SAMPLER),
                write,
            )
        }
    })
}

/// # Safety
///
/// 1. The field of `info.data` that goes with `info.ty` is set.
/// 2. It is NULL, or what it points to is valid.
unsafe fn asked(info: &ffi::ResourceDescriptorInfoEXT) -> WrittenDescriptor {
    match info.ty {
        Type::SAMPLED_IMAGE | Type::STORAGE_IMAGE | Type::INPUT_ATTACHMENT => {
            // SAFETY: 1 of `asked`.
            let image = unsafe { info.data.p_image };
            // SAFETY: 2 of `asked`.
            let Some(image) = (unsafe { chain::input(image) }) else { return WrittenDescriptor::Image(None) };
            // SAFETY: VUID-VkImageDescriptorInfoEXT-pView-parameter.
            let view = unsafe { chain::input(image.p_view) };
            WrittenDescriptor::Image(view.map(|view| {
                let of = &view.subresource_range;
                HeapImage {
                    kind: info.ty,
                    image: view.image,
                    layout: image.layout,
                    view_type: view.view_type,
                    format: view.format,
                    aspects: of.aspect_mask,
                    levels: (of.base_mip_level, of.level_count),
                    layers: (of.base_array_layer, of.layer_count),
                }
            }))
        }
        Type::UNIFORM_TEXEL_BUFFER | Type::STORAGE_TEXEL_BUFFER => {
            // SAFETY: 1 of `asked`.
            let texels = unsafe { info.data.p_texel_buffer };
            // SAFETY: 2 of `asked`.
            let texels = unsafe { chain::input(texels) };
            WrittenDescriptor::Texels(texels.map(|texels| (texels.address_range, texels.format)))
        }
        Type::UNIFORM_BUFFER | Type::STORAGE_BUFFER | Type::ACCELERATION_STRUCTURE_KHR => {
            // SAFETY: 1 of `asked`.
            let range = unsafe { info.data.p_address_range };
            // SAFETY: 2 of `asked`.
            WrittenDescriptor::Range(unsafe { chain::input(range) }.copied())
        }
        _ => WrittenDescriptor::Nothing,
    }
}

/// Writes the bytes of a resource's descriptor. False if the device's table is full.
fn write_one(
    device: &DeviceObject,
    state: &mut DeviceState,
    kind: Type,
    asked: &WrittenDescriptor,
    to: &mut [u8],
) -> Result<bool, Broken> {
    let null = |rule| Err((rule, "it is NULL, and the feature nullDescriptor is not enabled".to_owned()));
    match asked {
        WrittenDescriptor::Nothing => {
            Err(("VUID-VkResourceDescriptorInfoEXT-type-11210", format!("type is {kind:?}")))
        }
        WrittenDescriptor::Image(None) if kind == Type::INPUT_ATTACHMENT => {
            null("VUID-VkResourceDescriptorInfoEXT-type-11469")
        }
        WrittenDescriptor::Image(None) => null("VUID-VkResourceDescriptorInfoEXT-None-11211"),
        WrittenDescriptor::Texels(None) => null("VUID-VkResourceDescriptorInfoEXT-None-11212"),
        WrittenDescriptor::Range(None) => null("VUID-VkResourceDescriptorInfoEXT-None-11213"),
        WrittenDescriptor::Image(Some(image)) => {
            check_image(device, state, image)?;
            Ok(state.descriptor_bytes.encode(Meaning::HeapImage(*image), to))
        }
        WrittenDescriptor::Range(Some(range)) if kind == Type::ACCELERATION_STRUCTURE_KHR => {
            refuse_if!(!is_aligned(range.address, 256) => "VUID-VkResourceDescriptorInfoEXT-type-11454",
                "the address {:#x} is no multiple of 256", range.address);
            Ok(state.descriptor_bytes.encode(Meaning::AccelerationStructure(range.address), to))
        }
        WrittenDescriptor::Range(Some(range)) | WrittenDescriptor::Texels(Some((range, _))) => {
            check_range(device, state, kind, range)?;
            let (address, range) = (range.address, range.size);
            Ok(state.descriptor_bytes.encode(Meaning::Buffer { kind, address, range }, to))
        }
    }
}

fn check_image(device: &DeviceObject, state: &DeviceState, image: &HeapImage) -> Result<(), Broken> {
    let (rule, usage) = match image.kind {
        Type::SAMPLED_IMAGE => ("VUID-VkResourceDescriptorInfoEXT-type-11458", vk::ImageUsageFlags::SAMPLED),
        Type::STORAGE_IMAGE => ("VUID-VkResourceDescriptorInfoEXT-type-11459", vk::ImageUsageFlags::STORAGE),
        _ => ("VUID-VkResourceDescriptorInfoEXT-type-11460", vk::ImageUsageFlags::INPUT_ATTACHMENT),
    };
    let found = state.images.get(&image.image);
    let found = state.known(device, image.image, found, "VUID-VkImageViewCreateInfo-image-parameter")?;
    refuse_if!(!found.description.usage.contains(usage) => rule,
        "{} has not the usage {usage:?}", state.name(image.image));
    let layouts = [
        vk::ImageLayout::GENERAL,
        vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL,
        vk::ImageLayout::READ_ONLY_OPTIMAL,
        vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL,
        vk::ImageLayout::DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL,
        vk::ImageLayout::DEPTH_ATTACHMENT_STENCIL_READ_ONLY_OPTIMAL,
        vk::ImageLayout::DEPTH_READ_ONLY_OPTIMAL,
        vk::ImageLayout::STENCIL_READ_ONLY_OPTIMAL,
        vk::ImageLayout::SHARED_PRESENT_KHR,
        vk::ImageLayout::RENDERING_LOCAL_READ_KHR,
        vk::ImageLayout::ATTACHMENT_FEEDBACK_LOOP_OPTIMAL_EXT,
    ];
    refuse_if!(!layouts.contains(&image.layout) => "VUID-VkImageDescriptorInfoEXT-layout-11219",
        "layout is {:?}", image.layout);
    Ok(())
}

fn check_range(
    device: &DeviceObject,
    state: &DeviceState,
    kind: Type,
    range: &ffi::DeviceAddressRangeKHR,
) -> Result<(), Broken> {
    let limits = &device.profile().limits;
    let (usage, alignment) = buffer_needs(kind, limits);
    let (unusable, misaligned) = match kind {
        Type::UNIFORM_BUFFER => {
            ("VUID-VkResourceDescriptorInfoEXT-type-11461", "VUID-VkResourceDescriptorInfoEXT-type-12350")
        }
        Type::STORAGE_BUFFER => {
            ("VUID-VkResourceDescriptorInfoEXT-type-11462", "VUID-VkResourceDescriptorInfoEXT-type-12351")
        }
        Type::UNIFORM_TEXEL_BUFFER => {
            ("VUID-VkResourceDescriptorInfoEXT-type-11463", "VUID-VkResourceDescriptorInfoEXT-type-12349")
        }
        _ => ("VUID-VkResourceDescriptorInfoEXT-type-11464", "VUID-VkResourceDescriptorInfoEXT-type-12349"),
    };
    let (address, size) = (range.address, range.size);
    refuse_if!(size == 0 => "VUID-VkResourceDescriptorInfoEXT-type-11433", "size is 0, at {address:#x}");
    let found = state.locate(address, usage);
    let usages = found.as_ref().and_then(|found| state.buffers.get(&found.buffer));
    let usages = usages.map(|buffer| buffer.description.usage).unwrap_or_default();
    refuse_if!(!usages.contains(usage) => unusable,
        "no buffer with SHADER_DEVICE_ADDRESS and {usage:?} lies at the address {address:#x}");
    if let Some(found) = found.filter(|found| size > found.left) {
        let name = state.name(found.buffer);
        let text = format!("size is {size}, and {name} has {} bytes from {address:#x} on", found.left);
        return Err((unusable, text));
    }
    refuse_if!(!is_aligned(address, alignment.max(1)) => misaligned,
        "the address {address:#x} is no multiple of {alignment}");
    Ok(())
}

#[cfg(test)]
#[test]
fn a_sampler_is_what_it_was() {
    let info = vk::SamplerCreateInfo::default()
        .mag_filter(vk::Filter::LINEAR)
        .address_mode_v(vk::SamplerAddressMode::CLAMP_TO_EDGE)
        .mip_lod_bias(-0.5)
        .max_anisotropy(16.0)
        .compare_enable(true)
        .max_lod(vk::LOD_CLAMP_NONE)
        .border_color(vk::BorderColor::INT_OPAQUE_WHITE)
        .unnormalized_coordinates(true);
    let state = SamplerState::new(&info);
    assert_eq!(SamplerState::new(&state.info()), state);
    assert_eq!((state.info().mip_lod_bias, state.info().max_anisotropy), (-0.5, 16.0));
    assert_ne!(SamplerState::new(&vk::SamplerCreateInfo::default()), state);
}
