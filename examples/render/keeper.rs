//! Vulkan objects that live as long as the renderer, and their destruction.

use std::cell::RefCell;

use ash::vk;

use crate::support::{Context, Result};

#[derive(Clone, Copy)]
enum Object {
    View(vk::ImageView),
    Sampler(vk::Sampler),
    SetLayout(vk::DescriptorSetLayout),
    PipelineLayout(vk::PipelineLayout),
    Pass(vk::RenderPass),
    Framebuffer(vk::Framebuffer),
    Pipeline(vk::Pipeline),
}

/// Destroys all that it made, the last first. The device must be done with it by then.
pub(crate) struct Keeper<'a> {
    pub(crate) context: &'a Context,
    objects: RefCell<Vec<Object>>,
}

/// One function for each kind: the create-info has to be valid, which is the callers' part.
macro_rules! make {
    ($($name:ident, $create:ident, $info:ty, $handle:ty, $kind:ident;)*) => {$(
        /// # Safety
        /// The create-info is valid for the device.
        pub(crate) unsafe fn $name(&self, info: &$info) -> Result<$handle> {
            // SAFETY: the caller's own promise.
            let made = unsafe { self.context.device().$create(info, None) }?;
            self.objects.borrow_mut().push(Object::$kind(made));
            Ok(made)
        }
    )*};
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, objects: RefCell::new(Vec::new()) }
    }

    make! {
        view, create_image_view, vk::ImageViewCreateInfo<'_>, vk::ImageView, View;
        sampler, create_sampler, vk::SamplerCreateInfo<'_>, vk::Sampler, Sampler;
        set_layout, create_descriptor_set_layout, vk::DescriptorSetLayoutCreateInfo<'_>, vk::DescriptorSetLayout, SetLayout;
        pipeline_layout, create_pipeline_layout, vk::PipelineLayoutCreateInfo<'_>, vk::PipelineLayout, PipelineLayout;
        render_pass, create_render_pass, vk::RenderPassCreateInfo<'_>, vk::RenderPass, Pass;
        framebuffer, create_framebuffer, vk::FramebufferCreateInfo<'_>, vk::Framebuffer, Framebuffer;
    }

    /// # Safety
    /// The create-info is valid for the device.
    pub(crate) unsafe fn pipeline(&self, info: &vk::GraphicsPipelineCreateInfo<'_>) -> Result<vk::Pipeline> {
        let (device, none) = (self.context.device(), vk::PipelineCache::null());
        // SAFETY: the caller's own promise.
        let made = unsafe { device.create_graphics_pipelines(none, std::slice::from_ref(info), None) };
        let pipeline = made.map_err(|(_, error)| error)?[0];
        self.objects.borrow_mut().push(Object::Pipeline(pipeline));
        Ok(pipeline)
    }

    /// All of an image.
    pub(crate) fn view_of(
        &self,
        image: vk::Image,
        info: &vk::ImageCreateInfo<'_>,
        aspect: vk::ImageAspectFlags,
    ) -> Result<vk::ImageView> {
        let range = vk::ImageSubresourceRange {
            aspect_mask: aspect,
            level_count: info.mip_levels,
            layer_count: 1,
            ..Default::default()
        };
        let info = vk::ImageViewCreateInfo::default()
            .image(image)
            .view_type(vk::ImageViewType::TYPE_2D)
            .format(info.format)
            .subresource_range(range);
        // SAFETY: the image was made from the create-info, and is bound.
        unsafe { self.view(&info) }
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        let device = self.context.device();
        for &object in self.objects.borrow().iter().rev() {
            match object {
                // SAFETY: the examples wait for the device before they end; here and below.
                Object::View(view) => unsafe { device.destroy_image_view(view, None) },
                // SAFETY: as above.
                Object::Sampler(sampler) => unsafe { device.destroy_sampler(sampler, None) },
                // SAFETY: as above.
                Object::SetLayout(layout) => unsafe { device.destroy_descriptor_set_layout(layout, None) },
                // SAFETY: as above.
                Object::PipelineLayout(layout) => unsafe { device.destroy_pipeline_layout(layout, None) },
                // SAFETY: as above.
                Object::Pass(pass) => unsafe { device.destroy_render_pass(pass, None) },
                // SAFETY: as above.
                Object::Framebuffer(framebuffer) => unsafe { device.destroy_framebuffer(framebuffer, None) },
                // SAFETY: as above.
                Object::Pipeline(pipeline) => unsafe { device.destroy_pipeline(pipeline, None) },
            }
        }
    }
}
