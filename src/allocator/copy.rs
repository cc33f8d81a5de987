//! Copies between host memory and an allocation, with mapping, flushing and invalidating.

use super::Allocator;
use super::map::check_range;
use super::recorded_call::RecordedCall;
use crate::allocation::Allocation;
use crate::error::MapError;
use sublet_engines::cast::widen;

impl Allocator {
    /// Writes `source` into an allocation at `offset`, and flushes it. Maps the memory meanwhile, if necessary.
    ///
    /// # Errors
    /// [`MapError`] if the range is outside the allocation, the memory is not host-visible, the allocation was made
    /// without host access, the limit of mapped bytes is reached, or the driver refuses.
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
        self.write_slice(source, allocation, offset)
    }

    /// [`Self::copy_to_allocation`] for one value, including its padding.
    ///
    /// # Errors
    /// See [`Self::copy_to_allocation`].
    pub fn write_value<V: Copy>(
        &self,
        value: &V,
        allocation: &mut Allocation,
        offset: u64,
    ) -> Result<(), MapError> {
        self.write_slice(std::slice::from_ref(value), allocation, offset)
    }

    /// [`Self::copy_to_allocation`] for a slice of values. The offset is in bytes, and need not be a multiple of their
    /// alignment.
    ///
    /// # Errors
    /// See [`Self::copy_to_allocation`].
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 256, alignment: 16, memory_type_bits: !0 };
    /// # let mut memory = allocator.allocate_memory(&requirements, &AllocationCreateInfo::new(MemoryUsage::CpuOnly))?;
    /// let matrix = [[0.0_f32; 4]; 4];
    /// let lights = [[1.0_f32; 3]; 16];
    /// allocator.write_value(&matrix, &mut memory, 0)?;
    /// allocator.write_slice(&lights, &mut memory, 64)?;
    /// # unsafe { allocator.free_memory(memory) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_slice<V: Copy>(
        &self,
        values: &[V],
        allocation: &mut Allocation,
        offset: u64,
    ) -> Result<(), MapError> {
        let size = widen(size_of_val(values));
        check_range(allocation, offset, size)?;
        let mut mapping = self.mapping(allocation)?;
        mapping.write_slice(offset, values)?;
        if allocation.needs_flush() {
            // The memory must be mapped during a flush (VUID-VkMappedMemoryRange-memory-00684).
            mapping.flush(offset, size)?;
        }
        drop(mapping);
        self.record(RecordedCall::CopyTo(allocation, offset, size));
        Ok(())
    }

    /// Invalidates bytes of an allocation from `offset` on, and reads them into `target`. Maps the memory meanwhile, if
    /// necessary.
    ///
    /// # Errors
    /// See [`Self::copy_to_allocation`].
    pub fn copy_from_allocation(
        &self,
        allocation: &Allocation,
        offset: u64,
        target: &mut [u8],
    ) -> Result<(), MapError> {
        let size = widen(target.len());
        check_range(allocation, offset, size)?;
        let mapping = self.mapping(allocation)?;
        if allocation.needs_flush() {
            mapping.invalidate(offset, size)?;
        }
        mapping.read(offset, target)?;
        drop(mapping);
        self.record(RecordedCall::CopyFrom(allocation, offset, size));
        Ok(())
    }
}
