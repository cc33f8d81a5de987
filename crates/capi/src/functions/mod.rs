//! The exported functions, one file for each noun. `include/vk_mem_alloc.h` documents them.

mod alias;
mod allocator;
mod bind;
mod corruption;
mod defragmentation;
#[cfg(windows)]
mod external;
mod map;
mod memory;
mod pool;
mod resource;
mod settings;
mod statistics;
mod strings;
mod virtual_block;
mod volk;

pub use alias::*;
pub use allocator::*;
pub use bind::*;
pub use corruption::*;
pub use defragmentation::*;
#[cfg(windows)]
pub use external::*;
pub use map::*;
pub use memory::*;
pub use pool::*;
pub use resource::*;
pub use settings::*;
pub use statistics::*;
pub use strings::*;
pub use virtual_block::*;
pub use volk::*;
