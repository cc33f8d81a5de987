//! Shaders as Rust closures: what a dispatch or a draw does, and what it finds through its descriptors.
//!
//! A test registers a closure for the name of an entry point, [`Gpu::set_kernel`]. When the queue reaches a dispatch
//! it calls the closure once, for all workgroups together, with a [`Kernel`]; at a draw that of each shader of the
//! pipeline, in the order of their stages. Descriptors are looked up when the closure asks for them: as with shaders,
//! descriptors that it does not use need not be there.

mod buffer;
mod draw;
mod find;
mod image;
mod run;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;
use parking_lot::RwLock;

use super::Gpu;
use super::commands::{Bindings, Layouts};
use super::describe::Broken;
use super::descriptor_heap::{self, Asked};
use super::hazards::Actor;
use super::pipeline::{Program, Shader};
use super::state::Device;
use crate::arithmetic::narrow;

use buffer::BufferBytes;
pub use buffer::KernelBuffer;
use draw::Drawn;
pub use draw::KernelDraw;
use find::Found;
pub use image::KernelImage;
pub(super) use run::{Groups, draw, start};

/// What a shader does.
type Closure = dyn Fn(&mut Kernel<'_>) + Send + Sync;

/// What shaders do, by the names of their entry points.
#[derive(Default)]
pub(super) struct Kernels(RwLock<BTreeMap<String, Arc<Closure>>>);

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl Kernels {
    fn get(&self, entry_point: &str) -> Option<Arc<Closure>> {
        self.0.read().get(entry_point).cloned()
    }
}

impl Gpu {
    /// Sets what shaders with this entry point do, from the next dispatch or draw that runs. Only the name of the entry
    /// point and the layout of a pipeline count: any SPIR-V serves as a module.
    ///
    /// A dispatch or a draw of which an entry point has no closure is reported as `SUBLET-no-kernel`, and a closure
    /// that panics as `SUBLET-kernel-panicked`.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, Kernel, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.set_kernel("triple", |kernel: &mut Kernel<'_>| {
    ///     let mut address = [0; 8];
    ///     kernel.read_push_constants(0, &mut address);
    ///     let numbers = kernel.memory(u64::from_le_bytes(address));
    ///     for group in 0..kernel.groups()[0] {
    ///         let at = u64::from(group) * 4;
    ///         numbers.write_u32(at, numbers.read_u32(at) * 3);
    ///     }
    /// });
    /// # let device = gpu.device();
    /// # let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    /// # let info = vk::BufferCreateInfo::default().size(64).usage(usage);
    /// # let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
    /// # let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    /// # let info = vk::MemoryAllocateInfo::default().allocation_size(64).push_next(&mut flags);
    /// # let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
    /// # unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
    /// # let address = unsafe { device.get_buffer_device_address(&vk::BufferDeviceAddressInfo::default().buffer(buffer)) };
    /// # let code = [0x0723_0203];
    /// # let module = unsafe { device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&code), None) }.unwrap();
    /// # let ranges = [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 8 }];
    /// # let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
    /// # let layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
    /// let stage = vk::PipelineShaderStageCreateInfo::default()
    ///     .stage(vk::ShaderStageFlags::COMPUTE)
    ///     .module(module)
    ///     .name(c"triple");
    /// let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
    /// let pipelines = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) }.unwrap();
    /// # let info = vk::CommandPoolCreateInfo::default();
    /// # let pool = unsafe { device.create_command_pool(&info, None) }.unwrap();
    /// # let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    /// # let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    /// # unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    /// let (point, stage) = (vk::PipelineBindPoint::COMPUTE, vk::ShaderStageFlags::COMPUTE);
    /// unsafe { device.cmd_bind_pipeline(commands[0], point, pipelines[0]) };
    /// unsafe { device.cmd_push_constants(commands[0], layout, stage, 0, &address.to_le_bytes()) };
    /// unsafe { device.cmd_dispatch(commands[0], 2, 1, 1) };
    /// # unsafe { device.end_command_buffer(commands[0]) }.unwrap();
    /// unsafe { gpu.write_memory(memory, 0, &[5, 0, 0, 0, 7, 0, 0, 0]) };
    /// # let work = [vk::SubmitInfo::default().command_buffers(&commands)];
    /// unsafe { device.queue_submit(gpu.queue(), &work, vk::Fence::null()) }.unwrap();
    /// assert_eq!(unsafe { gpu.read_memory(memory, 0, 8) }.unwrap(), [15, 0, 0, 0, 21, 0, 0, 0]);
    /// # unsafe { device.destroy_command_pool(pool, None) };
    /// # unsafe { device.destroy_pipeline(pipelines[0], None) };
    /// # unsafe { device.destroy_pipeline_layout(layout, None) };
    /// # unsafe { device.destroy_shader_module(module, None) };
    /// # unsafe { device.destroy_buffer(buffer, None) };
    /// # unsafe { device.free_memory(memory, None) };
    /// assert!(gpu.finish().is_empty());
    /// ```
    pub fn set_kernel(&self, entry_point: &str, kernel: impl Fn(&mut Kernel<'_>) + Send + Sync + 'static) {
        self.hub().kernels.0.write().insert(entry_point.to_owned(), Arc::new(kernel));
    }
}

/// One dispatch or draw, as the closure that stands for its shader sees it. See [`Gpu::set_kernel`].
///
/// A wrong descriptor is reported, and reads through it give zeroes. In a draw `vkCmdDraw` takes the place of
/// `vkCmdDispatch`, but for what concerns heaps:
///
/// | report | meaning |
/// |---|---|
/// | `VUID-vkCmdDispatch-None-08600` | nothing is bound at the set's number, or with a layout that is not compatible |
/// | `VUID-vkCmdDispatch-None-08115`, `VUID-vkCmdDispatch-None-08117` | a set is bound, and the pipeline is for descriptor buffers, or the other way round |
/// | `VUID-vkCmdDispatch-None-11308`, `VUID-vkCmdDispatch-None-11309` | no heap is bound, or the descriptor is outside of it or in its reserved range |
/// | `VUID-VkComputePipelineCreateInfo-flags-11312` | the pipeline has no mapping for the binding |
/// | `SUBLET-descriptor-binding` | the pipeline's layout has no such binding or element |
/// | `SUBLET-descriptor-unwritten` | nothing was written there |
/// | `SUBLET-descriptor-garbage` | the bytes in the descriptor buffer are no descriptor |
/// | `SUBLET-descriptor-type` | the descriptor is of another type than the binding, or than what is asked for |
/// | `SUBLET-descriptor-destroyed` | what it describes is destroyed, or has no memory |
/// | `SUBLET-descriptor-range` | bytes outside of what it describes are read or written |
/// | `SUBLET-descriptor-read-only` | something is written to a uniform buffer, or to an image that is no storage image |
/// | `VUID-vkCmdDraw-None-09600` | an image is not in the layout of its descriptor |
/// | `SUBLET-address` | no buffer with a device address lies at the address |
///
/// ```
/// use sublet_sim::{Gpu, Kernel, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// // Set 0, binding 1, element 0.
/// gpu.set_kernel("clear", |kernel: &mut Kernel<'_>| {
///     let buffer = kernel.buffer(0, 1, 0);
///     buffer.write(0, &vec![0; buffer.len() as usize]);
/// });
/// ```
pub struct Kernel<'a> {
    device: &'a Device,
    program: &'a Program,
    shader: &'a Shader,
    bindings: &'a Bindings,
    layouts: Layouts,
    groups: [u32; 3],
    /// What is drawn, if anything is.
    drawn: Option<Drawn<'a>>,
    /// Whose accesses it has, if hazards are looked for.
    actor: Option<Actor>,
}

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

    /// What is drawn; `None` in a dispatch.
    pub fn draw(&self) -> Option<KernelDraw<'a>> {
        let drawn = self.drawn?;
        Some(KernelDraw {
            device: self.device,
            entry_point: self.entry_point(),
            drawn,
            layouts: Arc::clone(&self.layouts),
        })
    }

    /// One of two rules: the command's own.
    fn rule(&self, dispatches: &'static str, draws: &'static str) -> &'static str {
        if self.drawn.is_some() { draws } else { dispatches }
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
        let (found, rule) = if self.shader.heap.is_some() {
            let rule = self.rule("VUID-vkCmdDispatch-None-11376", "VUID-vkCmdDraw-None-11376");
            (self.bindings.push_data(offset, size), rule)
        } else {
            let found = self.bindings.push_constants(&self.program.layout, offset, size);
            let rule =
                self.rule("VUID-vkCmdDispatch-maintenance4-08602", "VUID-vkCmdDraw-maintenance4-08602");
            (found, rule)
        };
        match found {
            Some(bytes) => to.copy_from_slice(bytes),
            None => {
                to.fill(0);
                let text =
                    format!("{size} push constants from {offset} on are read, and not all were pushed");
                self.report(rule, &text);
            }
        }
    }

    /// The buffer of a descriptor: a uniform or storage buffer, a texel buffer, or an inline uniform block. The
    /// descriptor may be in a bound set (its dynamic offset is added), among push descriptors, in a descriptor buffer,
    /// or where the mappings of a pipeline with heaps say. A mapping may also lead to data without a descriptor.
    pub fn buffer(&self, set: u32, binding: u32, element: u32) -> KernelBuffer<'a> {
        let name = place(set, binding, element);
        let found = find::find(self, (set, binding, element), Asked::Buffer);
        self.buffer_of(name, found)
    }

    fn buffer_of(&self, name: String, found: Result<Found, Broken>) -> KernelBuffer<'a> {
        let source = match found {
            Ok(Found::Buffer(source)) => source,
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
        let found = find::find(self, (set, binding, element), Asked::Image);
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
        let found = find::find(self, (set, binding, element), Asked::Sampler);
        self.heap_sampler_of(&place(set, binding, element), found)
    }

    fn heap_image_of(&self, name: &str, found: Result<Found, Broken>) -> vk::Image {
        match found {
            Ok(Found::HeapImage(image)) => return image,
            Ok(_) => self.report("SUBLET-descriptor-type", &format!("{name} has no image of a heap")),
            Err((rule, text)) => self.report(rule, &format!("{name}: {text}")),
        }
        vk::Image::null()
    }

    fn heap_sampler_of(
        &self,
        name: &str,
        found: Result<Found, Broken>,
    ) -> Option<vk::SamplerCreateInfo<'static>> {
        match found {
            Ok(Found::HeapSampler(sampler)) => return Some(sampler.info()),
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
        let wanted = if asked == "image" { Asked::Image } else { Asked::Sampler };
        match find::find(self, at, wanted) {
            Ok(Found::Image { view, sampler, .. }) => {
                let there = if asked == "image" { !view.is_null() } else { !sampler.is_null() };
                if there {
                    return (view, sampler);
                }
                self.report("SUBLET-descriptor-type", &format!("{name} has no {asked}"));
            }
            Ok(Found::Buffer(_)) => {
                self.report("SUBLET-descriptor-type", &format!("{name} has no {asked}, but a buffer"));
            }
            Ok(Found::HeapImage(_) | Found::HeapSampler(_)) => {
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
        let source = match find::find(self, (set, binding, element), Asked::Image) {
            Ok(Found::Image { texels: Some(texels), .. }) => Some(texels),
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
