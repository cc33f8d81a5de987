//! Objects that lists share: render passes and framebuffers for devices without dynamic rendering, and pipeline
//! layouts.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;
use sublet::device::DriverError;

pub(crate) const MOST_COLORS: usize = 8;
/// The slot of depth and stencil, after those of colors.
pub(crate) const DEPTH_STENCIL: usize = MOST_COLORS;
/// The first slot of resolve attachments.
pub(crate) const RESOLVES: usize = DEPTH_STENCIL + 1;
pub(crate) const SLOTS: usize = RESOLVES + MOST_COLORS;

/// Maximum number of cached framebuffers, and of cached render passes.
const MOST_KEPT: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PassAttachment {
    pub(crate) format: vk::Format,
    pub(crate) samples: vk::SampleCountFlags,
    pub(crate) load_op: vk::AttachmentLoadOp,
    pub(crate) store_op: vk::AttachmentStoreOp,
    pub(crate) stencil_load_op: vk::AttachmentLoadOp,
    pub(crate) stencil_store_op: vk::AttachmentStoreOp,
    pub(crate) layout: vk::ImageLayout,
}

impl PassAttachment {
    /// Returns an attachment without load and store operations, for the creation of pipelines.
    pub(crate) fn of(format: vk::Format, samples: vk::SampleCountFlags, layout: vk::ImageLayout) -> Self {
        let (load_op, store_op) = (vk::AttachmentLoadOp::DONT_CARE, vk::AttachmentStoreOp::DONT_CARE);
        let (stencil_load_op, stencil_store_op) = (load_op, store_op);
        Self { format, samples, load_op, store_op, stencil_load_op, stencil_store_op, layout }
    }
}

/// Parameters of a render pass with one subpass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct PassInfo {
    /// Indexed by slot.
    pub(crate) attachments: [Option<PassAttachment>; SLOTS],
    pub(crate) color_count: usize,
    pub(crate) view_mask: u32,
}

impl PassInfo {
    fn reference(&self, slot: usize) -> vk::AttachmentReference {
        let Some(attachment) = &self.attachments[slot] else {
            return vk::AttachmentReference::default().attachment(vk::ATTACHMENT_UNUSED);
        };
        let before = self.attachments[..slot].iter().flatten().count();
        let index = u32::try_from(before).unwrap_or(vk::ATTACHMENT_UNUSED);
        vk::AttachmentReference { attachment: index, layout: attachment.layout }
    }

    /// # Safety
    /// The device is live and supports the parameters.
    unsafe fn create(&self, device: &ash::Device) -> Result<vk::RenderPass, DriverError> {
        let described: Vec<_> = self
            .attachments
            .iter()
            .flatten()
            .map(|one| {
                vk::AttachmentDescription::default()
                    .format(one.format)
                    .samples(one.samples)
                    .load_op(one.load_op)
                    .store_op(one.store_op)
                    .stencil_load_op(one.stencil_load_op)
                    .stencil_store_op(one.stencil_store_op)
                    // Barriers before the pass change the layouts.
                    .initial_layout(one.layout)
                    .final_layout(one.layout)
            })
            .collect();
        let colors: Vec<_> = (0..self.color_count).map(|slot| self.reference(slot)).collect();
        let resolves: Vec<_> = (0..self.color_count).map(|slot| self.reference(RESOLVES + slot)).collect();
        let depth = self.reference(DEPTH_STENCIL);
        let mut subpass = vk::SubpassDescription::default()
            .pipeline_bind_point(vk::PipelineBindPoint::GRAPHICS)
            .color_attachments(&colors);
        if self.attachments[RESOLVES..].iter().any(Option::is_some) {
            subpass = subpass.resolve_attachments(&resolves);
        }
        if self.attachments[DEPTH_STENCIL].is_some() {
            subpass = subpass.depth_stencil_attachment(&depth);
        }
        // Barriers order everything. These empty dependencies replace the implicit ones.
        let dependency = |from, to| {
            vk::SubpassDependency::default()
                .src_subpass(from)
                .dst_subpass(to)
                .src_stage_mask(vk::PipelineStageFlags::TOP_OF_PIPE)
                .dst_stage_mask(vk::PipelineStageFlags::BOTTOM_OF_PIPE)
        };
        let dependencies = [dependency(vk::SUBPASS_EXTERNAL, 0), dependency(0, vk::SUBPASS_EXTERNAL)];
        let (subpasses, masks) = ([subpass], [self.view_mask]);
        let mut views = vk::RenderPassMultiviewCreateInfo::default().view_masks(&masks);
        let mut info = vk::RenderPassCreateInfo::default()
            .attachments(&described)
            .subpasses(&subpasses)
            .dependencies(&dependencies);
        if self.view_mask != 0 {
            info = info.push_next(&mut views);
        }
        // SAFETY: the caller's promise.
        let made = unsafe { device.create_render_pass(&info, None) };
        made.map_err(|result| DriverError { call: "vkCreateRenderPass", result })
    }
}

/// Parameters of a framebuffer. Its views determine the compatible render passes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct FramebufferInfo {
    /// Indexed by slot; null if absent.
    pub(crate) views: [vk::ImageView; SLOTS],
    pub(crate) extent: vk::Extent2D,
    pub(crate) layers: u32,
    pub(crate) view_mask: u32,
}

impl FramebufferInfo {
    /// # Safety
    /// The device and the views are live, and match the attachments of the pass.
    unsafe fn create(
        &self,
        device: &ash::Device,
        pass: vk::RenderPass,
    ) -> Result<vk::Framebuffer, DriverError> {
        let null = vk::ImageView::null();
        let views: Vec<_> = self.views.iter().copied().filter(|&view| view != null).collect();
        let info = vk::FramebufferCreateInfo::default()
            .render_pass(pass)
            .attachments(&views)
            .width(self.extent.width)
            .height(self.extent.height)
            .layers(self.layers);
        // SAFETY: the caller's promise.
        let made = unsafe { device.create_framebuffer(&info, None) };
        made.map_err(|result| DriverError { call: "vkCreateFramebuffer", result })
    }
}

/// An object that is destroyed with its last `Arc`. Lists hold one until the device is done with them.
pub(crate) struct Shared<H: Copy> {
    pub(crate) handle: H,
    device: vk::Device,
    destroy: unsafe extern "system" fn(vk::Device, H, *const vk::AllocationCallbacks<'_>),
}

impl<H: Copy> Shared<H> {
    pub(crate) fn new(
        handle: H,
        device: &ash::Device,
        destroy: unsafe extern "system" fn(vk::Device, H, *const vk::AllocationCallbacks<'_>),
    ) -> Self {
        Self { handle, device: device.handle(), destroy }
    }
}

impl<H: Copy> Drop for Shared<H> {
    fn drop(&mut self) {
        // SAFETY: it was created with this device, which outlives the frames and their lists. Nothing uses it: users
        // hold an `Arc` of it.
        unsafe { (self.destroy)(self.device, self.handle, std::ptr::null()) };
    }
}

struct CachedObject<H: Copy> {
    object: Arc<Shared<H>>,
    used: u64,
    /// The program may have its handle, so it lives as long as the frames.
    stays: bool,
}

/// A cache of objects. Beyond [`MOST_KEPT`], the least recently used one is removed.
struct Cache<K, H: Copy> {
    entries: HashMap<K, CachedObject<H>>,
    uses: u64,
}

impl<K, H: Copy> Default for Cache<K, H> {
    fn default() -> Self {
        Self { entries: HashMap::new(), uses: 0 }
    }
}

impl<K: Copy + Eq + Hash, H: Copy> Cache<K, H> {
    fn get(
        &mut self,
        key: &K,
        stays: bool,
        make: impl FnOnce() -> Result<Shared<H>, DriverError>,
    ) -> Result<Arc<Shared<H>>, DriverError> {
        self.uses += 1;
        if let Some(known) = self.entries.get_mut(key) {
            (known.used, known.stays) = (self.uses, known.stays || stays);
            return Ok(Arc::clone(&known.object));
        }
        let object = Arc::new(make()?);
        if self.entries.len() >= MOST_KEPT {
            let goes = self.entries.iter().filter(|(_, entry)| !entry.stays);
            if let Some(key) = goes.min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key) {
                self.entries.remove(&key);
            }
        }
        self.entries.insert(*key, CachedObject { object: Arc::clone(&object), used: self.uses, stays });
        Ok(object)
    }
}

/// The render passes and framebuffers of lists.
#[derive(Default)]
pub(crate) struct RenderPasses {
    /// Protects the render passes; no lock is taken under it. Held while the driver creates or destroys one.
    passes: Mutex<Cache<PassInfo, vk::RenderPass>>,
    /// Protects the framebuffers; no lock is taken under it. Held while the driver creates or destroys one.
    framebuffers: Mutex<Cache<FramebufferInfo, vk::Framebuffer>>,
}

impl RenderPasses {
    /// Returns the render pass for `info`. A pass that `stays` lives as long as the frames.
    ///
    /// # Safety
    /// The device outlives lists that use the pass, and supports the parameters.
    pub(crate) unsafe fn pass(
        &self,
        device: &ash::Device,
        info: &PassInfo,
        stays: bool,
    ) -> Result<Arc<Shared<vk::RenderPass>>, DriverError> {
        self.passes.lock().get(info, stays, || {
            // SAFETY: the caller's own promise.
            let handle = unsafe { info.create(device) }?;
            Ok(Shared::new(handle, device, device.fp_v1_0().destroy_render_pass))
        })
    }

    /// Returns the framebuffer of these views, for `pass` and compatible passes.
    ///
    /// # Safety
    /// See [`pass`](Self::pass). The views are live and match the attachments of the pass.
    pub(crate) unsafe fn framebuffer(
        &self,
        device: &ash::Device,
        info: &FramebufferInfo,
        pass: vk::RenderPass,
    ) -> Result<Arc<Shared<vk::Framebuffer>>, DriverError> {
        self.framebuffers.lock().get(info, false, || {
            // SAFETY: the caller's own promise.
            let handle = unsafe { info.create(device, pass) }?;
            Ok(Shared::new(handle, device, device.fp_v1_0().destroy_framebuffer))
        })
    }

    /// Removes the framebuffers of views that are about to be destroyed, because their handles may be reused.
    pub(crate) fn forget(&self, views: impl Iterator<Item = vk::ImageView> + Clone) {
        let mut framebuffers = self.framebuffers.lock();
        if !framebuffers.entries.is_empty() {
            framebuffers.entries.retain(|info, _| !views.clone().any(|view| info.views.contains(&view)));
        }
    }
}

/// Layouts that live as long as the core: descriptor sets allocated for them may be reused by any list. No lock is
/// taken under theirs, which is never held over a driver call.
#[derive(Default)]
pub(crate) struct KeptLayouts(Mutex<Vec<LayoutParts>>);

type LayoutParts = (Shared<vk::PipelineLayout>, Vec<Shared<vk::DescriptorSetLayout>>);

impl KeptLayouts {
    pub(crate) fn keep(
        &self,
        layout: Shared<vk::PipelineLayout>,
        sets: Vec<Shared<vk::DescriptorSetLayout>>,
    ) {
        self.0.lock().push((layout, sets));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use ash::vk::Handle;

    use super::*;

    static DESTROYED: AtomicUsize = AtomicUsize::new(0);

    extern "system" fn destroy(_: vk::Device, _: vk::Framebuffer, _: *const vk::AllocationCallbacks<'_>) {
        DESTROYED.fetch_add(1, Ordering::Relaxed);
    }

    fn view(number: u64) -> vk::ImageView {
        vk::ImageView::from_raw(number)
    }

    fn get(passes: &RenderPasses, number: u64, stays: bool) -> Arc<Shared<vk::Framebuffer>> {
        let mut info = FramebufferInfo::default();
        info.views[DEPTH_STENCIL] = view(number);
        let made = || Ok(Shared { handle: vk::Framebuffer::null(), device: vk::Device::null(), destroy });
        passes.framebuffers.lock().get(&info, stays, made).expect("creation succeeds")
    }

    #[test]
    fn the_least_recently_used_is_removed_and_so_are_those_of_destroyed_views() {
        let passes = RenderPasses::default();
        let most = u64::try_from(MOST_KEPT).expect("a small number");
        let held = get(&passes, 1, false);
        drop(get(&passes, 2, true));
        (3..=most).for_each(|number| drop(get(&passes, number, false)));
        // This use makes the third the oldest; the second always stays.
        assert!(Arc::ptr_eq(&get(&passes, 1, false), &held));
        let before = DESTROYED.load(Ordering::Relaxed);
        drop(get(&passes, most + 1, false));
        assert_eq!(DESTROYED.load(Ordering::Relaxed), before + 1);
        assert!(Arc::ptr_eq(&get(&passes, 1, false), &held));
        passes.forget([1, 4].map(view).into_iter());
        assert_eq!(DESTROYED.load(Ordering::Relaxed), before + 2, "a list has the first");
        assert!(!Arc::ptr_eq(&get(&passes, 1, false), &held));
        drop(held);
        assert_eq!(DESTROYED.load(Ordering::Relaxed), before + 3);
        (most..3 * most).for_each(|number| drop(get(&passes, number, false)));
        assert_eq!(passes.framebuffers.lock().entries.len(), MOST_KEPT);
        assert!(passes.framebuffers.lock().entries.keys().any(|info| info.views[DEPTH_STENCIL] == view(2)));
    }
}
