//! A pool of idle objects.

/// A stack of idle objects. Reuse takes the newest, so the oldest are the surplus.
pub(crate) struct Idle<T> {
    items: Vec<T>,
    /// The minimum number of items in this round: the number of items that were surplus during all of it.
    least: usize,
    collections: u32,
}

impl<T> Idle<T> {
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new(), least: 0, collections: 0 }
    }

    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.items.pop();
        self.least = self.least.min(self.items.len());
        item
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    pub(crate) fn take_all(&mut self) -> Vec<T> {
        self.least = 0;
        std::mem::take(&mut self.items)
    }

    /// Counts a collection. After `round` collections, returns the items that were surplus during all of them.
    pub(crate) fn age(&mut self, round: Option<u32>) -> impl Iterator<Item = T> {
        self.collections = self.collections.saturating_add(1);
        let mut spare = 0;
        if round.is_some_and(|round| self.collections >= round) {
            self.collections = 0;
            spare = std::mem::replace(&mut self.least, 0).min(self.items.len());
            self.least = self.items.len() - spare;
        }
        self.items.drain(..spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus_items_are_removed_after_a_round() {
        let mut idle = Idle::new();
        (0..5).for_each(|number| idle.push(number));
        // The first round starts empty, so nothing is surplus.
        assert_eq!((0..3).flat_map(|_| idle.age(Some(3)).collect::<Vec<_>>()).count(), 0);
        for _ in 0..2 {
            let two = [idle.pop(), idle.pop()];
            assert_eq!(idle.age(Some(3)).count(), 0);
            two.into_iter().flatten().rev().for_each(|number| idle.push(number));
        }
        assert_eq!(idle.age(Some(3)).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((0..9).flat_map(|_| idle.age(None).collect::<Vec<_>>()).count(), 0);
        assert_eq!(idle.take_all(), [3, 4]);
        assert_eq!(idle.pop(), None);
    }
}
