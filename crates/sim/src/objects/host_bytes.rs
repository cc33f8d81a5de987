//! Host memory that an object takes through the allocation callbacks of the program.

/// The host memory of one object: its address, if the program gave callbacks; 0 if they have no allocation function.
/// `host::give_back` returns it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostBytes(pub(crate) Option<usize>);
