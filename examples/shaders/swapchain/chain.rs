//! A swapchain whose images are imported for lists.

use ash::{khr, vk};
use sublet_frame::{Frames, Image};

use crate::window::Window;
use sublet_examples::{Context, Result};

/// An image to present, and the semaphore that its presentation waits for. The image is acquired again only after that
/// wait, so the semaphore belongs to the image, not to the frame.
pub(crate) struct Presentable {
    pub(crate) image: Image,
    pub(crate) rendered: vk::Semaphore,
}

pub(crate) struct Swapchain<'a> {
    context: &'a Context,
    pub(crate) functions: khr::swapchain::Device,
    pub(crate) handle: vk::SwapchainKHR,
    pub(crate) format: vk::SurfaceFormatKHR,
    pub(crate) extent: vk::Extent2D,
    /// True if images can be read back.
    pub(crate) can_read: bool,
    pub(crate) images: Vec<Presentable>,
}

impl<'a> Swapchain<'a> {
    /// Creates it without images: see [`renew`](Self::renew).
    pub(crate) fn new(context: &'a Context, window: &Window) -> Result<Self> {
        let physical = context.physical_device();
        // SAFETY: surface and physical device belong to one instance.
        let formats =
            unsafe { window.functions.get_physical_device_surface_formats(physical, window.surface) }?;
        let usual = |format: &&vk::SurfaceFormatKHR| {
            [vk::Format::B8G8R8A8_UNORM, vk::Format::R8G8B8A8_UNORM].contains(&format.format)
        };
        let format = formats.iter().find(usual).or(formats.first()).ok_or("the surface has no formats")?;
        Ok(Self {
            context,
            functions: khr::swapchain::Device::new(context.instance(), context.device()),
            handle: vk::SwapchainKHR::null(),
            format: *format,
            extent: vk::Extent2D::default(),
            can_read: false,
            images: Vec::new(),
        })
    }

    /// Creates the swapchain for the current window. Returns false if the window is too small to show anything.
    pub(crate) fn renew(&mut self, frames: &Frames, window: &Window) -> Result<bool> {
        let physical = self.context.physical_device();
        // SAFETY: surface and physical device belong to one instance.
        let capabilities =
            unsafe { window.functions.get_physical_device_surface_capabilities(physical, window.surface) }?;
        self.let_go(frames)?;
        self.extent = window.extent(&capabilities);
        if self.extent.width == 0 || self.extent.height == 0 {
            return Ok(false);
        }
        let most = if capabilities.max_image_count == 0 { u32::MAX } else { capabilities.max_image_count };
        self.can_read = capabilities.supported_usage_flags.contains(vk::ImageUsageFlags::TRANSFER_SRC);
        let read =
            if self.can_read { vk::ImageUsageFlags::TRANSFER_SRC } else { vk::ImageUsageFlags::empty() };
        let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | read;
        let (opaque, old) = (vk::CompositeAlphaFlagsKHR::OPAQUE, self.handle);
        let alpha = capabilities.supported_composite_alpha;
        let info = vk::SwapchainCreateInfoKHR::default()
            .surface(window.surface)
            .min_image_count((capabilities.min_image_count + 1).min(most))
            .image_format(self.format.format)
            .image_color_space(self.format.color_space)
            .image_extent(self.extent)
            .image_array_layers(1)
            .image_usage(usage)
            .pre_transform(capabilities.current_transform)
            .composite_alpha(if alpha.contains(opaque) {
                opaque
            } else {
                vk::CompositeAlphaFlagsKHR::INHERIT
            })
            // Every device that presents supports it.
            .present_mode(vk::PresentModeKHR::FIFO)
            .clipped(true)
            .old_swapchain(old);
        // SAFETY: the parameters match the surface, and the queue family can present to it.
        self.handle = unsafe { self.functions.create_swapchain(&info, None) }?;
        // SAFETY: the old swapchain is unused; null handles are ignored.
        unsafe { self.functions.destroy_swapchain(old, None) };
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(self.format.format)
            .extent(vk::Extent3D { width: self.extent.width, height: self.extent.height, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(usage);
        // SAFETY: the swapchain is live.
        for handle in unsafe { self.functions.get_swapchain_images(self.handle) }? {
            // SAFETY: the image matches this info, and lives until `let_go`; its acquisitions are declared.
            let image = unsafe { frames.import_image(handle, &info) };
            let wanted = vk::SemaphoreCreateInfo::default();
            // SAFETY: the device is live.
            let rendered = unsafe { self.context.device().create_semaphore(&wanted, None) }?;
            self.images.push(Presentable { image, rendered });
        }
        Ok(true)
    }

    /// Waits until neither lists nor the queue use the images, and drops them.
    pub(crate) fn let_go(&mut self, frames: &Frames) -> Result<()> {
        frames.wait_idle()?;
        // Presentation is not a submission of the frames.
        frames.with_queue(frames.queue(0), |queue| {
            // SAFETY: the queue is live, and no other thread uses it meanwhile.
            unsafe { self.context.device().queue_wait_idle(queue) }
        })?;
        for Presentable { image, rendered } in self.images.drain(..) {
            drop(image);
            // SAFETY: its wait is done.
            unsafe { self.context.device().destroy_semaphore(rendered, None) };
        }
        Ok(())
    }

    /// # Safety
    /// [`let_go`](Self::let_go) was called.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: the caller's promise.
        unsafe { self.functions.destroy_swapchain(self.handle, None) };
    }
}
