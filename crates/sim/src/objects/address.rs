//! From a device address to the bytes there.

use ash::vk;
use ash::vk::Handle as _;

use crate::objects::state::{DeviceState, StoreRange};

/// The bytes at a device address.
#[derive(Debug, Clone)]
pub(crate) struct AddressedBytes {
    pub(crate) buffer: vk::Buffer,
    /// The bytes from the address on.
    pub(crate) bytes: StoreRange,
    /// The count of bytes up to the end of the buffer.
    pub(crate) left: u64,
}

impl DeviceState {
    /// The buffer at a device address. If several share bytes, one with all of `usage` is preferred, and then the one
    /// that reaches furthest. `None` if no buffer with SHADER_DEVICE_ADDRESS lies there.
    ///
    /// # Complexity
    ///
    /// O(log n) in memories and their resources; O(n) in the resources of a memory if any of them ever overlapped.
    pub(crate) fn locate(&self, address: u64, usage: vk::BufferUsageFlags) -> Option<AddressedBytes> {
        let (&start, handle) = self.addresses.range(..=address).next_back()?;
        let memory = self.memories.get(handle)?;
        let at = address - start;
        let before = memory.bindings.range(..=(at, u64::MAX)).rev();
        // If nothing ever overlapped, only the resource that starts last before the address can reach it.
        let most = if memory.overlaps { usize::MAX } else { 1 };
        before
            .take(most)
            .filter_map(|(&(offset, raw), _)| {
                let handle = vk::Buffer::from_raw(raw);
                let buffer = self.buffers.get(&handle)?;
                let left = (offset + buffer.description.size).checked_sub(at).filter(|&left| left > 0)?;
                let usages = buffer.description.usage;
                if !usages.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS) {
                    return None;
                }
                let bound = buffer.bound.as_ref()?;
                let bytes = StoreRange { store: bound.store.clone(), offset: at };
                Some((usages.contains(usage), AddressedBytes { buffer: handle, bytes, left }))
            })
            .max_by_key(|(wanted, found)| (*wanted, found.left))
            .map(|(_, found)| found)
    }
}
