//! The calls of a program.

use arbitrary::Arbitrary;
use sublet_fuzz::{Calls, Choice, Fault};

/// A program.
#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    pub(crate) profile: Choice,
    /// Submissions wait until the program waits for them.
    pub(crate) holds: bool,
    pub(crate) calls: Calls<Call>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Call {
    CreateBuffer {
        owner: bool,
    },
    CreateImage {
        owner: bool,
    },
    Forget {
        which: Choice,
    },
    Open {
        owner: bool,
        queue: bool,
    },
    Record {
        list: Choice,
        command: Command,
    },
    DropList {
        list: Choice,
    },
    /// Submits up to two lists, in this order.
    Submit {
        owner: bool,
        queue: bool,
        first: Choice,
        second: Option<Choice>,
    },
    Begin {
        owner: bool,
    },
    End {
        owner: bool,
    },
    Wait {
        owner: bool,
    },
    Read {
        wait: bool,
    },
    Compact {
        owner: bool,
    },
    Trim {
        owner: bool,
    },
    Fail(Fault),
}

/// A command on a buffer or image. Some ranges leave the buffer, which a list must reject.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) one: Choice,
    pub(crate) other: Choice,
    pub(crate) at: u8,
    pub(crate) other_at: u8,
    pub(crate) len: u8,
    pub(crate) mip: Choice,
    pub(crate) layer: Choice,
    pub(crate) value: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Kind {
    Fill,
    Update,
    Upload,
    Copy,
    ReadBuffer,
    UploadImage,
    ReadImage,
    ClearImage,
    CopyImage,
    CopyFromBuffer,
    CopyToBuffer,
}
