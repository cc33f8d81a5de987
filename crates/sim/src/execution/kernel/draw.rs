//! The inputs of a draw's shader besides its descriptors.

use std::ops::Range;

use ash::vk;

use super::buffer::BufferBytes;
use super::image::Texels;
use super::{KernelBuffer, KernelImage};
use crate::commands::index_size;
use crate::objects::commands::ImageLayouts;
use crate::objects::commands::draw::DrawSpan;
use crate::objects::commands::rendering::AttachmentSlot;
use crate::objects::kernels::Drawn;
use crate::objects::state::DeviceObject;

/// A draw: vertices, indices, instances and attachments. The result of
/// [`Kernel::draw`](crate::objects::kernels::Kernel::draw).
///
/// There is no rasterizer: a closure writes to the attachments what it likes. The draw itself reads and writes what the
/// pipeline says, as the search for hazards sees it: commands, indices, vertices, and attachments.
///
/// ```
/// use sublet_sim::{Gpu, Kernel, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// gpu.set_kernel("vertex", |_: &mut Kernel<'_>| {});
/// // The first byte of the first vertex, all over the area.
/// gpu.set_kernel("fragment", |kernel: &mut Kernel<'_>| {
///     let draw = kernel.draw().expect("no dispatch has this entry point");
///     let mut color = [0];
///     draw.vertex_buffer(0).read(0, &mut color);
///     let (to, area) = (draw.color(0), draw.area());
///     let (left, top) = (area.offset.x as u32, area.offset.y as u32);
///     for y in top..top + area.extent.height {
///         (left..left + area.extent.width).for_each(|x| to.write(0, 0, [x, y, 0], &color));
///     }
/// });
/// ```
pub struct KernelDraw<'a> {
    pub(crate) device: &'a DeviceObject,
    pub(crate) entry_point: &'a str,
    pub(crate) drawn: Drawn<'a>,
    pub(crate) layouts: ImageLayouts,
}

impl std::fmt::Debug for KernelDraw<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelDraw").field("span", &self.drawn.span).finish_non_exhaustive()
    }
}

impl<'a> KernelDraw<'a> {
    /// The numbers of the vertices; of a draw with indices, where those are in the index buffer, counted in indices.
    pub fn vertices(&self) -> Range<u32> {
        let DrawSpan { first, count, .. } = self.drawn.span;
        first..first.saturating_add(count)
    }

    /// The numbers of the instances.
    pub fn instances(&self) -> Range<u32> {
        let DrawSpan { first_instance, instances, .. } = self.drawn.span;
        first_instance..first_instance.saturating_add(instances)
    }

    /// The offset that is added to each index: `vertexOffset`.
    pub fn vertex_offset(&self) -> i32 {
        self.drawn.span.vertex_offset
    }

    /// The indices; `None` of a draw without. Those outside of the buffer are left out, and reported as
    /// `SUBLET-descriptor-range`.
    pub fn indices(&self) -> Option<Vec<u32>> {
        let (buffer, offset, kind) = self.drawn.draw.indices?;
        let size = index_size(kind)?;
        let bytes = self.bytes("the index buffer".to_owned(), (buffer, offset));
        let (asked, there) = (self.vertices(), u32::try_from(bytes.len() / size).unwrap_or(u32::MAX));
        if asked.end > there {
            let text = format!("{there} indices, of which {asked:?} are drawn");
            self.report("SUBLET-descriptor-range", "the index buffer", &text);
        }
        let index = |position: u32| {
            let mut word = [0; 4];
            let width = usize::try_from(size).unwrap_or(word.len());
            bytes.read(u64::from(position) * size, &mut word[..width]);
            u32::from_le_bytes(word)
        };
        Some((asked.start..asked.end.min(there)).map(index).collect())
    }

    /// The vertex buffer of a binding, from its offset on. One that the pipeline does not have is reported as
    /// `SUBLET-descriptor-binding`.
    pub fn vertex_buffer(&self, binding: u32) -> KernelBuffer<'a> {
        let name = format!("vertex buffer {binding}");
        match self.drawn.draw.vertices.get(&binding) {
            Some(&bound) => self.bytes(name, bound),
            None => {
                self.report("SUBLET-descriptor-binding", &name, "the pipeline has no such binding");
                self.view(name, BufferBytes::Nothing)
            }
        }
    }

    /// The color attachment at a location. One that is not attached is reported as `SUBLET-descriptor-binding`.
    pub fn color(&self, location: usize) -> KernelImage<'a> {
        self.attachment(AttachmentSlot::Color(location))
    }

    /// The depth attachment, as [`color`](Self::color).
    pub fn depth(&self) -> KernelImage<'a> {
        self.attachment(AttachmentSlot::Depth)
    }

    /// The stencil attachment, as [`color`](Self::color).
    pub fn stencil(&self) -> KernelImage<'a> {
        self.attachment(AttachmentSlot::Stencil)
    }

    /// The render area.
    pub fn area(&self) -> vk::Rect2D {
        self.drawn.draw.rendering.area
    }

    fn bytes(&self, name: String, (buffer, offset): (vk::Buffer, u64)) -> KernelBuffer<'a> {
        let state = self.device.state.lock();
        let found = state.buffer_bytes(buffer).ok();
        let whole = state.buffers.get(&buffer).map_or(0, |buffer| buffer.description.size);
        drop(state);
        let source = found.map(|mut bytes| {
            bytes.offset += offset;
            // The draw is what reads it, as the judge of hazards sees it.
            BufferBytes::Bytes { bytes, len: whole.saturating_sub(offset), writable: false, of: None }
        });
        self.view(name, source.unwrap_or(BufferBytes::Nothing))
    }

    fn view(&self, name: String, source: BufferBytes) -> KernelBuffer<'a> {
        KernelBuffer { device: self.device, entry_point: self.entry_point, name, source, actor: None }
    }

    fn attachment(&self, slot: AttachmentSlot) -> KernelImage<'a> {
        let name = format!("attachment {slot:?}");
        let attachments = &self.drawn.draw.rendering.attachments;
        let mut views = attachments.iter().filter(|attachment| attachment.slot == slot);
        let first = views.next();
        let source = first.and_then(|first| {
            let layers = views.next_back().unwrap_or(first).to.layers;
            let count = layers.base_array_layer + layers.layer_count - first.to.layers.base_array_layer;
            Texels::attached(&self.device.state.lock(), &first.to, count)
        });
        if source.is_none() {
            self.report("SUBLET-descriptor-binding", &name, "nothing is attached there");
        }
        let (device, entry_point, layouts) = (self.device, self.entry_point, self.layouts.clone());
        KernelImage { device, entry_point, name, source, layouts, actor: None }
    }

    fn report(&self, rule: &'static str, name: &str, text: &str) {
        self.device.report(rule, format!("{}: {name}: {text}", self.entry_point));
    }
}
