//! Ranges by numbers, for who cannot hold a [`VirtualAllocation`].
#![forbid(unsafe_code)]

use std::num::NonZeroU64;

use super::{VirtualAllocation, VirtualBlock};
use crate::metadata::{Key, Metadata};

impl VirtualAllocation {
    /// The number that the block calls the range by; never 0.
    #[doc(hidden)]
    pub const fn handle(&self) -> u64 {
        self.key.0.get()
    }
}

impl VirtualBlock {
    /// The range of that number. `None` if there is none: it was freed, or the block was cleared.
    #[doc(hidden)]
    pub fn known(&self, handle: u64) -> Option<VirtualAllocation> {
        let key = Key(NonZeroU64::new(handle)?);
        let span = self.engine.span(key).ok()?;
        Some(VirtualAllocation { block: self.id, key, offset: span.offset, size: span.size })
    }
}
