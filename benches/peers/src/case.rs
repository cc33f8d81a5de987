//! Runs one peer on one workload, and several peers in turn.

use std::collections::BTreeMap;

use crate::clock::Stopwatch;
use crate::gpu::{Calls, Driver, TestGpu};
use crate::heap;
use crate::peers::{self, Peer, PeerKind, PeerMode, Visit};
use crate::script::Phase;
use crate::statistics::median;

/// The measurements of one peer on one workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseFigures {
    /// Nanoseconds per pair of allocate and free, the median of the rounds.
    pub(crate) pair: Option<f64>,
    /// Maximum reserved bytes per live byte at the peak.
    pub(crate) reserved_peak: Option<f64>,
    /// Reserved bytes per live byte at the end, before everything is freed.
    pub(crate) reserved_end: Option<f64>,
    pub(crate) calls: Calls,
    /// The peer's own host memory per live allocation.
    pub(crate) own_heap: Option<f64>,
}

/// A peer with its allocations.
pub(crate) trait Case {
    /// Runs phases without measuring.
    fn prepare(&mut self, phases: &[Phase], share: usize);

    /// Runs phases, with only the `share`-th part of each list of replacements. Returns nanoseconds and pairs.
    fn run(&mut self, phases: &[Phase], share: usize) -> (f64, f64);

    /// Sets the byte limit after which the driver rejects allocations.
    #[cfg(test)]
    fn limit(&self, bytes: u64);

    /// Returns the figures so far, without times and host memory.
    fn figures(&self) -> CaseFigures;

    fn live(&self) -> usize;

    /// Checks the live count, frees everything, destroys the peer, and checks that all memory was freed.
    fn finish(self: Box<Self>) -> Result<(), String>;
}

struct PeerWithAllocations<P: Peer> {
    peer: P,
    slots: Vec<Option<P::Allocation>>,
    /// The size in each slot; 0 if it is vacant.
    sizes: Vec<u64>,
    live: u64,
    live_peak: u64,
    refused: u64,
    gpu: TestGpu,
}

/// The measured function. `instructions` finds it by its name.
#[inline(never)]
fn counted<P: Peer>(
    peer: &mut P,
    slots: &mut [Option<P::Allocation>],
    phases: &[Phase],
    share: usize,
) -> u64 {
    play(peer, slots, phases, share)
}

/// Same for preparation.
#[inline(never)]
fn prepared<P: Peer>(
    peer: &mut P,
    slots: &mut [Option<P::Allocation>],
    phases: &[Phase],
    share: usize,
) -> u64 {
    // Without a difference, the compiler would merge the two functions.
    std::hint::black_box(0_u8);
    play(peer, slots, phases, share)
}

/// Runs the phases without anything between the calls. Returns the number of failed allocations.
#[inline(always)]
fn play<P: Peer>(peer: &mut P, slots: &mut [Option<P::Allocation>], phases: &[Phase], share: usize) -> u64 {
    let mut refused = 0;
    for phase in phases {
        match phase {
            Phase::Allocate(list) => {
                for (slot, request) in list {
                    let allocation = peer.allocate(request);
                    refused += u64::from(allocation.is_none());
                    slots[*slot as usize] = allocation;
                }
            }
            Phase::Replace(list) => {
                for (slot, request) in &list[..list.len() / share] {
                    if let Some(allocation) = slots[*slot as usize].take() {
                        peer.free(allocation);
                    }
                    let allocation = peer.allocate(request);
                    refused += u64::from(allocation.is_none());
                    slots[*slot as usize] = allocation;
                }
            }
            Phase::Free(list) => {
                for slot in list {
                    if let Some(allocation) = slots[*slot as usize].take() {
                        peer.free(allocation);
                    }
                }
            }
        }
    }
    refused
}

impl<P: Peer> PeerWithAllocations<P> {
    /// Tracks the live allocations of the phases without the peer.
    fn account(&mut self, phases: &[Phase], share: usize) {
        for phase in phases {
            match phase {
                Phase::Allocate(list) => {
                    list.iter().for_each(|(slot, request)| self.note(*slot, request.size))
                }
                Phase::Replace(list) => {
                    list[..list.len() / share]
                        .iter()
                        .for_each(|(slot, request)| self.note(*slot, request.size));
                }
                Phase::Free(list) => list.iter().for_each(|slot| self.note(*slot, 0)),
            }
        }
    }

    fn note(&mut self, slot: u32, size: u64) {
        let before = std::mem::replace(&mut self.sizes[slot as usize], size);
        self.live = self.live + size - before;
        self.live_peak = self.live_peak.max(self.live);
    }
}

impl<P: Peer> Case for PeerWithAllocations<P> {
    fn prepare(&mut self, phases: &[Phase], share: usize) {
        self.refused += prepared(&mut self.peer, &mut self.slots, phases, share);
        self.account(phases, share);
    }

    fn run(&mut self, phases: &[Phase], share: usize) -> (f64, f64) {
        let stopwatch = Stopwatch::start();
        let refused = counted(&mut self.peer, &mut self.slots, phases, share);
        let time = stopwatch.stop(self.gpu.is_real());
        self.refused += refused;
        self.account(phases, share);
        let halves = |phase: &Phase| match phase {
            Phase::Replace(list) => list.len() / share * 2,
            other => other.halves(),
        };
        (time, phases.iter().map(halves).sum::<usize>() as f64 / 2.0)
    }

    #[cfg(test)]
    fn limit(&self, bytes: u64) {
        self.gpu.counters().limit(bytes);
    }

    fn figures(&self) -> CaseFigures {
        let (end, peak) = (self.gpu.counters().reserved(), self.gpu.counters().peak());
        let per = |reserved: u64, live: u64| (live > 0).then(|| reserved as f64 / live as f64);
        CaseFigures {
            reserved_peak: per(peak, self.live_peak),
            reserved_end: per(end, self.live),
            calls: self.gpu.counters().calls(),
            ..CaseFigures::default()
        }
    }

    fn live(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        let live = Case::live(&*self) as u64;
        let noted = self.sizes.iter().filter(|size| **size > 0).count() as u64;
        let Self { mut peer, slots, gpu, refused, .. } = *self;
        let counted = peer.live().unwrap_or(live);
        slots.into_iter().flatten().for_each(|allocation| peer.free(allocation));
        let left = peer.live().unwrap_or(0);
        peer.finish()?;
        gpu.finish()?;
        if refused > 0 {
            return Err(format!("{refused} allocations were refused"));
        }
        if counted != live || live != noted {
            return Err(format!("{live} allocations are live, {noted} should be, the peer counts {counted}"));
        }
        if left != 0 { Err(format!("{left} allocations were left when all were freed")) } else { Ok(()) }
    }
}

struct Hold {
    slots: usize,
}

impl Visit for Hold {
    type Output = Box<dyn FnOnce(TestGpu) -> Box<dyn Case>>;

    fn visit<P: Peer + 'static>(self, peer: P) -> Self::Output {
        Box::new(move |gpu| {
            let mut slots = Vec::new();
            slots.resize_with(self.slots, || None);
            let sizes = vec![0; self.slots];
            Box::new(PeerWithAllocations { peer, slots, sizes, live: 0, live_peak: 0, refused: 0, gpu })
        })
    }
}

/// The device and settings of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseSetup<'a> {
    pub(crate) driver: &'a Driver,
    pub(crate) granularity: u64,
    pub(crate) kind: PeerKind,
    pub(crate) shape: PeerMode,
}

/// Creates a peer with this many slots. `None` if it does not support the shape.
pub(crate) fn case(place: CaseSetup<'_>, slots: usize) -> Result<Option<Box<dyn Case>>, String> {
    let gpu = TestGpu::new(place.driver, Some(place.granularity))?;
    let hold = peers::make(place.kind, &gpu, place.shape, Hold { slots })?;
    Ok(hold.map(|hold| hold(gpu)))
}

/// A participant in a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Participant {
    pub(crate) kind: PeerKind,
    pub(crate) shape: PeerMode,
    /// Divisor of the number of replacements: 1 for all of them, 10 for a tenth.
    pub(crate) share: usize,
}

/// The operations of each round.
pub(crate) type Rounds = Box<dyn Fn(u64) -> Vec<Phase>>;

/// One row of a table: operations and participants.
pub(crate) struct Workload {
    /// Its name on the command line and in the results.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) peers: Vec<Participant>,
    pub(crate) granularity: u64,
    pub(crate) slots: usize,
    /// Untimed operations at the start.
    pub(crate) before: Vec<Phase>,
    /// Untimed operations before each round, by its number. They fill the caches with this peer's data. `None` means
    /// the same as the round.
    pub(crate) warm_up: Option<Rounds>,
    /// The timed operations, by the number of the round.
    pub(crate) round: Rounds,
    /// Divisor of the number of rounds.
    pub(crate) fewer_rounds: u64,
    /// True if host memory is measured too.
    pub(crate) thorough: bool,
    /// True if reserved memory is meaningful. It is not if the caller chooses it, or if almost nothing is live.
    pub(crate) reserves: bool,
}

impl Workload {
    fn warm_up(&self, round: u64) -> Vec<Phase> {
        // Different operations than the timed ones.
        const OTHER: u64 = 1 << 32;
        self.warm_up.as_ref().unwrap_or(&self.round)(round + OTHER)
    }

    /// Returns the maximum of live bytes.
    pub(crate) fn live_bytes(&self) -> u64 {
        let mut sizes = vec![0_u64; self.slots];
        let (mut live, mut most) = (0, 0);
        let round = (self.round)(0);
        for phase in self.before.iter().chain(&round) {
            let mut set = |slot: u32, size: u64| {
                live = live + size - std::mem::replace(&mut sizes[slot as usize], size);
                most = most.max(live);
            };
            match phase {
                Phase::Allocate(list) | Phase::Replace(list) => {
                    list.iter().for_each(|(slot, request)| set(*slot, request.size));
                }
                Phase::Free(list) => list.iter().for_each(|slot| set(*slot, 0)),
            }
        }
        most
    }
}

struct Running {
    entry: Participant,
    case: Box<dyn Case>,
    pairs: Vec<f64>,
}

/// Measures all peers of a workload. They take turns by round, so that a disturbance affects all of them.
pub(crate) fn measure(
    workload: &Workload,
    driver: &Driver,
    rounds: u64,
    mut tick: impl FnMut(&str),
) -> Result<BTreeMap<PeerKind, CaseFigures>, String> {
    let said = |kind: PeerKind, error: String| format!("{}, {}: {error}", workload.id, kind.title());
    let place = |entry: Participant| CaseSetup {
        driver,
        granularity: workload.granularity,
        kind: entry.kind,
        shape: entry.shape,
    };
    let mut running = Vec::new();
    for &entry in &workload.peers {
        tick(entry.kind.title());
        let made = case(place(entry), workload.slots).map_err(|error| said(entry.kind, error))?;
        let Some(mut case) = made else { continue };
        case.prepare(&workload.before, entry.share);
        running.push(Running { entry, case, pairs: Vec::new() });
    }
    for round in 0..rounds.div_ceil(workload.fewer_rounds) {
        let (warm_up, phases) = (workload.warm_up(round), (workload.round)(round));
        for one in &mut running {
            tick(one.entry.kind.title());
            one.case.prepare(&warm_up, one.entry.share);
            let (time, pairs) = one.case.run(&phases, one.entry.share);
            one.pairs.push(time / pairs);
        }
    }
    let mut all = BTreeMap::new();
    for Running { entry, case, pairs } in running {
        let mut figures = case.figures();
        if !workload.reserves {
            (figures.reserved_peak, figures.reserved_end) = (None, None);
        }
        figures.pair = median(&pairs);
        case.finish().map_err(|error| said(entry.kind, error))?;
        if workload.thorough {
            let heap = own_heap(workload, place(entry), entry.share);
            figures.own_heap = heap.map_err(|error| said(entry.kind, error))?;
        }
        all.insert(entry.kind, figures);
    }
    Ok(all)
}

/// Returns host bytes per live allocation after the preparation, including those of the empty peer.
fn own_heap(workload: &Workload, place: CaseSetup<'_>, share: usize) -> Result<Option<f64>, String> {
    let gpu = TestGpu::new(place.driver, Some(place.granularity))?;
    let start = heap::bytes();
    let hold = peers::make(place.kind, &gpu, place.shape, Hold { slots: workload.slots })?;
    let empty = heap::bytes();
    let Some(mut case) = hold.map(|hold| hold(gpu)) else {
        return Ok(None);
    };
    let vacant = heap::bytes();
    case.prepare(&workload.before, share);
    let bytes = || Some(heap::bytes()? - vacant? + empty? - start?);
    let (bytes, live) = (bytes(), case.live().max(1));
    case.finish()?;
    Ok(bytes.map(|bytes| bytes as f64 / live as f64))
}
