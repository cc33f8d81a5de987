//! Descriptor sets: persistent ones with random replacement, and those of frames.

use super::Scale;
use crate::clock::{self, TickClock};
use crate::gpu::{Driver, TestGpu};
use crate::peers::sets::{
    Bucketed, FramePeer, GpuDescriptor, LAYOUTS, PeerLayouts, PerFrame, Persistent, RawFrames, RawFree,
    SetPeer, Transient,
};
use crate::script::Random;
use crate::statistics::median;

/// Sets per frame.
const OF_A_FRAME: usize = 300;

/// The allocators that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Giver {
    Persistent,
    Transient,
    GpuDescriptor,
    Bucketed,
    Driver,
}

impl Giver {
    pub(crate) const ALL: [Self; 5] =
        [Self::Persistent, Self::Transient, Self::GpuDescriptor, Self::Bucketed, Self::Driver];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Persistent => "Sublet",
            Self::Transient => "Sublet transient",
            Self::GpuDescriptor => "gpu-descriptor",
            Self::Bucketed => "wgpu-hal's way",
            Self::Driver => "driver",
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescriptorRow {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    kind: DescriptorRowKind,
}

#[derive(Clone, Copy, Debug)]
enum DescriptorRowKind {
    /// Replaces sets, with this many live.
    Churn(usize),
    Frames,
}

pub(crate) const ROWS: [DescriptorRow; 3] = [
    DescriptorRow {
        id: "sets-churn-1k",
        title: "1,000 live, one replaced",
        kind: DescriptorRowKind::Churn(1_000),
    },
    DescriptorRow {
        id: "sets-churn-10k",
        title: "10,000 live, one replaced",
        kind: DescriptorRowKind::Churn(10_000),
    },
    DescriptorRow {
        id: "sets-frames",
        title: "frames of 300 sets, three in flight",
        kind: DescriptorRowKind::Frames,
    },
];

/// Returns the nanoseconds of one allocator for each set of a row. `None` if it does not take part.
pub(crate) fn sets(
    row: &DescriptorRow,
    giver: Giver,
    driver: &Driver,
    scale: &Scale,
    rounds: u64,
) -> Result<Option<f64>, String> {
    let gpu = TestGpu::new(driver, Some(1))?;
    let said = |error: String| format!("{}, {}: {error}", row.id, giver.title());
    let found = with_layouts(row, giver, &gpu, scale, rounds).map_err(said)?;
    gpu.finish().map_err(said)?;
    Ok(found)
}

fn with_layouts(
    row: &DescriptorRow,
    giver: Giver,
    gpu: &TestGpu,
    scale: &Scale,
    rounds: u64,
) -> Result<Option<f64>, String> {
    let layouts = PeerLayouts::new(gpu)?;
    let no_pool = || "no pool was made".to_owned();
    let run = DescriptorRun { scale, rounds };
    let found = match row.kind {
        DescriptorRowKind::Churn(live) => {
            let live = scale.live(live);
            match giver {
                Giver::Persistent => run.churn(live, Persistent::new(&layouts)?),
                Giver::GpuDescriptor => run.churn(live, GpuDescriptor::new(&layouts)),
                Giver::Bucketed => run.churn(live, Bucketed::new(&layouts)),
                Giver::Driver => {
                    run.churn(live, RawFree::new(&layouts, live as u32 + 1).ok_or_else(no_pool)?)
                }
                Giver::Transient => return Ok(None),
            }
        }
        DescriptorRowKind::Frames => match giver {
            Giver::Persistent => run.frames(PerFrame::new(Persistent::new(&layouts)?)),
            Giver::Transient => run.frames(Transient::new(&layouts)?),
            Giver::GpuDescriptor => run.frames(PerFrame::new(GpuDescriptor::new(&layouts))),
            Giver::Bucketed => run.frames(PerFrame::new(Bucketed::new(&layouts))),
            Giver::Driver => run.frames(RawFrames::new(&layouts, OF_A_FRAME as u32).ok_or_else(no_pool)?),
        },
    };
    found.map(Some)
}

struct DescriptorRun<'a> {
    scale: &'a Scale,
    rounds: u64,
}

impl DescriptorRun<'_> {
    fn churn<P: SetPeer>(&self, live: usize, mut peer: P) -> Result<f64, String> {
        let mut held: Vec<Option<P::Set>> = (0..live).map(|at| peer.allocate(at % LAYOUTS)).collect();
        let mut times = Vec::new();
        // The first round is the warm-up.
        for round in 0..=self.rounds {
            let mut random = Random::new(self.scale.seed(2_000, round));
            let list: Vec<(usize, usize)> = (0..self.scale.pairs)
                .map(|_| (random.below(live as u64) as usize, random.below(LAYOUTS as u64) as usize))
                .collect();
            let before = clock::now();
            for &(place, layout) in &list {
                if let Some(set) = held[place].take() {
                    peer.free(set);
                }
                held[place] = peer.allocate(layout);
            }
            times.push(TickClock::get().between(before, clock::now()) / list.len() as f64);
        }
        let refused = held.iter().filter(|set| set.is_none()).count();
        held.into_iter().flatten().for_each(|set| peer.free(set));
        peer.finish()?;
        Self::figures(&times[1..], refused)
    }

    fn frames<P: FramePeer>(&self, mut peer: P) -> Result<f64, String> {
        let frames = (self.scale.pairs / OF_A_FRAME).max(4);
        let (mut times, mut refused) = (Vec::new(), 0);
        for round in 0..=self.rounds {
            let mut random = Random::new(self.scale.seed(2_001, round));
            let list: Vec<usize> = (0..OF_A_FRAME).map(|_| random.below(LAYOUTS as u64) as usize).collect();
            let before = clock::now();
            for _ in 0..frames {
                peer.begin();
                refused += list.iter().filter(|&&layout| !peer.allocate(layout)).count();
            }
            times.push(TickClock::get().between(before, clock::now()) / (frames * OF_A_FRAME) as f64);
        }
        peer.finish()?;
        Self::figures(&times[1..], refused)
    }

    fn figures(times: &[f64], refused: usize) -> Result<f64, String> {
        if refused != 0 {
            return Err(format!("{refused} sets were refused"));
        }
        median(times).ok_or_else(|| "nothing was measured".to_owned())
    }
}
