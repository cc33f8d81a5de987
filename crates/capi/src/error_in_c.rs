//! Results in C of errors that several functions share.

use std::error::Error;

use ash::vk;

use super::guard::refused;
use sublet::{
    AllocationError, BindError, CorruptionError, CreateError, FindMemoryTypeError, MapError, NoMemoryType,
};

/// An error that has a result in C.
pub(super) trait ErrorInC: Error {
    /// Returns the result, and whether the call broke a rule. The result is `VK_ERROR_UNKNOWN` where VMA asserts and
    /// defines none.
    fn in_c(&self) -> (vk::Result, bool);
}

/// Logs why a call fails, and returns the matching result in C.
#[cold]
#[inline(never)]
pub(super) fn failed<E: ErrorInC>(function: &'static str, error: &E) -> vk::Result {
    let (result, misuse) = error.in_c();
    refused(function, error, misuse, result)
}

/// Same as [`failed`] for creation errors. A failed allocation logs its own message.
#[cold]
pub(super) fn not_created(function: &'static str, error: &CreateError) -> vk::Result {
    match error {
        CreateError::Allocation(error) => failed(function, error),
        error => failed(function, error),
    }
}

/// Returns `VK_SUCCESS`, or logs the error and returns its result.
#[inline]
pub(super) fn success_or_logged<E: ErrorInC>(function: &'static str, outcome: Result<(), E>) -> vk::Result {
    match outcome {
        Ok(()) => vk::Result::SUCCESS,
        Err(error) => failed(function, &error),
    }
}

impl ErrorInC for AllocationError {
    fn in_c(&self) -> (vk::Result, bool) {
        let misuse = matches!(
            self,
            Self::Alignment { .. }
                | Self::Priority { .. }
                | Self::Contradiction(_)
                | Self::ForeignPool
                | Self::UpperAddress { .. }
                | Self::UpperAddressInRing
                | Self::NoMemoryType(NoMemoryType::AutoWithoutResource { .. })
        );
        (self.vk_result(), misuse)
    }
}

impl ErrorInC for BindError {
    fn in_c(&self) -> (vk::Result, bool) {
        match self {
            Self::Driver(error) => (error.result, false),
            Self::ExtensionNotPresent => (self.vk_result(), true),
            _ => (vk::Result::ERROR_UNKNOWN, true),
        }
    }
}

impl ErrorInC for CorruptionError {
    fn in_c(&self) -> (vk::Result, bool) {
        let result = match self {
            Self::Foreign(_) => vk::Result::ERROR_UNKNOWN,
            _ => self.vk_result(),
        };
        (result, matches!(self, Self::Foreign(_)))
    }
}

impl ErrorInC for CreateError {
    fn in_c(&self) -> (vk::Result, bool) {
        match self {
            Self::Alias(_) => (vk::Result::ERROR_FEATURE_NOT_PRESENT, true),
            _ => (self.vk_result(), matches!(self, Self::DeviceAddress)),
        }
    }
}

impl ErrorInC for FindMemoryTypeError {
    fn in_c(&self) -> (vk::Result, bool) {
        match self {
            Self::Resource(error) => (error.result, false),
            Self::Contradiction(_) | Self::NoMemoryType(NoMemoryType::AutoWithoutResource { .. }) => {
                (vk::Result::ERROR_FEATURE_NOT_PRESENT, true)
            }
            _ => (vk::Result::ERROR_FEATURE_NOT_PRESENT, false),
        }
    }
}

impl ErrorInC for MapError {
    fn in_c(&self) -> (vk::Result, bool) {
        let result = match self {
            Self::OutOfRange { .. } | Self::Foreign(_) => vk::Result::ERROR_UNKNOWN,
            _ => self.vk_result(),
        };
        (result, !matches!(self, Self::Driver(_)))
    }
}
