//! Shaders as Rust closures: what a dispatch or a draw does, and what it finds through its descriptors.
//!
//! A test registers a closure for the name of an entry point, [`Gpu::set_kernel`](crate::Gpu::set_kernel). When the
//! queue reaches a dispatch it calls the closure once, for all workgroups together, with a [`Kernel`]; at a draw that
//! of each shader of the pipeline, in the order of their stages. Descriptors are looked up when the closure asks for
//! them: as with shaders, descriptors that it does not use need not be there.

pub(crate) mod buffer;
pub(crate) mod draw;
pub(crate) mod find;
pub(crate) mod image;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use ash::vk;

use crate::facts::arithmetic::narrow;
use crate::facts::broken::{Broken, rule};
use crate::objects::kernels::Kernel;
use crate::pipelines::descriptor_heap;
use crate::pipelines::descriptor_heap::ShaderDescriptorKind;
use buffer::BufferBytes;
use find::DescriptorResource;

pub use buffer::KernelBuffer;
pub use draw::KernelDraw;
pub use image::KernelImage;
pub(crate) use run::{Groups, draw, start};

impl std::fmt::Debug for Kernel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("entry_point", &self.shader.entry_point)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

impl<'a> Kernel<'a> {
    /// The workgroups in each direction, none of them 0; of a draw one.
    pub fn groups(&self) -> [u32; 3] {
        self.groups
    }

    /// The name of the entry point.
    pub fn entry_point(&self) -> &'a str {
        &self.shader.entry_point
    }

    /// The stage of the shader.
    pub fn stage(&self) -> vk::ShaderStageFlags {
        self.shader.stage
    }

    /// The draw; `None` in a dispatch.
    pub fn draw(&self) -> Option<KernelDraw<'a>> {
        let drawn = self.drawn?;
        Some(KernelDraw {
            device: self.device,
            entry_point: self.entry_point(),
            drawn,
            layouts: Arc::clone(&self.layouts),
        })
    }

    /// The command's own rule.
    fn rule(&self, rest: &str) -> &'static str {
        rule(if self.drawn.is_some() { "vkCmdDraw" } else { "vkCmdDispatch" }, rest)
    }

    /// The bytes of a specialization constant; `None` if the pipeline has no value for it.
    pub fn constant(&self, number: u32) -> Option<&'a [u8]> {
        self.shader.constants.get(&number).map(Vec::as_slice)
    }

    /// Reads push constants from a byte offset on. Those that were not pushed, or with an incompatible layout, are
    /// reported (`VUID-vkCmdDispatch-maintenance4-08602`) and read as zeroes. Of a pipeline with heaps it is push data
    /// (`VUID-vkCmdDispatch-None-11376`).
    pub fn read_push_constants(&self, offset: u32, to: &mut [u8]) {
        let size = narrow(to.len());
        let (found, rest) = if self.shader.heap.is_some() {
            (self.bindings.push_data(offset, size), "None-11376")
        } else {
            (self.bindings.push_constants(&self.program.layout, offset, size), "maintenance4-08602")
        };
        match found {
            Some(bytes) => to.copy_from_slice(bytes),
            None => {
                to.fill(0);
                let text =
                    format!("{size} push constants from {offset} on are read, and not all were pushed");
                self.report(self.rule(rest), &text);
            }
        }
    }

    /// The buffer of a descriptor: a uniform or storage buffer, a texel buffer, or an inline uniform block. The
    /// descriptor may be in a bound set (its dynamic offset is added), among push descriptors, in a descriptor buffer,
    /// or where the mappings of a pipeline with heaps say. A mapping may also lead to data without a descriptor.
    pub fn buffer(&self, set: u32, binding: u32, element: u32) -> KernelBuffer<'a> {
        let name = place(set, binding, element);
        let found = find::find(self, (set, binding, element), ShaderDescriptorKind::Buffer);
        self.buffer_of(name, found)
    }

    fn buffer_of(&self, name: String, found: Result<DescriptorResource, Broken>) -> KernelBuffer<'a> {
        let source = match found {
            Ok(DescriptorResource::Buffer(source)) => source,
            Ok(_) => {
                self.report("SUBLET-descriptor-type", &format!("{name} has no buffer"));
                BufferBytes::Nothing
            }
            Err((rule, text)) => {
                self.report(rule, &format!("{name}: {text}"));
                BufferBytes::Nothing
            }
        };
        self.view(name, source)
    }

    /// The buffer of the descriptor at a byte offset of the resource heap, for shaders that are written for heaps.
    pub fn heap_buffer(&self, offset: u64) -> KernelBuffer<'a> {
        let found = find::in_heap(self, |view| descriptor_heap::at_offset(view, false, offset));
        self.buffer_of(format!("resource heap, offset {offset}"), found)
    }

    /// The image of the descriptor at a byte offset of the resource heap. NULL if the descriptor is reported.
    pub fn heap_image(&self, offset: u64) -> vk::Image {
        let found = find::in_heap(self, |view| descriptor_heap::at_offset(view, false, offset));
        self.heap_image_of(&format!("resource heap, offset {offset}"), found)
    }

    /// The sampler at a byte offset of the sampler heap: what it was written from, without its chain. `None` if the
    /// descriptor is reported.
    pub fn heap_sampler(&self, offset: u64) -> Option<vk::SamplerCreateInfo<'static>> {
        let found = find::in_heap(self, |view| descriptor_heap::at_offset(view, true, offset));
        self.heap_sampler_of(&format!("sampler heap, offset {offset}"), found)
    }

    /// The image that the mappings of a pipeline with heaps give a binding. Heaps have no views: this is
    /// [`image`](Self::image) for them. NULL if the descriptor is reported.
    pub fn mapped_image(&self, set: u32, binding: u32, element: u32) -> vk::Image {
        let found = find::find(self, (set, binding, element), ShaderDescriptorKind::Image);
        self.heap_image_of(&place(set, binding, element), found)
    }

    /// The sampler that the mappings of a pipeline with heaps give a binding: one of the heap, or an embedded one.
    /// `None` if the descriptor is reported.
    pub fn mapped_sampler(
        &self,
        set: u32,
        binding: u32,
        element: u32,
    ) -> Option<vk::SamplerCreateInfo<'static>> {
        let found = find::find(self, (set, binding, element), ShaderDescriptorKind::Sampler);
        self.heap_sampler_of(&place(set, binding, element), found)
    }

    fn heap_image_of(&self, name: &str, found: Result<DescriptorResource, Broken>) -> vk::Image {
        match found {
            Ok(DescriptorResource::HeapImage(image)) => return image,
            Ok(_) => self.report("SUBLET-descriptor-type", &format!("{name} has no image of a heap")),
            Err((rule, text)) => self.report(rule, &format!("{name}: {text}")),
        }
        vk::Image::null()
    }

    fn heap_sampler_of(
        &self,
        name: &str,
        found: Result<DescriptorResource, Broken>,
    ) -> Option<vk::SamplerCreateInfo<'static>> {
        match found {
            Ok(DescriptorResource::HeapSampler(sampler)) => return Some(sampler.info()),
            Ok(_) => self.report("SUBLET-descriptor-type", &format!("{name} has no sampler of a heap")),
            Err((rule, text)) => self.report(rule, &format!("{name}: {text}")),
        }
        None
    }

    /// The image of a descriptor: a sampled or storage image, alone or with a sampler, or an input attachment. NULL if
    /// the descriptor is reported.
    pub fn image(&self, set: u32, binding: u32, element: u32) -> vk::ImageView {
        self.image_and_sampler((set, binding, element), "image").0
    }

    /// The sampler of a descriptor. NULL if the descriptor is reported.
    pub fn sampler(&self, set: u32, binding: u32, element: u32) -> vk::Sampler {
        self.image_and_sampler((set, binding, element), "sampler").1
    }

    fn image_and_sampler(&self, at: (u32, u32, u32), asked: &str) -> (vk::ImageView, vk::Sampler) {
        use vk::Handle as _;
        let name = place(at.0, at.1, at.2);
        let wanted =
            if asked == "image" { ShaderDescriptorKind::Image } else { ShaderDescriptorKind::Sampler };
        match find::find(self, at, wanted) {
            Ok(DescriptorResource::Image { view, sampler, .. }) => {
                let there = if asked == "image" { !view.is_null() } else { !sampler.is_null() };
                if there {
                    return (view, sampler);
                }
                self.report("SUBLET-descriptor-type", &format!("{name} has no {asked}"));
            }
            Ok(DescriptorResource::Buffer(_)) => {
                self.report("SUBLET-descriptor-type", &format!("{name} has no {asked}, but a buffer"));
            }
            Ok(DescriptorResource::HeapImage(_) | DescriptorResource::HeapSampler(_)) => {
                let text = format!("{name} is of a heap, where there are no handles: Kernel::mapped_{asked}");
                self.report("SUBLET-descriptor-type", &text);
            }
            Err((rule, text)) => self.report(rule, &format!("{name}: {text}")),
        }
        (vk::ImageView::null(), vk::Sampler::null())
    }

    /// The texels of the image of a descriptor, as [`image`](Self::image) finds it.
    pub fn texels(&self, set: u32, binding: u32, element: u32) -> KernelImage<'a> {
        let name = place(set, binding, element);
        let source = match find::find(self, (set, binding, element), ShaderDescriptorKind::Image) {
            Ok(DescriptorResource::Image { texels: Some(texels), .. }) => Some(texels),
            Ok(_) => {
                self.report("SUBLET-descriptor-type", &format!("{name} has no image with a view"));
                None
            }
            Err((rule, text)) => {
                self.report(rule, &format!("{name}: {text}"));
                None
            }
        };
        let (device, layouts) = (self.device, Arc::clone(&self.layouts));
        let actor = self.actor.map(|actor| (actor, self.shader.stage));
        KernelImage { device, entry_point: self.entry_point(), name, source, layouts, actor }
    }

    /// The bytes from a device address to the end of the buffer there.
    pub fn memory(&self, address: u64) -> KernelBuffer<'a> {
        let name = format!("address {address:#x}");
        let found = self.device.state.lock().locate(address, vk::BufferUsageFlags::empty());
        let source = match found {
            Some(found) => {
                BufferBytes::Bytes { bytes: found.bytes, len: found.left, writable: true, of: None }
            }
            None => {
                let text = format!("no buffer with SHADER_DEVICE_ADDRESS lies at the {name}");
                self.report("SUBLET-address", &text);
                BufferBytes::Nothing
            }
        };
        self.view(name, source)
    }

    fn view(&self, name: String, source: BufferBytes) -> KernelBuffer<'a> {
        let actor = self.actor.map(|actor| (actor, self.shader.stage));
        KernelBuffer { device: self.device, entry_point: self.entry_point(), name, source, actor }
    }

    fn report(&self, rule: &'static str, text: &str) {
        self.device.report(rule, format!("{}: {text}", self.shader.entry_point));
    }
}

/// How messages call a descriptor.
fn place(set: u32, binding: u32, element: u32) -> String {
    format!("set {set}, binding {binding}, element {element}")
}
