//! The reports of the simulated driver about the program that uses it.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::messenger;
use super::state::Hub;

/// A report of wrong use.
///
/// ```
/// use sublet_sim::{Gpu, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// let info = ash::vk::BufferCreateInfo::default(); // a buffer of no size and no usage
/// assert!(unsafe { gpu.device().create_buffer(&info, None) }.is_err());
/// assert_eq!(gpu.take_messages()[0].vuid, "VUID-VkBufferCreateInfo-size-00912");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The valid-usage identifier of the Vulkan specification, or `SUBLET-...` where the specification has none.
    pub vuid: &'static str,
    /// What happened, with the objects and numbers.
    pub text: String,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.vuid, self.text)
    }
}

/// The messages of one driver.
#[derive(Debug, Default)]
pub(super) struct Messages {
    list: Mutex<Vec<Message>>,
    /// Whether the program has read all of the list.
    read: AtomicBool,
}

thread_local! {
    /// Reports of this thread that are not sent yet; `None` outside of [`deferred`].
    static UNSENT: RefCell<Option<Vec<Message>>> = const { RefCell::new(None) };
}

/// Runs `body`, and sends its reports to the program when `body` has released its locks: a messenger may use the
/// [`Gpu`](crate::Gpu).
pub(super) fn deferred<R>(hub: &Hub, body: impl FnOnce() -> R) -> R {
    // At the end of a thread, without its own data, reports are sent at once.
    let outer = UNSENT.try_with(|unsent| unsent.replace(Some(Vec::new()))).ok().flatten();
    let result = body();
    let own = UNSENT.try_with(|unsent| unsent.replace(outer)).ok().flatten();
    own.into_iter().flatten().for_each(|message| message.send(hub));
    result
}

impl Message {
    fn send(&self, hub: &Hub) {
        let Self { vuid, text } = self;
        messenger::send(hub, vuid, text);
        tracing::error!(name: "invalid_usage", target: "sublet::sim", vuid, "{text}");
    }
}

impl Hub {
    /// Reports wrong use. Never fails, and takes no lock that a caller may hold: [`deferred`] sends the report to the
    /// program later.
    pub(super) fn report(&self, vuid: &'static str, text: impl Into<String>) {
        let message = Message { vuid, text: text.into() };
        self.messages.push(message.clone());
        let mut at_once = Some(message);
        let _ = UNSENT.try_with(|unsent| {
            if let Some(unsent) = &mut *unsent.borrow_mut() {
                unsent.extend(at_once.take());
            }
        });
        if let Some(message) = at_once {
            message.send(self);
        }
    }
}

impl Messages {
    fn push(&self, message: Message) {
        let mut list = self.list.lock();
        list.push(message);
        self.read.store(false, Ordering::Relaxed);
    }

    pub(super) fn all(&self) -> Vec<Message> {
        let list = self.list.lock();
        self.read.store(true, Ordering::Relaxed);
        list.clone()
    }

    pub(super) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.list.lock())
    }

    /// The messages, if the program has not read all of them.
    pub(super) fn unread(&self) -> Vec<Message> {
        if self.read.load(Ordering::Relaxed) { Vec::new() } else { self.take() }
    }
}
