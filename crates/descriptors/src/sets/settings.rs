//! The parameters of an allocator, and the sizes of its pools.

use crate::{DescriptorCounts, DescriptorDevice, DescriptorKind};

/// The parameters of [`PersistentSets`](super::PersistentSets). The defaults are suitable for production.
///
/// The first pool of a bucket is small, and each further pool is as large as the number of live sets. A program with
/// few materials therefore has small pools, and a program with many materials has few pools.
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
    /// The number of sets in the first pool of a bucket. Clamped to 1 and [`Self::max_sets`].
    pub first_sets: u32,
    /// The maximum number of sets in a pool. At least 1.
    pub max_sets: u32,
    /// The maximum number of descriptors in a pool of several sets. Sets with large arrays get small pools, and a set
    /// with more descriptors than this gets its own pool.
    pub max_descriptors: u32,
    /// The maximum number of bytes of inline uniform blocks in a pool of several sets.
    pub max_inline_uniform_bytes: u32,
    /// The number of pools without live sets that are kept, over all buckets, when a pool has to be created.
    pub keep_idle_pools: u32,
}

impl PersistentSetsCreateInfo {
    /// 16 sets in the first pools, at most 512 sets, 16,384 descriptors and 256 KiB of inline uniform blocks in a pool,
    /// and 64 idle pools kept.
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

/// The fields that determine pool sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizing {
    first_sets: u32,
    max_sets: u32,
    max_descriptors: u32,
    max_inline_uniform_bytes: u32,
}

/// The number of sets for a new pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PoolSize {
    /// The preferred number.
    pub(super) ideal: u32,
    /// The minimum, if the preferred number fails.
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

    /// Computes the size of a pool for a bucket with `live` live sets that needs `wanted` more, each of `counts`.
    ///
    /// The size follows the number of live sets and not the last pool, so one large request does not make later pools
    /// large.
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
