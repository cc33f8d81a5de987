//! What `ash` 0.38 does not have of Vulkan, for the library and the simulated driver alike: neither needs the other.
//!
//! Names, layouts and numbers are those of Vulkan's registry. Layouts are asserted when the package is compiled, with
//! the offsets that a C compiler has for the registry's declarations.
#![deny(unsafe_code)]

pub mod descriptor_heap;
