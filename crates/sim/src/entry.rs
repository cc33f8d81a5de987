//! The table of entry points: which functions the driver has, and to whom it offers them.
//!
//! Each module that implements functions has a list `ENTRIES` of them; [`TABLES`] names the lists. The position of a
//! function in the lists is its [`Call`], the index of its counter and of its faults.

use std::ffi::{CStr, c_char};

use ash::vk;
use ash::vk::Handle as _;

use super::describe::Broken;
use super::state::{self, Device, Hub, registry};
use super::{
    bind, commands, descriptor_buffer, descriptor_heap, descriptors, device, external, instance, mapping,
    memory, messages, messenger, null, passes, physical, pipeline, queue, requirements, resource, sparse,
    sync,
};

/// A C function whose type is known to whoever asks for it by name.
pub(super) type Function = unsafe extern "system" fn();

/// What a function is called on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Global,
    Instance,
    Device,
}

/// When a program can get a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// From this minor version of Vulkan 1 on.
    Core(u32),
    /// With this extension.
    Extension(&'static str),
}

/// The name of a function, and when a program can get it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub(super) name: &'static str,
    pub(super) when: When,
}

/// One function of the driver.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryPoint {
    /// Its names; the first one is what it is counted under.
    pub(super) offers: &'static [Offer],
    pub(super) level: Level,
    /// Whether it returns a `VkResult`, so that it can be made to fail.
    pub(super) fallible: bool,
    pub(super) function: Function,
}

/// Makes the list of a module's entry points. The compiler checks each function against Vulkan's type of it.
///
/// ```text
/// entries! {
///     Device result vk::PFN_vkMapMemory = map_memory: core 0 "vkMapMemory";
///     Device void vk::PFN_vkTrimCommandPool = trim: core 1 "vkTrimCommandPool", ext "VK_KHR_maintenance1" "vkTrimCommandPoolKHR";
/// }
/// ```
macro_rules! entries {
    ($($level:ident $outcome:ident $pfn:path = $function:path: $($kind:ident $when:literal $name:literal),+ ;)*) => {
        /// The entry points of this module.
        pub(crate) const ENTRIES: &[$crate::entry::EntryPoint] = &[$(
            $crate::entry::EntryPoint {
                offers: &[$($crate::entry::Offer {
                    name: $name,
                    when: $crate::entry::entries!(@when $kind $when),
                }),+],
                level: $crate::entry::Level::$level,
                fallible: $crate::entry::entries!(@fallible $outcome),
                function: {
                    let typed: $pfn = $function;
                    // SAFETY: both are pointers to functions. The program that gets this one by its name calls it with
                    // the type that Vulkan gives that name, and `typed` above has that type.
                    unsafe { std::mem::transmute::<$pfn, $crate::entry::Function>(typed) }
                },
            },
        )*];
    };
    (@when core $minor:literal) => { $crate::entry::When::Core($minor) };
    (@when ext $name:literal) => { $crate::entry::When::Extension($name) };
    (@fallible result) => { true };
    (@fallible void) => { false };
}
pub(super) use entries;

/// Every list of entry points.
const TABLES: &[&[EntryPoint]] = &[
    instance::ENTRIES,
    physical::ENTRIES,
    device::ENTRIES,
    memory::ENTRIES,
    external::ENTRIES,
    messenger::ENTRIES,
    mapping::ENTRIES,
    bind::ENTRIES,
    resource::ENTRIES,
    requirements::ENTRIES,
    commands::ENTRIES,
    descriptor_buffer::ENTRIES,
    descriptor_heap::ENTRIES,
    passes::ENTRIES,
    pipeline::ENTRIES,
    descriptors::ENTRIES,
    queue::ENTRIES,
    sparse::ENTRIES,
    sync::ENTRIES,
];

/// The number of entry points.
pub(super) const CALLS: usize = {
    let mut count = 0;
    let mut table = 0;
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
};

/// One entry point: an index below [`CALLS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call(usize);

impl Call {
    /// The entry point whose first name is `name`. Used in constants: an unknown name does not compile.
    pub(super) const fn named(name: &str) -> Self {
        let mut index = 0;
        let mut table = 0;
        while table < TABLES.len() {
            let mut entry = 0;
            while entry < TABLES[table].len() {
                if same(TABLES[table][entry].offers[0].name, name) {
                    return Self(index);
                }
                index += 1;
                entry += 1;
            }
            table += 1;
        }
        panic!("no entry point has this name");
    }

    /// The entry point that has this name among its names, aliases included.
    pub(super) fn find(name: &str) -> Option<(Self, &'static EntryPoint)> {
        all().find(|(_, entry)| entry.offers.iter().any(|offer| offer.name == name))
    }

    /// The first name.
    pub(super) fn name(self) -> &'static str {
        all().find(|(call, _)| *call == self).map_or("", |(_, entry)| entry.offers[0].name)
    }

    pub(super) const fn index(self) -> usize {
        self.0
    }
}

/// Every entry point with its index.
pub(super) fn all() -> impl Iterator<Item = (Call, &'static EntryPoint)> {
    TABLES.iter().copied().flatten().enumerate().map(|(index, entry)| (Call(index), entry))
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// The call constant of a name: `call!("vkMapMemory")`.
macro_rules! call {
    ($name:literal) => {
        const { $crate::entry::Call::named($name) }
    };
}
pub(super) use call;

/// `vkGetInstanceProcAddr` of a driver whose instance version is 1.`MINOR`, or comes from the environment if `MINOR`
/// is [`state::ENVIRONMENT`].
pub(super) unsafe extern "system" fn get_instance_proc_addr<const MINOR: u32>(
    instance: vk::Instance,
    p_name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: a null-terminated string or NULL: VUID-vkGetInstanceProcAddr-pName-parameter.
    let name = unsafe { name(p_name) }?;
    match name {
        "vkGetInstanceProcAddr" => return function(get_instance_proc_addr::<MINOR>),
        "vkCreateInstance" => return create_instance(instance::create::<MINOR>),
        "vkEnumerateInstanceVersion" => {
            let offered = state::minor(MINOR) >= 1;
            return if offered { enumerate_version(instance::enumerate_version::<MINOR>) } else { None };
        }
        _ => {}
    }
    let (_, entry) = Call::find(name)?;
    if entry.level == Level::Global {
        return entry.offered(name, |_| true).then_some(entry.function);
    }
    let owner = registry::instance(instance)?;
    let offered = entry.offered(name, |when| match when {
        When::Core(minor) => minor <= owner.minor,
        // A function of a device extension may be asked for here if the device has the extension at all.
        When::Extension(extension) => {
            owner.extensions.iter().any(|enabled| enabled == extension) || owner.hub.offers(extension)
        }
    });
    offered.then_some(entry.function)
}

/// `vkGetDeviceProcAddr`.
pub(super) unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    p_name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: a null-terminated string or NULL: VUID-vkGetDeviceProcAddr-pName-parameter.
    let name = unsafe { name(p_name) }?;
    let owner: std::sync::Arc<Device> = registry::device(device)?;
    let (_, entry) = Call::find(name)?;
    let offered = entry.level == Level::Device
        && entry.offered(name, |when| match when {
            When::Core(minor) => minor <= owner.minor,
            When::Extension(extension) => {
                owner.has(extension) || owner.instance.extensions.iter().any(|enabled| enabled == extension)
            }
        });
    let null = if owner.hub.null { null::function(entry) } else { None };
    offered.then_some(null.unwrap_or(entry.function))
}

impl EntryPoint {
    fn offered(&self, name: &str, mut to: impl FnMut(When) -> bool) -> bool {
        self.offers.iter().any(|offer| offer.name == name && to(offer.when))
    }
}

/// The string at `name`, if there is one and it is UTF-8: the name of a function always is.
///
/// # Safety
///
/// `name` is NULL or points to a null-terminated string that lives as long as the result is used.
unsafe fn name<'a>(name: *const c_char) -> Option<&'a str> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the promise of `name`: not NULL, and so a null-terminated string that lives.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}

fn function(typed: vk::PFN_vkGetInstanceProcAddr) -> vk::PFN_vkVoidFunction {
    // SAFETY: a pointer to a function; the program that got it by its name calls it with that name's type.
    Some(unsafe { std::mem::transmute::<vk::PFN_vkGetInstanceProcAddr, Function>(typed) })
}

fn create_instance(typed: vk::PFN_vkCreateInstance) -> vk::PFN_vkVoidFunction {
    // SAFETY: as in `function`.
    Some(unsafe { std::mem::transmute::<vk::PFN_vkCreateInstance, Function>(typed) })
}

fn enumerate_version(typed: vk::PFN_vkEnumerateInstanceVersion) -> vk::PFN_vkVoidFunction {
    // SAFETY: as in `function`.
    Some(unsafe { std::mem::transmute::<vk::PFN_vkEnumerateInstanceVersion, Function>(typed) })
}

/// The values that a function returns when it fails.
pub(super) trait Outcome {
    /// The return value for `result`; for functions that return no `VkResult`, an empty one.
    fn failed(result: vk::Result) -> Self;
}

impl Outcome for vk::Result {
    fn failed(result: vk::Result) -> Self {
        result
    }
}

impl Outcome for () {
    fn failed(_: vk::Result) -> Self {}
}

impl<T> Outcome for Option<T> {
    fn failed(_: vk::Result) -> Self {
        None
    }
}

impl Outcome for u64 {
    fn failed(_: vk::Result) -> Self {
        0
    }
}

/// Runs `body` as the entry point `call` of `hub`: counts it, waits as long as it is to be delayed, and answers with
/// the fault that was ordered for it, if any. A panic in `body` is reported and becomes an error: it must not cross
/// into C.
pub(super) fn run<R: Outcome>(hub: &Hub, call: Call, body: impl FnOnce() -> R) -> R {
    if let Some(fault) = hub.faults.enter(call) {
        return R::failed(fault);
    }
    messages::deferred(hub, || {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        hub.report_limit();
        done.unwrap_or_else(|_| {
            hub.report("SUBLET-internal", "the simulated driver itself failed; this is a bug in it");
            R::failed(vk::Result::ERROR_UNKNOWN)
        })
    })
}

/// The calls that a lost device answers with an error.
const LOST: [Call; 9] = [
    Call::named("vkQueueSubmit"),
    Call::named("vkQueueSubmit2"),
    Call::named("vkQueueBindSparse"),
    Call::named("vkQueueWaitIdle"),
    Call::named("vkDeviceWaitIdle"),
    Call::named("vkWaitForFences"),
    Call::named("vkGetFenceStatus"),
    Call::named("vkWaitSemaphores"),
    Call::named("vkGetSemaphoreCounterValue"),
];

/// Runs `body` unless the device is lost and the call has to say so.
fn unless_lost<R: Outcome>(
    device: &std::sync::Arc<Device>,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<Device>) -> R,
) -> R {
    if device.is_lost() && LOST.contains(&call) {
        return R::failed(vk::Result::ERROR_DEVICE_LOST);
    }
    body(device)
}

/// Runs `body` as the entry point `call` on `device`, see [`run`].
pub(super) fn on_device<R: Outcome>(
    device: vk::Device,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<Device>) -> R,
) -> R {
    match registry::device(device) {
        Some(owner) => run(&owner.hub, call, || unless_lost(&owner, call, body)),
        None => unknown("VkDevice", device.as_raw()),
    }
}

/// As [`on_device`], of a call that may break a rule, see [`settle`].
pub(super) fn checked<R: Outcome>(
    device: vk::Device,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<Device>) -> Result<R, Broken>,
) -> R {
    on_device(device, call, |device| settle(&device.hub, body(device)))
}

/// The return value of a call. If the call breaks a rule, this reports it, and the call does nothing else.
pub(super) fn settle<R: Outcome>(hub: &Hub, result: Result<R, Broken>) -> R {
    result.unwrap_or_else(|(rule, text)| {
        hub.report(rule, text);
        R::failed(vk::Result::ERROR_VALIDATION_FAILED_EXT)
    })
}

/// Runs `body` as the entry point `call` on the device of `queue`, see [`run`] and [`settle`].
pub(super) fn on_queue<R: Outcome>(
    queue: vk::Queue,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<Device>) -> Result<R, Broken>,
) -> R {
    match registry::queue(queue) {
        Some(owner) => {
            run(&owner.hub, call, || unless_lost(&owner, call, |device| settle(&owner.hub, body(device))))
        }
        None => unknown("VkQueue", queue.as_raw()),
    }
}

/// Runs `body` as the entry point `call` on the device of `command_buffer`, see [`run`].
pub(super) fn on_command_buffer<R: Outcome>(
    command_buffer: vk::CommandBuffer,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<Device>) -> R,
) -> R {
    match registry::command_buffer(command_buffer) {
        Some(owner) => run(&owner.hub, call, || body(&owner)),
        None => unknown("VkCommandBuffer", command_buffer.as_raw()),
    }
}

/// As [`on_command_buffer`], of a call that may break a rule, see [`settle`].
pub(super) fn on_command_buffer_checked<R: Outcome>(
    command_buffer: vk::CommandBuffer,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<Device>) -> Result<R, Broken>,
) -> R {
    on_command_buffer(command_buffer, call, |device| settle(&device.hub, body(device)))
}

/// Runs `body` as the entry point `call` on `instance`, see [`run`].
pub(super) fn on_instance<R: Outcome>(
    instance: vk::Instance,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<state::Instance>) -> R,
) -> R {
    match registry::instance(instance) {
        Some(owner) => run(&owner.hub, call, || body(&owner)),
        None => unknown("VkInstance", instance.as_raw()),
    }
}

/// Runs `body` as the entry point `call` on the instance of `physical_device`, see [`run`].
pub(super) fn on_physical_device<R: Outcome>(
    physical_device: vk::PhysicalDevice,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<state::Instance>) -> R,
) -> R {
    match registry::physical_device(physical_device) {
        Some(owner) => run(&owner.hub, call, || body(&owner)),
        None => unknown("VkPhysicalDevice", physical_device.as_raw()),
    }
}

/// As [`on_physical_device`], of a call that may break a rule, see [`settle`].
pub(super) fn on_physical_device_checked<R: Outcome>(
    physical_device: vk::PhysicalDevice,
    call: Call,
    body: impl FnOnce(&std::sync::Arc<state::Instance>) -> Result<R, Broken>,
) -> R {
    on_physical_device(physical_device, call, |instance| settle(&instance.hub, body(instance)))
}

/// Answers for a dispatchable handle that no live object has. There is no GPU whose messages could take the report.
fn unknown<R: Outcome>(kind: &str, raw: u64) -> R {
    tracing::error!(
        name: "unknown_handle", target: "sublet::sim", kind, handle = raw,
        "{kind} {raw:#x} was never created, or is destroyed"
    );
    eprintln!("sublet::sim: {kind} {raw:#x} was never created, or is destroyed");
    R::failed(vk::Result::ERROR_VALIDATION_FAILED_EXT)
}
