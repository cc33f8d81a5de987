//! The result of an upload, and the required alignments.

use std::ptr::NonNull;

use ash::vk;

use crate::device::LiveDevice;
use sublet_engines::Alignment;

/// Bytes of a mapped buffer that belong to the caller until the recording that uses them is done.
///
/// A plain value: copying it copies no bytes, and it needs no release. It is valid until its page is collected.
///
/// ```
/// # use sublet::{*, upload::*};
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let info = UploadArenaCreateInfo { device_address: true, ..Default::default() };
/// // SAFETY: the usages need nothing enabled, and nothing is submitted here.
/// let mut arena = unsafe { UploadArena::new(&allocator, &info) }?;
/// let upload = arena.allocate(64, 16)?;
/// // SAFETY: the pointer is valid for 64 bytes, and nothing else uses them.
/// unsafe { upload.ptr.write_bytes(7, 64) };
/// assert!(upload.offset % 16 == 0 && upload.address.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[doc(alias = "DynAlloc")]
#[doc(alias = "D3D12DynamicAllocation")]
#[doc(alias = "BufferBlockAllocation")]
pub struct Upload {
    /// The host address to write to. Valid for [`size`](Self::size) bytes; reading from it may be very slow.
    pub ptr: NonNull<u8>,
    /// The buffer for the device to read.
    pub buffer: vk::Buffer,
    /// The offset in the buffer: a multiple of the requested alignment.
    pub offset: u64,
    /// The requested size in bytes.
    pub size: u64,
    /// The device address, if the arena has device addresses.
    pub address: Option<vk::DeviceAddress>,
}

impl Upload {
    /// Returns the structure for `vkUpdateDescriptorSets`.
    pub fn descriptor_info(&self) -> vk::DescriptorBufferInfo {
        vk::DescriptorBufferInfo { buffer: self.buffer, offset: self.offset, range: self.size }
    }

    /// Returns a region for `vkCmdCopyBuffer` that copies all bytes to `dst_offset` of another buffer.
    pub fn copy_to(&self, dst_offset: u64) -> vk::BufferCopy {
        vk::BufferCopy { src_offset: self.offset, dst_offset, size: self.size }
    }
}

/// The alignment that the device requires of offsets in buffers, by use of the bytes. Units: bytes, powers of two.
///
/// Returned by [`UploadArena::alignments`](super::UploadArena::alignments).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Alignments {
    /// `minUniformBufferOffsetAlignment`: uniform buffers, and their dynamic offsets.
    pub uniform: u64,
    /// `minStorageBufferOffsetAlignment`: storage buffers, and their dynamic offsets.
    pub storage: u64,
    /// `minTexelBufferOffsetAlignment`: texel buffer views.
    pub texel: u64,
    /// `optimalBufferCopyOffsetAlignment`, and at least 4: sources of copies to images. A format with larger texels
    /// needs the least common multiple with the texel size.
    pub copy: u64,
    /// The maximum of these and of `nonCoherentAtomSize`.
    pub any: u64,
}

impl Alignments {
    pub(super) fn of(device: &LiveDevice) -> Self {
        let limits = &device.properties.limits;
        let power_of_two = |limit| Alignment::at_least(limit).get();
        let uniform = power_of_two(limits.min_uniform_buffer_offset_alignment);
        let storage = power_of_two(limits.min_storage_buffer_offset_alignment);
        let texel = power_of_two(limits.min_texel_buffer_offset_alignment);
        let copy = power_of_two(limits.optimal_buffer_copy_offset_alignment).max(4);
        let any = uniform.max(storage).max(texel).max(copy).max(device.atom.get());
        Self { uniform, storage, texel, copy, any }
    }
}

/// The number of bytes from `next` to the next multiple of `alignment`, a power of two.
#[inline]
pub(super) fn padding(next: u64, alignment: u64) -> u64 {
    next.wrapping_neg() & (alignment - 1)
}
