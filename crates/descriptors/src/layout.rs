//! A descriptor set layout, with the properties that the library needs.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use super::counts::{DescriptorCounts, DescriptorKind};
use sublet_engines::cast::index;

/// One binding of a [`SetLayout`].
///
/// ```
/// # use ash::vk; use sublet_descriptors::*;
/// let bindings = [vk::DescriptorSetLayoutBinding::default()
///     .binding(3).descriptor_type(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(2)];
/// let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
/// // SAFETY: the create-info is valid. The handle may be null, because it is not used.
/// let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }?;
/// let binding: &SetLayoutBinding = layout.binding(3).unwrap();
/// assert_eq!((binding.kind, binding.count), (DescriptorKind::StorageBuffer, 2));
/// # Ok::<(), SetLayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SetLayoutBinding {
    /// The number of the binding.
    pub binding: u32,
    /// The type of its descriptors.
    pub kind: DescriptorKind,
    /// The number of descriptors; the number of bytes of an inline uniform block; the maximum if the count is variable.
    pub count: u32,
    /// The stages that use it.
    pub stages: vk::ShaderStageFlags,
    /// True if its samplers are immutable.
    pub immutable_samplers: bool,
    /// `VkDescriptorBindingFlags`.
    pub flags: vk::DescriptorBindingFlags,
    /// The types that a mutable descriptor may have; empty for others.
    pub mutable_types: Box<[vk::DescriptorType]>,
}

/// Distinguishes layouts: handles are reused after a layout is destroyed.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The pools for sets of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SetSource {
    /// Any pool.
    Plain,
    /// An update-after-bind pool.
    AfterBind,
    /// The slow path decides: the layout has a variable count, mutable types, host-only pools, or no sets at all.
    Special,
}

#[derive(Debug)]
struct SetLayoutInner {
    id: u64,
    /// The bucket in which an allocator last found this layout. Any allocator may overwrite it, so it is checked before
    /// use.
    hint: AtomicU64,
    flags: vk::DescriptorSetLayoutCreateFlags,
    /// The counts without the variable binding.
    fixed: DescriptorCounts,
    /// The counts with the maximum of the variable binding.
    most: DescriptorCounts,
    source: SetSource,
    variable: Option<(DescriptorKind, u32)>,
    /// Sorted by binding number.
    bindings: Box<[SetLayoutBinding]>,
}

/// A `VkDescriptorSetLayout` of the program with its bindings, which Vulkan cannot report.
///
/// Create it once, next to the layout. Cloning is cheap. It does not own the layout.
///
/// ```
/// # use ash::vk; use sublet_descriptors::*;
/// let bindings = [
///     vk::DescriptorSetLayoutBinding::default()
///         .binding(0).descriptor_type(vk::DescriptorType::UNIFORM_BUFFER).descriptor_count(1),
///     vk::DescriptorSetLayoutBinding::default()
///         .binding(1).descriptor_type(vk::DescriptorType::COMBINED_IMAGE_SAMPLER).descriptor_count(4),
/// ];
/// let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
/// // SAFETY: the create-info is valid. The handle may be null, because it is not used.
/// let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }?;
/// assert_eq!(layout.counts().get(DescriptorKind::CombinedImageSampler), 4);
/// # Ok::<(), SetLayoutError>(())
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "BindingLayout")]
pub struct SetLayout {
    handle: vk::DescriptorSetLayout,
    inner: Arc<SetLayoutInner>,
}

impl SetLayout {
    /// Describes `layout` by its create-info.
    ///
    /// Reads `VkDescriptorSetLayoutBindingFlagsCreateInfo` and `VkMutableDescriptorTypeCreateInfoEXT` in the chain, and
    /// ignores other structures, which do not affect the requirements on pools.
    ///
    /// # Errors
    /// [`SetLayoutError`] for vendor descriptor types.
    ///
    /// # Safety
    /// The create-info and its chain are valid, and `layout` was created from it.
    pub unsafe fn new(
        layout: vk::DescriptorSetLayout,
        info: &vk::DescriptorSetLayoutCreateInfo<'_>,
    ) -> Result<Self, SetLayoutError> {
        // SAFETY: the create-info is valid: `bindingCount` bindings
        // (VUID-VkDescriptorSetLayoutCreateInfo-pBindings-parameter).
        let given = unsafe { slice(info.p_bindings, info.binding_count) };
        // SAFETY: the caller promises that the chain is valid.
        let chain = unsafe { Chain::read(info.p_next) };
        let mut bindings = Vec::with_capacity(given.len());
        for (at, binding) in given.iter().enumerate() {
            let kind =
                DescriptorKind::from_vk(binding.descriptor_type).ok_or(SetLayoutError::UnknownType {
                    binding: binding.binding,
                    descriptor_type: binding.descriptor_type,
                })?;
            bindings.push(SetLayoutBinding {
                binding: binding.binding,
                kind,
                count: binding.descriptor_count,
                stages: binding.stage_flags,
                immutable_samplers: !binding.p_immutable_samplers.is_null()
                    && matches!(kind, DescriptorKind::Sampler | DescriptorKind::CombinedImageSampler),
                flags: chain.flags.get(at).copied().unwrap_or_default(),
                mutable_types: chain.mutable_types(at, kind),
            });
        }
        bindings.sort_by_key(|binding| binding.binding);
        let mut fixed = DescriptorCounts::new();
        let mut variable = None;
        for binding in &bindings {
            if binding.flags.contains(vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT) {
                variable = Some((binding.kind, binding.count));
            } else {
                fixed = fixed.with(binding.kind, binding.count);
            }
            if binding.kind == DescriptorKind::InlineUniformBlock && binding.count != 0 {
                fixed = fixed.with_inline_uniform_bindings(1);
            }
        }
        let most = variable.map_or(fixed, |(kind, count)| fixed.with(kind, count));
        let source = match info.flags {
            _ if variable.is_some() || most.get(DescriptorKind::Mutable) != 0 => SetSource::Special,
            vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL => SetSource::AfterBind,
            flags if flags.is_empty() => SetSource::Plain,
            _ => SetSource::Special,
        };
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let hint = AtomicU64::new(0);
        let inner = SetLayoutInner {
            id,
            hint,
            flags: info.flags,
            fixed,
            most,
            source,
            variable,
            bindings: bindings.into(),
        };
        Ok(Self { handle: layout, inner: Arc::new(inner) })
    }

    /// Returns true if both have the same definition, so that sets of one are compatible with the other ("Pipeline
    /// Layout Compatibility"). Immutable samplers cannot be compared: with those, only clones of one value are
    /// identical.
    #[must_use]
    pub fn is_identical(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.inner, &other.inner) && self.handle == other.handle {
            return true;
        }
        let (one, two) = (&self.inner, &other.inner);
        one.flags == two.flags
            && one.bindings == two.bindings
            && !one.bindings.iter().any(|binding| binding.immutable_samplers)
    }

    /// Returns the handle.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::DescriptorSetLayout {
        self.handle
    }

    /// Returns an id that is unique to this layout and its clones.
    #[inline]
    pub(super) fn id(&self) -> u64 {
        self.inner.id
    }

    /// Returns the last value of [`Self::set_hint`] from any caller; 0 initially.
    #[inline]
    pub(super) fn hint(&self) -> u64 {
        self.inner.hint.load(Ordering::Relaxed)
    }

    pub(super) fn set_hint(&self, hint: u64) {
        self.inner.hint.store(hint, Ordering::Relaxed);
    }

    /// Returns the flags of its creation.
    #[must_use]
    pub fn flags(&self) -> vk::DescriptorSetLayoutCreateFlags {
        self.inner.flags
    }

    /// Returns the counts that a set needs; the maximum, if a count is variable.
    #[must_use]
    pub fn counts(&self) -> DescriptorCounts {
        self.inner.most
    }

    /// Returns a reference to [`Self::counts`].
    #[inline]
    pub(crate) fn most(&self) -> &DescriptorCounts {
        &self.inner.most
    }

    #[inline]
    pub(crate) fn source(&self) -> SetSource {
        self.inner.source
    }

    /// Returns the counts that a set needs with `count` descriptors in the variable binding. Without such a binding,
    /// `count` is ignored.
    #[must_use]
    pub fn counts_with(&self, count: u32) -> DescriptorCounts {
        match self.inner.variable {
            None => self.inner.fixed,
            Some((kind, _)) => self.inner.fixed.with(kind, count),
        }
    }

    /// Returns the maximum count of the variable binding; `None` if there is none.
    #[must_use]
    pub fn max_variable_count(&self) -> Option<u32> {
        self.inner.variable.map(|(_, most)| most)
    }

    /// Returns the bindings, sorted by number.
    #[must_use]
    pub fn bindings(&self) -> &[SetLayoutBinding] {
        &self.inner.bindings
    }

    /// Returns one binding. O(log n) in the number of bindings.
    #[must_use]
    pub fn binding(&self, binding: u32) -> Option<&SetLayoutBinding> {
        let at = self.inner.bindings.binary_search_by_key(&binding, |binding| binding.binding).ok()?;
        self.inner.bindings.get(at)
    }

    /// Returns true if its sets come from update-after-bind pools.
    #[must_use]
    pub fn is_update_after_bind(&self) -> bool {
        self.inner.flags.contains(vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL)
    }

    /// Returns true if its descriptors are pushed: it has no sets.
    #[must_use]
    pub fn is_push_descriptor(&self) -> bool {
        self.inner.flags.contains(vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR)
    }

    /// Returns true if its descriptors are in a descriptor buffer: it has no sets.
    #[must_use]
    pub fn is_descriptor_buffer(&self) -> bool {
        self.inner.flags.contains(vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT)
    }
}

/// The relevant structures of a layout's chain.
struct Chain<'a> {
    /// Indexed by position of the binding; may be shorter.
    flags: &'a [vk::DescriptorBindingFlags],
    /// Indexed by position of the binding; may be shorter.
    mutable: &'a [vk::MutableDescriptorTypeListEXT<'a>],
}

impl Chain<'_> {
    /// # Safety
    /// The chain is valid, or null.
    unsafe fn read(next: *const std::ffi::c_void) -> Self {
        let mut chain = Self { flags: &[], mutable: &[] };
        let mut next = next.cast::<vk::BaseInStructure<'_>>();
        while !next.is_null() {
            // SAFETY: the chain is valid, so every link begins with a type and a pointer to the next one.
            let link = unsafe { &*next };
            match link.s_type {
                vk::StructureType::DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO => {
                    let info = next.cast::<vk::DescriptorSetLayoutBindingFlagsCreateInfo<'_>>();
                    // SAFETY: the type tag identifies this structure.
                    let info = unsafe { &*info };
                    // SAFETY: VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-parameter.
                    chain.flags = unsafe { slice(info.p_binding_flags, info.binding_count) };
                }
                vk::StructureType::MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT => {
                    let info = next.cast::<vk::MutableDescriptorTypeCreateInfoEXT<'_>>();
                    // SAFETY: the type tag identifies this structure.
                    let info = unsafe { &*info };
                    let lists = info.p_mutable_descriptor_type_lists;
                    // SAFETY: VUID-VkMutableDescriptorTypeCreateInfoEXT-pMutableDescriptorTypeLists-parameter.
                    chain.mutable = unsafe { slice(lists, info.mutable_descriptor_type_list_count) };
                }
                _ => {}
            }
            next = link.p_next;
        }
        chain
    }

    /// Returns the types of the mutable binding at this position.
    fn mutable_types(&self, at: usize, kind: DescriptorKind) -> Box<[vk::DescriptorType]> {
        match self.mutable.get(at) {
            Some(list) if kind == DescriptorKind::Mutable => {
                // SAFETY: the chain is valid: `descriptorTypeCount` types
                // (VUID-VkMutableDescriptorTypeListEXT-pDescriptorTypes-parameter).
                unsafe { slice(list.p_descriptor_types, list.descriptor_type_count) }.into()
            }
            _ => Box::default(),
        }
    }
}

/// Converts a C array into a slice.
///
/// # Safety
/// `first` is null, or points to `count` values that live for `'a`.
pub(super) unsafe fn slice<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: it is not null, so the caller promises that it points to `count` values that live for `'a`.
    unsafe { std::slice::from_raw_parts(first, index(count)) }
}

/// The library cannot describe the layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SetLayoutError {
    /// The library does not support this descriptor type.
    UnknownType {
        /// The number of the binding.
        binding: u32,
        /// Its type.
        descriptor_type: vk::DescriptorType,
    },
}

sublet_engines::errors! { SetLayoutError:
    UnknownType { binding, descriptor_type } =>
        "binding {binding} has descriptors of type {descriptor_type:?}, which is not known";
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    fn binding(number: u32, kind: DescriptorKind, count: u32) -> vk::DescriptorSetLayoutBinding<'static> {
        vk::DescriptorSetLayoutBinding::default()
            .binding(number)
            .descriptor_type(kind.to_vk())
            .descriptor_count(count)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
    }

    #[test]
    fn what_is_variable_is_counted_apart() {
        let bindings = [
            binding(5, DescriptorKind::SampledImage, 1000),
            binding(1, DescriptorKind::InlineUniformBlock, 64),
            binding(2, DescriptorKind::InlineUniformBlock, 0),
        ];
        let flags = [
            vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT,
            vk::DescriptorBindingFlags::empty(),
            vk::DescriptorBindingFlags::empty(),
        ];
        let mut binding_flags =
            vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
        let info =
            vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut binding_flags);
        // SAFETY: the create-info is valid; the layout is only inspected.
        let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
        assert_eq!(layout.max_variable_count(), Some(1000));
        assert_eq!(layout.counts().get(DescriptorKind::SampledImage), 1000);
        let ten = layout.counts_with(10);
        assert_eq!(ten.get(DescriptorKind::SampledImage), 10);
        assert_eq!(ten.get(DescriptorKind::InlineUniformBlock), 64);
        assert_eq!(ten.inline_uniform_bindings(), 1);
        assert_eq!(layout.bindings().iter().map(|binding| binding.binding).collect::<Vec<_>>(), [1, 2, 5]);
        assert_eq!(layout.binding(5).unwrap().flags, flags[0]);
    }

    #[test]
    fn mutable_types_belong_to_their_binding() {
        let bindings = [binding(0, DescriptorKind::Sampler, 1), binding(1, DescriptorKind::Mutable, 7)];
        let types = [vk::DescriptorType::SAMPLED_IMAGE, vk::DescriptorType::STORAGE_BUFFER];
        let lists = [
            vk::MutableDescriptorTypeListEXT::default(),
            vk::MutableDescriptorTypeListEXT::default().descriptor_types(&types),
        ];
        let mut mutable =
            vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut mutable);
        // SAFETY: the create-info is valid; the layout is only inspected.
        let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
        assert_eq!(*layout.binding(1).unwrap().mutable_types, types);
        assert!(layout.binding(0).unwrap().mutable_types.is_empty());
    }
}
