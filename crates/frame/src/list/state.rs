//! Dynamic state of graphics pipelines. It stays set until the end of the list, also within [`raw`](CommandList::raw).
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::error::check_range;
use super::{CommandList, ListError};

/// The viewport, the depth range and the scissor.
///
/// ```
/// use ash::vk;
/// use sublet_frame::ViewportInfo;
///
/// let area = vk::Rect2D { extent: vk::Extent2D { width: 64, height: 64 }, ..Default::default() };
/// // Flipped as in OpenGL and Direct3D, with reversed depth, and drawing only the left half.
/// let left = vk::Rect2D { extent: vk::Extent2D { width: 32, height: 64 }, ..area };
/// let viewport = ViewportInfo {
///     flip: true,
///     min_depth: 1.0,
///     max_depth: 0.0,
///     scissor: Some(left),
///     ..ViewportInfo::new(area)
/// };
/// # assert!(viewport.flip);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ViewportInfo {
    /// The area that normalized device coordinates map to.
    pub area: vk::Rect2D,
    /// Flips the viewport: `y` points up.
    pub flip: bool,
    /// The depth, from 0 to 1, that a normalized depth of 0 maps to.
    pub min_depth: f32,
    /// The depth, from 0 to 1, that a normalized depth of 1 maps to.
    pub max_depth: f32,
    /// The scissor; `None` for the area.
    pub scissor: Option<vk::Rect2D>,
}

impl ViewportInfo {
    /// Creates a viewport with depths from 0 to 1, whose scissor is the area.
    #[must_use]
    pub const fn new(area: vk::Rect2D) -> Self {
        Self { area, flip: false, min_depth: 0.0, max_depth: 1.0, scissor: None }
    }
}

impl From<vk::Rect2D> for ViewportInfo {
    fn from(area: vk::Rect2D) -> Self {
        Self::new(area)
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "at most `maxViewportDimensions`, which a float represents"
)]
fn float(texels: u32) -> f32 {
    texels as f32
}

/// Dynamic state (`VkPipelineDynamicStateCreateInfo`). Each call is recorded immediately and applies to all later
/// draws.
impl CommandList {
    /// `vkCmdSetViewport` and `vkCmdSetScissor` of one viewport: an area, or a [`ViewportInfo`].
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_frame::ViewportInfo;
    /// # let (_, mut frames) = sublet_frame::doc_example();
    /// frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// let area = vk::Rect2D { extent: vk::Extent2D { width: 64, height: 64 }, ..Default::default() };
    /// list.set_viewport(area)?;
    /// list.set_viewport(ViewportInfo { flip: true, max_depth: 0.5, ..ViewportInfo::new(area) })?;
    /// # drop(list);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ListError::Queue`] without graphics support; [`ListError::OutOfRange`] for an area or scissor that is empty or
    /// starts below 0; [`ListError::DepthRange`]; [`ListError::NotEnabled`] for a flipped viewport on Vulkan 1.0
    /// without [`Features::maintenance1`](crate::Features::maintenance1). Nothing was recorded.
    #[doc(alias = "RSSetViewports")]
    #[doc(alias = "RSSetScissorRects")]
    pub fn set_viewport(&mut self, viewport: impl Into<ViewportInfo>) -> Result<(), ListError> {
        let ViewportInfo { area, flip, min_depth, max_depth, scissor } = viewport.into();
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        let limits = self.core.allocator.physical_device_properties().limits.max_viewport_dimensions;
        let [width, height] = limits.map(u64::from);
        check_area(["columns of a viewport", "rows of a viewport"], area, [width, height])?;
        let scissor = scissor.unwrap_or(area);
        // The scissor may exceed the attachments.
        check_area(["columns of a scissor", "rows of a scissor"], scissor, [u64::from(u32::MAX >> 1); 2])?;
        let unit = 0.0..=1.0;
        if !unit.contains(&min_depth) || !unit.contains(&max_depth) {
            return Err(ListError::DepthRange { min: min_depth, max: max_depth });
        }
        if flip && !self.core.api.flips_viewports() {
            return Err(ListError::NotEnabled { feature: "VK_KHR_maintenance1" });
        }
        let (y, rows) = (float(area.offset.y.unsigned_abs()), float(area.extent.height));
        let viewport = vk::Viewport {
            x: float(area.offset.x.unsigned_abs()),
            y: if flip { y + rows } else { y },
            width: float(area.extent.width),
            height: if flip { -rows } else { rows },
            min_depth,
            max_depth,
        };
        let (device, main) = (self.core.api.device(), self.pool.main);
        // SAFETY: the list is being recorded for a graphics queue, and the viewport is within the limits of the device.
        unsafe { device.cmd_set_viewport(main, 0, &[viewport]) };
        // SAFETY: as above; the offsets are not negative, and the ends fit an `i32`.
        unsafe { device.cmd_set_scissor(main, 0, &[scissor]) };
        Ok(())
    }

    /// `vkCmdSetDepthBias`.
    ///
    /// # Errors
    /// [`ListError::Queue`] without graphics support; [`ListError::NotEnabled`] if `clamp` is not 0 without
    /// [`Features::depth_bias_clamp`](crate::Features::depth_bias_clamp). Nothing was recorded.
    pub fn set_depth_bias(&mut self, constant: f32, clamp: f32, slope: f32) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        if clamp != 0.0 && !self.core.api.clamps_depth_bias() {
            return Err(ListError::NotEnabled { feature: "depthBiasClamp" });
        }
        // SAFETY: the list is being recorded for a graphics queue, and the clamp is enabled or 0.
        unsafe { self.core.api.device().cmd_set_depth_bias(self.pool.main, constant, clamp, slope) };
        Ok(())
    }

    /// `vkCmdSetCullMode`.
    ///
    /// # Errors
    /// [`ListError::Queue`] without graphics support; [`ListError::NotEnabled`] before Vulkan 1.3 without
    /// [`Features::extended_dynamic_state`](crate::Features::extended_dynamic_state). Nothing was recorded.
    #[doc(alias = "RSSetState")]
    pub fn set_cull_mode(&mut self, mode: vk::CullModeFlags) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        // SAFETY: the list is being recorded for a graphics queue.
        let set = unsafe { self.core.api.set_cull_mode(self.pool.main, mode) };
        set.ok_or(ListError::NotEnabled { feature: "extendedDynamicState" })
    }

    /// `vkCmdSetFrontFace`.
    ///
    /// # Errors
    /// See [`set_cull_mode`](Self::set_cull_mode).
    pub fn set_front_face(&mut self, face: vk::FrontFace) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        // SAFETY: the list is being recorded for a graphics queue.
        let set = unsafe { self.core.api.set_front_face(self.pool.main, face) };
        set.ok_or(ListError::NotEnabled { feature: "extendedDynamicState" })
    }

    /// `vkCmdSetStencilReference` for the front face, the back face, or both.
    ///
    /// # Errors
    /// [`ListError::Queue`] without graphics support; [`ListError::OutOfRange`] without a face. Nothing was recorded.
    #[doc(alias = "OMSetStencilRef")]
    pub fn set_stencil_reference(
        &mut self,
        faces: vk::StencilFaceFlags,
        reference: u32,
    ) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        let given = faces & vk::StencilFaceFlags::FRONT_AND_BACK;
        check_range("faces", 0, given.as_raw().count_ones().into(), 2)?;
        // SAFETY: the list is being recorded for a graphics queue, with at least one face.
        unsafe { self.core.api.device().cmd_set_stencil_reference(self.pool.main, given, reference) };
        Ok(())
    }

    /// `vkCmdSetBlendConstants`.
    ///
    /// # Errors
    /// [`ListError::Queue`] without graphics support. Nothing was recorded.
    #[doc(alias = "OMSetBlendFactor")]
    pub fn set_blend_constants(&mut self, constants: [f32; 4]) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        // SAFETY: the list is being recorded for a graphics queue.
        unsafe { self.core.api.device().cmd_set_blend_constants(self.pool.main, &constants) };
        Ok(())
    }
}

fn check_area(what: [&'static str; 2], area: vk::Rect2D, most: [u64; 2]) -> Result<(), ListError> {
    let vk::Rect2D { offset, extent } = area;
    for (what, start, size, most) in
        [(what[0], offset.x, extent.width, most[0]), (what[1], offset.y, extent.height, most[1])]
    {
        let start = u64::try_from(start).unwrap_or(u64::MAX);
        check_range(what, start, start.saturating_add(size.into()), most)?;
    }
    Ok(())
}
