//! Tests of the parts against naive versions of them, and of the figures in the documentation. `tests/shadow_model`
//! tests the whole engine against a shadow model that knows every unit.

mod at;
mod bins;
mod damage;
mod min_offset;
mod promises;
mod slabs;
mod slack;

use proptest::prelude::ProptestConfig;

use super::*;
use crate::asked;
use crate::cast::widen;

/// The number of random programs for each property.
fn cases() -> ProptestConfig {
    let cases = std::env::var("SUBLET_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A random index below `len`.
    fn place(&mut self, len: usize) -> usize {
        usize::try_from(self.below(widen(len))).unwrap()
    }

    /// About log-uniform, 2^`low` to 2^`high`.
    fn size(&mut self, low: u32, high: u32) -> u64 {
        let log2 = u64::from(low) + self.below(u64::from(high - low));
        (1 << log2) + self.below(1 << log2)
    }

    /// The alignments of buffers and images: 16, 256, 4096 and 65536 at 40, 50, 8 and 2 percent.
    fn usual_alignment(&mut self) -> u64 {
        match self.below(100) {
            0..40 => 16,
            40..90 => 256,
            90..98 => 4096,
            _ => 65536,
        }
    }
}

fn request(size: u64, alignment: u64, strategy: Strategy) -> Request {
    Request { strategy, ..asked(size, alignment) }
}

const STRATEGIES: [Strategy; 5] =
    [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset, Strategy::LastRegion];

fn walked(tlsf: &Tlsf, region: RegionId) -> Vec<ChunkInfo> {
    let mut chunks = Vec::new();
    tlsf.walk(region, &mut |chunk| chunks.push(chunk));
    chunks
}

fn regions(tlsf: &Tlsf) -> Vec<RegionId> {
    tlsf.chunks.regions().collect()
}

/// Every free chunk, lowest first: region, offset and size.
fn free_chunks(tlsf: &Tlsf) -> Vec<(RegionId, u64, u64)> {
    let mut free = Vec::new();
    for region in regions(tlsf) {
        tlsf.walk(region, &mut |chunk| {
            if chunk.used.is_none() {
                free.push((region, chunk.offset, chunk.size));
            }
        });
    }
    free
}

fn fits((_, offset, have): (RegionId, u64, u64), size: u64, alignment: u64) -> bool {
    let aligned = (u128::from(offset)).next_multiple_of(u128::from(alignment));
    aligned + u128::from(size) <= u128::from(offset) + u128::from(have)
}
