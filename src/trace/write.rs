//! Encodes traces that no allocator recorded.

use std::collections::BTreeMap;

use super::asked::{GrantedMemory, Needs, Wanted};
use super::event::{AllocationNumber, Event, PoolNumber, Record, ScopeNumber, Trace};
use super::settings::{BeginDefragmentation, Existing, MoveOutcome, ScopeSettings};
use crate::operations::operations;
use crate::record::bytes::Put;
use crate::record::chunk::{ChunkHeader, ChunkKind, MAGIC, TimePoint};
use crate::record::encode::{self, RecordField, THREAD};
use crate::record::raw::{
    Place, PoolPlace, RawBegin, RawExisting, RawNeeds, RawOutcome, RawScope, RawWanted,
};
use sublet_engines::cast::nanoseconds;

/// A chunk is closed at this size.
const ENOUGH_BYTES: usize = 60 << 10;
/// Vectors of pools and scopes are numbered from here; there are fewer memory types.
const FIRST_VECTOR: u32 = 64;

impl Trace {
    /// Encodes the trace as a file, for tools that shorten traces and tests that generate them. Times have a resolution
    /// of one nanosecond.
    ///
    /// The count of [`unknown_events`](Self::unknown_events) is not written. If no earlier event created the
    /// allocation, pool or scope of an event, the event is written as a call for an unknown object.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = TraceWriter::default();
        writer.file.extend(MAGIC);
        self.header.encode(&mut writer.payload);
        writer.close(ChunkKind::Head);
        for record in &self.records {
            writer.record(record);
            if writer.payload.len() >= ENOUGH_BYTES {
                writer.close(ChunkKind::Calls);
            }
        }
        if !writer.payload.is_empty() {
            writer.close(ChunkKind::Calls);
        }
        let total = writer.total;
        writer.payload.number(total);
        writer.payload.number(u64::from(writer.chunk) + 1);
        writer.close(ChunkKind::Last);
        writer.file
    }
}

/// The place of no allocation.
const NOBODY: Place = Place { vector: u32::MAX >> 2, generation: 1, shard: 0, dedicated: false, key: 0 };

#[derive(Default)]
struct TraceWriter {
    file: Vec<u8>,
    payload: Vec<u8>,
    chunk: u32,
    /// The number of records in this chunk.
    records: u32,
    total: u64,
    /// The time of the last record. A tick is a nanosecond.
    nanoseconds: u64,
    thread: Option<u32>,
    places: BTreeMap<AllocationNumber, Place>,
}

impl TraceWriter {
    fn close(&mut self, kind: ChunkKind) {
        let point = TimePoint { ticks: self.nanoseconds, nanoseconds: self.nanoseconds };
        let header = ChunkHeader { kind, number: self.chunk, records: self.records, point };
        self.file.extend(header.to_bytes(&self.payload));
        self.file.append(&mut self.payload);
        self.chunk += 1;
        self.records = 0;
        self.thread = None;
    }

    fn record(&mut self, record: &Record) {
        if self.thread != Some(record.thread) {
            self.thread = Some(record.thread);
            self.payload.byte(THREAD);
            self.payload.number(record.thread.into());
        }
        let now = nanoseconds(record.time).max(self.nanoseconds);
        let passed = now - self.nanoseconds;
        self.nanoseconds = now;
        self.records += 1;
        self.total += 1;
        self.payload.byte(record.event.operation().code());
        self.payload.number(passed);
        self.event(&record.event);
    }

    /// Returns the place of an allocation; `NOBODY` if the number is unknown.
    fn allocation(&self, allocation: &AllocationNumber) -> Place {
        self.places.get(allocation).copied().unwrap_or(NOBODY)
    }

    fn freed(&mut self, allocation: &AllocationNumber) -> Place {
        self.places.remove(allocation).unwrap_or(NOBODY)
    }

    fn new_place(
        &mut self,
        number: AllocationNumber,
        pool: Option<PoolNumber>,
        scope: Option<ScopeNumber>,
        granted: GrantedMemory,
    ) -> Place {
        let vector = match (pool, scope) {
            (Some(pool), _) => pool_place(pool).vector,
            (None, Some(scope)) => FIRST_VECTOR + 1 + 2 * scope.0,
            (None, None) => granted.memory_type,
        };
        let dedicated = granted.dedicated;
        let place = Place { vector, generation: 1, shard: 0, dedicated, key: u64::from(number.0) + 1 };
        self.places.insert(number, place);
        place
    }

    fn other(&mut self, event: &Event) {
        match event {
            Event::Existing(existing) => self.existing(existing),
            Event::Allocate(made) => {
                let Wanted { pool, scope, .. } = made.wanted;
                let place = self.new_place(made.allocation, pool, scope, made.granted);
                encode::asked(&mut self.payload, &needs(&made.resource), &wanted(&made.wanted));
                encode::granted(&mut self.payload, made.granted.memory_type, &place);
            }
            Event::AllocateFailed(failed) => {
                encode::asked(&mut self.payload, &needs(&failed.resource), &wanted(&failed.wanted));
                self.payload.byte(failed.failure.number());
            }
            Event::CreatePool { pool, settings } => {
                let raw = settings.with(settings.name.as_deref(), settings.memory_allocate_next);
                encode::pool(&mut self.payload, pool_place(*pool), &raw);
            }
            Event::CreateScope { scope, settings } => {
                let ScopeSettings { block_size, priority, ref name } = **settings;
                let raw = RawScope { number: scope.0, block_size, priority, name: name.as_deref() };
                encode::scope(&mut self.payload, &raw);
            }
            Event::BeginDefragmentation(begin) => self.begin_defragmentation(begin),
            &Event::Move { defragmentation, allocation, outcome } => {
                let place = self.allocation(&allocation);
                let raw = match outcome {
                    MoveOutcome::Completed => RawOutcome::Completed(place),
                    MoveOutcome::Ignored => RawOutcome::Ignored,
                    MoveOutcome::Freed => RawOutcome::Freed,
                    MoveOutcome::RolledBack => RawOutcome::RolledBack,
                };
                encode::outcome(&mut self.payload, defragmentation.0, &place, raw);
            }
            _ => {}
        }
    }

    fn existing(&mut self, existing: &Existing) {
        let &Existing { allocation, memory_type, dedicated, size, alignment, kind, usage, .. } = existing;
        let granted = GrantedMemory { memory_type, dedicated };
        let raw = RawExisting {
            place: self.new_place(allocation, existing.pool, existing.scope, granted),
            memory_type,
            size,
            alignment,
            kind: kind.number(),
            usage,
            scope: existing.scope.map(|scope| scope.0),
            user_data: existing.user_data,
            name: existing.name.as_deref(),
        };
        encode::existing(&mut self.payload, &raw);
    }

    fn begin_defragmentation(&mut self, begin: &BeginDefragmentation) {
        let pools: Vec<_> = begin.pools.iter().copied().map(pool_place).collect();
        let raw = RawBegin {
            number: begin.defragmentation.0,
            algorithm: begin.algorithm.number(),
            memory_type_bits: begin.memory_type_bits,
            max_bytes: begin.max_bytes_per_pass,
            max_allocations: begin.max_allocations_per_pass,
            max_time_nanoseconds: begin.max_time_per_pass.map(nanoseconds),
            pools: &pools,
        };
        encode::begin(&mut self.payload, &raw);
    }
}

/// The value of an event's field in a record.
macro_rules! raw {
    (allocation $writer:ident $field:ident) => {
        $writer.allocation($field)
    };
    (freed $writer:ident $field:ident) => {
        $writer.freed($field)
    };
    (pool $writer:ident $field:ident) => {
        pool_place(*$field)
    };
    (destroyed_pool $writer:ident $field:ident) => {
        pool_place(*$field)
    };
    (freed_scope $writer:ident $field:ident) => {
        $field.0
    };
    (defragmentation $writer:ident $field:ident) => {
        $field.0
    };
    (ended_defragmentation $writer:ident $field:ident) => {
        $field.0
    };
    (size $writer:ident $field:ident) => {
        encode::size(*$field)
    };
    (text $writer:ident $field:ident) => {
        $field.as_deref()
    };
    ($kind:ident $writer:ident $field:ident) => {
        *$field
    };
}

macro_rules! event_writer {
    (
        { $($other:tt)* }
        { $(
            $(#[$doc:meta])* $name:ident $code:literal $word:literal
            $({ $($(#[$field_doc:meta])* $field:ident: $kind:ident,)* })?;
        )* }
    ) => {
        impl TraceWriter {
            fn event(&mut self, event: &Event) {
                match event {
                    $(Event::$name $({ $($field),* })? => {
                        $($(
                            let raw = raw!($kind self $field);
                            raw.put(&mut self.payload);
                        )*)?
                    })*
                    event => self.other(event),
                }
            }
        }
    };
}
operations!(event_writer);

fn pool_place(pool: PoolNumber) -> PoolPlace {
    PoolPlace { vector: FIRST_VECTOR + 2 * pool.0, generation: 1 }
}

fn needs(needs: &Needs) -> RawNeeds {
    RawNeeds {
        size: needs.size,
        alignment: needs.alignment,
        memory_type_bits: needs.memory_type_bits,
        kind: needs.kind.number(),
        usage: needs.usage,
        device_access: needs.device_access,
        device_address: needs.device_address,
        prefers_dedicated: needs.prefers_dedicated,
        requires_dedicated: needs.requires_dedicated,
    }
}

fn wanted(wanted: &Wanted) -> RawWanted<'_> {
    RawWanted {
        flags: wanted.flags.bits(),
        usage: wanted.usage.number(),
        required: wanted.required_flags.as_raw(),
        preferred: wanted.preferred_flags.as_raw(),
        memory_type_bits: wanted.memory_type_bits,
        pool: wanted.pool.map(pool_place),
        scope: wanted.scope.map(|scope| scope.0),
        priority: wanted.priority,
        min_alignment: wanted.min_alignment,
        user_data: wanted.user_data,
        name: wanted.name.as_deref(),
        has_chain: wanted.has_chain,
    }
}
