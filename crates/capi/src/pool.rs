//! The object behind a `VmaPool`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char};

use sublet::Pool;

/// A pool and its name as a C string.
#[derive(Debug)]
pub struct PoolObject {
    pool: Pool,
    /// Not synchronised: see `vmaSetPoolName` in the header.
    name: UnsafeCell<Option<CString>>,
}

impl PoolObject {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, name: UnsafeCell::new(None) }
    }

    #[inline]
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) fn into_pool(self) -> Pool {
        self.pool
    }

    /// Returns the name, or null if it has none.
    ///
    /// # Safety
    /// No other call names the pool.
    pub(super) unsafe fn name(&self) -> *const c_char {
        // SAFETY: the caller's promise: no other call names the pool.
        unsafe { &*self.name.get() }.as_deref().map_or(std::ptr::null(), CStr::as_ptr)
    }

    /// Replaces the name and frees the old one.
    ///
    /// # Safety
    /// No other call uses the pool's name.
    pub(super) unsafe fn set_name(&self, name: Option<CString>) {
        // SAFETY: the caller's promise: no other call uses the name.
        drop(unsafe { std::ptr::replace(self.name.get(), name) });
    }
}
