//! Plays a script on a peer, and measures it.

use std::sync::Arc;

use super::cost::MemoryCost;
use super::gaps::{Gaps, PlacedAllocation};
use super::script::{Host, Script, ScriptStep};
use crate::clock::{self, Stopwatch, TickClock};
use crate::gpu::{Calls, Counters, TestGpu};
use crate::peers::replay::{Plays, VisitPlayer};
use crate::statistics::Percentiles;

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPurpose {
    /// Measures the total time, with nothing between the calls.
    Whole,
    /// Measures each call.
    Single,
    /// Measures driver memory.
    Memory,
}

/// The result of one run. Only the figures of its purpose are set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayRun {
    /// Nanoseconds.
    pub(crate) whole: f64,
    pub(crate) allocate: Option<Percentiles>,
    pub(crate) free: Option<Percentiles>,
    pub(crate) memory: MemoryFigures,
    /// Number of failed allocations.
    pub(crate) refused: u64,
}

/// Driver memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MemoryFigures {
    /// Maximum reserved bytes.
    pub(crate) reserved_peak: u64,
    /// Reserved bytes after everything was freed.
    pub(crate) reserved_end: u64,
    /// Modelled milliseconds of all calls of `vkAllocateMemory`, and of the longest.
    pub(crate) driver_time: f64,
    pub(crate) driver_longest: f64,
    /// The script's maximum of used bytes at that time.
    pub(crate) used_then: u64,
    /// The gaps between allocations at that time.
    pub(crate) gaps: Gaps,
    /// The script's overall maximum of used bytes.
    pub(crate) used_peak: u64,
    /// Maximum number of memory objects.
    pub(crate) blocks_peak: u64,
    pub(crate) calls: Calls,
}

/// A visitor that plays a script on a peer.
pub(crate) struct ScriptPlayer<'a> {
    pub(crate) script: &'a Script,
    pub(crate) purpose: RunPurpose,
    pub(crate) gpu: &'a TestGpu,
}

impl VisitPlayer for ScriptPlayer<'_> {
    type Output = Result<ReplayRun, String>;

    fn visit<P: Plays>(self, mut peer: P) -> Self::Output {
        let mut slots: Vec<Option<P::Allocation>> = Vec::new();
        slots.resize_with(self.script.slots, || None);
        let run = match self.purpose {
            RunPurpose::Whole => self.whole(&mut peer, &mut slots),
            RunPurpose::Single => self.single(&mut peer, &mut slots),
            RunPurpose::Memory => self.memory(&mut peer, &mut slots),
        }?;
        if slots.iter().any(Option::is_some) {
            return Err("the script left an allocation".to_owned());
        }
        peer.finish()?;
        Ok(run)
    }
}

/// Plays one step. Returns true for a failed allocation.
#[inline(always)]
fn play<P: Plays>(
    peer: &mut P,
    slots: &mut [Option<P::Allocation>],
    step: &ScriptStep,
) -> Result<bool, String> {
    match step {
        ScriptStep::Allocate(slot, ask) => {
            let allocation = peer.allocate(ask);
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
        ScriptStep::Frame(index) => peer.frame(*index),
    }
    Ok(false)
}

impl ScriptPlayer<'_> {
    fn whole<P: Plays>(
        &self,
        peer: &mut P,
        slots: &mut [Option<P::Allocation>],
    ) -> Result<ReplayRun, String> {
        let mut refused = 0;
        let stopwatch = Stopwatch::start();
        for step in &self.script.steps {
            refused += u64::from(play(peer, slots, step)?);
        }
        let whole = stopwatch.stop(self.gpu.is_real());
        Ok(ReplayRun { whole, refused, ..ReplayRun::default() })
    }

    fn single<P: Plays>(
        &self,
        peer: &mut P,
        slots: &mut [Option<P::Allocation>],
    ) -> Result<ReplayRun, String> {
        let clock = TickClock::get();
        let (mut allocate, mut free) = (Vec::new(), Vec::new());
        allocate.reserve(self.script.steps.len());
        free.reserve(self.script.steps.len());
        let mut refused = 0;
        for step in &self.script.steps {
            let from = clock::now();
            let was_refused = play(peer, slots, step)?;
            let took = clock.single(from, clock::now()) as f32;
            refused += u64::from(was_refused);
            match step {
                ScriptStep::Allocate(..) => allocate.push(took),
                ScriptStep::Free(_) => free.push(took),
                _ => {}
            }
        }
        Ok(ReplayRun {
            allocate: Percentiles::of(&mut allocate),
            free: Percentiles::of(&mut free),
            refused,
            ..ReplayRun::default()
        })
    }

    fn memory<P: Plays>(
        &self,
        peer: &mut P,
        slots: &mut [Option<P::Allocation>],
    ) -> Result<ReplayRun, String> {
        let counters: Arc<Counters> = Arc::clone(self.gpu.counters());
        let mut sizes = vec![0_u64; self.script.slots];
        let (mut memory, mut used, mut refused) = (MemoryFigures::default(), 0, 0);
        // The changes of slots in order, with the number of changes at the peak and the driver's objects at that time.
        let mut changes: Vec<(u32, Option<PlacedAllocation>)> = Vec::new();
        let (mut until, mut objects, mut calls) = (0, Vec::new(), Calls::default());
        let types = self.gpu.memory();
        let _ = counters.take_created();
        for step in &self.script.steps {
            let was_refused = play(peer, slots, step)?;
            refused += u64::from(was_refused);
            let host = match step {
                ScriptStep::Allocate(_, ask) => ask.host,
                _ => Host::Never,
            };
            for object in counters.take_created() {
                let time = MemoryCost::of(&types, object.memory_type, host).milliseconds(object.size);
                memory.driver_time += time;
                memory.driver_longest = memory.driver_longest.max(time);
            }
            let (slot, size) = match step {
                ScriptStep::Allocate(slot, ask) if !was_refused => (*slot, ask.size),
                ScriptStep::Allocate(slot, _) | ScriptStep::Free(slot) => (*slot, 0),
                _ => continue,
            };
            used = used + size - std::mem::replace(&mut sizes[slot as usize], size);
            memory.used_peak = memory.used_peak.max(used);
            let place = slots[slot as usize].as_ref().map(|allocation| peer.place(allocation));
            changes.push((slot, place.map(|place| PlacedAllocation { place, size })));
            let reserved = counters.reserved();
            if (reserved, used) > (memory.reserved_peak, memory.used_then) {
                (memory.reserved_peak, memory.used_then) = (reserved, used);
                until = changes.len();
                if calls != counters.calls() {
                    calls = counters.calls();
                    objects = counters.objects();
                }
            }
            memory.blocks_peak = memory.blocks_peak.max(counters.blocks());
        }
        memory.reserved_end = counters.reserved();
        memory.calls = counters.calls();
        let mut held = vec![None; self.script.slots];
        changes[..until].iter().for_each(|(slot, now)| held[*slot as usize] = *now);
        memory.gaps = Gaps::of(objects, held.into_iter().flatten().collect())?;
        Ok(ReplayRun { memory, refused, ..ReplayRun::default() })
    }
}
