//! Ranges named by numbers, for the C interface, which cannot hold a [`VirtualAllocation`].
#![forbid(unsafe_code)]

use std::num::NonZeroU64;

use super::{VirtualAllocation, VirtualBlock};
use crate::metadata::{Key, Metadata};

impl VirtualAllocation {
    /// The number that names the range in its block; never 0.
    #[doc(hidden)]
    pub const fn handle(&self) -> u64 {
        self.key.0.get()
    }
}

impl VirtualBlock {
    /// The range that a number names. `None` if it was freed, or the block was cleared.
    #[doc(hidden)]
    pub fn known(&self, handle: u64) -> Option<VirtualAllocation> {
        let key = Key(NonZeroU64::new(handle)?);
        let span = self.engine.span(key).ok()?;
        Some(VirtualAllocation { block: self.id, key, offset: span.offset, size: span.size })
    }
}
