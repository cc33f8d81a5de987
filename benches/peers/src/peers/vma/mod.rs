//! VMA, in C++.

pub(crate) mod ffi;
mod peer;

pub(crate) use peer::{Vma, details, functions};
