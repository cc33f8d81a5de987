//! Vulkan objects that live as long as the renderer.

use std::cell::RefCell;

use ash::vk;

use sublet_examples::{Context, Result};

type Destroy = Box<dyn FnOnce(&ash::Device)>;

/// Destroys all its objects in reverse order. The device must not use them any more.
pub(crate) struct Keeper<'a> {
    pub(crate) context: &'a Context,
    objects: RefCell<Vec<Destroy>>,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, objects: RefCell::new(Vec::new()) }
    }

    fn keep(&self, destroy: impl FnOnce(&ash::Device) + 'static) {
        self.objects.borrow_mut().push(Box::new(destroy));
    }

    /// # Safety
    /// The create-info is valid for the device.
    pub(crate) unsafe fn sampler(&self, info: &vk::SamplerCreateInfo<'_>) -> Result<vk::Sampler> {
        // SAFETY: guaranteed by the caller.
        let sampler = unsafe { self.context.device().create_sampler(info, None) }?;
        // SAFETY: it is destroyed once, after the device has finished using it.
        self.keep(move |device| unsafe { device.destroy_sampler(sampler, None) });
        Ok(sampler)
    }

    /// # Safety
    /// The create-info is valid for the device.
    pub(crate) unsafe fn pipeline(&self, info: &vk::GraphicsPipelineCreateInfo<'_>) -> Result<vk::Pipeline> {
        let (device, none) = (self.context.device(), vk::PipelineCache::null());
        // SAFETY: guaranteed by the caller.
        let made = unsafe { device.create_graphics_pipelines(none, std::slice::from_ref(info), None) };
        let pipeline = made.map_err(|(_, error)| error)?[0];
        // SAFETY: it is destroyed once, after the device has finished using it.
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
