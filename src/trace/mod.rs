//! Recordings of a program's calls to its allocator, and their replay.
//!
//! [`Allocator::start_recording`](crate::Allocator::start_recording) writes every call to a sink, and [`Trace::read`]
//! reads the bytes. It also reads what a layer recorded of a program that does not use this library. In a program that
//! calls [`start_from_environment`], the environment variable `SUBLET_TRACE` starts a recording into a file.
//!
//! ```
//! use sublet::trace::{Event, Trace, TraceBuffer};
//! # use sublet::*; use ash::vk;
//! # let (gpu, allocator) = sublet::doc_example();
//! # let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
//! let file = TraceBuffer::new();
//! allocator.start_recording(file.clone())?;
//! let info = AllocationCreateInfo { name: Some("mesh"), ..Default::default() };
//! let allocation = allocator.allocate_memory(&requirements, &info)?;
//! // SAFETY: nothing was ever bound to it.
//! unsafe { allocator.free_memory(allocation) }?;
//! allocator.stop_recording()?;
//!
//! let trace = Trace::read(&file.bytes())?;
//! let Event::Allocate(made) = &trace.records[0].event else { panic!() };
//! assert_eq!(made.wanted.name.as_deref(), Some("mesh"));
//! assert_eq!(trace.records[1].event, Event::Free { allocation: made.allocation });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Recorded calls
//!
//! Every call that allocates, frees, maps, names or moves memory is recorded, with its thread and its time: see
//! [`Event`]. An allocation is recorded after it was made, and a free before it is made, so that one thread could make
//! the calls in the order of the file. Not recorded are queries ([`would_fit`](crate::Allocator::would_fit),
//! statistics, maps), calls that allocate no memory (binding, and aliasing resources), and
//! [`Allocation::set_user_data`](crate::Allocation::set_user_data), which does not call the allocator.
//!
//! # Limitations
//!
//! A recording of an allocator contains neither the content of memory nor the `VkDeviceMemory` of an allocation. It may
//! miss a call that another thread is making when it begins. Later calls for the object of that call are counted in
//! [`Trace::unknown_events`]. A program that is killed loses at most the last quarter of a second, and the bytes that
//! the sink has buffered.
//!
//! # File format
//!
//! All fixed-size numbers are little-endian. A file of version 1 is a magic number followed by chunks; each chunk has
//! a header of 36 bytes and a payload.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | magic: `89 53 54 52 41 43 45`, and the version of the format: 1, or 2 for a [foreign program](#foreign-programs) |
//! | 4 | mark of the chunk: `HEAD` for the first, `CALL` for those with calls, `LAST` for the last |
//! | 4 | its number, from 0 |
//! | 4 | the size of its payload in bytes |
//! | 4 | the number of records in its payload |
//! | 8 | the time at which it was closed, in ticks since the recording began |
//! | 8 | the same time in nanoseconds |
//! | 4 | CRC-32 (as in zip) of the 32 bytes before and of the payload |
//! | | payload |
//!
//! The points of two consecutive chunks define the length of a tick; times between are interpolated. The payload of
//! `LAST` is two numbers, the records and chunks of the whole file; it ends the file.
//!
//! In payloads, a **number** is LEB128: seven bits per byte, lowest first, the highest bit set in all bytes but the
//! last. A **text** is its number of bytes, followed by the bytes in UTF-8. A **text or none** is 0, or the number of
//! bytes plus one, followed by the bytes. An **alignment** is a byte: its binary logarithm, or 64 for 0, or 65 followed
//! by a number. An **optional number** is a byte, 0 or 1, and the number after a 1. A **float** is four bytes, a
//! **flag** one, 0 or 1.
//!
//! The payload of `HEAD` has the fields of [`Header`] in the order of their declaration: texts, numbers, flags. A list
//! is its length and its elements, whose fields are numbers. Each of the last three fields is omitted if it and all
//! fields after it have their default values. A flag before the device name is ignored by readers.
//!
//! The payload of `CALL` is a list of records. Each has a byte for the operation, the number of ticks since the
//! previous record, and the fields of the table. In the first record of a chunk, the ticks count from the end of the
//! previous chunk (0 for the head). The operation `01` is not a record and has no time: the number that follows it is
//! the thread of the records after it. Each chunk begins with one.
//!
//! A **place** identifies an allocation. It begins with the number `vector << 2 | dedicated << 1 | more`. If `more` is
//! 1, the vector's generation (a number; otherwise 1) and the shard (a byte; otherwise 0) follow. The lower and the
//! upper half of its key end it, as two numbers. A place is constant until the allocation is freed or moved, and never
//! reused. A **pool** is two numbers, vector and generation. The places in a pool have the same ones.
//!
//! | operation | fields |
//! |---|---|
//! | `10` [existing](Existing) | place; numbers: memory type, size; alignment; numbers: kind, usage; optional numbers: scope, user data; text or none: name |
//! | `11` [allocate](Allocate) | *asked*; number: memory type; place |
//! | `12` [allocate failed](AllocateFailed) | *asked*; byte: [`Failure`], from 1 in the order of its declaration, 0 for `Other` |
//! | `13` free, `20` map, `21` unmap | place |
//! | `22` flush, `23` invalidate, `24` copy to, `25` copy from | place; numbers: offset, size + 1 (0 for the rest) |
//! | `30` set name | place; text or none |
//! | `31` set user data | place; number |
//! | `32` set priority | place; float |
//! | `40` [create pool](PoolSettings) | pool; numbers: memory type, flags, algorithm (0 TLSF, 1 linear, 2 buddy), block size, minimum and maximum number of blocks, empty blocks kept; float: priority; alignment; flag: has a chain; text or none: name |
//! | `41` destroy pool, `45` settle in pool | pool |
//! | `42` set pool name | pool; text or none |
//! | `43` set pool priority | pool; float |
//! | `44` set empty blocks kept of pool, `46` reserve in pool | pool; number |
//! | `50` [create scope](ScopeSettings) | numbers: scope, block size; float: priority; text or none: name |
//! | `51` free scope | number: scope |
//! | `60` frame | number: its index |
//! | `61` trim | nothing |
//! | `62` set empty blocks kept | number |
//! | `63` settle in memory type | number |
//! | `64` reserve | numbers: memory type, bytes |
//! | `66` maintain | numbers: at most so many allocations, frees, and modelled microseconds of the driver |
//! | `70` [begin defragmentation](BeginDefragmentation) | numbers: defragmentation, algorithm (0 to 3), memory types, bytes and allocations per pass; optional number: nanoseconds per pass; number of pools, and pools |
//! | `71` begin pass | numbers: defragmentation, moves |
//! | `72` move | number: defragmentation; place; byte: 0 completed, 1 ignored, 2 freed, 3 rolled back, 4 not completed although the last record of the move reported it; for 0 and 4 another place: the destination |
//! | `73` end pass, `74` end defragmentation | number: defragmentation |
//!
//! *Asked* begins with four bytes, a word of bits. Then follow numbers: the size; an alignment; a number: the memory
//! types of the resource. Then follow, in the order of the table, the fields whose bit is set. Without its bit, a field
//! is 0, the priority is 0.5, and there is no pool, scope or name.
//!
//! | bits | meaning | field |
//! |---|---|---|
//! | 0 to 2 | kind: 0 unknown, 1 buffer, 2 image of unknown tiling, 3 linear, 4 optimal | |
//! | 3 to 6 | memory usage, as in VMA | |
//! | 7, 8 | device access is known; the device does more with it than copy | |
//! | 9 to 12 | needs a device address; prefers, requires dedicated memory; the program gave a chain | |
//! | 16 | the resource has a usage | number |
//! | 17 to 20 | flags; required flags; preferred flags; memory types that the program allows | number each |
//! | 21 | pool | pool |
//! | 22 | scope | number |
//! | 23 | priority | float |
//! | 24 | minimum alignment | alignment |
//! | 25 | user data | number |
//! | 26 | name | text |
//!
//! A reader rejects unknown operations and bits, because new ones change the version. It ignores bytes after the last
//! field of the head. An *existing* and an *allocate* at one place are the same allocation, which was created while the
//! recording began. If a pool or scope has two records, the first one counts.
//!
//! ## An example
//!
//! A buffer of 4096 bytes, allocated after one microsecond and freed two microseconds later. The ticks are nanoseconds:
//!
//! ```text
//! 89 53 54 52 41 43 45 01                                                       ; magic, version 1
//! 48 45 41 44 00 00 00 00 1a 00 00 00 00 00 00 00                               ; the head: mark, number, bytes, records
//! 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00                               ; ticks, nanoseconds
//! 81 3a 04 6a                                                                   ; checksum
//! 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ; a header of nothing
//! 43 41 4c 4c 01 00 00 00 1c 00 00 00 02 00 00 00                               ; calls: mark, number, bytes, records
//! b8 0b 00 00 00 00 00 00 b8 0b 00 00 00 00 00 00                               ; ticks, nanoseconds
//! bd c8 a0 1c                                                                   ; checksum
//! 01 00                                                                         ; thread 0
//! 11 e8 07                                                                      ; allocate, after 1000 ticks
//! 39 00 00 04                                                                   ; a buffer, `Auto`, with a name
//! 80 20 08 07                                                                   ; 4096 bytes, aligned to 2^8, types 0b111
//! 04 6d 65 73 68                                                                ; "mesh"
//! 01 04 01 00                                                                   ; memory type 1; vector 1, key 1
//! 13 d0 0f 04 01 00                                                             ; free, 2000 ticks later, vector 1, key 1
//! 4c 41 53 54 02 00 00 00 02 00 00 00 00 00 00 00                               ; the end: mark, number, bytes, records
//! b8 0b 00 00 00 00 00 00 b8 0b 00 00 00 00 00 00                               ; ticks, nanoseconds
//! ba cb b0 80                                                                   ; checksum
//! 02 03                                                                         ; 2 records, 3 chunks
//! ```
//!
//! ## Foreign programs
//!
//! A layer records programs that allocate their memory without this library, in files of version 2. After the magic
//! number and the chunk `HEAD`, zeros fill the file up to a multiple of 65,536 bytes. Then follow segments of 65,536
//! bytes. Each belongs to one thread, which writes into it without a lock. If a program is killed while its file grows,
//! the file ends with zeros that are no whole segment. A segment has a header and records:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | mark: `THRD`, or zeros in a segment that was never used |
//! | 4 | the number of bytes of complete records. The writer stores it after the records, so a killed program leaves no incomplete record |
//! | 8 | the base of sequence numbers |
//! | 8 | the base of times, in nanoseconds since the recording began |
//! | 4 | the number of the thread |
//! | 4 | zeros |
//! | | records |
//!
//! A record has a byte for the operation, and two numbers: how much its sequence number and its time exceed those of the
//! previous record in the segment, or the bases. Then follow the fields of the table, which are numbers unless the table
//! says otherwise. Readers merge the segments by sequence number, which may have gaps. A malformed record ends its
//! segment. The bytes that it hides are counted in [`ForeignRecords::damaged_bytes`].
//!
//! Memory, buffers and images have numbers from 1, which are never reused.
//!
//! | operation | fields |
//! |---|---|
//! | `80` memory allocated | memory; memory type; size; flags (1 dedicated, 2 imported, 4 exportable, 8 device address; in a later part, before it: 16 was mapped, 32 flushed or invalidated, 64 bound); resource of dedicated memory, or 0 |
//! | `81` memory allocation failed | memory type; size; `VkResult` with the opposite sign |
//! | `82` memory freed, `84` memory unmapped | memory |
//! | `83` memory mapped | memory; offset; size + 1 (0 for the rest) |
//! | `85` memory flushed, `86` memory invalidated | memory; offset; size + 1 (0 for the rest) |
//! | `88` buffer created | resource; size; usage, up to 64 bits; flags |
//! | `89` image created | resource; [format](ForeignImage), width, height, depth, mip levels, array layers, samples, tiling (2 with a DRM modifier), usage, flags, image type |
//! | `8a` requirements | resource; plane + 1, or 0 for all of it; size; alignment; memory types; 1 prefers, 2 requires dedicated memory |
//! | `8b` bound | resource; plane + 1, or 0; memory; offset |
//! | `8c` resource destroyed | resource |
//! | `8d` named | 0 memory, 1 resource; its number; text |
//! | `8e` sparse bound | resource; [offset](SparseBinding) and size of the range; memory, or 0; offset in the memory |
//! | `90` submitted | number of command buffers |
//! | `91` presented, `94` device lost, `95` device destroyed | nothing |
//! | `92` budget | heap; budget; usage |
//! | `93` driver memory | [action](DriverMemoryAction): 0 allocated, 1 freed, 2 imported, 3 unimported, 4 failed; number of the driver's object; `VkObjectType`; size; heap |

mod asked;
mod decode;
mod environment;
mod error;
mod event;
mod fields;
mod foreign;
mod number;
mod read;
mod replay;
mod settings;
mod sink;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

pub use self::asked::{Allocate, AllocateFailed, Failure, GrantedMemory, Needs, Wanted};
pub use self::environment::start_from_environment;
pub use self::error::{Damage, ReadTraceError};
pub use self::event::{
    AllocationNumber, DefragmentationNumber, Event, PoolNumber, Record, ScopeNumber, Trace,
};
pub use self::foreign::{
    DriverMemoryAction, DriverMemoryReport, ForeignBinding, ForeignImage, ForeignMemory, ForeignMemoryFlags,
    ForeignObject, ForeignProgram, ForeignRecords, ForeignRequirements, ForeignResource, ForeignShape,
    ForeignUsage, MemoryNumber, ResourceNumber, ResourceRequests, SparseBinding,
};
#[doc(hidden)]
pub use self::foreign::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MARK, foreign_recording};
pub use self::read::Prefix;
pub use self::replay::{
    CallKind, CallReport, Extremes, Footprint, FreeRanges, Latencies, Replay, ReplayReport, ReplayedPool,
};
pub use self::settings::{BeginDefragmentation, Existing, MoveOutcome, PoolSettings, ScopeSettings};
pub use self::sink::TraceBuffer;
pub use crate::device::DriverCost;
pub use crate::record::error::{RecordingSummary, StartRecordingError, StopRecordingError};
pub use crate::record::header::{Header, TraceHeap, TraceMemoryType};
