//! The texels that a shader sees behind a descriptor.

use ash::vk;
use ash::vk::DescriptorType as Type;

use crate::commands::layout_name;
use crate::execution::execute::Pixels;
use crate::execution::judge;
use crate::execution::resample::Surface;
use crate::hazards::Actor;
use crate::objects::commands::ImageLayouts;
use crate::objects::commands::rendering::AttachmentTarget;
use crate::objects::state::{DeviceObject, DeviceState};

/// The part of an image that a view shows.
#[derive(Clone)]
pub(crate) struct Texels {
    by: By,
    image: vk::Image,
    /// With the counts that the image has.
    range: vk::ImageSubresourceRange,
    pixels: Pixels,
}

/// How a shader comes to an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Descriptor(Type, vk::ImageLayout),
    /// The draw answers for the accesses, and the beginning of rendering for the layout.
    Attachment,
}

impl Texels {
    /// `None` if what the view shows is gone.
    pub(crate) fn new(
        state: &DeviceState,
        kind: Type,
        view: vk::ImageView,
        layout: vk::ImageLayout,
    ) -> Option<Self> {
        let view = state.image_views.get(&view)?;
        let pixels = Pixels::of(state, view.image).ok()?;
        let (image, mut range) = (&pixels.description, view.range);
        range.level_count = range.level_count.min(image.mip_levels.saturating_sub(range.base_mip_level));
        range.layer_count = range.layer_count.min(image.array_layers.saturating_sub(range.base_array_layer));
        Some(Self { by: By::Descriptor(kind, layout), image: view.image, range, pixels })
    }

    /// An attachment, with all its layers. `None` if it is gone.
    pub(crate) fn attached(
        state: &DeviceState,
        attached: &AttachmentTarget,
        layer_count: u32,
    ) -> Option<Self> {
        let layers = attached.layers;
        let range = vk::ImageSubresourceRange {
            aspect_mask: layers.aspect_mask,
            base_mip_level: layers.mip_level,
            level_count: 1,
            base_array_layer: layers.base_array_layer,
            layer_count,
        };
        let pixels = attached.pixels(state)?;
        Some(Self { by: By::Attachment, image: attached.target.image, range, pixels })
    }
}

impl Texels {
    fn is_read_only(&self) -> bool {
        matches!(self.by, By::Descriptor(kind, _) if kind != Type::STORAGE_IMAGE)
    }

    /// The samples that are written.
    fn samples(&self, surface: &Surface) -> u32 {
        if self.by == By::Attachment { surface.samples() } else { 1 }
    }
}

/// Texels of an image that a shader reads and writes: those that the view of a storage image, a sampled image or an
/// input attachment shows, or an attachment of rendering. The result of
/// [`Kernel::texels`](crate::objects::kernels::Kernel::texels) and of [`KernelDraw`](crate::KernelDraw). Levels and
/// layers count from the view's first, and places are in texels; in a compressed image, in blocks. Of several samples
/// the first is read, and all of an attachment are written.
///
/// An access outside of the view is reported as `SUBLET-descriptor-range`, and a write to an image that is no storage
/// image as `SUBLET-descriptor-read-only`. Then zeroes are read, and nothing is written. An image that is not in the
/// layout of its descriptor is reported as `VUID-vkCmdDraw-None-09600`, for dispatches too, as the validation layer
/// does.
///
/// ```
/// use sublet_sim::{Gpu, Kernel, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// // Set 0: from binding 0 to binding 1.
/// gpu.set_kernel("mirror", |kernel: &mut Kernel<'_>| {
///     let (from, to) = (kernel.texels(0, 0, 0), kernel.texels(0, 1, 0));
///     let [width, height, _] = from.extent(0);
///     for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
///         to.write(0, 0, [width - 1 - x, y, 0], &from.read(0, 0, [x, y, 0]));
///     }
/// });
/// ```
pub struct KernelImage<'a> {
    pub(crate) device: &'a DeviceObject,
    pub(crate) entry_point: &'a str,
    /// Its name in messages.
    pub(crate) name: String,
    /// `None` if the reason has been reported.
    pub(crate) source: Option<Texels>,
    /// As they were when the dispatch began.
    pub(crate) layouts: ImageLayouts,
    /// The call and the stage that its accesses belong to, if hazards are looked for.
    pub(crate) actor: Option<(Actor, vk::ShaderStageFlags)>,
}

impl std::fmt::Debug for KernelImage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelImage").field("name", &self.name).finish_non_exhaustive()
    }
}

impl KernelImage<'_> {
    /// Levels that the view shows; 0 if the descriptor was reported.
    pub fn levels(&self) -> u32 {
        self.source.as_ref().map_or(0, |source| source.range.level_count)
    }

    /// Layers that the view shows; 0 if the descriptor was reported.
    pub fn layers(&self) -> u32 {
        self.source.as_ref().map_or(0, |source| source.range.layer_count)
    }

    /// Texels of a level, across, down and deep; 0 of each if there is no such level.
    pub fn extent(&self, level: u32) -> [u32; 3] {
        if level >= self.levels() {
            return [0; 3];
        }
        self.surface(level, 0).map_or([0; 3], |(surface, _)| surface.extent())
    }

    /// The bytes of a texel; none if there is no such texel.
    pub fn read(&self, level: u32, layer: u32, at: [u32; 3]) -> Vec<u8> {
        let Some(surface) = self.access(level, layer, at, false) else { return Vec::new() };
        surface.read(at, 0).map(|texel| texel[..surface.size()].to_vec()).unwrap_or_default()
    }

    /// Writes the bytes of a texel of a storage image or an attachment.
    pub fn write(&self, level: u32, layer: u32, at: [u32; 3], texel: &[u8]) {
        let Some(source) = &self.source else { return };
        if source.is_read_only() {
            self.report("SUBLET-descriptor-read-only", "it is no storage image, and is written to");
            return;
        }
        let Some(surface) = self.access(level, layer, at, true) else { return };
        if texel.len() != surface.size() {
            let text = format!("{} bytes are written to a texel of {}", texel.len(), surface.size());
            self.report("SUBLET-descriptor-range", &text);
        } else if !(0..source.samples(&surface)).all(|sample| surface.write(at, sample, texel)) {
            self.report("SUBLET-transfer-failed", "there are no bytes behind it");
        }
    }

    fn surface(&self, level: u32, layer: u32) -> Option<(Surface, vk::ImageSubresourceRange)> {
        let source = self.source.as_ref()?;
        let aspects = source.range.aspect_mask.as_raw();
        let one = vk::ImageSubresourceRange {
            // A view of depth and stencil shows one of them to a shader.
            aspect_mask: vk::ImageAspectFlags::from_raw(aspects & aspects.wrapping_neg()),
            base_mip_level: source.range.base_mip_level + level,
            level_count: 1,
            base_array_layer: source.range.base_array_layer + layer,
            layer_count: 1,
        };
        let (level, layer) = (one.base_mip_level, one.base_array_layer);
        let surface = Surface::new(self.device.profile(), &source.pixels, one.aspect_mask, level, layer)?;
        Some((surface, one))
    }

    /// The surface with a texel, after the checks of an access to it.
    fn access(&self, level: u32, layer: u32, at: [u32; 3], write: bool) -> Option<Surface> {
        let source = self.source.as_ref()?;
        let inside = level < self.levels() && layer < self.layers();
        let found = inside.then(|| self.surface(level, layer)).flatten();
        let found = found.filter(|(surface, _)| surface.contains(at));
        let Some((surface, one)) = found else {
            let text = format!("the texel {at:?} of level {level}, layer {layer} is not in its view");
            self.report("SUBLET-descriptor-range", &text);
            return None;
        };
        let By::Descriptor(kind, layout) = source.by else { return Some(surface) };
        let place = (one.base_mip_level, one.base_array_layer);
        let real = self.layouts.get(&source.image).and_then(|layouts| layouts.get(&place)).copied();
        if real != Some(layout) {
            let (said, real) = (layout_name(layout), real.unwrap_or(vk::ImageLayout::UNDEFINED));
            let text = format!("the descriptor says {said}, and the layout is {}", layout_name(real));
            self.report("VUID-vkCmdDraw-None-09600", &text);
        }
        if let Some(actor) = self.actor {
            let sampled = kind != Type::STORAGE_IMAGE;
            judge::judge_texels(self.device, actor, source.image, &one, (sampled, write));
        }
        Some(surface)
    }

    fn report(&self, rule: &'static str, text: &str) {
        self.device.report(rule, format!("{}: {}: {text}", self.entry_point, self.name));
    }
}
