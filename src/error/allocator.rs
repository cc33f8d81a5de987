//! Errors of creating an allocator.

use ash::vk;

use crate::device::MissingFunction;

/// The reason why an allocator could not be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateAllocatorError {
    /// A Vulkan function is missing.
    MissingFunction(MissingFunction),
    /// The version is not 1.0 to 1.4.
    ApiVersion {
        /// The given version.
        api_version: u32,
    },
    /// A flag needs a Vulkan function that was neither passed nor found.
    ExtensionNotPresent {
        /// The function.
        function: &'static str,
    },
    /// The list of heap limits is longer than the list of heaps.
    HeapLimits {
        /// The number of limits.
        limits: usize,
        /// The number of heaps.
        heaps: usize,
    },
    /// [`detect_corruption`](crate::DebugSettings::detect_corruption) is set, but the margin is 0.
    NoMargin,
    /// The list of external memory handle types is longer than the list of memory types.
    ExternalMemoryHandleTypes {
        /// The number of handle types.
        handle_types: usize,
        /// The number of memory types.
        types: usize,
    },
    /// The list of block sizes is longer than the list of memory types.
    BlockSizes {
        /// The number of block sizes.
        sizes: usize,
        /// The number of memory types.
        types: usize,
    },
}

sublet_engines::errors! { CreateAllocatorError:
    MissingFunction(error: MissingFunction) => "{error}";
    ApiVersion { api_version } =>
        "Vulkan {}.{} is not one of 1.0 to 1.4"
            (vk::api_version_major(*api_version), vk::api_version_minor(*api_version));
    ExtensionNotPresent { function } =>
        "a flag needs the Vulkan function {function}, which was neither given nor found";
    HeapLimits { limits, heaps } => "{limits} heap limits were given for {heaps} heaps";
    NoMargin => "corruption is detected in margins, and the margin has no bytes";
    ExternalMemoryHandleTypes { handle_types, types } =>
        "{handle_types} external handle types were given for {types} memory types";
    BlockSizes { sizes, types } => "{sizes} block sizes were given for {types} memory types";
}
