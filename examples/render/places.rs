//! Where in one piece of memory each of several images goes, so that no two meet that live at the same time.
#![forbid(unsafe_code)]

use crate::passes::Pass;

/// What an image needs, and the first and the last pass that use it.
pub(crate) struct Transient {
    /// Its number among all attachments.
    pub(crate) at: usize,
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) life: (Pass, Pass),
}

/// The place of each of `count` attachments, as begin and end, and the bytes of all together. Those that are not wanted
/// get none.
///
/// The large ones first, each as low as it can be.
pub(crate) fn place(wanted: &[Transient], count: usize) -> (Vec<Option<[u64; 2]>>, u64) {
    let mut order: Vec<&Transient> = wanted.iter().collect();
    order.sort_by_key(|wanted| std::cmp::Reverse(wanted.size));
    let mut placed: Vec<(&Transient, [u64; 2])> = Vec::new();
    for this in order {
        let (first, last) = this.life;
        let mut met: Vec<[u64; 2]> = placed
            .iter()
            .filter(|(other, _)| other.life.0 <= last && first <= other.life.1)
            .map(|&(_, place)| place)
            .collect();
        met.sort_unstable();
        let mut from = 0;
        for [other_from, other_to] in met {
            if from + this.size > other_from {
                from = from.max(other_to.next_multiple_of(this.alignment.max(1)));
            }
        }
        placed.push((this, [from, from + this.size]));
    }
    let mut places = vec![None; count];
    let mut size = 0;
    for (wanted, place) in placed {
        places[wanted.at] = Some(place);
        size = size.max(place[1]);
    }
    (places, size)
}
