//! One `VkDeviceMemory` and its accounting. All device memory is allocated here.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::budget::Budgets;
use super::events::{PendingEvents, emit_destroyed, is_heard};
use super::mapped_pointer::MappedPointer;
use crate::base::watch::Watch;
use crate::device::{DriverAllocation, DriverCost, LiveDevice};
use crate::error::{MapError, MemoryError};
use sublet_engines::Key;
use sublet_engines::cast::index;

/// The state that all vectors of an allocator share.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    pub(crate) device: LiveDevice,
    pub(crate) budgets: Budgets,
}

impl DeviceContext {
    /// The heap of a memory type.
    pub(crate) fn heap_of(&self, memory_type: u32) -> u32 {
        self.device.memory_types()[index(memory_type)].heap_index
    }

    /// The modelled time of the driver's calls for a memory type.
    pub(crate) fn cost_of(&self, memory_type: u32) -> DriverCost {
        DriverCost::of(self.device.memory_types()[index(memory_type)].property_flags)
    }
}

#[cfg(test)]
impl DeviceContext {
    /// The context of a simulated GPU, which must outlive it.
    pub(crate) fn of(gpu: &sublet_sim::Gpu) -> Self {
        let functions = crate::device::VulkanFunctions::default().with_entry(gpu.entry());
        let settings = crate::device::DeviceSettings {
            dedicated_allocation: true,
            bind_memory2: true,
            maintenance3: false,
            maintenance4: false,
            memory_budget: false,
            memory_priority: false,
            buffer_device_address: false,
            pageable_device_local_memory: false,
            external_memory_win32: false,
        };
        let (instance, device) = (gpu.instance().handle(), gpu.device().handle());
        // SAFETY: the GPU made all of the handles, and the tests keep it until its context is gone.
        let device =
            unsafe { LiveDevice::new(&functions, instance, gpu.physical_device(), device, settings) };
        let device = device.expect("the simulated driver has every function");
        Self { budgets: Budgets::new(&device, &[]), device }
    }
}

/// Reads device memory from the device's side, for tests without `unsafe` code. No other thread accesses these bytes.
#[cfg(all(test, not(loom)))]
pub(crate) fn peek(gpu: &sublet_sim::Gpu, memory: vk::DeviceMemory, at: u64, size: usize) -> Option<Vec<u8>> {
    // SAFETY: see above.
    unsafe { gpu.read_memory(memory, at, size) }
}

/// Writes device memory from the device's side. See [`peek`].
#[cfg(all(test, not(loom)))]
pub(crate) fn poke(gpu: &sublet_sim::Gpu, memory: vk::DeviceMemory, at: u64, bytes: &[u8]) -> bool {
    // SAFETY: see above.
    unsafe { gpu.write_memory(memory, at, bytes) }
}

/// A live `VkDeviceMemory`. [`Self::destroy`] frees it; dropping it leaks the memory.
#[derive(Debug)]
#[must_use]
pub(crate) struct DeviceBlock {
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) size: u64,
    memory_type: u32,
    /// The memory belongs to one allocation.
    dedicated: bool,
    mapped: MappedPointer,
    /// The allocation that caused the mapping. Undoing it ends the mapping if there is no other user.
    mapped_for: Option<Key>,
}

impl DeviceBlock {
    /// Allocates memory from the driver if the heap, its limits and (`within_budget`) its budget allow it. The caller
    /// emits `events` after it has released its locks.
    pub(crate) fn allocate(
        context: &DeviceContext,
        what: &DriverAllocation,
        dedicated: bool,
        within_budget: bool,
        events: &mut PendingEvents,
    ) -> Result<Self, MemoryError> {
        let heap = context.heap_of(what.memory_type);
        let described = (what.memory_type, what.size, dedicated);
        context
            .budgets
            .reserve(&context.device, heap, what.size, within_budget)
            .inspect_err(|&error| events.asked(context, described, Err(error)))?;
        let watch = Watch::start(is_heard());
        match context.device.allocate_memory(what) {
            Ok(memory) => {
                context.budgets.count_given(heap, what.size);
                events.asked(context, described, Ok((memory, &watch)));
                let mapped = MappedPointer::UNMAPPED;
                let (size, memory_type) = (what.size, what.memory_type);
                Ok(Self { memory, size, memory_type, dedicated, mapped, mapped_for: None })
            }
            Err(error) => {
                context.budgets.release(heap, what.size);
                let error =
                    MemoryError::Driver { size: what.size, memory_type: what.memory_type, heap, error };
                events.asked(context, described, Err(error));
                Err(error)
            }
        }
    }

    /// Frees the memory, mapped or not, and emits the event. The caller holds no lock. `pool` is the pool's name.
    pub(crate) fn destroy(self, context: &DeviceContext, pool: impl FnOnce() -> Option<Box<str>>) {
        let span = tracing::debug_span!(target: "sublet::block", "destroy_block", size = self.size);
        let _entered = span.enter();
        self.give_back(context).emit(context, pool);
    }

    /// Frees the memory, mapped or not. The caller emits the event after it has released its locks.
    pub(super) fn give_back(self, context: &DeviceContext) -> ReturnedBlock {
        let heap = context.heap_of(self.memory_type);
        let watch = Watch::start(is_heard());
        context.budgets.count_taken_back(heap, self.size);
        // SAFETY: `self` is the only owner of the memory and is consumed here. The caller that freed the last
        // allocation in it promises that the device no longer uses it (VUID-vkFreeMemory-memory-00677).
        unsafe { context.device.free_memory(self.memory, self.memory_type, self.size) };
        context.budgets.release(heap, self.size);
        if self.mapped.is_mapped() {
            context.budgets.release_mapping(self.size);
        }
        let Self { memory, size, memory_type, dedicated, .. } = self;
        ReturnedBlock { memory, described: (memory_type, size, dedicated), watch }
    }

    /// The address where the memory is mapped now.
    pub(crate) fn mapped(&self) -> MappedPointer {
        self.mapped
    }

    /// Maps the memory. No other thread knows it yet, or the caller has exclusive access to its mapping.
    pub(crate) fn map(&mut self, context: &DeviceContext) -> Result<(), MapError> {
        if !self.mapped.is_mapped() {
            self.mapped = map_memory(context, (self.memory, self.size))?;
        }
        Ok(())
    }

    /// Sets the mapped address, after [`map_memory`] or before [`unmap_memory`].
    pub(crate) fn set_mapped(&mut self, mapped: MappedPointer) {
        self.mapped = mapped;
        self.mapped_for = None;
    }

    /// Like [`Self::set_mapped`], for an allocation that may be undone.
    pub(crate) fn set_mapped_for(&mut self, mapped: MappedPointer, key: Key) {
        self.mapped = mapped;
        self.mapped_for = Some(key);
    }

    /// Clears the mapping if it was made for this allocation. Returns the memory, which the caller then unmaps.
    pub(crate) fn forget_mapped_for(&mut self, key: Key) -> Option<MappableMemory> {
        if self.mapped_for == Some(key) { self.forget_mapped() } else { None }
    }

    /// Clears the mapping, if there is one. Returns the memory, which the caller then unmaps.
    pub(crate) fn forget_mapped(&mut self) -> Option<MappableMemory> {
        let was = self.mapped.is_mapped();
        self.set_mapped(MappedPointer::UNMAPPED);
        was.then_some((self.memory, self.size))
    }
}

/// A `VkDeviceMemory` that was freed and whose event is not emitted yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct ReturnedBlock {
    memory: vk::DeviceMemory,
    described: (u32, u64, bool),
    watch: Watch,
}

impl ReturnedBlock {
    pub(crate) fn size(&self) -> u64 {
        self.described.1
    }

    /// Emits the event. The caller holds no lock. `pool` is the pool's name.
    pub(crate) fn emit(self, context: &DeviceContext, pool: impl FnOnce() -> Option<Box<str>>) {
        emit_destroyed(context, self.memory, self.described, &self.watch, pool);
    }
}

/// Changes the priority of `memory`. The caller holds a lock that every free of this memory waits for.
pub(crate) fn set_memory_priority(context: &DeviceContext, memory: vk::DeviceMemory, priority: f32) {
    // SAFETY: the memory is live: its vector lists it, and a thread that removes it waits for the caller before it
    // frees it (VUID-vkSetDeviceMemoryPriorityEXT-memory-parameter).
    unsafe { context.device.set_memory_priority(memory, priority) };
}

/// A `VkDeviceMemory`, and its bytes.
pub(crate) type MappableMemory = (vk::DeviceMemory, u64);

/// Maps all of `memory`, if the limit of mapped bytes allows it. The caller holds the `mappings` lock of its vector.
pub(crate) fn map_memory(
    context: &DeviceContext,
    (memory, size): MappableMemory,
) -> Result<MappedPointer, MapError> {
    context.budgets.reserve_mapping(size)?;
    // SAFETY: the memory is live, because the block or an allocation in it is. It is host-visible and not mapped, which
    // the vector checked. The lock of the vector's mappings keeps other threads out (VUID-vkMapMemory-memory-00678,
    // -00682).
    let mapped = unsafe { context.device.map_memory(memory) };
    let mapped = mapped.inspect_err(|_| context.budgets.release_mapping(size))?;
    Ok(MappedPointer::new(mapped))
}

/// Unmaps `memory`. The caller holds the `mappings` lock of its vector.
pub(crate) fn unmap_memory(context: &DeviceContext, (memory, size): MappableMemory) {
    // SAFETY: the memory is live and mapped, which the vector checked; nobody uses the mapping, and the lock of the
    // vector's mappings keeps other threads out (VUID-vkUnmapMemory-memory-00689).
    unsafe { context.device.unmap_memory(memory) };
    context.budgets.release_mapping(size);
}
