//! The calls of a program in C.

use std::ptr::null_mut;

use arbitrary::Arbitrary;
use ash::vk;
use sublet_capi::{USER_DATA_COPY_STRING, VmaAllocationCreateInfo, VmaPool};
use sublet_fuzz::{Alignment, Calls, Choice, Fault, Number};

/// A program.
#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    pub(crate) profile: Choice,
    pub(crate) virtual_size: Number,
    pub(crate) is_linear: bool,
    pub(crate) calls: Calls<Call>,
}

/// The parameters of an allocation.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) owner: bool,
    pub(crate) pool: Option<Choice>,
    flags: [Choice; 2],
    /// Mostly a known one.
    usage: u8,
    required: Choice,
    memory_type_bits: Option<u32>,
    priority: u8,
    pub(crate) alignment: Alignment,
}

impl Request {
    pub(crate) fn info(&self, pool: VmaPool) -> VmaAllocationCreateInfo {
        let flags = |choice: Choice| {
            1_u32.checked_shl(choice.one(&[32, 32, 0, 1, 2, 2, 3, 6, 8, 9, 10, 11, 12, 16, 17, 18, 31]))
        };
        let flags = self.flags.into_iter().filter_map(flags).fold(0, |all, flag| all | flag);
        VmaAllocationCreateInfo {
            flags: flags & !USER_DATA_COPY_STRING,
            usage: u32::from(self.usage % 12),
            required_flags: vk::MemoryPropertyFlags::from_raw(
                self.required.one(&[0, 0, 1, 2, 4, 6, 8, 14, 16, 64]),
            ),
            preferred_flags: vk::MemoryPropertyFlags::empty(),
            memory_type_bits: self.memory_type_bits.unwrap_or(0),
            pool,
            user_data: null_mut(),
            priority: f32::from(self.priority) / 200.0,
            min_alignment: self.alignment.0,
        }
    }
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Call {
    Allocate {
        request: Request,
        size: Number,
        alignment: Alignment,
        types: u8,
    },
    AllocatePages {
        request: Request,
        size: Number,
        alignment: Alignment,
        count: u8,
    },
    CreateBuffer {
        request: Request,
        size: Number,
    },
    Free {
        which: Choice,
    },
    FreeNothing {
        owner: bool,
    },
    /// Any function that takes an allocation, mostly with its own allocator.
    Use {
        which: Choice,
        by_other: bool,
        action: Use,
    },
    CreatePool {
        owner: bool,
        memory_type: Choice,
        flags: Choice,
        block_size: Number,
        counts: [Choice; 2],
        alignment: Alignment,
    },
    DestroyPool {
        which: Choice,
        by_other: bool,
    },
    UsePool {
        which: Choice,
        by_other: bool,
        is_named: bool,
    },
    Defragment {
        owner: bool,
        flags: u8,
        in_pool: Option<Choice>,
        bytes: Number,
        moves: Vec<u8>,
    },
    Virtual {
        size: Number,
        alignment: u8,
        flags: Choice,
    },
    VirtualFree {
        which: Choice,
    },
    VirtualClear,
    Statistics {
        owner: bool,
        detailed: bool,
    },
    Frame {
        owner: bool,
        frame: u32,
    },
    Fail(Fault),
    Check,
}

/// A use of a live allocation.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Use {
    Map,
    Flush { offset: Number, size: Number },
    Invalidate { offset: Number, size: Number },
    Write { offset: Number, len: u8 },
    Read { offset: Number, len: u8 },
    Name { is_named: bool },
    UserData { number: u8 },
    Info,
}
