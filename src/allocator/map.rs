//! Host access to an allocation: mapping, flushing, invalidating, copying.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use ash::vk;

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::allocation::{Allocation, allocation_flags};
use crate::error::{ForeignHandle, MapError};
use sublet_engines::cast::host_size;

/// A mapped allocation. While the guard lives, the memory stays mapped and the allocation cannot be freed.
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
pub struct Mapping<'a> {
    allocator: &'a Allocator,
    allocation: &'a Allocation,
    pointer: NonNull<u8>,
    /// True if the guard is part of another call, and is not recorded itself.
    quiet: bool,
    // Like a `&mut [u8]`: the guard was made from a unique borrow.
    unique: PhantomData<&'a mut [u8]>,
}

impl Mapping<'_> {
    /// The address of the allocation's first byte.
    ///
    /// The pointer is valid for [`Self::size`] bytes while the guard lives. The device may access the same memory.
    #[must_use]
    pub fn pointer(&self) -> NonNull<c_void> {
        self.pointer.cast()
    }

    /// Bytes of the allocation.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.allocation.size
    }

    /// Copies `source` to `offset` bytes from the start of the allocation. Memory that is not host-coherent needs a
    /// [`Self::flush`] afterwards.
    ///
    /// # Errors
    /// [`MapError::OutOfRange`] if it does not fit; nothing is written.
    pub fn write(&mut self, offset: u64, source: &[u8]) -> Result<(), MapError> {
        self.write_slice(offset, source)
    }

    /// [`Self::write`] for one value, including its padding.
    ///
    /// # Errors
    /// See [`Self::write`].
    pub fn write_value<V: Copy>(&mut self, offset: u64, value: &V) -> Result<(), MapError> {
        self.write_slice(offset, std::slice::from_ref(value))
    }

    /// [`Self::write`] for a slice of values. The offset is in bytes, and need not be a multiple of their alignment.
    ///
    /// # Errors
    /// See [`Self::write`].
    #[inline]
    pub fn write_slice<V: Copy>(&mut self, offset: u64, values: &[V]) -> Result<(), MapError> {
        let size = size_of_val(values);
        let at = self.at(offset, size)?;
        // SAFETY: `at` checked that the bytes are inside the mapped allocation, and `values`, which Rust owns, do not
        // overlap memory of the driver. Bytes have no alignment, and copying padding does not read it.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), at, size) };
        Ok(())
    }

    /// Copies bytes at `offset` from the start of the allocation to `target`. Memory that is not host-coherent needs a
    /// [`Self::invalidate`] before.
    ///
    /// # Errors
    /// [`MapError::OutOfRange`] if the range is outside the allocation; nothing is read.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), MapError> {
        let at = self.at(offset, target.len())?;
        // SAFETY: `at` checked that the bytes are inside the mapped allocation, and `target`, which Rust owns, does not
        // overlap memory of the driver. The driver's memory is initialised as far as the compiler can know.
        unsafe { std::ptr::copy_nonoverlapping(at.cast_const(), target.as_mut_ptr(), target.len()) };
        Ok(())
    }

    /// Makes host writes visible to the device: see [`Allocator::flush`].
    ///
    /// # Errors
    /// See [`Allocator::flush`].
    pub fn flush(&self, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Flush, offset, size)
    }

    /// Makes device writes visible to the host: see [`Allocator::invalidate`].
    ///
    /// # Errors
    /// See [`Allocator::invalidate`].
    pub fn invalidate(&self, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Invalidate, offset, size)
    }

    /// Consumes the guard and leaves the memory mapped. The pointer stays valid until a matching
    /// [`Allocator::unmap_memory`], or until the allocation is freed.
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

    /// Flushes or invalidates, and records it unless it is part of another call.
    #[inline]
    fn make_visible(&self, visibility: Visibility, offset: u64, size: u64) -> Result<(), MapError> {
        let range = (self.allocation, offset, size);
        self.allocator.make_one_visible(visibility, range, true)?;
        if !self.quiet {
            self.allocator.record(RecordedCall::made_visible(visibility, range));
        }
        Ok(())
    }

    /// Returns true if the guard counts as a user of the mapping. A quiet guard does not if the allocation is
    /// persistently mapped, because the allocation itself counts.
    fn is_counted(&self) -> bool {
        !self.quiet || !self.allocation.mapped.is_mapped()
    }

    /// The address of `length` bytes at `offset`, if they are inside the allocation.
    #[inline]
    fn at(&self, offset: u64, length: usize) -> Result<*mut u8, MapError> {
        let size = sublet_engines::cast::widen(length);
        check_range(self.allocation, offset, size)?;
        let offset = host_size(offset).ok_or_else(|| out_of_range(self.allocation, offset, size))?;
        Ok(self.pointer.as_ptr().wrapping_add(offset))
    }
}

impl Drop for Mapping<'_> {
    #[inline]
    fn drop(&mut self) {
        // Fails only if the pool was destroyed meanwhile; then the mapping is gone too.
        if self.is_counted() && self.allocator.uncount_mapping(self.allocation).is_ok() && !self.quiet {
            self.allocator.record(RecordedCall::Unmap(self.allocation));
        }
    }
}

impl fmt::Debug for Mapping<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("allocation", self.allocation)
            .field("pointer", &self.pointer)
            .finish()
    }
}

#[cold]
fn out_of_range(allocation: &Allocation, offset: u64, size: u64) -> MapError {
    MapError::OutOfRange { offset, size, allocation_size: allocation.size }
}

/// Resolves `size`, which may be `vk::WHOLE_SIZE`, to a number of bytes inside the allocation.
#[inline]
pub(super) fn check_range(allocation: &Allocation, offset: u64, size: u64) -> Result<u64, MapError> {
    let rest = allocation.size.checked_sub(offset);
    match (rest, size) {
        (Some(rest), vk::WHOLE_SIZE) => Ok(rest),
        (Some(rest), size) if size <= rest => Ok(size),
        _ => Err(out_of_range(allocation, offset, size)),
    }
}

/// A part of an allocation: an offset and a size.
type AllocationPart<'a> = (&'a Allocation, u64, u64);

/// Up to this many ranges are flushed without a heap allocation.
const FEW: usize = 16;

/// The two directions of making writes visible.
#[derive(Clone, Copy)]
pub enum Visibility {
    /// From the host to the device.
    Flush,
    /// From the device to the host.
    Invalidate,
}

impl Allocator {
    /// Maps an allocation until the guard is dropped. Mappings are counted for each block, so any number of its
    /// allocations can be mapped at once. Only the first mapping of a block calls the driver. The memory stays mapped
    /// until it is freed, or until [`Self::trim`] or the limit of mapped bytes finds it unused.
    ///
    /// # Errors
    /// [`MapError`] if the memory is not host-visible, the allocation was made without host access, the limit of mapped
    /// bytes is reached, or the driver refuses.
    pub fn map<'a>(&'a self, allocation: &'a mut Allocation) -> Result<Mapping<'a>, MapError> {
        let pointer = self.count_mapping(allocation)?;
        self.record(RecordedCall::Map(allocation));
        Ok(Mapping { allocator: self, allocation, pointer, quiet: false, unique: PhantomData })
    }

    /// A read-only guard from a shared borrow, as part of another call.
    // Inlined, to avoid a copy of the guard.
    #[inline(always)]
    pub(super) fn mapping<'a>(&'a self, allocation: &'a Allocation) -> Result<Mapping<'a>, MapError> {
        let pointer = match allocation.mapped.get() {
            Some(pointer) => {
                if allocation.is_dedicated() {
                    self.memory_to_flush(allocation, false)?;
                } else {
                    self.check_shared(allocation)?;
                }
                pointer
            }
            None => self.count_mapping(allocation)?,
        };
        Ok(Mapping { allocator: self, allocation, pointer, quiet: true, unique: PhantomData })
    }

    /// Maps an allocation until a matching [`Self::unmap_memory`], or until it is freed. Like [`Self::map`] and
    /// [`Mapping::into_raw`], but from a shared borrow, for programs that count mappings themselves. If the allocation
    /// is freed without that call, its block counts as mapped until the block is destroyed.
    ///
    /// # Errors
    /// See [`Self::map`].
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

    /// Ends a mapping from [`Mapping::into_raw`] or [`Self::map_memory`].
    ///
    /// # Errors
    /// [`MapError::NotMapped`] if no mapping is open; [`MapError::Foreign`] if the allocation belongs to another
    /// allocator.
    ///
    /// # Safety
    /// The call pairs with one [`Mapping::into_raw`] or [`Self::map_memory`] of the same allocation, whose pointer is
    /// not used afterwards.
    pub unsafe fn unmap_memory(&self, allocation: &Allocation) -> Result<(), MapError> {
        self.uncount_mapping(allocation)?;
        self.record(RecordedCall::Unmap(allocation));
        Ok(())
    }

    /// Counts a mapping, and returns the address of the allocation. Not recorded.
    #[inline]
    pub(crate) fn count_mapping(&self, allocation: &Allocation) -> Result<NonNull<u8>, MapError> {
        self.check_host_access(allocation)?;
        let vector = self.vector_of(allocation)?;
        let map = || vector.map(&self.inner.context, allocation.live());
        let base = self.inner.with_addresses(map, |error| Some(error))?;
        base.at(allocation.offset).get().ok_or(MapError::NotMapped)
    }

    /// Ends a mapping. Not recorded.
    #[inline]
    pub(crate) fn uncount_mapping(&self, allocation: &Allocation) -> Result<(), MapError> {
        self.vector_of(allocation)?.unmap(allocation.live())
    }

    #[inline]
    fn check_host_access(&self, allocation: &Allocation) -> Result<(), MapError> {
        if !allocation.has(allocation_flags::HOST_VISIBLE) {
            return Err(MapError::NotHostVisible { memory_type: allocation.memory_type_index() });
        }
        if !allocation.has(allocation_flags::HOST_ACCESS) {
            return Err(MapError::NoHostAccess);
        }
        Ok(())
    }

    /// Makes `size` bytes from `offset` on, which the host wrote, visible to the device. [`vk::WHOLE_SIZE`] means all
    /// that follow. Does nothing for host-coherent memory or zero bytes.
    ///
    /// The range is rounded outwards to `nonCoherentAtomSize`, as Vulkan requires; no other allocation has bytes there.
    ///
    /// # Errors
    /// [`MapError::OutOfRange`] if the range is outside the allocation, in coherent memory too; [`MapError::NotMapped`]
    /// if the memory is not mapped; or the driver's error.
    #[inline]
    pub fn flush(&self, allocation: &Allocation, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Flush, &[(allocation, offset, size)])
    }

    /// Makes `size` bytes from `offset` on, which the device wrote, visible to the host. The counterpart of
    /// [`Self::flush`].
    ///
    /// # Errors
    /// See [`Self::flush`].
    #[inline]
    pub fn invalidate(&self, allocation: &Allocation, offset: u64, size: u64) -> Result<(), MapError> {
        self.make_visible(Visibility::Invalidate, &[(allocation, offset, size)])
    }

    /// [`Self::flush`] for many ranges, with one driver call. Each range is an allocation, an offset and a size.
    ///
    /// # Errors
    /// See [`Self::flush`]; nothing is flushed if any range is wrong.
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

    /// [`Self::invalidate`] for many ranges, with one driver call.
    ///
    /// # Errors
    /// See [`Self::flush`]; nothing is invalidated if any range is wrong.
    pub fn invalidate_many(&self, ranges: &[(&Allocation, u64, u64)]) -> Result<(), MapError> {
        self.make_visible(Visibility::Invalidate, ranges)
    }

    /// [`Self::flush_many`], or [`Self::invalidate_many`].
    #[inline]
    pub(crate) fn make_visible(
        &self,
        visibility: Visibility,
        ranges: &[(&Allocation, u64, u64)],
    ) -> Result<(), MapError> {
        self.make_visible_quietly(visibility, ranges)?;
        if self.inner.bookkeeping.any() {
            for &range in ranges {
                self.record(RecordedCall::made_visible(visibility, range));
            }
        }
        Ok(())
    }

    /// [`Self::make_visible`] as part of another call. Not recorded.
    #[inline]
    pub(crate) fn make_visible_quietly(
        &self,
        visibility: Visibility,
        ranges: &[(&Allocation, u64, u64)],
    ) -> Result<(), MapError> {
        match *ranges {
            [range] => self.make_one_visible(visibility, range, false),
            _ => self.make_all_visible(visibility, ranges),
        }
    }

    /// Flushes or invalidates one range, without recording. `is_held` means that a counted user keeps the mapping until
    /// this returns.
    #[inline]
    fn make_one_visible(
        &self,
        visibility: Visibility,
        (allocation, offset, size): AllocationPart<'_>,
        is_held: bool,
    ) -> Result<(), MapError> {
        match self.flushed_size(allocation, offset, size)? {
            0 => Ok(()),
            size => self.call_for_one(visibility, (allocation, offset, size), is_held),
        }
    }

    /// The driver call of `make_one_visible`. Not inlined, so that coherent memory does not pay for it.
    #[inline(never)]
    fn call_for_one(
        &self,
        visibility: Visibility,
        part: AllocationPart<'_>,
        is_held: bool,
    ) -> Result<(), MapError> {
        let (range, is_pinned) = self.rounded_range(part, is_held, &mut None)?;
        let answer = self.call(visibility, &[range]);
        if is_pinned {
            self.unpin(part);
        }
        answer
    }

    /// Flushes or invalidates many ranges, without recording.
    fn make_all_visible(&self, visibility: Visibility, parts: &[AllocationPart<'_>]) -> Result<(), MapError> {
        let mut few = [vk::MappedMemoryRange::default(); FEW];
        let mut many = Vec::new();
        let rounded = if parts.len() <= FEW {
            &mut few[..]
        } else {
            many.resize(parts.len(), vk::MappedMemoryRange::default());
            &mut many[..]
        };
        let (mut count, mut looked_at, mut any_pinned) = (0, 0, false);
        let (mut answer, mut checked) = (Ok(()), None);
        for &(allocation, offset, size) in parts {
            let range = self.flushed_size(allocation, offset, size).and_then(|size| match size {
                0 => Ok(None),
                size => self.rounded_range((allocation, offset, size), false, &mut checked).map(Some),
            });
            match range {
                Ok(None) => {}
                Ok(Some((range, is_pinned))) => {
                    rounded[count] = range;
                    count += 1;
                    any_pinned |= is_pinned;
                }
                Err(error) => {
                    answer = Err(error);
                    break;
                }
            }
            looked_at += 1;
        }
        if answer.is_ok() && count != 0 {
            answer = self.call(visibility, &rounded[..count]);
        }
        if any_pinned {
            for &part in &parts[..looked_at] {
                let (allocation, offset, size) = part;
                let size = self.flushed_size(allocation, offset, size);
                if size.is_ok_and(|size| size != 0) && !allocation.mapped.is_mapped() {
                    self.unpin(part);
                }
            }
        }
        answer
    }

    /// Flushes or invalidates ranges from [`Self::rounded_range`], which stay mapped meanwhile.
    #[inline]
    fn call(&self, visibility: Visibility, rounded: &[vk::MappedMemoryRange<'_>]) -> Result<(), MapError> {
        let device = &self.inner.context.device;
        match visibility {
            // SAFETY: `rounded_range` made ranges of live memory that begin at an atom and end at one or at the end of
            // the memory. The memory stays mapped until the call returns (VUID-VkMappedMemoryRange-memory-00684): it is
            // pinned, or the borrowed allocation or a guard keeps it mapped.
            Visibility::Flush => unsafe { device.flush(rounded) }?,
            // SAFETY: as above.
            Visibility::Invalidate => unsafe { device.invalidate(rounded) }?,
        }
        Ok(())
    }

    /// The number of bytes to flush for `size` bytes from `offset` on; 0 for coherent memory.
    #[inline(always)]
    fn flushed_size(&self, allocation: &Allocation, offset: u64, size: u64) -> Result<u64, MapError> {
        let size = check_range(allocation, offset, size)?;
        if allocation.allocator != self.inner.id {
            return Err(MapError::Foreign(ForeignHandle::Allocation));
        }
        Ok(if allocation.has(allocation_flags::NON_COHERENT) { size } else { 0 })
    }

    /// The range in Vulkan's form; the size is [`Self::flushed_size`], and not 0. If neither the allocation nor the
    /// caller keeps the memory mapped, this pins it by counting a user. Otherwise another thread's `trim` could unmap
    /// it during the driver call. Returns true if it is pinned; the caller then calls [`Self::unpin`]. `checked` caches
    /// the use of a vector that was verified last.
    #[inline(always)]
    fn rounded_range(
        &self,
        (allocation, offset, size): AllocationPart<'_>,
        is_held: bool,
        checked: &mut Option<(u32, u32)>,
    ) -> Result<(vk::MappedMemoryRange<'static>, bool), MapError> {
        let atom = self.inner.context.device.atom;
        let begin = atom.align_down(allocation.offset + offset);
        // The end of an allocation is at most the end of its memory, so the sums do not overflow; only rounding may.
        let end = atom.align_up(allocation.offset + offset + size);
        let is_inside = end.is_some_and(|end| end <= allocation.offset + allocation.size);
        let is_pinned = !is_held && !allocation.mapped.is_mapped();
        let memory_size = if is_pinned || !is_inside {
            self.memory_to_flush(allocation, is_pinned)?
        } else if is_held {
            // The holder of the mapping has checked that the memory exists.
            u64::MAX
        } else if allocation.is_dedicated() {
            self.memory_to_flush(allocation, false)?
        } else {
            let of_use = Some((allocation.vector, allocation.generation));
            if *checked != of_use {
                self.check_shared(allocation)?;
                *checked = of_use;
            }
            u64::MAX
        };
        let end = end.map_or(memory_size, |end| end.min(memory_size));
        let range =
            vk::MappedMemoryRange::default().memory(allocation.memory).offset(begin).size(end - begin);
        Ok((range, is_pinned))
    }

    /// Bytes of the memory of an allocation. Pins it if requested.
    #[inline(never)]
    fn memory_to_flush(&self, allocation: &Allocation, is_pinned: bool) -> Result<u64, MapError> {
        let (vector, live) = (self.vector_of(allocation)?, allocation.live());
        if is_pinned { vector.pin_mapping(live) } else { Ok(vector.memory_size(live)?) }
    }

    /// Checks that the pool of an allocation in a block was not destroyed. Nothing else can end a borrowed allocation.
    #[inline(always)]
    fn check_shared(&self, allocation: &Allocation) -> Result<(), ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        if vector.has_use(allocation.generation) { Ok(()) } else { Err(ForeignHandle::Allocation) }
    }

    /// Undoes the pin of [`Self::rounded_range`].
    fn unpin(&self, (allocation, ..): AllocationPart<'_>) {
        // Fails only if the pool was destroyed meanwhile; then the mapping is gone too.
        let _ = self.uncount_mapping(allocation);
    }
}
