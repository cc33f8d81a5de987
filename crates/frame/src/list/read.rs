//! Read-backs from the device to the host.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ash::vk;
use parking_lot::Mutex;
use sublet::MapError;
use sublet::retire::Ticket;

use crate::device::LostDevice;
use crate::resource::Buffer;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ReadPhase {
    #[default]
    Recorded,
    Submitted(Ticket),
    Ready,
    Never,
    Lost,
}

/// The progress of a read-back. No lock is taken under its lock, and wakers run after it is released.
#[derive(Default)]
pub(crate) struct ReadState(Mutex<(ReadPhase, Option<Waker>)>);

impl ReadState {
    pub(crate) fn submitted(&self, ticket: Ticket) {
        self.0.lock().0 = ReadPhase::Submitted(ticket);
    }

    /// Completes the read-back when its list is done or dropped.
    pub(crate) fn complete(&self, lost: bool) {
        let mut state = self.0.lock();
        state.0 = match state.0 {
            _ if lost => ReadPhase::Lost,
            ReadPhase::Submitted(_) => ReadPhase::Ready,
            _ => ReadPhase::Never,
        };
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Bytes that a list copies back to the host: see [`CommandList::read_buffer`](crate::CommandList::read_buffer) and
/// [`CommandList::read_image`](crate::CommandList::read_image).
///
/// It becomes ready when [`Frames::begin`](crate::Frames::begin), [`collect`](crate::Frames::collect) or
/// [`wait`](crate::Frames::wait) finds that the list is done. These calls also wake tasks that await the [`Future`].
pub struct ReadBack {
    state: Arc<ReadState>,
    buffer: Buffer,
}

impl ReadBack {
    pub(super) fn new(state: Arc<ReadState>, buffer: Buffer) -> Self {
        Self { state, buffer }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.buffer.size()
    }

    /// Returns true if the bytes are available.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state.0.lock().0 == ReadPhase::Ready
    }

    /// Returns the ticket of the submission. `None` before the submission and once the read-back is ready or has
    /// failed.
    #[must_use]
    pub fn ticket(&self) -> Option<Ticket> {
        match self.state.0.lock().0 {
            ReadPhase::Submitted(ticket) => Some(ticket),
            ReadPhase::Recorded | ReadPhase::Ready | ReadPhase::Never | ReadPhase::Lost => None,
        }
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn bytes(&self) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; usize::try_from(self.size()).map_err(|_| ReadError::Never)?];
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes from `offset` on into `bytes`.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
        match self.state.0.lock().0 {
            ReadPhase::Ready => {}
            ReadPhase::Never => return Err(ReadError::Never),
            ReadPhase::Lost => return Err(ReadError::Lost),
            ReadPhase::Recorded | ReadPhase::Submitted(_) => return Err(ReadError::NotReady),
        }
        let allocation = self.buffer.allocation().ok_or(ReadError::Never)?;
        let core = self.buffer.core();
        let copied = core.allocator.copy_from_allocation(allocation, offset, bytes);
        copied.map_err(|error| core.or_lost(ReadError::Map(error)))
    }
}

impl Future for ReadBack {
    type Output = Result<Vec<u8>, ReadError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Wakers run code of the program, so clone and drop them without locks.
        let waker = context.waker().clone();
        let mut state = self.state.0.lock();
        if matches!(state.0, ReadPhase::Recorded | ReadPhase::Submitted(_)) {
            let before = state.1.replace(waker);
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        drop(state);
        Poll::Ready(self.bytes())
    }
}

impl From<&ReadBack> for Option<Ticket> {
    fn from(read: &ReadBack) -> Self {
        read.ticket()
    }
}

impl fmt::Debug for ReadBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBack").field("size", &self.size()).field("ready", &self.is_ready()).finish()
    }
}

/// An error of reading a [`ReadBack`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The device is not known to be done. [`Frames::wait`](crate::Frames::wait) waits for it.
    NotReady,
    /// The list was dropped, or its submission failed.
    Never,
    /// The device is lost.
    Lost,
    /// Mapping the memory failed.
    Map(MapError),
}

sublet_engines::errors! { ReadError:
    NotReady => "the device may not be done with the list: wait for it";
    Never => "the list was not submitted";
    Lost => "the device is lost" from &vk::Result::ERROR_DEVICE_LOST;
    Map(error) => "{error}";
}

impl LostDevice for ReadError {
    const LOST: Self = Self::Lost;
}
