//! Writes records of calls, and starts and stops recordings. Without the feature `trace`, `not_recording.rs` replaces
//! this folder.
//!
//! An allocation is recorded after it was made, and a free before it happens. So no two allocations of a recording are
//! at the same place at once.

mod beginning;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::recorded_call::{Outcome, RecordedCall};
use super::{Allocator, AllocatorCreateInfo, AllocatorInner, Resource};
use crate::allocation::{Allocation, AllocationId, ResourceKind};
use crate::create_info::{
    AllocationCreateInfo, AllocatorCreateFlags, BlockSizes, GrowthPreset, PoolCreateInfo,
};
use crate::defragment::DefragmentationInfo;
use crate::error::AllocationError;
use crate::operations::operations;
use crate::pool::{Pool, Scope};
use crate::record::bytes::Put;
use crate::record::encode::{self, Operation, RecordField};
use crate::record::error::{RecordingSummary, StartRecordingError, StopRecordingError};
use crate::record::failure::failure_number;
use crate::record::raw::{Place, PoolPlace, RawBegin, RawNeeds, RawOutcome, RawScope, RawWanted};
use crate::record::recorder::{CallRecorder, Cursor, fitting, fitting_list, length};
use sublet_engines::cast::nanoseconds;

/// Converts a field of a call to a value for the record.
macro_rules! raw {
    (allocation $field:ident) => {
        place($field)
    };
    (freed $field:ident) => {
        place($field)
    };
    (pool $field:ident) => {
        pool_place($field)
    };
    (destroyed_pool $field:ident) => {
        pool_place($field)
    };
    (freed_scope $field:ident) => {
        $field.number
    };
    (size $field:ident) => {
        encode::size($field)
    };
    (text $field:ident) => {
        fitting($field)
    };
    ($kind:ident $field:ident) => {
        $field
    };
}

macro_rules! call_writer {
    (
        { $($other:tt)* }
        { $(
            $(#[$doc:meta])* $name:ident $code:literal $word:literal
            $({ $($(#[$field_doc:meta])* $field:ident: $kind:ident,)* })?;
        )* }
        { $($foreign:tt)* }
    ) => {
        impl Allocator {
            /// Writes the record of a call. If the variant is known at compile time, the other arms vanish.
            #[inline(always)]
            fn put_call(&self, call: RecordedCall<'_>) {
                match call {
                    $(RecordedCall::$name $(($($field),*))? => {
                        $($(let $field = raw!($kind $field);)*)?
                        let text = 0 $($(+ $field.text_bytes())*)?;
                        self.inner.record(Operation::$name, text, |_put| {
                            $($($field.put(_put);)*)?
                        });
                    })*
                    call => self.put_other(call),
                }
            }
        }
    };
}
operations!(call_writer);

/// The maximum bytes of a pool in a list.
const POOL_BYTES: usize = 10;

/// Properties of the allocator for the header of a trace. No call contains them.
#[derive(Debug)]
struct AllocatorFacts {
    api_version: u32,
    flags: AllocatorCreateFlags,
    growth: GrowthPreset,
    preferred_large_heap_block_size: u64,
    block_sizes: Box<[BlockSizes]>,
    heap_size_limits: Box<[u64]>,
    empty_blocks_kept: u32,
}

/// A scope, for a recording that begins later.
#[derive(Clone, Debug)]
struct KnownScope {
    block_size: u64,
    priority: f32,
    name: Option<Box<str>>,
}

/// The recording state of an allocator.
#[derive(Debug)]
pub(super) struct Recording {
    created: AllocatorFacts,
    recorder: OnceLock<Arc<CallRecorder>>,
    /// The live scopes.
    scopes: Mutex<BTreeMap<u32, KnownScope>>,
    next_scope: AtomicU32,
    next_defragmentation: AtomicU32,
}

impl Recording {
    pub(super) fn new(info: &AllocatorCreateInfo<'_>) -> Self {
        Self {
            created: AllocatorFacts {
                api_version: info.api_version,
                flags: info.flags,
                growth: info.growth,
                preferred_large_heap_block_size: info.preferred_large_heap_block_size,
                block_sizes: info.block_sizes.into(),
                heap_size_limits: info.heap_size_limits.into(),
                empty_blocks_kept: info.empty_blocks_kept,
            },
            recorder: OnceLock::new(),
            scopes: Mutex::new(BTreeMap::new()),
            next_scope: AtomicU32::new(0),
            next_defragmentation: AtomicU32::new(0),
        }
    }
}

#[inline(always)]
fn place(allocation: &Allocation) -> Place {
    Place {
        vector: allocation.vector,
        generation: allocation.generation,
        shard: allocation.shard,
        dedicated: allocation.is_dedicated(),
        key: allocation.key.0.get(),
    }
}

fn place_of(id: AllocationId) -> Place {
    let AllocationId { vector, generation, shard, dedicated, key, .. } = id;
    Place { vector, generation, shard, dedicated, key: key.get() }
}

fn pool_place(pool: &Pool) -> PoolPlace {
    PoolPlace { vector: pool.facts.vector, generation: pool.generation }
}

#[inline(always)]
fn needs(resource: &Resource) -> RawNeeds {
    let requirements = &resource.requirements;
    RawNeeds {
        size: requirements.size,
        alignment: requirements.alignment,
        memory_type_bits: requirements.memory_type_bits,
        kind: resource.kind().number(),
        usage: ResourceKind::usage_in(resource.tag),
        device_access: resource.device_access,
        device_address: resource.device_address,
        prefers_dedicated: requirements.prefers_dedicated,
        requires_dedicated: requirements.requires_dedicated,
    }
}

impl AllocatorInner {
    #[inline(always)]
    fn wanted<'a>(&self, info: &AllocationCreateInfo<'a>, has_chain: bool) -> RawWanted<'a> {
        RawWanted {
            flags: info.flags.bits(),
            usage: info.usage.number(),
            required: info.required_flags.as_raw(),
            preferred: info.preferred_flags.as_raw(),
            memory_type_bits: info.memory_type_bits,
            pool: info.pool.filter(|pool| pool.allocator == self.id).map(pool_place),
            scope: info.scope.filter(|scope| scope.allocator == self.id).map(|scope| scope.number),
            priority: info.priority,
            min_alignment: info.min_alignment,
            user_data: info.user_data,
            name: fitting(info.name),
            has_chain,
        }
    }

    /// Records, if there still is a recording.
    #[inline(always)]
    fn record(&self, operation: Operation, text: usize, body: impl FnOnce(&mut Cursor<'_>)) {
        if let Some(recorder) = self.recording.recorder.get() {
            let gone = || self.bookkeeping.set_records(false);
            recorder.record(operation, text, gone, body);
        }
    }

    /// Ends the recording of an allocator that is being destroyed.
    pub(super) fn finish_recording(&self) {
        match self.stop_recording() {
            Ok(summary) => tracing::debug!(
                name: "recording_ended", target: "sublet::trace",
                records = summary.records, bytes = summary.bytes, "the recording ends with its allocator"
            ),
            Err(StopRecordingError::NotRecording) => {}
            Err(error) => tracing::error!(
                name: "recording_not_whole", target: "sublet::trace",
                %error, cause = std::error::Error::source(&error).map(tracing::field::display),
                "the recording is not whole"
            ),
        }
    }

    fn stop_recording(&self) -> Result<RecordingSummary, StopRecordingError> {
        let recorder = self.recording.recorder.get().ok_or(StopRecordingError::NotRecording)?;
        recorder.stop(|| self.bookkeeping.set_records(false))
    }
}

impl Allocator {
    /// Records all calls from now on to a sink, usually a file, in the format that [`trace`](crate::trace) describes. A
    /// separate thread writes large chunks, so the sink needs no buffer.
    ///
    /// Live objects are recorded at the start. Calls that other threads have in progress may or may not be recorded.
    ///
    /// A sink that fails or panics ends the recording but not the program; [`Self::stop_recording`] reports it. If the
    /// sink lags behind by more than about a megabyte, recorded calls wait for it, so that nothing is lost. Destroying
    /// the allocator completes its recording.
    ///
    /// Names are truncated to 32 KiB.
    ///
    /// # Errors
    /// [`StartRecordingError`] if the allocator records already, or the thread cannot be started.
    ///
    /// # Complexity
    /// O(allocations). Afterwards each call takes some tens of nanoseconds more.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
    /// # let path = std::env::temp_dir().join(format!("sublet-{}.trace", std::process::id()));
    /// allocator.start_recording(std::fs::File::create(&path)?)?;
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// allocator.stop_recording()?;
    /// let trace = trace::Trace::read(&std::fs::read(&path)?)?;
    /// assert!(matches!(trace.records[0].event, trace::Event::Allocate(_)));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_recording(&self, sink: impl Write + Send + 'static) -> Result<(), StartRecordingError> {
        let inner = &*self.inner;
        let recorder = inner.recording.recorder.get_or_init(|| Arc::new(CallRecorder::new()));
        let mut header = Vec::new();
        inner.header().encode(&mut header);
        let begun = || inner.bookkeeping.set_records(true);
        let opening = recorder.start(header, sink, begun)?;
        inner.record_what_lives(&opening);
        Ok(())
    }

    /// Ends the recording, after everything is written.
    ///
    /// # Errors
    /// [`StopRecordingError`] if there is no recording, or if its sink has failed.
    pub fn stop_recording(&self) -> Result<RecordingSummary, StopRecordingError> {
        self.inner.stop_recording()
    }

    /// Returns true while calls are recorded: from [`Self::start_recording`] until the recording ends or the sink
    /// fails.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        let recorder = self.inner.recording.recorder.get();
        self.inner.bookkeeping.records() && recorder.is_some_and(|recorder| !recorder.is_over())
    }

    /// Returns true if a recording cannot begin, because one exists. It may be active, or failed and not stopped.
    pub(crate) fn has_recording(&self) -> bool {
        self.inner.recording.recorder.get().is_some_and(|recorder| recorder.is_taken())
    }

    /// Records an attempt to allocate.
    #[inline(always)]
    pub(super) fn record_allocation(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        has_chain: bool,
        answer: &Result<Allocation, AllocationError>,
    ) {
        if !self.inner.bookkeeping.records() {
            return;
        }
        match answer {
            Ok(allocation) => {
                let (needs, wanted) = (needs(resource), self.inner.wanted(info, has_chain));
                let text = length(wanted.name);
                let (place, memory_type) = (place(allocation), allocation.memory_type_index());
                self.inner.record(Operation::Allocate, text, |put| {
                    encode::asked(put, &needs, &wanted);
                    encode::granted(put, memory_type, &place);
                });
            }
            Err(error) => self.record_failure(resource, info, has_chain, error),
        }
    }

    #[cold]
    #[inline(never)]
    fn record_failure(
        &self,
        resource: &Resource,
        info: &AllocationCreateInfo<'_>,
        has_chain: bool,
        error: &AllocationError,
    ) {
        let (needs, wanted) = (needs(resource), self.inner.wanted(info, has_chain));
        self.inner.record(Operation::AllocateFailed, length(wanted.name), |put| {
            encode::asked(put, &needs, &wanted);
            put.byte(failure_number(error));
        });
    }

    /// Records that an allocation is about to be freed.
    #[inline(always)]
    pub(super) fn record_free(&self, allocation: &Allocation) {
        if self.inner.bookkeeping.records() {
            self.write_free(&allocation.copied());
        }
    }

    #[cold]
    #[inline(never)]
    fn write_free(&self, allocation: &Allocation) {
        if allocation.allocator == self.inner.id {
            self.put_call(RecordedCall::Free(allocation));
        }
    }

    /// Records a call.
    #[inline(always)]
    pub(crate) fn record(&self, call: RecordedCall<'_>) {
        if self.inner.bookkeeping.records() {
            self.write_call(call);
        }
    }

    #[cold]
    #[inline(never)]
    fn write_call(&self, call: RecordedCall<'_>) {
        self.put_call(call);
    }

    /// Writes calls that are not simple lists of fields.
    fn put_other(&self, call: RecordedCall<'_>) {
        match call {
            RecordedCall::CreatePool(pool, info) => self.write_pool(pool, info),
            RecordedCall::CreateScope(scope) => {
                let Scope { number, block_size, priority, ref name, .. } = *scope;
                let name = fitting(name.as_deref());
                let raw = RawScope { number, block_size, priority, name };
                self.inner.record(Operation::CreateScope, length(name), |put| encode::scope(put, &raw));
            }
            RecordedCall::BeginDefragmentation(number, info) => self.write_begin(number, info),
            RecordedCall::Move { defragmentation, source, outcome } => {
                let raw = match outcome {
                    Outcome::Completing(destination) => RawOutcome::Completed(place_of(destination)),
                    Outcome::Failed(destination) => RawOutcome::Failed(place_of(destination)),
                    Outcome::Ignored => RawOutcome::Ignored,
                    Outcome::Freeing => RawOutcome::Freed,
                    Outcome::RolledBack => RawOutcome::RolledBack,
                };
                let source = place_of(source);
                self.inner.record(Operation::Move, 0, |put| {
                    encode::outcome(put, defragmentation, &source, raw);
                });
            }
            _ => {}
        }
    }

    fn write_pool(&self, pool: &Pool, info: &PoolCreateInfo<'_>) {
        let raw = info.with(fitting(info.name), info.memory_allocate_next.is_some());
        let place = pool_place(pool);
        self.inner.record(Operation::CreatePool, length(raw.name), |put| encode::pool(put, place, &raw));
    }

    fn write_begin(&self, number: u32, info: &DefragmentationInfo<'_>) {
        let pools: Vec<_> = info.pools.iter().map(|pool| pool_place(pool)).collect();
        let pools = fitting_list(&pools, POOL_BYTES);
        let raw = RawBegin {
            number,
            algorithm: info.algorithm.number(),
            memory_type_bits: info.memory_type_bits,
            max_bytes: info.max_bytes_per_pass,
            max_allocations: info.max_allocations_per_pass,
            max_time_nanoseconds: info.max_time_per_pass.map(nanoseconds),
            pools,
        };
        let text = pools.len() * POOL_BYTES;
        self.inner.record(Operation::BeginDefragmentation, text, |put| encode::begin(put, &raw));
    }

    pub(super) fn next_scope(&self) -> u32 {
        self.inner.recording.next_scope.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn next_defragmentation(&self) -> u32 {
        self.inner.recording.next_defragmentation.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers and records a new scope.
    pub(super) fn know_scope(&self, scope: &Scope) {
        let &Scope { number, block_size, priority, ref name, .. } = scope;
        let known = KnownScope { block_size, priority, name: name.clone() };
        self.inner.recording.scopes.lock().insert(number, known);
        self.record(RecordedCall::CreateScope(scope));
    }

    /// Records a scope that is about to be freed.
    pub(super) fn forget_scope(&self, scope: &Scope) {
        self.record(RecordedCall::FreeScope(scope));
        self.inner.recording.scopes.lock().remove(&scope.number);
    }
}
