//! Simulated devices of recordings.
#![expect(unsafe_code, reason = "creates an allocator")]

use sublet::trace::Header;
use sublet::{Allocator, CreateAllocatorError};
use sublet_fuzz::{MEMORY_LIMIT, silent};

/// Passes an allocator like the recorded one to a closure, and checks that nothing is left.
pub(crate) fn with_allocator<R>(
    header: &Header,
    task: impl FnOnce(&Allocator) -> R,
) -> Result<R, CreateAllocatorError> {
    let gpu = header.simulated().memory_limit(MEMORY_LIMIT).build();
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&header.create_info(&gpu)) }?;
    let result = task(&allocator);
    allocator.validate();
    drop(allocator.destroy());
    assert!(gpu.live().memories == 0, "{:?}", gpu.live());
    silent(&gpu);
    Ok(result)
}
