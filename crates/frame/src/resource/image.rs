//! Images with shared ownership, and their views.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::fmt;
use std::sync::{Arc, Weak};

use ash::vk;
use sublet::device::DriverError;
use sublet::{Allocation, AllocationCreateInfo, CreateError, Move};

use super::body::{Body, CurrentBody, DebugName, ImageClass};
use super::buffer::{families, may_move};
use super::format::{is_converted, planes};
use super::memory::{Movable, ResourceMemory};
use super::{CreateResourceError, SharedMemory, ViewError, format_aspects, format_layout};
use crate::device::DeviceCore;
use crate::track::{ImageId, ImageInfo, MemoryRange, Subresources};

/// Usages that permit views.
const VIEWED: vk::ImageUsageFlags = vk::ImageUsageFlags::from_raw(
    vk::ImageUsageFlags::SAMPLED.as_raw()
        | vk::ImageUsageFlags::STORAGE.as_raw()
        | vk::ImageUsageFlags::COLOR_ATTACHMENT.as_raw()
        | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT.as_raw()
        | vk::ImageUsageFlags::TRANSIENT_ATTACHMENT.as_raw()
        | vk::ImageUsageFlags::INPUT_ATTACHMENT.as_raw()
        | vk::ImageUsageFlags::FRAGMENT_SHADING_RATE_ATTACHMENT_KHR.as_raw()
        | vk::ImageUsageFlags::FRAGMENT_DENSITY_MAP_EXT.as_raw(),
);

/// Parameters of an image view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ViewInfo {
    /// The view type.
    pub view_type: vk::ImageViewType,
    /// The format of the view.
    pub format: vk::Format,
    /// Mips, layers and aspects. Subresources that the image does not have are left out. For a two-dimensional view of
    /// a three-dimensional image, layers are its slices.
    pub part: Subresources,
}

pub(crate) struct ImageInner {
    core: Arc<DeviceCore>,
    facts: ImageFacts,
    /// The families that share it; empty with exclusive sharing mode.
    families: Box<[u32]>,
    current: CurrentBody<ImageClass>,
    name: DebugName,
}

/// An image that may have been destroyed.
pub(crate) struct WeakImage(Weak<ImageInner>);

impl WeakImage {
    pub(crate) fn upgrade(&self) -> Option<Image> {
        self.0.upgrade().map(Image)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageFacts {
    pub(crate) flags: vk::ImageCreateFlags,
    pub(crate) image_type: vk::ImageType,
    pub(crate) format: vk::Format,
    pub(crate) extent: vk::Extent3D,
    pub(crate) mips: u32,
    pub(crate) layers: u32,
    pub(crate) samples: vk::SampleCountFlags,
    pub(crate) tiling: vk::ImageTiling,
    pub(crate) usage: vk::ImageUsageFlags,
    pub(crate) aspects: vk::ImageAspectFlags,
    sharing_mode: vk::SharingMode,
    initial_layout: vk::ImageLayout,
}

impl ImageFacts {
    fn of(info: &vk::ImageCreateInfo<'_>) -> Self {
        Self {
            flags: info.flags,
            image_type: info.image_type,
            format: info.format,
            extent: info.extent,
            mips: info.mip_levels,
            layers: info.array_layers,
            samples: info.samples,
            tiling: info.tiling,
            usage: info.usage,
            aspects: format_aspects(info.format),
            sharing_mode: info.sharing_mode,
            initial_layout: info.initial_layout,
        }
    }

    pub(crate) fn is_concurrent(&self) -> bool {
        self.sharing_mode == vk::SharingMode::CONCURRENT
    }

    /// Returns true if an equal image can be created and filled by a copy.
    fn may_move(&self, info: &vk::ImageCreateInfo<'_>) -> bool {
        let copied = vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
        let stays = vk::ImageCreateFlags::SPARSE_BINDING
            | vk::ImageCreateFlags::PROTECTED
            | vk::ImageCreateFlags::DISJOINT
            | vk::ImageCreateFlags::ALIAS
            | vk::ImageCreateFlags::SUBSAMPLED_EXT;
        let aspect =
            vk::ImageAspectFlags::from_raw(self.aspects.as_raw() & self.aspects.as_raw().wrapping_neg());
        self.usage.contains(copied)
            && !self.flags.intersects(stays)
            && self.tiling == vk::ImageTiling::OPTIMAL
            && self.initial_layout == vk::ImageLayout::UNDEFINED
            // Multi-planar formats are copied plane by plane.
            && format_layout(self.format, aspect).is_some()
            && info.p_next.is_null()
    }

    pub(crate) fn mip_extent(&self, mip: u32) -> vk::Extent3D {
        let size = |texels: u32| texels.checked_shr(mip).unwrap_or(0).max(1);
        vk::Extent3D {
            width: size(self.extent.width),
            height: size(self.extent.height),
            depth: size(self.extent.depth),
        }
    }

    /// Returns the aspects that views and copies may name.
    pub(crate) fn all_aspects(&self) -> vk::ImageAspectFlags {
        self.aspects | planes(self.format)
    }

    /// Returns the number of layers for a view of this type from a mip on: slices for a three-dimensional image.
    pub(crate) fn layers_of(&self, view_type: vk::ImageViewType, mip: u32) -> u32 {
        let flat = view_type == vk::ImageViewType::TYPE_2D || view_type == vk::ImageViewType::TYPE_2D_ARRAY;
        let slices = flat && self.image_type == vk::ImageType::TYPE_3D;
        if slices { self.mip_extent(mip).depth } else { self.layers }
    }

    /// Converts a part of a view or copy to tracked subresources. Slices and planes have no separate state: slices
    /// share a layer, and barriers of multi-planar images name the color aspect
    /// (VUID-VkImageMemoryBarrier-image-01671).
    pub(crate) fn tracked(&self, part: &Subresources) -> Subresources {
        let mips = part.mips.start..part.mips.end.min(self.mips);
        let three = self.image_type == vk::ImageType::TYPE_3D;
        let layers = match part.layers.start {
            start if three && start < part.layers.end.min(self.mip_extent(mips.start).depth) => 0..1,
            start => start..part.layers.end.min(self.layers),
        };
        let of_planes = part.aspects.intersects(planes(self.format));
        let aspects = if of_planes { self.aspects } else { part.aspects & self.aspects };
        Subresources { mips, layers, aspects }
    }

    /// Returns the type of a view of the whole image.
    fn view_type(&self) -> vk::ImageViewType {
        let cube = self.flags.contains(vk::ImageCreateFlags::CUBE_COMPATIBLE);
        match (self.image_type, self.layers) {
            (vk::ImageType::TYPE_1D, 1) => vk::ImageViewType::TYPE_1D,
            (vk::ImageType::TYPE_1D, _) => vk::ImageViewType::TYPE_1D_ARRAY,
            (vk::ImageType::TYPE_3D, _) => vk::ImageViewType::TYPE_3D,
            (_, 1) => vk::ImageViewType::TYPE_2D,
            (_, 6) if cube => vk::ImageViewType::CUBE,
            _ => vk::ImageViewType::TYPE_2D_ARRAY,
        }
    }
}

/// An image with its memory, its views and its tracked state. Cheap to clone: a clone is the same image.
///
/// Dropping the last clone destroys the image and its views and frees its memory. Lists that use it hold a clone until
/// the device is done with them, so you may drop it at any time.
///
/// ```
/// # let (_gpu, frames) = sublet_frame::doc_example();
/// use ash::vk;
/// use sublet::{AllocationCreateInfo, MemoryUsage};
///
/// let info = vk::ImageCreateInfo::default()
///     .image_type(vk::ImageType::TYPE_2D)
///     .format(vk::Format::R8G8B8A8_UNORM)
///     .extent(vk::Extent3D { width: 256, height: 256, depth: 1 })
///     .mip_levels(9)
///     .array_layers(1)
///     .samples(vk::SampleCountFlags::TYPE_1)
///     .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST);
/// // SAFETY: the create-info is valid.
/// let image = unsafe { frames.create_image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
/// assert_eq!(image.view()?, image.view()?); // created once
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Image(Arc<ImageInner>);

impl Image {
    /// # Safety
    /// `info` is valid for the device.
    #[track_caller]
    pub(crate) unsafe fn create(
        core: &Arc<DeviceCore>,
        info: &vk::ImageCreateInfo<'_>,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<Self, CreateError> {
        // SAFETY: the caller's promise.
        let (handle, made) = unsafe { core.allocator.create_image(info, allocation) }?;
        let movable = ImageFacts::of(info).may_move(info) && may_move(allocation, &made);
        // SAFETY: as above.
        Ok(unsafe { Self::register(core, handle, info, ResourceMemory::own(made, movable)) })
    }

    /// # Safety
    /// `info` is valid for the device, and the memory is not dedicated to another resource.
    pub(crate) unsafe fn create_in(
        core: &Arc<DeviceCore>,
        memory: &SharedMemory,
        offset: u64,
        info: &vk::ImageCreateInfo<'_>,
    ) -> Result<Self, CreateResourceError> {
        if !memory.belongs_to(core) {
            return Err(CreateResourceError::OtherFrames);
        }
        let allocation = memory.allocation();
        // SAFETY: the caller's promise; lists declare their uses, and the tracker orders aliased resources.
        let handle = unsafe { core.allocator.create_aliasing_image(allocation, offset, info) }?;
        // SAFETY: the image was just created.
        let size = unsafe { core.api.device().get_image_memory_requirements(handle) }.size;
        let range = MemoryRange { memory: allocation.memory(), offset: allocation.offset() + offset, size };
        // SAFETY: the caller's promise.
        Ok(unsafe {
            Self::register(core, handle, info, ResourceMemory::Shared { memory: memory.clone(), range })
        })
    }

    /// Wraps an image without ownership.
    ///
    /// # Safety
    /// It was created from `info`, which is valid, and outlives all clones.
    pub(crate) unsafe fn import(
        core: &Arc<DeviceCore>,
        handle: vk::Image,
        info: &vk::ImageCreateInfo<'_>,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::register(core, handle, info, ResourceMemory::Foreign) }
    }

    /// # Safety
    /// `info` is valid.
    unsafe fn register(
        core: &Arc<DeviceCore>,
        handle: vk::Image,
        info: &vk::ImageCreateInfo<'_>,
        memory: ResourceMemory,
    ) -> Self {
        let facts = ImageFacts::of(info);
        let (mode, first) = (info.sharing_mode, info.p_queue_family_indices);
        // SAFETY: the caller's promise.
        let families = unsafe { families(mode, first, info.queue_family_index_count) };
        let current = CurrentBody::new(Self::body(core, handle, &facts, memory));
        let image = Self(Arc::new(ImageInner {
            core: Arc::clone(core),
            facts,
            families,
            current,
            name: DebugName::default(),
        }));
        if let Some(id) = image.0.current.movable_memory().and_then(|memory| memory.id()) {
            core.movables.insert(id, Movable::Image(WeakImage(Arc::downgrade(&image.0))));
        }
        image
    }

    fn body(
        core: &Arc<DeviceCore>,
        handle: vk::Image,
        facts: &ImageFacts,
        memory: ResourceMemory,
    ) -> Body<ImageClass> {
        let known = ImageInfo {
            aspects: facts.aspects,
            mips: facts.mips,
            layers: facts.layers,
            initial_layout: facts.initial_layout,
            aspects_apart: core.aspects_apart,
            concurrent: facts.is_concurrent(),
            memory_range: memory.shared_range(),
            ..ImageInfo::new(handle)
        };
        let id = core.global.lock().add_image(&known);
        Body::new(core, handle, id, memory)
    }

    /// Returns the current handle. A move by a [`Compactor`](crate::Compactor) changes it and all views.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::Image {
        self.0.current.handle()
    }

    /// Returns its id in the tracker, which changes together with [`handle`](Self::handle).
    #[inline]
    #[must_use]
    pub fn id(&self) -> ImageId {
        self.0.current.id()
    }

    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> vk::Format {
        self.0.facts.format
    }

    /// Returns the extent of a mip in texels.
    pub fn extent(&self, mip: u32) -> vk::Extent3D {
        self.0.facts.mip_extent(mip)
    }

    /// Returns the number of mip levels.
    #[must_use]
    pub fn mips(&self) -> u32 {
        self.0.facts.mips
    }

    /// Returns the number of array layers.
    #[must_use]
    pub fn layers(&self) -> u32 {
        self.0.facts.layers
    }

    /// Returns all aspects of the format.
    #[must_use]
    pub fn aspects(&self) -> vk::ImageAspectFlags {
        self.0.facts.aspects
    }

    /// Returns its memory; `None` if it is imported or [movable](Self::is_movable).
    #[must_use]
    pub fn allocation(&self) -> Option<&Allocation> {
        self.0.current.allocation()
    }

    /// Returns its current memory range; `None` if it is imported.
    #[must_use]
    pub fn memory_range(&self) -> Option<MemoryRange> {
        self.0.current.memory_range()
    }

    /// Returns true if a [`Compactor`](crate::Compactor) may move it.
    #[must_use]
    pub fn is_movable(&self) -> bool {
        self.0.current.is_free()
    }

    /// Pins or unpins the image; see [`Buffer::pin`](crate::Buffer::pin).
    pub fn pin(&self, pinned: bool) {
        self.0.current.pin(&self.0.core, pinned);
    }

    /// Returns a view of the whole image, created on first use and destroyed with the image.
    ///
    /// # Errors
    /// See [`ViewError`].
    #[doc(alias = "GetShaderResourceView")]
    #[doc(alias = "GetRenderTargetView")]
    pub fn view(&self) -> Result<vk::ImageView, ViewError> {
        let info = self.whole()?;
        // SAFETY: the type and the format are the image's, and the part is all of it.
        unsafe { self.view_with(&info) }
    }

    pub(crate) fn whole(&self) -> Result<ViewInfo, ViewError> {
        let ImageFacts { format, usage, .. } = self.0.facts;
        if usage.contains(vk::ImageUsageFlags::SAMPLED) && is_converted(format) {
            return Err(ViewError::Conversion { format });
        }
        Ok(ViewInfo { view_type: self.0.facts.view_type(), format, part: Subresources::ALL })
    }

    /// Returns a view with these parameters, created on first use and destroyed with the image.
    ///
    /// # Errors
    /// See [`ViewError`].
    ///
    /// # Safety
    /// The type, flags and format of the image permit such a view (VUID-VkImageViewCreateInfo-image-01003 and those
    /// that follow).
    pub unsafe fn view_with(&self, info: &ViewInfo) -> Result<vk::ImageView, ViewError> {
        loop {
            // SAFETY: the caller's own promise.
            if let Some(view) = self.0.current.with(|body| unsafe { self.view_of(body, info) })? {
                return Ok(view);
            }
            self.0.core.wait_for_moves();
        }
    }

    /// Returns a view of one of the image's bodies; `None` if that body has handed over its views.
    ///
    /// # Safety
    /// See [`view_with`](Self::view_with). The body belongs to this image.
    pub(crate) unsafe fn view_of(
        &self,
        body: &Body<ImageClass>,
        info: &ViewInfo,
    ) -> Result<Option<vk::ImageView>, ViewError> {
        let ImageFacts { usage, mips, .. } = self.0.facts;
        let (asked, has) = (&info.part, self.0.facts.all_aspects());
        let layers = self.0.facts.layers_of(info.view_type, asked.mips.start);
        for (what, range, size) in [("mips", &asked.mips, mips), ("layers", &asked.layers, layers)] {
            if range.start >= range.end.min(size) {
                return Err(ViewError::OutOfRange { what, start: range.start, end: range.end, size });
            }
        }
        // A view of a whole multi-planar image uses the color aspect.
        let aspects = asked.aspects & self.0.facts.aspects;
        let aspects = if aspects.is_empty() { asked.aspects & has } else { aspects };
        if aspects.is_empty() {
            return Err(ViewError::Aspects { asked: asked.aspects, has });
        }
        let part = Subresources {
            mips: asked.mips.start..asked.mips.end.min(mips),
            layers: asked.layers.start..asked.layers.end.min(layers),
            aspects,
        };
        let info = ViewInfo { part, ..*info };
        let mut views = body.views.lock();
        if let Some((_, view)) = views.made.iter().find(|(known, _)| *known == info) {
            return Ok(Some(*view));
        }
        if views.handed_over {
            return Ok(None);
        }
        if !usage.intersects(VIEWED) {
            return Err(ViewError::Usage { usage });
        }
        let range = vk::ImageSubresourceRange {
            aspect_mask: info.part.aspects,
            base_mip_level: info.part.mips.start,
            level_count: info.part.mips.end.saturating_sub(info.part.mips.start),
            base_array_layer: info.part.layers.start,
            layer_count: info.part.layers.end.saturating_sub(info.part.layers.start),
        };
        let create_info = vk::ImageViewCreateInfo::default()
            .image(body.handle)
            .view_type(info.view_type)
            .format(info.format)
            .subresource_range(range);
        // SAFETY: the image is live, and the caller promises that it can have such a view.
        let made = unsafe { self.0.core.api.device().create_image_view(&create_info, None) };
        let view = made.map_err(|result| {
            self.0.core.or_lost(ViewError::Driver(DriverError { call: "vkCreateImageView", result }))
        })?;
        views.made.push((info, view));
        Ok(Some(view))
    }

    /// Sets a debug name for tools such as RenderDoc and validation layers. The name survives moves by a
    /// [`Compactor`](crate::Compactor). Without [`Features::debug_utils`](crate::Features::debug_utils), the driver
    /// does not get it.
    ///
    /// Subscribers of a compactor must not call this function: it would deadlock.
    ///
    /// # Errors
    /// [`DriverError`] if the driver call fails; the name stays unchanged.
    #[doc(alias = "vkSetDebugUtilsObjectNameEXT")]
    #[doc(alias = "SetName")]
    pub fn set_name(&self, name: &str) -> Result<(), DriverError> {
        self.0.name.set(&self.0.core, &self.0.current, name)
    }

    /// Returns its [debug name](Self::set_name).
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.0.name.get()
    }

    /// Creates an equal body at the destination of a move; see `Buffer::begin_move`.
    pub(crate) fn begin_move(&self, moved: Move<'static>) -> Result<Option<Body<ImageClass>>, CreateError> {
        let ImageInner { core, facts, families, current, name } = &*self.0;
        let Some(memory) = current.movable_memory() else { return Ok(None) };
        let info = vk::ImageCreateInfo::default()
            .flags(facts.flags)
            .image_type(facts.image_type)
            .format(facts.format)
            .extent(facts.extent)
            .mip_levels(facts.mips)
            .array_layers(facts.layers)
            .samples(facts.samples)
            .tiling(facts.tiling)
            .usage(facts.usage)
            .sharing_mode(facts.sharing_mode)
            .queue_family_indices(families)
            .initial_layout(facts.initial_layout);
        // SAFETY: the image was created from this info. `MovableMemory` ensures that the new image is destroyed before
        // a rollback.
        let handle = unsafe { moved.create_image(&info) }?;
        name.pass_on(core, handle);
        memory.begin_move(moved, vk::Handle::as_raw(handle));
        Ok(Some(Self::body(core, handle, facts, ResourceMemory::Movable(Arc::clone(memory)))))
    }

    pub(crate) fn facts(&self) -> &ImageFacts {
        &self.0.facts
    }

    /// See [`ImageFacts::tracked`].
    pub(crate) fn tracked(&self, part: &Subresources) -> Subresources {
        self.0.facts.tracked(part)
    }

    pub(crate) fn current(&self) -> &CurrentBody<ImageClass> {
        &self.0.current
    }

    pub(crate) fn core(&self) -> &Arc<DeviceCore> {
        &self.0.core
    }
}

impl PartialEq for Image {
    /// Returns true if both are the same image.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Image {}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ImageFacts { format, extent, mips, layers, .. } = &self.0.facts;
        f.debug_struct("Image")
            .field("handle", &self.handle())
            .field("format", format)
            .field("extent", extent)
            .field("mips", mips)
            .field("layers", layers)
            .finish_non_exhaustive()
    }
}
