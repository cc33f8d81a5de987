//! Pipeline layouts and their set layouts.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use ash::vk;
use sublet::device::DriverError;
use sublet_descriptors::{
    DescriptorDevice, PipelineLayoutError, PipelineLayoutInfo, SetLayout, SetLayoutBinding, SetLayoutError,
};

use super::ListError;
use crate::device::{DeviceCore, LostDevice, Shared};

/// A pipeline layout with its set layouts, which describe the kind and the stages of each binding.
///
/// [`Frames::create_pipeline_layout`](crate::Frames::create_pipeline_layout) creates it together with its set layouts;
/// [`new`](Self::new) wraps existing layouts. Cheap to clone.
#[derive(Clone)]
#[doc(alias = "RootSignature")]
pub struct PipelineLayout {
    pub(super) info: PipelineLayoutInfo,
    sets: Arc<[SetLayout]>,
}

impl PipelineLayout {
    /// See [`Frames::create_pipeline_layout`](crate::Frames::create_pipeline_layout).
    ///
    /// # Safety
    /// See [`Frames::create_pipeline_layout`](crate::Frames::create_pipeline_layout).
    pub(crate) unsafe fn create(
        core: &DeviceCore,
        sets: &[vk::DescriptorSetLayoutCreateInfo<'_>],
        push_constants: &[vk::PushConstantRange],
    ) -> Result<Self, CreateLayoutError> {
        let device = core.api.device();
        let descriptors = core.info.descriptors.as_ref().ok_or(CreateLayoutError::NoDescriptors)?;
        let refused =
            |call| move |result| CreateLayoutError::Driver(core.record_error(DriverError { call, result }));
        let (mut made, mut known) = (Vec::new(), Vec::new());
        for (set, info) in (0..).zip(sets) {
            // SAFETY: the caller's promise.
            let layout = unsafe { device.create_descriptor_set_layout(info, None) };
            let layout = layout.map_err(refused("vkCreateDescriptorSetLayout"))?;
            made.push(Shared::new(layout, device, device.fp_v1_0().destroy_descriptor_set_layout));
            // SAFETY: the layout was created from this info, which the caller guarantees to be valid.
            let layout = unsafe { SetLayout::new(layout, info) };
            known.push(layout.map_err(|error| CreateLayoutError::Set { set, error })?);
        }
        let handles: Vec<_> = known.iter().map(SetLayout::handle).collect();
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&handles)
            .push_constant_ranges(push_constants);
        // SAFETY: the set layouts are live, and the caller guarantees the ranges.
        let layout = unsafe { device.create_pipeline_layout(&info, None) };
        let layout = layout.map_err(refused("vkCreatePipelineLayout"))?;
        let layout = Shared::new(layout, device, device.fp_v1_0().destroy_pipeline_layout);
        // SAFETY: it was created from these arguments; the core keeps it, and outlives its lists.
        let own = unsafe { Self::new(descriptors, layout.handle, &known, push_constants) };
        let own = own.map_err(CreateLayoutError::Layout)?;
        core.layouts.keep(layout, made);
        Ok(own)
    }

    /// Wraps an existing pipeline layout.
    ///
    /// # Errors
    /// See [`PipelineLayoutError`].
    ///
    /// # Safety
    /// See [`PipelineLayoutInfo::new`]. The layouts outlive the frames and all lists in which the value was bound.
    pub unsafe fn new(
        device: &DescriptorDevice,
        layout: vk::PipelineLayout,
        sets: &[SetLayout],
        push_constants: &[vk::PushConstantRange],
    ) -> Result<Self, PipelineLayoutError> {
        // SAFETY: the caller's own promise.
        let info = unsafe { PipelineLayoutInfo::new(device, layout, sets, push_constants) }?;
        Ok(Self { info, sets: sets.into() })
    }

    /// Returns the Vulkan handle.
    #[must_use]
    pub fn handle(&self) -> vk::PipelineLayout {
        self.info.handle()
    }

    pub(super) fn set(&self, set: u32) -> Option<&SetLayout> {
        usize::try_from(set).ok().and_then(|set| self.sets.get(set))
    }

    pub(super) fn binding(&self, set: u32, binding: u32) -> Result<&SetLayoutBinding, ListError> {
        self.set(set).and_then(|set| set.binding(binding)).ok_or(ListError::NoBinding { set, binding })
    }
}

impl fmt::Debug for PipelineLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineLayout").field("handle", &self.handle()).finish_non_exhaustive()
    }
}

/// An error of creating a pipeline layout.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateLayoutError {
    /// The frames were created without [`FramesCreateInfo::descriptors`](crate::FramesCreateInfo::descriptors).
    NoDescriptors,
    /// A set has an invalid or unknown binding.
    Set {
        /// The index of the set.
        set: u32,
        /// The error.
        error: SetLayoutError,
    },
    /// The device is lost.
    Lost,
    /// The sets exceed the limits of the device.
    Layout(PipelineLayoutError),
    /// The driver call failed.
    Driver(DriverError),
}

impl fmt::Display for CreateLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDescriptors => f.write_str("the frames have no descriptor device"),
            Self::Set { set, .. } => write!(f, "set {set} of a pipeline layout is invalid"),
            Self::Lost => f.write_str("the device is lost"),
            Self::Layout(_) => f.write_str("the sets of a pipeline layout exceed the limits of the device"),
            Self::Driver(_) => f.write_str("the driver failed to create a pipeline layout"),
        }
    }
}

impl LostDevice for CreateLayoutError {
    const LOST: Self = Self::Lost;
}

impl Error for CreateLayoutError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoDescriptors => None,
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::Set { error, .. } => Some(error),
            Self::Layout(error) => Some(error),
            Self::Driver(error) => Some(error),
        }
    }
}
