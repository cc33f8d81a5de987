//! When the GPU is done with something, so that it may be freed, reset or written again: for frame fences and for
//! timeline semaphores alike.
//!
//! Knows no Vulkan and calls nobody: the program says what it submitted and what it read.
//!
//! | | |
//! |---|---|
//! | [`Clock`] | knows which recordings are done; one for a device, shared by all threads |
//! | [`ClockView`] | a clock that can only be asked: what to hand to code that is not to decide what is freed |
//! | [`LaneId`] | a queue, or anything else whose submissions are counted up by a number of its own |
//! | [`Ticket`] | one recording on a lane; made when recording starts, so that what it uses can be named with it at once |
//! | [`Retire`] | things that wait for their tickets |
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
//! What says that a value is completed: [`Clock::completed`] and [`Clock::poll`] with what was read from a timeline
//! semaphore, [`Clock::begin_frame`] after its slot's fence was waited for, [`Clock::idle`] after `vkDeviceWaitIdle`.
//! After [`Clock::shutdown`] everything is done.
//!
//! # With timeline semaphores
//!
//! ```
//! use sublet::retire::{Clock, Retire};
//!
//! let clock = Clock::new();
//! let graphics = clock.add_lane()?; // one for each queue that signals a semaphore of its own
//! let mut garbage = Retire::new();
//!
//! let ticket = clock.open(graphics); // recording starts
//! garbage.push(ticket, "a buffer that the recording reads");
//! clock.submit(ticket, 1)?; // submitted; its vkQueueSubmit signals 1
//!
//! clock.poll(|_lane| Ok::<u64, ()>(0)).unwrap(); // vkGetSemaphoreCounterValue says 0: not yet
//! assert_eq!(garbage.collect(&clock, |_| unreachable!())?, 0);
//! clock.poll(|_lane| Ok::<u64, ()>(1)).unwrap();
//! assert_eq!(garbage.collect(&clock, |buffer| println!("{buffer} is free"))?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # With a fence for each frame in flight
//!
//! ```
//! # use sublet::retire::{Clock, Retire};
//! let clock = Clock::new();
//! let lane = clock.add_lane()?;
//! let mut garbage = Retire::new();
//! let mut freed = Vec::new();
//! for frame in 0..5_u32 {
//!     let slot = frame % 2;
//!     // vkWaitForFences for the slot's fence goes here.
//!     let ticket = clock.begin_frame(lane, slot);
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
//! - A value is done when the lane's counter has reached it: `completed >= value`. All values of a lane are of one
//!   counter, and rise in the order in which the GPU executes. The order of the calls to the clock does not matter.
//! - One lane never holds another up, and a ticket that is never submitted holds up only itself.
//! - A clock keeps a few bytes for each ticket that is not done, and nothing for those that are.
#![forbid(unsafe_code)]

mod clock;
mod error;
mod lane;
mod queue;
#[cfg(test)]
mod tests;
mod ticket;

pub use self::clock::{Clock, ClockView};
pub use self::error::{DiscardError, MixedClocks, OtherClock, ReserveError, SubmitError, TooManyLanes};
pub use self::queue::Retire;
pub use self::ticket::{LaneId, Ticket};
