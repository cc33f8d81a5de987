//! Plays a script on a peer, and measures it.

use super::cost::cost_of;
use super::script::{Host, Script, ScriptStep};
use crate::clock::Stopwatch;
use crate::gpu::{Calls, TestGpu};
use crate::peers::{VisitWhole, WholePeer};

/// The figures of one run: the time if it is timed, and otherwise the memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplayFigures {
    /// Nanoseconds of all calls.
    pub(crate) whole: f64,
    /// Number of failed allocations.
    pub(crate) refused: u64,
    /// Maximum reserved bytes.
    pub(crate) reserved_peak: u64,
    /// Reserved bytes after everything was freed.
    pub(crate) reserved_end: u64,
    /// Modelled milliseconds of all calls of `vkAllocateMemory`, and of the longest.
    pub(crate) driver_time: f64,
    pub(crate) driver_longest: f64,
    /// The script's maximum of used bytes at the peak of reserved bytes.
    pub(crate) used_then: u64,
    /// The script's overall maximum of used bytes.
    pub(crate) used_peak: u64,
    /// Maximum number of memory objects.
    pub(crate) blocks_peak: u64,
    pub(crate) calls: Calls,
}

/// A visitor that plays a script on a peer.
pub(crate) struct ScriptPlayer<'a> {
    pub(crate) script: &'a Script,
    /// Measures the time, with nothing between the calls.
    pub(crate) is_timed: bool,
    pub(crate) gpu: &'a TestGpu,
}

impl VisitWhole for ScriptPlayer<'_> {
    type Output = Result<ReplayFigures, String>;

    fn visit<P: WholePeer + 'static>(self, mut peer: P) -> Self::Output {
        let mut slots: Vec<Option<P::Allocation>> = Vec::new();
        slots.resize_with(self.script.slots, || None);
        let figures = if self.is_timed {
            self.time(&mut peer, &mut slots)?
        } else {
            self.memory(&mut peer, &mut slots)?
        };
        if slots.iter().any(Option::is_some) {
            return Err("the script left an allocation".to_owned());
        }
        peer.finish()?;
        Ok(figures)
    }
}

/// Plays one step. Returns true for a failed allocation.
#[inline(always)]
fn play<P: WholePeer>(
    peer: &mut P,
    slots: &mut [Option<P::Allocation>],
    step: &ScriptStep,
) -> Result<bool, String> {
    match step {
        ScriptStep::Allocate(slot, ask) => {
            let allocation = peer.play(ask);
            let refused = allocation.is_none();
            slots[*slot as usize] = allocation;
            return Ok(refused);
        }
        ScriptStep::Free(slot) => {
            if let Some(allocation) = slots[*slot as usize].take() {
                peer.free(allocation);
            }
        }
        ScriptStep::Map(slot) => {
            if let Some(allocation) = &mut slots[*slot as usize] {
                if !peer.map(allocation) {
                    return Err("memory could not be mapped".to_owned());
                }
            }
        }
        ScriptStep::Unmap(slot) => {
            if let Some(allocation) = &mut slots[*slot as usize] {
                peer.unmap(allocation);
            }
        }
        ScriptStep::CreatePool(pool, settings) => peer.create_pool(*pool, settings)?,
        ScriptStep::DestroyPool(pool) => peer.destroy_pool(*pool),
        ScriptStep::Frame(index) => peer.begin_frame(*index),
    }
    Ok(false)
}

impl ScriptPlayer<'_> {
    fn time<P: WholePeer>(
        &self,
        peer: &mut P,
        slots: &mut [Option<P::Allocation>],
    ) -> Result<ReplayFigures, String> {
        let stopwatch = Stopwatch::start();
        for step in &self.script.steps {
            play(peer, slots, step)?;
        }
        Ok(ReplayFigures { whole: stopwatch.stop(self.gpu.is_real()), ..ReplayFigures::default() })
    }

    fn memory<P: WholePeer>(
        &self,
        peer: &mut P,
        slots: &mut [Option<P::Allocation>],
    ) -> Result<ReplayFigures, String> {
        let counters = self.gpu.counters();
        let mut sizes = vec![0_u64; self.script.slots];
        let (mut found, mut used) = (ReplayFigures::default(), 0);
        let types = self.gpu.memory();
        let _ = counters.take_objects();
        for step in &self.script.steps {
            let was_refused = play(peer, slots, step)?;
            found.refused += u64::from(was_refused);
            let host = match step {
                ScriptStep::Allocate(_, ask) => ask.host,
                _ => Host::Never,
            };
            for object in counters.take_objects() {
                let time = cost_of(&types, object.memory_type, host).allocation(object.size);
                let time = time.as_secs_f64() * 1_000.0;
                found.driver_time += time;
                found.driver_longest = found.driver_longest.max(time);
            }
            let (slot, size) = match step {
                ScriptStep::Allocate(slot, ask) if !was_refused => (*slot, ask.size),
                ScriptStep::Allocate(slot, _) | ScriptStep::Free(slot) => (*slot, 0),
                _ => continue,
            };
            used = used + size - std::mem::replace(&mut sizes[slot as usize], size);
            found.used_peak = found.used_peak.max(used);
            let peak = (found.reserved_peak, found.used_then);
            (found.reserved_peak, found.used_then) = peak.max((counters.reserved(), used));
            found.blocks_peak = found.blocks_peak.max(counters.blocks());
        }
        found.reserved_end = counters.reserved();
        found.calls = counters.calls();
        Ok(found)
    }
}
