//! Pipelines, and descriptors with the uses that they mean.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use sublet::descriptor::{
    BindPoint, Binder, BindlessHeap, BufferDescriptor, Descriptor, DescriptorKind, ImageDescriptor,
    StageError,
};
use sublet::upload::AllocatorRef;
use sublet::{Allocator, Threading};

use super::error::{check_multiple, check_range};
use super::{CommandList, ListError, PipelineLayout, buffers, part};
use crate::device::binds_buffers;
use crate::resource::{Buffer, Image, ViewInfo};
use crate::track::{BufferId, ImageId, ResourceId, Subresources, Use, UseError};

/// What shaders do with a storage buffer or image. Of no meaning for what they only read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StorageAccess {
    /// They only read.
    Read,
    /// They only write, and what they do not write stays.
    Write,
    /// They do both.
    #[default]
    ReadWrite,
}

/// What a binding is of.
#[derive(Clone, PartialEq, Debug)]
enum Target {
    Buffer(BufferId, Range<u64>),
    Image(ImageId, Subresources),
}

/// A descriptor, a vertex buffer or the index buffer that is bound.
#[derive(Clone, Debug)]
struct Bound {
    /// Set, binding, element. Vertex buffers are of the set `VERTICES`, and the index buffer of `INDICES`.
    place: (u32, u32, u32),
    target: Target,
    usage: Use,
}

const READ_ONLY: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
const VERTICES: u32 = u32::MAX;
const INDICES: u32 = u32::MAX - 1;

/// What is bound at a bind point.
#[derive(Default)]
pub(crate) struct BoundPoint {
    pipeline: vk::Pipeline,
    layout: Option<PipelineLayout>,
    bound: Vec<Bound>,
    /// The same with one use of each resource that several bindings use alike.
    merged: Vec<Bound>,
    stale: bool,
}

impl BoundPoint {
    pub(crate) fn forget(&mut self) {
        self.pipeline = vk::Pipeline::null();
        self.layout = None;
        self.bound.clear();
        self.merged.clear();
        self.stale = false;
    }

    fn set(&mut self, place: (u32, u32, u32), target: Target, usage: Use) {
        let bound = Bound { place, target, usage };
        match self.bound.iter_mut().find(|bound| bound.place == place) {
            Some(old) => *old = bound,
            None => self.bound.push(bound),
        }
        self.stale = true;
    }

    /// Keeps what the binder keeps staged.
    fn set_layout(&mut self, new: &PipelineLayout) {
        let old = self.layout.replace(new.clone());
        let keeps = |set: u32| {
            let sets = old.as_ref().and_then(|old| old.set(set)).zip(new.set(set));
            set >= INDICES || sets.is_some_and(|(old, new)| old.is_identical(new))
        };
        self.bound.retain(|bound| keeps(bound.place.0));
        self.stale = true;
    }

    /// One use of each range: two reads, or a read and a write, of the same are one use by one command.
    fn merge(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.merged.clear();
        for bound in &self.bound {
            let alike = |known: &&mut Bound| known.usage.layout == bound.usage.layout;
            match self
                .merged
                .iter_mut()
                .filter(alike)
                .find_map(|known| known.target.join(&bound.target).map(|to| (known, to)))
            {
                Some((known, target)) => {
                    known.usage = known.usage | bound.usage;
                    known.target = target;
                }
                None => self.merged.push(bound.clone()),
            }
        }
    }
}

impl Target {
    /// Both together, if they are of the same bytes or subresources in part.
    fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Buffer(one, range), Self::Buffer(two, more)) => {
                let meet = one == two && range.start < more.end && more.start < range.end;
                meet.then(|| Self::Buffer(*one, range.start.min(more.start)..range.end.max(more.end)))
            }
            (Self::Image(one, part), Self::Image(two, more)) => {
                (one == two && part == more).then(|| self.clone())
            }
            _ => None,
        }
    }
}

/// The stages of pipelines as barriers name them.
fn stages_of(stages: vk::ShaderStageFlags, point: BindPoint) -> vk::PipelineStageFlags2 {
    use vk::PipelineStageFlags2 as Stages;
    const NAMES: [(vk::ShaderStageFlags, Stages); 8] = [
        (vk::ShaderStageFlags::VERTEX, Stages::VERTEX_SHADER),
        (vk::ShaderStageFlags::TESSELLATION_CONTROL, Stages::TESSELLATION_CONTROL_SHADER),
        (vk::ShaderStageFlags::TESSELLATION_EVALUATION, Stages::TESSELLATION_EVALUATION_SHADER),
        (vk::ShaderStageFlags::GEOMETRY, Stages::GEOMETRY_SHADER),
        (vk::ShaderStageFlags::FRAGMENT, Stages::FRAGMENT_SHADER),
        (vk::ShaderStageFlags::COMPUTE, Stages::COMPUTE_SHADER),
        (vk::ShaderStageFlags::TASK_EXT, Stages::TASK_SHADER_EXT),
        (vk::ShaderStageFlags::MESH_EXT, Stages::MESH_SHADER_EXT),
    ];
    match point {
        BindPoint::Compute => return Stages::COMPUTE_SHADER,
        BindPoint::RayTracing => return Stages::RAY_TRACING_SHADER_KHR,
        BindPoint::Graphics => {}
    }
    // Of `ALL` and `ALL_GRAPHICS` some need features that nobody spoke of.
    let graphics = vk::ShaderStageFlags::ALL_GRAPHICS;
    if stages.contains(graphics) {
        return Stages::ALL_GRAPHICS;
    }
    let named =
        NAMES.iter().filter(|(stage, _)| stages.contains(*stage) && *stage != vk::ShaderStageFlags::COMPUTE);
    named.fold(Stages::NONE, |all, (_, stage)| all | *stage)
}

fn storage(stages: vk::PipelineStageFlags2, access: StorageAccess) -> Use {
    match access {
        StorageAccess::Read => Use::storage_read(stages),
        StorageAccess::Write => Use::storage_write(stages),
        StorageAccess::ReadWrite => Use::storage_read(stages) | Use::storage_write(stages),
    }
}

/// The index of a bind point.
fn index(point: BindPoint) -> usize {
    match point {
        BindPoint::Graphics => 0,
        BindPoint::Compute => 1,
        BindPoint::RayTracing => 2,
    }
}

impl CommandList {
    /// `vkCmdBindPipeline`. What is bound of sets that are the same in the new layout stays bound.
    ///
    /// # Errors
    /// [`ListError`]: nothing was recorded.
    ///
    /// # Safety
    /// Pipeline and layout are live until the list is done, and were made for one another and for this bind point,
    /// which the queue has.
    #[doc(alias = "SetPipelineState")]
    #[doc(alias = "SetGraphicsRootSignature")]
    pub unsafe fn bind_pipeline(
        &mut self,
        point: BindPoint,
        pipeline: vk::Pipeline,
        layout: &PipelineLayout,
    ) -> Result<(), ListError> {
        let binder = self.core.binder(&mut self.tools.binder)?;
        binder.set_layout(point, &layout.info).map_err(ListError::Layout)?;
        let bound = &mut self.tools.points[index(point)];
        bound.set_layout(layout);
        bound.pipeline = pipeline;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded; the pipeline is the caller's promise.
        unsafe { device.cmd_bind_pipeline(self.pool.main, point.to_vk(), pipeline) };
        Ok(())
    }

    /// Binds bytes of a buffer as a uniform or storage buffer, whatever the binding is. The stages of the binding use
    /// them from the next draw or dispatch on. Where descriptors are in descriptor buffers, the buffer is made with
    /// `SHADER_DEVICE_ADDRESS`.
    ///
    /// # Errors
    /// [`ListError`]: nothing was changed.
    #[doc(alias = "SetConstantBufferView")]
    #[doc(alias = "SetUnorderedAccessView")]
    pub fn bind_buffer(
        &mut self,
        point: BindPoint,
        (set, binding, element): (u32, u32, u32),
        buffer: &Buffer,
        range: Range<u64>,
        access: StorageAccess,
    ) -> Result<(), ListError> {
        let (kind, stages) = self.binding(point, set, binding)?;
        let end = range.end.min(buffer.size());
        check_range("bytes", range.start, end, buffer.size())?;
        let limits = &self.core.allocator.physical_device_properties().limits;
        let uniform = kind == DescriptorKind::UniformBuffer;
        // Whatever else the binding is of, it takes a storage buffer or refuses it.
        let (needs, alignment, most) = if uniform {
            let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
            (usage, limits.min_uniform_buffer_offset_alignment, limits.max_uniform_buffer_range)
        } else {
            let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
            (usage, limits.min_storage_buffer_offset_alignment, limits.max_storage_buffer_range)
        };
        let size = end - range.start;
        let by_address = binds_buffers(self.core.info.descriptors.as_ref());
        let addressed = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        buffers::needs(buffer, if by_address { needs | addressed } else { needs })?;
        check_multiple("the offset", range.start, alignment.max(1))?;
        check_range("bytes of a descriptor", 0, size, most.into())?;
        self.keep_buffer(buffer)?;
        let mut described = BufferDescriptor::new(buffer.handle(), range.start, size);
        if by_address {
            // SAFETY: the list keeps the buffer, which was made for addresses and is bound: it is not sparse.
            let address = unsafe { self.core.allocator.buffer_address(described.buffer) };
            described = address.map_or(described, |address| described.with_buffer_address(address));
        }
        let (descriptor, usage) = if uniform {
            (Descriptor::UniformBuffer(described), Use::uniform(stages))
        } else {
            (Descriptor::StorageBuffer(described), storage(stages, access))
        };
        self.stage(point, (set, binding, element), descriptor)?;
        let target = Target::Buffer(buffer.id(), range.start..end);
        self.tools.points[index(point)].set((set, binding, element), target, usage);
        Ok(())
    }

    /// Binds an image as what the binding is: sampled with or without a sampler, storage, or input attachment. Without
    /// `view` it is the [default view](Image::view).
    ///
    /// # Errors
    /// [`ListError`]: nothing was changed.
    ///
    /// # Safety
    /// The sampler is live until the list is done, or null where the binding needs none. The image can have the view,
    /// and the view fits the shader.
    #[doc(alias = "SetShaderResourceView")]
    pub unsafe fn bind_image(
        &mut self,
        point: BindPoint,
        (set, binding, element): (u32, u32, u32),
        image: &Image,
        view: Option<&ViewInfo>,
        sampler: vk::Sampler,
        access: StorageAccess,
    ) -> Result<(), ListError> {
        let (kind, stages) = self.binding(point, set, binding)?;
        let (needs, usage) = match kind {
            DescriptorKind::StorageImage => (vk::ImageUsageFlags::STORAGE, storage(stages, access)),
            DescriptorKind::InputAttachment => {
                let sampled = Use::sampled(vk::PipelineStageFlags2::FRAGMENT_SHADER);
                let usage = Use { access: vk::AccessFlags2::INPUT_ATTACHMENT_READ, ..sampled };
                (vk::ImageUsageFlags::INPUT_ATTACHMENT, usage)
            }
            _ => (vk::ImageUsageFlags::SAMPLED, Use::sampled(stages)),
        };
        let depth = vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL;
        let usage = if usage.layout == READ_ONLY && image.aspects().intersects(depth) {
            // The layout in which it can be an attachment too, that is tested and not written.
            Use { layout: vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL, ..usage }
        } else {
            usage
        };
        part::needs(image, needs)?;
        self.keep_image(image)?;
        let made = match view {
            None => image.view(),
            // SAFETY: the caller's promise: the image can have the view.
            Some(info) => unsafe { image.view_with(info) },
        };
        let described =
            ImageDescriptor::new(made.map_err(|error| self.core.told(ListError::View(error)))?, usage.layout);
        let descriptor = match kind {
            DescriptorKind::CombinedImageSampler => {
                Descriptor::CombinedImageSampler { sampler, image: described }
            }
            DescriptorKind::StorageImage => Descriptor::StorageImage(described),
            DescriptorKind::InputAttachment => Descriptor::InputAttachment(described),
            _ => Descriptor::SampledImage(described),
        };
        self.stage(point, (set, binding, element), descriptor)?;
        let part = view.map_or(Subresources::ALL, |view| view.part.clone());
        let target = Target::Image(image.id(), part);
        self.tools.points[index(point)].set((set, binding, element), target, usage);
        Ok(())
    }

    /// Binds a sampler.
    ///
    /// # Errors
    /// [`ListError`]: nothing was changed.
    ///
    /// # Safety
    /// It is live until the list is done.
    pub unsafe fn bind_sampler(
        &mut self,
        point: BindPoint,
        place: (u32, u32, u32),
        sampler: vk::Sampler,
    ) -> Result<(), ListError> {
        self.binding(point, place.0, place.1)?;
        self.stage(point, place, Descriptor::Sampler(sampler))
    }

    /// Binds a set of the program's own, of a heap for example, in place of descriptors of the list.
    ///
    /// # Errors
    /// [`ListError`]: nothing was changed.
    ///
    /// # Safety
    /// The set is live until the list is done and fits the layout; what it names is declared before each draw or
    /// dispatch that uses it, or [frozen](crate::Frames::freeze), and lives as long.
    pub unsafe fn bind_set(
        &mut self,
        point: BindPoint,
        set: u32,
        handle: vk::DescriptorSet,
    ) -> Result<(), ListError> {
        self.bind_given(point, set, |binder| binder.stage_set(point, set, handle))
    }

    /// Binds what a frame binds of a heap, a set or a descriptor buffer, in place of descriptors of the list.
    /// `frame` is that of the heap's [`flush`](BindlessHeap::flush), [`Frames::slot`](crate::Frames::slot) for example.
    ///
    /// A heap in a descriptor buffer is bound beside the list's own descriptors. Bind all heaps of a list before its first
    /// draw or dispatch: one that comes later makes the list bind all of it anew.
    ///
    /// # Errors
    /// [`ListError`]: nothing was changed.
    ///
    /// # Safety
    /// The heap is live until the list is done, has its layout as this set of the pipeline layout, and was flushed for
    /// the frame. What its slots name and shaders use is declared before each draw or dispatch
    /// ([`use_buffer`](Self::use_buffer), [`use_image`](Self::use_image)), or [frozen](crate::Frames::freeze), and lives
    /// as long.
    #[doc(alias = "SetDescriptorHeaps")]
    pub unsafe fn bind_heap<A: AllocatorRef, T: Threading>(
        &mut self,
        point: BindPoint,
        set: u32,
        heap: &BindlessHeap<A, T>,
        frame: u32,
    ) -> Result<(), ListError> {
        self.bind_given(point, set, |binder| binder.stage_heap(point, set, heap, frame))
    }

    fn bind_given(
        &mut self,
        point: BindPoint,
        set: u32,
        stage: impl FnOnce(&mut Binder<Arc<Allocator>>) -> Result<(), StageError>,
    ) -> Result<(), ListError> {
        let binder = self.core.binder(&mut self.tools.binder)?;
        stage(binder).map_err(ListError::Stage)?;
        let bound = &mut self.tools.points[index(point)];
        bound.bound.retain(|bound| bound.place.0 != set);
        bound.stale = true;
        Ok(())
    }

    /// Writes a value through the arena and binds it as a uniform buffer: constants of the next draws or dispatches.
    /// Where the binding is dynamic, only an offset changes from one value to the next.
    ///
    /// # Errors
    /// [`ListError`]: nothing was changed.
    #[doc(alias = "SetGraphicsDynamicConstantBuffer")]
    #[doc(alias = "SetDynamicConstantBufferView")]
    pub fn bind_constants<T: Copy>(
        &mut self,
        point: BindPoint,
        (set, binding): (u32, u32),
        value: &T,
    ) -> Result<(), ListError> {
        let (kind, _) = self.binding(point, set, binding)?;
        let arena = self.core.arena(&mut self.tools)?;
        let piece = arena.write_value(value, arena.alignments().uniform);
        let piece = piece.map_err(|error| self.core.told(ListError::Upload(error)))?;
        // Nothing to track: the page is the list's, and the submission makes it visible.
        let place = (set, binding, 0);
        if kind != DescriptorKind::UniformBufferDynamic {
            let address = piece.address;
            let described =
                BufferDescriptor { address, ..BufferDescriptor::new(piece.buffer, piece.offset, piece.size) };
            return self.stage(point, place, Descriptor::UniformBuffer(described));
        }
        let page = BufferDescriptor::new(piece.buffer, 0, piece.size);
        self.stage(point, place, Descriptor::UniformBufferDynamic(page))?;
        // A page is smaller than 4 GiB, or the binder refuses what is cut off.
        let offset = u32::try_from(piece.offset).unwrap_or(u32::MAX);
        let binder = self.core.binder(&mut self.tools.binder)?;
        binder.stage_dynamic_offset(point, set, binding, 0, offset).map_err(ListError::Stage)
    }

    /// `vkCmdPushConstants`.
    ///
    /// # Errors
    /// [`ListError::NoBinding`] if no pipeline is bound there; [`ListError::Misaligned`] if offset or length is no
    /// multiple of 4. Nothing was recorded.
    ///
    /// # Safety
    /// The pipeline layout has a range with these stages and bytes (VUID-vkCmdPushConstants-offset-01795, -01796).
    #[doc(alias = "SetGraphics32BitConstants")]
    pub unsafe fn push_constants(
        &mut self,
        point: BindPoint,
        stages: vk::ShaderStageFlags,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(), ListError> {
        let layout = self.tools.points[index(point)].layout.as_ref();
        let layout = layout.ok_or(ListError::NoBinding { set: 0, binding: 0 })?.handle();
        check_multiple("the offset", offset.into(), 4)?;
        check_multiple("the number of bytes", u64::try_from(bytes.len()).unwrap_or(u64::MAX), 4)?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded; the range is the caller's promise.
        unsafe { device.cmd_push_constants(self.pool.main, layout, stages, offset, bytes) };
        Ok(())
    }

    /// `vkCmdBindVertexBuffers`, of one, on a graphics queue: bytes from `offset` to its end.
    ///
    /// # Errors
    /// [`ListError`]: nothing was recorded.
    #[doc(alias = "IASetVertexBuffers")]
    pub fn bind_vertex_buffer(
        &mut self,
        binding: u32,
        buffer: &Buffer,
        offset: u64,
    ) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        buffers::needs(buffer, vk::BufferUsageFlags::VERTEX_BUFFER)?;
        let most = self.core.allocator.physical_device_properties().limits.max_vertex_input_bindings;
        check_range("vertex bindings", binding.into(), u64::from(binding) + 1, most.into())?;
        check_range("bytes", offset, buffer.size(), buffer.size())?;
        self.keep_buffer(buffer)?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded for a queue that draws, and keeps the buffer, which has usage and offset.
        unsafe { device.cmd_bind_vertex_buffers(self.pool.main, binding, &[buffer.handle()], &[offset]) };
        let target = Target::Buffer(buffer.id(), offset..buffer.size());
        self.tools.points[0].set((VERTICES, binding, 0), target, Use::VERTICES);
        Ok(())
    }

    /// `vkCmdBindIndexBuffer`, on a graphics queue: bytes from `offset` to its end, of indices of 16 or 32 bits.
    ///
    /// # Errors
    /// [`ListError`]: nothing was recorded.
    #[doc(alias = "IASetIndexBuffer")]
    pub fn bind_index_buffer(&mut self, buffer: &Buffer, offset: u64, wide: bool) -> Result<(), ListError> {
        let (kind, size) = if wide { (vk::IndexType::UINT32, 4) } else { (vk::IndexType::UINT16, 2) };
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        buffers::needs(buffer, vk::BufferUsageFlags::INDEX_BUFFER)?;
        check_range("bytes", offset, buffer.size(), buffer.size())?;
        check_multiple("the offset", offset, size)?;
        self.keep_buffer(buffer)?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded for a queue that draws, and keeps the buffer, which has usage and offset.
        unsafe { device.cmd_bind_index_buffer(self.pool.main, buffer.handle(), offset, kind) };
        let target = Target::Buffer(buffer.id(), offset..buffer.size());
        self.tools.points[0].set((INDICES, 0, 0), target, Use::INDICES);
        Ok(())
    }

    /// The kind and the stages of a binding.
    fn binding(
        &self,
        point: BindPoint,
        set: u32,
        binding: u32,
    ) -> Result<(DescriptorKind, vk::PipelineStageFlags2), ListError> {
        let layout = self.tools.points[index(point)].layout.as_ref();
        let found = layout.ok_or(ListError::NoBinding { set, binding })?.binding(set, binding)?;
        Ok((found.kind, stages_of(found.stages, point)))
    }

    fn stage(
        &mut self,
        point: BindPoint,
        (set, binding, element): (u32, u32, u32),
        descriptor: Descriptor,
    ) -> Result<(), ListError> {
        // What was there goes, also if it had a use and this has none.
        let binder = self.core.binder(&mut self.tools.binder)?;
        binder.stage(point, set, binding, element, &[descriptor]).map_err(ListError::Stage)?;
        let bound = &mut self.tools.points[index(point)];
        bound.bound.retain(|bound| bound.place != (set, binding, element));
        bound.stale = true;
        Ok(())
    }

    /// Binds the compute pipeline again, and makes all descriptors stale: the list has bound others in between.
    pub(super) fn bind_again(&mut self) {
        let pipeline = self.tools.points[index(BindPoint::Compute)].pipeline;
        if pipeline != vk::Pipeline::null() {
            let (device, point) = (self.core.api.device(), BindPoint::Compute.to_vk());
            // SAFETY: the list is being recorded; who bound it before has promised that it is live until the list is
            // done.
            unsafe { device.cmd_bind_pipeline(self.pool.main, point, pipeline) };
        }
        if let Some(binder) = &mut self.tools.binder {
            binder.begin();
        }
    }

    /// Declares what is bound, records the barriers, and binds what is stale: right before a draw or a dispatch.
    pub(super) fn commit(&mut self, point: BindPoint) -> Result<(), ListError> {
        self.tools.points[index(point)].merge();
        let (recorder, merged) = (&mut self.tools.recorder, &self.tools.points[index(point)].merged);
        for bound in merged {
            let attached = |id: &ImageId, part: &Subresources| {
                self.rendering.as_ref().is_some_and(|rendering| rendering.attaches(*id, part))
            };
            let declared = match &bound.target {
                Target::Buffer(id, range) => recorder.use_buffer(*id, range.clone(), bound.usage),
                Target::Image(id, part) if attached(id, part) => {
                    Err(UseError::Twice { resource: ResourceId::from(*id) })
                }
                Target::Image(id, part) => recorder.use_image(*id, part, bound.usage),
            };
            if let Err(error) = declared {
                return Err(self.break_off(ListError::Use(error)));
            }
        }
        self.flush()?;
        let Some(binder) = &mut self.tools.binder else { return Ok(()) };
        // SAFETY: the list is being recorded by its owner, and the binder began with it; what is staged is kept by the
        // list, or the caller's promise where it was bound, and so are the layouts; `raw` begins the binder anew.
        let committed = unsafe { binder.commit(self.pool.main, point) };
        committed.map_err(|error| self.core.told(ListError::Commit(error)))
    }
}
