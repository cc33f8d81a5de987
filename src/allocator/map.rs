//! The host's access to an allocation: mapping, flushing, invalidating, copying.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use ash::vk;

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::allocation::{Allocation, allocation_flags};
use crate::base::cast::host_size;
use crate::base::sync::{Shared, Threading};
use crate::error::MapError;

/// A mapped allocation. While this lives the memory stays mapped and the allocation cannot be freed.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let requirements = vk::MemoryRequirements { size: 16, alignment: 16, memory_type_bits: !0 };
/// let mut allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::new(MemoryUsage::CpuOnly))?;
/// let mut mapping = allocator.map(&mut allocation)?;
/// mapping.write(4, &[1, 2, 3])?;
/// let mut read = [0; 4];
/// mapping.read(4, &mut read[..3])?;
/// assert_eq!(read, [1, 2, 3, 0]);
/// drop(mapping);
/// # unsafe { allocator.free_memory(allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Mapping<'a, T: Threading = Shared> {
    allocator: &'a Allocator<T>,
    allocation: &'a Allocation,
    pointer: NonNull<u8>,
    /// It is a part of another call, and not told by itself.
    quiet: bool,
    // As a `&mut [u8]` would: the guard was made from a unique borrow.
    unique: PhantomData<&'a mut [u8]>,
}

impl<T: Threading> Mapping<'_, T> {
    /// Where the first byte of the allocation is.
    ///
    /// The pointer is valid for [`Self::size`] bytes while the guard lives. The device may read and write behind it.
    #[must_use]
    pub fn pointer(&self) -> NonNull<c_void> {
        self.pointer.cast()
    }

    /// Bytes of the allocation.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.allocation.size
    }

    /// Copies `source` to `offset` bytes from the start of the allocation. Memory that is not host-coherent has to be
    /// flushed afterwards: [`Self::flush`].
    ///
    /// # Errors
    /// [`MapError::OutOfRange`] if it does not fit; nothing is written.
    pub fn write(&mut self, offset: u64, source: &[u8]) -> Result<(), MapError> {
        let at = self.at(offset, source.len())?;
        // SAFETY: `at` checked that the bytes are inside the mapped allocation, and `source`, which Rust owns, does not
        // overlap memory of the driver.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), at, source.len()) };
        Ok(())
    }

    /// Copies bytes from `offset` bytes after the start of the allocation to `target`. Memory that is not host-coherent
    /// has to be invalidated before: [`Self::invalidate`].
    ///
    /// # Errors
    /// [`MapError::OutOfRange`] if there are not as many; nothing is read.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), MapError> {
        let at = self.at(offset, target.len())?;
        // SAFETY: `at` checked that the bytes are inside the mapped allocation, and `target`, which Rust owns, does not
        // overlap memory of the driver. The driver's memory is initialised as far as the compiler can know.
        unsafe { std::ptr::copy_nonoverlapping(at.cast_const(), target.as_mut_ptr(), target.len()) };
        Ok(())
    }

    /// Makes what the host wrote visible to the device: see [`Allocator::flush`].
    ///
    /// # Errors
    /// As there.
    pub fn flush(&self, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Flush, offset, size)
    }

    /// Makes what the device wrote visible to the host: see [`Allocator::invalidate`].
    ///
    /// # Errors
    /// As there.
    pub fn invalidate(&self, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Invalidate, offset, size)
    }

    /// Gives the guard up and leaves the memory mapped: the pointer stays valid until a call of
    /// [`Allocator::unmap_memory`] for it, or until the allocation is freed.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 16, alignment: 16, memory_type_bits: !0 };
    /// # let mut allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::new(MemoryUsage::CpuOnly))?;
    /// let pointer = allocator.map(&mut allocation)?.into_raw();
    /// // SAFETY: it pairs with `into_raw` above, and `pointer` is not used afterwards.
    /// unsafe { allocator.unmap_memory(&allocation) }?;
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn into_raw(self) -> NonNull<c_void> {
        ManuallyDrop::new(self).pointer()
    }

    /// Flushes or invalidates, and tells a recording of it unless it is part of another call.
    fn make_visible(&self, visibility: Visibility, offset: u64, size: u64) -> Result<(), MapError> {
        let ranges = &[(self.allocation, offset, size)];
        if self.quiet {
            self.allocator.make_visible_quietly(visibility, ranges)
        } else {
            self.allocator.make_visible(visibility, ranges)
        }
    }

    /// The address of `length` bytes at `offset`, if they are inside the allocation.
    fn at(&self, offset: u64, length: usize) -> Result<*mut u8, MapError> {
        let size = crate::base::cast::widen(length);
        check_range(self.allocation, offset, size)?;
        let offset = host_size(offset).ok_or_else(|| out_of_range(self.allocation, offset, size))?;
        Ok(self.pointer.as_ptr().wrapping_add(offset))
    }
}

impl<T: Threading> Drop for Mapping<'_, T> {
    fn drop(&mut self) {
        // Fails only if the pool was destroyed meanwhile, and then there is no mapping to end.
        if self.allocator.uncount_mapping(self.allocation).is_ok() && !self.quiet {
            self.allocator.record(RecordedCall::Unmap(self.allocation));
        }
    }
}

impl<T: Threading> fmt::Debug for Mapping<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("allocation", self.allocation)
            .field("pointer", &self.pointer)
            .finish()
    }
}

fn out_of_range(allocation: &Allocation, offset: u64, size: u64) -> MapError {
    MapError::OutOfRange { offset, size, allocation_size: allocation.size }
}

/// How many bytes `size` stands for, if they are inside the allocation.
fn check_range(allocation: &Allocation, offset: u64, size: u64) -> Result<u64, MapError> {
    let rest = allocation.size.checked_sub(offset);
    match (rest, size) {
        (Some(rest), vk::WHOLE_SIZE) => Ok(rest),
        (Some(rest), size) if size <= rest => Ok(size),
        _ => Err(out_of_range(allocation, offset, size)),
    }
}

/// Keeps memory mapped that is mapped: without it another thread's `trim` could unmap it during a call of the driver.
struct Pin<'a, T: Threading> {
    allocator: &'a Allocator<T>,
    allocation: &'a Allocation,
}

impl<T: Threading> Drop for Pin<'_, T> {
    fn drop(&mut self) {
        // Fails only if the pool was destroyed meanwhile, and then there is no mapping to end.
        let _ = self.allocator.uncount_mapping(self.allocation);
    }
}

/// The two directions of making writes visible.
#[derive(Clone, Copy)]
pub enum Visibility {
    /// From the host to the device.
    Flush,
    /// From the device to the host.
    Invalidate,
}

impl<T: Threading> Allocator<T> {
    /// Maps an allocation until the guard is dropped. Mappings are counted for each block, so that any number of
    /// allocations in it can be mapped at once; the driver is called the first time only, and the memory stays mapped
    /// until it is freed or [`Self::trim`] finds it unused.
    ///
    /// # Errors
    /// [`MapError`] if the memory is not host-visible, the allocation was made without host access, or the driver
    /// refuses.
    pub fn map<'a>(&'a self, allocation: &'a mut Allocation) -> Result<Mapping<'a, T>, MapError> {
        let mut mapping = self.mapping(allocation)?;
        mapping.quiet = false;
        self.record(RecordedCall::Map(mapping.allocation));
        Ok(mapping)
    }

    /// A guard from a shared borrow, which is only read through. It is a part of another call.
    pub(super) fn mapping<'a>(&'a self, allocation: &'a Allocation) -> Result<Mapping<'a, T>, MapError> {
        let pointer = self.count_mapping(allocation)?;
        Ok(Mapping { allocator: self, allocation, pointer, quiet: true, unique: PhantomData })
    }

    /// Maps an allocation until [`Self::unmap_memory`] is called for it once, or until it is freed: as [`Self::map`] and
    /// [`Mapping::into_raw`] do, from a shared borrow, for who counts mappings by himself.
    ///
    /// # Errors
    /// As for [`Self::map`].
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 16, alignment: 16, memory_type_bits: !0 };
    /// # let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::new(MemoryUsage::CpuOnly))?;
    /// let pointer = allocator.map_memory(&allocation)?;
    /// assert_eq!(allocator.map_memory(&allocation)?, pointer);
    /// for _ in 0..2 {
    ///     // SAFETY: `pointer` is not used afterwards.
    ///     unsafe { allocator.unmap_memory(&allocation) }?;
    /// }
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_memory(&self, allocation: &Allocation) -> Result<NonNull<c_void>, MapError> {
        let pointer = self.count_mapping(allocation)?;
        self.record(RecordedCall::Map(allocation));
        Ok(pointer.cast())
    }

    /// Ends a mapping that [`Mapping::into_raw`] left open or [`Self::map_memory`] made.
    ///
    /// # Errors
    /// [`MapError::NotMapped`] if no mapping is open; [`MapError::Foreign`] if the allocation is another allocator's.
    ///
    /// # Safety
    /// The call pairs with one [`Mapping::into_raw`] or [`Self::map_memory`] of the same allocation, whose pointer is not
    /// used afterwards.
    pub unsafe fn unmap_memory(&self, allocation: &Allocation) -> Result<(), MapError> {
        self.uncount_mapping(allocation)?;
        self.record(RecordedCall::Unmap(allocation));
        Ok(())
    }

    /// Counts a mapping and answers where the allocation begins. It is not recorded.
    pub(crate) fn count_mapping(&self, allocation: &Allocation) -> Result<NonNull<u8>, MapError> {
        self.check_host_access(allocation)?;
        let vector = self.vector_of(allocation)?;
        let base = vector.map(&self.inner.context, allocation.live())?;
        base.at(allocation.offset).get().ok_or(MapError::NotMapped)
    }

    /// Ends a mapping. It is not recorded.
    pub(crate) fn uncount_mapping(&self, allocation: &Allocation) -> Result<(), MapError> {
        self.vector_of(allocation)?.unmap(allocation.live())
    }

    fn check_host_access(&self, allocation: &Allocation) -> Result<(), MapError> {
        if !allocation.has(allocation_flags::HOST_VISIBLE) {
            return Err(MapError::NotHostVisible { memory_type: allocation.memory_type_index() });
        }
        if !allocation.has(allocation_flags::HOST_ACCESS) {
            return Err(MapError::NoHostAccess);
        }
        Ok(())
    }

    /// Makes `size` bytes (or [`vk::WHOLE_SIZE`]: all that follow) from `offset` on, which the host wrote, visible to
    /// the device. In host-coherent memory, and for zero bytes, nothing has to be done and the driver is not called.
    ///
    /// The range is rounded outwards to `nonCoherentAtomSize`, as Vulkan demands; no other allocation has bytes there.
    ///
    /// # Errors
    /// [`MapError::OutOfRange`] in any memory; [`MapError::NotMapped`] if the memory is not mapped; or what the driver
    /// answers.
    pub fn flush(&self, allocation: &Allocation, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Flush, &[(allocation, offset, size)])
    }

    /// Makes `size` bytes from `offset` on, which the device wrote, visible to the host: the counterpart of
    /// [`Self::flush`].
    ///
    /// # Errors
    /// As for [`Self::flush`].
    pub fn invalidate(&self, allocation: &Allocation, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Invalidate, &[(allocation, offset, size)])
    }

    /// [`Self::flush`] for many ranges, with one call of the driver. Each is an allocation, an offset and a size.
    ///
    /// # Errors
    /// As for [`Self::flush`]; nothing is flushed if any range is wrong.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    /// # let info = AllocationCreateInfo { flags: AllocationCreateFlags::MAPPED, ..AllocationCreateInfo::new(MemoryUsage::GpuToCpu) };
    /// # let allocation = allocator.allocate_memory(&requirements, &info)?;
    /// allocator.flush_many(&[(&allocation, 0, 16), (&allocation, 1024, vk::WHOLE_SIZE)])?;
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_many(&self, ranges: &[(&Allocation, u64, u64)]) -> Result<(), MapError> {
        self.make_visible(Visibility::Flush, ranges)
    }

    /// [`Self::invalidate`] for many ranges, with one call of the driver.
    ///
    /// # Errors
    /// As for [`Self::flush`]; nothing is invalidated if any range is wrong.
    pub fn invalidate_many(&self, ranges: &[(&Allocation, u64, u64)]) -> Result<(), MapError> {
        self.make_visible(Visibility::Invalidate, ranges)
    }

    /// [`Self::flush_many`], or [`Self::invalidate_many`].
    pub(crate) fn make_visible(
        &self,
        visibility: Visibility,
        ranges: &[(&Allocation, u64, u64)],
    ) -> Result<(), MapError> {
        self.make_visible_quietly(visibility, ranges)?;
        for &range in ranges {
            self.record(RecordedCall::made_visible(visibility, range));
        }
        Ok(())
    }

    /// The same as a part of another call: it is not recorded.
    pub(crate) fn make_visible_quietly(
        &self,
        visibility: Visibility,
        ranges: &[(&Allocation, u64, u64)],
    ) -> Result<(), MapError> {
        if let [(allocation, offset, size)] = *ranges {
            return match self.rounded_range(allocation, offset, size)? {
                Some((range, _pin)) => self.call(visibility, &[range]),
                None => Ok(()),
            };
        }
        let mut rounded = Vec::new();
        let mut pins = Vec::new();
        for &(allocation, offset, size) in ranges {
            if let Some((range, pin)) = self.rounded_range(allocation, offset, size)? {
                rounded.push(range);
                pins.push(pin);
            }
        }
        if rounded.is_empty() { Ok(()) } else { self.call(visibility, &rounded) }
    }

    /// Flushes or invalidates ranges that [`Self::rounded_range`] made and whose pins live.
    fn call(&self, visibility: Visibility, rounded: &[vk::MappedMemoryRange<'_>]) -> Result<(), MapError> {
        let device = &self.inner.context.device;
        match visibility {
            // SAFETY: `rounded_range` made ranges of live memory that begin at an atom and end at one or at the end of
            // the memory; the pins keep it mapped until the call returns (VUID-VkMappedMemoryRange-memory-00684).
            Visibility::Flush => unsafe { device.flush(rounded) }?,
            // SAFETY: as above.
            Visibility::Invalidate => unsafe { device.invalidate(rounded) }?,
        }
        Ok(())
    }

    /// The range in the form that Vulkan wants; `None` if there is nothing to be done.
    fn rounded_range<'a>(
        &'a self,
        allocation: &'a Allocation,
        offset: u64,
        size: u64,
    ) -> Result<Option<(vk::MappedMemoryRange<'static>, Pin<'a, T>)>, MapError> {
        let size = check_range(allocation, offset, size)?;
        let vector = self.vector_of(allocation)?;
        if size == 0 || !allocation.has(allocation_flags::NON_COHERENT) {
            return Ok(None);
        }
        let atom = self.inner.context.device.atom;
        let memory_size = vector.pin_mapping(allocation.live())?;
        let pin = Pin { allocator: self, allocation };
        let begin = atom.align_down(allocation.offset + offset);
        // The end of an allocation is at most the end of its memory, so that the sum does not overflow; only rounding
        // may.
        let end = allocation.offset + offset + size;
        let end = atom.align_up(end).map_or(memory_size, |end| end.min(memory_size));
        let range =
            vk::MappedMemoryRange::default().memory(allocation.memory).offset(begin).size(end - begin);
        Ok(Some((range, pin)))
    }

    /// Writes `source` into an allocation at `offset`, mapped for the purpose if need be, and flushes it.
    ///
    /// # Errors
    /// [`MapError`]: out of range, not host-visible, made without host access, or refused by the driver.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 16, alignment: 16, memory_type_bits: !0 };
    /// let mut allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::new(MemoryUsage::CpuOnly))?;
    /// allocator.copy_to_allocation(b"sublet", &mut allocation, 10)?;
    /// let mut back = [0; 6];
    /// allocator.copy_from_allocation(&allocation, 10, &mut back)?;
    /// assert_eq!(&back, b"sublet");
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy_to_allocation(
        &self,
        source: &[u8],
        allocation: &mut Allocation,
        offset: u64,
    ) -> Result<(), MapError> {
        let size = crate::base::cast::widen(source.len());
        check_range(allocation, offset, size)?;
        let mut mapping = self.mapping(allocation)?;
        mapping.write(offset, source)?;
        // Flushed while it is mapped (VUID-VkMappedMemoryRange-memory-00684).
        mapping.flush(offset, size)?;
        drop(mapping);
        self.record(RecordedCall::CopyTo(allocation, offset, size));
        Ok(())
    }

    /// Invalidates bytes of an allocation from `offset` on, mapped for the purpose if need be, and reads them into
    /// `target`.
    ///
    /// # Errors
    /// As for [`Self::copy_to_allocation`].
    pub fn copy_from_allocation(
        &self,
        allocation: &Allocation,
        offset: u64,
        target: &mut [u8],
    ) -> Result<(), MapError> {
        let size = crate::base::cast::widen(target.len());
        check_range(allocation, offset, size)?;
        let mapping = self.mapping(allocation)?;
        mapping.invalidate(offset, size)?;
        mapping.read(offset, target)?;
        drop(mapping);
        self.record(RecordedCall::CopyFrom(allocation, offset, size));
        Ok(())
    }
}
