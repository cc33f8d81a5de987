//! The form of an entry point, and the steps around the body of each: to find the object, to count, to fail on order.
//!
//! Each module that implements functions has a list `ENTRIES` of them. `driver` has the list of these lists. A function
//! is counted, delayed and failed under its first name.

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::broken::Broken;
use crate::objects::state::{DeviceObject, GpuState};
use crate::objects::{messages, registry, state};

/// A C function whose type is known to whoever asks for it by name.
pub(crate) type Function = unsafe extern "system" fn();

/// The object that a function is called on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionLevel {
    Global,
    Instance,
    Device,
}

/// When a program can get a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// From this minor version of Vulkan 1 on.
    Core(u32),
    /// With this extension.
    Extension(&'static str),
}

/// The name of a function, and when a program can get it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) name: &'static str,
    pub(crate) when: When,
}

/// One function of the driver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryPoint {
    /// Its names; the first one is what it is counted under.
    pub(crate) offers: &'static [Offer],
    pub(crate) level: FunctionLevel,
    /// True if it returns a `VkResult`, so that it can be made to fail.
    pub(crate) fallible: bool,
    pub(crate) function: Function,
}

impl EntryPoint {
    /// The name that it is counted under.
    pub(crate) fn name(&self) -> &'static str {
        self.offers[0].name
    }

    pub(crate) fn offered(&self, name: &str, mut to: impl FnMut(When) -> bool) -> bool {
        self.offers.iter().any(|offer| offer.name == name && to(offer.when))
    }
}

/// Makes the list of a module's entry points. The compiler checks each function against Vulkan's type of it.
///
/// ```text
/// entries! {
///     Device result vk::PFN_vkMapMemory = map_memory: core 0 "vkMapMemory";
/// Device void vk::PFN_vkTrimCommandPool = trim: core 1 "vkTrimCommandPool", ext "VK_KHR_maintenance1"
/// "vkTrimCommandPoolKHR"; }
/// ```
macro_rules! entries {
    ($($level:ident $outcome:ident $pfn:path = $function:path: $($kind:ident $when:literal $name:literal),+ ;)*) => {
        /// The entry points of this module.
        #[expect(unsafe_code, reason = "functions lose their types")]
        pub(crate) const ENTRIES: &[$crate::objects::entry::EntryPoint] = &[$(
            $crate::objects::entry::EntryPoint {
                offers: &[$($crate::objects::entry::Offer {
                    name: $name,
                    when: $crate::objects::entry::entries!(@when $kind $when),
                }),+],
                level: $crate::objects::entry::FunctionLevel::$level,
                fallible: $crate::objects::entry::entries!(@fallible $outcome),
                function: {
                    let typed: $pfn = $function;
                    // SAFETY: both are pointers to functions. The program that gets this one by its name calls it with
                    // the type that Vulkan gives that name, and `typed` above has that type.
                    unsafe { std::mem::transmute::<$pfn, $crate::objects::entry::Function>(typed) }
                },
            },
        )*];
    };
    (@when core $minor:literal) => { $crate::objects::entry::When::Core($minor) };
    (@when ext $name:literal) => { $crate::objects::entry::When::Extension($name) };
    (@fallible result) => { true };
    (@fallible void) => { false };
}
pub(crate) use entries;

/// The values that a function returns when it fails.
pub(crate) trait EntryResult {
    /// The return value for `result`; for functions that return no `VkResult`, an empty one.
    fn failed(result: vk::Result) -> Self;
}

impl EntryResult for vk::Result {
    fn failed(result: vk::Result) -> Self {
        result
    }
}

impl EntryResult for () {
    fn failed(_: vk::Result) -> Self {}
}

impl<T> EntryResult for Option<T> {
    fn failed(_: vk::Result) -> Self {
        None
    }
}

impl EntryResult for u64 {
    fn failed(_: vk::Result) -> Self {
        0
    }
}

/// Runs `body` as the entry point `call` of `gpu_state`: counts it, waits for its requested delay, and returns the
/// fault that was requested for it, if any. A panic in `body` is reported and becomes an error: it must not cross into
/// C.
pub(crate) fn run<R: EntryResult>(gpu_state: &GpuState, call: &'static str, body: impl FnOnce() -> R) -> R {
    let (mut body, mut answer) = (Some(body), None);
    let failure = run_body(gpu_state, call, &mut || answer = body.take().map(|body| body()));
    answer.unwrap_or_else(|| R::failed(failure))
}

/// Calls `body` once, or not at all if the call is to fail. Returns an error, which the caller uses only if `body` gave
/// no answer. One copy of this code serves all entry points, which makes the crate compile faster.
fn run_body(gpu_state: &GpuState, call: &'static str, body: &mut dyn FnMut()) -> vk::Result {
    if let Some(fault) = gpu_state.faults.enter(call) {
        return fault;
    }
    messages::deferred(gpu_state, || {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        gpu_state.report_limit();
        if done.is_err() {
            gpu_state.report("SUBLET-internal", "the simulated driver itself failed; this is a bug in it");
        }
        vk::Result::ERROR_UNKNOWN
    })
}

/// The calls that a lost device answers with an error.
const LOST: [&str; 9] = [
    "vkQueueSubmit",
    "vkQueueSubmit2",
    "vkQueueBindSparse",
    "vkQueueWaitIdle",
    "vkDeviceWaitIdle",
    "vkWaitForFences",
    "vkGetFenceStatus",
    "vkWaitSemaphores",
    "vkGetSemaphoreCounterValue",
];

/// Runs `body` unless the device is lost and the call has to say so.
fn unless_lost<R: EntryResult>(
    device: &std::sync::Arc<DeviceObject>,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<DeviceObject>) -> R,
) -> R {
    if device.is_lost() && LOST.contains(&call) {
        return R::failed(vk::Result::ERROR_DEVICE_LOST);
    }
    body(device)
}

/// Runs `body` as the entry point `call` on `device`, see [`run`].
pub(crate) fn on_device<R: EntryResult>(
    device: vk::Device,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<DeviceObject>) -> R,
) -> R {
    match registry::device(device) {
        Some(owner) => run(&owner.gpu_state, call, || unless_lost(&owner, call, body)),
        None => unknown("VkDevice", device.as_raw()),
    }
}

/// As [`on_device`], of a call that may break a rule, see [`report_broken`].
pub(crate) fn checked<R: EntryResult>(
    device: vk::Device,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<DeviceObject>) -> Result<R, Broken>,
) -> R {
    on_device(device, call, |device| report_broken(&device.gpu_state, body(device)))
}

/// The return value of a call. If the call breaks a rule, this reports it, and the call does nothing else.
pub(crate) fn report_broken<R: EntryResult>(gpu_state: &GpuState, result: Result<R, Broken>) -> R {
    result.unwrap_or_else(|(rule, text)| {
        gpu_state.report(rule, text);
        R::failed(vk::Result::ERROR_VALIDATION_FAILED_EXT)
    })
}

/// Runs `body` as the entry point `call` on the device of `queue`, see [`run`] and [`report_broken`].
pub(crate) fn on_queue<R: EntryResult>(
    queue: vk::Queue,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<DeviceObject>) -> Result<R, Broken>,
) -> R {
    match registry::queue(queue) {
        Some(owner) => run(&owner.gpu_state, call, || {
            unless_lost(&owner, call, |device| report_broken(&owner.gpu_state, body(device)))
        }),
        None => unknown("VkQueue", queue.as_raw()),
    }
}

/// Runs `body` as the entry point `call` on the device of `command_buffer`, see [`run`].
pub(crate) fn on_command_buffer<R: EntryResult>(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<DeviceObject>) -> R,
) -> R {
    match registry::command_buffer(command_buffer) {
        Some(owner) => run(&owner.gpu_state, call, || body(&owner)),
        None => unknown("VkCommandBuffer", command_buffer.as_raw()),
    }
}

/// As [`on_command_buffer`], of a call that may break a rule, see [`report_broken`].
pub(crate) fn on_command_buffer_checked<R: EntryResult>(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<DeviceObject>) -> Result<R, Broken>,
) -> R {
    on_command_buffer(command_buffer, call, |device| report_broken(&device.gpu_state, body(device)))
}

/// Runs `body` as the entry point `call` on `instance`, see [`run`].
pub(crate) fn on_instance<R: EntryResult>(
    instance: vk::Instance,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<state::Instance>) -> R,
) -> R {
    match registry::instance(instance) {
        Some(owner) => run(&owner.gpu_state, call, || body(&owner)),
        None => unknown("VkInstance", instance.as_raw()),
    }
}

/// Runs `body` as the entry point `call` on the instance of `physical_device`, see [`run`].
pub(crate) fn on_physical_device<R: EntryResult>(
    physical_device: vk::PhysicalDevice,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<state::Instance>) -> R,
) -> R {
    match registry::physical_device(physical_device) {
        Some(owner) => run(&owner.gpu_state, call, || body(&owner)),
        None => unknown("VkPhysicalDevice", physical_device.as_raw()),
    }
}

/// As [`on_physical_device`], of a call that may break a rule, see [`report_broken`].
pub(crate) fn on_physical_device_checked<R: EntryResult>(
    physical_device: vk::PhysicalDevice,
    call: &'static str,
    body: impl FnOnce(&std::sync::Arc<state::Instance>) -> Result<R, Broken>,
) -> R {
    on_physical_device(physical_device, call, |instance| report_broken(&instance.gpu_state, body(instance)))
}

/// Answers for a dispatchable handle that no live object has. There is no GPU whose messages could take the report.
fn unknown<R: EntryResult>(kind: &str, raw: u64) -> R {
    tracing::error!(
        name: "unknown_handle", target: "sublet::sim", kind, handle = raw,
        "{kind} {raw:#x} was never created, or is destroyed"
    );
    eprintln!("sublet::sim: {kind} {raw:#x} was never created, or is destroyed");
    R::failed(vk::Result::ERROR_VALIDATION_FAILED_EXT)
}
