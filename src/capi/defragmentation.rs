//! What is behind a `VmaDefragmentationContext`.

/// A defragmentation under way.
#[derive(Debug)]
pub struct ContextObject(());
