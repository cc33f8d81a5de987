//! The current parts of a store, and the parts that it has outgrown.

use std::fmt;

use parking_lot::{Mutex, RwLock};

use super::super::events;
use super::create_info::CreateHeapError;
use sublet::retire::{ClockView, OtherClock, Retire, Ticket};

/// Implements the methods of [`HeapStore`](super::HeapStore) that are the same for all stores with current parts. The
/// first argument has the numbers of slots, the last one destroys parts.
macro_rules! of_current_parts {
    ($shape:ident, |$store:ident, $parts:ident| $destroy:expr) => {
        fn slots(&self) -> u32 {
            self.current.slots()
        }

        fn max_slots(&self) -> u32 {
            self.$shape.max_slots
        }

        fn transient(&self) -> u32 {
            self.$shape.transient
        }

        unsafe fn retire_outgrown(&self, ticket: sublet::retire::Ticket) -> usize {
            self.current.retire(ticket)
        }

        fn collect_outgrown(
            &self,
            clock: &sublet::retire::ClockView,
        ) -> Result<usize, sublet::retire::OtherClock> {
            let $store = self;
            // SAFETY: the ticket is done, and the caller of `retire_outgrown` promised that no later recording uses the
            // store.
            self.current.collect(clock, |$parts| unsafe { $destroy })
        }
    };
}
pub(super) use of_current_parts;

/// The parts of a store and their number of slots. `Growing` also keeps older parts that frames in flight may still
/// use. A store that never grows needs no lock.
pub(super) enum CurrentParts<P> {
    Fixed(P, u32),
    Growing(Box<Growing<P>>),
}

pub(super) struct Growing<P> {
    max_slots: u32,
    /// Held by the thread that grows the store; taken before `now` and `outgrown`, and held over driver calls.
    turn: Mutex<()>,
    /// Protects the current parts and their number of slots; taken before the locks in the parts. Written only to
    /// replace them, and held over driver calls that write or copy descriptors.
    now: RwLock<(P, u32)>,
    /// Protects the older parts; no lock is taken under it. Held while parts are destroyed.
    outgrown: Mutex<Outgrown<P>>,
}

struct Outgrown<P> {
    /// Parts without a ticket yet.
    unretired: Vec<P>,
    waiting: Retire<P>,
}

impl<P> CurrentParts<P> {
    pub(super) fn new(parts: P, slots: u32, max_slots: u32) -> Self {
        if slots == max_slots {
            return Self::Fixed(parts, slots);
        }
        let outgrown = Mutex::new(Outgrown { unretired: Vec::new(), waiting: Retire::new() });
        let (turn, now) = (Mutex::new(()), RwLock::new((parts, slots)));
        Self::Growing(Box::new(Growing { max_slots, turn, now, outgrown }))
    }

    /// Calls `look` with the current parts and their number of slots. They are not replaced meanwhile.
    #[inline]
    pub(super) fn with<R>(&self, look: impl FnOnce(&P, u32) -> R) -> R {
        match self {
            Self::Fixed(parts, slots) => look(parts, *slots),
            Self::Growing(growing) => {
                let (parts, slots) = &*growing.now.read();
                look(parts, *slots)
            }
        }
    }

    pub(super) fn slots(&self) -> u32 {
        self.with(|_, slots| slots)
    }

    /// Grows the parts to `slots`: calls `make`, and `copy` for the content of the existing slots. No other thread uses
    /// the parts while they are copied. Does nothing if there are enough slots already. The number of slots never
    /// decreases, because the heap has allocated them.
    pub(super) fn grow(
        &self,
        slots: u32,
        types: usize,
        make: impl FnOnce() -> Result<P, CreateHeapError>,
        copy: impl FnOnce(&P, &P, u32),
    ) -> Result<(), CreateHeapError> {
        let _turn = match self {
            Self::Fixed(..) => None,
            Self::Growing(growing) => Some(growing.turn.lock()),
        };
        if slots <= self.slots() {
            return Ok(());
        }
        let Self::Growing(growing) = self else { return Err(CreateHeapError::Fixed { slots }) };
        if slots > growing.max_slots {
            return Err(CreateHeapError::Fixed { slots });
        }
        // Reserved first, so that nothing has to be undone. No other thread adds an entry, because `turn` is held.
        let reserved = growing.outgrown.lock().unretired.try_reserve(1);
        reserved.map_err(|_| CreateHeapError::HostMemory { slots, types, copies: 1 })?;
        let next = make()?;
        let mut now = growing.now.write();
        copy(&now.0, &next, now.1);
        let (old, _) = std::mem::replace(&mut *now, (next, slots));
        drop(now);
        growing.outgrown.lock().unretired.push(old);
        Ok(())
    }

    /// Assigns the ticket to all outgrown parts that have none. Returns their number.
    pub(super) fn retire(&self, ticket: Ticket) -> usize {
        let Self::Growing(growing) = self else { return 0 };
        let Outgrown { unretired, waiting } = &mut *growing.outgrown.lock();
        let count = unretired.len();
        unretired.drain(..).for_each(|parts| waiting.push(ticket, parts));
        count
    }

    /// Hands out the parts whose tickets are done.
    pub(super) fn collect(&self, clock: &ClockView, end: impl FnMut(P)) -> Result<usize, OtherClock> {
        let Self::Growing(growing) = self else { return Ok(0) };
        events::after(|| growing.outgrown.lock().waiting.collect(clock, end))
    }

    /// Hands out all parts.
    pub(super) fn into_each(self, mut end: impl FnMut(P)) {
        match self {
            Self::Fixed(parts, _) => end(parts),
            Self::Growing(growing) => {
                let Growing { now, outgrown, .. } = *growing;
                let Outgrown { unretired, mut waiting } = outgrown.into_inner();
                end(now.into_inner().0);
                unretired.into_iter().chain(waiting.drain()).for_each(end);
            }
        }
    }
}

impl<P: fmt::Debug> fmt::Debug for CurrentParts<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|parts, slots| {
            f.debug_struct("CurrentParts").field("parts", parts).field("slots", &slots).finish()
        })
    }
}
