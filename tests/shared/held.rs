//! A value whose end is the same in each test: it ends by itself, so that no test can forget it.

use std::ops::{Deref, DerefMut};

/// What is ended by value.
pub trait End {
    /// Checks that nothing is left and that nobody complained.
    fn end(self);
}

/// Ends its value when it goes out of scope, unless the test has failed already.
pub struct Held<T: End>(Option<T>);

pub fn hold<T: End>(value: T) -> Held<T> {
    Held(Some(value))
}

impl<T: End> Held<T> {
    /// For a test that ends otherwise.
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
