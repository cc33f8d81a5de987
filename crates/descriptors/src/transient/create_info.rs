//! The parameters of transient sets, also derived from the create-info of a pool.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::ffi::c_void;

use ash::vk;

use crate::layout::slice;
use crate::{DescriptorCounts, DescriptorKind};

/// The sizes of pools.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum PoolSizing {
    /// Derived from the use of each type in recent recordings, so that no type runs out long before the others. The
    /// sizes in the create-info apply until there is data.
    #[default]
    Learned,
    /// The sizes in the create-info.
    Fixed,
}

/// The handling of a set that needs more descriptors than the create-info's counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum LargeSets {
    /// It gets a pool that is large enough.
    #[default]
    Grow,
    /// It is rejected: [`TransientError::TooLarge`](super::TransientError::TooLarge). Without counts nothing is too
    /// large.
    Refuse,
}

/// The parameters of [`TransientSets`](super::TransientSets). The default suits most programs: it learns the sizes from
/// the requests.
///
/// ```
/// use sublet_descriptors::{DescriptorCounts, DescriptorKind, PoolSizing, TransientSetsCreateInfo};
/// let info = TransientSetsCreateInfo {
///     counts: DescriptorCounts::new().with(DescriptorKind::UniformBuffer, 256).with(DescriptorKind::StorageBuffer, 128),
///     sets_per_pool: 256,
///     sizing: PoolSizing::Fixed,
///     ..Default::default()
/// };
/// assert_eq!(info.min_pools, 2);
/// ```
#[derive(Clone, Debug)]
pub struct TransientSetsCreateInfo {
    /// The number of sets in a pool; not zero. 64 by default.
    pub sets_per_pool: u32,
    /// The number of descriptors of each type in a pool. Zero by default: derived from the layouts.
    pub counts: DescriptorCounts,
    /// The sizes of pools.
    pub sizing: PoolSizing,
    /// The maximum number of sets in a pool with a learned size. 1,024 by default.
    pub max_sets_per_pool: u32,
    /// The handling of a set that needs more than `counts`.
    pub large_sets: LargeSets,
    /// The number of pools that are created at the start, if there are counts, and that
    /// [`trim`](super::TransientSets::trim) keeps. 2 by default: the current one and a spare.
    pub min_pools: usize,
    /// The maximum number of pools. Unlimited by default, except for the fixed maximum of 2^20.
    pub max_pools: usize,
    /// If true, the next recording continues to use the pools after [`flush`](super::TransientSets::flush), and a pool
    /// is reset when all its recordings are done. By default, each recording has its own pools, which are reusable
    /// sooner.
    pub share_pools: bool,
    /// The flags of the pools. With `UPDATE_AFTER_BIND`, all sets come from such pools; otherwise only sets that need
    /// it.
    pub flags: vk::DescriptorPoolCreateFlags,
    /// The types that mutable descriptors may have in any layout. Empty means all types, which may take more memory.
    pub mutable_types: Vec<vk::DescriptorType>,
    /// The name for debuggers, followed by a number for each pool.
    pub name: String,
}

impl Default for TransientSetsCreateInfo {
    fn default() -> Self {
        Self {
            sets_per_pool: 64,
            counts: DescriptorCounts::new(),
            sizing: PoolSizing::Learned,
            max_sets_per_pool: 1024,
            large_sets: LargeSets::Grow,
            min_pools: 2,
            max_pools: usize::MAX,
            share_pools: false,
            flags: vk::DescriptorPoolCreateFlags::empty(),
            mutable_types: Vec::new(),
            name: "transient sets".to_owned(),
        }
    }
}

impl TransientSetsCreateInfo {
    /// Returns parameters for pools of one size, with `max_sets` sets and these descriptors. A set that needs more is
    /// rejected.
    ///
    /// # Errors
    /// [`PoolTemplateError`] for no sets, no sizes, a size of zero, or an unknown type. Also if the counts of a type
    /// add up to more than a pool can hold.
    pub fn from_sizes(
        max_sets: u32,
        sizes: &[vk::DescriptorPoolSize],
        flags: vk::DescriptorPoolCreateFlags,
    ) -> Result<Self, PoolTemplateError> {
        if max_sets == 0 {
            return Err(PoolTemplateError::NoSets);
        }
        if sizes.is_empty() {
            return Err(PoolTemplateError::NoSizes);
        }
        let mut counts = DescriptorCounts::new();
        for (at, size) in sizes.iter().enumerate() {
            if size.descriptor_count == 0 {
                return Err(PoolTemplateError::ZeroSize { index: at });
            }
            let kind = DescriptorKind::from_vk(size.ty)
                .ok_or(PoolTemplateError::UnknownType { index: at, descriptor_type: size.ty })?;
            counts
                .get(kind)
                .checked_add(size.descriptor_count)
                .ok_or(PoolTemplateError::TooMany { descriptor_type: size.ty })?;
            counts = counts.with(kind, size.descriptor_count);
        }
        Ok(Self {
            sets_per_pool: max_sets,
            counts,
            sizing: PoolSizing::Fixed,
            large_sets: LargeSets::Refuse,
            flags,
            ..Self::default()
        })
    }

    /// Returns parameters for pools like the one that `info` describes. A set that does not fit such a pool is
    /// rejected.
    ///
    /// The chain may contain `VkDescriptorPoolInlineUniformBlockCreateInfo` and `VkMutableDescriptorTypeCreateInfoEXT`.
    ///
    /// # Errors
    /// Same as [`Self::from_sizes`], and [`PoolTemplateError::UnknownStructure`] for all other structures in the chain,
    /// because their effect on later pools is unknown.
    ///
    /// # Safety
    /// The create-info and its chain are valid (VUID-vkCreateDescriptorPool-pCreateInfo-parameter), except for sizes,
    /// counts and structures that are rejected.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_descriptors::{PoolTemplateError, TransientSetsCreateInfo};
    /// let sizes = [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::SAMPLER).descriptor_count(10)];
    /// let pool = vk::DescriptorPoolCreateInfo::default().max_sets(5).pool_sizes(&sizes);
    /// // SAFETY: the create-info is valid.
    /// let info = unsafe { TransientSetsCreateInfo::from_create_info(&pool) }?;
    /// assert_eq!(info.sets_per_pool, 5);
    /// # Ok::<(), PoolTemplateError>(())
    /// ```
    pub unsafe fn from_create_info(
        info: &vk::DescriptorPoolCreateInfo<'_>,
    ) -> Result<Self, PoolTemplateError> {
        // SAFETY: the create-info is valid: `poolSizeCount` sizes
        // (VUID-VkDescriptorPoolCreateInfo-pPoolSizes-parameter).
        let sizes = unsafe { slice(info.p_pool_sizes, info.pool_size_count) };
        let mut made = Self::from_sizes(info.max_sets, sizes, info.flags)?;
        // SAFETY: the caller promises that the chain is valid.
        unsafe { made.read_chain(info.p_next, sizes) }?;
        Ok(made)
    }

    /// # Safety
    /// The chain is valid, or null.
    unsafe fn read_chain(
        &mut self,
        chain: *const c_void,
        sizes: &[vk::DescriptorPoolSize],
    ) -> Result<(), PoolTemplateError> {
        let mut next = chain.cast::<vk::BaseInStructure<'_>>();
        while !next.is_null() {
            // SAFETY: every link of a valid chain begins with a type and a pointer to the next one.
            let link = unsafe { &*next };
            match link.s_type {
                vk::StructureType::DESCRIPTOR_POOL_INLINE_UNIFORM_BLOCK_CREATE_INFO => {
                    let inline = next.cast::<vk::DescriptorPoolInlineUniformBlockCreateInfo<'_>>();
                    // SAFETY: the type tag identifies this structure.
                    let inline = unsafe { &*inline };
                    let bindings = inline.max_inline_uniform_block_bindings;
                    self.counts = self.counts.with_inline_uniform_bindings(bindings);
                }
                vk::StructureType::MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT => {
                    let mutable = next.cast::<vk::MutableDescriptorTypeCreateInfoEXT<'_>>();
                    // SAFETY: the type tag identifies this structure.
                    let mutable = unsafe { &*mutable };
                    // SAFETY: VUID-VkMutableDescriptorTypeCreateInfoEXT-pMutableDescriptorTypeLists-parameter.
                    unsafe { self.read_mutable_types(mutable, sizes) };
                }
                other => return Err(PoolTemplateError::UnknownStructure { s_type: other }),
            }
            next = link.p_next;
        }
        Ok(())
    }

    /// # Safety
    /// The structure is valid.
    unsafe fn read_mutable_types(
        &mut self,
        mutable: &vk::MutableDescriptorTypeCreateInfoEXT<'_>,
        sizes: &[vk::DescriptorPoolSize],
    ) {
        // SAFETY: the caller promises that the structure is valid.
        let lists = unsafe {
            slice(mutable.p_mutable_descriptor_type_lists, mutable.mutable_descriptor_type_list_count)
        };
        let mut all = Vec::new();
        for (at, _) in sizes.iter().enumerate().filter(|(_, size)| size.ty == vk::DescriptorType::MUTABLE_EXT)
        {
            let Some(list) = lists.get(at).filter(|list| list.descriptor_type_count != 0) else {
                // A size without a list accepts all types.
                self.mutable_types = Vec::new();
                return;
            };
            // SAFETY: VUID-VkMutableDescriptorTypeListEXT-pDescriptorTypes-parameter.
            for &kind in unsafe { slice(list.p_descriptor_types, list.descriptor_type_count) } {
                if !all.contains(&kind) {
                    all.push(kind);
                }
            }
        }
        self.mutable_types = all;
    }
}

/// The create-info of a pool cannot be a template for pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PoolTemplateError {
    /// `maxSets` is zero.
    NoSets,
    /// There are no sizes.
    NoSizes,
    /// A size has no descriptors.
    ZeroSize {
        /// The index of the size.
        index: usize,
    },
    /// A size has a type that the library does not support.
    UnknownType {
        /// The index of the size.
        index: usize,
        /// Its type.
        descriptor_type: vk::DescriptorType,
    },
    /// The sizes of one type exceed the range of Vulkan's count.
    TooMany {
        /// The type.
        descriptor_type: vk::DescriptorType,
    },
    /// The chain has a structure that the library does not support, so it cannot be passed to later pools.
    UnknownStructure {
        /// Its type.
        s_type: vk::StructureType,
    },
}

sublet_engines::errors! { PoolTemplateError:
    NoSets => "a pool of no sets";
    NoSizes => "a pool without sizes";
    ZeroSize { index } => "size {index} of the pool is of no descriptors";
    UnknownType { index, descriptor_type } =>
        "size {index} of the pool is of type {descriptor_type:?}, which is not known";
    TooMany { descriptor_type } => "the sizes of {descriptor_type:?} are together more than 2^32 - 1";
    UnknownStructure { s_type } => "{s_type:?} is in the pool's chain, and is not known";
}
