//! What is behind a `VmaVirtualBlock`.

use sublet::VirtualBlock;

/// A virtual block. Its allocations need no objects: a `VmaVirtualAllocation` is what the engine calls the range by.
#[derive(Debug)]
pub struct BlockObject {
    pub(super) block: VirtualBlock,
}
