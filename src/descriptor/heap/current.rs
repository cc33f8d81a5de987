//! What a store is made of now, and what it was made of before it grew.
#![forbid(unsafe_code)]

use std::fmt;

use parking_lot::{Mutex, RwLock};

use crate::retire::{Clock, OtherClock, Retire, Ticket};

/// The parts of a store: those that are written and bound, and those that frames in flight may still see. A store that
/// never grows has no lock for them.
pub(super) enum Current<P> {
    Fixed(P),
    Growing(Box<Growing<P>>),
}

pub(super) struct Growing<P> {
    now: RwLock<P>,
    outgrown: Mutex<Outgrown<P>>,
}

struct Outgrown<P> {
    /// No ticket was named for these yet.
    unretired: Vec<P>,
    waiting: Retire<P>,
}

impl<P> Current<P> {
    pub(super) fn new(parts: P, may_grow: bool) -> Self {
        if !may_grow {
            return Self::Fixed(parts);
        }
        let outgrown = Outgrown { unretired: Vec::new(), waiting: Retire::new() };
        Self::Growing(Box::new(Growing { now: RwLock::new(parts), outgrown: Mutex::new(outgrown) }))
    }

    /// Looks at the parts as they are now. Nobody replaces them meanwhile.
    #[inline]
    pub(super) fn with<R>(&self, look: impl FnOnce(&P) -> R) -> R {
        match self {
            Self::Fixed(parts) => look(parts),
            Self::Growing(growing) => look(&growing.now.read()),
        }
    }

    /// Puts `next` in the place of the parts, once `copy` has brought over what they hold. Nobody looks at them
    /// meanwhile. `next` comes back if the host has no memory for the note of the old ones.
    pub(super) fn replace(&self, next: P, copy: impl FnOnce(&P, &P)) -> Result<(), P> {
        let Self::Growing(growing) = self else { return Err(next) };
        let mut outgrown = growing.outgrown.lock();
        if outgrown.unretired.try_reserve(1).is_err() {
            return Err(next);
        }
        let mut now = growing.now.write();
        copy(&now, &next);
        outgrown.unretired.push(std::mem::replace(&mut now, next));
        Ok(())
    }

    /// What was outgrown until now waits for the ticket. How many that is.
    pub(super) fn retire(&self, ticket: Ticket) -> usize {
        let Self::Growing(growing) = self else { return 0 };
        let Outgrown { unretired, waiting } = &mut *growing.outgrown.lock();
        let count = unretired.len();
        unretired.drain(..).for_each(|parts| waiting.push(ticket, parts));
        count
    }

    /// Hands out what waited for tickets that are done.
    pub(super) fn collect(&self, clock: &Clock, end: impl FnMut(P)) -> Result<usize, OtherClock> {
        let Self::Growing(growing) = self else { return Ok(0) };
        growing.outgrown.lock().waiting.collect(clock, end)
    }

    /// Hands out all parts there are.
    pub(super) fn into_each(self, mut end: impl FnMut(P)) {
        match self {
            Self::Fixed(parts) => end(parts),
            Self::Growing(growing) => {
                let Growing { now, outgrown } = *growing;
                let Outgrown { unretired, mut waiting } = outgrown.into_inner();
                end(now.into_inner());
                unretired.into_iter().chain(waiting.drain()).for_each(end);
            }
        }
    }
}

impl<P: fmt::Debug> fmt::Debug for Current<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|parts| parts.fmt(f))
    }
}
