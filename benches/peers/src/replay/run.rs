//! Plays a script on a peer, and measures it.

use std::sync::Arc;

use super::gaps::{Gaps, Held};
use super::script::{Script, Step};
use crate::clock::{self, Clock, Stopwatch};
use crate::gpu::{Calls, Counters, Gpu};
use crate::peers::replay::{Plays, VisitPlayer};
use crate::statistics::Percentiles;

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Measures the total time, with nothing between the calls.
    Whole,
    /// Measures each call.
    Single,
    /// Measures driver memory.
    Memory,
}

/// The result of one run. Only the figures of its purpose are set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Nanoseconds.
    pub(crate) whole: f64,
    pub(crate) allocate: Option<Percentiles>,
    pub(crate) free: Option<Percentiles>,
    pub(crate) memory: Memory,
    /// Number of failed allocations.
    pub(crate) refused: u64,
}

/// Driver memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Maximum reserved bytes.
    pub(crate) reserved_peak: u64,
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
pub(crate) struct Player<'a> {
    pub(crate) script: &'a Script,
    pub(crate) purpose: Purpose,
    pub(crate) gpu: &'a Gpu,
}

impl VisitPlayer for Player<'_> {
    type Output = Result<Run, String>;

    fn visit<P: Plays>(self, mut peer: P) -> Self::Output {
        let mut slots: Vec<Option<P::Allocation>> = Vec::new();
        slots.resize_with(self.script.slots, || None);
        let run = match self.purpose {
            Purpose::Whole => self.whole(&mut peer, &mut slots),
            Purpose::Single => self.single(&mut peer, &mut slots),
            Purpose::Memory => self.memory(&mut peer, &mut slots),
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
fn play<P: Plays>(peer: &mut P, slots: &mut [Option<P::Allocation>], step: &Step) -> Result<bool, String> {
    match step {
        Step::Allocate(slot, ask) => {
            let allocation = peer.allocate(ask);
            let refused = allocation.is_none();
            slots[*slot as usize] = allocation;
            return Ok(refused);
        }
        Step::Free(slot) => {
            if let Some(allocation) = slots[*slot as usize].take() {
                peer.free(allocation);
            }
        }
        Step::Map(slot) => {
            if let Some(allocation) = &mut slots[*slot as usize] {
                if !peer.map(allocation) {
                    return Err("memory could not be mapped".to_owned());
                }
            }
        }
        Step::Unmap(slot) => {
            if let Some(allocation) = &mut slots[*slot as usize] {
                peer.unmap(allocation);
            }
        }
        Step::CreatePool(pool, settings) => peer.create_pool(*pool, settings)?,
        Step::DestroyPool(pool) => peer.destroy_pool(*pool),
        Step::Frame(index) => peer.frame(*index),
    }
    Ok(false)
}

impl Player<'_> {
    fn whole<P: Plays>(&self, peer: &mut P, slots: &mut [Option<P::Allocation>]) -> Result<Run, String> {
        let mut refused = 0;
        let stopwatch = Stopwatch::start();
        for step in &self.script.steps {
            refused += u64::from(play(peer, slots, step)?);
        }
        let whole = stopwatch.stop(self.gpu.is_real());
        Ok(Run { whole, refused, ..Run::default() })
    }

    fn single<P: Plays>(&self, peer: &mut P, slots: &mut [Option<P::Allocation>]) -> Result<Run, String> {
        let clock = Clock::get();
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
                Step::Allocate(..) => allocate.push(took),
                Step::Free(_) => free.push(took),
                _ => {}
            }
        }
        Ok(Run {
            allocate: Percentiles::of(&mut allocate),
            free: Percentiles::of(&mut free),
            refused,
            ..Run::default()
        })
    }

    fn memory<P: Plays>(&self, peer: &mut P, slots: &mut [Option<P::Allocation>]) -> Result<Run, String> {
        let counters: Arc<Counters> = Arc::clone(self.gpu.counters());
        let mut sizes = vec![0_u64; self.script.slots];
        let (mut memory, mut used, mut refused) = (Memory::default(), 0, 0);
        // The changes of slots in order, with the number of changes at the peak and the driver's objects at that time.
        let mut changes: Vec<(u32, Option<Held>)> = Vec::new();
        let (mut until, mut objects, mut calls) = (0, Vec::new(), Calls::default());
        for step in &self.script.steps {
            let was_refused = play(peer, slots, step)?;
            refused += u64::from(was_refused);
            let (slot, size) = match step {
                Step::Allocate(slot, ask) if !was_refused => (*slot, ask.size),
                Step::Allocate(slot, _) | Step::Free(slot) => (*slot, 0),
                _ => continue,
            };
            used = used + size - std::mem::replace(&mut sizes[slot as usize], size);
            memory.used_peak = memory.used_peak.max(used);
            let place = slots[slot as usize].as_ref().map(|allocation| peer.place(allocation));
            changes.push((slot, place.map(|place| Held { place, size })));
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
        memory.calls = counters.calls();
        let mut held = vec![None; self.script.slots];
        changes[..until].iter().for_each(|(slot, now)| held[*slot as usize] = *now);
        memory.gaps = Gaps::of(objects, held.into_iter().flatten().collect())?;
        Ok(Run { memory, refused, ..Run::default() })
    }
}
