//! A swapchain whose images lists know.

use ash::{khr, vk};
use sublet_frame::{Frames, Image};

use crate::support::{Context, Result};
use crate::window::Window;

/// An image to present, and the semaphore that presenting it waits for. The image is acquired again once that is over, so
/// the semaphore is of the image and not of the frame.
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
    /// Whether images can be read back.
    pub(crate) can_read: bool,
    pub(crate) images: Vec<Presentable>,
}

impl<'a> Swapchain<'a> {
    /// Without images: [`renew`](Self::renew) makes them.
    pub(crate) fn new(context: &'a Context, window: &Window) -> Result<Self> {
        let physical = context.physical_device();
        // SAFETY: the surface and the physical device are of one instance.
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

    /// Makes the swapchain as the window is now. False if the window is so small that there is nothing to show.
    pub(crate) fn renew(&mut self, frames: &Frames, window: &Window) -> Result<bool> {
        let physical = self.context.physical_device();
        // SAFETY: the surface and the physical device are of one instance.
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
            // Every device that presents has it.
            .present_mode(vk::PresentModeKHR::FIFO)
            .clipped(true)
            .old_swapchain(old);
        // SAFETY: it is as the surface wants it, and the queue's family presents to it.
        self.handle = unsafe { self.functions.create_swapchain(&info, None) }?;
        // SAFETY: nothing of the old one is used any more; null is nothing.
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
            // SAFETY: the image is as this says, and lives until `let_go`; lists are told when it is acquired.
            let image = unsafe { frames.import_image(handle, &info) };
            let wanted = vk::SemaphoreCreateInfo::default();
            // SAFETY: the device is live.
            let rendered = unsafe { self.context.device().create_semaphore(&wanted, None) }?;
            self.images.push(Presentable { image, rendered });
        }
        Ok(true)
    }

    /// Waits until neither lists nor the queue use the images, and lets go of them.
    pub(crate) fn let_go(&mut self, frames: &Frames) -> Result<()> {
        frames.wait_idle()?;
        // Presenting is not among the submissions of the frames.
        frames.with_queue(frames.queue(0), |queue| {
            // SAFETY: the queue is live, and nobody else uses it meanwhile.
            unsafe { self.context.device().queue_wait_idle(queue) }
        })?;
        for Presentable { image, rendered } in self.images.drain(..) {
            drop(image);
            // SAFETY: what waited for it is done.
            unsafe { self.context.device().destroy_semaphore(rendered, None) };
        }
        Ok(())
    }

    /// # Safety
    /// The images were let go of.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: the caller's promise.
        unsafe { self.functions.destroy_swapchain(self.handle, None) };
    }
}
