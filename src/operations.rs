//! The table of recorded calls. Each row generates everything that depends on its call: the first byte of the record,
//! the allocator's `RecordedCall`, the event of a trace, the writer, the reader, and the words of a timeline.
//!
//! `operations!(then)` calls the macro `then` with the table. The first part has calls whose records are more than a
//! list of fields: each module that writes or reads records has a function for each of them. In the second part a row
//! suffices, because the modules implement the kinds of fields:
//!
//! | kind | in a record | in an event |
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
//!
//! The third part has the calls of a *foreign* program, one that allocates its memory without this library. A layer
//! writes them, so no allocator has them. Their kinds of fields are the implementations of `ForeignField`.

macro_rules! operations {
    ($then:ident) => {
        $then! {
            {
                /// An allocation that was live when the recording began. These come first, after their pools and
                /// scopes.
                Existing 0x10 "existing" (Box<Existing>);
                /// An allocation was made.
                Allocate 0x11 "allocate" (Box<Allocate>);
                /// An allocation failed.
                AllocateFailed 0x12 "allocate failed" (Box<AllocateFailed>);
                /// A pool was created, or existed when the recording began.
                CreatePool 0x40 "create pool" {
                    /// The pool.
                    pool: PoolNumber,
                    /// Its parameters.
                    settings: Box<PoolSettings>,
                };
                /// A scope was created, or existed when the recording began.
                CreateScope 0x50 "create scope" {
                    /// The scope.
                    scope: ScopeNumber,
                    /// Its parameters.
                    settings: Box<ScopeSettings>,
                };
                /// A defragmentation began.
                BeginDefragmentation 0x70 "begin defragmentation" (Box<BeginDefragmentation>);
                /// A move was resolved.
                Move 0x72 "move" {
                    /// The defragmentation.
                    defragmentation: DefragmentationNumber,
                    /// The allocation of the move.
                    allocation: AllocationNumber,
                    /// The outcome of the move.
                    outcome: MoveOutcome,
                };
            }
            {
                /// An allocation is freed. Allocations that end with their pool or scope have no separate event.
                Free 0x13 "free" {
                    /// The allocation.
                    allocation: freed,
                };
                /// An allocation was mapped once more.
                Map 0x20 "map" {
                    /// The allocation.
                    allocation: allocation,
                };
                /// An allocation was unmapped once.
                Unmap 0x21 "unmap" {
                    /// The allocation.
                    allocation: allocation,
                };
                /// Host writes were made visible to the device. A call for several ranges makes several events.
                Flush 0x22 "flush" {
                    /// The allocation.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Bytes, or `vk::WHOLE_SIZE`.
                    size: size,
                };
                /// Device writes were made visible to the host. A call for several ranges makes several events.
                Invalidate 0x23 "invalidate" {
                    /// The allocation.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Bytes, or `vk::WHOLE_SIZE`.
                    size: size,
                };
                /// Bytes were copied into an allocation: mapped, written, flushed and unmapped in one call.
                CopyTo 0x24 "copy to" {
                    /// The allocation.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Copied bytes.
                    size: size,
                };
                /// Bytes were copied out of an allocation: mapped, invalidated, read and unmapped in one call.
                CopyFrom 0x25 "copy from" {
                    /// The allocation.
                    allocation: allocation,
                    /// Bytes from its start.
                    offset: long,
                    /// Copied bytes.
                    size: size,
                };
                /// The name of an allocation was changed.
                SetName 0x30 "set name" {
                    /// The allocation.
                    allocation: allocation,
                    /// The name.
                    name: text,
                };
                /// The user data of an allocation was changed.
                SetUserData 0x31 "set user data" {
                    /// The allocation.
                    allocation: allocation,
                    /// The new user data.
                    user_data: long,
                };
                /// The priority of a dedicated allocation was changed.
                SetPriority 0x32 "set priority" {
                    /// The allocation.
                    allocation: allocation,
                    /// The priority.
                    priority: float,
                };
                /// A pool is destroyed with everything in it.
                DestroyPool 0x41 "destroy pool" {
                    /// The pool.
                    pool: destroyed_pool,
                };
                /// The name of a pool was changed.
                SetPoolName 0x42 "set pool name" {
                    /// The pool.
                    pool: pool,
                    /// The name.
                    name: text,
                };
                /// The priority of a pool's blocks was changed.
                SetPoolPriority 0x43 "set pool priority" {
                    /// The pool.
                    pool: pool,
                    /// The priority.
                    priority: float,
                };
                /// The number of empty blocks that a pool keeps was changed.
                SetPoolEmptyBlocksKept 0x44 "set empty blocks kept of pool" {
                    /// The pool.
                    pool: pool,
                    /// The new number.
                    empty_blocks_kept: small,
                };
                /// The thread requested a shard of a pool, and got it.
                SettleInPool 0x45 "settle in pool" {
                    /// The pool.
                    pool: pool,
                };
                /// Blocks of a pool were created ahead of need.
                ReserveInPool 0x46 "reserve in pool" {
                    /// The pool.
                    pool: pool,
                    /// Bytes that unused blocks had afterwards, at least.
                    bytes: long,
                };
                /// A scope is freed with everything in it.
                FreeScope 0x51 "free scope" {
                    /// The scope.
                    scope: freed_scope,
                };
                /// A frame began.
                Frame 0x60 "frame" {
                    /// Its index, from the program.
                    index: small,
                };
                /// All empty blocks were freed.
                Trim 0x61 "trim";
                /// The number of empty blocks that each memory type keeps was changed.
                SetEmptyBlocksKept 0x62 "set empty blocks kept" {
                    /// The new number.
                    empty_blocks_kept: small,
                };
                /// The thread requested a shard of a memory type, and got it.
                SettleInMemoryType 0x63 "settle in memory type" {
                    /// Index of the memory type.
                    memory_type: small,
                };
                /// Blocks of a memory type were created ahead of need.
                Reserve 0x64 "reserve" {
                    /// Index of the memory type.
                    memory_type: small,
                    /// Bytes that unused blocks had afterwards, at least.
                    bytes: long,
                };
                /// Blocks were created ahead of need and freed, at most so many.
                // Not 0x65, which had no time. Records have no length, so a reader cannot tell the two apart.
                Maintain 0x66 "maintain" {
                    /// Calls of `vkAllocateMemory`.
                    max_allocations: small,
                    /// Calls of `vkFreeMemory`.
                    max_frees: small,
                    /// Their modelled time.
                    max_microseconds: small,
                };
                /// A pass of a defragmentation began.
                BeginPass 0x71 "begin pass" {
                    /// The defragmentation.
                    defragmentation: defragmentation,
                    /// The number of planned moves. With none, the defragmentation is complete.
                    moves: small,
                };
                /// A pass ended: its moves are resolved.
                EndPass 0x73 "end pass" {
                    /// The defragmentation.
                    defragmentation: defragmentation,
                };
                /// A defragmentation ended.
                EndDefragmentation 0x74 "end defragmentation" {
                    /// The defragmentation.
                    defragmentation: ended_defragmentation,
                };
            }
            {
                /// A foreign program allocated device memory.
                MemoryAllocated 0x80 "memory allocated" {
                    /// The memory.
                    memory: MemoryNumber,
                    /// Index of the memory type.
                    memory_type: u32,
                    /// Bytes.
                    size: u64,
                    /// Its kind.
                    flags: ForeignMemoryFlags,
                    /// The resource that the memory is dedicated to.
                    resource: Option<ResourceNumber>,
                };
                /// A foreign program could not allocate device memory.
                MemoryAllocationFailed 0x81 "memory allocation failed" {
                    /// Index of the memory type.
                    memory_type: u32,
                    /// Bytes.
                    size: u64,
                    /// The result of the driver.
                    result: vk::Result,
                };
                /// A foreign program freed device memory.
                MemoryFreed 0x82 "memory freed" {
                    /// The memory.
                    memory: MemoryNumber,
                };
                /// A foreign program mapped device memory.
                MemoryMapped 0x83 "memory mapped" {
                    /// The memory.
                    memory: MemoryNumber,
                    /// Bytes from its start.
                    offset: u64,
                    /// Bytes; `None` for all of the rest.
                    size: Option<u64>,
                };
                /// A foreign program unmapped device memory.
                MemoryUnmapped 0x84 "memory unmapped" {
                    /// The memory.
                    memory: MemoryNumber,
                };
                /// A foreign program flushed a range of mapped memory.
                MemoryFlushed 0x85 "memory flushed" {
                    /// The memory.
                    memory: MemoryNumber,
                    /// Bytes from its start.
                    offset: u64,
                    /// Bytes; `None` for all of the rest.
                    size: Option<u64>,
                };
                /// A foreign program invalidated a range of mapped memory.
                MemoryInvalidated 0x86 "memory invalidated" {
                    /// The memory.
                    memory: MemoryNumber,
                    /// Bytes from its start.
                    offset: u64,
                    /// Bytes; `None` for all of the rest.
                    size: Option<u64>,
                };
                /// A foreign program created a buffer.
                BufferCreated 0x88 "buffer created" {
                    /// The buffer.
                    resource: ResourceNumber,
                    /// Bytes.
                    size: u64,
                    /// `VkBufferUsageFlags2`, whose lower half are the `VkBufferUsageFlags`.
                    usage: u64,
                    /// `VkBufferCreateFlags`.
                    flags: u32,
                };
                /// A foreign program created an image.
                ImageCreated 0x89 "image created" {
                    /// The image.
                    resource: ResourceNumber,
                    /// Its parameters.
                    image: Box<ForeignImage>,
                };
                /// The memory requirements of a resource became known.
                Requirements 0x8a "requirements" {
                    /// The resource.
                    resource: ResourceNumber,
                    /// The requirements.
                    requirements: Box<ForeignRequirements>,
                };
                /// A foreign program bound a resource, or a plane of an image.
                Bound 0x8b "bound" {
                    /// The resource.
                    resource: ResourceNumber,
                    /// The plane of a disjoint image; `None` for all of the resource.
                    plane: Option<u32>,
                    /// The memory.
                    memory: MemoryNumber,
                    /// Bytes from the start of the memory.
                    offset: u64,
                };
                /// A foreign program destroyed a buffer or an image.
                ResourceDestroyed 0x8c "resource destroyed" {
                    /// The resource.
                    resource: ResourceNumber,
                };
                /// A foreign program named an object.
                Named 0x8d "named" {
                    /// The object.
                    object: ForeignObject,
                    /// The name.
                    name: Box<str>,
                };
                /// A foreign program bound a range of a sparse resource, or unbound it.
                SparseBound 0x8e "sparse bound" {
                    /// The resource.
                    resource: ResourceNumber,
                    /// The range and its memory.
                    binding: Box<SparseBinding>,
                };
                /// A foreign program submitted work to a queue.
                Submitted 0x90 "submitted" {
                    /// Number of command buffers.
                    command_buffers: u32,
                };
                /// A foreign program presented an image.
                Presented 0x91 "presented";
                /// The budget of a heap, as the driver reported it.
                Budget 0x92 "budget" {
                    /// Index of the heap.
                    heap: u32,
                    /// Bytes that the process may use.
                    budget: u64,
                    /// Bytes that it uses.
                    usage: u64,
                };
                /// The driver reported memory of its own objects (`VK_EXT_device_memory_report`).
                DriverMemory 0x93 "driver memory" {
                    /// The report.
                    report: Box<DriverMemoryReport>,
                };
                /// The device of a foreign program was lost.
                DeviceLost 0x94 "device lost";
                /// A foreign program destroyed its device.
                DeviceDestroyed 0x95 "device destroyed";
            }
        }
    };
}
pub(crate) use operations;
