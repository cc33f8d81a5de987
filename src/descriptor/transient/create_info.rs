//! How transient sets are made, also from what a program would make one pool from.

use std::error::Error;
use std::ffi::c_void;
use std::fmt;

use ash::vk;

use crate::descriptor::layout::slice;
use crate::descriptor::{DescriptorCounts, DescriptorKind};

/// How large pools are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum PoolSizing {
    /// After what recent recordings took of each type, so that none runs out long before the others. The sizes of the
    /// create-info are for the time before something was learned.
    #[default]
    Learned,
    /// As the create-info says, all of them.
    Fixed,
}

/// What becomes of a set that needs more descriptors than the create-info's counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum LargeSets {
    /// It gets a pool that is large enough.
    #[default]
    Grow,
    /// It is refused: [`TransientError::TooLarge`](super::TransientError::TooLarge). Without counts nothing is too
    /// large.
    Refuse,
}

/// How [`TransientSets`](super::TransientSets) are made. The default suits most programs: it learns everything from
/// what is asked.
///
/// ```
/// use sublet::descriptor::{DescriptorCounts, DescriptorKind, PoolSizing, TransientSetsCreateInfo};
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
    /// Sets of a pool; not zero. 64 by default.
    pub sets_per_pool: u32,
    /// Descriptors of a pool, of each type. None by default: then the layouts say it.
    pub counts: DescriptorCounts,
    /// How large pools are.
    pub sizing: PoolSizing,
    /// The most sets of a pool whose size was learned. 1,024 by default.
    pub max_sets_per_pool: u32,
    /// What becomes of a set that needs more than `counts`.
    pub large_sets: LargeSets,
    /// Pools that are made at the start, if there are counts, and that [`trim`](super::TransientSets::trim) keeps. 2 by
    /// default: the current one, and a spare.
    pub min_pools: usize,
    /// Pools at once. No limit by default but 2^20, above which there never are any.
    pub max_pools: usize,
    /// Pools are used on for the next recording after [`flush`](super::TransientSets::flush), and are reset when all
    /// recordings that used them are done. Otherwise each recording has pools of its own, which is the default: they
    /// come back sooner.
    pub share_pools: bool,
    /// Flags of the pools. `UPDATE_AFTER_BIND` here has all sets come from such pools; without it only those that need
    /// it do.
    pub flags: vk::DescriptorPoolCreateFlags,
    /// The types that mutable descriptors may have in any layout. With none, all types, which may take more memory.
    pub mutable_types: Vec<vk::DescriptorType>,
    /// What debuggers show, followed by a number for each pool.
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
    /// Pools of one size: so many sets, with so many descriptors in all of them. A set that needs more is refused.
    ///
    /// # Errors
    /// [`PoolTemplateError`] for no sets, no sizes, a size of zero, or a type that is not known; and if the counts of a
    /// type add up to more than a pool can be asked for.
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

    /// Pools like the one that the program would have made itself. A set that does not fit one is refused.
    ///
    /// `VkDescriptorPoolInlineUniformBlockCreateInfo` and `VkMutableDescriptorTypeCreateInfoEXT` may be in the chain.
    ///
    /// # Errors
    /// As [`Self::from_sizes`], and [`PoolTemplateError::UnknownStructure`] for everything else in the chain: there is
    /// no telling what it would mean for the pools that are made later.
    ///
    /// # Safety
    /// The create-info and its chain are valid (VUID-vkCreateDescriptorPool-pCreateInfo-parameter), but for sizes,
    /// counts and structures that are refused.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet::descriptor::{PoolTemplateError, TransientSetsCreateInfo};
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
        // SAFETY: the chain is valid: the caller's promise.
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
                    // SAFETY: its type says that it is this structure.
                    let inline = unsafe { &*inline };
                    let bindings = inline.max_inline_uniform_block_bindings;
                    self.counts = self.counts.with_inline_uniform_bindings(bindings);
                }
                vk::StructureType::MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT => {
                    let mutable = next.cast::<vk::MutableDescriptorTypeCreateInfoEXT<'_>>();
                    // SAFETY: its type says that it is this structure.
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
        // SAFETY: the structure is valid: the caller's promise.
        let lists = unsafe {
            slice(mutable.p_mutable_descriptor_type_lists, mutable.mutable_descriptor_type_list_count)
        };
        let mut all = Vec::new();
        for (at, _) in sizes.iter().enumerate().filter(|(_, size)| size.ty == vk::DescriptorType::MUTABLE_EXT)
        {
            let Some(list) = lists.get(at).filter(|list| list.descriptor_type_count != 0) else {
                // One that takes all types.
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

/// Why a pool's create-info is no template for pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PoolTemplateError {
    /// `maxSets` is zero.
    NoSets,
    /// There are no sizes.
    NoSizes,
    /// A size is of no descriptors.
    ZeroSize {
        /// Which one.
        index: usize,
    },
    /// A size is of a type that the library does not know.
    UnknownType {
        /// Which one.
        index: usize,
        /// Its type.
        descriptor_type: vk::DescriptorType,
    },
    /// The sizes of one type are together more than Vulkan can be asked for.
    TooMany {
        /// The type.
        descriptor_type: vk::DescriptorType,
    },
    /// A structure in the chain that the library does not know, and could not give to the pools that are made later.
    UnknownStructure {
        /// Its type.
        s_type: vk::StructureType,
    },
}

impl fmt::Display for PoolTemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSets => f.write_str("a pool of no sets"),
            Self::NoSizes => f.write_str("a pool without sizes"),
            Self::ZeroSize { index } => write!(f, "size {index} of the pool is of no descriptors"),
            Self::UnknownType { index, descriptor_type } => {
                write!(f, "size {index} of the pool is of type {descriptor_type:?}, which is not known")
            }
            Self::TooMany { descriptor_type } => {
                write!(f, "the sizes of {descriptor_type:?} are together more than 2^32 - 1")
            }
            Self::UnknownStructure { s_type } => {
                write!(f, "{s_type:?} is in the pool's chain, and is not known")
            }
        }
    }
}

impl Error for PoolTemplateError {}
