//! Stores measurements by workload and peer.

use std::collections::BTreeMap;

use crate::case::CaseFigures;
use crate::peers::PeerKind;
use crate::statistics::Percentiles;
use crate::workloads::descriptors::Giver;
use crate::workloads::threads::FreedBy;

/// The result of one run of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadFigures {
    /// Million pairs per second, all threads together.
    pub(crate) throughput: f64,
    /// Maximum reserved bytes.
    pub(crate) reserved: u64,
    /// Maximum live bytes of the requests.
    pub(crate) live: u64,
}

/// All results so far.
#[derive(Default)]
pub(crate) struct Results {
    figures: BTreeMap<(String, PeerKind), CaseFigures>,
    threads: BTreeMap<(PeerKind, usize, FreedBy), ThreadFigures>,
    growth: BTreeMap<PeerKind, Percentiles>,
    sets: BTreeMap<(&'static str, Giver), f64>,
    /// True if other processes used the machine during the measurement of threads. The scaling is then meaningless.
    pub(crate) busy: bool,
}

impl Results {
    pub(crate) fn add(&mut self, id: &str, kind: PeerKind, figures: CaseFigures) {
        self.figures.insert((id.to_owned(), kind), figures);
    }

    pub(crate) fn get(&self, id: &str, kind: PeerKind) -> Option<&CaseFigures> {
        self.figures.get(&(id.to_owned(), kind))
    }

    /// Returns the nanoseconds per pair.
    pub(crate) fn pair(&self, id: &str, kind: PeerKind) -> Option<f64> {
        self.get(id, kind)?.pair
    }

    pub(crate) fn add_threads(
        &mut self,
        kind: PeerKind,
        threads: usize,
        freed_by: FreedBy,
        figures: ThreadFigures,
    ) {
        self.threads.insert((kind, threads, freed_by), figures);
    }

    pub(crate) fn threads(
        &self,
        kind: PeerKind,
        threads: usize,
        freed_by: FreedBy,
    ) -> Option<&ThreadFigures> {
        self.threads.get(&(kind, threads, freed_by))
    }

    pub(crate) fn add_growth(&mut self, kind: PeerKind, figures: Percentiles) {
        self.growth.insert(kind, figures);
    }

    #[cfg(test)]
    pub(crate) fn growth(&self, kind: PeerKind) -> Option<&Percentiles> {
        self.growth.get(&kind)
    }

    pub(crate) fn add_sets(&mut self, row: &'static str, giver: Giver, nanoseconds: f64) {
        self.sets.insert((row, giver), nanoseconds);
    }

    /// For the driver that was measured last.
    #[cfg(test)]
    pub(crate) fn sets(&self, row: &'static str, giver: Giver) -> Option<f64> {
        self.sets.get(&(row, giver)).copied()
    }

    /// Returns the workloads in which Sublet reserved more than VMA, or called the driver more often.
    pub(crate) fn above_vma(&self, rows: &[(String, String)]) -> Vec<String> {
        let mut above = Vec::new();
        for (id, _) in rows {
            let (Some(own), Some(vma)) = (self.get(id, PeerKind::Sublet), self.get(id, PeerKind::Vma)) else {
                continue;
            };
            // If nothing is live, the remaining block is the one that was emptied last, which is random.
            let bytes = |of: &CaseFigures| if vma.live_bytes == 0 { 0 } else { of.end_bytes };
            if bytes(own) > bytes(vma) || own.blocks > vma.blocks {
                above.push(format!(
                    "{id}: {} bytes in {} blocks are reserved in the end, VMA: {} in {}",
                    own.end_bytes, own.blocks, vma.end_bytes, vma.blocks
                ));
            }
            if own.calls.allocations > vma.calls.allocations || own.calls.frees > vma.calls.frees {
                above.push(format!("{id}: {:?} of the driver, VMA: {:?}", own.calls, vma.calls));
            }
        }
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Calls;

    #[test]
    fn what_is_above_vma_is_told() {
        let rows = [("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())];
        let figures = |end_bytes, allocations, frees| CaseFigures {
            end_bytes,
            live_bytes: 1,
            calls: Calls { allocations, frees, maps: 9 },
            ..CaseFigures::default()
        };
        let mut results = Results::default();
        results.add("a", PeerKind::Sublet, figures(5, 5, 5));
        assert!(results.above_vma(&rows).is_empty(), "VMA did not take part");
        results.add("a", PeerKind::Vma, figures(5, 5, 5));
        assert!(results.above_vma(&rows).is_empty());
        for (worse, what) in [((6, 5, 5), "reserved"), ((5, 6, 5), "driver"), ((5, 5, 6), "driver")] {
            results.add("a", PeerKind::Sublet, figures(worse.0, worse.1, worse.2));
            let above = results.above_vma(&rows);
            assert!(above.len() == 1 && above[0].contains(what), "{above:?}");
        }
    }
}
