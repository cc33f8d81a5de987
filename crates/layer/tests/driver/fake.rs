//! A loader and a driver in this process, which do what the tests and the bench need: memory, buffers, submissions that
//! lose the device, and reports on the driver's memory.
#![allow(unsafe_code, reason = "implements Vulkan functions")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::transmutes_expressible_as_ptr_casts,
    reason = "the driver of a test, which calls it correctly"
)]
#![allow(dead_code, reason = "the test and the bench use different parts")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk::{self, Handle as _};
use ash_layer::{
    LayerDeviceCreateInfo, LayerDeviceLink, LayerInstanceCreateInfo, LayerInstanceLink,
    NegotiateLayerInterface, NegotiateLayerStructType,
};

/// A dispatchable handle points to it.
#[repr(C)]
struct Object {
    key: usize,
}

/// The handles, which no call frees.
fn object(key: usize) -> u64 {
    u64::try_from(ptr::from_ref(Box::leak(Box::new(Object { key }))).expose_provenance()).unwrap()
}

/// Extensions that the driver has, and those that the last device enables.
pub(crate) static EXTENSIONS: Mutex<Vec<&'static CStr>> = Mutex::new(Vec::new());
pub(crate) static ENABLED: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The callback that the last device has, with its pointer.
static CALLBACK: Mutex<Option<(vk::PFN_vkDeviceMemoryReportCallbackEXT, usize)>> = Mutex::new(None);
/// The calls of `vkCreateDevice` that fail from now on.
pub(crate) static REFUSED: AtomicU64 = AtomicU64::new(0);
/// For each call of `vkCreateDevice` below a layer: true if the layer moved the loader's link behind its own.
pub(crate) static LINKS: Mutex<Vec<bool>> = Mutex::new(Vec::new());
static HANDLES: AtomicU64 = AtomicU64::new(1);
static KEYS: AtomicU64 = AtomicU64::new(1);

fn next_key() -> usize {
    usize::try_from(KEYS.fetch_add(1, Ordering::Relaxed)).unwrap()
}

/// Sets the path of the recording. The caller ensures that no other thread uses the environment.
pub(crate) fn watch(path: &std::path::Path) {
    unsafe { std::env::set_var("SUBLET_WATCH", path) };
}

/// Reports that the driver allocated memory for itself.
pub(crate) fn report(size: u64) {
    report_event(vk::DeviceMemoryReportEventTypeEXT::ALLOCATE, vk::ObjectType::PIPELINE, size);
}

/// Reports an event of the driver's memory.
pub(crate) fn report_event(ty: vk::DeviceMemoryReportEventTypeEXT, object_type: vk::ObjectType, size: u64) {
    let callback = *CALLBACK.lock().unwrap();
    let Some((Some(callback), data)) = callback else { return };
    let event = vk::DeviceMemoryReportCallbackDataEXT {
        ty,
        memory_object_id: 5,
        size,
        object_type,
        ..Default::default()
    };
    unsafe { callback(&event, ptr::with_exposed_provenance_mut(data)) };
}

unsafe extern "system" fn create_instance(
    _: *const vk::InstanceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    unsafe { *instance = vk::Instance::from_raw(object(next_key())) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_instance(_: vk::Instance, _: *const vk::AllocationCallbacks<'_>) {}

unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    assert!(!physical.is_null());
    let info = unsafe { &*info };
    let names = (0..info.enabled_extension_count).map(|at| {
        let name = unsafe { *info.pp_enabled_extension_names.add(usize::try_from(at).unwrap()) };
        unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned()
    });
    *ENABLED.lock().unwrap() = names.collect();
    *CALLBACK.lock().unwrap() = None;
    let mut next = info.p_next.cast::<vk::BaseInStructure<'_>>();
    while let Some(structure) = unsafe { next.as_ref() } {
        if structure.s_type == vk::StructureType::DEVICE_DEVICE_MEMORY_REPORT_CREATE_INFO_EXT {
            let create = unsafe { &*next.cast::<vk::DeviceDeviceMemoryReportCreateInfoEXT<'_>>() };
            *CALLBACK.lock().unwrap() =
                Some((create.pfn_user_callback, create.p_user_data.expose_provenance()));
        }
        if structure.s_type == vk::StructureType::LOADER_DEVICE_CREATE_INFO {
            // A layer below would move it.
            let link = unsafe { &mut *next.cast_mut().cast::<LayerDeviceCreateInfo>() };
            LINKS.lock().unwrap().push(unsafe { link.u.p_layer_info }.is_null());
            link.u.p_layer_info = ptr::dangling_mut();
        }
        next = structure.p_next;
    }
    let refused = REFUSED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if refused.is_ok() {
        return vk::Result::ERROR_FEATURE_NOT_PRESENT;
    }
    report(1 << 16);
    unsafe { *device = vk::Device::from_raw(object(next_key())) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_device(_: vk::Device, _: *const vk::AllocationCallbacks<'_>) {
    report(1 << 20);
    *CALLBACK.lock().unwrap() = None;
}

unsafe extern "system" fn properties(_: vk::PhysicalDevice, found: *mut vk::PhysicalDeviceProperties) {
    unsafe { (*found).device_id = 7 };
}

unsafe extern "system" fn memory_properties(
    _: vk::PhysicalDevice,
    found: *mut vk::PhysicalDeviceMemoryProperties,
) {
    unsafe { (*found).memory_type_count = 1 };
    unsafe { (*found).memory_heap_count = 1 };
    unsafe { (*found).memory_heaps[0].size = 1 << 30 };
}

unsafe extern "system" fn memory_properties2(
    physical: vk::PhysicalDevice,
    found: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    unsafe { memory_properties(physical, &raw mut (*found).memory_properties) };
    let next = unsafe { (*found).p_next }.cast::<vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>>();
    if let Some(budget) = unsafe { next.as_mut() } {
        (budget.heap_budget[0], budget.heap_usage[0]) = (1 << 29, 1 << 20);
    }
}

unsafe extern "system" fn features2(_: vk::PhysicalDevice, features: *mut vk::PhysicalDeviceFeatures2<'_>) {
    let next = unsafe { (*features).p_next }.cast::<vk::PhysicalDeviceDeviceMemoryReportFeaturesEXT<'_>>();
    unsafe { (*next).device_memory_report = vk::TRUE };
}

unsafe extern "system" fn extensions(
    _: vk::PhysicalDevice,
    _: *const c_char,
    count: *mut u32,
    list: *mut vk::ExtensionProperties,
) -> vk::Result {
    let all = EXTENSIONS.lock().unwrap();
    unsafe { *count = u32::try_from(all.len()).unwrap() };
    for (at, name) in all.iter().enumerate().filter(|_| !list.is_null()) {
        let named = vk::ExtensionProperties::default().extension_name(name).unwrap();
        unsafe { *list.add(at) = named };
    }
    vk::Result::SUCCESS
}

unsafe extern "system" fn allocate_memory(
    _: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    if unsafe { (*info).allocation_size } > 1 << 30 {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    unsafe { *memory = vk::DeviceMemory::from_raw(HANDLES.fetch_add(1, Ordering::Relaxed)) };
    let size = unsafe { (*info).allocation_size };
    report_event(vk::DeviceMemoryReportEventTypeEXT::ALLOCATE, vk::ObjectType::DEVICE_MEMORY, size);
    vk::Result::SUCCESS
}

unsafe extern "system" fn free_memory(
    _: vk::Device,
    _: vk::DeviceMemory,
    _: *const vk::AllocationCallbacks<'_>,
) {
}

unsafe extern "system" fn create_buffer(
    _: vk::Device,
    _: *const vk::BufferCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    buffer: *mut vk::Buffer,
) -> vk::Result {
    unsafe { *buffer = vk::Buffer::from_raw(HANDLES.fetch_add(1, Ordering::Relaxed)) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_buffer(
    _: vk::Device,
    _: vk::Buffer,
    _: *const vk::AllocationCallbacks<'_>,
) {
}

unsafe extern "system" fn requirements(_: vk::Device, _: vk::Buffer, found: *mut vk::MemoryRequirements) {
    unsafe { *found = vk::MemoryRequirements { size: 256, alignment: 64, memory_type_bits: 1 } };
}

unsafe extern "system" fn bind(_: vk::Device, _: vk::Buffer, _: vk::DeviceMemory, _: u64) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn bind_sparse(
    _: vk::Queue,
    _: u32,
    _: *const vk::BindSparseInfo<'_>,
    _: vk::Fence,
) -> vk::Result {
    vk::Result::SUCCESS
}

/// A queue loses its device if a fence is given.
unsafe extern "system" fn submit(
    _: vk::Queue,
    _: u32,
    _: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    if fence.is_null() { vk::Result::SUCCESS } else { vk::Result::ERROR_DEVICE_LOST }
}

unsafe extern "system" fn wait_idle(_: vk::Device) -> vk::Result {
    vk::Result::ERROR_DEVICE_LOST
}

unsafe extern "system" fn acquire2(
    _: vk::Device,
    _: *const vk::AcquireNextImageInfoKHR<'_>,
    _: *mut u32,
) -> vk::Result {
    vk::Result::ERROR_DEVICE_LOST
}

unsafe extern "system" fn query_results(
    _: vk::Device,
    _: vk::QueryPool,
    _: u32,
    _: u32,
    _: usize,
    _: *mut c_void,
    _: u64,
    _: vk::QueryResultFlags,
) -> vk::Result {
    vk::Result::ERROR_DEVICE_LOST
}

unsafe extern "system" fn semaphore_value(_: vk::Device, _: vk::Semaphore, _: *mut u64) -> vk::Result {
    vk::Result::ERROR_DEVICE_LOST
}

unsafe extern "system" fn event_status(_: vk::Device, _: vk::Event) -> vk::Result {
    vk::Result::ERROR_DEVICE_LOST
}

/// Each bind at an odd offset fails.
unsafe extern "system" fn bind_buffers(
    _: vk::Device,
    count: u32,
    infos: *const vk::BindBufferMemoryInfo<'_>,
) -> vk::Result {
    let infos = unsafe { std::slice::from_raw_parts(infos, usize::try_from(count).unwrap()) };
    unsafe { bind_all(infos.iter().map(|info| (info.p_next, info.memory_offset))) }
}

unsafe extern "system" fn bind_images(
    _: vk::Device,
    count: u32,
    infos: *const vk::BindImageMemoryInfo<'_>,
) -> vk::Result {
    let infos = unsafe { std::slice::from_raw_parts(infos, usize::try_from(count).unwrap()) };
    unsafe { bind_all(infos.iter().map(|info| (info.p_next, info.memory_offset))) }
}

unsafe fn bind_all(binds: impl Iterator<Item = (*const c_void, u64)>) -> vk::Result {
    let mut all = vk::Result::SUCCESS;
    for (next, offset) in binds {
        let failed = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
        let result = if offset % 2 == 1 { failed } else { vk::Result::SUCCESS };
        if let Some(status) = unsafe { next.cast::<vk::BindMemoryStatusKHR<'_>>().as_ref() } {
            unsafe { *status.p_result = result };
        }
        if result != vk::Result::SUCCESS {
            all = result;
        }
    }
    all
}

unsafe extern "system" fn create_image(
    _: vk::Device,
    _: *const vk::ImageCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    image: *mut vk::Image,
) -> vk::Result {
    unsafe { *image = vk::Image::from_raw(HANDLES.fetch_add(1, Ordering::Relaxed)) };
    vk::Result::SUCCESS
}

/// The function of a name, without its type.
macro_rules! find {
    ($name:expr; $($text:literal: $pfn:ident = $function:ident,)*) => {
        match $name.to_str().unwrap() {
            $($text => {
                let function: vk::$pfn = $function;
                Some(unsafe { transmute::<vk::$pfn, unsafe extern "system" fn()>(function) })
            })*
            _ => None,
        }
    };
}

unsafe extern "system" fn instance_function(_: vk::Instance, name: *const c_char) -> vk::PFN_vkVoidFunction {
    let name = unsafe { CStr::from_ptr(name) };
    find!(name;
        "vkCreateInstance": PFN_vkCreateInstance = create_instance,
        "vkDestroyInstance": PFN_vkDestroyInstance = destroy_instance,
        "vkCreateDevice": PFN_vkCreateDevice = create_device,
        "vkGetPhysicalDeviceProperties": PFN_vkGetPhysicalDeviceProperties = properties,
        "vkGetPhysicalDeviceMemoryProperties": PFN_vkGetPhysicalDeviceMemoryProperties = memory_properties,
        "vkGetPhysicalDeviceMemoryProperties2": PFN_vkGetPhysicalDeviceMemoryProperties2 = memory_properties2,
        "vkGetPhysicalDeviceFeatures2": PFN_vkGetPhysicalDeviceFeatures2 = features2,
        "vkEnumerateDeviceExtensionProperties": PFN_vkEnumerateDeviceExtensionProperties = extensions,
    )
}

unsafe extern "system" fn device_function(_: vk::Device, name: *const c_char) -> vk::PFN_vkVoidFunction {
    let name = unsafe { CStr::from_ptr(name) };
    find!(name;
        "vkGetDeviceProcAddr": PFN_vkGetDeviceProcAddr = device_function,
        "vkDestroyDevice": PFN_vkDestroyDevice = destroy_device,
        "vkAllocateMemory": PFN_vkAllocateMemory = allocate_memory,
        "vkFreeMemory": PFN_vkFreeMemory = free_memory,
        "vkCreateBuffer": PFN_vkCreateBuffer = create_buffer,
        "vkDestroyBuffer": PFN_vkDestroyBuffer = destroy_buffer,
        "vkGetBufferMemoryRequirements": PFN_vkGetBufferMemoryRequirements = requirements,
        "vkBindBufferMemory": PFN_vkBindBufferMemory = bind,
        "vkQueueBindSparse": PFN_vkQueueBindSparse = bind_sparse,
        "vkQueueSubmit": PFN_vkQueueSubmit = submit,
        "vkDeviceWaitIdle": PFN_vkDeviceWaitIdle = wait_idle,
        "vkCreateImage": PFN_vkCreateImage = create_image,
        "vkBindBufferMemory2": PFN_vkBindBufferMemory2 = bind_buffers,
        "vkBindImageMemory2": PFN_vkBindImageMemory2 = bind_images,
        "vkAcquireNextImage2KHR": PFN_vkAcquireNextImage2KHR = acquire2,
        "vkGetQueryPoolResults": PFN_vkGetQueryPoolResults = query_results,
        "vkGetSemaphoreCounterValue": PFN_vkGetSemaphoreCounterValue = semaphore_value,
        "vkGetEventStatus": PFN_vkGetEventStatus = event_status,
    )
}

/// A device below the layer, or directly of the driver.
pub(crate) struct Below {
    get: vk::PFN_vkGetInstanceProcAddr,
    get_of_device: vk::PFN_vkGetDeviceProcAddr,
    instance: vk::Instance,
    physical: vk::PhysicalDevice,
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
}

/// Returns a typed function of the layer or the driver.
unsafe fn typed<F>(function: vk::PFN_vkVoidFunction) -> F {
    let function = function.expect("there is such a function");
    assert_eq!(size_of::<F>(), size_of_val(&function));
    unsafe { std::mem::transmute_copy(&function) }
}

impl Below {
    /// Creates an instance and a device as the loader does.
    pub(crate) fn layer(extensions: &[*const c_char]) -> Self {
        let mut interface = NegotiateLayerInterface {
            s_type: NegotiateLayerStructType::INTERFACE_STRUCT,
            p_next: ptr::null_mut(),
            loader_layer_interface_version: 2,
            pfn_get_instance_proc_addr: None,
            pfn_get_device_proc_addr: None,
            pfn_get_physical_device_proc_addr: None,
        };
        let agreed = unsafe { sublet_layer::vkNegotiateLoaderLayerInterfaceVersion(&mut interface) };
        assert_eq!((agreed, interface.loader_layer_interface_version), (vk::Result::SUCCESS, 2));
        Self::create(
            interface.pfn_get_instance_proc_addr.unwrap(),
            interface.pfn_get_device_proc_addr.unwrap(),
            extensions,
        )
    }

    /// Creates them with the exported functions of a library, as Android's loader does.
    pub(crate) fn exported(
        get: vk::PFN_vkGetInstanceProcAddr,
        get_of_device: vk::PFN_vkGetDeviceProcAddr,
    ) -> Self {
        Self::create(get, get_of_device, &[])
    }

    /// Creates them without the layer.
    pub(crate) fn driver() -> Self {
        Self::create(instance_function, device_function, &[])
    }

    fn create(
        get: vk::PFN_vkGetInstanceProcAddr,
        get_of_device: vk::PFN_vkGetDeviceProcAddr,
        extensions: &[*const c_char],
    ) -> Self {
        let mut link = LayerInstanceLink {
            p_next: ptr::null_mut(),
            pfn_next_get_instance_proc_addr: Some(instance_function),
            pfn_next_get_physical_device_proc_addr: None,
        };
        let mut chain = LayerInstanceCreateInfo::default();
        chain.u.p_layer_info = &mut link;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let mut info = vk::InstanceCreateInfo::default().application_info(&application);
        info.p_next = ptr::from_ref(&chain).cast();
        let create: vk::PFN_vkCreateInstance =
            unsafe { typed(get(vk::Instance::null(), c"vkCreateInstance".as_ptr())) };
        let mut instance = vk::Instance::null();
        assert_eq!(unsafe { create(&info, ptr::null(), &mut instance) }, vk::Result::SUCCESS);

        // A physical device has the key of its instance.
        let instance_object =
            ptr::with_exposed_provenance::<Object>(usize::try_from(instance.as_raw()).unwrap());
        let physical = vk::PhysicalDevice::from_raw(object(unsafe { (*instance_object).key }));
        let mut link = LayerDeviceLink {
            p_next: ptr::null_mut(),
            pfn_next_get_instance_proc_addr: Some(instance_function),
            pfn_next_get_device_proc_addr: Some(device_function),
        };
        let mut chain = LayerDeviceCreateInfo::default();
        chain.u.p_layer_info = &mut link;
        let mut info = vk::DeviceCreateInfo::default().enabled_extension_names(extensions);
        info.p_next = ptr::from_ref(&chain).cast();
        let create: vk::PFN_vkCreateDevice = unsafe { typed(get(instance, c"vkCreateDevice".as_ptr())) };
        let mut device = vk::Device::null();
        assert_eq!(unsafe { create(physical, &info, ptr::null(), &mut device) }, vk::Result::SUCCESS);
        let device_object = ptr::with_exposed_provenance::<Object>(usize::try_from(device.as_raw()).unwrap());
        let queue = vk::Queue::from_raw(object(unsafe { (*device_object).key }));
        let load = |name: &CStr| -> *const c_void {
            let found = unsafe { get_of_device(device, name.as_ptr()) };
            found.map_or(ptr::null(), |function| unsafe {
                transmute::<unsafe extern "system" fn(), *const c_void>(function)
            })
        };
        let device = unsafe { ash::Device::load_with(load, device) };
        Self { get, get_of_device, instance, physical, device, queue }
    }

    /// Allocates and frees memory.
    pub(crate) fn allocate_and_free(&self) {
        let info = vk::MemoryAllocateInfo::default().allocation_size(256);
        let memory = unsafe { self.device.allocate_memory(&info, None) }.unwrap();
        unsafe { self.device.free_memory(memory, None) };
    }

    /// Creates and destroys a buffer.
    pub(crate) fn create_and_destroy(&self) {
        let info = vk::BufferCreateInfo::default().size(256);
        let buffer = unsafe { self.device.create_buffer(&info, None) }.unwrap();
        unsafe { self.device.destroy_buffer(buffer, None) };
    }

    /// Submits nothing.
    pub(crate) fn submit(&self) {
        unsafe { self.device.queue_submit(self.queue, &[], vk::Fence::null()) }.unwrap();
    }

    /// Returns a function of the device.
    pub(crate) fn function<F>(&self, name: &CStr) -> F {
        unsafe { typed((self.get_of_device)(self.device.handle(), name.as_ptr())) }
    }

    /// Queries the budgets, as a program does.
    pub(crate) fn query_budget(&self) {
        let name = c"vkGetPhysicalDeviceMemoryProperties2";
        let query: vk::PFN_vkGetPhysicalDeviceMemoryProperties2 =
            unsafe { typed((self.get)(self.instance, name.as_ptr())) };
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        unsafe { query(self.physical, &mut properties) };
        assert_eq!(budget.heap_usage[0], 1 << 20, "the program gets the driver's answer");
    }

    pub(crate) fn destroy(self) {
        unsafe { self.device.destroy_device(None) };
        let destroy: vk::PFN_vkDestroyInstance =
            unsafe { typed((self.get)(self.instance, c"vkDestroyInstance".as_ptr())) };
        unsafe { destroy(self.instance, ptr::null()) };
    }
}
