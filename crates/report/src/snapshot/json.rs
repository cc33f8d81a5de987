//! A snapshot's own JSON.

use serde::de::{Deserializer, Error, IgnoredAny};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use super::descriptors::{DescriptorHeapMap, DescriptorPools};
use super::error::ReadSnapshotError;
use super::parts::{Device, Heap, MemoryType, Vector};
use super::{Located, Snapshot, check, vma};

/// The value of `format`.
const FORMAT: &str = "sublet-memory-map";
/// The value of `version`. New members do not need a new version: readers skip members that they do not know.
const VERSION: u32 = 1;

impl Snapshot {
    /// Writes the snapshot as one line of JSON, which [`Self::from_json`] reads.
    ///
    /// ```json
    /// {
    ///   "format": "sublet-memory-map", "version": 1, "title": null, "run": "1f3-18c2a…",
    ///   "device": { "name": "llvmpipe", "kind": "CPU", "api_version": "1.3.224", … },
    ///   "heaps": [{ "size": 8589934592, "flags": ["DEVICE_LOCAL"], "budget": 6871947673, "usage": 67108864 }],
    ///   "types": [{ "heap": 0, "flags": ["DEVICE_LOCAL", "HOST_VISIBLE", "HOST_COHERENT", "HOST_CACHED"] }],
    ///   "vectors": [{
    ///     "memory_type": 0, "heap": 0, "pool": null, "name": null, "algorithm": "Tlsf", "block_size": 268435456,
    ///     "blocks": [{ "id": 0, "size": 67108864, "map_count": 0, "chunks": [
    ///       { "offset": 0, "size": 4096, "allocation":
    ///         { "id": "0-0-0-0-0-100000001", "kind": "BUFFER", "usage": 16, "name": "mesh", "user_data": "0x2a", "caller": "a.rs:7" } },
    ///       { "offset": 4096, "size": 67104768, "allocation": null }] }],
    ///     "dedicated": [{ "size": 4096, "map_count": 0, "allocation": { … } }]
    ///   }],
    ///   "descriptor_heaps": [{ "name": "materials", "slots": 1024, "ranges": 1, "peak": 5, "runs": [
    ///     { "first": 0, "count": 5, "use": "live" }, { "first": 5, "count": 1019, "use": "free" }] }],
    ///   "descriptor_pools": [{ "name": "frames", "transient": true, "pools": 3, "idle_pools": 1, "waiting_pools": 2,
    ///     "live_sets": 600, "waiting_sets": 0, "free_sets": null, "each": [
    ///       { "sets": 256, "live_sets": 200, "free_sets": 56, "state": "open", "descriptors": [
    ///         { "kind": "UniformBuffer", "made": 512, "left": 112 }] }] }]
    /// }
    /// ```
    ///
    /// The last two members are present only if the program has added descriptor heaps or pools.
    ///
    /// # Complexity
    /// O(chunks).
    #[must_use]
    pub fn to_json(&self) -> String {
        // Cannot fail, because all map keys are strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the output of [`Self::to_json`], of [`stats_string()`](crate::stats_string()), or of `vmaBuildStatsString`
    /// in VMA 3.0 or later. Skips members that this version does not know. A statistics string lacks some values, which
    /// become `None`. Its pools are numbered in order, and a gap between two chunks is neither free nor used.
    ///
    /// # Errors
    /// - [`Json`](ReadSnapshotError::Json): it is not JSON or ends too early, or a member is missing or has the wrong
    ///   type.
    /// - [`NotASnapshot`](ReadSnapshotError::NotASnapshot): it is JSON of another kind.
    /// - [`Version`](ReadSnapshotError::Version): it has a later format.
    /// - [`OldVma`](ReadSnapshotError::OldVma), [`NotVulkan`](ReadSnapshotError::NotVulkan): it is of another
    ///   allocator.
    /// - [`WithoutDetails`](ReadSnapshotError::WithoutDetails): a statistics string without blocks.
    /// - [`Contradiction`](ReadSnapshotError::Contradiction): it contradicts itself: see
    ///   [`SnapshotFault`](super::SnapshotFault).
    ///
    /// # Panics
    /// Never, for any text.
    ///
    /// ```
    /// use sublet_report::{ReadSnapshotError, Snapshot};
    ///
    /// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// let statistics = sublet_report::stats_string(&allocator, true);
    /// assert_eq!(Snapshot::from_json(&statistics)?.statistics(), allocator.calculate_statistics());
    ///
    /// let newer = r#"{ "format": "sublet-memory-map", "version": 9 }"#;
    /// let error = Snapshot::from_json(newer).unwrap_err();
    /// assert_eq!(error.to_string(), "the memory map has version 9; known is version 1");
    /// assert!(matches!(error, ReadSnapshotError::Version { found: Some(9), known: 1, .. }));
    /// # Ok::<(), ReadSnapshotError>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self, ReadSnapshotError> {
        let mark: FormatMark = serde_json::from_str(text).map_err(ReadSnapshotError::json)?;
        if mark.format.is_none() && mark.memory_info.is_some() {
            return match mark.general.as_ref().and_then(|general| general.api.as_deref()) {
                Some("Vulkan") | None => {
                    let read: vma::VmaDocument =
                        serde_json::from_str(text).map_err(ReadSnapshotError::json)?;
                    read.into_snapshot()
                }
                Some(_) => Err(ReadSnapshotError::NotVulkan),
            };
        }
        if mark.format.is_none() && mark.total.is_some() && mark.heap.is_some() {
            return Err(ReadSnapshotError::OldVma);
        }
        if mark.format.as_deref() != Some(FORMAT) {
            return Err(ReadSnapshotError::NotASnapshot);
        }
        if mark.version != Some(u64::from(VERSION)) {
            return Err(ReadSnapshotError::Version { found: mark.version, known: VERSION });
        }
        let raw: RawSnapshot = serde_json::from_str(text).map_err(ReadSnapshotError::json)?;
        raw.checked()
    }
}

/// The members that identify the format.
#[derive(Deserialize)]
struct FormatMark {
    format: Option<Box<str>>,
    version: Option<u64>,
    #[serde(rename = "General")]
    general: Option<MarkOfVma>,
    #[serde(rename = "MemoryInfo")]
    memory_info: Option<IgnoredAny>,
    #[serde(rename = "Total")]
    total: Option<IgnoredAny>,
    #[serde(rename = "Heap 0")]
    heap: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct MarkOfVma {
    #[serde(rename = "API")]
    api: Option<Box<str>>,
}

/// A parsed snapshot, not yet validated.
#[derive(Deserialize)]
struct RawSnapshot {
    title: Option<Box<str>>,
    run: Option<Box<str>>,
    device: Device,
    heaps: Vec<Heap>,
    types: Vec<MemoryType>,
    vectors: Vec<Vector>,
    #[serde(default)]
    descriptor_heaps: Vec<DescriptorHeapMap>,
    #[serde(default)]
    descriptor_pools: Vec<DescriptorPools>,
}

impl RawSnapshot {
    fn checked(self) -> Result<Snapshot, ReadSnapshotError> {
        let Self { title, run, device, heaps, types, vectors, descriptor_heaps, descriptor_pools } = self;
        check::checked(Snapshot {
            title,
            run,
            device,
            heaps,
            types,
            vectors,
            descriptor_heaps,
            descriptor_pools,
        })
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { title, run, device, heaps, types, vectors, descriptor_heaps, descriptor_pools } = self;
        let mut to = to.serialize_struct("Snapshot", 10)?;
        to.serialize_field("format", FORMAT)?;
        to.serialize_field("version", &VERSION)?;
        to.serialize_field("title", title)?;
        to.serialize_field("run", run)?;
        to.serialize_field("device", device)?;
        to.serialize_field("heaps", heaps)?;
        to.serialize_field("types", types)?;
        to.serialize_field("vectors", vectors)?;
        if !descriptor_heaps.is_empty() {
            to.serialize_field("descriptor_heaps", descriptor_heaps)?;
        }
        if !descriptor_pools.is_empty() {
            to.serialize_field("descriptor_pools", descriptor_pools)?;
        }
        to.end()
    }
}

impl Serialize for Located<'_> {
    /// Writes position and size, and everything else as `allocation`.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut to = to.serialize_struct("Located", 8)?;
        to.serialize_field("vector", &self.vector_index)?;
        to.serialize_field("memory_type", &self.vector.memory_type)?;
        to.serialize_field("pool", &self.vector.pool)?;
        to.serialize_field("pool_name", &self.vector.name)?;
        to.serialize_field("block", &self.block.map(|block| block.id))?;
        to.serialize_field("offset", &self.offset)?;
        to.serialize_field("size", &self.size)?;
        to.serialize_field("allocation", self.entry)?;
        to.end()
    }
}

/// For snapshots inside other JSON. Does not check the version.
impl<'a> Deserialize<'a> for Snapshot {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        RawSnapshot::deserialize(from)?.checked().map_err(D::Error::custom)
    }
}
