//! Measures the effect of a slow `vkAllocateMemory` on threads that need no new memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Scale;
use crate::clock;
use crate::gpu::{Driver, TestGpu};
use crate::peers::{self, PeerKind, SharedPeer, VisitShared};
use crate::script::{PeerRequest, PeerRequestKind, Random};
use crate::statistics::Percentiles;

/// The delay of `vkAllocateMemory` on a driver that is not real.
pub(crate) const DELAY: Duration = Duration::from_millis(20);
/// Number of small allocations. Twice as many are made at first, and half of them freed, to leave gaps.
const LIVE: usize = 1_000;
/// Below the threshold for dedicated memory, but large enough that every few of them need a new block.
const LARGE: PeerRequest = PeerRequest { size: 48 << 20, alignment: 256, kind: PeerRequestKind::Memory };
/// Number of pairs after the other thread has entered `vkAllocateMemory`. A peer that waits for it therefore waits in
/// one of twice as many calls, at any speed.
const PAIRS: usize = 100;

struct GrowthRun<'a> {
    gpu: &'a TestGpu,
    seed: u64,
    times: u64,
}

impl VisitShared for GrowthRun<'_> {
    type Output = Result<Percentiles, String>;

    fn visit<P: SharedPeer>(self, peer: P) -> Self::Output {
        run(self.gpu, self.seed, self.times, peer)
    }
}

/// Measures single calls of one thread while another makes the allocator grow a number of times.
pub(crate) fn growth(
    driver: &Driver,
    kind: PeerKind,
    scale: &Scale,
    times: u64,
) -> Result<Percentiles, String> {
    let gpu = TestGpu::new(driver, Some(1))?;
    let visit = GrowthRun { gpu: &gpu, seed: scale.seed(1_000, 0), times };
    let ran = peers::make_shared(kind, &gpu, visit).and_then(|found| {
        let found = found?;
        gpu.finish()?;
        Ok(found)
    });
    ran.map_err(|error| format!("growth, {}: {error}", kind.title()))
}

fn small(random: &mut Random) -> PeerRequest {
    PeerRequest { size: 256 + random.below(3840), alignment: 256, kind: PeerRequestKind::Memory }
}

fn run<P: SharedPeer>(gpu: &TestGpu, seed: u64, times: u64, peer: P) -> Result<Percentiles, String> {
    let mut random = Random::new(seed);
    let mut slots: Vec<_> = (0..2 * LIVE).map(|_| peer.allocate(&small(&mut random))).collect();
    let extra = slots.split_off(LIVE);
    // Every second one, so that the gaps are separate.
    let mut between = extra.into_iter();
    for slot in slots.iter_mut().step_by(2) {
        let other = between.next().flatten();
        if let Some(allocation) = std::mem::replace(slot, other) {
            peer.free(allocation);
        }
    }
    between.flatten().for_each(|allocation| peer.free(allocation));
    let list: Vec<(usize, PeerRequest)> =
        (0..4 * LIVE).map(|_| (random.below(LIVE as u64) as usize, small(&mut random))).collect();
    gpu.slow(DELAY);
    // On a busy machine this thread may not run during the first calls.
    let (growing, sampled) = (AtomicBool::new(true), AtomicBool::new(false));
    let mut samples: Vec<f32> = Vec::new();
    let mut refused = 0;
    let mut list = list.iter().cycle();
    let mut entered = gpu.counters().entered();
    let (large, grown) = std::thread::scope(|scope| {
        let grower = scope.spawn(|| {
            let start = gpu.counters().allocations();
            let mut large = Vec::new();
            let mut refused = false;
            let is_done = || gpu.counters().allocations() >= start + times && sampled.load(Ordering::Relaxed);
            while !is_done() && !refused {
                let allocation = peer.allocate(&LARGE);
                refused = allocation.is_none();
                large.extend(allocation);
            }
            growing.store(false, Ordering::Relaxed);
            (large, gpu.counters().allocations() - start)
        });
        while growing.load(Ordering::Relaxed) {
            let now = gpu.counters().entered();
            if now == entered {
                std::thread::yield_now();
                continue;
            }
            entered = now;
            for (slot, request) in list.by_ref().take(PAIRS) {
                let allocation = slots[*slot].take();
                let before = Instant::now();
                if let Some(allocation) = allocation {
                    peer.free(allocation);
                }
                let between = Instant::now();
                let allocation = peer.allocate(request);
                let after = Instant::now();
                refused += u64::from(allocation.is_none());
                slots[*slot] = allocation;
                samples.push(clock::single(before, between) as f32);
                samples.push(clock::single(between, after) as f32);
            }
            sampled.store(true, Ordering::Relaxed);
        }
        grower.join().map_err(|_| "a thread panicked".to_owned())
    })?;
    gpu.slow(Duration::ZERO);
    slots.into_iter().flatten().chain(large).for_each(|allocation| peer.free(allocation));
    let left = peer.live().unwrap_or(0);
    peer.finish()?;
    if left > 0 || refused > 0 || grown < times {
        return Err(format!("grew {grown} of {times} times, {refused} were refused, {left} were left"));
    }
    Percentiles::of(&mut samples).ok_or_else(|| "no call was made".to_owned())
}
