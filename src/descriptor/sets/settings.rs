//! How an allocator is made, and how large its pools get.
#![forbid(unsafe_code)]

use crate::descriptor::{DescriptorCounts, DescriptorDevice, DescriptorKind};

/// How [`PersistentSets`](super::PersistentSets) are made. The defaults are for production.
///
/// The first pool of a kind of sets is small, and each further one is as large as all that live by then, so that a
/// program with a few materials has little memory in pools, and one with many has few pools.
///
/// ```
#[doc = example_setup!()]
/// let info = PersistentSetsCreateInfo { first_sets: 4, ..PersistentSetsCreateInfo::new(&device) };
/// assert_eq!(info.max_sets, 512);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PersistentSetsCreateInfo {
    /// The device.
    pub device: DescriptorDevice,
    /// Sets of the first pool of a kind. Not below one, and not above [`Self::max_sets`]: other values are moved there.
    pub first_sets: u32,
    /// The most sets that a pool is made for. Not below one.
    pub max_sets: u32,
    /// The most descriptors that a pool of several sets is made for: sets with large arrays have small pools, and one
    /// with more than this has a pool of its own.
    pub max_descriptors: u32,
    /// The same for bytes of inline uniform blocks.
    pub max_inline_uniform_bytes: u32,
    /// Pools without live sets that are kept, of all kinds together, when a pool has to be made.
    pub keep_idle_pools: u32,
}

impl PersistentSetsCreateInfo {
    /// 16 sets in the first pools, 512 at most, 16,384 descriptors and 256 KiB of inline uniform blocks, 64 idle pools
    /// kept.
    #[must_use]
    pub fn new(device: &DescriptorDevice) -> Self {
        Self {
            device: device.clone(),
            first_sets: 16,
            max_sets: 512,
            max_descriptors: 16_384,
            max_inline_uniform_bytes: 256 * 1024,
            keep_idle_pools: 64,
        }
    }
}

/// The part of it that sizes pools.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizing {
    first_sets: u32,
    max_sets: u32,
    max_descriptors: u32,
    max_inline_uniform_bytes: u32,
}

/// How many sets a pool is to be made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PoolSize {
    /// If that can be had.
    pub(super) ideal: u32,
    /// If not.
    pub(super) least: u32,
}

impl Sizing {
    pub(super) fn new(info: &PersistentSetsCreateInfo) -> Self {
        let max_sets = info.max_sets.max(1);
        Self {
            first_sets: info.first_sets.clamp(1, max_sets),
            max_sets,
            max_descriptors: info.max_descriptors,
            max_inline_uniform_bytes: info.max_inline_uniform_bytes,
        }
    }

    /// For a bucket in which `live` sets live, and that is to give `wanted` more, each of `counts`.
    ///
    /// What lives is the measure, and not the last pool: one large request does not make later pools large.
    pub(super) fn pool_size(&self, counts: &DescriptorCounts, live: u32, wanted: u32) -> PoolSize {
        let descriptors = u32::try_from(counts.total()).unwrap_or(u32::MAX).max(1);
        let bytes = counts.get(DescriptorKind::InlineUniformBlock).max(1);
        let most = self
            .max_sets
            .min(self.max_descriptors / descriptors)
            .min(self.max_inline_uniform_bytes / bytes)
            .max(1);
        let least = wanted.clamp(1, most);
        PoolSize { ideal: live.max(self.first_sets).min(most).max(least), least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZING: Sizing =
        Sizing { first_sets: 16, max_sets: 512, max_descriptors: 16_384, max_inline_uniform_bytes: 1 << 18 };

    fn ideal(counts: DescriptorCounts, live: u32, wanted: u32) -> u32 {
        SIZING.pool_size(&counts, live, wanted).ideal
    }

    #[test]
    fn pools_grow_with_what_lives_and_not_with_the_last_request() {
        let one = DescriptorCounts::new().with(DescriptorKind::UniformBuffer, 1);
        let sizes: Vec<u32> = [0, 16, 32, 64, 1000].map(|live| ideal(one, live, 1)).to_vec();
        assert_eq!(sizes, [16, 16, 32, 64, 512]);
        assert_eq!(ideal(one, 0, 300), 300);
        assert_eq!(ideal(one, 3, 1), 16, "300 sets were asked for once, and are gone");
        assert_eq!(SIZING.pool_size(&one, 0, 2000), PoolSize { ideal: 512, least: 512 });
    }

    #[test]
    fn sets_with_much_in_them_have_small_pools() {
        let images = |count| DescriptorCounts::new().with(DescriptorKind::SampledImage, count);
        assert_eq!(ideal(images(4096), 100, 1), 4);
        assert_eq!(ideal(images(500_000), 100, 1), 1);
        assert_eq!(ideal(images(u32::MAX), 0, 1), 1);
        let inline = DescriptorCounts::new().with(DescriptorKind::InlineUniformBlock, 4 << 20);
        assert_eq!(ideal(inline, 100, 1), 1);
    }
}
