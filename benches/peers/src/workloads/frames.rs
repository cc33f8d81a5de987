//! A program that grows over many frames, stays, shrinks and idles, with work for the GPU in each frame.

use std::time::Duration;

use crate::clock::{self, TickClock};
use crate::gpu::TestGpu;
use crate::gpu_work::GpuWork;
use crate::peers::{self, Peer, PeerKind, PeerMode, PeerSetup, Visit};
use crate::script::{PeerRequest, PeerRequestKind, Random};
use crate::statistics::Percentiles;

/// The size of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramesScale {
    /// Bytes of device-local and of host-visible buffers at the peak.
    pub(crate) peak: [u64; 2],
    /// Frames in which it grows. It shrinks in as many.
    pub(crate) frames: u64,
    /// Duration of the GPU's work in each frame of a real driver.
    pub(crate) work: Duration,
    pub(crate) seed: u64,
}

/// Latencies of the parts of a frame, in nanoseconds, and the driver calls of the whole run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FramesFound {
    pub(crate) frame: Percentiles,
    pub(crate) create: Percentiles,
    pub(crate) destroy: Percentiles,
    pub(crate) submit: Percentiles,
    pub(crate) maintain: Percentiles,
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) peak: u64,
    /// Bytes that were reserved at the end, with nothing in use.
    pub(crate) left: u64,
}

/// Runs the program on a peer. `None` if the peer creates no buffers.
pub(crate) fn frames(
    gpu: &TestGpu,
    kind: PeerKind,
    maintained: bool,
    scale: FramesScale,
) -> Result<Option<FramesFound>, String> {
    struct FramesRun<'a>(&'a TestGpu, FramesScale);

    impl Visit for FramesRun<'_> {
        type Output = Result<FramesFound, String>;

        fn visit<P: Peer + 'static>(self, peer: P) -> Self::Output {
            run(self.0, self.1, peer)
        }
    }
    let shape = if maintained { PeerMode::Maintained } else { PeerMode::Created };
    let setup = PeerSetup { gpu, shape, count_heap: false };
    peers::make(kind, setup, FramesRun(gpu, scale))?.transpose()
}

/// The buffers of one frame.
fn requests(random: &mut Random, left: &mut [u64; 2]) -> Vec<(usize, PeerRequest)> {
    let mut requests = Vec::new();
    for (at, left) in left.iter_mut().enumerate() {
        let kind = [PeerRequestKind::Buffer, PeerRequestKind::Upload][at];
        while *left > 0 {
            let size = random.log_uniform(16, 22).min(*left).max(256);
            *left = left.saturating_sub(size);
            requests.push((at, PeerRequest { size, alignment: 1, kind }));
        }
    }
    requests
}

fn run<P: Peer>(gpu: &TestGpu, scale: FramesScale, mut peer: P) -> Result<FramesFound, String> {
    let work = if gpu.is_real() { Some(GpuWork::new(gpu, scale.work)?) } else { None };
    let said = |error| format!("a frame: {error}");
    let counters = gpu.counters();
    let (before, reserved) = (counters.calls(), counters.reserved());
    let clock = TickClock::get();
    let mut random = Random::new(scale.seed);
    let mut held: [Vec<(u64, P::Allocation)>; 2] = [Vec::new(), Vec::new()];
    let mut bytes = [0; 2];
    let (mut frame, mut create, mut destroy) = (Vec::new(), Vec::new(), Vec::new());
    let (mut submit, mut maintain) = (Vec::new(), Vec::new());
    let (mut refused, mut peak) = (0, 0);
    let steady = scale.frames / 4;
    for at in 0..2 * scale.frames + 2 * steady {
        // The frames of growth that this size corresponds to; the peak has `scale.frames`.
        let level = match at {
            at if at < scale.frames => at + 1,
            at if at < scale.frames + steady => scale.frames,
            at => (2 * scale.frames + steady).saturating_sub(at + 1),
        };
        let target = scale.peak.map(|peak| peak / scale.frames.max(1) * level);
        let mut left = [0, 1].map(|kind| target[kind].saturating_sub(bytes[kind]));
        // A few buffers also come and go in each frame.
        let passing = if level > 0 { requests(&mut random, &mut [1 << 20, 1 << 18]) } else { Vec::new() };
        let made = requests(&mut random, &mut left);
        let start = clock::now();
        let mut passed = Vec::new();
        for (list, (kind, request)) in
            made.iter().map(|it| (true, it)).chain(passing.iter().map(|it| (false, it)))
        {
            let from = clock::now();
            let allocation = peer.allocate(request);
            create.push(clock.single(from, clock::now()) as f32);
            match allocation {
                Some(allocation) if list => {
                    bytes[*kind] += request.size;
                    held[*kind].push((request.size, allocation));
                }
                Some(allocation) => passed.push(allocation),
                None => refused += 1,
            }
        }
        let mut gone = passed;
        for kind in [0, 1] {
            while bytes[kind] > target[kind] {
                // The oldest are as likely to go as the newest.
                let at = random.below(held[kind].len() as u64) as usize;
                let (size, allocation) = held[kind].swap_remove(at);
                bytes[kind] -= size;
                gone.push(allocation);
            }
        }
        for allocation in gone {
            let from = clock::now();
            peer.free(allocation);
            destroy.push(clock.single(from, clock::now()) as f32);
        }
        let from = clock::now();
        work.as_ref().map_or(Ok(()), GpuWork::submit).map_err(said)?;
        let between = clock::now();
        submit.push(clock.single(from, between) as f32);
        peer.end_frame();
        maintain.push(clock.single(between, clock::now()) as f32);
        work.as_ref().map_or(Ok(()), GpuWork::wait).map_err(said)?;
        frame.push(clock.single(start, clock::now()) as f32);
        peak = counters.reserved().saturating_sub(reserved).max(peak);
    }
    let left = counters.reserved().saturating_sub(reserved);
    let calls = counters.calls();
    held.into_iter().flatten().for_each(|(_, allocation)| peer.free(allocation));
    drop(work);
    peer.finish()?;
    if refused > 0 {
        return Err(format!("{refused} buffers were refused"));
    }
    let of = |mut samples: Vec<f32>| Percentiles::of(&mut samples).unwrap_or_default();
    Ok(FramesFound {
        frame: of(frame),
        create: of(create),
        destroy: of(destroy),
        submit: of(submit),
        maintain: of(maintain),
        allocations: calls.allocations - before.allocations,
        frees: calls.frees - before.frees,
        peak,
        left,
    })
}
