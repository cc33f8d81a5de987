//! One `VkDeviceMemory`, with the books kept: the only gate through which memory is taken from the driver.

use ash::vk;

use super::budget::Budgets;
use super::events::{PendingEvents, emit_destroyed, is_heard};
use super::mapped_pointer::MappedPointer;
use crate::base::cast::index;
use crate::base::watch::Watch;
use crate::device::{Device, DriverAllocation, DriverError};
use crate::error::MemoryError;
use crate::metadata::Key;

/// What every vector of an allocator works with.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    pub(crate) device: Device,
    pub(crate) budgets: Budgets,
}

impl DeviceContext {
    /// The heap of a memory type.
    pub(crate) fn heap_of(&self, memory_type: u32) -> u32 {
        self.device.memory_types()[index(memory_type)].heap_index
    }
}

#[cfg(test)]
impl DeviceContext {
    /// For a simulated GPU, which has to live as long.
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
        let device = unsafe { Device::new(&functions, instance, gpu.physical_device(), device, settings) };
        let device = device.expect("the simulated driver has every function");
        Self { budgets: Budgets::new(&device, &[]), device }
    }
}

/// The device's side of a memory. For tests that may not be unsafe; their threads have no bytes in common.
#[cfg(all(test, not(loom)))]
pub(crate) fn peek(gpu: &sublet_sim::Gpu, memory: vk::DeviceMemory, at: u64, size: usize) -> Option<Vec<u8>> {
    // SAFETY: see above.
    unsafe { gpu.read_memory(memory, at, size) }
}

/// The same for writing.
#[cfg(all(test, not(loom)))]
pub(crate) fn poke(gpu: &sublet_sim::Gpu, memory: vk::DeviceMemory, at: u64, bytes: &[u8]) -> bool {
    // SAFETY: see above.
    unsafe { gpu.write_memory(memory, at, bytes) }
}

/// A live `VkDeviceMemory`. It has to be given to [`Self::destroy`]; dropping it leaks the memory.
#[derive(Debug)]
#[must_use]
pub(crate) struct DeviceBlock {
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) size: u64,
    memory_type: u32,
    /// Memory of its own for one allocation.
    dedicated: bool,
    mapped: MappedPointer,
    /// The allocation that it was mapped for, which ends the mapping if it is undone and nobody else uses it.
    mapped_for: Option<Key>,
}

impl DeviceBlock {
    /// Takes memory from the driver, if heap, limits and (where asked) budget allow it. What came of it is to be told
    /// when no lock is held.
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

    /// Gives the memory back to the driver, mapped or not, and tells so: no lock is held. `pool` is the pool's name.
    pub(crate) fn destroy(self, context: &DeviceContext, pool: impl FnOnce() -> Option<Box<str>>) {
        let span = tracing::debug_span!(target: "sublet::block", "destroy_block", size = self.size);
        let _entered = span.enter();
        self.give_back(context).emit(context, pool);
    }

    /// Gives the memory back to the driver, mapped or not. It is to be told when no lock is held.
    pub(super) fn give_back(self, context: &DeviceContext) -> ReturnedBlock {
        let heap = context.heap_of(self.memory_type);
        let watch = Watch::start(is_heard());
        context.budgets.count_taken_back(heap, self.size);
        // SAFETY: `self` is the only owner of the memory and is consumed here. That the device no longer uses it is
        // the promise of whoever freed the last allocation in it (VUID-vkFreeMemory-memory-00677).
        unsafe { context.device.free_memory(self.memory, self.memory_type, self.size) };
        context.budgets.release(heap, self.size);
        let Self { memory, size, memory_type, dedicated, .. } = self;
        ReturnedBlock { memory, described: (memory_type, size, dedicated), watch }
    }

    /// Where the memory is mapped now.
    pub(crate) fn mapped(&self) -> MappedPointer {
        self.mapped
    }

    /// Maps the memory, which nobody else knows of yet or whose mapping the caller alone may change.
    pub(crate) fn map(&mut self, context: &DeviceContext) -> Result<(), DriverError> {
        if !self.mapped.is_mapped() {
            self.mapped = map_memory(context, self.memory)?;
        }
        Ok(())
    }

    /// Sets where the memory is mapped, after [`map_memory`] or before [`unmap_memory`].
    pub(crate) fn set_mapped(&mut self, mapped: MappedPointer) {
        self.mapped = mapped;
        self.mapped_for = None;
    }

    /// [`Self::set_mapped`], for an allocation that may be undone.
    pub(crate) fn set_mapped_for(&mut self, mapped: MappedPointer, key: Key) {
        self.mapped = mapped;
        self.mapped_for = Some(key);
    }

    /// Forgets the mapping if it was made for this allocation. Says whether it was: then it is to be ended.
    pub(crate) fn forget_mapped_for(&mut self, key: Key) -> bool {
        let was = self.mapped.is_mapped() && self.mapped_for == Some(key);
        if was {
            self.set_mapped(MappedPointer::UNMAPPED);
        }
        was
    }
}

/// A `VkDeviceMemory` that the driver has back, which is not told yet.
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

    /// Tells it: no lock is held. `pool` is the pool's name.
    pub(crate) fn emit(self, context: &DeviceContext, pool: impl FnOnce() -> Option<Box<str>>) {
        emit_destroyed(context, self.memory, self.described, &self.watch, pool);
    }
}

/// Changes the priority of `memory`. The caller holds the lock that who frees memory waits for.
pub(crate) fn set_memory_priority(context: &DeviceContext, memory: vk::DeviceMemory, priority: f32) {
    // SAFETY: the memory is live: it is in the books of its vector, and whoever takes it out waits for the caller
    // before it goes (VUID-vkSetDeviceMemoryPriorityEXT-memory-parameter).
    unsafe { context.device.set_memory_priority(memory, priority) };
}

/// Maps all of `memory`. The caller holds the lock under which the mappings of its vector change.
pub(crate) fn map_memory(
    context: &DeviceContext,
    memory: vk::DeviceMemory,
) -> Result<MappedPointer, DriverError> {
    // SAFETY: the memory is live, because the block or an allocation in it is; it is host-visible and not mapped, which
    // the vector checked; and the lock of the vector's mappings keeps other threads out
    // (VUID-vkMapMemory-memory-00678, -00682).
    unsafe { context.device.map_memory(memory) }.map(MappedPointer::new)
}

/// Unmaps `memory`. The caller holds the lock under which the mappings of its vector change.
pub(crate) fn unmap_memory(context: &DeviceContext, memory: vk::DeviceMemory) {
    // SAFETY: the memory is live and mapped, which the vector checked; its count of users is zero, and the lock of the
    // vector's mappings keeps other threads out (VUID-vkUnmapMemory-memory-00689).
    unsafe { context.device.unmap_memory(memory) };
}
