//! Reads a `VkWriteDescriptorSet`, and applies it to the contents of a set.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;
use ash::vk::DescriptorType as Type;
use ash::vk::Handle as _;

use crate::facts::arithmetic::{index, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::profiles::{MAX_STORAGE_BUFFER_RANGE, MAX_UNIFORM_BUFFER_RANGE};
use crate::objects::descriptors::contents::{ContentsChange, SimulatedDescriptor};
use crate::objects::descriptors::names::{
    DescriptorFamily, buffer_needs, family, has_sampler, is_uniform_buffer, type_name,
};
use crate::objects::descriptors::{DescriptorSetObject, LayoutBinding, SetLayoutDescription};
use crate::objects::state::{DeviceObject, DeviceState};

/// A write, as data. For an inline uniform block, `element` and the number of values are bytes.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) binding: u32,
    pub(crate) element: u32,
    pub(crate) kind: Type,
    pub(crate) count: u32,
    pub(crate) values: Values,
}

/// The new values of a write, in the form that goes with its type.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Buffers(Vec<vk::DescriptorBufferInfo>),
    Texels(Vec<vk::BufferView>),
    Images(Vec<vk::DescriptorImageInfo>),
    Bytes(Vec<u8>),
    /// There is no array for them.
    Missing,
}

/// The target of a write: a set, or push descriptors with a layout.
#[derive(Clone, Copy)]
pub(crate) struct WriteTarget<'a> {
    pub(crate) layout: &'a SetLayoutDescription,
    pub(crate) set: Option<&'a DescriptorSetObject>,
}

impl<'a> WriteTarget<'a> {
    pub(crate) fn pushed(layout: &'a SetLayoutDescription) -> Self {
        Self { layout, set: None }
    }

    pub(crate) fn set(set: &'a DescriptorSetObject) -> Self {
        Self { layout: &set.layout, set: Some(set) }
    }

    /// The array elements of a binding; bytes, for an inline uniform block.
    fn count(&self, number: u32, binding: &LayoutBinding) -> u32 {
        self.set.map_or(binding.count, |set| set.count(number))
    }
}

/// The write that the structure describes.
///
/// # Safety
///
/// The array that goes with its type is NULL or has as many elements as it says, and its chain is valid.
pub(crate) unsafe fn read(info: &vk::WriteDescriptorSet<'_>) -> Write {
    let count = info.descriptor_count;
    let values = match family(info.descriptor_type) {
        DescriptorFamily::Buffer if !info.p_buffer_info.is_null() => {
            // SAFETY: VUID-VkWriteDescriptorSet-descriptorType-00324.
            Values::Buffers(unsafe { chain::array(info.p_buffer_info, count) }.to_vec())
        }
        DescriptorFamily::Texels if !info.p_texel_buffer_view.is_null() => {
            // SAFETY: VUID-VkWriteDescriptorSet-descriptorType-02994.
            Values::Texels(unsafe { chain::array(info.p_texel_buffer_view, count) }.to_vec())
        }
        DescriptorFamily::Image if !info.p_image_info.is_null() => {
            // SAFETY: VUID-VkWriteDescriptorSet-pDescriptorWrites-06493.
            Values::Images(unsafe { chain::array(info.p_image_info, count) }.to_vec())
        }
        DescriptorFamily::Inline => {
            // SAFETY: VUID-VkWriteDescriptorSet-pNext-pNext.
            let block = unsafe { chain::find::<vk::WriteDescriptorSetInlineUniformBlock<'_>>(info.p_next) };
            match block {
                Some(block) => {
                    // SAFETY: VUID-VkWriteDescriptorSetInlineUniformBlock-pData-parameter.
                    Values::Bytes(
                        unsafe { chain::array(block.p_data.cast::<u8>(), block.data_size) }.to_vec(),
                    )
                }
                None => Values::Missing,
            }
        }
        _ => Values::Missing,
    };
    Write {
        binding: info.dst_binding,
        element: info.dst_array_element,
        kind: info.descriptor_type,
        count,
        values,
    }
}

/// The runs of elements that `count` descriptors from a place on cover: they go on in the bindings behind it. Each run
/// is a binding, its first element and a count. Units of an inline uniform block: bytes.
pub(crate) fn run(
    place: WriteTarget<'_>,
    (mut number, mut element, count): (u32, u32, u32),
    past: &'static str,
) -> Result<Vec<(u32, u32, u32)>, Broken> {
    let mut runs = Vec::new();
    let mut left = count;
    let start = number;
    let mut first: Option<&LayoutBinding> = None;
    while left > 0 {
        let Some(binding) = place.layout.bindings.get(&number) else {
            let text =
                format!("{count} descriptors from binding {start}, {left} of them behind the last one");
            return Err((past, text));
        };
        let size = place.count(number, binding);
        if size > 0 {
            let here = left.min(size.saturating_sub(element));
            refuse_if!(here == 0 && first.is_none() => past,
                "element {element} of binding {number}, which has {size}");
            if let Some(first) = first {
                consecutive(first, binding, number)?;
            }
            first.get_or_insert(binding);
            runs.push((number, element, here));
            left -= here;
        }
        element = 0;
        let Some(next) = number.checked_add(1).filter(|_| left > 0) else {
            break;
        };
        number = next;
    }
    Ok(runs)
}

/// Checks whether an update may go on from one binding into another.
fn consecutive(first: &LayoutBinding, next: &LayoutBinding, number: u32) -> Result<(), Broken> {
    let rule = if first.kind != next.kind || first.stages != next.stages {
        "VUID-VkWriteDescriptorSet-descriptorCount-00317"
    } else if first.immutable.is_empty() != next.immutable.is_empty() {
        "VUID-VkWriteDescriptorSet-descriptorCount-00318"
    } else if first.flags != next.flags {
        "VUID-VkWriteDescriptorSet-descriptorCount-03048"
    } else {
        return Ok(());
    };
    Err((rule, format!("the update goes on into binding {number}, which is not like the one before")))
}

/// The changes that a write makes, or the rule that it breaks. It checks the whole write before anything is changed.
pub(crate) fn changes(
    device: &DeviceObject,
    state: &DeviceState,
    place: WriteTarget<'_>,
    write: &Write,
) -> Result<Vec<ContentsChange>, Broken> {
    let number = write.binding;
    refuse_if!(write.count == 0 => "VUID-VkWriteDescriptorSet-descriptorCount-arraylength",
        "descriptorCount for binding {number} is 0");
    refuse_if!(place.layout.bindings.last_key_value().is_none_or(|(&last, _)| number > last)
        => "VUID-VkWriteDescriptorSet-dstBinding-00315", "binding {number}, and the layout has none so high");
    let Some(binding) = place.layout.bindings.get(&number).filter(|binding| binding.count > 0) else {
        let text = format!("the layout has no descriptors at binding {number}");
        return Err(("VUID-VkWriteDescriptorSet-dstBinding-00316", text));
    };
    check_type(write, binding)?;
    if write.kind == Type::INLINE_UNIFORM_BLOCK {
        return inline(place, write);
    }
    let past = "VUID-VkWriteDescriptorSet-dstArrayElement-00321";
    let runs = run(place, (number, write.element, write.count), past)?;
    let targets = runs.into_iter().flat_map(|(number, from, count)| {
        (from..from.saturating_add(count)).map(move |element| (number, element))
    });
    let mut changes = Vec::with_capacity(index(write.count));
    for (position, (number, element)) in targets.enumerate() {
        let immutable = place
            .layout
            .bindings
            .get(&number)
            .and_then(|binding| binding.immutable.get(index(element)).copied());
        let descriptor = value(device, state, write, position, immutable)
            .map_err(|(rule, text)| (rule, format!("binding {number}, element {element}: {text}")))?;
        changes.push(ContentsChange::Descriptor { binding: number, element, descriptor });
    }
    Ok(changes)
}

fn check_type(write: &Write, binding: &LayoutBinding) -> Result<(), Broken> {
    let number = write.binding;
    if binding.kind == Type::MUTABLE_EXT {
        refuse_if!(!binding.mutable.contains(&write.kind) => "VUID-VkWriteDescriptorSet-dstSet-04611",
            "{} at binding {number}, which is mutable and cannot become it", type_name(write.kind));
    } else if binding.kind != write.kind {
        let text =
            format!("{} at binding {number}, which is {}", type_name(write.kind), type_name(binding.kind));
        return Err(("VUID-VkWriteDescriptorSet-descriptorType-00319", text));
    }
    refuse_if!(write.kind == Type::SAMPLER && !binding.immutable.is_empty()
        => "VUID-VkWriteDescriptorSet-descriptorType-02752",
        "the samplers of binding {number} are immutable");
    Ok(())
}

fn inline(place: WriteTarget<'_>, write: &Write) -> Result<Vec<ContentsChange>, Broken> {
    let (number, offset, count) = (write.binding, write.element, write.count);
    let size = place.layout.bindings.get(&number).map_or(0, |binding| place.count(number, binding));
    let bytes = match &write.values {
        Values::Bytes(bytes) if widen(bytes.len()) == u64::from(count) => bytes,
        _ => {
            let text = format!("binding {number}: no inline uniform data of {count} bytes in the chain");
            return Err(("VUID-VkWriteDescriptorSet-descriptorType-02221", text));
        }
    };
    let rule = if offset % 4 != 0 {
        "VUID-VkWriteDescriptorSet-descriptorType-02219"
    } else if count % 4 != 0 {
        "VUID-VkWriteDescriptorSet-descriptorType-02220"
    } else if u64::from(offset) + u64::from(count) > u64::from(size) {
        "VUID-VkWriteDescriptorSet-dstArrayElement-00321"
    } else {
        return Ok(vec![ContentsChange::Bytes { binding: number, offset, bytes: bytes.clone() }]);
    };
    let text = format!("{count} bytes from {offset} on, in the inline uniform block {number} of {size}");
    Err((rule, text))
}

/// The descriptor at a position of a write, or the rule that it breaks.
fn value(
    device: &DeviceObject,
    state: &DeviceState,
    write: &Write,
    position: usize,
    immutable: Option<vk::Sampler>,
) -> Result<SimulatedDescriptor, Broken> {
    let kind = write.kind;
    let value = match &write.values {
        Values::Buffers(all) => all.get(position).map(|info| check_buffer(device, state, kind, info)),
        Values::Texels(all) => all.get(position).map(|&view| check_texels(device, state, kind, view)),
        Values::Images(all) => {
            all.get(position).map(|info| check_image(device, state, kind, info, immutable))
        }
        Values::Bytes(_) | Values::Missing => None,
    };
    value.unwrap_or_else(|| Err(missing(kind)))
}

fn missing(kind: Type) -> Broken {
    let rule = match family(kind) {
        DescriptorFamily::Buffer => "VUID-VkWriteDescriptorSet-descriptorType-00324",
        DescriptorFamily::Texels => "VUID-VkWriteDescriptorSet-descriptorType-02994",
        DescriptorFamily::Image => "VUID-vkUpdateDescriptorSets-pDescriptorWrites-06493",
        _ => "VUID-VkWriteDescriptorSet-descriptorType-parameter",
    };
    (rule, format!("there is no array of values for {}", type_name(kind)))
}

fn check_buffer(
    device: &DeviceObject,
    state: &DeviceState,
    kind: Type,
    info: &vk::DescriptorBufferInfo,
) -> Result<SimulatedDescriptor, Broken> {
    let vk::DescriptorBufferInfo { buffer, offset, range } = *info;
    let name = state.label(buffer);
    refuse_if!(buffer.is_null() => "VUID-VkDescriptorBufferInfo-buffer-02998",
        "the buffer is NULL, and the feature nullDescriptor is not enabled");
    let found = state.buffers.get(&buffer);
    let found = state.known(device, buffer, found, "VUID-VkDescriptorBufferInfo-buffer-parameter")?;
    let (size, usage) = (found.description.size, found.description.usage);
    let limits = &device.profile().limits;
    let uniform = is_uniform_buffer(kind);
    let (wanted, alignment) = buffer_needs(kind, limits);
    let (usage_rule, offset_rule, range_rule, most) = if uniform {
        (
            "VUID-VkWriteDescriptorSet-descriptorType-00330",
            "VUID-VkWriteDescriptorSet-descriptorType-00327",
            "VUID-VkWriteDescriptorSet-descriptorType-00332",
            MAX_UNIFORM_BUFFER_RANGE,
        )
    } else {
        (
            "VUID-VkWriteDescriptorSet-descriptorType-00331",
            "VUID-VkWriteDescriptorSet-descriptorType-00328",
            "VUID-VkWriteDescriptorSet-descriptorType-00333",
            MAX_STORAGE_BUFFER_RANGE,
        )
    };
    let left = size.saturating_sub(offset);
    let effective = if range == vk::WHOLE_SIZE { left } else { range };
    let (rule, text) = if !usage.contains(wanted) {
        (usage_rule, format!("was created without the usage {wanted:?}"))
    } else if !found.is_backed() {
        ("VUID-VkWriteDescriptorSet-descriptorType-00329", "has no memory".to_owned())
    } else if offset >= size {
        ("VUID-VkDescriptorBufferInfo-offset-00340", format!("has {size} bytes, and offset is {offset}"))
    } else if offset % alignment.max(1) != 0 {
        (offset_rule, format!("is used from {offset} on, which is no multiple of {alignment}"))
    } else if range == 0 {
        ("VUID-VkDescriptorBufferInfo-range-00341", "is used with a range of 0".to_owned())
    } else if range != vk::WHOLE_SIZE && range > left {
        let text = format!("has {size} bytes, and {range} of them are used from {offset} on");
        ("VUID-VkDescriptorBufferInfo-range-00342", text)
    } else if effective > u64::from(most) {
        (range_rule, format!("is used with {effective} bytes, and the limit is {most}"))
    } else {
        return Ok(SimulatedDescriptor::Buffer { kind, buffer, offset, range });
    };
    Err((rule, format!("{name} {text}")))
}

fn check_texels(
    device: &DeviceObject,
    state: &DeviceState,
    kind: Type,
    view: vk::BufferView,
) -> Result<SimulatedDescriptor, Broken> {
    let name = state.label(view);
    refuse_if!(view.is_null() => "VUID-VkWriteDescriptorSet-descriptorType-02995",
        "the view is NULL, and the feature nullDescriptor is not enabled");
    let found = state.buffer_views.get(&view);
    let found = state.known(device, view, found, "VUID-VkWriteDescriptorSet-descriptorType-02994")?;
    let Some(buffer) = state.buffers.get(&found.buffer) else {
        let text = format!("{name} is of a buffer that is destroyed");
        return Err(("VUID-VkWriteDescriptorSet-descriptorType-02994", text));
    };
    let (wanted, rule) = if kind == Type::UNIFORM_TEXEL_BUFFER {
        (vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER, "VUID-VkWriteDescriptorSet-descriptorType-08765")
    } else {
        (vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER, "VUID-VkWriteDescriptorSet-descriptorType-08766")
    };
    refuse_if!(!buffer.description.usage.contains(wanted) => rule,
        "{name} is of a buffer without the usage {wanted:?}");
    Ok(SimulatedDescriptor::Texels { kind, view })
}

fn check_image(
    device: &DeviceObject,
    state: &DeviceState,
    kind: Type,
    info: &vk::DescriptorImageInfo,
    immutable: Option<vk::Sampler>,
) -> Result<SimulatedDescriptor, Broken> {
    let mut sampler = vk::Sampler::null();
    if has_sampler(kind) {
        // If the sampler is immutable, the write's own is ignored.
        sampler = immutable.unwrap_or(info.sampler);
        refuse_if!(!state.descriptors.samplers.contains_key(&sampler)
            => "VUID-VkWriteDescriptorSet-descriptorType-00325", "{}", state.missing(device, sampler));
    }
    if kind == Type::SAMPLER {
        let (view, layout) = (vk::ImageView::null(), vk::ImageLayout::UNDEFINED);
        return Ok(SimulatedDescriptor::Image { kind, sampler, view, layout });
    }
    let (view, layout) = (info.image_view, info.image_layout);
    let name = state.label(view);
    refuse_if!(view.is_null() => "VUID-VkWriteDescriptorSet-descriptorType-02997",
        "the view is NULL, and the feature nullDescriptor is not enabled");
    let found = state.image_views.get(&view);
    let found = state.known(device, view, found, "VUID-VkWriteDescriptorSet-descriptorType-02996")?;
    let Some(image) = state.images.get(&found.image) else {
        let text = format!("{name} is of an image that is destroyed");
        return Err(("VUID-VkWriteDescriptorSet-descriptorType-02996", text));
    };
    let both = vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL;
    refuse_if!(found.range.aspect_mask.contains(both) => "VUID-VkDescriptorImageInfo-imageView-01976",
        "{name} shows depth and stencil");
    let (wanted, rule) = match kind {
        Type::STORAGE_IMAGE => {
            (vk::ImageUsageFlags::STORAGE, "VUID-VkWriteDescriptorSet-descriptorType-00339")
        }
        Type::INPUT_ATTACHMENT => {
            (vk::ImageUsageFlags::INPUT_ATTACHMENT, "VUID-VkWriteDescriptorSet-descriptorType-00338")
        }
        _ => (vk::ImageUsageFlags::SAMPLED, "VUID-VkWriteDescriptorSet-descriptorType-00337"),
    };
    refuse_if!(!image.description.usage.contains(wanted) => rule,
        "{name} is of an image without the usage {wanted:?}");
    refuse_if!(kind == Type::STORAGE_IMAGE && layout != vk::ImageLayout::GENERAL
        => "VUID-VkWriteDescriptorSet-descriptorType-04152",
        "{name} is to be a storage image in a layout that is not GENERAL");
    Ok(SimulatedDescriptor::Image { kind, sampler, view, layout })
}
