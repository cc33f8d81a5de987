//! Errors of aliasing resources, changing priorities, and exporting and importing memory.

use ash::vk;

use super::access::ForeignHandle;
use super::resource::CreateError;
use crate::device::DriverError;

/// The reason why a buffer or image cannot be created in the memory of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AliasError {
    /// The resource would extend beyond the allocation.
    OutOfRange {
        /// Its start, in bytes from the start of the allocation.
        offset: u64,
        /// Required bytes.
        size: u64,
        /// Bytes of the allocation.
        allocation_size: u64,
    },
    /// The place does not have the required alignment.
    Alignment {
        /// Its start, in bytes from the start of the device memory.
        offset: u64,
        /// The required alignment, in bytes.
        alignment: u64,
    },
    /// The memory type does not suit the resource.
    MemoryType {
        /// The allocation's memory type.
        memory_type: u32,
        /// The types that suit the resource.
        memory_type_bits: u32,
    },
    /// The driver requires dedicated memory for the resource.
    RequiresDedicated,
    /// The allocation belongs to another allocator, or its pool was destroyed.
    Foreign(ForeignHandle),
}

sublet_engines::errors! { AliasError:
    OutOfRange { offset, size, allocation_size } =>
        "{size} bytes from {offset} on are not inside an allocation of {allocation_size} bytes";
    Alignment { offset, alignment } => "offset {offset} of the memory is not a multiple of {alignment}";
    MemoryType { memory_type, memory_type_bits } =>
        "the memory is of type {memory_type}, the resource can be in the types {memory_type_bits:#b}";
    RequiresDedicated => "the driver requires memory of its own for the resource";
    Foreign(error) => "{error}";
}

/// The reason why a priority could not be changed. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum PriorityError {
    /// The allocator was created without
    /// [`EXT_PAGEABLE_DEVICE_LOCAL_MEMORY`](crate::AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY), or
    /// `vkSetDeviceMemoryPriorityEXT` was neither passed nor found.
    NotEnabled,
    /// The priority is not between 0.0 and 1.0.
    Priority {
        /// The given priority.
        priority: f32,
    },
    /// The allocation is not dedicated: a change would also affect its neighbours.
    NotDedicated,
    /// The pool or the allocation belongs to another allocator, or was destroyed.
    Foreign(ForeignHandle),
}

sublet_engines::errors! { PriorityError:
    NotEnabled =>
        "the allocator was made without EXT_PAGEABLE_DEVICE_LOCAL_MEMORY, or vkSetDeviceMemoryPriorityEXT is missing";
    Priority { priority } => "the priority {priority} is not between 0 and 1";
    NotDedicated => "the allocation shares its memory, and only memory has a priority";
    Foreign(error: ForeignHandle) => "{error}";
}

/// The reason why memory could not be exported to another API or process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// The extension's function was neither passed nor found, or its flag is missing.
    NotEnabled,
    /// The allocation belongs to another allocator, or its pool was destroyed.
    Foreign(ForeignHandle),
    /// The driver's call failed: the memory was not allocated for export of this kind, or there are too many handles.
    Driver(DriverError),
}

impl ExportError {
    /// The Vulkan result that VMA would return for this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::NotEnabled => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            Self::Foreign(_) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            Self::Driver(error) => error.result,
        }
    }
}

sublet_engines::errors! { ExportError:
    NotEnabled => "the extension that exports memory is not enabled";
    Foreign(error: ForeignHandle) => "{error}";
    Driver(error: DriverError) => "the memory was not exported: {error}";
}

/// The reason why host memory could not be imported.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum HostImportError {
    /// VK_EXT_external_memory_host is not enabled: its function was neither passed nor found. Remedy: enable it, or
    /// copy the bytes.
    NotEnabled,
    /// Address or size of the memory is not a multiple of `minImportedHostPointerAlignment`
    /// ([`host_import_alignment`](crate::Allocator::host_import_alignment)). Remedy: allocate whole pages.
    Misaligned {
        /// The address of the first byte.
        address: u64,
        /// The size in bytes.
        size: u64,
        /// Both have to be multiples of it, in bytes.
        alignment: u64,
    },
    /// The buffer requires more bytes than the memory has. Remedy: a smaller buffer.
    TooSmall {
        /// Required bytes.
        needed: u64,
        /// Bytes of the memory.
        given: u64,
    },
    /// No host-coherent memory type suits both the memory and the buffer.
    MemoryTypes {
        /// The types that the memory can be imported to, as bits.
        host: u32,
        /// The types that suit the buffer, as bits.
        buffer: u32,
    },
    /// The driver rejected the pointer.
    Driver(DriverError),
    /// The buffer was not created, or the driver did not import the memory.
    Create(CreateError),
}

sublet_engines::errors! { HostImportError:
    NotEnabled => "VK_EXT_external_memory_host is not enabled";
    Misaligned { address, size, alignment } =>
        "{size} bytes at {address:#x} cannot be imported: both must be multiples of {alignment}";
    TooSmall { needed, given } => "the buffer requires {needed} bytes, but the memory has {given}";
    MemoryTypes { host, buffer } =>
        "no host-coherent memory type suits the memory (types {host:#b}) and the buffer (types {buffer:#b})";
    Driver(error) => "the memory cannot be imported: {error}";
    Create(error: CreateError) => "{error}";
}
