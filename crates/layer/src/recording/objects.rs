//! The live objects of a device, by their handles.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use ash::vk::{self, Handle as _};
use parking_lot::Mutex;
use sublet::private::{index, widen};
use sublet::trace::ForeignMemoryFlags;

use super::history::LiveObject;

/// The tables by which threads are unlikely to wait for each other.
const SHARDS: usize = 64;

/// A handle and its kind. Handles of different kinds may be equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ObjectKey {
    Memory(u64),
    Buffer(u64),
    Image(u64),
}

impl From<vk::DeviceMemory> for ObjectKey {
    fn from(handle: vk::DeviceMemory) -> Self {
        Self::Memory(handle.as_raw())
    }
}

impl From<vk::Buffer> for ObjectKey {
    fn from(handle: vk::Buffer) -> Self {
        Self::Buffer(handle.as_raw())
    }
}

impl From<vk::Image> for ObjectKey {
    fn from(handle: vk::Image) -> Self {
        Self::Image(handle.as_raw())
    }
}

impl ObjectKey {
    pub(crate) fn is_memory(self) -> bool {
        matches!(self, Self::Memory(_))
    }

    fn handle(self) -> u64 {
        let (Self::Memory(handle) | Self::Buffer(handle) | Self::Image(handle)) = self;
        handle
    }
}

/// Multiplies, because handles are addresses or counters, and no attacker chooses them.
#[derive(Clone, Copy, Default, Debug)]
struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0xF135_7AEA_2E62_A9C5);
    }

    /// The kind of a key arrives here, which would be hashed byte by byte otherwise.
    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(widen(value));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

type ObjectTable = HashMap<ObjectKey, LiveObject, BuildHasherDefault<HandleHasher>>;

/// The live objects. Each lock is held for one access to a table.
#[derive(Debug)]
pub(crate) struct LiveRecords {
    shards: [Mutex<ObjectTable>; SHARDS],
}

impl LiveRecords {
    pub(super) fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::new(ObjectTable::default())) }
    }

    fn shard(&self, key: ObjectKey) -> Option<&Mutex<ObjectTable>> {
        // The upper bits of a product depend on all bits of its factors.
        let mixed = key.handle().wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0];
        self.shards.get(index(mixed.into()) % SHARDS)
    }

    pub(crate) fn insert(&self, key: ObjectKey, object: LiveObject) {
        if let Some(shard) = self.shard(key) {
            shard.lock().insert(key, object);
        }
    }

    pub(crate) fn remove(&self, key: ObjectKey) -> Option<LiveObject> {
        self.shard(key)?.lock().remove(&key)
    }

    /// Calls `access` with an object. `None` if it is unknown: created before the recording, or by the driver.
    pub(crate) fn with<R>(&self, key: ObjectKey, access: impl FnOnce(&mut LiveObject) -> R) -> Option<R> {
        self.shard(key)?.lock().get_mut(&key).map(access)
    }

    /// Returns the number of an object.
    pub(crate) fn id(&self, key: ObjectKey) -> Option<u64> {
        self.with(key, |object| object.id)
    }

    /// Notes what happened to a memory, for the next part. Returns its number.
    pub(crate) fn note(&self, memory: vk::DeviceMemory, flags: ForeignMemoryFlags) -> Option<u64> {
        self.with(memory.into(), |object| {
            object.add_flags(flags);
            object.id
        })
    }

    /// Calls `visit` with each object.
    pub(super) fn for_each(&self, mut visit: impl FnMut(ObjectKey, &LiveObject)) {
        for shard in &self.shards {
            for (&key, object) in shard.lock().iter() {
                visit(key, object);
            }
        }
    }

    pub(super) fn clear(&self) {
        for shard in &self.shards {
            *shard.lock() = ObjectTable::default();
        }
    }
}
