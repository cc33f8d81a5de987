//! Names of the flags of heaps and memory types.

use ash::vk;

pub(super) const HEAP_FLAGS: &[(u32, &str)] = &[
    (vk::MemoryHeapFlags::DEVICE_LOCAL.as_raw(), "DEVICE_LOCAL"),
    (vk::MemoryHeapFlags::MULTI_INSTANCE.as_raw(), "MULTI_INSTANCE"),
];

pub(super) const TYPE_FLAGS: &[(u32, &str)] = &[
    (vk::MemoryPropertyFlags::DEVICE_LOCAL.as_raw(), "DEVICE_LOCAL"),
    (vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw(), "HOST_VISIBLE"),
    (vk::MemoryPropertyFlags::HOST_COHERENT.as_raw(), "HOST_COHERENT"),
    (vk::MemoryPropertyFlags::HOST_CACHED.as_raw(), "HOST_CACHED"),
    (vk::MemoryPropertyFlags::LAZILY_ALLOCATED.as_raw(), "LAZILY_ALLOCATED"),
    (vk::MemoryPropertyFlags::PROTECTED.as_raw(), "PROTECTED"),
    (vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD.as_raw(), "DEVICE_COHERENT_AMD"),
    (vk::MemoryPropertyFlags::DEVICE_UNCACHED_AMD.as_raw(), "DEVICE_UNCACHED_AMD"),
];

/// Returns the names of the flags, and the unnamed rest as a hexadecimal number.
#[cfg(feature = "snapshots")]
pub(super) fn words(flags: u32, names: &[(u32, &str)]) -> Vec<Box<str>> {
    let set = names.iter().filter(|(flag, _)| flags & flag != 0);
    let rest = set.clone().fold(flags, |rest, (flag, _)| rest & !flag);
    let mut words: Vec<Box<str>> = set.map(|&(_, name)| name.into()).collect();
    if rest != 0 {
        words.push(format!("{rest:#x}").into());
    }
    words
}
