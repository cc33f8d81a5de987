//! The calls that a recording knows, in one table. All that is said of each call is made from its row: the first byte
//! of its record, what the allocator notes, the event of a trace, the bytes of both writers, the reader, the words of a
//! timeline.
//!
//! `operations!(then)` calls the macro `then` with the table. Its first part has the calls whose record is not simply
//! their fields one after the other: a room that writes or reads records has a function for each of these. A row of the
//! second part is everything there is to say: kinds of fields are what the rooms implement. They are:
//!
//! | kind | in a record | what an event has |
//! |---|---|---|
//! | `allocation`, and `freed` where it ends | place | `AllocationNumber` |
//! | `pool`, and `destroyed_pool` where it ends | pool | `PoolNumber` |
//! | `freed_scope` | number | `ScopeNumber` |
//! | `defragmentation`, and `ended_defragmentation` | number | `DefragmentationNumber` |
//! | `small` | number | `u32` |
//! | `long` | number | `u64` |
//! | `size` | number, one more than the bytes; 0 for all of the rest | `u64` |
//! | `float` | float | `f32` |
//! | `text` | text or none | `Option<Box<str>>` |
#![forbid(unsafe_code)]

macro_rules! operations {
    ($then:ident) => {
        $then! {
            {
                /// An allocation that lived when the recording began. Such come first, after the pools and scopes that
                /// they are in.
                Existing 0x10 "existing" (Box<Existing>);
                /// An allocation was made.
                Allocate 0x11 "allocate" (Box<Allocate>);
                /// An allocation was not made.
                AllocateFailed 0x12 "allocate failed" (Box<AllocateFailed>);
                /// A pool was made, or was there when the recording began.
                CreatePool 0x40 "create pool" {
                    /// Which.
                    pool: PoolNumber,
                    /// What it was made with.
                    settings: Box<PoolSettings>,
                };
                /// A scope was made, or was there when the recording began.
                CreateScope 0x50 "create scope" {
                    /// Which.
                    scope: ScopeNumber,
                    /// What it was made with.
                    settings: Box<ScopeSettings>,
                };
                /// A defragmentation began.
                BeginDefragmentation 0x70 "begin defragmentation" (Box<BeginDefragmentation>);
                /// A move was resolved.
                Move 0x72 "move" {
                    /// Of which defragmentation.
                    defragmentation: DefragmentationNumber,
                    /// What was to be moved.
                    allocation: AllocationNumber,
                    /// What became of it.
                    outcome: MoveOutcome,
                };
            }
            {
                /// An allocation is freed. Those that end with their pool or scope are not told one by one.
                Free 0x13 "free" {
                    /// Which.
                    allocation: freed,
                };
                /// An allocation was mapped once more.
                Map 0x20 "map" {
                    /// Which.
                    allocation: allocation,
                };
                /// An allocation was unmapped once.
                Unmap 0x21 "unmap" {
                    /// Which.
                    allocation: allocation,
                };
                /// What the host wrote was made visible to the device. A call for several ranges is told as several.
                Flush 0x22 "flush" {
                    /// Of which allocation.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Bytes, or `vk::WHOLE_SIZE`.
                    size: size,
                };
                /// What the device wrote was made visible to the host. A call for several ranges is told as several.
                Invalidate 0x23 "invalidate" {
                    /// Of which allocation.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Bytes, or `vk::WHOLE_SIZE`.
                    size: size,
                };
                /// Bytes were copied into an allocation: mapped, written, flushed and unmapped in one call.
                CopyTo 0x24 "copy to" {
                    /// Which.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Bytes that were copied.
                    size: size,
                };
                /// Bytes were copied out of an allocation: mapped, invalidated, read and unmapped in one call.
                CopyFrom 0x25 "copy from" {
                    /// Which.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Bytes that were copied.
                    size: size,
                };
                /// An allocation got another name.
                SetName 0x30 "set name" {
                    /// Which.
                    allocation: allocation,
                    /// The name.
                    name: text,
                };
                /// What the program keeps with an allocation was changed.
                SetUserData 0x31 "set user data" {
                    /// Which.
                    allocation: allocation,
                    /// What it keeps now.
                    user_data: long,
                };
                /// The priority of a dedicated allocation was changed.
                SetPriority 0x32 "set priority" {
                    /// Which.
                    allocation: allocation,
                    /// The priority.
                    priority: float,
                };
                /// A pool is destroyed, with all that is in it.
                DestroyPool 0x41 "destroy pool" {
                    /// Which.
                    pool: destroyed_pool,
                };
                /// A pool got another name.
                SetPoolName 0x42 "set pool name" {
                    /// Which.
                    pool: pool,
                    /// The name.
                    name: text,
                };
                /// The priority of a pool's blocks was changed.
                SetPoolPriority 0x43 "set pool priority" {
                    /// Which.
                    pool: pool,
                    /// The priority.
                    priority: float,
                };
                /// How many empty blocks a pool keeps was changed.
                SetPoolEmptyBlocksKept 0x44 "set empty blocks kept of pool" {
                    /// Which.
                    pool: pool,
                    /// How many it keeps now.
                    empty_blocks_kept: small,
                };
                /// The thread asked for a part of a pool's blocks to itself, and has it.
                SettleInPool 0x45 "settle in pool" {
                    /// Which.
                    pool: pool,
                };
                /// A scope is freed, with all that is in it.
                FreeScope 0x51 "free scope" {
                    /// Which.
                    scope: freed_scope,
                };
                /// A frame began.
                Frame 0x60 "frame" {
                    /// Its index, as the program said.
                    index: small,
                };
                /// What is empty was given back to the driver.
                Trim 0x61 "trim";
                /// How many empty blocks each memory type keeps was changed.
                SetEmptyBlocksKept 0x62 "set empty blocks kept" {
                    /// How many they keep now.
                    empty_blocks_kept: small,
                };
                /// The thread asked for a part of a memory type's blocks to itself, and has it.
                SettleInMemoryType 0x63 "settle in memory type" {
                    /// Index of the memory type.
                    memory_type: small,
                };
                /// A pass of a defragmentation began.
                BeginPass 0x71 "begin pass" {
                    /// Of which.
                    defragmentation: defragmentation,
                    /// How many moves were planned. With none, the defragmentation has found its end.
                    moves: small,
                };
                /// A pass is over: its moves are resolved.
                EndPass 0x73 "end pass" {
                    /// Of which defragmentation.
                    defragmentation: defragmentation,
                };
                /// A defragmentation ended.
                EndDefragmentation 0x74 "end defragmentation" {
                    /// Which.
                    defragmentation: ended_defragmentation,
                };
            }
        }
    };
}
pub(crate) use operations;
