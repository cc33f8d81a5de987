//! References to an allocator, borrowed or shared.

use std::rc::Rc;
use std::sync::Arc;

use crate::allocator::Allocator;

mod sealed {
    pub trait SealedAllocatorRef {}
}

/// Something that holds an [`Allocator`]: `&Allocator`, `Arc<Allocator>` or `Rc<Allocator>`.
///
/// An object that is created with a reference cannot outlive the allocator. One that is created with an `Arc` keeps the
/// allocator alive, and can be stored beside it in one structure. The trait is sealed: every call returns the same
/// allocator.
///
/// ```
/// # use sublet::{*, upload::*};
/// # let (gpu, allocator) = sublet::doc_example();
/// use std::sync::Arc;
///
/// struct Renderer {
///     uploads: UploadArena<Arc<Allocator>>,
///     allocator: Arc<Allocator>,
/// }
/// let allocator = Arc::new(allocator);
/// // SAFETY: the usages need nothing enabled, and nothing is submitted here.
/// let uploads = unsafe { UploadArena::new(Arc::clone(&allocator), &UploadArenaCreateInfo::default()) }?;
/// let renderer = Renderer { uploads, allocator };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AllocatorRef: sealed::SealedAllocatorRef {
    /// The allocator.
    fn allocator(&self) -> &Allocator;
}

impl sealed::SealedAllocatorRef for &Allocator {}
impl AllocatorRef for &Allocator {
    fn allocator(&self) -> &Allocator {
        self
    }
}

impl sealed::SealedAllocatorRef for Arc<Allocator> {}
impl AllocatorRef for Arc<Allocator> {
    fn allocator(&self) -> &Allocator {
        self
    }
}

impl sealed::SealedAllocatorRef for Rc<Allocator> {}
impl AllocatorRef for Rc<Allocator> {
    fn allocator(&self) -> &Allocator {
        self
    }
}
