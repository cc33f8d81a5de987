//! The reports of the simulated driver about the program that uses it.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::cell::RefCell;
use std::ffi::CString;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use parking_lot::Mutex;

use crate::objects::state::GpuState;

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
    /// The description, with the objects and numbers.
    pub text: String,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.vuid, self.text)
    }
}

/// The messages of one driver.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    list: Mutex<Vec<Message>>,
    /// True if the program has read all of the list.
    read: AtomicBool,
}

thread_local! {
    /// Reports of this thread that are not sent yet; `None` outside of [`deferred`].
    static UNSENT: RefCell<Option<Vec<Message>>> = const { RefCell::new(None) };
}

/// Runs `body`, and sends its reports to the program when `body` has released its locks: a messenger may use the
/// [`Gpu`](crate::Gpu).
pub(crate) fn deferred<R>(gpu_state: &GpuState, body: impl FnOnce() -> R) -> R {
    // At the end of a thread, without its own data, reports are sent at once.
    let outer = UNSENT.try_with(|unsent| unsent.replace(Some(Vec::new()))).ok().flatten();
    let result = body();
    let own = UNSENT.try_with(|unsent| unsent.replace(outer)).ok().flatten();
    own.into_iter().flatten().for_each(|message| message.send(gpu_state));
    result
}

impl Message {
    fn send(&self, gpu_state: &GpuState) {
        let Self { vuid, text } = self;
        send(gpu_state, vuid, text);
        tracing::error!(name: "invalid_usage", target: "sublet::sim", vuid, "{text}");
    }
}

impl GpuState {
    /// Reports wrong use. Never fails, and takes no lock that a caller may hold: [`deferred`] sends the report to the
    /// program later.
    pub(crate) fn report(&self, vuid: &'static str, text: impl Into<String>) {
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

    pub(crate) fn all(&self) -> Vec<Message> {
        let list = self.list.lock();
        self.read.store(true, Ordering::Relaxed);
        list.clone()
    }

    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.list.lock())
    }

    /// The messages, if the program has not read all of them.
    pub(crate) fn unread(&self) -> Vec<Message> {
        if self.read.load(Ordering::Relaxed) { Vec::new() } else { self.take() }
    }
}

pub(crate) type MessageCallback = unsafe extern "system" fn(
    vk::DebugUtilsMessageSeverityFlagsEXT,
    vk::DebugUtilsMessageTypeFlagsEXT,
    *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    *mut std::ffi::c_void,
) -> vk::Bool32;

/// A `VkDebugUtilsMessengerEXT` that gets reports.
#[derive(Clone, Copy)]
pub(crate) struct Messenger {
    pub(crate) handle: vk::DebugUtilsMessengerEXT,
    pub(crate) callback: MessageCallback,
    /// The address of the program's data. The driver only passes it on.
    pub(crate) user_data: usize,
}

impl std::fmt::Debug for Messenger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messenger").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// Calls every messenger that takes this report.
pub(crate) fn send(gpu_state: &GpuState, vuid: &str, text: &str) {
    let messengers = gpu_state.messengers.lock().clone();
    if messengers.is_empty() {
        return;
    }
    let (Ok(name), Ok(text)) = (CString::new(vuid), CString::new(text)) else {
        return;
    };
    let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message_id_name(&name).message(&text);
    for messenger in messengers {
        let user_data = std::ptr::with_exposed_provenance_mut(messenger.user_data);
        let kind = vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION;
        // SAFETY: the program gave the function for this use, with this data, until it destroys the messenger; `data`
        // and its strings live during the call.
        let _ = unsafe {
            (messenger.callback)(
                vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
                kind,
                &raw const data,
                user_data,
            )
        };
    }
}
