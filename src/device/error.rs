//! The error of a Vulkan call.

use std::error::Error;
use std::fmt;

use ash::vk;

/// A Vulkan call failed. The `vk::Result` is also the [`source`](Error::source): it ends the error chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverError {
    /// The function that was called.
    pub call: &'static str,
    /// The result that it returned.
    pub result: vk::Result,
}

impl DriverError {
    /// Returns `Err` for every negative result.
    #[inline]
    pub(crate) fn check(call: &'static str, result: vk::Result) -> Result<(), Self> {
        if result.as_raw() >= 0 { Ok(()) } else { Err(Self { call, result }) }
    }

    /// Returns true if the driver is out of memory. Another memory type may still have space.
    pub(crate) fn is_out_of_memory(self) -> bool {
        matches!(
            self.result,
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
                | vk::Result::ERROR_OUT_OF_HOST_MEMORY
                | vk::Result::ERROR_TOO_MANY_OBJECTS
        )
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with {:?}", self.call, self.result)
    }
}

impl Error for DriverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.result)
    }
}
