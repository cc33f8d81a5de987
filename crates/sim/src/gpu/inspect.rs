//! Inspection of descriptors: the contents of sets, and the bindings of command buffers.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;

use crate::gpu::Gpu;
use crate::objects::commands::bindings::{Bindings, SetOrPush};
use crate::objects::descriptors::PipelineLayoutDescription;
use crate::objects::descriptors::contents::SimulatedDescriptor;
use crate::objects::state::DeviceState;
use crate::pipelines::descriptor_buffer;

impl Gpu {
    /// The descriptor at a binding and array element of a set. `None` if nothing was written there, or the set is
    /// freed. An immutable sampler is there from the start.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, SimulatedDescriptor, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let device = gpu.device();
    /// let kind = vk::DescriptorType::SAMPLER;
    /// let bindings = [vk::DescriptorSetLayoutBinding::default().descriptor_type(kind).descriptor_count(2)];
    /// let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    /// let layouts = [unsafe { device.create_descriptor_set_layout(&info, None) }.unwrap()];
    /// let sizes = [vk::DescriptorPoolSize { ty: kind, descriptor_count: 2 }];
    /// let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    /// let pool = unsafe { device.create_descriptor_pool(&info, None) }.unwrap();
    /// let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    /// let set = unsafe { device.allocate_descriptor_sets(&info) }.unwrap()[0];
    /// let sampler = unsafe { device.create_sampler(&vk::SamplerCreateInfo::default(), None) }.unwrap();
    /// let images = [vk::DescriptorImageInfo::default().sampler(sampler)];
    /// let write = vk::WriteDescriptorSet::default().dst_set(set).dst_array_element(1);
    /// let write = write.descriptor_type(kind).image_info(&images);
    /// unsafe { device.update_descriptor_sets(&[write], &[]) };
    /// assert_eq!(gpu.descriptor(set, 0, 0), None);
    /// let found = gpu.descriptor(set, 0, 1);
    /// assert!(matches!(found, Some(SimulatedDescriptor::Image { sampler: own, .. }) if own == sampler));
    /// # unsafe { device.destroy_sampler(sampler, None) };
    /// # unsafe { device.destroy_descriptor_pool(pool, None) };
    /// # unsafe { device.destroy_descriptor_set_layout(layouts[0], None) };
    /// gpu.assert_silent();
    /// ```
    pub fn descriptor(
        &self,
        set: vk::DescriptorSet,
        binding: u32,
        element: u32,
    ) -> Option<SimulatedDescriptor> {
        self.look(|state| state.descriptors.set_contents(set)?.descriptor(binding, element).copied())
    }

    /// The bytes of an inline uniform block of a set, up to the last one that was written; gaps are 0. `None` if none
    /// was written, or the set is freed.
    pub fn inline_uniform_data(&self, set: vk::DescriptorSet, binding: u32) -> Option<Vec<u8>> {
        self.look(|state| state.descriptors.set_contents(set)?.inline(binding).map(<[u8]>::to_vec))
    }

    /// The set that a command buffer, as far as it is recorded, has bound for pipelines with this layout, and its
    /// dynamic offsets in bytes. `None` if nothing is bound there, if it was bound with an incompatible layout or was
    /// disturbed (section "Pipeline Layout Compatibility"), or if push descriptors are there.
    pub fn bound_set(
        &self,
        commands: vk::CommandBuffer,
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        number: u32,
    ) -> Option<(vk::DescriptorSet, Vec<u32>)> {
        self.look_at(commands, layout, |_, bindings, layout| match bindings.bound(point, layout, number)? {
            SetOrPush::Set { set, offsets } => Some((*set, offsets.clone())),
            SetOrPush::Pushed(_) | SetOrPush::At(_) => None,
        })
    }

    /// The descriptor that a shader would find at a set number, binding and array element after the last command that
    /// is recorded: in a set, among push descriptors or in a descriptor buffer. With it comes the dynamic offset in
    /// bytes that is added to its own. See [`bound_set`](Self::bound_set) for what is bound.
    ///
    /// # Safety
    ///
    /// Nothing writes to a bound descriptor buffer meanwhile: see [`read_memory`](Self::read_memory).
    pub unsafe fn bound_descriptor(
        &self,
        commands: vk::CommandBuffer,
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        (set, binding, element): (u32, u32, u32),
    ) -> Option<(SimulatedDescriptor, u64)> {
        let limits = self.profile().limits.descriptor_buffer.unwrap_or_default();
        self.look_at(commands, layout, |state, bindings, layout| {
            match bindings.bound(point, layout, set)? {
                SetOrPush::At(address) => {
                    let own = layout.set(set)?;
                    let at = (binding, own.bindings.get(&binding)?, element);
                    let found = descriptor_buffer::descriptor(&limits, state, *address, own, at).ok()?;
                    Some((found, 0))
                }
                SetOrPush::Set { .. } | SetOrPush::Pushed(_) => {
                    bindings.descriptor(&state.descriptors, point, layout, (set, binding, element))
                }
            }
        })
    }

    /// The bytes of an inline uniform block that a shader would find after the last command that is recorded, see
    /// [`inline_uniform_data`](Self::inline_uniform_data) and [`bound_set`](Self::bound_set).
    pub fn bound_inline_data(
        &self,
        commands: vk::CommandBuffer,
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        (set, binding): (u32, u32),
    ) -> Option<Vec<u8>> {
        self.look_at(commands, layout, |state, bindings, layout| {
            bindings.inline(&state.descriptors, point, layout, (set, binding)).map(<[u8]>::to_vec)
        })
    }

    /// The push constants that a shader of a pipeline with this layout would find after the last command that is
    /// recorded. `None` if not all of the bytes were pushed. Offset and size are in bytes.
    pub fn push_constants(
        &self,
        commands: vk::CommandBuffer,
        layout: vk::PipelineLayout,
        offset: u32,
        size: u32,
    ) -> Option<Vec<u8>> {
        self.look_at(commands, layout, |_, bindings, layout| {
            bindings.push_constants(layout, offset, size).map(<[u8]>::to_vec)
        })
    }

    fn look<T>(&self, body: impl FnOnce(&DeviceState) -> Option<T>) -> Option<T> {
        let device = self.state()?;
        let state = device.state.lock();
        body(&state)
    }

    /// Looks at what is bound after the last command that is recorded.
    fn look_at<T>(
        &self,
        commands: vk::CommandBuffer,
        layout: vk::PipelineLayout,
        body: impl FnOnce(&DeviceState, &Bindings, &PipelineLayoutDescription) -> Option<T>,
    ) -> Option<T> {
        self.look(|state| {
            let recorded = &state.commands.buffers.get(&commands)?.commands;
            let layout = Arc::clone(state.descriptors.pipeline_layout(layout)?);
            let mut bindings = Bindings::default();
            for command in recorded.iter() {
                bindings.apply(command);
            }
            body(state, &bindings, &layout)
        })
    }
}
