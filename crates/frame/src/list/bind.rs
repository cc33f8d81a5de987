//! Binding of pipelines and descriptors, with the resource uses that they imply.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use sublet::Allocator;
use sublet::upload::AllocatorRef;
use sublet_descriptors::{
    BindPoint, Binder, BindlessHeap, BufferDescriptor, Descriptor, DescriptorKind, ImageDescriptor,
    StageError,
};

use super::bound::{BindingSlot, BindingTarget, INDICES, VERTICES};
use super::error::{check_multiple, check_range};
use super::{CommandList, ListError, PipelineLayout, buffers, part};
use crate::device::binds_buffers;
use crate::resource::{Buffer, Image, ViewInfo};
use crate::track::{ImageId, ResourceId, Subresources, Use, UseError};

/// The access of shaders to a storage buffer or image. Ignored for read-only descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StorageAccess {
    /// Reads only.
    Read,
    /// Writes only. Unwritten parts keep their contents.
    Write,
    /// Reads and writes.
    #[default]
    ReadWrite,
}

const READ_ONLY: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;

/// Returns the pipeline stages at which pipelines of a bind point use a binding. Empty if its shader stages belong to
/// other pipelines.
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
            // `ALL` and `ALL_GRAPHICS` include stages whose features may not be enabled.
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

fn index(point: BindPoint) -> usize {
    match point {
        BindPoint::Graphics => 0,
        BindPoint::Compute => 1,
        BindPoint::RayTracing => 2,
    }
}

impl CommandList {
    /// `vkCmdBindPipeline`. Bindings of sets that are identical in the new layout stay bound.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    ///
    /// # Safety
    /// Pipeline and layout live until the list is done, and match each other and the bind point. The queue supports the
    /// bind point.
    #[doc(alias = "SetPipelineState")]
    #[doc(alias = "SetGraphicsRootSignature")]
    pub unsafe fn bind_pipeline(
        &mut self,
        point: BindPoint,
        pipeline: vk::Pipeline,
        layout: &PipelineLayout,
    ) -> Result<(), ListError> {
        let binder = self.core.binder(&mut self.context.binder)?;
        binder.set_layout(point, &layout.info).map_err(ListError::Layout)?;
        let bound = &mut self.context.points[index(point)];
        bound.set_layout(layout);
        bound.pipeline = pipeline;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded; the caller guarantees the pipeline.
        unsafe { device.cmd_bind_pipeline(self.pool.main, point.to_vk(), pipeline) };
        Ok(())
    }

    /// Binds bytes of a buffer as a uniform or storage buffer, depending on the binding. The stages of the binding use
    /// them from the next draw or dispatch on. With a dynamic binding, ranges of equal size in one buffer share one
    /// descriptor set. With descriptor buffers, the buffer needs the usage `SHADER_DEVICE_ADDRESS`.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was changed.
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
        // For bindings of other kinds, the binder returns an error.
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
        // A dynamic binding describes the first `size` bytes of the buffer; the dynamic offset selects the range.
        let (start, offset) = if dynamic { (0, range.start) } else { (range.start, 0) };
        check_range("bytes in front of a dynamic binding", 0, offset + 1, 1 << 32)?;
        self.keep_buffer(buffer)?;
        let mut described = BufferDescriptor::new(buffer.handle(), start, size);
        if by_address {
            // SAFETY: the list keeps the buffer, which has the address usage and is bound: it is not sparse.
            let address = unsafe { self.core.allocator.buffer_address(described.buffer) };
            described = address.map_or(described, |address| described.with_buffer_address(address));
        }
        let (descriptor, usage) = match (uniform, dynamic) {
            (true, false) => (Descriptor::UniformBuffer(described), Use::uniform(stages)),
            (true, true) => (Descriptor::UniformBufferDynamic(described), Use::uniform(stages)),
            (false, false) => (Descriptor::StorageBuffer(described), storage(stages, access)),
            (false, true) => (Descriptor::StorageBufferDynamic(described), storage(stages, access)),
        };
        let target = BindingTarget::Buffer(buffer.id(), range.start..end);
        self.stage(point, (set, binding, element), descriptor, Some((target, usage)))?;
        if dynamic {
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            let binder = self.core.binder(&mut self.context.binder)?;
            binder.stage_dynamic_offset(point, set, binding, element, offset).map_err(ListError::Stage)?;
        }
        Ok(())
    }

    /// Binds an image as sampled image, with or without a sampler, storage image or input attachment, depending on the
    /// binding. The default for `view` is [`Image::view`]. If the image has depth and stencil, shaders read depth,
    /// unless `view` has only stencil.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was changed.
    ///
    /// # Safety
    /// The sampler lives until the list is done, or is null if the binding needs none. The image supports the view, and
    /// the view matches the shader.
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
            // The layout that also permits a read-only depth attachment.
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
        // SAFETY: the caller guarantees that the image supports the view; the default view is always valid.
        let made = unsafe { image.view_with(&info) };
        let described = ImageDescriptor::new(
            made.map_err(|error| self.core.or_lost(ListError::View(error)))?,
            usage.layout,
        );
        let descriptor = match kind {
            DescriptorKind::CombinedImageSampler => {
                Descriptor::CombinedImageSampler { sampler, image: described }
            }
            DescriptorKind::StorageImage => Descriptor::StorageImage(described),
            DescriptorKind::InputAttachment => Descriptor::InputAttachment(described),
            _ => Descriptor::SampledImage(described),
        };
        let target = BindingTarget::Image(image.id(), image.tracked(&info.part));
        self.stage(point, (set, binding, element), descriptor, Some((target, usage)))
    }

    /// Binds a sampler.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was changed.
    ///
    /// # Safety
    /// The sampler lives until the list is done.
    pub unsafe fn bind_sampler(
        &mut self,
        point: BindPoint,
        slot: (u32, u32, u32),
        sampler: vk::Sampler,
    ) -> Result<(), ListError> {
        self.binding(point, slot.0, slot.1)?;
        self.stage(point, slot, Descriptor::Sampler(sampler), None)
    }

    /// Binds a descriptor set of the program, for example of a heap, instead of descriptors of the list.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was changed.
    ///
    /// # Safety
    /// The set lives until the list is done and matches the layout. Its resources are declared before each draw or
    /// dispatch that uses it, or [frozen](crate::Frames::freeze), and live as long.
    pub unsafe fn bind_set(
        &mut self,
        point: BindPoint,
        set: u32,
        handle: vk::DescriptorSet,
    ) -> Result<(), ListError> {
        self.bind_given(point, set, |binder| binder.stage_set(point, set, handle))
    }

    /// Binds the set or descriptor buffer of a heap, instead of descriptors of the list. `frame` is the argument of
    /// [`flush`](BindlessHeap::flush), for example [`Frames::slot`](crate::Frames::slot).
    ///
    /// A heap in a descriptor buffer is bound beside the list's own descriptors. Bind all heaps of a list before its
    /// first draw or dispatch: the list rebinds everything for a heap that is bound later.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was changed.
    ///
    /// # Safety
    /// The heap lives until the list is done, its layout is this set of the pipeline layout, and it was flushed for the
    /// frame. Resources that shaders access through it are declared before each draw or dispatch
    /// ([`use_buffer`](Self::use_buffer), [`use_image`](Self::use_image)), or [frozen](crate::Frames::freeze), and live
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
        let binder = self.core.binder(&mut self.context.binder)?;
        stage(binder).map_err(ListError::Stage)?;
        self.context.points[index(point)].forget_set(set);
        Ok(())
    }

    /// Writes a value to upload memory and binds it as a uniform buffer for the next draws or dispatches. With a
    /// dynamic binding, values of equal size in one page share one descriptor set.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was changed.
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
        let piece = self.allocate_upload(size, |alignments| alignments.uniform.max(least))?;
        let bytes = std::ptr::from_ref(value).cast::<u8>();
        // SAFETY: the upload has this many bytes for this list alone; padding is copied too.
        unsafe { bytes.copy_to_nonoverlapping(piece.ptr.as_ptr(), size_of::<T>()) };
        // No tracking is needed: the page belongs to the list, and submission flushes it.
        let slot = (set, binding, 0);
        if kind != DescriptorKind::UniformBufferDynamic {
            let address = piece.address;
            let described =
                BufferDescriptor { address, ..BufferDescriptor::new(piece.buffer, piece.offset, piece.size) };
            return self.stage(point, slot, Descriptor::UniformBuffer(described), None);
        }
        let page = BufferDescriptor::new(piece.buffer, 0, piece.size);
        self.stage(point, slot, Descriptor::UniformBufferDynamic(page), None)?;
        // Pages are smaller than 4 GiB; otherwise the binder rejects the truncated offset.
        let offset = u32::try_from(piece.offset).unwrap_or(u32::MAX);
        let binder = self.core.binder(&mut self.context.binder)?;
        binder.stage_dynamic_offset(point, set, binding, 0, offset).map_err(ListError::Stage)
    }

    /// `vkCmdPushConstants`. Records nothing if `bytes` is empty.
    ///
    /// # Errors
    /// [`ListError::NoBinding`] if no pipeline is bound; [`ListError::Misaligned`] if offset or length is not a
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
        let layout = self.context.points[index(point)].layout.as_ref();
        let layout = layout.ok_or(ListError::NoBinding { set: 0, binding: 0 })?.handle();
        check_multiple("the offset", offset.into(), 4)?;
        check_multiple("the number of bytes", u64::try_from(bytes.len()).unwrap_or(u64::MAX), 4)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let device = self.core.api.device();
        // SAFETY: the list is being recorded; the caller guarantees the range.
        unsafe { device.cmd_push_constants(self.pool.main, layout, stages, offset, bytes) };
        Ok(())
    }

    /// `vkCmdBindVertexBuffers` of one buffer, from `offset` to its end. Requires a graphics queue.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
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
        // SAFETY: the list is being recorded for a graphics queue, and keeps the buffer; usage and offset were checked.
        unsafe { device.cmd_bind_vertex_buffers(self.pool.main, binding, &[buffer.handle()], &[offset]) };
        let target = BindingTarget::Buffer(buffer.id(), offset..buffer.size());
        self.context.points[0].set((VERTICES, binding, 0), Some((target, Use::VERTICES)));
        Ok(())
    }

    /// `vkCmdBindIndexBuffer`, from `offset` to its end, with indices of 32 bits if `wide`, else 16. Requires a
    /// graphics queue.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    #[doc(alias = "IASetIndexBuffer")]
    pub fn bind_index_buffer(&mut self, buffer: &Buffer, offset: u64, wide: bool) -> Result<(), ListError> {
        let (kind, size) = if wide { (vk::IndexType::UINT32, 4) } else { (vk::IndexType::UINT16, 2) };
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        buffers::needs(buffer, vk::BufferUsageFlags::INDEX_BUFFER)?;
        check_range("bytes", offset, buffer.size(), buffer.size())?;
        check_multiple("the offset", offset, size)?;
        self.keep_buffer(buffer)?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded for a graphics queue, and keeps the buffer; usage and offset were checked.
        unsafe { device.cmd_bind_index_buffer(self.pool.main, buffer.handle(), offset, kind) };
        let target = BindingTarget::Buffer(buffer.id(), offset..buffer.size());
        self.context.points[0].set((INDICES, 0, 0), Some((target, Use::INDICES)));
        Ok(())
    }

    /// Returns the kind of a binding, and the stages at which pipelines of this bind point use it.
    pub(super) fn binding(
        &self,
        point: BindPoint,
        set: u32,
        binding: u32,
    ) -> Result<(DescriptorKind, vk::PipelineStageFlags2), ListError> {
        let layout = self.context.points[index(point)].layout.as_ref();
        let found = layout.ok_or(ListError::NoBinding { set, binding })?.binding(set, binding)?;
        Ok((found.kind, stages_of(found.stages, point)))
    }

    /// Stages a descriptor and the resource use that it implies, replacing the previous ones.
    pub(super) fn stage(
        &mut self,
        point: BindPoint,
        (set, binding, element): BindingSlot,
        descriptor: Descriptor,
        usage: Option<(BindingTarget, Use)>,
    ) -> Result<(), ListError> {
        let binder = self.core.binder(&mut self.context.binder)?;
        binder.stage(point, set, binding, element, &[descriptor]).map_err(ListError::Stage)?;
        // Other bind points may use this binding.
        let usage = usage.filter(|(_, usage)| !usage.stages.is_empty());
        self.context.points[index(point)].set((set, binding, element), usage);
        Ok(())
    }

    /// Rebinds the compute pipeline and all descriptors, after the list has bound others.
    pub(super) fn rebind_compute(&mut self) {
        let pipeline = self.context.points[index(BindPoint::Compute)].pipeline;
        if pipeline != vk::Pipeline::null() {
            let (device, point) = (self.core.api.device(), BindPoint::Compute.to_vk());
            // SAFETY: the list is being recorded. The caller of `bind_pipeline` guarantees that the pipeline lives
            // until the list is done.
            unsafe { device.cmd_bind_pipeline(self.pool.main, point, pipeline) };
        }
        if let Some(binder) = &mut self.context.binder {
            binder.begin();
        }
    }

    /// Declares the bound resources, records barriers, and binds stale descriptors, before a draw or dispatch.
    pub(super) fn commit(&mut self, point: BindPoint) -> Result<(), ListError> {
        let (recorder, uses) = (&mut self.context.recorder, self.context.points[index(point)].uses());
        for (target, usage) in uses {
            let attached = |id: &ImageId, part: &Subresources| {
                self.rendering.as_ref().is_some_and(|rendering| rendering.attaches(*id, part))
            };
            let declared = match target {
                BindingTarget::Buffer(id, range) => recorder.use_buffer(*id, range.clone(), *usage),
                BindingTarget::Image(id, part) if attached(id, part) => {
                    Err(UseError::Twice { resource: ResourceId::from(*id) })
                }
                BindingTarget::Image(id, part) => recorder.use_image(*id, part, *usage),
            };
            if let Err(error) = declared {
                return Err(self.mark_broken(ListError::Use(error)));
            }
        }
        self.flush()?;
        let Some(binder) = &mut self.context.binder else { return Ok(()) };
        // SAFETY: the owner records the list, and the binder began with it. The list keeps staged resources and
        // layouts, or the callers of the bind functions guarantee them. `raw` resets the binder.
        let committed = unsafe { binder.commit(self.pool.main, point) };
        committed.map_err(|error| self.core.or_lost(ListError::Commit(error)))
    }
}
