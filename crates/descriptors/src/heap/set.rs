//! The store for devices with descriptor indexing: one set that is written while it is bound.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::Arc;

use ash::vk;

use super::super::batch::WriteBatch;
use super::super::counts::DescriptorKind;
use super::super::descriptor::Descriptor;
use super::super::device::DescriptorDevice;
use super::super::features::DescriptorFeatures;
use super::arrays::{HeapLayout, LayoutArrays, LayoutPurpose, layout_getters};
use super::create_info::{CreateHeapError, HeapCreateInfo};
use super::current::{CurrentParts, of_current_parts};
use super::error::HeapWriteError;
use super::sets::HeapSets;
use super::slot::{HeapSlot, HostSlot};
use super::store::HeapStore;
use crate::driver::BindTarget;

/// One descriptor set with large arrays, bound once for each command buffer and written at any time
/// (`VK_EXT_descriptor_indexing`).
///
/// It creates its own layout, pool and set. Slots need no descriptor until a shader uses them, and may be written while
/// submissions run that do not use them.
///
/// # Declarations in shaders
/// The program chooses index and set number; here set 0, and the first index of a material in push constants. With
/// [`HeapArrays::One`](super::HeapArrays::One) everything is at binding 0:
///
/// ```glsl
/// #extension GL_EXT_nonuniform_qualifier : require
/// layout(set = 0, binding = 0) uniform texture2D textures[];
/// layout(set = 0, binding = 0) buffer Lights { vec4 light[]; } buffers[];
/// layout(set = 1, binding = 0) uniform sampler samplers[];       // a heap of samplers
/// layout(push_constant) uniform Push { uint material; uint sampler_index; };
/// // texture(sampler2D(textures[nonuniformEXT(material + 2)], samplers[sampler_index]), uv)
/// ```
///
/// With [`HeapArrays::PerType`](super::HeapArrays::PerType) the second line has `binding = 3`: the position of storage
/// buffers among the types of the heap. [`binding`](Self::binding) returns it. In HLSL:
///
/// ```hlsl
/// [[vk::binding(0, 0)]] Texture2D textures[];
/// [[vk::binding(3, 0)]] StructuredBuffer<float4> buffers[];
/// // textures[NonUniformResourceIndex(material + 2)].Sample(samplers[sampler_index], uv)
/// ```
///
/// and in WGSL, if it supports arrays of bindings:
/// `@group(0) @binding(0) var textures: binding_array<texture_2d<f32>>;`.
///
/// # Requirements
/// [`DescriptorFeatures::PARTIALLY_BOUND`], [`DescriptorFeatures::UPDATE_UNUSED_WHILE_PENDING`], and the
/// update-after-bind feature of each type. Shaders whose indices differ within a draw need the `...NonUniformIndexing`
/// features as well. Use [`ClassicStore`](super::ClassicStore) on other devices.
///
/// ```
/// use sublet_descriptors::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let info = HeapCreateInfo { arrays: HeapArrays::PerType, ..HeapCreateInfo::new(HeapKind::Resource) };
/// let store = SetStore::new(&device, &info)?;
/// assert_eq!(store.binding(DescriptorKind::StorageBuffer), Some(3));
/// let heap = DescriptorHeap::new(store);
/// // SAFETY: the device does not use the heap.
/// unsafe { heap.into_store().destroy() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the set lives until it is destroyed"]
pub struct SetStore {
    device: DescriptorDevice,
    arrays: LayoutArrays,
    name: Box<str>,
    /// One set.
    current: CurrentParts<HeapSets>,
}

impl SetStore {
    /// Creates layout, pool and set.
    ///
    /// # Errors
    /// [`CreateHeapError`]: missing features, limits, or a driver error. Nothing is left behind.
    pub fn new(device: &DescriptorDevice, info: &HeapCreateInfo<'_>) -> Result<Self, CreateHeapError> {
        let arrays = LayoutArrays::new(device, info, LayoutPurpose::UpdateAfterBind)?;
        let layout = HeapLayout::create(device, &arrays, arrays.slots)?;
        let sets = Self::make_set(device, &arrays, layout, info.name, arrays.slots)?;
        let current = CurrentParts::new(sets, arrays.slots, arrays.max_slots);
        Ok(Self { device: device.clone(), arrays, name: info.name.into(), current })
    }

    fn make_set(
        device: &DescriptorDevice,
        arrays: &LayoutArrays,
        layout: Arc<HeapLayout>,
        name: &str,
        slots: u32,
    ) -> Result<HeapSets, CreateHeapError> {
        let sets = HeapSets::create(device, arrays, layout, name, 1, slots)?;
        if device.features().contains(DescriptorFeatures::DEBUG_UTILS) {
            if let Ok(name) = std::ffi::CString::new(name) {
                // SAFETY: the set is live and nothing else has its handle. The create-info of the device says that
                // VK_EXT_debug_utils is enabled.
                unsafe { device.driver().set_name(sets.all[0], &name) };
            }
        }
        Ok(sets)
    }

    layout_getters!(layout);

    /// Returns the set, for programs that bind it together with others. It changes when the heap
    /// [grows](super::DescriptorHeap#growing).
    #[must_use]
    pub fn set(&self) -> vk::DescriptorSet {
        self.current.with(|sets, _| sets.all[0])
    }

    /// Binds the set. Call it once for each command buffer; binding something incompatible with its layout unbinds it.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, and `layout` has [`Self::layout`] as its set number
    /// `set`.
    pub unsafe fn cmd_bind(
        &self,
        commands: vk::CommandBuffer,
        bind_point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        set: u32,
    ) {
        let target = BindTarget { commands, bind_point, layout, set };
        // SAFETY: the set is live; the caller promises the rest about command buffer and layout.
        unsafe { self.device.driver().cmd_bind_sets(&target, &[self.set()], &[]) };
    }

    /// Destroys set, pool and layout. Without this call they are leaked, with a `tracing` warning.
    ///
    /// # Safety
    /// The device is done with all submissions that use the set.
    pub unsafe fn destroy(self) {
        let Self { device, current, .. } = self;
        // SAFETY: the sets belong to this device, and the caller promises that it is done with all of them.
        current.into_each(|sets| unsafe { sets.destroy(&device) });
    }
}

impl HeapStore for SetStore {
    of_current_parts!(arrays, |store, sets| sets.destroy(&store.device));

    /// Creates one pool and one set, and copies all descriptors. Frames in flight do not see the new set.
    fn grow(&self, slots: u32) -> Result<(), CreateHeapError> {
        let make = || {
            let now = self.current.with(|sets, _| sets.layout.clone());
            let layout = now.next(&self.device, &self.arrays, slots)?;
            Self::make_set(&self.device, &self.arrays, layout, &self.name, slots)
        };
        self.current.grow(slots, self.arrays.types().len(), make, |old, next, had| {
            let copy = |binding| {
                vk::CopyDescriptorSet::default()
                    .src_set(old.all[0])
                    .src_binding(binding)
                    .dst_set(next.all[0])
                    .dst_binding(binding)
                    .descriptor_count(had)
            };
            let copies: Vec<_> = (0..self.arrays.bindings()).map(copy).collect();
            // SAFETY: both sets are live, and their layouts have the same bindings, each with at least this many
            // descriptors of the same type in both sets (VUID-VkCopyDescriptorSet-srcArrayElement-00346,
            // -dstArrayElement-00348, -dstBinding-02632). A copy does not use the objects in a descriptor. Nobody
            // writes the old set meanwhile, and nobody else has the new one.
            unsafe { self.device.driver().update_sets(&[], &copies) };
        })
    }

    unsafe fn write(&self, index: u32, descriptor: &Descriptor) -> Result<(), HeapWriteError> {
        let binding = self.arrays.binding_of(descriptor.kind())?;
        self.current.with(|sets, _| {
            descriptor.with_write(sets.all[0], binding, index, |write| {
                // SAFETY: the slot is in the array, and the binding takes the type
                // (VUID-VkWriteDescriptorSet-dstBinding-00315, -dstArrayElement-00321, -descriptorType-00319). The
                // caller promises that no running shader uses the slot, and that the objects are live.
                // Update-after-bind bindings need no lock for different slots.
                unsafe { self.device.driver().update_sets(std::slice::from_ref(write), &[]) };
            });
        });
        Ok(())
    }

    unsafe fn write_many<'a>(
        &self,
        writes: impl Iterator<Item = (u32, &'a Descriptor)> + Clone,
    ) -> Result<(), HeapWriteError> {
        let mut batch = WriteBatch::default();
        for (index, descriptor) in writes {
            let binding = self.arrays.binding_of(descriptor.kind())?;
            batch.push(binding, index, descriptor);
        }
        if !batch.is_empty() {
            self.current.with(|sets, _| {
                // SAFETY: same as in `write`, for each of them.
                batch.show(sets.all[0], |writes| unsafe { self.device.driver().update_sets(writes, &[]) });
            });
        }
        Ok(())
    }

    fn slot(&self, index: u32, kind: DescriptorKind) -> Option<HeapSlot> {
        let (set, binding) = (self.set(), self.binding(kind)?);
        Some(HeapSlot { host: Some(HostSlot::Set { set, binding }), ..HeapSlot::new(index) })
    }
}
