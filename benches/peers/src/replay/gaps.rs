//! Fragmentation of a peer's unused memory, computed only from the places of its allocations. The same rule applies to
//! all peers, and none reports on itself.

use std::collections::BTreeMap;

use ash::vk;

use crate::gpu::GpuMemoryObject;

/// The start of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemoryOffset {
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
}

/// An allocation, with its requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlacedAllocation {
    pub(crate) place: MemoryOffset,
    pub(crate) size: u64,
}

/// The gaps between allocations, and between them and the ends of their memory objects. An empty object is one gap, and
/// a completely filled one has none. A peer's padding and alignment are part of a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) largest: u64,
    /// Sum over memory types of the largest gap, because one type serves an allocation.
    in_largest: u64,
}

impl Gaps {
    /// Computes the gaps. Returns an error if the allocations overlap or exceed their objects.
    pub(crate) fn of(
        mut objects: Vec<GpuMemoryObject>,
        mut held: Vec<PlacedAllocation>,
    ) -> Result<Self, String> {
        objects.sort_unstable_by_key(|object| object.memory);
        held.sort_unstable();
        let mut gaps = Self::default();
        let mut largest: BTreeMap<u32, u64> = BTreeMap::new();
        let mut held = held.into_iter().peekable();
        for object in objects {
            let largest = largest.entry(object.memory_type).or_default();
            let mut add = |from: u64, to: u64| {
                let gap =
                    to.checked_sub(from).ok_or("an allocation reaches into another, or out of its memory")?;
                gaps.count += u64::from(gap > 0);
                gaps.bytes += gap;
                *largest = gap.max(*largest);
                Ok::<_, String>(())
            };
            let mut end = 0;
            while let Some(PlacedAllocation { place, size }) =
                held.next_if(|held| held.place.memory == object.memory)
            {
                add(end, place.offset)?;
                end = place.offset + size;
            }
            add(end, object.size)?;
        }
        if held.next().is_some() {
            return Err("an allocation lies in memory that the driver does not know".to_owned());
        }
        gaps.largest = largest.values().copied().max().unwrap_or(0);
        gaps.in_largest = largest.values().sum();
        Ok(gaps)
    }

    /// Returns the share of the bytes outside the largest gap of their memory type: 0 if each type has one gap, near 1
    /// for many small ones.
    pub(crate) fn scatter(&self) -> f64 {
        (self.bytes - self.in_largest) as f64 / self.bytes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use ash::vk::Handle as _;
    use sublet::trace::{Replay, Trace};

    use super::*;
    use crate::gpu::{Driver, TestGpu};
    use crate::peers;

    fn object(number: u64, size: u64, memory_type: u32) -> GpuMemoryObject {
        GpuMemoryObject { memory: vk::DeviceMemory::from_raw(number), size, memory_type }
    }

    fn held(number: u64, offset: u64, size: u64) -> PlacedAllocation {
        PlacedAllocation { place: MemoryOffset { memory: vk::DeviceMemory::from_raw(number), offset }, size }
    }

    #[test]
    fn gaps_lie_before_between_and_behind_allocations() {
        let gaps = Gaps::of(vec![object(1, 100, 0)], vec![held(1, 70, 10), held(1, 10, 20), held(1, 30, 5)]);
        let gaps = gaps.unwrap();
        assert_eq!((gaps.count, gaps.bytes, gaps.largest), (3, 10 + 35 + 20, 35));
        assert_eq!(gaps.scatter(), 30.0 / 65.0);
    }

    #[test]
    fn a_full_object_has_no_gap_and_an_empty_one_is_one() {
        let full = Gaps::of(vec![object(1, 100, 0)], vec![held(1, 0, 60), held(1, 60, 40)]).unwrap();
        assert_eq!((full, full.scatter()), (Gaps::default(), 0.0));
        let empty = Gaps::of(vec![object(2, 100, 0), object(1, 50, 0)], vec![held(1, 0, 50)]).unwrap();
        assert_eq!((empty.count, empty.bytes, empty.largest, empty.scatter()), (1, 100, 100, 0.0));
    }

    #[test]
    fn the_largest_gap_of_each_memory_type_is_not_scattered() {
        let objects = vec![object(1, 100, 0), object(2, 300, 1), object(3, 200, 1)];
        let gaps = Gaps::of(objects, Vec::new()).unwrap();
        assert_eq!((gaps.count, gaps.bytes, gaps.largest), (3, 600, 300));
        assert_eq!(gaps.scatter(), 200.0 / 600.0);
    }

    #[test]
    fn what_cannot_be_is_said() {
        let objects = || vec![object(1, 100, 0)];
        for wrong in [
            vec![held(1, 0, 60), held(1, 59, 1)],
            vec![held(1, 99, 2)],
            vec![held(0, 0, 1)],
            vec![held(2, 0, 1)],
        ] {
            assert!(Gaps::of(objects(), wrong.clone()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sublet_counts_the_same_gaps_in_its_blocks() {
        let bytes =
            std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/vello.trace")).unwrap();
        let trace = Trace::read(&bytes).unwrap();
        let gpu = TestGpu::new(&Driver::Null("lavapipe"), None).unwrap();
        let mut most = 0;
        peers::with_sublet(&gpu, |allocator| {
            let mut replay = Replay::new(&trace, allocator);
            let mut live = BTreeMap::new();
            while let Some(record) = replay.step() {
                let Some(number) = record.event.allocation() else { continue };
                live.insert(
                    number,
                    replay.allocation(number).map(|allocation| {
                        let place = MemoryOffset { memory: allocation.memory, offset: allocation.offset };
                        PlacedAllocation { place, size: allocation.size }
                    }),
                );
                let gaps =
                    Gaps::of(gpu.counters().objects(), live.values().flatten().copied().collect()).unwrap();
                let said = allocator.calculate_statistics().total;
                assert_eq!((gaps.count, gaps.largest), (said.unused_range_count, said.unused_range_size_max));
                most = most.max(gaps.count);
            }
        })
        .unwrap();
        assert!(most > 5, "{most}");
        gpu.finish().unwrap();
    }
}
