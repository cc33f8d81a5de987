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

    /// Returns the workloads in which Sublet reserved more than VMA at the peak.
    pub(crate) fn above_vma(&self, rows: &[(String, String)]) -> Vec<String> {
        let peak = |id: &str, kind| self.get(id, kind)?.reserved_peak;
        let above = rows.iter().filter_map(|(id, _)| {
            let (own, vma) = (peak(id, PeerKind::Sublet)?, peak(id, PeerKind::Vma)?);
            (own > vma).then(|| format!("{id}: {own:.2} bytes are reserved for each live one, VMA: {vma:.2}"))
        });
        above.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_vma_is_told() {
        let rows = [("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())];
        let figures = |peak| CaseFigures { reserved_peak: Some(peak), ..CaseFigures::default() };
        let mut results = Results::default();
        results.add("a", PeerKind::Sublet, figures(1.5));
        assert!(results.above_vma(&rows).is_empty(), "VMA did not take part");
        results.add("a", PeerKind::Vma, figures(1.5));
        assert!(results.above_vma(&rows).is_empty());
        results.add("a", PeerKind::Sublet, figures(1.6));
        assert_eq!(results.above_vma(&rows), ["a: 1.60 bytes are reserved for each live one, VMA: 1.50"]);
    }
}
