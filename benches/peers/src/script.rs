//! The operations, generated in advance from fixed seeds: the same for every peer.

/// A seeded generator, so that every run has the same operations.
#[derive(Clone, Debug)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns a uniformly distributed number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0.u64(..)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    /// Returns a log-uniform number: uniform over the powers of two from `1 << from` to `1 << (to - 1)`, and uniform
    /// within each.
    pub(crate) fn log_uniform(&mut self, from: u32, to: u32) -> u64 {
        let octave = 1 << (u64::from(from) + self.below(u64::from(to - from)));
        octave + self.below(octave)
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

/// The requirements of one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerRequest {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) kind: PeerRequestKind,
}

/// The kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerRequestKind {
    /// Memory without a resource.
    Memory,
    /// A buffer with its memory.
    Buffer,
    /// A buffer with its memory, which the host writes.
    Upload,
    /// An optimal image with its memory. The size is its edge in texels of four bytes.
    Image,
}

/// Distributions of alignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlignmentMix {
    /// 16, 256, 4096, 65536 at 40, 50, 8, 2 percent.
    Usual,
    /// The same at 25 percent each.
    Mixed,
    /// Always 256.
    Fixed,
}

impl AlignmentMix {
    fn draw(self, random: &mut Random) -> u64 {
        match (self, random.below(100)) {
            (Self::Usual, 0..40) | (Self::Mixed, 0..25) => 16,
            (Self::Usual, 40..90) | (Self::Mixed, 25..50) | (Self::Fixed, _) => 256,
            (Self::Usual, 90..98) | (Self::Mixed, 50..75) => 4096,
            _ => 65_536,
        }
    }
}

/// The distribution of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    pub(crate) alignments: AlignmentMix,
    /// Binary logarithms of the smallest size, and of the upper bound.
    pub(crate) octaves: (u32, u32),
}

impl Shapes {
    /// 256 bytes to 1 MiB.
    pub(crate) const fn common(alignments: AlignmentMix) -> Self {
        Self { alignments, octaves: (8, 20) }
    }

    pub(crate) fn draw(self, random: &mut Random) -> PeerRequest {
        let size = random.log_uniform(self.octaves.0, self.octaves.1);
        PeerRequest { size, alignment: self.alignments.draw(random), kind: PeerRequestKind::Memory }
    }
}

/// A sequence of operations of one kind. Each number is the slot of an allocation.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Allocates into vacant slots.
    Allocate(Vec<(u32, PeerRequest)>),
    /// Frees the allocation in a slot and makes another.
    Replace(Vec<(u32, PeerRequest)>),
    Free(Vec<u32>),
}

impl Phase {
    /// Returns the number of allocations and frees, two per pair.
    pub(crate) fn halves(&self) -> usize {
        match self {
            Self::Allocate(list) => list.len(),
            Self::Replace(list) => 2 * list.len(),
            Self::Free(list) => list.len(),
        }
    }
}

/// Returns `count` requests for the slots from 0 on.
pub(crate) fn fill(random: &mut Random, shapes: Shapes, count: usize) -> Phase {
    Phase::Allocate((0..count).map(|slot| (slot as u32, shapes.draw(random))).collect())
}

/// Replaces the allocation in a random slot of `live`, `count` times.
pub(crate) fn churn(random: &mut Random, shapes: Shapes, live: usize, count: usize) -> Phase {
    Phase::Replace((0..count).map(|_| (random.below(live as u64) as u32, shapes.draw(random))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_list() {
        let list = |seed| {
            format!("{:?}", churn(&mut Random::new(seed), Shapes::common(AlignmentMix::Usual), 10, 100))
        };
        assert_eq!(list(1), list(1));
        assert_ne!(list(1), list(2));
    }

    #[test]
    fn requests_are_as_promised() {
        let mut random = Random::new(7);
        let requests: Vec<_> =
            (0..10_000).map(|_| Shapes::common(AlignmentMix::Usual).draw(&mut random)).collect();
        assert!(requests.iter().all(|request| (256..1 << 20).contains(&request.size)));
        let share = |alignment| requests.iter().filter(|request| request.alignment == alignment).count();
        assert!((3_800..4_200).contains(&share(16)) && (4_800..5_200).contains(&share(256)));
        assert!((700..900).contains(&share(4096)) && (120..280).contains(&share(65_536)));
        let small = requests.iter().filter(|request| request.size < 512).count();
        assert!((740..930).contains(&small), "an octave of twelve: {small}");
    }

    #[test]
    fn shuffling_keeps_everything() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
