//! The heap of this example: on one set that is written at any time, or, where the device cannot do that, on a copy of
//! it for each frame in flight. The program is the same for both.

use ash::vk;
use sublet::Allocator;
use sublet::descriptor::{
    BindlessHeap, BindlessHeapCreateInfo, BindlessKind, BufferDescriptor, Descriptor, DescriptorDevice,
    DescriptorKind, DescriptorRange, HeapCreateInfo, HeapKind,
};

use crate::support::{Result, note};

/// As many as the shader declares.
const SLOTS: u32 = 16;

pub(crate) type Heap<'a> = BindlessHeap<&'a Allocator>;

/// `default` is what shaders find in slots that no range has.
///
/// # Safety
/// The buffer of `default` outlives the heap.
pub(crate) unsafe fn new<'a>(
    device: &DescriptorDevice,
    allocator: &'a Allocator,
    frames: u32,
    default: BufferDescriptor,
) -> Result<Heap<'a>> {
    let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
    let heap = HeapCreateInfo {
        slots: SLOTS,
        types: &[DescriptorKind::StorageBuffer],
        stages: vk::ShaderStageFlags::COMPUTE,
        name: "numbers",
        ..info.heap
    };
    let info = BindlessHeapCreateInfo { heap, frames, defaults: &[Descriptor::StorageBuffer(default)] };
    // SAFETY: the caller promises that the buffer outlives the heap.
    let heap = unsafe { BindlessHeap::create(device, allocator, &info) }?;
    note(match heap.kind() {
        BindlessKind::Set => "The heap is one set, and is written while the device uses it.",
        _ => "The heap is a set for each frame in flight.",
    });
    Ok(heap)
}

/// Room for `buffers` in a row, and their descriptors in it.
///
/// # Safety
/// The buffers live until the range is retired and collected.
pub(crate) unsafe fn hold(heap: &Heap<'_>, buffers: &[BufferDescriptor]) -> Result<DescriptorRange> {
    let range = heap.allocate(u32::try_from(buffers.len())?)?;
    for (at, &buffer) in (0..).zip(buffers) {
        // SAFETY: the buffer is live, and no shader looks at slots that were just allocated.
        unsafe { heap.write(range.id(), at, &Descriptor::StorageBuffer(buffer)) }?;
    }
    Ok(range)
}

/// Slots that are not free.
pub(crate) fn used(heap: &Heap<'_>) -> u32 {
    SLOTS - heap.statistics().free
}
