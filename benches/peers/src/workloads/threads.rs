//! Threads that share one allocator, and free their own allocations, those of a neighbour, or those of all threads.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::Scale;
use crate::gpu::{Driver, TestGpu};
use crate::peers::{self, PeerKind, SharedPeer, VisitShared};
use crate::script::{AlignmentMix, PeerRequest, Random, Shapes};

/// Live allocations per thread.
const LIVE: usize = 2_000;
/// Number of operations in each thread's list, which it repeats.
const LIST: usize = 4_096;
/// Maximum number of allocations in transit to a thread, beside those of one batch.
const ON_THE_WAY: usize = 256;
/// Pairs between two looks at the other threads.
const BATCH: usize = 16;
/// One of this many frees is done by the allocating thread.
const OWN: usize = 16;

/// Pairs between two exchanges of all allocations.
const UNTIL_EXCHANGE: usize = 1_024;

/// Phases of the threads.
const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// The thread that frees an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FreedBy {
    /// The thread that allocated it.
    Itself,
    /// Mostly the next thread, to which each batch is handed over.
    Neighbour,
    /// Any thread: all threads pass all their allocations on at once, again and again.
    Anyone,
}

impl FreedBy {
    pub(crate) const ALL: [Self; 3] = [Self::Itself, Self::Neighbour, Self::Anyone];

    /// Its description in the title of a table.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Itself => "frees on the same thread",
            Self::Neighbour => "15 of 16 frees on another thread",
            Self::Anyone => "all allocations change their thread every 1,024 pairs",
        }
    }

    /// The name of the workload.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Itself => "threads-local",
            Self::Neighbour => "threads-remote",
            Self::Anyone => "threads-exchange",
        }
    }
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadFigures {
    /// Million pairs per second, all threads together.
    pub(crate) throughput: f64,
    /// Maximum reserved bytes.
    pub(crate) reserved: u64,
    /// Maximum live bytes of the requests.
    pub(crate) live: u64,
}

/// The settings of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadsPlan {
    pub(crate) threads: usize,
    pub(crate) freed_by: FreedBy,
    pub(crate) warm_up: Duration,
    pub(crate) duration: Duration,
    pub(crate) scale: Scale,
    pub(crate) round: u64,
}

/// The current phase, and the number of threads that have measured something.
#[derive(Default)]
struct Stage {
    now: AtomicU8,
    measured: AtomicUsize,
}

/// The work of one thread.
struct Thread {
    /// Initial allocations.
    fill: Vec<PeerRequest>,
    list: Vec<(usize, PeerRequest)>,
}

/// The allocations that a thread has to free for the previous one.
type Inbox<A> = Mutex<Vec<A>>;

/// The inbox of a thread, and that of the next one.
type Inboxes<'a, A> = (&'a Inbox<A>, &'a Inbox<A>);

/// Waits for another thread that is done within microseconds. Spins, because waking a thread that sleeps takes as long as
/// hundreds of allocations. With fewer processors than threads it yields.
fn spin_while(waits: impl Fn() -> bool) {
    const SPINS: u32 = 1_000;
    let mut spins = 0;
    while waits() {
        spins += 1;
        if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// A barrier for threads that arrive within microseconds.
struct SpinBarrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
}

impl SpinBarrier {
    const fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0) }
    }

    /// Waits for all threads. Returns true in one of them.
    fn wait(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return true;
        }
        spin_while(|| self.round.load(Ordering::Acquire) == round);
        false
    }
}

/// The sets of allocations that threads pass on, by their next owner.
struct Exchanges<A> {
    sets: Vec<Mutex<Vec<Option<A>>>>,
    barrier: SpinBarrier,
    /// The stage that one thread read for all.
    stops: AtomicBool,
}

impl<A> Exchanges<A> {
    fn new(threads: usize) -> Self {
        Self {
            sets: (0..threads).map(|_| Mutex::new(Vec::new())).collect(),
            barrier: SpinBarrier::new(threads),
            stops: AtomicBool::new(false),
        }
    }

    /// Passes the allocations of thread `number` on, and takes those of the thread before it. Returns true if all
    /// threads stop.
    fn exchange(&self, number: usize, slots: &mut Vec<Option<A>>, stage: &Stage) -> bool {
        let set = |at: usize| self.sets[at % self.sets.len()].lock().expect("no thread panics with a set");
        std::mem::swap(&mut *set(number + 1), slots);
        if self.barrier.wait() {
            self.stops.store(stage.now.load(Ordering::Relaxed) == STOP, Ordering::Relaxed);
        }
        std::mem::swap(&mut *set(number), slots);
        self.barrier.wait();
        self.stops.load(Ordering::Relaxed)
    }
}

/// The result of one thread.
struct ThreadResult<A> {
    pairs: u64,
    time: Duration,
    refused: u64,
    left: Vec<Option<A>>,
}

impl ThreadsPlan {
    fn thread(&self, number: usize) -> Thread {
        let alignments =
            if self.freed_by == FreedBy::Anyone { AlignmentMix::Mixed } else { AlignmentMix::Usual };
        let shapes = Shapes::common(alignments);
        let mut random = Random::new(self.scale.seed(900 + number as u64, self.round));
        let live = self.scale.live(LIVE);
        let fill = (0..live).map(|_| shapes.draw(&mut random)).collect();
        let list =
            (0..LIST).map(|_| (random.below(live as u64) as usize, shapes.draw(&mut random))).collect();
        Thread { fill, list }
    }
}

struct ThreadsRun<'a>(ThreadsPlan, &'a TestGpu);

impl VisitShared for ThreadsRun<'_> {
    type Output = Result<ThreadFigures, String>;

    fn visit<P: SharedPeer>(self, peer: P) -> Self::Output {
        run(self.0, peer, self.1)
    }
}

/// Runs the plan with a peer.
pub(crate) fn threads(plan: ThreadsPlan, driver: &Driver, kind: PeerKind) -> Result<ThreadFigures, String> {
    let gpu = TestGpu::new(driver, Some(1))?;
    let ran = peers::make_shared(kind, &gpu, ThreadsRun(plan, &gpu)).and_then(|figures| {
        let figures = figures?;
        gpu.finish()?;
        Ok(figures)
    });
    ran.map_err(|error| format!("{} threads, {}: {error}", plan.threads, kind.title()))
}

fn run<P: SharedPeer>(plan: ThreadsPlan, peer: P, gpu: &TestGpu) -> Result<ThreadFigures, String> {
    let scripts: Vec<Thread> = (0..plan.threads).map(|number| plan.thread(number)).collect();
    let live: u64 = scripts.iter().flat_map(|thread| &thread.fill).map(|request| request.size).sum();
    let inboxes: Vec<Inbox<P::Allocation>> = (0..plan.threads).map(|_| Mutex::default()).collect();
    let stage = Stage::default();
    let barrier = Barrier::new(plan.threads + 1);
    let exchanges = Exchanges::new(plan.threads);
    let done: Vec<ThreadResult<P::Allocation>> = std::thread::scope(|scope| {
        let start = |(number, thread)| {
            let (peer, stage, barrier, exchanges) = (&peer, &stage, &barrier, &exchanges);
            let ends = (&inboxes[number], &inboxes[(number + 1) % plan.threads]);
            let ends = (plan.freed_by == FreedBy::Neighbour).then_some(ends);
            let exchanges = (plan.freed_by == FreedBy::Anyone).then_some((number, exchanges));
            scope.spawn(move || work(peer, thread, ends, exchanges, stage, barrier))
        };
        let handles: Vec<_> = scripts.iter().enumerate().map(start).collect();
        barrier.wait();
        std::thread::sleep(plan.warm_up);
        stage.now.store(MEASURE, Ordering::Relaxed);
        std::thread::sleep(plan.duration);
        // On a busy machine a thread may not have run yet.
        while stage.measured.load(Ordering::Relaxed) < plan.threads {
            std::thread::yield_now();
        }
        stage.now.store(STOP, Ordering::Relaxed);
        barrier.wait();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| handle.join();
        handles.into_iter().map(join).collect::<Result<_, _>>().map_err(|_| "a thread panicked".to_owned())
    })?;
    let reserved = gpu.counters().peak();
    let pairs: u64 = done.iter().map(|thread| thread.pairs).sum();
    let rate: f64 = done.iter().map(|thread| thread.pairs as f64 / thread.time.as_secs_f64()).sum();
    let refused: u64 = done.iter().map(|thread| thread.refused).sum();
    let left: u64 = done.iter().map(|thread| thread.left.iter().flatten().count() as u64).sum();
    let counted = peer.live().unwrap_or(left);
    done.into_iter().flat_map(|thread| thread.left).flatten().for_each(|allocation| peer.free(allocation));
    let remaining = peer.live().unwrap_or(0);
    peer.finish()?;
    let expected = (plan.threads * plan.scale.live(LIVE)) as u64;
    if (left, counted, remaining, refused) != (expected, expected, 0, 0) || pairs == 0 {
        return Err(format!(
            "{expected} allocations should be live in the end: {left} are, the peer counts {counted}; \
             {remaining} were left when all were freed, {refused} were refused, {pairs} pairs were done"
        ));
    }
    Ok(ThreadFigures { throughput: rate / 1e6, reserved, live })
}

fn work<P: SharedPeer>(
    peer: &P,
    thread: &Thread,
    ends: Option<Inboxes<'_, P::Allocation>>,
    exchanges: Option<(usize, &Exchanges<P::Allocation>)>,
    stage: &Stage,
    barrier: &Barrier,
) -> ThreadResult<P::Allocation> {
    let mut slots: Vec<_> = thread.fill.iter().map(|request| peer.allocate(request)).collect();
    let mut refused = slots.iter().filter(|slot| slot.is_none()).count() as u64;
    barrier.wait();
    let (mut pairs, mut from) = (0, Instant::now());
    let mut at = 0;
    let mut seen = WARM_UP;
    let (mut given, mut received) = (Vec::new(), Vec::new());
    loop {
        let now = stage.now.load(Ordering::Relaxed);
        // Threads that exchange their allocations stop together, below.
        if now == STOP && exchanges.is_none() {
            break;
        }
        if now == MEASURE && seen == WARM_UP {
            (seen, pairs, from) = (now, 0, Instant::now());
        }
        let batch = &thread.list[at..at + BATCH];
        at = (at + BATCH) % LIST;
        refused += own(peer, &mut slots, batch, ends.is_some().then_some(&mut given));
        if let Some((inbox, next)) = ends {
            // The next thread may not be running. This one continues when it can hand over, or at the end.
            while stage.now.load(Ordering::Relaxed) != STOP && unlocked(next).len() > ON_THE_WAY {
                free_all(peer, inbox, &mut received);
                std::thread::yield_now();
            }
            unlocked(next).append(&mut given);
            free_all(peer, inbox, &mut received);
        }
        if seen == MEASURE && pairs == 0 {
            stage.measured.fetch_add(1, Ordering::Relaxed);
        }
        pairs += BATCH as u64;
        if let Some((number, exchanges)) = exchanges {
            if at % UNTIL_EXCHANGE == 0 && exchanges.exchange(number, &mut slots, stage) {
                break;
            }
        }
    }
    let time = from.elapsed();
    // No thread hands over allocations any more.
    barrier.wait();
    if let Some((inbox, _)) = ends {
        free_all(peer, inbox, &mut received);
    }
    ThreadResult { pairs, time, refused, left: slots }
}

fn unlocked<A>(inbox: &Inbox<A>) -> MutexGuard<'_, Vec<A>> {
    inbox.lock().expect("no thread panics with an inbox")
}

/// Frees what is in the inbox. `received` is empty before and after; it only keeps its capacity.
fn free_all<P: SharedPeer>(peer: &P, inbox: &Inbox<P::Allocation>, received: &mut Vec<P::Allocation>) {
    std::mem::swap(&mut *unlocked(inbox), received);
    received.drain(..).for_each(|allocation| peer.free(allocation));
}

/// Plays a batch. Frees all allocations itself, or only one of [`OWN`], and puts the others into `given`.
#[inline]
fn own<P: SharedPeer>(
    peer: &P,
    slots: &mut [Option<P::Allocation>],
    batch: &[(usize, PeerRequest)],
    mut given: Option<&mut Vec<P::Allocation>>,
) -> u64 {
    let mut refused = 0;
    for (number, (slot, request)) in batch.iter().enumerate() {
        if let Some(allocation) = slots[*slot].take() {
            match &mut given {
                Some(given) if number % OWN != 0 => given.push(allocation),
                _ => peer.free(allocation),
            }
        }
        let allocation = peer.allocate(request);
        refused += u64::from(allocation.is_none());
        slots[*slot] = allocation;
    }
    refused
}
