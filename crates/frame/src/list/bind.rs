//! Pipelines, and descriptors with the uses that they mean.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use sublet::Allocator;
use sublet::descriptor::{
    BindPoint, Binder, BindlessHeap, BufferDescriptor, Descriptor, DescriptorKind, ImageDescriptor,
    StageError,
};
use sublet::upload::AllocatorRef;

use super::bound::{INDICES, Slot, Target, VERTICES};
use super::error::{check_multiple, check_range};
use super::{CommandList, ListError, PipelineLayout, buffers, part};
use crate::device::binds_buffers;
use crate::resource::{Buffer, Image, ViewInfo};
use crate::track::{ImageId, ResourceId, Subresources, Use, UseError};

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

const READ_ONLY: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;

/// The stages at which pipelines of a bind point use a binding, as barriers name them; none if its stages are all those
/// of other pipelines.
fn stages_of(stages: vk::ShaderStageFlags, point: BindPoint) -> vk::PipelineStageFlags2 {
    use vk::PipelineStageFlags2 as Stages;
    const NAMES: [(vk::ShaderStageFlags, Stages); 7] = [
        (vk::ShaderStageFlags::VERTEX, Stages::VERTEX_SHADER),
        (vk::ShaderStageFlags::TESSELLATION_CONTROL, Stages::TESSELLATION_CONTROL_SHADER),
        (vk::ShaderStageFlags::TESSELLATION_EVALUATION, Stages::TESSELLATION_EVALUATION_SHADER),
        (vk::ShaderStageFlags::GEOMETRY, Stages::GEOMETRY_SHADER),
        (vk::ShaderStageFlags::FRAGMENT, Stages::FRAGMENT_SHADER),
        (vk::ShaderStageFlags::TASK_EXT, Stages::TASK_SHADER_EXT),
        (vk::ShaderStageFlags::MESH_EXT, Stages::MESH_SHADER_EXT),
    ];
    const RAYS: vk::ShaderStageFlags = vk::ShaderStageFlags::from_raw(
        vk::ShaderStageFlags::RAYGEN_KHR.as_raw()
            | vk::ShaderStageFlags::ANY_HIT_KHR.as_raw()
            | vk::ShaderStageFlags::CLOSEST_HIT_KHR.as_raw()
            | vk::ShaderStageFlags::MISS_KHR.as_raw()
            | vk::ShaderStageFlags::INTERSECTION_KHR.as_raw()
            | vk::ShaderStageFlags::CALLABLE_KHR.as_raw(),
    );
    let others = RAYS | vk::ShaderStageFlags::COMPUTE;
    match point {
        BindPoint::Compute if stages.contains(vk::ShaderStageFlags::COMPUTE) => Stages::COMPUTE_SHADER,
        BindPoint::RayTracing if stages.intersects(RAYS) => Stages::RAY_TRACING_SHADER_KHR,
        BindPoint::Compute | BindPoint::RayTracing => Stages::NONE,
        BindPoint::Graphics => {
            let named = NAMES.iter().filter(|(stage, _)| stages.contains(*stage));
            let (known, named) = named
                .fold((others, Stages::NONE), |(known, all), (stage, name)| (known | *stage, all | *name));
            // Of `ALL` and `ALL_GRAPHICS` some need features that nobody spoke of.
            let all = stages.contains(vk::ShaderStageFlags::ALL_GRAPHICS) || !known.contains(stages);
            if all { Stages::ALL_GRAPHICS } else { named }
        }
    }
}

pub(super) fn storage(stages: vk::PipelineStageFlags2, access: StorageAccess) -> Use {
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
    /// them from the next draw or dispatch on. Where the binding is dynamic, only an offset changes from one range to the
    /// next of the same size. Where descriptors are in descriptor buffers, the buffer is made with
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
        use DescriptorKind::{StorageBufferDynamic, UniformBuffer, UniformBufferDynamic};
        let uniform = [UniformBuffer, UniformBufferDynamic].contains(&kind);
        let dynamic = [StorageBufferDynamic, UniformBufferDynamic].contains(&kind);
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
        // A dynamic binding describes as many bytes from the start of the buffer on, and its offset says which are meant.
        let (start, offset) = if dynamic { (0, range.start) } else { (range.start, 0) };
        check_range("bytes in front of a dynamic binding", 0, offset + 1, 1 << 32)?;
        self.keep_buffer(buffer)?;
        let mut described = BufferDescriptor::new(buffer.handle(), start, size);
        if by_address {
            // SAFETY: the list keeps the buffer, which was made for addresses and is bound: it is not sparse.
            let address = unsafe { self.core.allocator.buffer_address(described.buffer) };
            described = address.map_or(described, |address| described.with_buffer_address(address));
        }
        let (descriptor, usage) = match (uniform, dynamic) {
            (true, false) => (Descriptor::UniformBuffer(described), Use::uniform(stages)),
            (true, true) => (Descriptor::UniformBufferDynamic(described), Use::uniform(stages)),
            (false, false) => (Descriptor::StorageBuffer(described), storage(stages, access)),
            (false, true) => (Descriptor::StorageBufferDynamic(described), storage(stages, access)),
        };
        let target = Target::Buffer(buffer.id(), range.start..end);
        self.stage(point, (set, binding, element), descriptor, Some((target, usage)))?;
        if dynamic {
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            let binder = self.core.binder(&mut self.tools.binder)?;
            binder.stage_dynamic_offset(point, set, binding, element, offset).map_err(ListError::Stage)?;
        }
        Ok(())
    }

    /// Binds an image as what the binding is: sampled with or without a sampler, storage, or input attachment. Without
    /// `view` it is the [default view](Image::view). Of depth and stencil together shaders see one: depth, unless `view`
    /// has stencil alone.
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
                let sampled = Use::sampled(stages);
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
        let both = vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL;
        let mut info = match view {
            None => image.whole().map_err(ListError::View)?,
            Some(view) => view.clone(),
        };
        if image.aspects().contains(both) && info.part.aspects.contains(both) {
            // VUID-VkDescriptorImageInfo-imageView-01976.
            info.part.aspects = vk::ImageAspectFlags::DEPTH;
        }
        // SAFETY: the caller's promise: the image can have the view, or one of all of it.
        let made = unsafe { image.view_with(&info) };
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
        let target = Target::Image(image.id(), image.tracked(&info.part));
        self.stage(point, (set, binding, element), descriptor, Some((target, usage)))
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
        self.stage(point, place, Descriptor::Sampler(sampler), None)
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
    pub unsafe fn bind_heap<A: AllocatorRef>(
        &mut self,
        point: BindPoint,
        set: u32,
        heap: &BindlessHeap<A>,
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
        self.tools.points[index(point)].forget_set(set);
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
        let size = u64::try_from(size_of::<T>()).unwrap_or(u64::MAX);
        let least = u64::try_from(align_of::<T>()).unwrap_or(u64::MAX);
        let piece = self.room(size, |alignments| alignments.uniform.max(least))?;
        let bytes = std::ptr::from_ref(value).cast::<u8>();
        // SAFETY: the piece has as many bytes, which are nobody else's, and padding is copied as it is.
        unsafe { bytes.copy_to_nonoverlapping(piece.ptr.as_ptr(), size_of::<T>()) };
        // Nothing to track: the page is the list's, and the submission makes it visible.
        let place = (set, binding, 0);
        if kind != DescriptorKind::UniformBufferDynamic {
            let address = piece.address;
            let described =
                BufferDescriptor { address, ..BufferDescriptor::new(piece.buffer, piece.offset, piece.size) };
            return self.stage(point, place, Descriptor::UniformBuffer(described), None);
        }
        let page = BufferDescriptor::new(piece.buffer, 0, piece.size);
        self.stage(point, place, Descriptor::UniformBufferDynamic(page), None)?;
        // A page is smaller than 4 GiB, or the binder refuses what is cut off.
        let offset = u32::try_from(piece.offset).unwrap_or(u32::MAX);
        let binder = self.core.binder(&mut self.tools.binder)?;
        binder.stage_dynamic_offset(point, set, binding, 0, offset).map_err(ListError::Stage)
    }

    /// `vkCmdPushConstants`. No bytes record nothing.
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
        if bytes.is_empty() {
            return Ok(());
        }
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
        self.tools.points[0].set((VERTICES, binding, 0), Some((target, Use::VERTICES)));
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
        self.tools.points[0].set((INDICES, 0, 0), Some((target, Use::INDICES)));
        Ok(())
    }

    /// The kind of a binding, and the stages at which pipelines of this bind point use it.
    pub(super) fn binding(
        &self,
        point: BindPoint,
        set: u32,
        binding: u32,
    ) -> Result<(DescriptorKind, vk::PipelineStageFlags2), ListError> {
        let layout = self.tools.points[index(point)].layout.as_ref();
        let found = layout.ok_or(ListError::NoBinding { set, binding })?.binding(set, binding)?;
        Ok((found.kind, stages_of(found.stages, point)))
    }

    /// Stages a descriptor, which takes the place of another one, with the use that it means to the binding's stages.
    pub(super) fn stage(
        &mut self,
        point: BindPoint,
        (set, binding, element): Slot,
        descriptor: Descriptor,
        usage: Option<(Target, Use)>,
    ) -> Result<(), ListError> {
        let binder = self.core.binder(&mut self.tools.binder)?;
        binder.stage(point, set, binding, element, &[descriptor]).map_err(ListError::Stage)?;
        // A set may have bindings for pipelines of another bind point.
        let usage = usage.filter(|(_, usage)| !usage.stages.is_empty());
        self.tools.points[index(point)].set((set, binding, element), usage);
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
        let (recorder, uses) = (&mut self.tools.recorder, self.tools.points[index(point)].uses());
        for (target, usage) in uses {
            let attached = |id: &ImageId, part: &Subresources| {
                self.rendering.as_ref().is_some_and(|rendering| rendering.attaches(*id, part))
            };
            let declared = match target {
                Target::Buffer(id, range) => recorder.use_buffer(*id, range.clone(), *usage),
                Target::Image(id, part) if attached(id, part) => {
                    Err(UseError::Twice { resource: ResourceId::from(*id) })
                }
                Target::Image(id, part) => recorder.use_image(*id, part, *usage),
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
