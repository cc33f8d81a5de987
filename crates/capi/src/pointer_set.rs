//! Live handles of an allocator.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::guard::misused;

/// The objects of one kind that belong to one allocator. A handle that is not in the set is never dereferenced: it may
/// belong to another allocator, or be freed.
#[derive(Debug)]
pub(super) struct PointerSet<V>(Mutex<BTreeSet<*mut V>>);

impl<V> PointerSet<V> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// Stores an object and returns its handle.
    pub(super) fn give(&self, object: V) -> *mut V {
        let handle = Box::into_raw(Box::new(object));
        self.0.lock().insert(handle);
        handle
    }

    /// Removes a handle and returns its object. Logs and returns `None` if the handle is unknown.
    pub(super) fn take(&self, function: &'static str, handle: *mut V) -> Option<Box<V>> {
        if !self.0.lock().remove(&handle) {
            misused(function, Self::UNKNOWN);
            return None;
        }
        // SAFETY: `give` made the box, and only this call removed its handle from the set.
        Some(unsafe { Box::from_raw(handle) })
    }

    /// Returns the object of a handle. Logs and returns `None` if the handle is unknown.
    ///
    /// # Safety
    /// While the result is used, no other call destroys or changes the object (C2).
    pub(super) unsafe fn of<'a>(&self, function: &'static str, handle: *mut V) -> Option<&'a V> {
        let known = self.known(function, handle)?;
        // SAFETY: `give` made the object, which is still in the set; C2: no other call changes or destroys it.
        Some(unsafe { &*known })
    }

    /// Returns the object of a handle for modification. Logs and returns `None` if the handle is unknown.
    ///
    /// # Safety
    /// While the result is used, no other call uses the handle (C2).
    pub(super) unsafe fn of_mut<'a>(&self, function: &'static str, handle: *mut V) -> Option<&'a mut V> {
        let known = self.known(function, handle)?;
        // SAFETY: `give` made the object, which is still in the set; C2: no other call uses it.
        Some(unsafe { &mut *known })
    }

    fn known(&self, function: &'static str, handle: *mut V) -> Option<*mut V> {
        let known = self.0.lock().contains(&handle);
        if !known {
            misused(function, Self::UNKNOWN);
        }
        known.then_some(handle)
    }

    /// Removes and returns all objects.
    pub(super) fn take_all(&self) -> Vec<Box<V>> {
        // SAFETY: `give` made the boxes, and none is in the set any more.
        std::mem::take(&mut *self.0.lock())
            .into_iter()
            .map(|handle| unsafe { Box::from_raw(handle) })
            .collect()
    }

    const UNKNOWN: &'static str = "the handle is null, another allocator's, or was destroyed already";
}
