//! Decodes the payload of a chunk into records, and replaces places by numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::asked::{Allocate, AllocateFailed, Failure, GrantedMemory, Needs, Wanted};
use super::error::Damage;
use super::event::{AllocationNumber, DefragmentationNumber, Event, PoolNumber, Record, ScopeNumber};
use super::fields::{
    RecordedRequest, alignment, asked, kind, name, one_of, place, pool_place, pool_settings,
};
use super::read::nanoseconds;
use super::settings::{BeginDefragmentation, Existing, MoveOutcome, ScopeSettings};
use crate::defragment::DefragmentationAlgorithm;
use crate::operations::operations;
use crate::record::bytes::{Take, Wrong};
use crate::record::chunk::TimePoint;
use crate::record::encode::{Operation, THREAD};
use crate::record::raw::{Place, PoolPlace};
use sublet_engines::cast::narrow;

impl From<Wrong> for Damage {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::TooFew => Self::Overrun,
            Wrong::Number => Self::Value,
            Wrong::Text => Self::Text,
        }
    }
}

/// A live allocation.
#[derive(Clone, Copy, Debug)]
struct KnownAllocation {
    number: AllocationNumber,
    /// The index of its [`Existing`] record, if it has one.
    existing: Option<usize>,
}

/// A position in the decoding of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoint {
    records: usize,
    withdrawn: usize,
    unknown_events: u64,
}

/// The result of decoding a record.
enum DecodedRecord {
    Event(Event),
    Unknown,
    /// It adds no event: it retracts an earlier record, or repeats one.
    Withdrawal,
}

impl From<Option<Event>> for DecodedRecord {
    fn from(event: Option<Event>) -> Self {
        event.map_or(Self::Unknown, Self::Event)
    }
}

/// The state of the decoder.
#[derive(Debug)]
pub(super) struct Decoder {
    records: Vec<Record>,
    /// The indices of retracted records, in any order.
    withdrawn: Vec<usize>,
    unknown_events: u64,
    allocations: BTreeMap<Place, KnownAllocation>,
    next_allocation: u32,
    pools: BTreeMap<PoolPlace, PoolNumber>,
    next_pool: u32,
    scopes: BTreeMap<u32, ScopeNumber>,
    next_scope: u32,
    /// The vectors of scopes, by scope.
    vectors: BTreeSet<(u32, PoolPlace)>,
    defragmentations: BTreeMap<u32, DefragmentationNumber>,
    next_defragmentation: u32,
    threads: BTreeMap<u32, u32>,
    /// The records of completed moves, by the new place of the allocation.
    completed: BTreeMap<Place, usize>,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            records: Vec::new(),
            withdrawn: Vec::new(),
            unknown_events: 0,
            allocations: BTreeMap::new(),
            next_allocation: 0,
            pools: BTreeMap::new(),
            next_pool: 0,
            scopes: BTreeMap::new(),
            next_scope: 0,
            vectors: BTreeSet::new(),
            defragmentations: BTreeMap::new(),
            next_defragmentation: 0,
            threads: BTreeMap::new(),
            completed: BTreeMap::new(),
        }
    }

    /// Returns the records, and the number of calls for unknown objects.
    pub(super) fn finish(mut self) -> (Vec<Record>, u64) {
        self.withdrawn.sort_unstable();
        self.withdrawn.dedup();
        let mut withdrawn = self.withdrawn.into_iter().peekable();
        let mut at = 0..;
        self.records.retain(|_| {
            let at = at.next();
            withdrawn.next_if(|&next| Some(next) == at).is_none()
        });
        (self.records, self.unknown_events)
    }

    /// Returns the current position, for [`Self::take_back`].
    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            records: self.records.len(),
            withdrawn: self.withdrawn.len(),
            unknown_events: self.unknown_events,
        }
    }

    /// Removes everything since the position. Afterwards, only [`Self::finish`] may be called.
    pub(super) fn take_back(&mut self, since: Checkpoint) {
        self.records.truncate(since.records);
        self.withdrawn.truncate(since.withdrawn);
        self.unknown_events = since.unknown_events;
    }

    /// Decodes one chunk. Returns its number of records. An error contains the position of the record in the payload.
    pub(super) fn calls(
        &mut self,
        payload: &[u8],
        before: TimePoint,
        after: TimePoint,
    ) -> Result<u64, (usize, Damage)> {
        let mut take = Take::new(payload);
        let mut ticks = before.ticks;
        let mut thread = None;
        let mut counted = 0;
        while !take.is_empty() {
            let at = take.at();
            let mut one = || -> Result<Option<Record>, Damage> {
                let operation = take.byte()?;
                if operation == THREAD {
                    let known = narrow(self.threads.len());
                    thread = Some(*self.threads.entry(take.small()?).or_insert(known));
                    return Ok(None);
                }
                ticks = ticks.saturating_add(take.number()?);
                let thread = thread.ok_or(Damage::NoThread)?;
                counted += 1;
                let time = Duration::from_nanos(nanoseconds(ticks, before, after));
                let operation = Operation::of_code(operation).ok_or(Damage::Operation { operation })?;
                match self.event(operation, &mut take)? {
                    DecodedRecord::Event(event) => Ok(Some(Record { time, thread, event })),
                    DecodedRecord::Unknown => {
                        self.unknown_events += 1;
                        Ok(None)
                    }
                    DecodedRecord::Withdrawal => Ok(None),
                }
            };
            let record = one().map_err(|damage| (at, damage))?;
            self.records.extend(record);
        }
        Ok(counted)
    }

    fn allocate_failed(&self, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
        let (resource, wanted) = self.meant(asked(take)?);
        let failure = Failure::of_number(take.byte()?);
        let failed = |wanted| AllocateFailed { resource, wanted, failure };
        Ok(wanted.map(|wanted| Event::AllocateFailed(Box::new(failed(wanted)))).into())
    }

    fn create_pool(&mut self, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
        let at = pool_place(take)?;
        let settings = Box::new(pool_settings(take)?);
        let pool = PoolNumber(self.next_pool);
        // The pool was created while the recording began, and has two records. The first one counts.
        if self.pools.contains_key(&at) {
            return Ok(DecodedRecord::Withdrawal);
        }
        self.pools.insert(at, pool);
        self.next_pool += 1;
        Ok(DecodedRecord::Event(Event::CreatePool { pool, settings }))
    }

    fn create_scope(&mut self, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
        let number = take.small()?;
        let settings =
            ScopeSettings { block_size: take.number()?, priority: take.float()?, name: name(take)? };
        let scope = ScopeNumber(self.next_scope);
        // Same as for pools.
        if self.scopes.contains_key(&number) {
            return Ok(DecodedRecord::Withdrawal);
        }
        self.scopes.insert(number, scope);
        self.next_scope += 1;
        Ok(DecodedRecord::Event(Event::CreateScope { scope, settings: Box::new(settings) }))
    }

    fn allocation(&self, at: Place) -> Option<AllocationNumber> {
        self.allocations.get(&at).map(|known| known.number)
    }

    fn freed(&mut self, at: Place) -> Option<AllocationNumber> {
        self.allocations.remove(&at).map(|known| known.number)
    }

    fn destroyed_pool(&mut self, at: PoolPlace) -> Option<PoolNumber> {
        self.forget(at);
        self.pools.remove(&at)
    }

    fn defragmentation(&self, number: u32) -> Option<DefragmentationNumber> {
        self.defragmentations.get(&number).copied()
    }

    /// Removes all allocations of a vector.
    fn forget(&mut self, PoolPlace { vector, generation }: PoolPlace) {
        let first = Place { vector, generation, shard: 0, dedicated: false, key: 0 };
        while let Some((&at, _)) = self.allocations.range(first..).next() {
            if (at.vector, at.generation) != (vector, generation) {
                return;
            }
            self.allocations.remove(&at);
        }
    }

    fn freed_scope(&mut self, number: u32) -> Option<ScopeNumber> {
        let first = (number, PoolPlace { vector: 0, generation: 0 });
        while let Some(&(scope, vector)) = self.vectors.range(first..).next() {
            if scope != number {
                break;
            }
            self.forget(vector);
            self.vectors.remove(&(scope, vector));
        }
        self.scopes.remove(&number)
    }

    /// Assigns a number to the allocation at a place.
    fn number(&mut self, at: Place, existing: Option<usize>) -> Result<AllocationNumber, Damage> {
        let number = match self.allocations.get(&at) {
            // It was allocated while the recording began, and has two records. The later one has more data.
            Some(&KnownAllocation { number, existing: Some(record) }) if existing.is_none() => {
                self.withdrawn.push(record);
                number
            }
            Some(_) => return Err(Damage::Twice),
            None => {
                let number = AllocationNumber(self.next_allocation);
                self.next_allocation = self.next_allocation.checked_add(1).ok_or(Damage::Value)?;
                number
            }
        };
        self.allocations.insert(at, KnownAllocation { number, existing });
        Ok(number)
    }

    fn existing(&mut self, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
        let at = place(take)?;
        let mut existing = Existing {
            allocation: AllocationNumber(0),
            memory_type: take.small()?,
            dedicated: at.dedicated,
            size: take.number()?,
            alignment: alignment(take)?,
            kind: kind(take.number()?)?,
            usage: take.small()?,
            pool: None,
            scope: None,
            user_data: None,
            name: None,
        };
        let vector = PoolPlace { vector: at.vector, generation: at.generation };
        existing.pool = self.pools.get(&vector).copied();
        if let Some(scope) = take.optional()? {
            let scope = u32::try_from(scope).map_err(|_| Damage::Value)?;
            existing.scope = self.scopes.get(&scope).copied();
            self.vectors.insert((scope, vector));
        }
        existing.user_data = take.optional()?;
        existing.name = name(take)?;
        existing.allocation = self.number(at, Some(self.records.len()))?;
        Ok(DecodedRecord::Event(Event::Existing(Box::new(existing))))
    }

    fn allocate(&mut self, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
        let asked = asked(take)?;
        let scope = asked.scope;
        let (resource, wanted) = self.meant(asked);
        let memory_type = take.small()?;
        let at = place(take)?;
        let Some(wanted) = wanted else { return Ok(DecodedRecord::Unknown) };
        if let Some(scope) = scope {
            self.vectors.insert((scope, PoolPlace { vector: at.vector, generation: at.generation }));
        }
        let granted = GrantedMemory { memory_type, dedicated: at.dedicated };
        let allocation = self.number(at, None)?;
        Ok(DecodedRecord::Event(Event::Allocate(Box::new(Allocate {
            allocation,
            resource,
            wanted,
            granted,
        }))))
    }

    /// Resolves pool and scope of a request; `None` if one of them is unknown.
    fn meant(&self, asked: RecordedRequest) -> (Needs, Option<Wanted>) {
        let mut wanted = asked.wanted;
        let mut is_known = true;
        if let Some(pool) = asked.pool {
            wanted.pool = self.pools.get(&pool).copied();
            is_known = wanted.pool.is_some();
        }
        if let Some(scope) = asked.scope {
            wanted.scope = self.scopes.get(&scope).copied();
            is_known &= wanted.scope.is_some();
        }
        (asked.needs, is_known.then_some(wanted))
    }

    fn begin_defragmentation(&mut self, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
        let raw = take.small()?;
        let mut begin = BeginDefragmentation {
            algorithm: one_of(&DefragmentationAlgorithm::ALL, take.number()?)?,
            memory_type_bits: take.small()?,
            max_bytes_per_pass: take.number()?,
            max_allocations_per_pass: take.small()?,
            max_time_per_pass: take.optional()?.map(Duration::from_nanos),
            ..BeginDefragmentation::new(DefragmentationNumber(self.next_defragmentation))
        };
        let pools = take.list(pool_place)?;
        // An unknown pool was destroyed before.
        begin.pools = pools.iter().filter_map(|pool| self.pools.get(pool).copied()).collect();
        if self.defragmentations.insert(raw, begin.defragmentation).is_some() {
            return Err(Damage::Twice);
        }
        self.next_defragmentation += 1;
        Ok(DecodedRecord::Event(Event::BeginDefragmentation(Box::new(begin))))
    }

    fn moved(&mut self, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
        let defragmentation = self.defragmentation(take.small()?);
        let source = place(take)?;
        let outcome = match take.byte()? {
            0 => {
                let destination = place(take)?;
                if let Some(known) = self.allocations.remove(&source) {
                    self.allocations.insert(destination, known);
                    if let Some(defragmentation) = defragmentation {
                        self.completed.insert(destination, self.records.len());
                        let (allocation, outcome) = (known.number, MoveOutcome::Completed);
                        return Ok(DecodedRecord::Event(Event::Move {
                            defragmentation,
                            allocation,
                            outcome,
                        }));
                    }
                }
                return Ok(DecodedRecord::Unknown);
            }
            1 => MoveOutcome::Ignored,
            2 => MoveOutcome::Freed,
            3 => MoveOutcome::RolledBack,
            4 => {
                let destination = place(take)?;
                if let Some(known) = self.allocations.remove(&destination) {
                    self.allocations.insert(source, known);
                }
                self.withdrawn.extend(self.completed.remove(&destination));
                return Ok(DecodedRecord::Withdrawal);
            }
            _ => return Err(Damage::Value),
        };
        let known = match outcome {
            MoveOutcome::Freed => self.allocations.remove(&source),
            _ => self.allocations.get(&source).copied(),
        };
        Ok(match (defragmentation, known) {
            (Some(defragmentation), Some(KnownAllocation { number: allocation, .. })) => {
                DecodedRecord::Event(Event::Move { defragmentation, allocation, outcome })
            }
            // The move is unknown, but the allocation was freed.
            (None, Some(KnownAllocation { number: allocation, .. })) if outcome == MoveOutcome::Freed => {
                DecodedRecord::Event(Event::Free { allocation })
            }
            _ => DecodedRecord::Unknown,
        })
    }
}

/// Resolves a field of a record; `None` if the object is unknown.
macro_rules! meaning {
    (allocation $decoder:ident $take:ident) => {
        $decoder.allocation(place($take)?)
    };
    (freed $decoder:ident $take:ident) => {
        $decoder.freed(place($take)?)
    };
    (pool $decoder:ident $take:ident) => {
        $decoder.pools.get(&pool_place($take)?).copied()
    };
    (destroyed_pool $decoder:ident $take:ident) => {
        $decoder.destroyed_pool(pool_place($take)?)
    };
    (freed_scope $decoder:ident $take:ident) => {
        $decoder.freed_scope($take.small()?)
    };
    (defragmentation $decoder:ident $take:ident) => {
        $decoder.defragmentation($take.small()?)
    };
    (ended_defragmentation $decoder:ident $take:ident) => {
        $decoder.defragmentations.remove(&$take.small()?)
    };
    (small $decoder:ident $take:ident) => {
        Some($take.small()?)
    };
    (long $decoder:ident $take:ident) => {
        Some($take.number()?)
    };
    (size $decoder:ident $take:ident) => {
        Some($take.number()?.wrapping_sub(1))
    };
    (float $decoder:ident $take:ident) => {
        Some($take.float()?)
    };
    (text $decoder:ident $take:ident) => {
        Some(name($take)?)
    };
}

macro_rules! event_reader {
    (
        { $($other:tt)* }
        { $(
            $(#[$doc:meta])* $name:ident $code:literal $word:literal
            $({ $($(#[$field_doc:meta])* $field:ident: $kind:ident,)* })?;
        )* }
        { $($(#[$foreign_doc:meta])* $foreign:ident $foreign_code:literal $foreign_word:literal $({ $($foreign_fields:tt)* })?;)* }
    ) => {
        impl Decoder {
            fn event(&mut self, operation: Operation, take: &mut Take<'_>) -> Result<DecodedRecord, Damage> {
                match operation {
                    Operation::Existing => self.existing(take),
                    Operation::Allocate => self.allocate(take),
                    Operation::AllocateFailed => self.allocate_failed(take),
                    Operation::CreatePool => self.create_pool(take),
                    Operation::CreateScope => self.create_scope(take),
                    Operation::BeginDefragmentation => self.begin_defragmentation(take),
                    Operation::Move => self.moved(take),
                    $(Operation::$name => {
                        // Reads all fields before it returns for an unknown one.
                        $($(let $field = meaning!($kind self take);)*
                        let ($(Some($field),)*) = ($($field,)*) else { return Ok(DecodedRecord::Unknown) };)?
                        Ok(DecodedRecord::Event(Event::$name $({ $($field),* })?))
                    })*
                    $(Operation::$foreign => Err(Damage::Operation { operation: operation.code() }),)*
                }
            }
        }
    };
}
operations!(event_reader);
