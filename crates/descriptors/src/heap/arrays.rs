//! The set layout of a heap: one array for all types, or one for each type.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;

use super::super::counts::{DescriptorCounts, DescriptorKind};
use super::super::device::DescriptorDevice;
use super::super::features::DescriptorFeatures;
use super::super::layout::SetLayout;
use super::create_info::{CreateHeapError, HeapArrays, HeapCreateInfo, HeapGrowth};
use super::error::HeapWriteError;
use super::limits::{self, HeapShape};
use sublet_engines::cast::narrow;

/// Defines the getters of a store that has a field `arrays`, and a [`HeapLayout`] at `$layout` of its current parts.
macro_rules! layout_getters {
    ($($layout:ident).+) => {
        /// Returns the layout, for pipelines. It is compatible with any identically created layout. It stays the same,
        /// unless the heap grows with [`HeapGrowth::ChangeLayout`](crate::HeapGrowth::ChangeLayout).
        #[must_use]
        pub fn layout(&self) -> ash::vk::DescriptorSetLayout {
            self.current.with(|parts, _| parts.$($layout).+.of_sets().handle())
        }

        /// Returns the layout with its bindings, for a [`PipelineLayoutInfo`](crate::PipelineLayoutInfo).
        #[must_use]
        pub fn set_layout(&self) -> crate::SetLayout {
            self.current.with(|parts, _| parts.$($layout).+.of_sets().clone())
        }

        /// Returns the binding at which shaders find descriptors of a type; `None` if the heap does not hold the type.
        #[must_use]
        pub fn binding(&self, kind: crate::DescriptorKind) -> Option<u32> {
            self.arrays.binding(kind)
        }
    };
}
pub(super) use layout_getters;

/// The use of the layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LayoutPurpose {
    /// A set that is written while it is bound.
    UpdateAfterBind,
    /// Sets that are not written while they are bound.
    Classic,
    /// A descriptor buffer.
    Buffer,
}

/// The parameters of a heap's layouts: one layout for all sizes, or one layout for each size.
#[derive(Debug)]
pub(super) struct LayoutArrays {
    types: Box<[DescriptorKind]>,
    is_one: bool,
    stages: vk::ShaderStageFlags,
    purpose: LayoutPurpose,
    /// The initial number of slots.
    pub(super) slots: u32,
    pub(super) max_slots: u32,
    pub(super) transient: u32,
    /// The only binding has a variable count, so one layout serves all sizes.
    is_variable: bool,
}

impl LayoutArrays {
    /// Validates the request, features and limits. Creates nothing.
    pub(super) fn new(
        device: &DescriptorDevice,
        info: &HeapCreateInfo<'_>,
        purpose: LayoutPurpose,
    ) -> Result<Self, CreateHeapError> {
        info.check()?;
        let types = info.actual_types();
        let has_mutable = device.features().contains(DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE);
        let is_one = match info.arrays {
            HeapArrays::Auto => has_mutable && types.len() > 1,
            HeapArrays::One => types.len() > 1,
            HeapArrays::PerType => false,
        };
        let needed = needed_features(types, is_one, purpose);
        let missing = needed - device.features();
        if !missing.is_empty() {
            return Err(CreateHeapError::Unsupported { missing });
        }
        // A layout that must stay has the maximum number of slots. Only the last binding may have a variable count, so
        // it must be the only one.
        let max_slots = info.most();
        let is_variable = max_slots != info.slots
            && (is_one || types.len() == 1)
            && purpose != LayoutPurpose::Classic
            && device.features().contains(DescriptorFeatures::VARIABLE_DESCRIPTOR_COUNT);
        let may_grow = is_variable || info.growth == HeapGrowth::ChangeLayout;
        let slots = if may_grow { info.slots } else { max_slots };
        let wanted = HeapShape { types, slots: max_slots, is_one };
        limits::check(device, &wanted, purpose == LayoutPurpose::UpdateAfterBind)?;
        let (types, transient, stages) = (types.into(), info.transient, info.stages);
        Ok(Self { types, is_one, stages, purpose, slots, max_slots, transient, is_variable })
    }

    /// Returns the types as Vulkan values.
    pub(super) fn vk_types(&self) -> Vec<vk::DescriptorType> {
        vk_types(&self.types)
    }

    /// Returns true if sets and buffers have fewer slots than their layout.
    pub(super) fn is_variable(&self) -> bool {
        self.is_variable
    }

    pub(super) fn purpose(&self) -> LayoutPurpose {
        self.purpose
    }

    /// Returns the binding that a type is written to; an error if the heap does not hold the type.
    #[inline]
    pub(super) fn binding_of(&self, kind: DescriptorKind) -> Result<u32, HeapWriteError> {
        self.binding(kind).ok_or(HeapWriteError::Kind { kind })
    }

    /// Returns the binding that a type is written to; `None` if the heap does not hold the type.
    #[inline]
    pub(super) fn binding(&self, kind: DescriptorKind) -> Option<u32> {
        let at = self.types.iter().position(|&held| held == kind)?;
        Some(if self.is_one { 0 } else { narrow(at) })
    }

    /// Returns the number of bindings of the layout, numbered from 0.
    pub(super) fn bindings(&self) -> u32 {
        if self.is_one { 1 } else { narrow(self.types.len()) }
    }

    pub(super) fn types(&self) -> &[DescriptorKind] {
        &self.types
    }

    pub(super) fn is_one(&self) -> bool {
        self.is_one
    }
}

/// A live layout, shared by everything that was created from it. Dropping it does not destroy the layout, because only
/// the program knows when the device is done with it; a warning reports the leak.
#[derive(Debug)]
pub(super) struct HeapLayout {
    layout: SetLayout,
    slots: u32,
    is_destroyed: AtomicBool,
}

impl HeapLayout {
    /// Creates a layout for this number of slots: the first, or one to grow to. Leaves nothing behind on failure.
    pub(super) fn create(
        device: &DescriptorDevice,
        arrays: &LayoutArrays,
        slots: u32,
    ) -> Result<Arc<Self>, CreateHeapError> {
        let slots = if arrays.is_variable { arrays.max_slots } else { slots };
        let wanted = HeapShape { types: &arrays.types, slots, is_one: arrays.is_one };
        let layout = create_layout(device, &wanted, arrays.stages, arrays.purpose, arrays.is_variable)?;
        Ok(Arc::new(Self { layout, slots, is_destroyed: AtomicBool::new(false) }))
    }

    /// Returns the layout for a heap that grows from this one to more slots: the same one if it serves all sizes.
    pub(super) fn next(
        self: &Arc<Self>,
        device: &DescriptorDevice,
        arrays: &LayoutArrays,
        slots: u32,
    ) -> Result<Arc<Self>, CreateHeapError> {
        if arrays.is_variable { Ok(self.clone()) } else { Self::create(device, arrays, slots) }
    }

    #[inline]
    pub(super) fn of_sets(&self) -> &SetLayout {
        &self.layout
    }

    /// Returns the number of slots in the layout, which may exceed that of its sets.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Destroys the layout, unless another owner remains.
    ///
    /// # Safety
    /// The layout belongs to this device, and the object that held it is no longer in use.
    pub(super) unsafe fn release(self: Arc<Self>, device: &DescriptorDevice) {
        let Some(last) = Arc::into_inner(self) else { return };
        // SAFETY: `create` created the layout on this device, and this was its last owner.
        unsafe { device.driver().destroy_set_layout(last.layout.handle()) };
        last.is_destroyed.store(true, Ordering::Relaxed);
    }
}

impl Drop for HeapLayout {
    fn drop(&mut self) {
        if !*self.is_destroyed.get_mut() {
            tracing::warn!(
                name: "descriptor_heap_leaked", target: "sublet::leak", slots = self.slots,
                "the store of a descriptor heap was dropped and not destroyed: it is leaked"
            );
        }
    }
}

fn needed_features(types: &[DescriptorKind], is_one: bool, purpose: LayoutPurpose) -> DescriptorFeatures {
    let mut needed = DescriptorFeatures::empty();
    if is_one {
        needed |= DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE;
    }
    match purpose {
        LayoutPurpose::UpdateAfterBind => {
            needed |= DescriptorFeatures::PARTIALLY_BOUND | DescriptorFeatures::UPDATE_UNUSED_WHILE_PENDING;
            for &kind in types {
                needed |= DescriptorFeatures::update_after_bind_of(kind).unwrap_or_default();
            }
        }
        LayoutPurpose::Classic => {}
        LayoutPurpose::Buffer => {
            needed |= DescriptorFeatures::DESCRIPTOR_BUFFER | DescriptorFeatures::BUFFER_DEVICE_ADDRESS;
        }
    }
    needed
}

/// Creates the layout. Leaves nothing behind on failure.
fn create_layout(
    device: &DescriptorDevice,
    wanted: &HeapShape<'_>,
    stages: vk::ShaderStageFlags,
    purpose: LayoutPurpose,
    is_variable: bool,
) -> Result<SetLayout, CreateHeapError> {
    let kinds = if wanted.is_one { &[DescriptorKind::Mutable][..] } else { wanted.types };
    let mut bindings = Vec::with_capacity(kinds.len());
    for (at, kind) in kinds.iter().enumerate() {
        let binding = vk::DescriptorSetLayoutBinding::default()
            .binding(narrow(at))
            .descriptor_type(kind.to_vk())
            .descriptor_count(wanted.slots)
            .stage_flags(stages);
        bindings.push(binding);
    }
    let set_flags = match purpose {
        LayoutPurpose::UpdateAfterBind => vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL,
        LayoutPurpose::Classic => vk::DescriptorSetLayoutCreateFlags::empty(),
        LayoutPurpose::Buffer => vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT,
    };
    let mut info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(set_flags);
    let mut each = vk::DescriptorBindingFlags::empty();
    if purpose == LayoutPurpose::UpdateAfterBind {
        each |= vk::DescriptorBindingFlags::UPDATE_AFTER_BIND
            | vk::DescriptorBindingFlags::PARTIALLY_BOUND
            | vk::DescriptorBindingFlags::UPDATE_UNUSED_WHILE_PENDING;
    }
    if is_variable {
        each |= vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT;
    }
    let flags = vec![each; bindings.len()];
    let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    if !each.is_empty() {
        info = info.push_next(&mut flags);
    }
    let mutable_types = vk_types(wanted.types);
    let lists = [vk::MutableDescriptorTypeListEXT::default().descriptor_types(&mutable_types)];
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    if wanted.is_one {
        info = info.push_next(&mut mutable);
    }
    let descriptors = counts(wanted).total();
    if descriptors > device.driver().facts.max_per_set.into() {
        // SAFETY: the create-info is valid: see below.
        let support = unsafe { device.driver().set_layout_support(&info) };
        if support.is_some_and(|(supported, _)| !supported) {
            return Err(CreateHeapError::Layout { descriptors });
        }
    }
    // SAFETY: the binding numbers are distinct (VUID-VkDescriptorSetLayoutCreateInfo-binding-00279).
    // `LayoutArrays::new` checked that the features are enabled for the flags
    // (VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-descriptorBindingUniformBufferUpdateAfterBind-03005 and those
    // after it) and for the mutable type (VUID-VkDescriptorSetLayoutCreateInfo-mutableDescriptorType-04595). There is
    // one flag for each binding.
    let handle = unsafe { device.driver().create_set_layout(&info) }?;
    // SAFETY: the layout was created from this create-info.
    unsafe { SetLayout::new(handle, &info) }.map_err(|_| {
        // SAFETY: nothing else has the handle.
        unsafe { device.driver().destroy_set_layout(handle) };
        CreateHeapError::Layout { descriptors }
    })
}

/// Returns the types as Vulkan values.
fn vk_types(types: &[DescriptorKind]) -> Vec<vk::DescriptorType> {
    types.iter().map(|kind| kind.to_vk()).collect()
}

/// Returns the counts that a set uses of a pool.
fn counts(wanted: &HeapShape<'_>) -> DescriptorCounts {
    if wanted.is_one {
        return DescriptorCounts::new().with(DescriptorKind::Mutable, wanted.slots);
    }
    wanted.types.iter().fold(DescriptorCounts::new(), |counts, &kind| counts.with(kind, wanted.slots))
}
