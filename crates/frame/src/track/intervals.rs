//! A map from the points of a range to values, stored as intervals.

/// Values over `0..len`. Equal neighbours form one interval.
///
/// ```text
/// alike:  one = A,  chunks = []
/// split:            chunks = [[(2, A), (5, B)], [(8, A)]]     0..2 is A, 2..5 is B, 5..8 is A
/// ```
///
/// I1: `count` is 0 or at least 2; interval ends ascend, and the last is `len`.
/// I2: neighbours differ.
/// I3: each of the first `used` chunks has 1 to [`CHUNK`] intervals. Later chunks keep their capacity for reuse.
///
/// # Complexity
///
/// Constant if all points are equal and the range is all of them. Otherwise logarithmic in the number of intervals,
/// plus one step for each interval of the range, plus at most [`CHUNK`] steps to insert.
#[derive(Debug, Clone)]
pub(crate) struct Intervals<T> {
    len: u64,
    one: T,
    chunks: Vec<Vec<(u64, T)>>,
    used: usize,
    count: usize,
}

/// Limits the cost of an insertion, which moves the rest of a chunk. With a single vector, n scattered uses would cost
/// O(n²).
const CHUNK: usize = 64;

impl<T: Copy + PartialEq> Intervals<T> {
    pub(crate) const fn new(len: u64, value: T) -> Self {
        Self { len, one: value, chunks: Vec::new(), used: 0, count: 0 }
    }

    /// Resets to a single value and keeps the capacity.
    pub(crate) fn reset(&mut self, len: u64, value: T) {
        self.len = len;
        self.fill(value);
    }

    /// Copies `other` without reallocation where the capacity suffices.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        (self.len, self.one) = (other.len, other.one);
        (self.used, self.count) = (other.used, other.count);
        if self.chunks.len() < other.used {
            self.chunks.resize_with(other.used, Vec::new);
        }
        for (chunk, other) in self.chunks.iter_mut().zip(&other.chunks[..other.used]) {
            chunk.clear();
            chunk.extend_from_slice(other);
        }
    }

    pub(crate) fn fill(&mut self, value: T) {
        self.one = value;
        (self.used, self.count) = (0, 0);
    }

    pub(crate) fn for_each(&self, mut f: impl FnMut(u64, u64, &T)) {
        if self.count == 0 {
            return f(0, self.len, &self.one);
        }
        let mut start = 0;
        for (end, value) in self.chunks[..self.used].iter().flatten() {
            f(start, *end, value);
            start = *end;
        }
    }

    /// Returns the value of `start..end`, if that is the whole range with one value.
    #[inline]
    pub(crate) fn alike(&mut self, start: u64, end: u64) -> Option<&mut T> {
        (self.count == 0 && start == 0 && end == self.len).then_some(&mut self.one)
    }

    /// Calls `f` with each interval that overlaps `start..end`, a non-empty part of the range.
    pub(crate) fn visit(&self, start: u64, end: u64, mut f: impl FnMut(&T)) {
        if self.count == 0 {
            return f(&self.one);
        }
        let (first, mut at) = self.find(start);
        for chunk in &self.chunks[first..self.used] {
            for (stop, value) in &chunk[at..] {
                count_steps(1);
                f(value);
                if *stop >= end {
                    return;
                }
            }
            at = 0;
        }
    }

    pub(crate) fn each(&mut self, mut f: impl FnMut(&mut T)) {
        if self.len > 0 {
            self.update(0, self.len, |_, _, value| f(value));
        }
    }

    /// Calls `f` with each interval of `start..end`, a non-empty part of the range. Splits intervals at its ends.
    #[inline]
    pub(crate) fn update(&mut self, start: u64, end: u64, mut f: impl FnMut(u64, u64, &mut T)) {
        debug_assert!(start < end && end <= self.len);
        if self.count == 0 && start == 0 && end == self.len {
            return f(0, end, &mut self.one);
        }
        self.update_parts(start, end, f);
    }

    #[inline(never)]
    fn update_parts(&mut self, start: u64, end: u64, mut f: impl FnMut(u64, u64, &mut T)) {
        if self.count == 0 {
            let whole = (self.len, self.one);
            self.spare(0).push(whole);
            self.count = 1;
        }
        self.split(start);
        self.split(end);
        let (first, from) = self.find(start);
        let (mut last, mut at, mut begin) = (first, from, start);
        'range: loop {
            let chunk = &mut self.chunks[last];
            while let Some((stop, value)) = chunk.get_mut(at) {
                count_steps(1);
                f(begin, *stop, value);
                begin = *stop;
                if begin == end {
                    break 'range;
                }
                at += 1;
            }
            (last, at) = (last + 1, 0);
        }
        // The interval before the range may now equal the first one in it.
        let low = if from > 0 {
            (first, from - 1)
        } else if first > 0 {
            (first - 1, self.chunks[first - 1].len() - 1)
        } else {
            (first, from)
        };
        self.merge(low, (last, at), |one, next| (one == next).then_some(*next));
    }

    /// Joins neighbours for which `join` returns a common value.
    pub(crate) fn join(&mut self, join: impl Fn(&T, &T) -> Option<T>) {
        if let Some(last) = self.used.checked_sub(1) {
            self.merge((0, 0), (last, self.chunks[last].len() - 1), join);
        }
    }

    /// Returns the chunk and the index of the interval that contains a point.
    fn find(&self, point: u64) -> (usize, usize) {
        let chunks = &self.chunks[..self.used];
        let at = chunks.partition_point(|chunk| chunk.last().is_some_and(|&(end, _)| end <= point));
        (at, chunks[at].partition_point(|&(end, _)| end <= point))
    }

    /// Splits the interval that contains `at`, so that one starts there.
    fn split(&mut self, at: u64) {
        if at == 0 || at == self.len {
            return;
        }
        let (chunk, index) = self.find(at - 1);
        let (end, value) = self.chunks[chunk][index];
        if end == at {
            return;
        }
        let parts = &mut self.chunks[chunk];
        count_steps(parts.len() - index);
        parts.insert(index, (at, value));
        self.count += 1;
        if parts.len() > CHUNK {
            let mut upper = std::mem::take(self.spare(chunk + 1));
            upper.extend(self.chunks[chunk].drain(CHUNK / 2..));
            self.chunks[chunk + 1] = upper;
        }
    }

    /// Inserts an empty chunk at `at`.
    fn spare(&mut self, at: usize) -> &mut Vec<(u64, T)> {
        if self.chunks.len() == self.used {
            self.chunks.push(Vec::new());
        }
        self.chunks[at..=self.used].rotate_right(1);
        self.used += 1;
        let chunk = &mut self.chunks[at];
        chunk.clear();
        if at > 0 {
            chunk.reserve(CHUNK + 1);
        }
        chunk
    }

    /// Joins each of the intervals from `low` to `high` with its successor, if `join` returns a common value.
    fn merge(&mut self, low: (usize, usize), high: (usize, usize), join: impl Fn(&T, &T) -> Option<T>) {
        let mut emptied = false;
        for at in low.0..=high.0 {
            let (chunks, behind) = self.chunks[..self.used].split_at_mut(at + 1);
            let chunk = &mut chunks[at];
            let mut behind = behind.first_mut().and_then(|chunk| chunk.first_mut());
            let start = if at == low.0 { low.1 } else { 0 };
            let stop = if at == high.0 { high.1 + 1 } else { chunk.len() };
            count_steps(stop - start);
            let mut kept = start;
            for index in start..stop {
                let (end, value) = chunk[index];
                let next = chunk.get_mut(index + 1).or(behind.as_deref_mut());
                let joined = next.and_then(|next| join(&value, &next.1).map(|joined| next.1 = joined));
                if joined.is_none() {
                    chunk[kept] = (end, value);
                    kept += 1;
                }
            }
            chunk.drain(kept..stop);
            self.count -= stop - kept;
            emptied |= chunk.is_empty();
        }
        if emptied {
            let mut kept = low.0;
            for at in low.0..self.used {
                if !self.chunks[at].is_empty() {
                    self.chunks.swap(kept, at);
                    kept += 1;
                }
            }
            self.used = kept;
        }
        if self.count == 1 {
            let value = self.chunks[0][0].1;
            self.fill(value);
        }
    }

    /// Returns the value of `start..end` if it is uniform. The range must be valid for [`visit`](Self::visit).
    pub(crate) fn single(&self, start: u64, end: u64) -> Option<&T> {
        if self.count == 0 {
            return Some(&self.one);
        }
        let (chunk, index) = self.find(start);
        let (stop, value) = &self.chunks[chunk][index];
        (*stop >= end).then_some(value)
    }

    pub(crate) fn count(&self) -> usize {
        self.count.max(1)
    }
}

#[cfg(feature = "sim")]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the number of intervals that this thread has visited or moved in maps with more than one. Tests of costs
/// compare it, because times vary.
#[cfg(feature = "sim")]
#[must_use]
pub fn steps() -> usize {
    STEPS.get()
}

#[inline]
pub(crate) fn count_steps(_steps: usize) {
    #[cfg(feature = "sim")]
    STEPS.set(STEPS.get().wrapping_add(_steps));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(map: &Intervals<u32>) {
        assert_ne!(map.count, 1, "I1");
        let chunks = &map.chunks[..map.used];
        assert_eq!(chunks.iter().map(Vec::len).sum::<usize>(), map.count, "I1");
        let ends: Vec<_> = chunks.iter().flatten().map(|&(end, _)| end).collect();
        assert!(
            ends.is_sorted_by(|one, two| one < two) && ends.last().is_none_or(|&end| end == map.len),
            "I1"
        );
        assert!(chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())), "I3");
    }

    #[test]
    fn only_the_whole_range_is_alike() {
        let mut map = Intervals::new(8, 3_u32);
        assert_eq!(map.alike(0, 8), Some(&mut 3));
        for (start, end) in [(0, 7), (1, 8), (1, 7)] {
            assert_eq!(map.alike(start, end), None, "{start}..{end}");
        }
    }

    /// Compares with an array of values.
    #[test]
    fn random_updates_match_an_array() {
        let mut random = fastrand::Rng::with_seed(7);
        for case in 0..550 {
            // The long ones need many chunks.
            let (len, most, updates) =
                if case < 500 { (random.u64(1..20), 20, 60) } else { (random.u64(400..2_000), 9, 1_500) };
            let mut map = Intervals::new(len, 0_u32);
            let mut model = vec![0_u32; usize::try_from(len).unwrap()];
            for _ in 0..updates {
                let start = random.u64(0..len);
                let most = if random.u32(0..400) == 0 { len } else { most };
                let end = random.u64(start + 1..=len.min(start + most));
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
                check(&map);
                let mut visited = Vec::new();
                map.visit(start, end, |&value| visited.push(value));
                let mut expected = model[low..high].to_vec();
                expected.dedup();
                assert_eq!(visited, expected);
                let single = (expected.len() == 1).then(|| expected[0]);
                assert_eq!(map.single(start, end).copied(), single);
                if random.u32(0..40) == 0 {
                    let mut copy = Intervals::new(1, 0);
                    copy.copy_from(&map);
                    check(&copy);
                    // Joins values that differ by at most one.
                    copy.join(|one, two| (one.abs_diff(*two) <= 1).then(|| *one.max(two)));
                    check(&copy);
                    let mut all = Vec::new();
                    copy.for_each(|from, to, &value| all.extend((from..to).map(|_| value)));
                    assert_eq!(all.len(), model.len());
                    assert!(all.iter().zip(&model).all(|(joined, value)| joined >= value));
                    assert!(copy.count() <= map.count());
                }
            }
        }
    }
}
