//! Tracks when the GPU is done with a resource, so that it may be freed, reset or written again. Works with frame
//! fences and with timeline semaphores.
//!
//! Makes no Vulkan calls: the program reports its submissions and its readings.
//!
//! | | |
//! |---|---|
//! | [`Clock`] | tracks which recordings are done; one for each device, shared by all threads |
//! | [`ClockView`] | read access to a clock, for code that must not decide what is freed |
//! | [`TimelineId`] | identifies a timeline: a queue, or anything else with its own counter of submissions |
//! | [`Ticket`] | identifies a recording on a timeline; created when recording starts, and stored with its resources |
//! | [`Retire`] | a queue of items that wait for their tickets |
//!
//! # A ticket's life
//!
//! ```text
//!          open / begin_frame
//!                 |
//!               open ----- discard ------------------------> done
//!                 |
//!        submit / end_frame
//!                 |
//!        submitted with a value -- completed >= value -----> done
//! ```
//!
//! These calls report that a value is completed: [`Clock::completed`] and [`Clock::poll`] with a reading of a timeline
//! semaphore, [`Clock::begin_frame`] after a wait for the slot's fence, and [`Clock::idle`] after `vkDeviceWaitIdle`.
//! After [`Clock::shutdown`] everything is done.
//!
//! # With timeline semaphores
//!
//! ```
//! use sublet::retire::{Clock, Retire};
//!
//! let clock = Clock::new();
//! let graphics = clock.add_timeline()?; // one for each queue, each with its own semaphore
//! let mut garbage = Retire::new();
//!
//! let ticket = clock.open(graphics); // recording starts
//! garbage.push(ticket, "a buffer that the recording reads");
//! clock.submit(ticket, 1)?; // submitted; its vkQueueSubmit signals 1
//!
//! clock.poll(|_timeline| Ok::<u64, ()>(0)).unwrap(); // vkGetSemaphoreCounterValue returned 0: not done
//! assert_eq!(garbage.collect(&clock, |_| unreachable!())?, 0);
//! clock.poll(|_timeline| Ok::<u64, ()>(1)).unwrap();
//! assert_eq!(garbage.collect(&clock, |buffer| println!("{buffer} is free"))?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # With a fence for each frame in flight
//!
//! ```
//! # use sublet::retire::{Clock, Retire};
//! let clock = Clock::new();
//! let timeline = clock.add_timeline()?;
//! let mut garbage = Retire::new();
//! let mut freed = Vec::new();
//! for frame in 0..5_u32 {
//!     let slot = frame % 2;
//!     // vkWaitForFences for the slot's fence goes here.
//!     let ticket = clock.begin_frame(timeline, slot);
//!     garbage.collect(&clock, |item| freed.push(item))?;
//!     garbage.push(ticket, frame);
//!     // vkQueueSubmit with the slot's fence goes here.
//!     clock.end_frame(ticket)?;
//! }
//! assert_eq!(freed, [0, 1, 2]); // 3 and 4 are in flight
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules
//!
//! - A value is done when the counter of its timeline has reached it: `completed >= value`. All values of a timeline
//!   belong to one counter, and rise in the order in which the GPU executes. The order of the calls to the clock does
//!   not matter.
//! - Timelines never block each other. A ticket that is never submitted blocks only itself.
//! - A clock keeps a few bytes for each unfinished ticket, and nothing for finished ones.

mod clock;
mod error;
mod queue;
#[cfg(test)]
mod tests;
mod ticket;
mod timeline;

pub use self::clock::{Clock, ClockView};
pub use self::error::{
    ClockSubmitError, DiscardError, MixedClocks, OtherClock, ReserveError, TooManyTimelines,
};
pub use self::queue::Retire;
pub use self::ticket::{Ticket, TimelineId};
