//! From records to bytes: for traces that no allocator recorded.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use super::asked::{Granted, Needs, Wanted};
use super::event::{AllocationNumber, Event, PoolNumber, Record, ScopeNumber, Trace};
use super::settings::{BeginDefragmentation, Existing, MoveOutcome, PoolSettings, ScopeSettings};
use crate::base::cast::nanoseconds;
use crate::record::bytes::Put;
use crate::record::chunk::{ChunkHeader, Kind, MAGIC, Point};
use crate::record::encode::{self, op};
use crate::record::raw::{
    Place, PoolPlace, RawBegin, RawExisting, RawNeeds, RawOutcome, RawPool, RawScope, RawWanted,
};

/// Chunks are closed when they are this long.
const ENOUGH_BYTES: usize = 60 << 10;
/// Vectors of pools and scopes are numbered from here on; there are fewer memory types.
const FIRST_VECTOR: u32 = 64;

impl Trace {
    /// The trace as a file: what a tool writes that has cut one short, or a test that has made one up. Times are kept to the
    /// nanosecond.
    ///
    /// [`strangers`](Self::strangers) are not written. Events of allocations, pools and scopes that no event before has made
    /// become strangers.
    ///
    /// ```
    /// use sublet::trace::{Event, Record, Trace};
    /// let record = Record { event: Event::Frame { index: 1 }, ..Record::default() };
    /// let trace = Trace { records: vec![record; 3], ..Trace::default() };
    /// assert_eq!(Trace::read(&trace.to_bytes())?, trace);
    /// # Ok::<(), sublet::trace::ReadTraceError>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.file.extend(MAGIC);
        self.header.encode(&mut writer.payload);
        writer.close(Kind::Head);
        for record in &self.records {
            writer.record(record);
            if writer.payload.len() >= ENOUGH_BYTES {
                writer.close(Kind::Calls);
            }
        }
        if !writer.payload.is_empty() {
            writer.close(Kind::Calls);
        }
        let total = writer.total;
        writer.payload.number(total);
        writer.payload.number(u64::from(writer.chunk) + 1);
        writer.close(Kind::Last);
        writer.file
    }
}

#[derive(Default)]
struct Writer {
    file: Vec<u8>,
    payload: Vec<u8>,
    chunk: u32,
    /// Records in this chunk.
    records: u32,
    total: u64,
    /// Of the last record: nanoseconds are the ticks.
    nanoseconds: u64,
    thread: Option<u32>,
    places: BTreeMap<AllocationNumber, Place>,
}

impl Writer {
    fn close(&mut self, kind: Kind) {
        let point = Point { ticks: self.nanoseconds, nanoseconds: self.nanoseconds };
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
            self.payload.byte(op::THREAD);
            self.payload.number(record.thread.into());
        }
        let now = nanoseconds(record.time).max(self.nanoseconds);
        let passed = now - self.nanoseconds;
        self.nanoseconds = now;
        self.records += 1;
        self.total += 1;
        self.event(&record.event, passed);
    }

    fn begin(&mut self, operation: u8, passed: u64) -> &mut Vec<u8> {
        self.payload.byte(operation);
        self.payload.number(passed);
        &mut self.payload
    }

    /// The name of an allocation; nobody's if there is none of that number.
    fn place(&self, allocation: AllocationNumber) -> Place {
        let nobody = Place { vector: u32::MAX >> 2, generation: 1, shard: 0, dedicated: false, key: 0 };
        self.places.get(&allocation).copied().unwrap_or(nobody)
    }

    fn new_place(
        &mut self,
        number: AllocationNumber,
        pool: Option<PoolNumber>,
        scope: Option<ScopeNumber>,
        granted: Granted,
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

    fn on_allocation(&mut self, operation: u8, passed: u64, allocation: AllocationNumber) -> &mut Vec<u8> {
        let place = self.place(allocation);
        let put = self.begin(operation, passed);
        encode::place(put, &place);
        put
    }

    fn on_range(&mut self, operation: u8, passed: u64, of: AllocationNumber, offset: u64, size: u64) {
        let place = self.place(of);
        encode::range(self.begin(operation, passed), &place, offset, size);
    }

    fn on_pool(&mut self, operation: u8, passed: u64, pool: PoolNumber) -> &mut Vec<u8> {
        let put = self.begin(operation, passed);
        encode::pool_place(put, pool_place(pool));
        put
    }

    fn event(&mut self, event: &Event, passed: u64) {
        match event {
            Event::Existing(existing) => self.existing(existing, passed),
            Event::Allocate(made) => {
                let (resource, wanted) = (needs(&made.resource), wanted(&made.wanted));
                let Wanted { pool, scope, .. } = made.wanted;
                let place = self.new_place(made.allocation, pool, scope, made.granted);
                let put = self.begin(op::ALLOCATE, passed);
                encode::asked(put, &resource, &wanted);
                encode::granted(put, made.granted.memory_type, &place);
            }
            Event::AllocateFailed(failed) => {
                let put = self.begin(op::ALLOCATE_FAILED, passed);
                encode::asked(put, &needs(&failed.resource), &wanted(&failed.wanted));
                put.byte(failed.failure.number());
            }
            &Event::Free { allocation } => {
                self.on_allocation(op::FREE, passed, allocation);
                self.places.remove(&allocation);
            }
            &Event::Map { allocation } => _ = self.on_allocation(op::MAP, passed, allocation),
            &Event::Unmap { allocation } => _ = self.on_allocation(op::UNMAP, passed, allocation),
            &Event::Flush { allocation, offset, size } => {
                self.on_range(op::FLUSH, passed, allocation, offset, size);
            }
            &Event::Invalidate { allocation, offset, size } => {
                self.on_range(op::INVALIDATE, passed, allocation, offset, size);
            }
            &Event::CopyTo { allocation, offset, size } => {
                self.on_range(op::COPY_TO, passed, allocation, offset, size);
            }
            &Event::CopyFrom { allocation, offset, size } => {
                self.on_range(op::COPY_FROM, passed, allocation, offset, size);
            }
            Event::SetName { allocation, name } => {
                self.on_allocation(op::SET_NAME, passed, *allocation).optional_text(name.as_deref());
            }
            &Event::SetUserData { allocation, user_data } => {
                self.on_allocation(op::SET_USER_DATA, passed, allocation).number(user_data);
            }
            &Event::SetPriority { allocation, priority } => {
                self.on_allocation(op::SET_PRIORITY, passed, allocation).float(priority);
            }
            Event::CreatePool { pool, settings } => {
                encode::pool(self.begin(op::CREATE_POOL, passed), &raw_pool(*pool, settings));
            }
            &Event::DestroyPool { pool } => _ = self.on_pool(op::DESTROY_POOL, passed, pool),
            Event::SetPoolName { pool, name } => {
                self.on_pool(op::SET_POOL_NAME, passed, *pool).optional_text(name.as_deref());
            }
            &Event::SetPoolPriority { pool, priority } => {
                self.on_pool(op::SET_POOL_PRIORITY, passed, pool).float(priority);
            }
            &Event::SetPoolEmptyBlocksKept { pool, empty_blocks_kept } => {
                self.on_pool(op::SET_POOL_EMPTY_BLOCKS_KEPT, passed, pool).number(empty_blocks_kept.into());
            }
            &Event::SettleInPool { pool } => _ = self.on_pool(op::SETTLE_IN_POOL, passed, pool),
            Event::CreateScope { scope, settings } => {
                let ScopeSettings { block_size, priority, ref name } = **settings;
                let raw = RawScope { number: scope.0, block_size, priority, name: name.as_deref() };
                encode::scope(self.begin(op::CREATE_SCOPE, passed), &raw);
            }
            Event::FreeScope { scope } => self.begin(op::FREE_SCOPE, passed).number(scope.0.into()),
            &Event::Frame { index } => self.begin(op::FRAME, passed).number(index.into()),
            Event::Trim => _ = self.begin(op::TRIM, passed),
            &Event::SetEmptyBlocksKept { empty_blocks_kept } => {
                self.begin(op::SET_EMPTY_BLOCKS_KEPT, passed).number(empty_blocks_kept.into());
            }
            &Event::SettleInMemoryType { memory_type } => {
                self.begin(op::SETTLE, passed).number(memory_type.into());
            }
            Event::BeginDefragmentation(begin) => self.begin_defragmentation(begin, passed),
            &Event::BeginPass { defragmentation, moves } => {
                let put = self.begin(op::BEGIN_PASS, passed);
                put.number(defragmentation.0.into());
                put.number(moves.into());
            }
            &Event::Move { defragmentation, allocation, outcome } => {
                let place = self.place(allocation);
                let raw = match outcome {
                    MoveOutcome::Completed => RawOutcome::Completed(place),
                    MoveOutcome::Ignored => RawOutcome::Ignored,
                    MoveOutcome::Freed => RawOutcome::Freed,
                    MoveOutcome::RolledBack => RawOutcome::RolledBack,
                };
                encode::outcome(self.begin(op::MOVE, passed), defragmentation.0, &place, raw);
            }
            Event::EndPass { defragmentation } => {
                self.begin(op::END_PASS, passed).number(defragmentation.0.into());
            }
            Event::EndDefragmentation { defragmentation } => {
                self.begin(op::END_DEFRAGMENTATION, passed).number(defragmentation.0.into());
            }
        }
    }

    fn existing(&mut self, existing: &Existing, passed: u64) {
        let &Existing { allocation, memory_type, dedicated, size, alignment, kind, usage, .. } = existing;
        let granted = Granted { memory_type, dedicated };
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
        encode::existing(self.begin(op::EXISTING, passed), &raw);
    }

    fn begin_defragmentation(&mut self, begin: &BeginDefragmentation, passed: u64) {
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
        encode::begin(self.begin(op::BEGIN_DEFRAGMENTATION, passed), &raw);
    }
}

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

fn raw_pool(pool: PoolNumber, settings: &PoolSettings) -> RawPool<'_> {
    RawPool {
        place: pool_place(pool),
        memory_type: settings.memory_type,
        flags: settings.flags.bits(),
        algorithm: settings.algorithm.number(),
        block_size: settings.block_size,
        min_block_count: settings.min_block_count,
        max_block_count: settings.max_block_count,
        empty_blocks_kept: settings.empty_blocks_kept,
        priority: settings.priority,
        min_allocation_alignment: settings.min_allocation_alignment,
        name: settings.name.as_deref(),
        has_chain: settings.has_chain,
    }
}
