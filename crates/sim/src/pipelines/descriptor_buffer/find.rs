//! Reads the descriptors of a set in a descriptor buffer back out of their bytes.

use ash::vk;
use ash::vk::DescriptorType as Type;

use super::layout::{BindingShape, SetPlaces};
use crate::facts::arithmetic::widen;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::profiles::DescriptorBufferLimits;
use crate::objects::descriptor_table::Meaning;
use crate::objects::descriptors::contents::SimulatedDescriptor;
use crate::objects::descriptors::{LayoutBinding, SetLayoutDescription};
use crate::objects::state::{DeviceState, StoreRange};

/// The ranges of bytes of an element of a binding, in a set at an address. There are two ranges if arrays of combined
/// images and samplers are kept apart.
pub(crate) fn parts(
    limits: &DescriptorBufferLimits,
    state: &DeviceState,
    address: u64,
    layout: &SetLayoutDescription,
    (binding, shape, element): (u32, &LayoutBinding, u32),
) -> Result<Vec<(StoreRange, usize)>, Broken> {
    let places = SetPlaces::of(limits, layout);
    let parts = places.element(limits, &BindingShape::new(limits, binding, shape), element);
    let found = parts.unwrap_or_default().into_iter().map(|(offset, size)| {
        let from = address.saturating_add(offset);
        let Some(found) = state.locate(from, vk::BufferUsageFlags::empty()) else {
            let text = format!("no descriptor buffer lies at the address {from:#x}");
            return Err(("SUBLET-descriptor-destroyed", text));
        };
        refuse_if!(found.left < widen(size) => "SUBLET-descriptor-range",
            "the {size} bytes at {from:#x} are not all in {}", state.name(found.buffer));
        Ok((found.bytes, size))
    });
    found.collect()
}

/// The descriptor of an element of a binding, in a set at an address.
pub(crate) fn descriptor(
    limits: &DescriptorBufferLimits,
    state: &DeviceState,
    address: u64,
    layout: &SetLayoutDescription,
    at: (u32, &LayoutBinding, u32),
) -> Result<SimulatedDescriptor, Broken> {
    let mut meanings = Vec::new();
    for (place, size) in parts(limits, state, address, layout, at)? {
        let mut bytes = vec![0; size];
        if !place.store.read(place.offset, &mut bytes) {
            return Err((
                "SUBLET-transfer-failed",
                "the descriptor buffer has no bytes behind it".to_owned(),
            ));
        }
        meanings.push(decode(limits, state, at.1, &bytes)?);
    }
    let (view, layout) = (vk::ImageView::null(), vk::ImageLayout::UNDEFINED);
    match *meanings.as_slice() {
        [Meaning::Image { kind, view, layout, .. }, Meaning::Sampler(sampler)]
        | [Meaning::Image { kind, view, layout, sampler }] => {
            Ok(SimulatedDescriptor::Image { kind, sampler, view, layout })
        }
        [Meaning::Sampler(sampler)] => {
            Ok(SimulatedDescriptor::Image { kind: Type::SAMPLER, sampler, view, layout })
        }
        [Meaning::Buffer { kind, address, range }] => {
            let Some(found) = state.locate(address, vk::BufferUsageFlags::empty()) else {
                let text = format!("the buffer at {address:#x}, which it describes, is destroyed");
                return Err(("SUBLET-descriptor-destroyed", text));
            };
            let size = state.buffers.get(&found.buffer).map_or(0, |buffer| buffer.description.size);
            let offset = size.saturating_sub(found.left);
            Ok(SimulatedDescriptor::Buffer { kind, buffer: found.buffer, offset, range })
        }
        _ => {
            let text = "it holds what no shader of the simulated device can use".to_owned();
            Err(("SUBLET-descriptor-type", text))
        }
    }
}

/// The meaning of a descriptor's bytes.
fn decode(
    limits: &DescriptorBufferLimits,
    state: &DeviceState,
    shape: &LayoutBinding,
    bytes: &[u8],
) -> Result<Meaning, Broken> {
    refuse_if!(bytes.iter().all(|&byte| byte == 0) => "SUBLET-descriptor-unwritten",
        "nothing was written there");
    // In a binding with several types, a descriptor may be shorter than its space.
    let mut sizes: Vec<_> = shape.mutable.iter().filter_map(|&kind| limits.size(kind)).collect();
    sizes.push(bytes.len());
    let found = sizes.into_iter().find_map(|size| state.descriptor_bytes.decode(bytes.get(..size)?));
    found.ok_or_else(|| {
        let text = format!("{} bytes that are no descriptor: {bytes:02x?}", bytes.len());
        ("SUBLET-descriptor-garbage", text)
    })
}
