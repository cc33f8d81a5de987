//! What a test can see of descriptors: the contents of sets, and what a command buffer has bound.

use std::sync::Arc;

use ash::vk;

use super::contents::Descriptor;
use super::pipeline_layout::PipelineLayout;
use crate::Gpu;
use crate::commands::{Bindings, Bound};
use crate::descriptor_buffer;
use crate::state::DeviceState;

impl Gpu {
    /// The descriptor that was written to a binding and array element of a set; `None` if nothing was, or the set is
    /// freed. An immutable sampler is there from the start.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Descriptor, Gpu, profiles::Profile};
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
    /// assert!(matches!(gpu.descriptor(set, 0, 1), Some(Descriptor::Image { sampler: own, .. }) if own == sampler));
    /// # unsafe { device.destroy_sampler(sampler, None) };
    /// # unsafe { device.destroy_descriptor_pool(pool, None) };
    /// # unsafe { device.destroy_descriptor_set_layout(layouts[0], None) };
    /// gpu.assert_silent();
    /// ```
    pub fn descriptor(&self, set: vk::DescriptorSet, binding: u32, element: u32) -> Option<Descriptor> {
        self.look(|state| state.set_contents(set)?.descriptor(binding, element).copied())
    }

    /// The bytes of an inline uniform block of a set, up to the last one that was written; those before it that nobody
    /// wrote are 0. `None` if none was written, or the set is freed.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// assert_eq!(gpu.inline_uniform_data(vk::DescriptorSet::null(), 0), None);
    /// ```
    pub fn inline_uniform_data(&self, set: vk::DescriptorSet, binding: u32) -> Option<Vec<u8>> {
        self.look(|state| state.set_contents(set)?.inline(binding).map(<[u8]>::to_vec))
    }

    /// The set that a command buffer has bound, as far as it is recorded now, and the dynamic offsets that it was bound
    /// with: as a pipeline with this layout sees it. `None` if nothing is bound there, if it was bound with a layout
    /// that is not compatible or was disturbed (section "Pipeline Layout Compatibility"), or if what is there are push
    /// descriptors.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let point = vk::PipelineBindPoint::COMPUTE;
    /// let (commands, layout) = (vk::CommandBuffer::null(), vk::PipelineLayout::null());
    /// assert_eq!(gpu.bound_set(commands, point, layout, 0), None);
    /// ```
    pub fn bound_set(
        &self,
        commands: vk::CommandBuffer,
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        number: u32,
    ) -> Option<(vk::DescriptorSet, Vec<u32>)> {
        self.look_at(commands, layout, |_, bindings, layout| match bindings.bound(point, layout, number)? {
            Bound::Set { set, offsets } => Some((*set, offsets.clone())),
            Bound::Pushed(_) | Bound::At(_) => None,
        })
    }

    /// The descriptor that a shader finds at a set's number, a binding and an array element, of a set, of push
    /// descriptors or in a descriptor buffer, where a command buffer ends now; and the dynamic offset that is added to
    /// its own, in bytes. See [`bound_set`](Self::bound_set) for what is bound.
    ///
    /// # Safety
    ///
    /// Nobody writes to a descriptor buffer that is bound meanwhile: see [`read_memory`](Self::read_memory).
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let point = vk::PipelineBindPoint::COMPUTE;
    /// let (commands, layout) = (vk::CommandBuffer::null(), vk::PipelineLayout::null());
    /// assert_eq!(unsafe { gpu.bound_descriptor(commands, point, layout, (0, 0, 0)) }, None);
    /// ```
    pub unsafe fn bound_descriptor(
        &self,
        commands: vk::CommandBuffer,
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        (set, binding, element): (u32, u32, u32),
    ) -> Option<(Descriptor, u64)> {
        let limits = self.profile().limits.descriptor_buffer.unwrap_or_default();
        self.look_at(commands, layout, |state, bindings, layout| {
            match bindings.bound(point, layout, set)? {
                Bound::At(address) => {
                    let own = layout.set(set)?;
                    let at = (binding, own.bindings.get(&binding)?, element);
                    let found = descriptor_buffer::descriptor(&limits, state, *address, own, at).ok()?;
                    Some((found, 0))
                }
                Bound::Set { .. } | Bound::Pushed(_) => {
                    bindings.descriptor(state, point, layout, (set, binding, element))
                }
            }
        })
    }

    /// The bytes of an inline uniform block that a shader finds where a command buffer ends now, see
    /// [`inline_uniform_data`](Self::inline_uniform_data) and [`bound_set`](Self::bound_set).
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let point = vk::PipelineBindPoint::COMPUTE;
    /// let (commands, layout) = (vk::CommandBuffer::null(), vk::PipelineLayout::null());
    /// assert_eq!(gpu.bound_inline_data(commands, point, layout, (0, 0)), None);
    /// ```
    pub fn bound_inline_data(
        &self,
        commands: vk::CommandBuffer,
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        (set, binding): (u32, u32),
    ) -> Option<Vec<u8>> {
        self.look_at(commands, layout, |state, bindings, layout| {
            bindings.inline(state, point, layout, (set, binding)).map(<[u8]>::to_vec)
        })
    }

    /// The push constants that a shader of a pipeline with this layout finds where a command buffer ends now. `None` if
    /// not all of the bytes were pushed. Units: bytes.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let device = gpu.device();
    /// let stages = vk::ShaderStageFlags::COMPUTE;
    /// let ranges = [vk::PushConstantRange { stage_flags: stages, offset: 0, size: 8 }];
    /// let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
    /// let layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
    /// let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    /// let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    /// let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
    /// unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
    /// unsafe { device.cmd_push_constants(commands, layout, stages, 4, &[1, 2, 3, 4]) };
    /// assert_eq!(gpu.push_constants(commands, layout, 4, 4), Some(vec![1, 2, 3, 4]));
    /// assert_eq!(gpu.push_constants(commands, layout, 0, 8), None);
    /// # unsafe { device.destroy_command_pool(pool, None) };
    /// # unsafe { device.destroy_pipeline_layout(layout, None) };
    /// gpu.assert_silent();
    /// ```
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

    /// Looks at what is bound where a command buffer ends now.
    fn look_at<T>(
        &self,
        commands: vk::CommandBuffer,
        layout: vk::PipelineLayout,
        body: impl FnOnce(&DeviceState, &Bindings, &PipelineLayout) -> Option<T>,
    ) -> Option<T> {
        self.look(|state| {
            let recorded = &state.commands.buffers.get(&commands)?.commands;
            let layout = Arc::clone(state.pipeline_layout(layout)?);
            let mut bindings = Bindings::default();
            for command in recorded.iter() {
                bindings.apply(command);
            }
            body(state, &bindings, &layout)
        })
    }
}
