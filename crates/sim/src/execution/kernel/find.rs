//! Finds what a descriptor describes, in a set, among push descriptors or in a descriptor buffer.

use ash::vk;
use ash::vk::DescriptorType as Type;
use ash::vk::Handle as _;

use super::buffer::BufferBytes;
use super::image::Texels;
use crate::facts::arithmetic::{index, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::objects::commands::bindings::SetOrPush;
use crate::objects::descriptors::LayoutBinding;
use crate::objects::descriptors::contents::SimulatedDescriptor;
use crate::objects::heaps::SamplerState;
use crate::objects::kernels::Kernel;
use crate::objects::state::{DeviceObject, DeviceState};
use crate::pipelines::descriptor_heap::{HeapDescriptor, HeapView, ShaderDescriptorKind};
use crate::pipelines::{descriptor_buffer, descriptor_heap};

/// The resource of a descriptor.
pub(crate) enum DescriptorResource {
    Buffer(BufferBytes),
    /// A handle that the type lacks is NULL.
    Image {
        view: vk::ImageView,
        sampler: vk::Sampler,
        texels: Option<Texels>,
    },
    /// In a heap there are neither views nor samplers.
    HeapImage(vk::Image),
    HeapSampler(SamplerState),
}

/// Looks up a heap, by offset or by the pipeline's mappings.
pub(crate) fn in_heap(
    kernel: &Kernel<'_>,
    look: impl FnOnce(&HeapView<'_>) -> Result<HeapDescriptor, Broken>,
) -> Result<DescriptorResource, Broken> {
    let Some(limits) = crate::memory::usage::heap_limits(kernel.device) else {
        let text = "the device has no heaps, or has not enabled them".to_owned();
        return Err(("VUID-vkCmdDispatch-None-11308", text));
    };
    let state = kernel.device.state.lock();
    let bindings = kernel.bindings;
    let push = |offset, size| bindings.push_data(offset, size);
    let view = HeapView { device: kernel.device, state: &state, limits, heaps: bindings.heaps, push: &push };
    match look(&view)? {
        HeapDescriptor::Buffer { kind, buffer, offset, range } => {
            of_buffer(&state, kind, buffer, offset, range).map(DescriptorResource::Buffer)
        }
        HeapDescriptor::Bytes { bytes, len, writable } => {
            Ok(DescriptorResource::Buffer(BufferBytes::Bytes { bytes, len, writable, of: None }))
        }
        HeapDescriptor::Data(bytes) => Ok(DescriptorResource::Buffer(BufferBytes::Inline(bytes))),
        HeapDescriptor::Image(image) => Ok(DescriptorResource::HeapImage(image.image)),
        HeapDescriptor::Sampler(sampler) => Ok(DescriptorResource::HeapSampler(sampler)),
    }
}

/// Looks up a set's number, a binding and an element.
pub(crate) fn find(
    kernel: &Kernel<'_>,
    at: (u32, u32, u32),
    asked: ShaderDescriptorKind,
) -> Result<DescriptorResource, Broken> {
    let (number, binding, element) = at;
    let (program, bindings, point) = (kernel.program, kernel.bindings, kernel.program.point());
    if let Some(mappings) = &kernel.shader.heap {
        return in_heap(kernel, |view| descriptor_heap::mapped(view, mappings, at, asked));
    }
    let layout = program.layout.set(number);
    let known = layout.and_then(|layout| Some((layout, layout.bindings.get(&binding)?)));
    let Some((layout, shape)) = known else {
        return Err(("SUBLET-descriptor-binding", "the pipeline's layout has no such binding".to_owned()));
    };
    let elements = if shape.kind == Type::INLINE_UNIFORM_BLOCK { 1 } else { shape.count };
    refuse_if!(element >= elements => "SUBLET-descriptor-binding", "the binding has {elements} elements");
    let state = kernel.device.state.lock();
    let found = match bindings.bound(point, &program.layout, number) {
        None => {
            let text =
                "nothing is bound there with a layout that is compatible with the pipeline's".to_owned();
            return Err((kernel.rule("None-08600"), text));
        }
        Some(SetOrPush::Set { .. }) if program.descriptor_buffer => {
            let text = "a set is bound, and the pipeline was created with DESCRIPTOR_BUFFER".to_owned();
            return Err((kernel.rule("None-08115"), text));
        }
        Some(SetOrPush::At(_)) if !program.descriptor_buffer => {
            let text = "it is in a descriptor buffer, and the pipeline was created without DESCRIPTOR_BUFFER";
            return Err((kernel.rule("None-08117"), text.to_owned()));
        }
        Some(&SetOrPush::At(address)) => {
            let limits = crate::memory::usage::buffer_limits(kernel.device);
            let at = (binding, shape, element);
            if shape.kind == Type::INLINE_UNIFORM_BLOCK {
                let mut parts = descriptor_buffer::parts(&limits, &state, address, layout, at)?;
                let (bytes, size) = parts.pop().ok_or_else(unwritten)?;
                return Ok(DescriptorResource::Buffer(BufferBytes::Bytes {
                    bytes,
                    len: widen(size),
                    writable: false,
                    of: None,
                }));
            }
            (descriptor_buffer::descriptor(&limits, &state, address, layout, at)?, 0)
        }
        Some(SetOrPush::Set { .. } | SetOrPush::Pushed(_)) if shape.kind == Type::INLINE_UNIFORM_BLOCK => {
            let written = bindings.inline(&state.descriptors, point, &program.layout, (number, binding));
            let mut bytes = written.ok_or_else(unwritten)?.to_vec();
            bytes.resize(index(shape.count), 0);
            return Ok(DescriptorResource::Buffer(BufferBytes::Inline(bytes)));
        }
        Some(SetOrPush::Set { .. } | SetOrPush::Pushed(_)) => {
            bindings.descriptor(&state.descriptors, point, &program.layout, at).ok_or_else(unwritten)?
        }
    };
    let (descriptor, dynamic) = found;
    check_type(shape, descriptor.kind())?;
    match descriptor {
        SimulatedDescriptor::Buffer { kind, buffer, offset, range } => {
            let start = offset.saturating_add(dynamic);
            of_buffer(&state, kind, buffer, start, range).map(DescriptorResource::Buffer)
        }
        SimulatedDescriptor::Texels { kind, view } => {
            let Some(found) = state.buffer_views.get(&view) else {
                let text = format!("{} {}", state.name(view), kernel.device.gpu_state.fate(view));
                return Err(("SUBLET-descriptor-destroyed", text));
            };
            of_buffer(&state, kind, found.buffer, found.start, found.size).map(DescriptorResource::Buffer)
        }
        SimulatedDescriptor::Image { kind, view, sampler, layout } => {
            image(kernel.device, &state, view, sampler)?;
            let texels = Texels::new(&state, kind, view, layout);
            Ok(DescriptorResource::Image { view, sampler, texels })
        }
    }
}

fn unwritten() -> Broken {
    ("SUBLET-descriptor-unwritten", "nothing was written there".to_owned())
}

/// Checks whether a binding may have a descriptor of this type.
fn check_type(shape: &LayoutBinding, kind: Type) -> Result<(), Broken> {
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
) -> Result<BufferBytes, Broken> {
    let name = state.name(buffer);
    let mut bytes = state.buffer_bytes(buffer).map_err(|reason| {
        let text = format!("{name}, which it describes, is {reason:?}");
        ("SUBLET-descriptor-destroyed", text)
    })?;
    let size = state.buffers.get(&buffer).map_or(0, |buffer| buffer.description.size);
    let left = size.saturating_sub(start);
    let len = if range == vk::WHOLE_SIZE { left } else { range };
    refuse_if!(len > left => "SUBLET-descriptor-range", "{len} bytes from {start} on, and {name} has {size}");
    bytes.offset += start;
    Ok(BufferBytes::Bytes { bytes, len, writable: is_writable(kind), of: Some((buffer, start)) })
}

/// Checks whether what a descriptor of an image or a sampler names is there.
fn image(
    device: &DeviceObject,
    state: &DeviceState,
    view: vk::ImageView,
    sampler: vk::Sampler,
) -> Result<(), Broken> {
    let gone = |name: String, fate: &str| Err(("SUBLET-descriptor-destroyed", format!("{name} {fate}")));
    if !sampler.is_null() && !state.descriptors.samplers.contains_key(&sampler) {
        return gone(state.name(sampler), device.gpu_state.fate(sampler));
    }
    if !view.is_null() {
        let Some(found) = state.image_views.get(&view) else {
            return gone(state.name(view), device.gpu_state.fate(view));
        };
        let of = found.image;
        if let Err(reason) = state.image_bytes(of) {
            return gone(state.name(of), &format!("is {reason:?}"));
        }
    }
    Ok(())
}
