//! A queue from one thread to another with minimal overhead, to hand over allocations.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value on its own cache line.
#[repr(align(128))]
struct CacheLine<T>(T);

/// A fixed number of places for `T`s in transit.
///
/// `head` counts the places ever emptied, `tail` those ever filled: `head <= tail <= head + capacity`. Exactly the
/// places from `head` to `tail` hold a value.
pub(crate) struct Ring<T> {
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
    head: CacheLine<AtomicUsize>,
    tail: CacheLine<AtomicUsize>,
}

// SAFETY: there is one producer and one consumer, see `ends`. A place belongs to the producer until `tail` passes it,
// and then to the consumer until `head` does. Both are stored with Release and loaded with Acquire. A `T` therefore
// moves between threads, and is never shared.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// `capacity` is a power of two.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "a capacity of {capacity}");
        let places = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Self { places, head: CacheLine(AtomicUsize::new(0)), tail: CacheLine(AtomicUsize::new(0)) }
    }

    /// Returns the two ends. They borrow the ring exclusively, so there is only one of each.
    pub(crate) fn ends(&mut self) -> (Producer<'_, T>, Consumer<'_, T>) {
        let (head, tail) = (*self.head.0.get_mut(), *self.tail.0.get_mut());
        let ring = &*self;
        (Producer { ring, tail, head_seen: head }, Consumer { ring, head, tail_seen: tail })
    }

    fn place(&self, number: usize) -> *mut MaybeUninit<T> {
        self.places[number & (self.places.len() - 1)].get()
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (_, mut consumer) = self.ends();
        while consumer.pop().is_some() {}
    }
}

/// The input end.
pub(crate) struct Producer<'a, T> {
    ring: &'a Ring<T>,
    tail: usize,
    head_seen: usize,
}

impl<T> Producer<'_, T> {
    /// Adds a value, or returns it if the ring is full.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), T> {
        let capacity = self.ring.places.len();
        if self.tail - self.head_seen == capacity {
            self.head_seen = self.ring.head.0.load(Ordering::Acquire);
            if self.tail - self.head_seen == capacity {
                return Err(value);
            }
        }
        let place = self.ring.place(self.tail);
        // SAFETY: `head <= tail < head + capacity`: the place is empty, and this is the only producer.
        unsafe { place.write(MaybeUninit::new(value)) };
        self.tail += 1;
        self.ring.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }
}

/// The output end.
pub(crate) struct Consumer<'a, T> {
    ring: &'a Ring<T>,
    head: usize,
    tail_seen: usize,
}

impl<T> Consumer<'_, T> {
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.head == self.tail_seen {
            self.tail_seen = self.ring.tail.0.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return None;
            }
        }
        let place = self.ring.place(self.head);
        // SAFETY: `head < tail`: the producer has filled the place, and this is the only consumer.
        let value = unsafe { place.read() };
        self.head += 1;
        self.ring.head.0.store(self.head, Ordering::Release);
        // SAFETY: filled, as above, and read only once, because `head` has advanced.
        Some(unsafe { value.assume_init() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_and_no_more_than_fit() {
        let mut ring = Ring::new(4);
        {
            let (mut producer, mut consumer) = ring.ends();
            for turn in 0..5 {
                for value in 0..4 {
                    assert_eq!(producer.push(Box::new(turn * 10 + value)), Ok(()));
                }
                assert_eq!(producer.push(Box::new(99)), Err(Box::new(99)));
                for value in 0..4 {
                    assert_eq!(consumer.pop(), Some(Box::new(turn * 10 + value)));
                }
                assert_eq!(consumer.pop(), None);
            }
            assert_eq!(producer.push(Box::new(7)), Ok(()));
        }
        // The ends can be created again, and the ring drops remaining values.
        assert_eq!(ring.ends().1.pop(), Some(Box::new(7)));
        assert_eq!(ring.ends().0.push(Box::new(8)), Ok(()));
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const COUNT: u64 = 20_000;
        let mut ring = Ring::new(16);
        let (mut producer, mut consumer) = ring.ends();
        let sum = std::thread::scope(|scope| {
            scope.spawn(move || {
                for mut value in 0..COUNT {
                    while let Err(back) = producer.push(value) {
                        value = back;
                        std::thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < COUNT {
                match consumer.pop() {
                    Some(value) => {
                        assert_eq!(value, expected);
                        expected += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
            expected
        });
        assert_eq!(sum, COUNT);
    }
}
