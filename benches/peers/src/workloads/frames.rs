//! A program that grows over many frames, stays, shrinks and idles, with work for the GPU in each frame.

use std::time::{Duration, Instant};

use super::Scale;
use crate::cli::Options;
use crate::clock;
use crate::gpu::{Driver, TestGpu};
use crate::gpu_work::GpuWork;
use crate::peers::{self, Peer, PeerKind, PeerMode, Visit};
use crate::script::{PeerRequest, PeerRequestKind, Random};
use crate::statistics::{Percentiles, number};
use crate::table::AlignedTable;

/// The duration of the GPU's work in each frame of a real driver.
const WORK: Duration = Duration::from_millis(4);

/// The size of the program.
#[derive(Clone, Copy, Debug)]
struct FramesScale {
    /// Bytes of device-local and of host-visible buffers at the peak. With none, no frame allocates anything.
    peak: [u64; 2],
    /// Frames in which it grows. It shrinks in as many.
    frames: u64,
    seed: u64,
}

/// Latencies of the parts of frames, in nanoseconds, and the driver calls of the whole run.
#[derive(Clone, Debug, Default)]
struct FramesFound {
    frame: Percentiles,
    create: Percentiles,
    destroy: Percentiles,
    maintain: Percentiles,
    allocations: u64,
    frees: u64,
    peak: u64,
    /// Bytes that were reserved after further frames, with nothing in use.
    left: u64,
}

/// Returns the table of frames.
pub(crate) fn table(
    driver: &Driver,
    options: &Options,
    scale: &Scale,
    tell: impl Fn(&str),
) -> Result<AlignedTable, String> {
    let device = (6144 / scale.smaller as u64).min(TestGpu::new(driver, None)?.largest_heap() >> 22);
    let frames = (600 / scale.smaller as u64).max(20);
    let scale = FramesScale { peak: [device << 20, (device << 20) / 6], frames, seed: options.seed };
    let mut table = AlignedTable::new(
        &format!("Frames of a program that grows to {device} MiB of device-local memory, and shrinks"),
        &format!(
            "Microseconds. A sixth as much is host-visible. The program grows for {frames} frames, and shrinks for \
             as many. On a real driver, each frame has {} ms of work for the GPU, and `maintain` follows its \
             submission. The last row allocates nothing. The bytes left are those after as many idle frames.",
            WORK.as_millis()
        ),
        [
            "",
            "frame p50",
            "p99.9",
            "worst",
            "create worst",
            "destroy worst",
            "`maintain` worst",
            "`vkAllocateMemory`",
            "`vkFreeMemory`",
            "peak MiB",
            "left MiB",
        ],
    );
    let none = FramesScale { peak: [0, 0], ..scale };
    let rows = [
        ("Sublet, with `maintain`", PeerKind::Sublet, PeerMode::Maintained, scale),
        ("Sublet", PeerKind::Sublet, PeerMode::Created, scale),
        ("VMA", PeerKind::Vma, PeerMode::Created, scale),
        ("gpu-allocator", PeerKind::GpuAllocator, PeerMode::Created, scale),
        ("no allocations", PeerKind::Sublet, PeerMode::Created, none),
    ];
    for (title, kind, shape, scale) in rows.into_iter().filter(|row| options.wants_peer(row.1)) {
        tell(&format!("frames: {title}"));
        let gpu = TestGpu::new(driver, None)?;
        let said = |error| format!("frames, {title}: {error}");
        let ran = peers::make(kind, &gpu, shape, FramesRun(&gpu, scale)).and_then(Option::transpose);
        let Some(found) = ran.map_err(said)? else { continue };
        gpu.finish().map_err(said)?;
        let FramesFound { frame, create, destroy, maintain, allocations, frees, peak, left } = found;
        let times = [frame.p50, frame.p999, frame.max, create.max, destroy.max, maintain.max];
        let times = times.map(|nanoseconds| number(nanoseconds / 1000.0));
        let counts = [allocations, frees, peak >> 20, left >> 20].map(|count| count.to_string());
        table.row([title.to_owned()].into_iter().chain(times).chain(counts));
    }
    Ok(table)
}

struct FramesRun<'a>(&'a TestGpu, FramesScale);

impl Visit for FramesRun<'_> {
    type Output = Result<FramesFound, String>;

    fn visit<P: Peer + 'static>(self, peer: P) -> Self::Output {
        run(self.0, self.1, peer)
    }
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

/// Returns the nanoseconds of a call.
fn timed<R>(samples: &mut Vec<f32>, call: impl FnOnce() -> R) -> R {
    let from = Instant::now();
    let result = call();
    samples.push(clock::single(from, Instant::now()) as f32);
    result
}

fn run<P: Peer>(gpu: &TestGpu, scale: FramesScale, mut peer: P) -> Result<FramesFound, String> {
    let work = if gpu.is_real() { Some(GpuWork::new(gpu, WORK)?) } else { None };
    let said = |error| format!("a frame: {error}");
    let counters = gpu.counters();
    let (before, reserved) = (counters.calls(), counters.reserved());
    let mut random = Random::new(scale.seed);
    let mut held: [Vec<(u64, P::Allocation)>; 2] = [Vec::new(), Vec::new()];
    let mut bytes = [0; 2];
    let (mut frame, mut create, mut destroy, mut maintain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut refused, mut peak) = (0, 0);
    // The first blocks are created while the program loads.
    for kind in [PeerRequestKind::Buffer, PeerRequestKind::Upload] {
        let first = peer.allocate(&PeerRequest { size: 256, alignment: 1, kind });
        first.into_iter().for_each(|it| peer.free(it));
    }
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
        let is_idle = level == 0 || scale.peak == [0, 0];
        let passing = requests(&mut random, &mut if is_idle { [0, 0] } else { [1 << 20, 1 << 18] });
        let made = requests(&mut random, &mut left);
        let start = Instant::now();
        let mut gone = Vec::new();
        for (stays, (kind, request)) in
            made.iter().map(|it| (true, it)).chain(passing.iter().map(|it| (false, it)))
        {
            match timed(&mut create, || peer.allocate(request)) {
                Some(allocation) if stays => {
                    bytes[*kind] += request.size;
                    held[*kind].push((request.size, allocation));
                }
                Some(allocation) => gone.push(allocation),
                None => refused += 1,
            }
        }
        for kind in [0, 1] {
            while bytes[kind] > target[kind] {
                // The oldest are as likely to go as the newest.
                let at = random.below(held[kind].len() as u64) as usize;
                let (size, allocation) = held[kind].swap_remove(at);
                bytes[kind] -= size;
                gone.push(allocation);
            }
        }
        gone.into_iter().for_each(|allocation| timed(&mut destroy, || peer.free(allocation)));
        work.as_ref().map_or(Ok(()), GpuWork::submit).map_err(said)?;
        timed(&mut maintain, || peer.end_frame());
        work.as_ref().map_or(Ok(()), GpuWork::wait).map_err(said)?;
        frame.push(clock::single(start, Instant::now()) as f32);
        peak = counters.reserved().saturating_sub(reserved).max(peak);
    }
    (0..scale.frames).for_each(|_| peer.end_frame());
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
        maintain: of(maintain),
        allocations: calls.allocations - before.allocations,
        frees: calls.frees - before.frees,
        peak,
        left,
    })
}
