//! Threads that share one allocator, and free their own allocations, those of a neighbour, or those of all threads.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use super::Scale;
use crate::clock::{self, Tick, TickClock};
use crate::gpu::{Driver, TestGpu};
use crate::peers::{self, PeerKind, SharedPeer, VisitShared};
use crate::results::ThreadFigures;
use crate::ring::{Consumer, Producer, Ring};
use crate::script::{AlignmentMix, PeerRequest, Random, Shapes};

/// Live allocations per thread.
const LIVE: usize = 2_000;
/// Number of operations in each thread's list, which it repeats.
const LIST: usize = 4_096;
/// Maximum number of allocations in transit from one thread to the next.
const ON_THE_WAY: usize = 256;
/// Pairs between two clock reads.
const BATCH: usize = 16;
/// One of this many frees is done by the allocating thread.
const OWN: usize = 16;

/// Pairs between two exchanges of all allocations.
const UNTIL_EXCHANGE: usize = 1_024;

/// The current phase of the threads.
const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// The thread that frees an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FreedBy {
    /// The thread that allocated it.
    Itself,
    /// Mostly the next thread, to which each allocation is handed over singly.
    Neighbour,
    /// Any thread: all threads pass all their allocations on at once, again and again.
    Anyone,
}

impl FreedBy {
    pub(crate) const ALL: [Self; 3] = [Self::Itself, Self::Neighbour, Self::Anyone];

    /// The name of the workload.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Itself => "threads-local",
            Self::Neighbour => "threads-remote",
            Self::Anyone => "threads-exchange",
        }
    }
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

/// The work of one thread.
struct Thread {
    /// Initial allocations.
    fill: Vec<PeerRequest>,
    list: Vec<(usize, PeerRequest)>,
}

/// The ends of the rings to the next thread and from the previous one.
type Exchange<'a, A> = (Producer<'a, A>, Consumer<'a, A>);

/// The sets of allocations that threads pass on, by their next owner.
struct Exchanges<A> {
    sets: Vec<Mutex<Vec<Option<A>>>>,
    barrier: Barrier,
    /// The stage that one thread read for all.
    stops: AtomicBool,
}

impl<A> Exchanges<A> {
    fn new(threads: usize) -> Self {
        Self {
            sets: (0..threads).map(|_| Mutex::new(Vec::new())).collect(),
            barrier: Barrier::new(threads),
            stops: AtomicBool::new(false),
        }
    }

    /// Passes the allocations of thread `number` on, and takes those of the thread before it. Returns true if all
    /// threads stop.
    fn exchange(&self, number: usize, slots: &mut Vec<Option<A>>, stage: &AtomicU8) -> bool {
        let set = |at: usize| self.sets[at % self.sets.len()].lock().expect("no thread panics with a set");
        std::mem::swap(&mut *set(number + 1), slots);
        if self.barrier.wait().is_leader() {
            self.stops.store(stage.load(Ordering::Relaxed) == STOP, Ordering::Relaxed);
        }
        std::mem::swap(&mut *set(number), slots);
        self.barrier.wait();
        self.stops.load(Ordering::Relaxed)
    }
}

/// The result of one thread.
struct ThreadResult<A> {
    pairs: u64,
    from: Tick,
    to: Tick,
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

/// Runs the plan with a peer. `None` if it does not support threads.
pub(crate) fn threads(
    plan: ThreadsPlan,
    driver: &Driver,
    kind: PeerKind,
) -> Result<Option<ThreadFigures>, String> {
    struct ThreadsRun<'a>(ThreadsPlan, &'a TestGpu);

    impl VisitShared for ThreadsRun<'_> {
        type Output = Result<ThreadFigures, String>;

        fn visit<P: SharedPeer>(self, peer: P) -> Self::Output {
            run(self.0, peer, self.1)
        }
    }
    let gpu = TestGpu::new(driver, Some(1))?;
    let said = |error| format!("{} threads, {}: {error}", plan.threads, kind.title());
    let ran = peers::make_shared(kind, &gpu, ThreadsRun(plan, &gpu)).map_err(said)?;
    let Some(ran) = ran else { return Ok(None) };
    let figures = ran.map_err(said)?;
    gpu.finish().map_err(said)?;
    Ok(Some(figures))
}

fn run<P: SharedPeer>(plan: ThreadsPlan, peer: P, gpu: &TestGpu) -> Result<ThreadFigures, String> {
    let scripts: Vec<Thread> = (0..plan.threads).map(|number| plan.thread(number)).collect();
    let live: u64 = scripts.iter().flat_map(|thread| &thread.fill).map(|request| request.size).sum();
    let mut rings: Vec<Ring<P::Allocation>> = (0..plan.threads).map(|_| Ring::new(ON_THE_WAY)).collect();
    let (producers, mut consumers): (Vec<_>, Vec<_>) = rings.iter_mut().map(Ring::ends).unzip();
    // Each thread receives from the previous one.
    consumers.rotate_right(1);
    let stage = AtomicU8::new(WARM_UP);
    let barrier = Barrier::new(plan.threads + 1);
    let exchanges = Exchanges::new(plan.threads);
    let done: Vec<ThreadResult<P::Allocation>> = std::thread::scope(|scope| {
        let ends = producers.into_iter().zip(consumers);
        let handles: Vec<_> = scripts
            .iter()
            .zip(ends)
            .enumerate()
            .map(|(number, (thread, (producer, consumer)))| {
                let (peer, stage, barrier, exchanges) = (&peer, &stage, &barrier, &exchanges);
                let exchange = (plan.freed_by == FreedBy::Neighbour).then_some((producer, consumer));
                let exchanges = (plan.freed_by == FreedBy::Anyone).then_some((number, exchanges));
                scope.spawn(move || work(peer, thread, exchange, exchanges, stage, barrier))
            })
            .collect();
        barrier.wait();
        std::thread::sleep(plan.warm_up);
        stage.store(MEASURE, Ordering::Relaxed);
        std::thread::sleep(plan.duration);
        stage.store(STOP, Ordering::Relaxed);
        barrier.wait();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| handle.join();
        handles.into_iter().map(join).collect::<Result<_, _>>().map_err(|_| "a thread panicked".to_owned())
    })?;
    drop(rings);
    let reserved = gpu.counters().peak();
    let clock = TickClock::get();
    let pairs: u64 = done.iter().map(|thread| thread.pairs).sum();
    let rate: f64 =
        done.iter().map(|thread| thread.pairs as f64 / clock.between(thread.from, thread.to)).sum();
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
    // Pairs per nanosecond times 1,000 are million pairs per second.
    Ok(ThreadFigures { throughput: rate * 1_000.0, reserved, live })
}

fn work<P: SharedPeer>(
    peer: &P,
    thread: &Thread,
    exchange: Option<Exchange<'_, P::Allocation>>,
    exchanges: Option<(usize, &Exchanges<P::Allocation>)>,
    stage: &AtomicU8,
    barrier: &Barrier,
) -> ThreadResult<P::Allocation> {
    let mut slots: Vec<_> = thread.fill.iter().map(|request| peer.allocate(request)).collect();
    let mut refused = slots.iter().filter(|slot| slot.is_none()).count() as u64;
    barrier.wait();
    let (mut pairs, mut from) = (0, clock::now());
    let mut at = 0;
    let mut seen = WARM_UP;
    let mut exchange = exchange;
    loop {
        let now = stage.load(Ordering::Relaxed);
        // Threads that exchange their allocations stop together, below.
        if now == STOP && exchanges.is_none() {
            break;
        }
        if now == MEASURE && seen == WARM_UP {
            (seen, pairs, from) = (now, 0, clock::now());
        }
        let batch = &thread.list[at..at + BATCH];
        at = (at + BATCH) % LIST;
        refused += match &mut exchange {
            None => own(peer, &mut slots, batch),
            Some((producer, consumer)) => handed(peer, &mut slots, batch, producer, consumer, stage),
        };
        pairs += BATCH as u64;
        if let Some((number, exchanges)) = exchanges {
            if at % UNTIL_EXCHANGE == 0 && exchanges.exchange(number, &mut slots, stage) {
                break;
            }
        }
    }
    let to = clock::now();
    // No thread hands over allocations any more.
    barrier.wait();
    if let Some((_, consumer)) = &mut exchange {
        while let Some(allocation) = consumer.pop() {
            peer.free(allocation);
        }
    }
    ThreadResult { pairs, from, to, refused, left: slots }
}

#[inline]
fn own<P: SharedPeer>(peer: &P, slots: &mut [Option<P::Allocation>], batch: &[(usize, PeerRequest)]) -> u64 {
    let mut refused = 0;
    for (slot, request) in batch {
        if let Some(allocation) = slots[*slot].take() {
            peer.free(allocation);
        }
        let allocation = peer.allocate(request);
        refused += u64::from(allocation.is_none());
        slots[*slot] = allocation;
    }
    refused
}

#[inline]
fn handed<P: SharedPeer>(
    peer: &P,
    slots: &mut [Option<P::Allocation>],
    batch: &[(usize, PeerRequest)],
    producer: &mut Producer<'_, P::Allocation>,
    consumer: &mut Consumer<'_, P::Allocation>,
    stage: &AtomicU8,
) -> u64 {
    let mut refused = 0;
    for (number, (slot, request)) in batch.iter().enumerate() {
        if let Some(allocation) = slots[*slot].take() {
            if number % OWN == 0 {
                peer.free(allocation);
            } else {
                hand_over(peer, allocation, producer, consumer, stage);
            }
        }
        let allocation = peer.allocate(request);
        refused += u64::from(allocation.is_none());
        slots[*slot] = allocation;
        if let Some(allocation) = consumer.pop() {
            peer.free(allocation);
        }
    }
    refused
}

fn hand_over<P: SharedPeer>(
    peer: &P,
    allocation: P::Allocation,
    producer: &mut Producer<'_, P::Allocation>,
    consumer: &mut Consumer<'_, P::Allocation>,
    stage: &AtomicU8,
) {
    let mut given = producer.push(allocation);
    while let Err(back) = given {
        if stage.load(Ordering::Relaxed) == STOP {
            peer.free(back);
            return;
        }
        // The other thread waits for its own neighbour, or is not running. Do some own work, then yield.
        match consumer.pop() {
            Some(other) => peer.free(other),
            None => std::thread::yield_now(),
        }
        given = producer.push(back);
    }
}
