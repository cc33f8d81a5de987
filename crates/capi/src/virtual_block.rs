//! The object behind a `VmaVirtualBlock`.

use sublet::VirtualBlock;

/// A virtual block. Its allocations need no objects: a `VmaVirtualAllocation` is the engine's key.
#[derive(Debug)]
pub struct BlockObject {
    pub(super) block: VirtualBlock,
}
