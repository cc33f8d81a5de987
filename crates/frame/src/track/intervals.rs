//! A value for each point of a range, kept as few intervals.
#![forbid(unsafe_code)]

/// Values over `0..len`. Neighbours that are alike are one interval.
///
/// ```text
/// alike:  one = A,  parts = []
/// split:            parts = [(2, A), (5, B), (8, A)]       0..2 is A, 2..5 is B, 5..8 is A
/// ```
///
/// I1: `parts` is empty, or has two intervals or more; their ends ascend, and the last is `len`.
/// I2: neighbours in `parts` differ.
///
/// # Complexity
///
/// What covers the whole of a range that is alike costs one value. Else the logarithm of the intervals, and the
/// intervals behind the one that changes where their number changes.
#[derive(Debug, Clone)]
pub(crate) struct Intervals<T> {
    len: u64,
    one: T,
    parts: Vec<(u64, T)>,
}

impl<T: Copy + PartialEq> Intervals<T> {
    pub(crate) const fn new(len: u64, value: T) -> Self {
        Self { len, one: value, parts: Vec::new() }
    }

    /// Becomes as new, and keeps its room.
    pub(crate) fn reset(&mut self, len: u64, value: T) {
        self.len = len;
        self.fill(value);
    }

    /// Becomes as `other` is, and keeps its room.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        (self.len, self.one) = (other.len, other.one);
        self.parts.clear();
        self.parts.extend_from_slice(&other.parts);
    }

    pub(crate) fn fill(&mut self, value: T) {
        self.one = value;
        self.parts.clear();
    }

    pub(crate) fn for_each(&self, mut f: impl FnMut(u64, u64, &T)) {
        if self.parts.is_empty() {
            return f(0, self.len, &self.one);
        }
        let mut start = 0;
        for (end, value) in &self.parts {
            f(start, *end, value);
            start = *end;
        }
    }

    /// The value of `start..end`, if that is everything and alike.
    #[inline]
    pub(crate) fn alike(&mut self, start: u64, end: u64) -> Option<&mut T> {
        (self.parts.is_empty() && start == 0 && end == self.len).then_some(&mut self.one)
    }

    /// Changes everything.
    pub(crate) fn each(&mut self, mut f: impl FnMut(&mut T)) {
        if self.len > 0 {
            self.update(0, self.len, |_, _, value| f(value));
        }
    }

    /// Changes what is in `start..end`, which is not empty and ends within the range: `f` gets each interval.
    #[inline]
    pub(crate) fn update(&mut self, start: u64, end: u64, mut f: impl FnMut(u64, u64, &mut T)) {
        debug_assert!(start < end && end <= self.len);
        if self.parts.is_empty() && start == 0 && end == self.len {
            return f(0, end, &mut self.one);
        }
        self.update_parts(start, end, f);
    }

    #[inline(never)]
    fn update_parts(&mut self, start: u64, end: u64, mut f: impl FnMut(u64, u64, &mut T)) {
        if self.parts.is_empty() {
            self.parts.push((self.len, self.one));
        }
        let first = self.split(start);
        let last = self.split(end);
        let mut from = start;
        for (end, value) in &mut self.parts[first..last] {
            f(from, *end, value);
            from = *end;
        }
        self.merge(first.saturating_sub(1), (last + 1).min(self.parts.len()));
        if let [(_, value)] = *self.parts {
            self.fill(value);
        }
    }

    /// Makes an interval start at `at`, and returns its index.
    fn split(&mut self, at: u64) -> usize {
        let index = self.parts.partition_point(|&(end, _)| end <= at);
        let start = index.checked_sub(1).map_or(0, |before| self.parts[before].0);
        if start == at || at == self.len {
            return index;
        }
        let value = self.parts[index].1;
        self.parts.insert(index, (at, value));
        index + 1
    }

    /// Restores I2 for the intervals `low..high`.
    fn merge(&mut self, low: usize, high: usize) {
        let mut kept = low;
        for next in low + 1..high {
            if self.parts[kept].1 == self.parts[next].1 {
                self.parts[kept].0 = self.parts[next].0;
            } else {
                kept += 1;
                self.parts[kept] = self.parts[next];
            }
        }
        if kept + 1 < high {
            self.parts.drain(kept + 1..high);
        }
    }

    /// How many intervals there are.
    pub(crate) fn count(&self) -> usize {
        self.parts.len().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same with a value for each point.
    #[test]
    fn random_updates_are_those_of_an_array() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let len = random.u64(1..20);
            let mut map = Intervals::new(len, 0_u32);
            let mut model = vec![0_u32; usize::try_from(len).unwrap()];
            for _ in 0..60 {
                let start = random.u64(0..len);
                let end = random.u64(start + 1..=len);
                let (low, high) = (usize::try_from(start).unwrap(), usize::try_from(end).unwrap());
                let (factor, add) = (random.u32(0..2), random.u32(0..3));
                let mut seen = Vec::new();
                map.update(start, end, |from, to, value| {
                    seen.extend((from..to).map(|_| *value));
                    *value = *value * factor + add;
                });
                assert_eq!(seen, model[low..high]);
                model[low..high].iter_mut().for_each(|value| *value = *value * factor + add);
                let (mut all, mut last) = (Vec::new(), None);
                map.for_each(|from, to, &value| {
                    all.extend((from..to).map(|_| value));
                    assert_ne!(last.replace(value), Some(value), "I2");
                });
                assert_eq!(all, model);
                assert_ne!(map.parts.len(), 1, "I1");
            }
        }
    }
}
