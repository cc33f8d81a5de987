//! Staging validates the whole request before it changes anything. It makes no driver calls.

use ash::vk;

use super::area::{GivenSet, SetArea};
use super::plan::{BindMethod, BindingPlan, SetPlan, offset_alignment};
use super::point::BindPointState;
use super::{BindPoint, Binder, StageError};
use crate::counts::DescriptorKind;
use crate::descriptor::Descriptor;
use crate::heap::{BindlessStore, DescriptorHeap};
use sublet::upload::AllocatorRef;
use sublet_engines::cast::{index, widen};

/// Returns the plan of a set, and its area.
fn set_of(
    at: BindPoint,
    point: &mut BindPointState,
    set: u32,
) -> Result<(&SetPlan, &mut SetArea), StageError> {
    let missing = StageError::NoSuchSet { set, sets: point.sets() };
    let layout = point.layout.as_ref().ok_or(StageError::NoLayout { point: at, set })?;
    layout.plans().get(index(set)).zip(point.areas.get_mut(index(set))).ok_or(missing)
}

/// The maximum number of descriptors in a staged set. Each takes host memory; this many take several hundred MiB.
const MOST_STAGED: u32 = 1 << 22;

fn binding_of(plan: &SetPlan, set: u32, binding: u32) -> Result<&BindingPlan, StageError> {
    let found = plan.binding(binding).ok_or(StageError::NoSuchBinding { set, binding })?;
    if plan.elements > MOST_STAGED {
        return Err(StageError::SetTooLarge { set, descriptors: plan.elements, most: MOST_STAGED });
    }
    Ok(found)
}

/// Checks that the binding has `asked` descriptors from `first` on.
fn check_range(binding: &BindingPlan, first: u32, asked: usize) -> Result<(), StageError> {
    let end = u64::from(first).saturating_add(widen(asked));
    if end <= u64::from(binding.count) {
        return Ok(());
    }
    Err(StageError::OutOfRange { binding: binding.number, first, asked: widen(asked), count: binding.count })
}

/// Checks that the binding accepts the descriptor.
fn check_descriptor(
    plan: &SetPlan,
    binding: &BindingPlan,
    element: u32,
    descriptor: &Descriptor,
) -> Result<(), StageError> {
    let given = descriptor.kind();
    let takes_it = match binding.kind {
        DescriptorKind::Mutable => plan
            .layout
            .binding(binding.number)
            .is_some_and(|binding| binding.mutable_types.contains(&given.to_vk())),
        kind => kind == given,
    };
    if !takes_it {
        return Err(StageError::WrongType { binding: binding.number, expected: binding.kind, given });
    }
    if plan.way == BindMethod::Buffer {
        descriptor.with_get_info(|_| ()).map_err(|source| StageError::Data {
            binding: binding.number,
            element,
            source,
        })?;
    }
    Ok(())
}

impl<A: AllocatorRef> Binder<A> {
    /// Stages `descriptors` in a binding, from `first` on. Makes no driver call; the next [`commit`](Self::commit) for
    /// this bind point binds them.
    ///
    /// Descriptors are values, and the binder stores copies. Their objects must be live at the commit. A commit does no
    /// work for descriptors that were staged again unchanged.
    ///
    /// # Errors
    /// [`StageError`]. Nothing was changed, even if only one of the descriptors is invalid.
    ///
    /// # Complexity
    /// O(descriptors).
    #[inline]
    #[doc(alias = "StageDescriptors")]
    #[doc(alias = "StageDescriptorHandles")]
    #[doc(alias = "SetDynamicDescriptors")]
    #[doc(alias = "set_uniform_buffer")]
    #[doc(alias = "set_storage_buffer")]
    #[doc(alias = "set_texture")]
    #[doc(alias = "set_sampler")]
    pub fn stage(
        &mut self,
        point: BindPoint,
        set: u32,
        binding: u32,
        first: u32,
        descriptors: &[Descriptor],
    ) -> Result<(), StageError> {
        let (at, point) = (point, &mut self.points[point.at()]);
        let (plan, area) = set_of(at, point, set)?;
        let binding = binding_of(plan, set, binding)?;
        check_range(binding, first, descriptors.len())?;
        for (element, descriptor) in (first..).zip(descriptors) {
            check_descriptor(plan, binding, element, descriptor)?;
        }
        if binding.elements == 0 {
            return Err(StageError::Immutable { binding: binding.number });
        }
        if !descriptors.is_empty() && area.stage(plan, binding, first, descriptors) {
            point.touch(index(set));
        }
        Ok(())
    }

    /// Stages `bytes` of an inline uniform block, from byte `offset` on. Bytes that were never staged are zero.
    ///
    /// # Errors
    /// [`StageError`]. Nothing was changed. Offset and length must be multiples of 4
    /// (VUID-VkWriteDescriptorSet-descriptorType-02219, -02220).
    ///
    /// # Complexity
    /// O(bytes).
    pub fn stage_inline(
        &mut self,
        point: BindPoint,
        set: u32,
        binding: u32,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(), StageError> {
        const ALIGNMENT: u64 = 4;
        let (at, point) = (point, &mut self.points[point.at()]);
        let (plan, area) = set_of(at, point, set)?;
        let binding = binding_of(plan, set, binding)?;
        if !binding.is_inline() {
            return Err(StageError::WrongType {
                binding: binding.number,
                expected: binding.kind,
                given: DescriptorKind::InlineUniformBlock,
            });
        }
        check_range(binding, offset, bytes.len())?;
        for given in [u64::from(offset), widen(bytes.len())] {
            if given % ALIGNMENT != 0 {
                let binding = binding.number;
                return Err(StageError::Misaligned { binding, given, alignment: ALIGNMENT });
            }
        }
        if !bytes.is_empty() && area.stage_inline(plan, binding, offset, bytes) {
            point.touch(index(set));
        }
        Ok(())
    }

    /// Stages the offset that is added to a dynamic buffer when its set is bound. It is initially 0, and staging
    /// descriptors does not change it. A new offset creates no new set: the same set is bound again.
    ///
    /// # Errors
    /// [`StageError`]. Nothing was changed. The offset must be a multiple of `minUniformBufferOffsetAlignment` or
    /// `minStorageBufferOffsetAlignment` (VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01971, -01972).
    ///
    /// # Complexity
    /// O(1).
    #[doc(alias = "SetDynamicConstantBufferView")]
    #[doc(alias = "SetGraphicsDynamicConstantBuffer")]
    #[doc(alias = "allocate_constant_data")]
    #[doc(alias = "VolatileConstantBuffer")]
    #[doc(alias = "CreateVolatileConstantBufferDesc")]
    pub fn stage_dynamic_offset(
        &mut self,
        point: BindPoint,
        set: u32,
        binding: u32,
        element: u32,
        offset: u32,
    ) -> Result<(), StageError> {
        let limits = self.device.limits();
        let (uniform, storage) =
            (limits.min_uniform_buffer_offset_alignment, limits.min_storage_buffer_offset_alignment);
        let (at, point) = (point, &mut self.points[point.at()]);
        let (plan, area) = set_of(at, point, set)?;
        let binding = binding_of(plan, set, binding)?;
        if !binding.is_dynamic() {
            return Err(StageError::NotDynamic { binding: binding.number, kind: binding.kind });
        }
        check_range(binding, element, 1)?;
        let is_uniform = binding.kind == DescriptorKind::UniformBufferDynamic;
        let alignment = if is_uniform { uniform } else { storage }.max(1);
        if u64::from(offset) % alignment != 0 {
            let (binding, given) = (binding.number, offset.into());
            return Err(StageError::Misaligned { binding, given, alignment });
        }
        let at = binding.first_dynamic + index(element);
        if std::mem::replace(&mut area.offsets[at], offset) != offset {
            point.rebind |= point.staged & (1 << set);
        }
        Ok(())
    }

    /// Stages a set of the program, persistent or of a heap, in place of the descriptors staged for its number.
    /// Descriptors that are staged later replace it, and earlier ones do not return.
    ///
    /// # Errors
    /// [`StageError`]. Nothing was changed.
    ///
    /// # Complexity
    /// O(1).
    pub fn stage_set(
        &mut self,
        point: BindPoint,
        set: u32,
        handle: vk::DescriptorSet,
    ) -> Result<(), StageError> {
        let (at, point) = (point, &mut self.points[point.at()]);
        let (plan, area) = set_of(at, point, set)?;
        if plan.way != BindMethod::Set {
            return Err(StageError::NoSets { set });
        }
        if handle == vk::DescriptorSet::null() {
            return Err(StageError::NullSet { set });
        }
        if area.stage_given(GivenSet::Set(handle)) {
            point.touch_given(index(set));
        }
        Ok(())
    }

    /// Variant of [`stage_set`](Self::stage_set) for descriptor buffers. The set is at `offset` of a buffer of the
    /// program, for example of a heap ([`BufferStore::binding_info`](crate::BufferStore::binding_info), at
    /// offset 0). Only address and usage of `buffer` are read. It is bound beside the descriptor page, together with
    /// the others that were staged since [`begin`](Self::begin). A buffer that is first staged later in a command
    /// buffer costs as much as another page.
    ///
    /// # Errors
    /// [`StageError`]. Nothing was changed. The offset must be a multiple of `descriptorBufferOffsetAlignment`
    /// (VUID-vkCmdSetDescriptorBufferOffsetsEXT-pOffsets-08061).
    ///
    /// # Complexity
    /// O(1).
    pub fn stage_buffer(
        &mut self,
        point: BindPoint,
        set: u32,
        buffer: &vk::DescriptorBufferBindingInfoEXT<'_>,
        offset: u64,
    ) -> Result<(), StageError> {
        let alignment = offset_alignment(&self.device).get();
        let (at, point) = (point, &mut self.points[point.at()]);
        let (plan, area) = set_of(at, point, set)?;
        if plan.way != BindMethod::Buffer {
            return Err(StageError::NoBuffers { set });
        }
        if buffer.address == 0 {
            return Err(StageError::NullSet { set });
        }
        if offset % alignment != 0 {
            return Err(StageError::MisalignedSet { set, given: offset, alignment });
        }
        let given = GivenSet::Bytes { address: buffer.address, usage: buffer.usage, offset };
        if area.stage_given(given) {
            point.touch_given(index(set));
        }
        Ok(())
    }

    /// Stages a heap for a frame with [`stage_set`](Self::stage_set) or [`stage_buffer`](Self::stage_buffer), depending
    /// on its store. Call it after the heap's [`flush`](crate::BindlessHeap::flush) for the frame.
    ///
    /// # Errors
    /// [`StageError`]. Nothing was changed. [`StageError::NullSet`] for Vulkan's own heaps, which are bound without
    /// sets.
    ///
    /// # Complexity
    /// O(1).
    pub fn stage_heap<H: AllocatorRef>(
        &mut self,
        point: BindPoint,
        set: u32,
        heap: &DescriptorHeap<BindlessStore<H>>,
        frame: u32,
    ) -> Result<(), StageError> {
        match heap.buffer_info() {
            Some(buffer) => self.stage_buffer(point, set, &buffer, 0),
            None => self.stage_set(point, set, heap.frame_set(frame).unwrap_or_default()),
        }
    }

    /// Returns the first descriptor of the pipeline layout that is not staged; `None` if all are. For debugging: this
    /// is an error only if a shader uses the descriptor.
    ///
    /// # Complexity
    /// O(descriptors of the layout).
    #[must_use]
    pub fn first_unstaged(&self, point: BindPoint) -> Option<Unstaged> {
        let point = &self.points[point.at()];
        let plans = point.layout.as_ref().map_or(&[][..], |layout| layout.plans());
        for (set, (plan, area)) in (0..).zip(plans.iter().zip(&point.areas)) {
            if area.is_given() {
                continue;
            }
            for binding in &plan.bindings {
                let element =
                    (0..binding.elements).find(|element| !area.is_staged(binding.first_element + element));
                if let Some(element) = element {
                    return Some(Unstaged { set, binding: binding.number, element });
                }
            }
        }
        None
    }
}

/// A descriptor that is not staged.
///
/// ```
/// let missing = sublet_descriptors::Unstaged { set: 0, binding: 3, element: 1 };
/// assert_eq!(missing.binding, 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unstaged {
    /// The number of the set.
    pub set: u32,
    /// The number of the binding.
    pub binding: u32,
    /// The array element of the binding; 0 for an inline uniform block.
    pub element: u32,
}
