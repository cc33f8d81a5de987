//! A table that only grows and whose elements never move. An index reaches an element without a lock.

use sublet_engines::cast::{index, narrow};

use super::sync::atomic::{AtomicUsize, OnceLock, Ordering};

/// Elements in the first segment; each further segment holds twice as many as the one before.
const FIRST: u32 = 8;
/// 29 segments cover all `u32` indices but the last few.
const SEGMENTS: usize = 29;

/// See the module's documentation. `make` creates the elements of a whole segment at once.
pub(crate) struct AppendTable<V> {
    segments: [OnceLock<Box<[V]>>; SEGMENTS],
    /// All existing segments have lower indices.
    end: AtomicUsize,
}

/// The segment that contains `at`, and the index in it.
#[inline]
fn locate(at: u32) -> Option<(usize, usize)> {
    let from_first = at.checked_add(FIRST)?;
    let segment = from_first.ilog2() - FIRST.ilog2();
    Some((index(segment), index(from_first - (FIRST << segment))))
}

impl<V> AppendTable<V> {
    pub(crate) fn new() -> Self {
        Self { segments: std::array::from_fn(|_| OnceLock::new()), end: AtomicUsize::new(0) }
    }

    /// The element at `at`, if its segment exists. Two loads.
    #[inline]
    pub(crate) fn get(&self, at: u32) -> Option<&V> {
        if at < FIRST {
            return self.segments[0].get()?.get(index(at));
        }
        let (segment, position) = locate(at)?;
        self.segments.get(segment)?.get()?.get(position)
    }

    /// The element at `at`, created if it does not exist; `None` beyond the last segment.
    pub(crate) fn get_or_make(&self, at: u32, make: impl Fn(u32) -> V) -> Option<&V> {
        let (segment, position) = locate(at)?;
        let elements = self.segments.get(segment)?.get_or_init(|| {
            self.end.fetch_max(segment + 1, Ordering::Relaxed);
            let count = FIRST << narrow(segment);
            (count - FIRST..count - FIRST + count).map(make).collect()
        });
        elements.get(position)
    }

    /// Every existing element, in the order of indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &V> {
        // A thread that can see an element also sees an `end` after its segment, because `end` is written first.
        let segments = self.segments.iter().take(self.end.load(Ordering::Relaxed));
        segments.filter_map(OnceLock::get).flat_map(|elements| elements.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_dense_and_stable() {
        let table = AppendTable::new();
        assert!(table.get(0).is_none());
        for at in [0, 7, 8, 23, 24, 1000, 5] {
            assert_eq!(table.get_or_make(at, |index| index), Some(&at));
        }
        let first = std::ptr::from_ref(table.get(0).unwrap());
        table.get_or_make(100_000, |index| index).unwrap();
        assert_eq!(std::ptr::from_ref(table.get(0).unwrap()), first);
        assert!(table.get(3000).is_none());
        let all: Vec<u32> = table.iter().copied().collect();
        assert_eq!(all.last(), Some(&131_063), "the last of the segment of 100,000");
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(table.get(u32::MAX), None);
    }

    #[test]
    fn every_index_but_the_last_few_has_a_segment() {
        let last = u32::MAX - FIRST;
        assert_eq!(locate(last), Some((SEGMENTS - 1, (1 << 31) - 1)));
        assert_eq!(locate(last + 1), None);
    }
}
