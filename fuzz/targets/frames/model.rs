//! The bytes of all resources on the host.

use std::collections::VecDeque;

use sublet_frame::ReadBack;

/// A buffer, or a subresource of an image: its index in the model, and that of the subresource.
pub(crate) type Surface = (usize, usize);

/// The effect of a command, applied when its list is submitted.
pub(crate) enum Effect {
    Write { to: Surface, at: usize, bytes: Vec<u8> },
    Copy { from: Surface, from_at: usize, to: Surface, at: usize, len: usize },
    Read { from: Surface, at: usize, len: usize, read: ReadBack },
}

impl Effect {
    /// Returns true if it concerns no byte.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Write { bytes, .. } => bytes.is_empty(),
            Self::Copy { len, .. } | Self::Read { len, .. } => *len == 0,
        }
    }
}

/// A read-back, and the bytes that it must have.
pub(crate) struct Expected {
    pub(crate) owner: usize,
    pub(crate) read: ReadBack,
    bytes: Vec<u8>,
}

impl Expected {
    /// Compares the bytes, if they are there.
    pub(crate) fn compare(&self) {
        // A lost device has none.
        if let Ok(bytes) = self.read.bytes() {
            assert_eq!(bytes, self.bytes, "the device has other bytes than the model");
        }
    }
}

/// The bytes of each resource that was ever created, by subresource.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) bytes: Vec<Vec<Vec<u8>>>,
    pub(crate) expected: VecDeque<Expected>,
}

impl Model {
    /// Adds a resource of zeroes. Returns its index.
    pub(crate) fn add(&mut self, sizes: impl Iterator<Item = usize>) -> usize {
        self.bytes.push(sizes.map(|size| vec![0; size]).collect());
        self.bytes.len() - 1
    }

    pub(crate) fn apply(&mut self, owner: usize, effect: Effect) {
        match effect {
            Effect::Write { to, at, bytes } => {
                self.bytes[to.0][to.1][at..at + bytes.len()].copy_from_slice(&bytes);
            }
            Effect::Copy { from, from_at, to, at, len } => {
                let bytes = self.bytes[from.0][from.1][from_at..from_at + len].to_vec();
                self.bytes[to.0][to.1][at..at + len].copy_from_slice(&bytes);
            }
            Effect::Read { from, at, len, read } => {
                let bytes = self.bytes[from.0][from.1][at..at + len].to_vec();
                self.expected.push_back(Expected { owner, read, bytes });
            }
        }
    }
}
