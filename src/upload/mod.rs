//! Uploads: bytes that the host writes for one recording, and that the device reads when the recording runs.
//!
//! Examples are the constants of a draw, the vertices of particles and of the user interface, and staging for copies.
//! Such bytes are written once, used once, and unused when the device is done with the recording. Creating a buffer for
//! each would cost a thousand times as much as writing them. An [`UploadArena`] owns buffers that stay mapped, its
//! pages, and hands out parts of them. A [`Clock`](crate::retire::Clock) reports, from fences or timeline semaphores,
//! that the device is done with a recording. The pages of that recording then become free:
//!
//! ```
//! use ash::vk;
//! use sublet::retire::Clock;
//! use sublet::upload::{UploadArena, UploadArenaCreateInfo};
//! use sublet::{Allocator, AllocatorCreateInfo, sim};
//!
//! let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap());
//! // SAFETY: the handles are live and outlive the allocator.
//! let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
//! let clock = Clock::new();
//! let graphics = clock.add_timeline()?;
//! let info = UploadArenaCreateInfo { name: Some("per frame"), ..Default::default() };
//! // SAFETY: the usages need nothing enabled, and the clock reports completion correctly.
//! let mut uploads = unsafe { UploadArena::new(&allocator, &info) }?;
//!
//! for frame in 0..6_u32 {
//!     // vkWaitForFences for the slot's fence goes here.
//!     let ticket = clock.begin_frame(graphics, frame % 3);
//!     uploads.collect(&clock)?;
//!
//!     for _draw in 0..100 {
//!         let matrix = uploads.write_value(&[0.0_f32; 16], uploads.alignments().uniform)?;
//!         let dynamic_offset = u32::try_from(matrix.offset)?; // for vkCmdBindDescriptorSets
//!     }
//!
//!     uploads.flush(ticket)?; // makes the bytes visible, and keeps them until the ticket is done
//!     // vkQueueSubmit goes here, with the slot's fence.
//!     clock.end_frame(ticket)?;
//! }
//! assert_eq!(uploads.statistics().pages, 3); // one for each frame in flight
//!
//! clock.idle(); // vkDeviceWaitIdle was called
//! uploads.collect(&clock)?;
//! drop(uploads); // destroys all pages, which are free
//! assert_eq!(allocator.statistics().block_count, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which memory
//! [`UploadMemory::Auto`] chooses device memory if the host can write all of it: the device then reads at full speed,
//! and the host writes over the bus once. It chooses host memory if only a window of 256 MiB of device memory is
//! writable, or if the bytes are only copied from. Both are write-combined on most devices: write in order, and do not
//! read.
//!
//! If that heap is full, the arena creates pages in the best memory type of another heap; the statistics report how
//! many. A pool of the program has one memory type, and the arena tries no other.
//!
//! # Threads
//! An arena is for one recording thread and has no locks. The memory of all arenas comes from the allocator, which is
//! thread-safe. Arenas of several threads can share the blocks of one [`pool`](UploadArenaCreateInfo::pool).

mod allocator_ref;
mod arena;
mod backing;
mod buffers;
mod create_info;
mod error;
mod piece;
mod statistics;

pub use allocator_ref::AllocatorRef;
pub use arena::UploadArena;
pub use create_info::{Oversize, UploadArenaCreateInfo, UploadMemory};
pub use error::{CreateUploadError, FlushError, UploadError, WaitError};
pub use piece::{Alignments, Upload};
pub use statistics::ArenaStatistics;
