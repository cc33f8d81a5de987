//! The properties of a pipeline layout that the binder needs.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::fmt;
use std::sync::Arc;

use ash::vk;

use super::BindPoint;
use super::error::PipelineLayoutError;
use super::plan::{BindMethod, SetPlan};
use crate::counts::{DescriptorCounts, DescriptorKind};
use crate::device::DescriptorDevice;
use crate::features::DescriptorFeatures;
use crate::layout::SetLayout;
use crate::models::BindingModel;
use sublet::device::DriverError;
use sublet_engines::cast::{index, narrow, widen};

/// The maximum number of sets in a layout: the binder has one bit for each.
pub(super) const MAX_SETS: u32 = u32::BITS;

/// A `VkPipelineLayout` of the program with its set layouts, which Vulkan cannot report.
///
/// A program creates it once, next to the layout. Cloning is cheap. It does not own the layout, but it owns the update
/// templates of the sets, and the last clone destroys them.
///
/// ```
/// # use ash::vk; use sublet::sim; use sublet_descriptors::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let vulkan = gpu.device();
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let bindings = [vk::DescriptorSetLayoutBinding::default()
///     .descriptor_type(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(2).stage_flags(vk::ShaderStageFlags::COMPUTE)];
/// let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
/// // SAFETY: the create-info is valid.
/// let handles = [unsafe { vulkan.create_descriptor_set_layout(&info, None) }?];
/// let pipeline_info = vk::PipelineLayoutCreateInfo::default().set_layouts(&handles);
/// let pipeline_layout = unsafe { vulkan.create_pipeline_layout(&pipeline_info, None) }?;
///
/// // SAFETY: the layout was made from it.
/// let sets = [unsafe { SetLayout::new(handles[0], &info) }?];
/// // SAFETY: the pipeline layout was made from these, and outlives the value.
/// let layout = unsafe { PipelineLayoutInfo::new(&device, pipeline_layout, &sets, &[]) }?;
/// assert_eq!(layout.set_count(), 1);
/// # drop(layout);
/// # unsafe { vulkan.destroy_pipeline_layout(pipeline_layout, None) };
/// # unsafe { vulkan.destroy_descriptor_set_layout(handles[0], None) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PipelineLayoutInfo {
    inner: Arc<PipelineLayoutInner>,
}

struct PipelineLayoutInner {
    device: DescriptorDevice,
    handle: vk::PipelineLayout,
    /// Stages, offset and size of each range, sorted.
    push_constants: Box<[(u32, u32, u32)]>,
    plans: Box<[SetPlan]>,
    /// The size of all sets in a descriptor buffer.
    buffer_bytes: usize,
    dynamics: usize,
    /// The bit of the push descriptor set.
    push_mask: u32,
}

impl PipelineLayoutInner {
    /// Creates the templates of the sets. If one fails, dropping the value destroys the earlier ones.
    ///
    /// # Safety
    /// The pipeline layout and its set layouts are live.
    unsafe fn make_templates(&mut self) -> Result<(), DriverError> {
        let driver = self.device.driver();
        if !driver.has_templates() {
            return Ok(());
        }
        let has_push = driver.has_push_templates();
        for (set, plan) in (0..).zip(&mut self.plans) {
            if !plan.may_have_template() || (plan.way == BindMethod::Push && !has_push) {
                continue;
            }
            let entries = plan.template_entries();
            let info = vk::DescriptorUpdateTemplateCreateInfo::default().descriptor_update_entries(&entries);
            if plan.way == BindMethod::Set {
                let info = info
                    .template_type(vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET)
                    .descriptor_set_layout(plan.layout.handle());
                // SAFETY: the layout is live, and has the bindings with their types and counts.
                plan.template = unsafe { driver.create_template(&info) }?;
                continue;
            }
            let info = info
                .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
                .pipeline_layout(self.handle)
                .set(set);
            // Ray tracing has no templates: it is rare, so plain writes are fast enough.
            for (template, point) in
                plan.push_templates.iter_mut().zip([BindPoint::Graphics, BindPoint::Compute])
            {
                let info = info.pipeline_bind_point(point.to_vk());
                // SAFETY: the pipeline layout is live, and its set of this number is a push descriptor set that has the
                // bindings with their types and counts.
                *template = unsafe { driver.create_template(&info) }?;
            }
        }
        Ok(())
    }
}

impl Drop for PipelineLayoutInner {
    fn drop(&mut self) {
        let driver = self.device.driver();
        for plan in &mut self.plans {
            let push = plan.push_templates.iter_mut();
            for template in push.chain([&mut plan.template]).filter_map(Option::take) {
                // SAFETY: `make_templates` created it, and `take` ensures that it is destroyed once; its users hold a
                // clone of this value.
                unsafe { driver.destroy_template(template) };
            }
        }
    }
}

impl PipelineLayoutInfo {
    /// Describes `layout` with its set layouts, starting with set 0, and its push constant ranges.
    ///
    /// Layouts with `VK_PIPELINE_LAYOUT_CREATE_INDEPENDENT_SETS_BIT_EXT` are only compatible with each other. The
    /// binder does not know the flag: a program that uses both kinds must call [`Binder::begin`](super::Binder::begin)
    /// between them.
    ///
    /// # Errors
    /// [`PipelineLayoutError`]. Nothing is left behind.
    ///
    /// # Safety
    /// 1. `layout` and the handles in `sets` are live and belong to the device, and `layout` was created from them and
    ///    from `push_constants`.
    /// 2. They outlive the use of the value in a binder, except for set layouts for descriptor buffers: only this call
    ///    reads those.
    pub unsafe fn new(
        device: &DescriptorDevice,
        layout: vk::PipelineLayout,
        sets: &[SetLayout],
        push_constants: &[vk::PushConstantRange],
    ) -> Result<Self, PipelineLayoutError> {
        check(device, sets)?;
        let mut plans = Vec::with_capacity(sets.len());
        for (set, layout) in (0..).zip(sets) {
            // SAFETY: clause 1: the handles in `sets` are live.
            plans.push(unsafe { SetPlan::new(device, set, layout) }?);
        }
        let range = |range: &vk::PushConstantRange| (range.stage_flags.as_raw(), range.offset, range.size);
        let mut push_constants: Box<[_]> = push_constants.iter().map(range).collect();
        push_constants.sort_unstable();
        let buffer_bytes = plans.iter().fold(0, |sum: usize, plan| sum.saturating_add(plan.bytes));
        let dynamics = plans.iter().map(|plan| plan.dynamics).sum();
        let push = plans.iter().position(|plan| plan.way == BindMethod::Push);
        let mut inner = PipelineLayoutInner {
            device: device.clone(),
            handle: layout,
            push_constants,
            plans: plans.into(),
            buffer_bytes,
            dynamics,
            push_mask: push.map_or(0, |set| 1 << set),
        };
        // SAFETY: clause 1: the pipeline layout and its set layouts are live.
        unsafe { inner.make_templates() }.map_err(PipelineLayoutError::Template)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the handle of the layout.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::PipelineLayout {
        self.inner.handle
    }

    /// Returns the number of its sets.
    #[must_use]
    pub fn set_count(&self) -> u32 {
        narrow(self.inner.plans.len())
    }

    /// Returns the number of sets, from set 0 on, that stay bound when a set is bound with `other`. These are the sets
    /// before the first different one, and none if the push constants differ ("Pipeline Layout Compatibility").
    #[must_use]
    pub fn compatible_sets(&self, other: &Self) -> u32 {
        if self.is_same(other) {
            return self.set_count();
        }
        if self.inner.push_constants != other.inner.push_constants {
            return 0;
        }
        let pairs = self.plans().iter().zip(other.plans());
        narrow(pairs.take_while(|(one, other)| one.layout.is_identical(&other.layout)).count())
    }

    /// Returns true if both are clones of the same value.
    #[inline]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    #[inline]
    pub(super) fn plans(&self) -> &[SetPlan] {
        &self.inner.plans
    }

    pub(super) fn buffer_bytes(&self) -> u64 {
        widen(self.inner.buffer_bytes)
    }

    /// Returns the number of dynamic offsets in all sets.
    pub(super) fn dynamics(&self) -> usize {
        self.inner.dynamics
    }

    #[inline]
    pub(super) fn push_mask(&self) -> u32 {
        self.inner.push_mask
    }

    pub(super) fn is_of(&self, device: &DescriptorDevice) -> bool {
        self.inner.device.is_same(device)
    }
}

impl fmt::Debug for PipelineLayoutInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineLayoutInfo")
            .field("handle", &self.handle())
            .field("sets", &self.set_count())
            .finish_non_exhaustive()
    }
}

/// Validates everything that needs no driver call.
fn check(device: &DescriptorDevice, sets: &[SetLayout]) -> Result<(), PipelineLayoutError> {
    let asked = widen(sets.len());
    let most = device.limits().max_bound_descriptor_sets.min(MAX_SETS);
    if asked > u64::from(most) {
        return Err(PipelineLayoutError::TooManySets { asked, most });
    }
    let mut push = None;
    for (set, layout) in (0..).zip(sets) {
        check_model(device, set, layout)?;
        if layout.is_push_descriptor() {
            check_push(device, set, layout)?;
            if let Some(first) = push.replace(set) {
                return Err(PipelineLayoutError::TwoPushSets { first, second: set });
            }
        }
    }
    check_totals(device, sets)
}

fn check_model(device: &DescriptorDevice, set: u32, layout: &SetLayout) -> Result<(), PipelineLayoutError> {
    let model = device.model();
    if model == BindingModel::Heap || layout.is_descriptor_buffer() != (model == BindingModel::Buffer) {
        return Err(PipelineLayoutError::WrongModel { set, model });
    }
    let dynamic =
        |kind| matches!(kind, DescriptorKind::UniformBufferDynamic | DescriptorKind::StorageBufferDynamic);
    match layout.bindings().iter().find(|binding| dynamic(binding.kind)) {
        Some(binding) if layout.is_descriptor_buffer() => {
            Err(PipelineLayoutError::NotInBuffers { set, binding: binding.binding, kind: binding.kind })
        }
        _ => Ok(()),
    }
}

fn check_push(device: &DescriptorDevice, set: u32, layout: &SetLayout) -> Result<(), PipelineLayoutError> {
    let mut needed = DescriptorFeatures::PUSH_DESCRIPTOR;
    if device.model() == BindingModel::Buffer {
        needed |= DescriptorFeatures::DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS;
    }
    if !device.features().contains(needed) {
        return Err(PipelineLayoutError::PushNotEnabled { set });
    }
    let asked = layout.counts().total();
    let most = device.driver().facts.max_push_descriptors;
    if asked > u64::from(most) {
        return Err(PipelineLayoutError::TooManyPushDescriptors { set, asked, most });
    }
    Ok(())
}

/// Checks the limits of a pipeline layout for each type of descriptor, over all stages
/// (VUID-VkPipelineLayoutCreateInfo-descriptorType-03028 to -03035, -pSetLayouts-03036 to -03042).
fn check_totals(device: &DescriptorDevice, sets: &[SetLayout]) -> Result<(), PipelineLayoutError> {
    use DescriptorKind as K;
    let (mut all, mut bound) = (DescriptorCounts::new(), DescriptorCounts::new());
    for layout in sets {
        all.put(&layout.counts());
        if !layout.is_update_after_bind() {
            bound.put(&layout.counts());
        }
    }
    let limits = device.limits();
    let indexing = &device.driver().facts.indexing;
    // Two limits: for sets without UPDATE_AFTER_BIND, and for all sets; 0 if the device reports none.
    let rules: &[(&[K], u32, u32)] = &[
        (
            &[K::Sampler, K::CombinedImageSampler],
            limits.max_descriptor_set_samplers,
            indexing.max_descriptor_set_update_after_bind_samplers,
        ),
        (
            &[K::UniformBuffer, K::UniformBufferDynamic],
            limits.max_descriptor_set_uniform_buffers,
            indexing.max_descriptor_set_update_after_bind_uniform_buffers,
        ),
        (
            &[K::UniformBufferDynamic],
            limits.max_descriptor_set_uniform_buffers_dynamic,
            indexing.max_descriptor_set_update_after_bind_uniform_buffers_dynamic,
        ),
        (
            &[K::StorageBuffer, K::StorageBufferDynamic],
            limits.max_descriptor_set_storage_buffers,
            indexing.max_descriptor_set_update_after_bind_storage_buffers,
        ),
        (
            &[K::StorageBufferDynamic],
            limits.max_descriptor_set_storage_buffers_dynamic,
            indexing.max_descriptor_set_update_after_bind_storage_buffers_dynamic,
        ),
        (
            &[K::CombinedImageSampler, K::SampledImage, K::UniformTexelBuffer],
            limits.max_descriptor_set_sampled_images,
            indexing.max_descriptor_set_update_after_bind_sampled_images,
        ),
        (
            &[K::StorageImage, K::StorageTexelBuffer],
            limits.max_descriptor_set_storage_images,
            indexing.max_descriptor_set_update_after_bind_storage_images,
        ),
        (
            &[K::InputAttachment],
            limits.max_descriptor_set_input_attachments,
            indexing.max_descriptor_set_update_after_bind_input_attachments,
        ),
    ];
    for &(kinds, most_bound, most) in rules {
        let kind = kinds[0];
        let sum = |counts: &DescriptorCounts| kinds.iter().map(|&kind| u64::from(counts.get(kind))).sum();
        let rules = [(sum(&bound), most_bound), (sum(&all), if most == 0 { most_bound } else { most })];
        for (asked, most) in rules {
            if asked > u64::from(most) {
                return Err(PipelineLayoutError::TooManyDescriptors { kind, asked, most });
            }
        }
    }
    Ok(())
}

impl BindPoint {
    /// Returns its index in arrays with one element for each bind point.
    #[inline]
    pub(super) fn at(self) -> usize {
        index(match self {
            Self::Graphics => 0,
            Self::Compute => 1,
            Self::RayTracing => 2,
        })
    }
}
