//! The only module that calls `vk*` functions. It holds the function table, loaded through `ash` or given as raw
//! pointers, and the constant properties of a device.

mod address;
mod callbacks;
mod chain;
mod cost;
mod driver;
mod error;
mod external;
mod functions;
mod next;
mod timeline;
#[cfg(windows)]
mod win32;

pub use callbacks::{
    DeviceMemoryCallbacks, DeviceMemoryEvent, DeviceMemoryFunction, RawDeviceMemoryCallbacks,
};
pub(crate) use chain::find as find_in_chain;
#[doc(hidden)]
pub use cost::DriverCost;
pub(crate) use cost::TimeBudget;
pub(crate) use driver::{BufferOrImage, DeviceSettings, DriverAllocation};
#[doc(hidden)]
pub use driver::{LiveDevice, ResourceRequirements};
pub use error::DriverError;
pub use functions::{MissingFunction, VulkanFunctions};
pub use next::MemoryAllocateNext;
