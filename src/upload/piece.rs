//! What an upload is given, and how to align it.
#![forbid(unsafe_code)]

use std::ptr::NonNull;

use ash::vk;

use crate::base::align::Alignment;
use crate::device::Device;

/// Bytes of a mapped buffer that are the caller's until the recording that uses them is done.
///
/// Only names of a place: copying it copies no bytes, and nothing has to be given back. It is valid until its page is
/// collected.
///
/// ```
/// # use sublet::{*, upload::*};
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let info = UploadArenaCreateInfo { device_address: true, ..Default::default() };
/// // SAFETY: the usages need nothing enabled, and nothing is submitted here.
/// let mut arena = unsafe { UploadArena::new(&allocator, &info) }?;
/// let upload = arena.allocate(64, 16)?;
/// // SAFETY: the pointer is valid for 64 bytes, which nobody else uses.
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
    /// Where the host writes. Valid for [`size`](Self::size) bytes; reading from there may be very slow.
    pub ptr: NonNull<u8>,
    /// The buffer that the device reads from.
    pub buffer: vk::Buffer,
    /// Bytes from the start of the buffer: a multiple of the alignment that was asked for.
    pub offset: u64,
    /// Bytes, as asked for.
    pub size: u64,
    /// Where the device finds it, if addresses were asked for.
    pub address: Option<vk::DeviceAddress>,
}

impl Upload {
    /// For `vkUpdateDescriptorSets`.
    pub fn descriptor_info(&self) -> vk::DescriptorBufferInfo {
        vk::DescriptorBufferInfo { buffer: self.buffer, offset: self.offset, range: self.size }
    }

    /// For `vkCmdCopyBuffer`: all of it, to `dst_offset` of another buffer.
    pub fn copy_to(&self, dst_offset: u64) -> vk::BufferCopy {
        vk::BufferCopy { src_offset: self.offset, dst_offset, size: self.size }
    }
}

/// What the device wants offsets in buffers to be multiples of, by what the bytes are for. Units: bytes, powers of two.
///
/// Made by [`UploadArena::alignments`](super::UploadArena::alignments).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Alignments {
    /// `minUniformBufferOffsetAlignment`: uniform buffers, and their dynamic offsets.
    pub uniform: u64,
    /// `minStorageBufferOffsetAlignment`: storage buffers, and their dynamic offsets.
    pub storage: u64,
    /// `minTexelBufferOffsetAlignment`: views of buffers as texels.
    pub texel: u64,
    /// `optimalBufferCopyOffsetAlignment`, and at least 4: sources of copies to images. A format whose texels are
    /// larger needs the least common multiple with their size.
    pub copy: u64,
    /// The most of these and of `nonCoherentAtomSize`.
    pub any: u64,
}

impl Alignments {
    pub(super) fn of(device: &Device) -> Self {
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

/// Bytes between `next` and the first multiple of `alignment`, a power of two, that is not below it.
#[inline]
pub(super) fn padding(next: u64, alignment: u64) -> u64 {
    next.wrapping_neg() & (alignment - 1)
}
