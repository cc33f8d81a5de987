//! From a dispatchable handle (instance, physical device, device, queue, command buffer) to the object behind it.
//!
//! A handle is the address of a header whose first word is the one that Vulkan's loader wants there, but the driver
//! never reads through it: it looks the address up. A handle that is invented or stale finds nothing, and does no harm.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};

use ash::vk;
use ash::vk::Handle as _;
use parking_lot::RwLock;

use crate::facts::arithmetic::widen;
use crate::objects::state::{DeviceObject, Instance};

/// The value that the loader expects in the first word of a dispatchable handle (`ICD_LOADER_MAGIC`).
pub(crate) const LOADER_MAGIC: usize = 0x01CD_C0DE;

/// A header is used again only after this many others were retired, so that a stale handle stays unknown for long.
const QUARANTINE: usize = 4096;

#[repr(C, align(16))]
struct DispatchHeader {
    loader: usize,
    driver: usize,
}

#[derive(Clone)]
enum HandleOwner {
    Instance(Arc<Instance>),
    PhysicalDevice(Arc<Instance>),
    Device(Arc<DeviceObject>),
    Queue(Arc<DeviceObject>),
    CommandBuffer(Arc<DeviceObject>),
}

#[derive(Default)]
struct HandleRegistry {
    owners: HashMap<u64, HandleOwner>,
    /// Addresses of headers without an owner, the one retired first at the front.
    retired: VecDeque<usize>,
}

static REGISTRY: LazyLock<RwLock<HandleRegistry>> = LazyLock::new(RwLock::default);

impl HandleRegistry {
    /// A handle that is in use nowhere else.
    fn fresh(&mut self) -> u64 {
        let address = if self.retired.len() > QUARANTINE { self.retired.pop_front() } else { None };
        let header = match address {
            Some(address) => std::ptr::with_exposed_provenance_mut::<DispatchHeader>(address),
            None => Box::into_raw(Box::new(DispatchHeader { loader: 0, driver: 0 })),
        };
        // SAFETY: `header` is from `Box::into_raw`, now or before its address was exposed, and is never freed; nobody
        // else writes it, because it has no owner.
        unsafe { header.write(DispatchHeader { loader: LOADER_MAGIC, driver: 0 }) };
        widen(header.expose_provenance())
    }

    fn retire(&mut self, handle: u64) {
        if self.owners.remove(&handle).is_some() {
            if let Ok(address) = usize::try_from(handle) {
                self.retired.push_back(address);
            }
        }
    }
}

/// A handle for an object that is about to be made.
pub(crate) fn reserve() -> u64 {
    REGISTRY.write().fresh()
}

pub(crate) fn add_instance(instance: &Arc<Instance>) {
    let mut registry = REGISTRY.write();
    registry.owners.insert(instance.handle.as_raw(), HandleOwner::Instance(Arc::clone(instance)));
    registry
        .owners
        .insert(instance.physical_device.as_raw(), HandleOwner::PhysicalDevice(Arc::clone(instance)));
}

pub(crate) fn remove_instance(instance: &Instance) {
    let mut registry = REGISTRY.write();
    registry.retire(instance.handle.as_raw());
    registry.retire(instance.physical_device.as_raw());
}

pub(crate) fn add_device(device: &Arc<DeviceObject>) {
    let mut registry = REGISTRY.write();
    registry.owners.insert(device.handle.as_raw(), HandleOwner::Device(Arc::clone(device)));
    for queue in &device.queues {
        registry.owners.insert(queue.as_raw(), HandleOwner::Queue(Arc::clone(device)));
    }
}

pub(crate) fn remove_device(device: &DeviceObject) {
    let mut registry = REGISTRY.write();
    if device.gpu_state.null {
        // Its handle is not one of our headers.
        registry.owners.remove(&device.handle.as_raw());
    } else {
        registry.retire(device.handle.as_raw());
    }
    for queue in &device.queues {
        registry.retire(queue.as_raw());
    }
}

/// A command buffer of `device`. The caller destroys it with [`remove_command_buffer`], at the latest with the device.
pub(crate) fn add_command_buffer(device: &Arc<DeviceObject>) -> vk::CommandBuffer {
    let mut registry = REGISTRY.write();
    let handle = registry.fresh();
    registry.owners.insert(handle, HandleOwner::CommandBuffer(Arc::clone(device)));
    vk::CommandBuffer::from_raw(handle)
}

pub(crate) fn remove_command_buffer(command_buffer: vk::CommandBuffer) {
    REGISTRY.write().retire(command_buffer.as_raw());
}

fn find(handle: u64) -> Option<HandleOwner> {
    REGISTRY.read().owners.get(&handle).cloned()
}

pub(crate) fn instance(handle: vk::Instance) -> Option<Arc<Instance>> {
    match find(handle.as_raw()) {
        Some(HandleOwner::Instance(instance)) => Some(instance),
        _ => None,
    }
}

pub(crate) fn physical_device(handle: vk::PhysicalDevice) -> Option<Arc<Instance>> {
    match find(handle.as_raw()) {
        Some(HandleOwner::PhysicalDevice(instance)) => Some(instance),
        _ => None,
    }
}

pub(crate) fn device(handle: vk::Device) -> Option<Arc<DeviceObject>> {
    match find(handle.as_raw()) {
        Some(HandleOwner::Device(device)) => Some(device),
        _ => None,
    }
}

pub(crate) fn queue(handle: vk::Queue) -> Option<Arc<DeviceObject>> {
    match find(handle.as_raw()) {
        Some(HandleOwner::Queue(device)) => Some(device),
        _ => None,
    }
}

pub(crate) fn command_buffer(handle: vk::CommandBuffer) -> Option<Arc<DeviceObject>> {
    match find(handle.as_raw()) {
        Some(HandleOwner::CommandBuffer(device)) => Some(device),
        _ => None,
    }
}
