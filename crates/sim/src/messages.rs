//! The reports of the simulated driver about the program that uses it.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

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

impl Messages {
    pub(super) fn push(&self, vuid: &'static str, text: String) {
        tracing::error!(name: "invalid_usage", target: "sublet::sim", vuid, "{text}");
        let mut list = self.list.lock();
        list.push(Message { vuid, text });
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
