//! Parts of Vulkan that `ash` 0.38 does not have. The library and the simulated driver share them without depending on
//! each other.
//!
//! Names, layouts and numbers are those of Vulkan's registry. Compile-time assertions check the layouts against the
//! offsets that a C compiler computes for the registry's declarations.
#![deny(unsafe_code)]

pub mod descriptor_heap;
