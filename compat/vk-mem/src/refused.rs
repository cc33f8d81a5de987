//! Maps Sublet's errors to vk-mem's results. The reasons are logged.

use std::error::Error;

use ash::vk;
use sublet::{
    AllocationError, BindError, CorruptionError, CreateAllocatorError, CreateError, CreatePoolError,
    FindMemoryTypeError, MapError,
};

/// The result of a call on which the original asserts.
pub(crate) const MISUSED: vk::Result = vk::Result::ERROR_UNKNOWN;

/// Logs the reason, and returns the result.
pub(crate) fn refused(error: &dyn Error, result: vk::Result) -> vk::Result {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    tracing::debug!(target: "vk_mem", %error, cause, ?result, "refused");
    result
}

/// Logs a wrong call, and returns its result.
pub(crate) fn misused(reason: &str) -> vk::Result {
    tracing::error!(target: "vk_mem", reason, "wrong call");
    MISUSED
}

pub(crate) fn not_made(error: &CreateAllocatorError) -> vk::Result {
    refused(
        error,
        match error {
            CreateAllocatorError::ExtensionNotPresent { .. } => vk::Result::ERROR_EXTENSION_NOT_PRESENT,
            _ => vk::Result::ERROR_INITIALIZATION_FAILED,
        },
    )
}

pub(crate) fn no_pool(error: &CreatePoolError) -> vk::Result {
    refused(error, error.vk_result())
}

pub(crate) fn not_allocated(error: &AllocationError) -> vk::Result {
    refused(error, error.vk_result())
}

pub(crate) fn not_created(error: &CreateError) -> vk::Result {
    refused(
        error,
        match error {
            CreateError::Alias(_) => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            _ => error.vk_result(),
        },
    )
}

pub(crate) fn not_found(error: &FindMemoryTypeError) -> vk::Result {
    refused(
        error,
        match error {
            FindMemoryTypeError::Resource(error) => error.result,
            _ => vk::Result::ERROR_FEATURE_NOT_PRESENT,
        },
    )
}

pub(crate) fn not_mapped(error: &MapError) -> vk::Result {
    match error {
        MapError::OutOfRange { .. } | MapError::Foreign(_) => misused(&error.to_string()),
        _ => refused(error, error.vk_result()),
    }
}

pub(crate) fn not_bound(error: &BindError) -> vk::Result {
    match error {
        BindError::Driver(error) => refused(error, error.result),
        BindError::ExtensionNotPresent => refused(error, vk::Result::ERROR_EXTENSION_NOT_PRESENT),
        _ => misused(&error.to_string()),
    }
}

pub(crate) fn corrupted(error: &CorruptionError) -> vk::Result {
    match error {
        CorruptionError::Foreign(_) => misused(&error.to_string()),
        _ => refused(error, error.vk_result()),
    }
}
