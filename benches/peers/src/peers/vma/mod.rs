//! VMA, in C++.

pub(crate) mod ffi;
mod peer;

pub(crate) use peer::{Vma, allocation_info, check_empty, checked, create_allocator, details, functions};
