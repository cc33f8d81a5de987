//! Matches the allocations of two snapshots.

use std::cmp::Ordering;

use serde::Serialize;

use crate::snapshot::Located;

/// The method by which a [`Comparison`](super::Comparison) matched allocations. In JSON: `"ids"`, `"places"`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Matching {
    /// By their ids: certain.
    Ids,
    /// By pool and memory type, block, offset, size, kind and name: a guess. Equal dedicated allocations match in
    /// order.
    Places,
}

/// Returns the index in the first snapshot for each allocation of the second.
pub(super) fn pairs(
    is_one_run: bool,
    was: &[Located<'_>],
    is: &[Located<'_>],
) -> (Matching, Vec<Option<usize>>) {
    let have_ids = |all: &[Located<'_>]| all.iter().all(|found| found.entry.id.is_some());
    if is_one_run && have_ids(was) && have_ids(is) {
        let by_id = |a: &Located<'_>, b: &Located<'_>| a.entry.id.cmp(&b.entry.id);
        (Matching::Ids, merged(was, is, by_id))
    } else {
        (Matching::Places, merged(was, is, by_place))
    }
}

fn by_place(a: &Located<'_>, b: &Located<'_>) -> Ordering {
    let place = |it: &Located<'_>| {
        let block = it.block.map(|block| block.id);
        (it.vector.memory_type, it.vector.pool, block, it.offset, it.size, it.entry.usage)
    };
    let words = |it: &Located<'_>| it.entry.kind.text();
    place(a)
        .cmp(&place(b))
        .then_with(|| words(a).cmp(words(b)))
        .then_with(|| a.entry.name.cmp(&b.entry.name))
        .then_with(|| a.vector.name.cmp(&b.vector.name))
}

/// Merges two sorted lists. Equal entries match in order.
fn merged(
    was: &[Located<'_>],
    is: &[Located<'_>],
    order: impl Fn(&Located<'_>, &Located<'_>) -> Ordering,
) -> Vec<Option<usize>> {
    let sorted = |all: &[Located<'_>]| {
        let mut indices: Vec<usize> = (0..all.len()).collect();
        indices.sort_by(|&a, &b| order(&all[a], &all[b]));
        indices
    };
    let mut pairs = vec![None; is.len()];
    let mut olds = sorted(was).into_iter().peekable();
    for new in sorted(is) {
        while let Some(&old) = olds.peek() {
            match order(&was[old], &is[new]) {
                Ordering::Less => {
                    olds.next();
                }
                Ordering::Equal => {
                    pairs[new] = olds.next();
                    break;
                }
                Ordering::Greater => break,
            }
        }
    }
    pairs
}
