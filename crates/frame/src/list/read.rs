//! Bytes that come back from the device.
#![forbid(unsafe_code)]

use std::error::Error;
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
enum Phase {
    #[default]
    Recorded,
    Submitted(Ticket),
    Ready,
    Never,
    Lost,
}

/// Where a read-back is on its way.
#[derive(Default)]
pub(crate) struct ReadState(Mutex<(Phase, Option<Waker>)>);

impl ReadState {
    pub(crate) fn submitted(&self, ticket: Ticket) {
        self.0.lock().0 = Phase::Submitted(ticket);
    }

    /// The list is done, or will never be.
    pub(crate) fn settle(&self, lost: bool) {
        let mut state = self.0.lock();
        state.0 = match state.0 {
            _ if lost => Phase::Lost,
            Phase::Submitted(_) => Phase::Ready,
            _ => Phase::Never,
        };
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Bytes that the device copies to where the host reads them, once the list is done that was told so:
/// [`CommandList::read_buffer`](crate::CommandList::read_buffer),
/// [`CommandList::read_image`](crate::CommandList::read_image).
///
/// It is ready when [`Frames::begin`](crate::Frames::begin), [`collect`](crate::Frames::collect) or
/// [`wait`](crate::Frames::wait) finds that the list is done. It is also a [`Future`], which they wake.
pub struct ReadBack {
    state: Arc<ReadState>,
    buffer: Buffer,
}

impl ReadBack {
    pub(super) fn new(state: Arc<ReadState>, buffer: Buffer) -> Self {
        Self { state, buffer }
    }

    /// How many bytes there will be.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.buffer.size()
    }

    /// Whether the bytes are there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state.0.lock().0 == Phase::Ready
    }

    /// The ticket of the submission; none before it is submitted, and none once it is ready.
    #[must_use]
    pub fn ticket(&self) -> Option<Ticket> {
        match self.state.0.lock().0 {
            Phase::Submitted(ticket) => Some(ticket),
            Phase::Recorded | Phase::Ready | Phase::Never | Phase::Lost => None,
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`ReadError`]: it is not ready, or never will be.
    pub fn bytes(&self) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; usize::try_from(self.size()).map_err(|_| ReadError::Never)?];
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes from `offset` on.
    ///
    /// # Errors
    /// [`ReadError`]: it is not ready, or never will be.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
        match self.state.0.lock().0 {
            Phase::Ready => {}
            Phase::Never => return Err(ReadError::Never),
            Phase::Lost => return Err(ReadError::Lost),
            Phase::Recorded | Phase::Submitted(_) => return Err(ReadError::NotReady),
        }
        let allocation = self.buffer.allocation().ok_or(ReadError::Never)?;
        let core = self.buffer.core();
        let copied = core.allocator.copy_from_allocation(allocation, offset, bytes);
        copied.map_err(|error| core.told(ReadError::Map(error)))
    }
}

impl Future for ReadBack {
    type Output = Result<Vec<u8>, ReadError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Wakers are the program's: they are cloned and dropped when no lock is held.
        let waker = context.waker().clone();
        let mut state = self.state.0.lock();
        if matches!(state.0, Phase::Recorded | Phase::Submitted(_)) {
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

/// Why there are no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The device is not known to be done. [`Frames::wait`](crate::Frames::wait) waits for it.
    NotReady,
    /// The list was dropped or refused.
    Never,
    /// The device is lost.
    Lost,
    /// The memory could not be read.
    Map(MapError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady => f.write_str("the device is not known to be done with the list"),
            Self::Never => f.write_str("the list was not submitted"),
            Self::Lost => f.write_str("the device is lost"),
            Self::Map(error) => error.fmt(f),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Map(error) => error.source(),
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::NotReady | Self::Never => None,
        }
    }
}

impl LostDevice for ReadError {
    const LOST: Self = Self::Lost;
}
