//! The calls of a program.

use arbitrary::Arbitrary;
use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use sublet_fuzz::{Alignment, Calls, Choice, Fault, Number};

/// A program, and the settings of its allocators.
#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    pub(crate) profile: Choice,
    pub(crate) growth: Choice,
    pub(crate) empty_blocks_kept: Choice,
    /// Bytes; 0 in most programs.
    pub(crate) margin: Choice,
    /// The debug settings of most programs are those of users.
    pub(crate) debug: Choice,
    pub(crate) granularity: Choice,
    pub(crate) records: bool,
    pub(crate) virtual_size: Number,
    pub(crate) virtual_algorithm: Choice,
    pub(crate) calls: Calls<Call>,
}

/// One of two allocators.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Owner(bool);

impl Owner {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The origin of an allocation's memory.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Place {
    Default,
    Pool(Choice),
    Scope(Choice),
}

/// The parameters of an allocation.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) owner: Owner,
    pub(crate) place: Place,
    flags: Option<[Choice; 2]>,
    usage: Choice,
    required: Option<Choice>,
    preferred: Choice,
    priority: Choice,
    pub(crate) min_alignment: Alignment,
    pub(crate) user_data: Number,
    pub(crate) is_named: bool,
}

const FLAGS: [Flags; 14] = [
    Flags::empty(),
    Flags::DEDICATED_MEMORY,
    Flags::NEVER_ALLOCATE,
    Flags::MAPPED,
    Flags::MAPPED,
    Flags::UPPER_ADDRESS,
    Flags::WITHIN_BUDGET,
    Flags::CAN_ALIAS,
    Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
    Flags::HOST_ACCESS_RANDOM,
    Flags::HOST_ACCESS_RANDOM.union(Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD),
    Flags::STRATEGY_MIN_MEMORY,
    Flags::STRATEGY_MIN_TIME,
    Flags::STRATEGY_MIN_OFFSET,
];
const PROPERTIES: [vk::MemoryPropertyFlags; 6] = [
    vk::MemoryPropertyFlags::empty(),
    vk::MemoryPropertyFlags::empty(),
    vk::MemoryPropertyFlags::DEVICE_LOCAL,
    vk::MemoryPropertyFlags::HOST_VISIBLE,
    vk::MemoryPropertyFlags::HOST_COHERENT,
    vk::MemoryPropertyFlags::HOST_CACHED,
];
pub(crate) const NAME: &str = "a name";
pub(crate) const PRIORITIES: [f32; 8] = [0.5, 0.5, 0.5, 0.0, 0.25, 1.0, -1.0, f32::NAN];

impl Request {
    /// Returns the create-info, without its place.
    pub(crate) fn info(&self) -> AllocationCreateInfo<'static> {
        AllocationCreateInfo {
            flags: self.flags.map_or(Flags::empty(), |[one, two]| one.one(&FLAGS) | two.one(&FLAGS)),
            usage: self.usage.one(MemoryUsage::ALL),
            required_flags: self
                .required
                .map_or(vk::MemoryPropertyFlags::empty(), |choice| choice.one(&PROPERTIES)),
            preferred_flags: self.preferred.one(&PROPERTIES),
            user_data: self.user_data.0,
            priority: self.priority.one(&PRIORITIES),
            min_alignment: self.min_alignment.0,
            name: self.is_named.then_some(NAME),
            ..AllocationCreateInfo::default()
        }
    }
}

/// The parameters of a pool.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct PoolRequest {
    pub(crate) memory_type: Choice,
    pub(crate) algorithm: Choice,
    pub(crate) block_size: Number,
    pub(crate) min_blocks: Choice,
    pub(crate) max_blocks: Choice,
    pub(crate) priority: Choice,
    pub(crate) min_alignment: Alignment,
    pub(crate) ignores_granularity: bool,
}

/// A use of a live allocation. Some are made by the other allocator, which must reject them.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Use {
    Write { offset: Number, len: u8 },
    Read { offset: Number, len: u8 },
    Flush { offset: Number, size: Number },
    Invalidate { offset: Number, size: Number },
    Map { offset: Number, len: u8 },
    Name(bool),
    UserData(Number),
    Priority(Choice),
}

/// The outcome of a planned move.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum MoveChoice {
    Complete,
    Ignore,
    Drop,
    Free,
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Call {
    Allocate {
        request: Request,
        size: Number,
        alignment: Alignment,
        types: u8,
        count: Choice,
    },
    CreateBuffer {
        request: Request,
        size: Number,
        usage: Choice,
    },
    CreateImage {
        request: Request,
        side: u8,
        is_linear: bool,
        mips: Choice,
    },
    Free {
        which: Choice,
        by_other: bool,
    },
    Use {
        which: Choice,
        by_other: bool,
        action: Use,
    },
    CreatePool {
        owner: Owner,
        request: PoolRequest,
    },
    ReserveInPool {
        which: Choice,
        bytes: Number,
        by_other: bool,
    },
    DestroyPool {
        which: Choice,
        by_other: bool,
    },
    CreateScope {
        owner: Owner,
        block_size: Number,
    },
    FreeScope {
        which: Choice,
    },
    Defragment {
        owner: Owner,
        algorithm: Choice,
        in_pool: Option<Choice>,
        bytes: Number,
        moves: Vec<MoveChoice>,
    },
    Reserve {
        owner: Owner,
        memory_type: Choice,
        bytes: Number,
    },
    KeepEmpty {
        owner: Owner,
        blocks: Choice,
    },
    Maintain {
        owner: Owner,
    },
    Trim {
        owner: Owner,
    },
    Frame {
        owner: Owner,
        frame: u32,
    },
    Virtual(VirtualCall),
    Fail(Fault),
    Check,
}

/// A call on the virtual block.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum VirtualCall {
    Allocate { size: Number, alignment: u8, strategy: Choice, upper: bool, user_data: Number },
    Free { which: Choice },
    UserData { which: Choice, user_data: Number },
    Clear,
}
