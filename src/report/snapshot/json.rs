//! A snapshot's own JSON.
#![forbid(unsafe_code)]

use serde::de::{Deserializer, Error};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use super::error::ReadSnapshotError;
use super::parts::{Device, Heap, MemoryType, Vector};
use super::{Snapshot, check};

/// What stands in `format`.
const FORMAT: &str = "sublet-memory-map";
/// What stands in `version`. Members may be added without a new one: readers leave out what they do not know.
const VERSION: u32 = 1;

impl Snapshot {
    /// The text that [`Self::from_json`] reads again, on one line.
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
    ///   }]
    /// }
    /// ```
    ///
    /// # Complexity
    /// O(chunks).
    ///
    /// ```
    /// # use sublet::{*, report::Snapshot};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let json = Snapshot::of(&allocator).to_json();
    /// assert!(json.starts_with(r#"{"format":"sublet-memory-map","version":1,"title":null,"#));
    /// # Ok::<(), CreateAllocatorError>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        // Text takes everything, and no map here has keys that are no text.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Self::to_json`] wrote. Members that this version does not know are left out.
    ///
    /// # Errors
    /// - [`Json`](ReadSnapshotError::Json): it is no JSON, ends too early, or a member is missing or of the wrong type.
    /// - [`NotASnapshot`](ReadSnapshotError::NotASnapshot): it is JSON, of something else.
    /// - [`Version`](ReadSnapshotError::Version): it was written in a format that came later.
    /// - [`Contradiction`](ReadSnapshotError::Contradiction): it says what cannot be: see [`SnapshotFault`](super::SnapshotFault).
    ///
    /// # Panics
    /// Never, whatever the text is.
    ///
    /// ```
    /// use sublet::report::{ReadSnapshotError, Snapshot};
    ///
    /// let error = Snapshot::from_json("{\n  \"format\": \"sublet-memory-map\",\n  \"version\": 1,\n").unwrap_err();
    /// assert!(matches!(error, ReadSnapshotError::Json { line: 4, .. }), "{error:?}");
    /// assert!(matches!(Snapshot::from_json("{}"), Err(ReadSnapshotError::NotASnapshot)));
    /// ```
    pub fn from_json(text: &str) -> Result<Self, ReadSnapshotError> {
        let mark: Mark = serde_json::from_str(text).map_err(ReadSnapshotError::json)?;
        if mark.format.as_deref() != Some(FORMAT) {
            return Err(ReadSnapshotError::NotASnapshot);
        }
        if mark.version != Some(u64::from(VERSION)) {
            return Err(ReadSnapshotError::Version { found: mark.version, known: VERSION });
        }
        let raw: Raw = serde_json::from_str(text).map_err(ReadSnapshotError::json)?;
        raw.checked()
    }
}

/// What tells formats apart.
#[derive(Deserialize)]
struct Mark {
    format: Option<Box<str>>,
    version: Option<u64>,
}

/// A snapshot as it is written, not yet checked.
#[derive(Deserialize)]
struct Raw {
    title: Option<Box<str>>,
    run: Option<Box<str>>,
    device: Device,
    heaps: Vec<Heap>,
    types: Vec<MemoryType>,
    vectors: Vec<Vector>,
}

impl Raw {
    fn checked(self) -> Result<Snapshot, ReadSnapshotError> {
        let Self { title, run, device, heaps, types, vectors } = self;
        check::checked(Snapshot { title, run, device, heaps, types, vectors })
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { title, run, device, heaps, types, vectors } = self;
        let mut to = to.serialize_struct("Snapshot", 8)?;
        to.serialize_field("format", FORMAT)?;
        to.serialize_field("version", &VERSION)?;
        to.serialize_field("title", title)?;
        to.serialize_field("run", run)?;
        to.serialize_field("device", device)?;
        to.serialize_field("heaps", heaps)?;
        to.serialize_field("types", types)?;
        to.serialize_field("vectors", vectors)?;
        to.end()
    }
}

/// For snapshots within something else. The version is not looked at.
impl<'a> Deserialize<'a> for Snapshot {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        Raw::deserialize(from)?.checked().map_err(D::Error::custom)
    }
}
