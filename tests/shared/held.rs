//! A guard that ends its value in the same way in each test, so that no test can forget it.

use std::ops::{Deref, DerefMut};

/// A value with an end that consumes it.
pub trait End {
    /// Checks that nothing is left and that the driver emitted no message.
    fn end(self);
}

/// Ends its value when it goes out of scope, unless the test has already failed.
pub struct Held<T: End>(Option<T>);

pub fn hold<T: End>(value: T) -> Held<T> {
    Held(Some(value))
}

impl<T: End> Held<T> {
    /// Returns the value, for a test that ends it in another way.
    pub fn release(mut self) -> T {
        self.0.take().unwrap()
    }
}

impl<T: End> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().unwrap()
    }
}

impl<T: End> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().unwrap()
    }
}

impl<T: End> Drop for Held<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.take().into_iter().for_each(T::end);
        }
    }
}
