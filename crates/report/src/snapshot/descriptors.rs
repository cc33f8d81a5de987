//! Descriptor heaps and pools in a snapshot. The field names are those of the JSON.

use serde::{Deserialize, Serialize};
use sublet_descriptors::{
    DescriptorHeap, DescriptorPoolState, DescriptorPoolView, HeapStatistics, HeapStore, HostHeap,
    PersistentSets, SlotRun, SlotState, TransientSets,
};

use super::Snapshot;

/// The contents of a descriptor heap.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DescriptorHeapMap {
    /// Its name in the program.
    pub name: Box<str>,
    /// Number of slots.
    pub slots: u32,
    /// Number of ranges that are not retired, without those of frames.
    pub ranges: u32,
    /// Maximum number of slots in use at once.
    pub peak: u32,
    /// Runs of slots, which tile the heap.
    pub runs: Vec<Slots>,
}

/// A run of slots of a [`DescriptorHeapMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Slots {
    /// Index of the first slot.
    pub first: u32,
    /// Number of slots; not zero.
    pub count: u32,
    /// Their use. In JSON: `free`, `live`, `retiring`, `transient`.
    #[serde(rename = "use")]
    pub used_for: SlotUse,
}

/// The use of a run of slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SlotUse {
    /// Free.
    Free,
    /// A range that is not retired.
    Live,
    /// A range that waits for the GPU.
    Retiring,
    /// A range of a frame that the GPU still uses.
    Transient,
}

/// The descriptor pools of one allocator of sets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DescriptorPools {
    /// Its name in the program.
    pub name: Box<str>,
    /// True for sets of recordings. Other sets live until they are freed.
    pub transient: bool,
    /// Number of `VkDescriptorPool`s.
    pub pools: u64,
    /// Pools without live sets.
    pub idle_pools: u64,
    /// Pools that wait for the GPU; 0 if single sets wait instead.
    pub waiting_pools: u64,
    /// Sets that the program holds, or whose pool was not reset.
    pub live_sets: u64,
    /// Sets that wait for the GPU; 0 if pools wait instead.
    pub waiting_sets: u64,
    /// Sets that the pools can still allocate. Not counted for transient sets.
    pub free_sets: Option<u64>,
    /// The individual pools.
    #[serde(default)]
    pub each: Vec<DescriptorPoolMap>,
}

/// One `VkDescriptorPool`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DescriptorPoolMap {
    /// Maximum number of sets.
    pub sets: u32,
    /// Sets that were allocated and not freed, including those that wait for the GPU.
    pub live_sets: u32,
    /// Sets that it can still allocate.
    pub free_sets: u32,
    /// Its state. In JSON: `open`, `idle`, `sealed`, `waiting`.
    pub state: PoolState,
    /// Its descriptors by type.
    pub descriptors: Vec<PoolDescriptors>,
}

/// The descriptors of one type in a [`DescriptorPoolMap`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolDescriptors {
    /// The type: the name of a [`DescriptorKind`](sublet_descriptors::DescriptorKind).
    pub kind: Box<str>,
    /// Number of descriptors that the pool was created with. Bytes for inline uniform blocks.
    pub made: u32,
    /// Number of descriptors left for its free sets.
    pub left: u32,
}

/// The state of a descriptor pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PoolState {
    /// Sets are allocated from it, or it is full.
    Open,
    /// It has no live sets and is kept for reuse.
    Idle,
    /// No sets are allocated from it until it is empty.
    Sealed,
    /// It waits for the GPU.
    Waiting,
}

impl From<DescriptorPoolView> for DescriptorPoolMap {
    fn from(view: DescriptorPoolView) -> Self {
        let state = match view.state {
            DescriptorPoolState::Idle => PoolState::Idle,
            DescriptorPoolState::Sealed => PoolState::Sealed,
            DescriptorPoolState::Waiting => PoolState::Waiting,
            _ => PoolState::Open,
        };
        let of_kind = |(kind, made)| {
            let (kind, left) = (format!("{kind:?}").into(), view.left.get(kind));
            PoolDescriptors { kind, made, left }
        };
        let DescriptorPoolView { sets, live_sets, free_sets, counts, .. } = view;
        Self { sets, live_sets, free_sets, state, descriptors: counts.iter().map(of_kind).collect() }
    }
}

impl DescriptorHeapMap {
    fn new(name: &str, statistics: &HeapStatistics, walk: impl FnOnce(&mut dyn FnMut(SlotRun))) -> Self {
        let mut runs = Vec::new();
        walk(&mut |run| {
            let used_for = match run.state {
                SlotState::Free => SlotUse::Free,
                SlotState::Retiring => SlotUse::Retiring,
                SlotState::Transient => SlotUse::Transient,
                _ => SlotUse::Live,
            };
            runs.push(Slots { first: run.first, count: run.count, used_for });
        });
        let &HeapStatistics { capacity, ranges, peak, .. } = statistics;
        Self { name: name.into(), slots: capacity, ranges, peak, runs }
    }

    /// Returns the number of slots with this use.
    #[must_use]
    pub fn count(&self, used_for: SlotUse) -> u32 {
        self.runs.iter().filter(|run| run.used_for == used_for).map(|run| run.count).sum()
    }

    /// Returns the size of the largest free run, in slots.
    #[must_use]
    pub fn largest_free(&self) -> u32 {
        let free = self.runs.iter().filter(|run| run.used_for == SlotUse::Free);
        free.map(|run| run.count).max().unwrap_or(0)
    }

    /// Returns the slot at which the runs stop tiling the heap, if they do.
    pub(super) fn fault(&self) -> Option<u32> {
        let mut end = 0_u32;
        for run in &self.runs {
            match end.checked_add(run.count) {
                Some(next) if run.first == end && run.count != 0 && next <= self.slots => end = next,
                _ => return Some(run.first),
            }
        }
        (end != self.slots).then_some(end)
    }
}

impl Snapshot {
    /// Adds a descriptor heap under the given name.
    ///
    /// The heap is locked during the walk over its slots. Its statistics are read separately, so with concurrent use
    /// [`ranges`](DescriptorHeapMap::ranges) and [`peak`](DescriptorHeapMap::peak) may not match the walk exactly.
    ///
    /// # Complexity
    /// O(ranges).
    ///
    /// ```
    /// use sublet_descriptors::*;
    /// use sublet_report::{SlotUse, Snapshot};
    ///
    /// # let (gpu, allocator, _) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
    /// # let sampler = Descriptor::Sampler(ash::vk::Sampler::null());
    /// # let info = HeapCreateInfo { slots: 16, ..HeapCreateInfo::new(HeapKind::Sampler) };
    /// # let store = unsafe { ClassicStore::new(&device, &info, 2, &[sampler]) }?;
    /// let heap = DescriptorHeap::new(store);
    /// let material = heap.allocate(5)?;
    /// let mut snapshot = Snapshot::of(&allocator);
    /// snapshot.add_descriptor_heap("materials", &heap);
    /// assert_eq!(snapshot.descriptor_heaps[0].count(SlotUse::Live), 5);
    /// assert_eq!(Snapshot::from_json(&snapshot.to_json())?, snapshot);
    /// # unsafe { heap.into_store().destroy() };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_descriptor_heap<S: HeapStore>(&mut self, name: &str, heap: &DescriptorHeap<S>) {
        let map = DescriptorHeapMap::new(name, &heap.statistics(), |visit| heap.walk(visit));
        self.descriptor_heaps.push(map);
    }

    /// Adds a heap in host memory under the given name.
    pub fn add_host_heap(&mut self, name: &str, heap: &HostHeap) {
        let map = DescriptorHeapMap::new(name, &heap.statistics(), |visit| heap.walk(visit));
        self.descriptor_heaps.push(map);
    }

    /// Adds the pools of persistent sets under the given name. O(sets).
    pub fn add_descriptor_sets(&mut self, name: &str, sets: &PersistentSets) {
        let statistics = sets.statistics();
        let mut each = Vec::new();
        sets.walk_pools(|pool| each.push(pool.into()));
        self.descriptor_pools.push(DescriptorPools {
            name: name.into(),
            transient: false,
            pools: statistics.pools.into(),
            idle_pools: statistics.idle_pools.into(),
            waiting_pools: 0,
            live_sets: statistics.live_sets,
            waiting_sets: statistics.retired_sets,
            free_sets: Some(statistics.ready_sets + statistics.room),
            each,
        });
    }

    /// Adds the pools of transient sets under the given name. O(pools).
    pub fn add_transient_sets(&mut self, name: &str, sets: &TransientSets) {
        let statistics = sets.statistics();
        let mut each = Vec::new();
        sets.walk_pools(|pool| each.push(pool.into()));
        self.descriptor_pools.push(DescriptorPools {
            name: name.into(),
            transient: true,
            pools: crate::cast::widen(statistics.pools),
            idle_pools: crate::cast::widen(statistics.free_pools),
            waiting_pools: crate::cast::widen(statistics.waiting_pools),
            live_sets: statistics.live_sets,
            waiting_sets: 0,
            free_sets: None,
            each,
        });
    }
}
