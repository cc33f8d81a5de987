//! From a dispatchable handle to the instance or device that it belongs to, without a lock.
//!
//! The first word of a handle is a pointer that all handles of one instance, or of one device, have in common: its
//! **key**. A registry is a list of pairs of key and value. Pairs are only added. A removed pair is reused, so the list
//! is as long as the most instances or devices that were live at the same time. Most programs have one.
#![expect(unsafe_code, reason = "reads handles, and owns values through atomic pointers")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use ash::vk;
use parking_lot::Mutex;
use sublet::private::host_size;

/// Returns the key of a dispatchable handle; 0 for null.
///
/// # Safety
/// V2 holds for `handle`.
pub(crate) unsafe fn key_of<H: vk::Handle>(handle: H) -> usize {
    let Some(address) = host_size(handle.as_raw()) else { return 0 };
    let object = ptr::with_exposed_provenance::<usize>(address);
    if object.is_null() {
        return 0;
    }
    // SAFETY: V2: the handle is the address of an object that begins with the loader's pointer.
    unsafe { object.read() }
}

/// Instances or devices by their key.
///
/// - R1: `value` is null, or came from `Box::into_raw`, and only the pair owns it.
/// - R2: `key` is 0 unless `value` is not null. It is written after the value, and cleared before.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    first: AtomicPtr<Pair<T>>,
    /// Held while pairs are added or removed.
    changing: Mutex<()>,
}

#[derive(Debug)]
struct Pair<T> {
    key: AtomicUsize,
    value: AtomicPtr<T>,
    next: AtomicPtr<Pair<T>>,
}

impl<T: Send + Sync + 'static> Registry<T> {
    pub(crate) const fn new() -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()), changing: Mutex::new(()) }
    }

    fn pairs(&self) -> impl Iterator<Item = &Pair<T>> {
        let mut at = &self.first;
        std::iter::from_fn(move || {
            // SAFETY: a pair is allocated by `insert`, initialised before it is linked, and never freed.
            let pair = unsafe { at.load(Ordering::Acquire).as_ref() }?;
            at = &pair.next;
            Some(pair)
        })
    }

    /// Returns the value of a key.
    ///
    /// # Safety
    /// No thread removes the key during the caller's use of the value: V2.
    #[inline]
    pub(crate) unsafe fn find(&self, key: usize) -> Option<&T> {
        let pair = self.pairs().find(|pair| key != 0 && pair.key.load(Ordering::Acquire) == key)?;
        // SAFETY: R1 and R2, and the caller guarantees that the value is not removed meanwhile.
        unsafe { pair.value.load(Ordering::Acquire).as_ref() }
    }

    /// Calls `visit` with each value.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&T)) {
        // No value is removed meanwhile.
        let _changing = self.changing.lock();
        for pair in self.pairs() {
            // SAFETY: R1, and the lock prevents `remove`.
            if let Some(value) = unsafe { pair.value.load(Ordering::Acquire).as_ref() } {
                visit(value);
            }
        }
    }

    /// Adds a value, and replaces one whose removal the program forgot.
    pub(crate) fn insert(&self, key: usize, value: Box<T>) {
        drop(self.remove(key));
        let _changing = self.changing.lock();
        let value = Box::into_raw(value);
        let free = self.pairs().find(|pair| pair.value.load(Ordering::Acquire).is_null());
        if let Some(pair) = free {
            pair.value.store(value, Ordering::Release);
            pair.key.store(key, Ordering::Release);
            return;
        }
        let next = AtomicPtr::new(self.first.load(Ordering::Acquire));
        let pair = Pair { key: AtomicUsize::new(key), value: AtomicPtr::new(value), next };
        self.first.store(Box::into_raw(Box::new(pair)), Ordering::Release);
    }

    /// Removes a value. The caller is the only user of its key: V2.
    pub(crate) fn remove(&self, key: usize) -> Option<Box<T>> {
        let _changing = self.changing.lock();
        let pair = self.pairs().find(|pair| key != 0 && pair.key.load(Ordering::Acquire) == key)?;
        pair.key.store(0, Ordering::Release);
        let value = pair.value.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: R1, and the swap took the only pointer. `find` of other threads has other keys, `for_each` locks.
        (!value.is_null()).then(|| unsafe { Box::from_raw(value) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_keys_and_pairs_are_reused() {
        let registry = Registry::<u32>::new();
        for round in 0..3 {
            for key in 1..=3 {
                registry.insert(key, Box::new(round));
            }
            // SAFETY: nothing is removed meanwhile.
            assert_eq!(unsafe { registry.find(2) }, Some(&round));
            let mut sum = 0;
            registry.for_each(|&value| sum += value);
            assert_eq!(sum, 3 * round);
            assert_eq!(registry.remove(2).as_deref(), Some(&round));
            assert_eq!(registry.remove(2), None);
            // SAFETY: as above.
            assert_eq!(unsafe { registry.find(2) }, None);
        }
        assert_eq!(registry.pairs().count(), 3, "pairs of removed keys are used again");
    }
}
