//! Vulkan objects that live as long as the renderer, and their destruction.

use std::cell::RefCell;

use ash::vk;

use crate::support::{Context, Result};

type Destroy = Box<dyn FnOnce(&ash::Device)>;

/// Destroys all that it made, the last first. The device must be done with it by then.
pub(crate) struct Keeper<'a> {
    pub(crate) context: &'a Context,
    objects: RefCell<Vec<Destroy>>,
}

/// One function for each kind: the create-info has to be valid, which is the callers' part.
macro_rules! make {
    ($($name:ident, $create:ident, $destroy:ident, $info:ty, $handle:ty;)*) => {$(
        /// # Safety
        /// The create-info is valid for the device.
        pub(crate) unsafe fn $name(&self, info: &$info) -> Result<$handle> {
            // SAFETY: the caller's own promise.
            let made = unsafe { self.context.device().$create(info, None) }?;
            // SAFETY: it is destroyed once, when the device is done with it.
            self.keep(move |device| unsafe { device.$destroy(made, None) });
            Ok(made)
        }
    )*};
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, objects: RefCell::new(Vec::new()) }
    }

    fn keep(&self, destroy: impl FnOnce(&ash::Device) + 'static) {
        self.objects.borrow_mut().push(Box::new(destroy));
    }

    make! {
        sampler, create_sampler, destroy_sampler, vk::SamplerCreateInfo<'_>, vk::Sampler;
        set_layout, create_descriptor_set_layout, destroy_descriptor_set_layout, vk::DescriptorSetLayoutCreateInfo<'_>, vk::DescriptorSetLayout;
        pipeline_layout, create_pipeline_layout, destroy_pipeline_layout, vk::PipelineLayoutCreateInfo<'_>, vk::PipelineLayout;
    }

    /// # Safety
    /// The create-info is valid for the device.
    pub(crate) unsafe fn pipeline(&self, info: &vk::GraphicsPipelineCreateInfo<'_>) -> Result<vk::Pipeline> {
        let (device, none) = (self.context.device(), vk::PipelineCache::null());
        // SAFETY: the caller's own promise.
        let made = unsafe { device.create_graphics_pipelines(none, std::slice::from_ref(info), None) };
        let pipeline = made.map_err(|(_, error)| error)?[0];
        // SAFETY: it is destroyed once, when the device is done with it.
        self.keep(move |device| unsafe { device.destroy_pipeline(pipeline, None) });
        Ok(pipeline)
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        for destroy in self.objects.take().into_iter().rev() {
            destroy(self.context.device());
        }
    }
}
