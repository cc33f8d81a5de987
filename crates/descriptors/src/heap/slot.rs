//! The positions of one slot for shaders, the host and the GPU.

use std::ptr::NonNull;

use ash::vk;

/// One slot of a heap, as [`DescriptorHeap::slot`](super::DescriptorHeap::slot) returns it: three ways to refer to it.
///
/// It does not keep the slot alive: query it again after the range was retired.
///
/// ```
/// use sublet_descriptors::*;
/// # use sublet::sim;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let heap = DescriptorHeap::new(SetStore::new(&device, &HeapCreateInfo::default())?);
/// let range = heap.allocate(2)?;
/// let slot: HeapSlot = heap.slot(range.id(), 1, DescriptorKind::StorageBuffer)?;
/// assert_eq!(slot.index, range.first() + 1);
/// let binding = heap.store().binding(DescriptorKind::StorageBuffer).unwrap();
/// assert_eq!(slot.host, Some(HostSlot::Set { set: heap.store().set(), binding }));
/// # unsafe { heap.into_store().destroy() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "D3D12_CPU_DESCRIPTOR_HANDLE")]
#[doc(alias = "D3D12_GPU_DESCRIPTOR_HANDLE")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[doc(alias = "DescriptorHandle")]
pub struct HeapSlot {
    /// The index for shaders.
    pub index: u32,
    /// The position that the host writes. `None` for a [custom store](super::HeapStore::slot) that does not provide it.
    pub host: Option<HostSlot>,
    /// The address that the GPU reads, and may write. `None` if descriptors have no address: in sets.
    pub device: Option<vk::DeviceAddress>,
}

impl HeapSlot {
    /// Returns a slot that has only an index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self { index, host: None, device: None }
    }
}

/// The position that the host writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HostSlot {
    /// Bytes in mapped memory, which `vkGetDescriptorEXT` fills. Reading them is slow.
    Mapped {
        /// The first byte.
        pointer: NonNull<u8>,
        /// The size of the descriptor in bytes.
        bytes: usize,
    },
    /// An element of an array in a set, for `VkWriteDescriptorSet` and `VkCopyDescriptorSet`. Its index is
    /// [`HeapSlot::index`].
    Set {
        /// The set.
        set: vk::DescriptorSet,
        /// The binding.
        binding: u32,
    },
    /// The store has a copy of the descriptor for each frame, which only its `update` writes.
    EachFrame {
        /// The binding.
        binding: u32,
    },
}
