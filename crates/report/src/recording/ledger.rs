//! The live allocations at each moment of a recording.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{BYTES, CALLS, track_of};
use crate::cast::index;
use crate::chrome::{AsyncSlice, ChromeEvents, NoArguments, Time};
use crate::words::clean;
use sublet::ResourceKind;
use sublet::trace::{
    AllocationNumber, DefragmentationNumber, Event, MoveOutcome, PoolNumber, ScopeNumber, Trace,
};

/// A live allocation.
struct LedgerAllocation {
    size: u64,
    memory_type: u32,
    pool: Option<PoolNumber>,
    scope: Option<ScopeNumber>,
    name: String,
}

/// A sum of live bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ByteCounter {
    All,
    Heap(u32),
    MemoryType(u32),
    Pool(PoolNumber),
}

pub(super) struct Ledger<'a> {
    trace: &'a Trace,
    /// The first name of each named allocation.
    names: BTreeMap<AllocationNumber, &'a str>,
    pools: BTreeMap<PoolNumber, String>,
    live: BTreeMap<AllocationNumber, LedgerAllocation>,
    bytes: BTreeMap<ByteCounter, u64>,
    /// Counters to write when time advances.
    changed: BTreeSet<ByteCounter>,
    /// The time of the current values.
    now: u64,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let mut names = BTreeMap::new();
        for record in &trace.records {
            let (allocation, name) = match &record.event {
                Event::Existing(it) => (it.allocation, it.name.as_deref()),
                Event::Allocate(it) => (it.allocation, it.wanted.name.as_deref()),
                Event::SetName { allocation, name } => (*allocation, name.as_deref()),
                _ => continue,
            };
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                names.entry(allocation).or_insert(name);
            }
        }
        let (pools, live, bytes, changed) = Default::default();
        Self { trace, names, pools, live, bytes, changed, now: 0 }
    }

    /// Names the processes of this ledger.
    pub(super) fn introduce(&self, events: &mut ChromeEvents) {
        events.process(BYTES, "bytes of live allocations", 0);
        let mut types = BTreeSet::new();
        for record in &self.trace.records {
            match &record.event {
                Event::Existing(it) => types.insert(it.memory_type),
                Event::Allocate(it) => types.insert(it.granted.memory_type),
                _ => false,
            };
        }
        for memory_type in types {
            let known = self.trace.header.memory_types.get(index(memory_type));
            let about =
                known.map_or_else(String::new, |kind| format!(" ({:?}, heap {})", kind.flags, kind.heap));
            let pid = track_of(memory_type);
            events.process(pid, &format!("memory type {memory_type}{about}"), pid);
        }
    }

    /// Applies an event.
    pub(super) fn follow(&mut self, events: &mut ChromeEvents, now: u64, event: &Event) {
        if now > self.now {
            self.write(events);
            self.now = now;
        }
        match event {
            Event::Existing(it) => {
                let (pool, scope) = (it.pool, it.scope);
                let (size, memory_type) = (it.size, it.memory_type);
                let name = self.name_of(it.allocation, it.kind);
                let live = LedgerAllocation { size, memory_type, pool, scope, name };
                self.begin(events, it.allocation, live, (it.kind, it.dedicated));
            }
            Event::Allocate(it) => {
                let (pool, scope) = (it.wanted.pool, it.wanted.scope);
                let (size, memory_type) = (it.resource.size, it.granted.memory_type);
                let name = self.name_of(it.allocation, it.resource.kind);
                let live = LedgerAllocation { size, memory_type, pool, scope, name };
                self.begin(events, it.allocation, live, (it.resource.kind, it.granted.dedicated));
            }
            Event::Free { allocation } | Event::Move { allocation, outcome: MoveOutcome::Freed, .. } => {
                self.end(events, *allocation)
            }
            Event::DestroyPool { pool } => self.end_all(events, |live| live.pool == Some(*pool)),
            Event::FreeScope { scope } => self.end_all(events, |live| live.scope == Some(*scope)),
            Event::CreatePool { pool, settings } => {
                let name = settings.name.as_deref().map(clean);
                let name = name.map_or_else(String::new, |name| format!(" \u{201c}{name}\u{201d}"));
                // A new name would begin another counter, so the first one stays.
                self.pools.entry(*pool).or_insert(name);
            }
            Event::BeginDefragmentation(it) => {
                events.begin(Time::Nanos(now), &defragmentation(it.defragmentation), NoArguments {});
            }
            Event::EndDefragmentation { defragmentation: number } => {
                events.end(Time::Nanos(now), &defragmentation(*number));
            }
            _ => {}
        }
    }

    /// Ends all live allocations.
    pub(super) fn finish(&mut self, events: &mut ChromeEvents, now: u64) {
        self.write(events);
        self.now = now;
        for (allocation, live) in std::mem::take(&mut self.live) {
            events.end(Time::Nanos(now), &life(allocation, &live));
        }
    }

    fn name_of(&self, allocation: AllocationNumber, kind: ResourceKind) -> String {
        self.names.get(&allocation).map_or_else(|| kind.text().to_owned(), |name| clean(name))
    }

    fn begin(
        &mut self,
        events: &mut ChromeEvents,
        allocation: AllocationNumber,
        live: LedgerAllocation,
        (kind, dedicated): (ResourceKind, bool),
    ) {
        #[derive(Serialize)]
        struct LiveArguments<'a> {
            size: u64,
            kind: &'static str,
            dedicated: bool,
            number: u32,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pool: Option<u32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            scope: Option<u32>,
        }
        // A hand-made recording may reuse a number. The first allocation then ends.
        self.end(events, allocation);
        let arguments = LiveArguments {
            size: live.size,
            kind: kind.text(),
            dedicated,
            number: allocation.0,
            name: self.names.get(&allocation).copied(),
            pool: live.pool.map(|pool| pool.0),
            scope: live.scope.map(|scope| scope.0),
        };
        events.begin(Time::Nanos(self.now), &life(allocation, &live), arguments);
        self.count(&live, true);
        self.live.insert(allocation, live);
    }

    fn end(&mut self, events: &mut ChromeEvents, allocation: AllocationNumber) {
        if let Some(live) = self.live.remove(&allocation) {
            self.count(&live, false);
            events.end(Time::Nanos(self.now), &life(allocation, &live));
        }
    }

    fn end_all(&mut self, events: &mut ChromeEvents, ends: impl Fn(&LedgerAllocation) -> bool) {
        let ending: Vec<AllocationNumber> =
            self.live.iter().filter(|(_, live)| ends(live)).map(|(&number, _)| number).collect();
        ending.into_iter().for_each(|allocation| self.end(events, allocation));
    }

    fn count(&mut self, live: &LedgerAllocation, is_more: bool) {
        let heap = self
            .trace
            .header
            .memory_types
            .get(index(live.memory_type))
            .map(|kind| ByteCounter::Heap(kind.heap));
        let pool = live.pool.map(ByteCounter::Pool);
        let always = [Some(ByteCounter::All), Some(ByteCounter::MemoryType(live.memory_type)), heap, pool];
        for counter in always.into_iter().flatten() {
            let bytes = self.bytes.entry(counter.clone()).or_default();
            *bytes = if is_more { bytes.saturating_add(live.size) } else { bytes.saturating_sub(live.size) };
            self.changed.insert(counter);
        }
    }

    /// Writes the changed counters, once per point in time.
    fn write(&mut self, events: &mut ChromeEvents) {
        for counter in std::mem::take(&mut self.changed) {
            let name = match &counter {
                ByteCounter::All => "all".to_owned(),
                ByteCounter::Heap(heap) => format!("heap {heap}"),
                ByteCounter::MemoryType(memory_type) => format!("memory type {memory_type}"),
                ByteCounter::Pool(pool) => {
                    format!("pool {}{}", pool.0, self.pools.get(pool).map_or("", String::as_str))
                }
            };
            let bytes = self.bytes.get(&counter).copied().unwrap_or(0);
            events.counter(BYTES, Time::Nanos(self.now), &name, bytes);
        }
    }
}

fn life(allocation: AllocationNumber, live: &LedgerAllocation) -> AsyncSlice<'_> {
    let (pid, name) = (track_of(live.memory_type), &live.name);
    AsyncSlice { pid, cat: "allocation", name, number: allocation.0 }
}

fn defragmentation(number: DefragmentationNumber) -> AsyncSlice<'static> {
    AsyncSlice { pid: CALLS, cat: "defragmentation", name: "defragmentation", number: number.0 }
}
