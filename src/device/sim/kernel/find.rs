//! What is behind a descriptor, wherever it is: in a set, among push descriptors, in a descriptor buffer.
#![forbid(unsafe_code)]

use ash::vk;
use ash::vk::DescriptorType as Type;
use ash::vk::Handle as _;

use super::Kernel;
use super::buffer::Source;
use crate::base::cast::{index, widen};
use crate::device::sim::commands::Bound;
use crate::device::sim::describe::Broken;
use crate::device::sim::descriptor_buffer::{self, BindingShape, Meaning, SetPlaces};
use crate::device::sim::descriptors::{Binding, Descriptor, SetLayout};
use crate::device::sim::state::{Device, DeviceState};

/// What a descriptor describes.
pub(super) enum Found {
    Buffer(Source),
    /// NULL is what the type has not.
    Image {
        view: vk::ImageView,
        sampler: vk::Sampler,
    },
}

const POINT: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;

/// What is at a set's number, a binding and an element.
pub(super) fn find(kernel: &Kernel<'_>, at: (u32, u32, u32)) -> Result<Found, Broken> {
    let (number, binding, element) = at;
    let (program, bindings) = (kernel.program, kernel.bindings);
    let layout = program.layout.set(number);
    let known = layout.and_then(|layout| Some((layout, layout.bindings.get(&binding)?)));
    let Some((layout, shape)) = known else {
        return Err(("SUBLET-descriptor-binding", "the pipeline's layout has no such binding".to_owned()));
    };
    let elements = if shape.kind == Type::INLINE_UNIFORM_BLOCK { 1 } else { shape.count };
    if element >= elements {
        let text = format!("the binding has {elements} elements");
        return Err(("SUBLET-descriptor-binding", text));
    }
    let state = kernel.device.state.lock();
    let found = match bindings.bound(POINT, &program.layout, number) {
        None => {
            let text =
                "nothing is bound there with a layout that is compatible with the pipeline's".to_owned();
            return Err(("VUID-vkCmdDispatch-None-08600", text));
        }
        Some(Bound::Set { .. }) if program.descriptor_buffer => {
            let text = "a set is bound, and the pipeline was created with DESCRIPTOR_BUFFER".to_owned();
            return Err(("VUID-vkCmdDispatch-None-08115", text));
        }
        Some(Bound::At(_)) if !program.descriptor_buffer => {
            let text = "it is in a descriptor buffer, and the pipeline was created without DESCRIPTOR_BUFFER";
            return Err(("VUID-vkCmdDispatch-None-08117", text.to_owned()));
        }
        Some(&Bound::At(address)) => {
            return in_memory(kernel.device, &state, address, layout, (binding, shape, element));
        }
        Some(Bound::Set { .. } | Bound::Pushed(_)) if shape.kind == Type::INLINE_UNIFORM_BLOCK => {
            let written = bindings.inline(&state, POINT, &program.layout, (number, binding));
            let mut bytes = written.ok_or_else(unwritten)?.to_vec();
            bytes.resize(index(shape.count), 0);
            return Ok(Found::Buffer(Source::Inline(bytes)));
        }
        Some(Bound::Set { .. } | Bound::Pushed(_)) => {
            bindings.descriptor(&state, POINT, &program.layout, at).ok_or_else(unwritten)?
        }
    };
    let (descriptor, dynamic) = found;
    check_type(shape, descriptor.kind())?;
    match descriptor {
        Descriptor::Buffer { kind, buffer, offset, range } => {
            let start = offset.saturating_add(dynamic);
            of_buffer(&state, kind, buffer, start, range).map(Found::Buffer)
        }
        Descriptor::Texels { kind, view } => {
            let Some(found) = state.buffer_views.get(&view) else {
                let text = format!("{} {}", state.name(view), kernel.device.hub.fate(view));
                return Err(("SUBLET-descriptor-destroyed", text));
            };
            let buffer = vk::Buffer::from_raw(found.of);
            of_buffer(&state, kind, buffer, found.start, found.size).map(Found::Buffer)
        }
        Descriptor::Image { view, sampler, .. } => image(kernel.device, &state, view, sampler),
    }
}

fn unwritten() -> Broken {
    ("SUBLET-descriptor-unwritten", "nothing was written there".to_owned())
}

/// Whether a binding may have a descriptor of this type.
fn check_type(shape: &Binding, kind: Type) -> Result<(), Broken> {
    if shape.kind == kind || shape.mutable.contains(&kind) {
        return Ok(());
    }
    let text = format!("a descriptor of type {kind:?} in a binding of type {:?}", shape.kind);
    Err(("SUBLET-descriptor-type", text))
}

fn is_writable(kind: Type) -> bool {
    kind == Type::STORAGE_BUFFER || kind == Type::STORAGE_BUFFER_DYNAMIC || kind == Type::STORAGE_TEXEL_BUFFER
}

/// The bytes of a buffer from `start` on: `range`, or all that are left.
fn of_buffer(
    state: &DeviceState,
    kind: Type,
    buffer: vk::Buffer,
    start: u64,
    range: u64,
) -> Result<Source, Broken> {
    let name = state.name(buffer);
    let mut bytes = state.buffer_bytes(buffer).map_err(|reason| {
        let text = format!("{name}, which it describes, is {reason:?}");
        ("SUBLET-descriptor-destroyed", text)
    })?;
    let size = state.buffers.get(&buffer).map_or(0, |buffer| buffer.description.size);
    let left = size.saturating_sub(start);
    let len = if range == vk::WHOLE_SIZE { left } else { range };
    if len > left {
        let text = format!("{len} bytes from {start} on, and {name} has {size}");
        return Err(("SUBLET-descriptor-range", text));
    }
    bytes.offset += start;
    Ok(Source::Bytes { bytes, len, writable: is_writable(kind) })
}

fn image(
    device: &Device,
    state: &DeviceState,
    view: vk::ImageView,
    sampler: vk::Sampler,
) -> Result<Found, Broken> {
    let gone = |name: String, fate: &str| Err(("SUBLET-descriptor-destroyed", format!("{name} {fate}")));
    if !sampler.is_null() && !state.descriptors.samplers.contains_key(&sampler) {
        return gone(state.name(sampler), device.hub.fate(sampler));
    }
    if !view.is_null() {
        let Some(found) = state.image_views.get(&view) else {
            return gone(state.name(view), device.hub.fate(view));
        };
        let of = vk::Image::from_raw(found.of);
        if let Err(reason) = state.image_bytes(of) {
            return gone(state.name(of), &format!("is {reason:?}"));
        }
    }
    Ok(Found::Image { view, sampler })
}

/// What a set at an address in a descriptor buffer has.
fn in_memory(
    device: &Device,
    state: &DeviceState,
    address: u64,
    layout: &SetLayout,
    (binding, shape, element): (u32, &Binding, u32),
) -> Result<Found, Broken> {
    let limits = descriptor_buffer::limits(device);
    let places = SetPlaces::of(&limits, layout);
    let bytes_of = BindingShape::new(&limits, binding, shape);
    let parts = places.element(&limits, &bytes_of, element).ok_or_else(unwritten)?;
    let mut meanings = Vec::new();
    for (offset, size) in parts {
        let from = address.saturating_add(offset);
        let Some(found) = state.locate(from, vk::BufferUsageFlags::empty()) else {
            let text = format!("no descriptor buffer lies at the address {from:#x} any more");
            return Err(("SUBLET-descriptor-destroyed", text));
        };
        if found.left < widen(size) {
            let text = format!("the {size} bytes at {from:#x} are not all in {}", state.name(found.buffer));
            return Err(("SUBLET-descriptor-range", text));
        }
        if shape.kind == Type::INLINE_UNIFORM_BLOCK {
            let source = Source::Bytes { bytes: found.bytes, len: widen(size), writable: false };
            return Ok(Found::Buffer(source));
        }
        let mut bytes = vec![0; size];
        if !found.bytes.store.read(found.bytes.offset, &mut bytes) {
            return Err((
                "SUBLET-transfer-failed",
                "the descriptor buffer has no bytes behind it".to_owned(),
            ));
        }
        meanings.push(decode(state, shape, &limits, &bytes, from)?);
    }
    match meanings.as_slice() {
        [Meaning::Image { kind, view, .. }, Meaning::Sampler(sampler)] => {
            check_type(shape, *kind)?;
            image(device, state, *view, *sampler)
        }
        [Meaning::Image { kind, view, sampler }] => {
            check_type(shape, *kind)?;
            image(device, state, *view, *sampler)
        }
        [Meaning::Sampler(sampler)] => {
            check_type(shape, Type::SAMPLER)?;
            image(device, state, vk::ImageView::null(), *sampler)
        }
        [Meaning::Buffer { kind, address, range }] => {
            check_type(shape, *kind)?;
            at_address(state, *kind, *address, *range).map(Found::Buffer)
        }
        _ => {
            let text = "it holds what no shader of the simulated device can use".to_owned();
            Err(("SUBLET-descriptor-type", text))
        }
    }
}

/// What the bytes of a descriptor mean.
fn decode(
    state: &DeviceState,
    shape: &Binding,
    limits: &crate::device::sim::profiles::DescriptorBufferLimits,
    bytes: &[u8],
    from: u64,
) -> Result<Meaning, Broken> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Err(unwritten());
    }
    // Where a binding may have several types, a descriptor may be shorter than the room that it has.
    let mut sizes: Vec<_> = shape.mutable.iter().filter_map(|&kind| limits.size(kind)).collect();
    sizes.push(bytes.len());
    let found = sizes.into_iter().find_map(|size| state.descriptor_bytes.decode(bytes.get(..size)?));
    found.ok_or_else(|| {
        let text = format!("the {} bytes at {from:#x} are no descriptor: {bytes:02x?}", bytes.len());
        ("SUBLET-descriptor-garbage", text)
    })
}

/// The bytes that a buffer's descriptor in memory describes.
fn at_address(state: &DeviceState, kind: Type, address: u64, range: u64) -> Result<Source, Broken> {
    let gone = |text| Err(("SUBLET-descriptor-destroyed", text));
    let Some(found) = state.locate(address, vk::BufferUsageFlags::empty()) else {
        return gone(format!("the buffer at {address:#x}, which it describes, is destroyed"));
    };
    if found.left < range {
        let name = state.name(found.buffer);
        let text =
            format!("it describes {range} bytes at {address:#x}, and of {name} {} are left", found.left);
        return gone(text);
    }
    Ok(Source::Bytes { bytes: found.bytes, len: range, writable: is_writable(kind) })
}
