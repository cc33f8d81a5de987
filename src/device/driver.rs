//! One device: its functions, its properties, and one checked method for each Vulkan call.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;
use std::ptr::NonNull;

use ash::vk::{self, Handle};

use super::callbacks::{DeviceMemoryCallbacks, DeviceMemoryEvent};
use super::chain::OwnChain;
use super::error::DriverError;
use super::functions::{Functions, MissingFunction, VulkanFunctions};
use sublet_engines::Alignment;
use sublet_engines::cast::{index, narrow};

/// The features in use, from the API version and the extensions that the program enabled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceSettings {
    pub(crate) dedicated_allocation: bool,
    pub(crate) bind_memory2: bool,
    pub(crate) maintenance3: bool,
    pub(crate) maintenance4: bool,
    pub(crate) memory_budget: bool,
    pub(crate) memory_priority: bool,
    pub(crate) buffer_device_address: bool,
    pub(crate) pageable_device_local_memory: bool,
    pub(crate) external_memory_win32: bool,
}

/// A live device and its properties.
#[derive(Debug)]
#[doc(hidden)]
pub struct LiveDevice {
    pub(super) functions: Functions,
    pub(crate) device: vk::Device,
    pub(super) physical_device: vk::PhysicalDevice,
    /// Passed to every `vk*` call if the program gave allocation callbacks for the driver's host memory.
    host_callbacks: Option<vk::AllocationCallbacks<'static>>,
    memory_callbacks: Option<DeviceMemoryCallbacks>,
    /// Indexed by memory type; types beyond the end export nothing.
    export_types: Box<[vk::ExternalMemoryHandleTypeFlags]>,
    #[cfg(windows)]
    pub(super) win32_handles: super::win32::Win32Handles,
    pub(crate) settings: DeviceSettings,
    pub(crate) properties: vk::PhysicalDeviceProperties,
    pub(crate) memory: vk::PhysicalDeviceMemoryProperties,
    /// `bufferImageGranularity`, at least 1.
    pub(crate) granularity: Alignment,
    /// `nonCoherentAtomSize`, at least 1.
    pub(crate) atom: Alignment,
    /// `maxBufferSize` in bytes, or `u64::MAX` if the device does not report it.
    pub(crate) max_buffer_size: u64,
    /// `maxMemoryAllocationSize` in bytes, or `u64::MAX` if the device does not report it.
    pub(crate) max_memory_size: u64,
}

/// The memory requirements of a resource, with the driver's preference for dedicated memory if it can be queried.
#[derive(Clone, Copy, Debug, Default)]
#[doc(hidden)]
pub struct ResourceRequirements {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) memory_type_bits: u32,
    pub(crate) prefers_dedicated: bool,
    pub(crate) requires_dedicated: bool,
}

impl From<&vk::MemoryRequirements> for ResourceRequirements {
    fn from(requirements: &vk::MemoryRequirements) -> Self {
        Self {
            size: requirements.size,
            alignment: requirements.alignment,
            memory_type_bits: requirements.memory_type_bits,
            prefers_dedicated: false,
            requires_dedicated: false,
        }
    }
}

/// A buffer or an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferOrImage {
    Buffer(vk::Buffer),
    Image(vk::Image),
}

impl From<vk::Buffer> for BufferOrImage {
    #[inline]
    fn from(buffer: vk::Buffer) -> Self {
        Self::Buffer(buffer)
    }
}

impl From<vk::Image> for BufferOrImage {
    #[inline]
    fn from(image: vk::Image) -> Self {
        Self::Image(image)
    }
}

/// The parameters of one `vkAllocateMemory`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverAllocation {
    pub(crate) size: u64,
    pub(crate) memory_type: u32,
    pub(crate) priority: Option<f32>,
    pub(crate) device_address: bool,
    pub(crate) dedicated_to: Option<BufferOrImage>,
    /// A chain that the program promised to be valid, or null.
    pub(crate) next: *const c_void,
}

impl LiveDevice {
    /// Reads the properties of a device.
    ///
    /// # Safety
    /// The handles are live and belong together, the given functions belong to them, and `settings` matches the enabled
    /// features. This holds until this value and everything created through it is gone.
    pub(crate) unsafe fn new(
        given: &VulkanFunctions,
        instance: vk::Instance,
        physical_device: vk::PhysicalDevice,
        device: vk::Device,
        settings: DeviceSettings,
    ) -> Result<Self, MissingFunction> {
        // SAFETY: the caller promises live handles that belong together, and functions that are theirs.
        let functions = unsafe { given.resolve(instance, device) }?;
        let mut properties = vk::PhysicalDeviceProperties::default();
        // SAFETY: the physical device is live (VUID-vkGetPhysicalDeviceProperties-physicalDevice-parameter).
        unsafe { (functions.get_physical_device_properties)(physical_device, &mut properties) };
        let mut memory = vk::PhysicalDeviceMemoryProperties::default();
        // SAFETY: the physical device is live (VUID-vkGetPhysicalDeviceMemoryProperties-physicalDevice-parameter).
        unsafe { (functions.get_physical_device_memory_properties)(physical_device, &mut memory) };
        // An invalid heap index would be out of range in every later use, so it is replaced by that of the last heap.
        // Without heaps there are no memory types.
        memory.memory_heap_count = memory.memory_heap_count.min(narrow(memory.memory_heaps.len()));
        match memory.memory_heap_count.checked_sub(1) {
            None => memory.memory_type_count = 0,
            Some(last) => {
                for memory_type in &mut memory.memory_types {
                    memory_type.heap_index = memory_type.heap_index.min(last);
                }
            }
        }
        Ok(Self {
            functions,
            device,
            physical_device,
            host_callbacks: None,
            memory_callbacks: None,
            export_types: Box::default(),
            #[cfg(windows)]
            win32_handles: super::win32::Win32Handles::default(),
            settings,
            properties,
            memory,
            granularity: Alignment::at_least(properties.limits.buffer_image_granularity),
            atom: Alignment::at_least(properties.limits.non_coherent_atom_size),
            max_buffer_size: u64::MAX,
            max_memory_size: u64::MAX,
        })
    }

    /// Reads the size limits of later Vulkan versions and of extensions that the settings enable.
    pub(crate) fn read_size_limits(&mut self) {
        let Some(query) = self.functions.get_physical_device_properties2 else { return };
        let DeviceSettings { maintenance3, maintenance4, .. } = self.settings;
        let mut memory = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut buffers = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default();
        if maintenance3 {
            properties = properties.push_next(&mut memory);
        }
        if maintenance4 {
            properties = properties.push_next(&mut buffers);
        }
        if properties.p_next.is_null() {
            return;
        }
        // SAFETY: the physical device is live, and each structure in the chain belongs to a version or extension that
        // the settings enable (VUID-VkPhysicalDeviceProperties2-pNext-pNext).
        unsafe { query(self.physical_device, &mut properties) };
        // A limit that was not queried or not reported is zero.
        let limit = |size| if size == 0 { u64::MAX } else { size };
        self.max_memory_size = limit(memory.max_memory_allocation_size);
        self.max_buffer_size = limit(buffers.max_buffer_size);
    }

    /// Passes `host_callbacks` to the driver from now on.
    ///
    /// # Safety
    /// The callbacks may be called from any thread until this value is gone
    /// (VUID-VkAllocationCallbacks-pfnAllocation-00632 and its siblings), and nothing was created through this value
    /// yet.
    pub(crate) unsafe fn set_host_callbacks(&mut self, host_callbacks: Option<&vk::AllocationCallbacks<'_>>) {
        self.host_callbacks = host_callbacks.map(|given| vk::AllocationCallbacks {
            p_user_data: given.p_user_data,
            pfn_allocation: given.pfn_allocation,
            pfn_reallocation: given.pfn_reallocation,
            pfn_free: given.pfn_free,
            pfn_internal_allocation: given.pfn_internal_allocation,
            pfn_internal_free: given.pfn_internal_free,
            ..Default::default()
        });
    }

    /// Sets the callbacks for all device memory from now on.
    pub(crate) fn set_memory_callbacks(&mut self, callbacks: Option<DeviceMemoryCallbacks>) {
        self.memory_callbacks = callbacks;
    }

    /// Sets the handle types for which memory is exportable, by memory type.
    ///
    /// # Safety
    /// The extensions that define the handle types are enabled.
    pub(crate) unsafe fn set_export_types(&mut self, types: &[vk::ExternalMemoryHandleTypeFlags]) {
        self.export_types = types.into();
    }

    /// Raises `bufferImageGranularity` to at least `granularity`.
    pub(crate) fn raise_granularity(&mut self, granularity: u64) {
        self.granularity = self.granularity.max(Alignment::at_least(granularity));
    }

    /// The allocation callbacks for driver calls, or null.
    #[inline]
    fn host(&self) -> *const vk::AllocationCallbacks<'_> {
        self.host_callbacks.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)
    }

    /// Returns the first function that the settings need and the driver lacks.
    pub(crate) fn missing_for_settings(&self) -> Option<&'static str> {
        let functions = &self.functions;
        let needed = [
            (
                self.settings.memory_budget && functions.get_physical_device_memory_properties2.is_none(),
                "vkGetPhysicalDeviceMemoryProperties2",
            ),
            (
                self.settings.dedicated_allocation && functions.get_buffer_memory_requirements2.is_none(),
                "vkGetBufferMemoryRequirements2",
            ),
            (
                self.settings.dedicated_allocation && functions.get_image_memory_requirements2.is_none(),
                "vkGetImageMemoryRequirements2",
            ),
            (
                cfg!(windows)
                    && self.settings.external_memory_win32
                    && functions.get_memory_win32_handle.is_none(),
                "vkGetMemoryWin32HandleKHR",
            ),
        ];
        needed.into_iter().find_map(|(missing, name)| missing.then_some(name))
    }

    /// The memory types that the device has.
    pub(crate) fn memory_types(&self) -> &[vk::MemoryType] {
        let count = index(self.memory.memory_type_count).min(self.memory.memory_types.len());
        &self.memory.memory_types[..count]
    }

    /// The heaps that the device has.
    pub(crate) fn memory_heaps(&self) -> &[vk::MemoryHeap] {
        let count = index(self.memory.memory_heap_count).min(self.memory.memory_heaps.len());
        &self.memory.memory_heaps[..count]
    }

    /// Returns true if host access to this type needs no flush.
    pub(crate) fn is_coherent(&self, memory_type: u32) -> bool {
        let flags = self.memory_types()[index(memory_type)].property_flags;
        flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT)
    }

    /// Returns true if this type can be mapped.
    pub(crate) fn is_host_visible(&self, memory_type: u32) -> bool {
        let flags = self.memory_types()[index(memory_type)].property_flags;
        flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
    }

    /// Returns usage and budget of each heap in bytes from VK_EXT_memory_budget; `None` without the extension.
    pub(crate) fn budgets(&self) -> Option<vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'static>> {
        if !self.settings.memory_budget {
            return None;
        }
        let query = self.functions.get_physical_device_memory_properties2?;
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: the physical device is live, and the chain holds one structure that the enabled extension defines
        // (VUID-VkPhysicalDeviceMemoryProperties2-pNext-pNext).
        unsafe { query(self.physical_device, &mut properties) };
        budget.p_next = std::ptr::null_mut();
        Some(budget)
    }

    /// `vkAllocateMemory`.
    pub(crate) fn allocate_memory(&self, what: &DriverAllocation) -> Result<vk::DeviceMemory, DriverError> {
        // SAFETY: the program promised that `what.next` is valid.
        let own = unsafe { OwnChain::read(what.next) };
        let wanted = if what.device_address && self.settings.buffer_device_address {
            vk::MemoryAllocateFlags::DEVICE_ADDRESS
        } else {
            vk::MemoryAllocateFlags::empty()
        };
        let mut copies = Vec::new();
        // SAFETY: as above.
        let (mut flags, next) = unsafe { own.with_flags(wanted, &mut copies) };
        let mut info =
            vk::MemoryAllocateInfo::default().allocation_size(what.size).memory_type_index(what.memory_type);
        info.p_next = next;
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default();
        if self.settings.dedicated_allocation && own.leaves_dedication() {
            match what.dedicated_to {
                Some(BufferOrImage::Buffer(buffer)) => dedicated.buffer = buffer,
                Some(BufferOrImage::Image(image)) => dedicated.image = image,
                None => {}
            }
        }
        if !dedicated.buffer.is_null() || !dedicated.image.is_null() {
            dedicated.p_next = info.p_next;
            info.p_next = std::ptr::from_ref(&dedicated).cast();
        }
        if let Some(flags) = &mut flags {
            flags.p_next = info.p_next;
            info.p_next = std::ptr::from_ref(flags).cast();
        }
        let mut priority = vk::MemoryPriorityAllocateInfoEXT::default();
        if let (true, true, Some(value)) =
            (self.settings.memory_priority, own.leaves_priority(), what.priority)
        {
            priority.priority = value;
            priority.p_next = info.p_next;
            info.p_next = std::ptr::from_ref(&priority).cast();
        }
        let mut export = vk::ExportMemoryAllocateInfo::default();
        let export_types = self.export_types.get(index(what.memory_type)).copied().unwrap_or_default();
        if !export_types.is_empty() && own.leaves_export() {
            export.handle_types = export_types;
            export.p_next = info.p_next;
            info.p_next = std::ptr::from_ref(&export).cast();
        }
        if own.leaves_size(export.handle_types, dedicated.image) {
            info.allocation_size = 0;
        }
        let mut memory = vk::DeviceMemory::null();
        // SAFETY: the device is live. The chain's structures live until the call returns, and each belongs to a version
        // or extension that the settings enable. The program promised that `what.next` is valid
        // (VUID-vkAllocateMemory-pAllocateInfo-parameter). The caller checked size and type
        // (VUID-vkAllocateMemory-pAllocateInfo-01713, -01714).
        let result =
            unsafe { (self.functions.allocate_memory)(self.device, &info, self.host(), &mut memory) };
        DriverError::check("vkAllocateMemory", result)?;
        if let Some(callbacks) = &self.memory_callbacks {
            let &DriverAllocation { memory_type, size, .. } = what;
            callbacks.call(DeviceMemoryEvent::Allocated { memory_type, memory, size });
        }
        Ok(memory)
    }

    /// `vkFreeMemory` of `size` bytes of this type.
    ///
    /// # Safety
    /// `memory` came from [`Self::allocate_memory`], is freed once, and the device no longer uses it
    /// (VUID-vkFreeMemory-memory-00677).
    pub(crate) unsafe fn free_memory(&self, memory: vk::DeviceMemory, memory_type: u32, size: u64) {
        if let Some(callbacks) = &self.memory_callbacks {
            callbacks.call(DeviceMemoryEvent::Freeing { memory_type, memory, size });
        }
        #[cfg(windows)]
        self.win32_handles.close(memory);
        // SAFETY: the caller promises memory of this device that is freed once, and that the device no longer uses.
        unsafe { (self.functions.free_memory)(self.device, memory, self.host()) };
    }

    /// `vkMapMemory` of all of `memory`.
    ///
    /// # Safety
    /// `memory` is live, host-visible, not mapped, and no other thread maps or unmaps it
    /// (VUID-vkMapMemory-memory-00678, -00682).
    pub(crate) unsafe fn map_memory(&self, memory: vk::DeviceMemory) -> Result<NonNull<u8>, DriverError> {
        const CALL: &str = "vkMapMemory";
        let mut pointer: *mut c_void = std::ptr::null_mut();
        // SAFETY: the caller promises live, host-visible memory that is not mapped and that no other thread maps or
        // unmaps; the range is the whole memory (VUID-vkMapMemory-size-00680).
        let result = unsafe {
            (self.functions.map_memory)(
                self.device,
                memory,
                0,
                vk::WHOLE_SIZE,
                vk::MemoryMapFlags::empty(),
                &mut pointer,
            )
        };
        DriverError::check(CALL, result)?;
        NonNull::new(pointer.cast())
            .ok_or(DriverError { call: CALL, result: vk::Result::ERROR_MEMORY_MAP_FAILED })
    }

    /// `vkUnmapMemory`.
    ///
    /// # Safety
    /// `memory` is live and mapped (VUID-vkUnmapMemory-memory-00689), no other thread maps or unmaps it, and nobody
    /// uses the pointer any more.
    pub(crate) unsafe fn unmap_memory(&self, memory: vk::DeviceMemory) {
        // SAFETY: the caller's promise: `memory` is live and mapped, no other thread maps or unmaps it, and nobody uses
        // the pointer any more.
        unsafe { (self.functions.unmap_memory)(self.device, memory) };
    }

    /// `vkFlushMappedMemoryRanges`.
    ///
    /// # Safety
    /// Each range is in live, mapped memory, begins at an atom, and ends at an atom or at the end of the memory
    /// (VUID-VkMappedMemoryRange-memory-00684, -offset-00687, -size-01390).
    #[inline]
    pub(crate) unsafe fn flush(&self, ranges: &[vk::MappedMemoryRange<'_>]) -> Result<(), DriverError> {
        let count = sublet_engines::cast::narrow(ranges.len());
        // SAFETY: the caller promises ranges of live, mapped memory, from atom to atom; `count` is the slice's length.
        let result =
            unsafe { (self.functions.flush_mapped_memory_ranges)(self.device, count, ranges.as_ptr()) };
        DriverError::check("vkFlushMappedMemoryRanges", result)
    }

    /// `vkInvalidateMappedMemoryRanges`.
    ///
    /// # Safety
    /// Same as [`Self::flush`].
    #[inline]
    pub(crate) unsafe fn invalidate(&self, ranges: &[vk::MappedMemoryRange<'_>]) -> Result<(), DriverError> {
        let count = sublet_engines::cast::narrow(ranges.len());
        // SAFETY: the caller promises ranges of live, mapped memory, from atom to atom; `count` is the slice's length.
        let result =
            unsafe { (self.functions.invalidate_mapped_memory_ranges)(self.device, count, ranges.as_ptr()) };
        DriverError::check("vkInvalidateMappedMemoryRanges", result)
    }

    /// `vkCreateBuffer`.
    ///
    /// # Safety
    /// `info` is valid for this device (VUID-vkCreateBuffer-pCreateInfo-parameter).
    #[inline]
    pub(crate) unsafe fn create_buffer(
        &self,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Result<vk::Buffer, DriverError> {
        let mut buffer = vk::Buffer::null();
        // SAFETY: the caller's promise: `info` is valid for this device.
        let result = unsafe { (self.functions.create_buffer)(self.device, info, self.host(), &mut buffer) };
        DriverError::check("vkCreateBuffer", result)?;
        Ok(buffer)
    }

    /// `vkDestroyBuffer`; null is ignored.
    ///
    /// # Safety
    /// `buffer` is of this device, is destroyed once, and the device no longer uses it
    /// (VUID-vkDestroyBuffer-buffer-00922).
    #[inline]
    #[doc(hidden)]
    pub unsafe fn destroy_buffer(&self, buffer: vk::Buffer) {
        // SAFETY: the caller's promise: `buffer` is of this device, is destroyed once, and the device no longer uses
        // it.
        unsafe { (self.functions.destroy_buffer)(self.device, buffer, self.host()) };
    }

    /// `vkCreateImage`.
    ///
    /// # Safety
    /// `info` is valid for this device (VUID-vkCreateImage-pCreateInfo-parameter).
    #[inline]
    pub(crate) unsafe fn create_image(
        &self,
        info: &vk::ImageCreateInfo<'_>,
    ) -> Result<vk::Image, DriverError> {
        let mut image = vk::Image::null();
        // SAFETY: the caller's promise: `info` is valid for this device.
        let result = unsafe { (self.functions.create_image)(self.device, info, self.host(), &mut image) };
        DriverError::check("vkCreateImage", result)?;
        Ok(image)
    }

    /// `vkDestroyImage`; null is ignored.
    ///
    /// # Safety
    /// `image` is of this device, is destroyed once, and the device no longer uses it
    /// (VUID-vkDestroyImage-image-01000).
    #[inline]
    #[doc(hidden)]
    pub unsafe fn destroy_image(&self, image: vk::Image) {
        // SAFETY: the caller's promise: `image` is of this device, is destroyed once, and the device no longer uses it.
        unsafe { (self.functions.destroy_image)(self.device, image, self.host()) };
    }

    /// Destroys a buffer or an image.
    ///
    /// # Safety
    /// Same as [`Self::destroy_buffer`] and [`Self::destroy_image`].
    pub(crate) unsafe fn destroy(&self, resource: BufferOrImage) {
        match resource {
            // SAFETY: the caller's promise: it is of this device, is destroyed once, and the device no longer uses it.
            BufferOrImage::Buffer(buffer) => unsafe { self.destroy_buffer(buffer) },
            // SAFETY: the caller's promise: it is of this device, is destroyed once, and the device no longer uses it.
            BufferOrImage::Image(image) => unsafe { self.destroy_image(image) },
        }
    }

    /// Returns the memory requirements of a buffer or image.
    ///
    /// # Safety
    /// The resource is live, of this device, and not disjoint
    /// (VUID-vkGetImageMemoryRequirements-image-01588).
    #[inline]
    pub(crate) unsafe fn requirements(&self, of: BufferOrImage) -> ResourceRequirements {
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        // Not `push_next`, which walks the chain to its end.
        let mut requirements = vk::MemoryRequirements2 {
            p_next: std::ptr::from_mut(&mut dedicated).cast(),
            ..vk::MemoryRequirements2::default()
        };
        let known = match of {
            BufferOrImage::Buffer(buffer) => {
                let info = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer);
                self.asks_dedicated(self.functions.get_buffer_memory_requirements2).map(|query| {
                    // SAFETY: the caller promises a live buffer of this device; `asks_dedicated` has checked version or
                    // extension.
                    unsafe { query(self.device, &info, &mut requirements) };
                })
            }
            BufferOrImage::Image(image) => {
                let info = vk::ImageMemoryRequirementsInfo2::default().image(image);
                self.asks_dedicated(self.functions.get_image_memory_requirements2).map(|query| {
                    // SAFETY: the caller promises a live image of this device that is not disjoint; `asks_dedicated`
                    // has checked version or extension.
                    unsafe { query(self.device, &info, &mut requirements) };
                })
            }
        };
        if known.is_none() {
            let plain = &mut requirements.memory_requirements;
            match of {
                // SAFETY: the caller's promise: the resource is live, of this device, and not disjoint.
                BufferOrImage::Buffer(buffer) => unsafe {
                    (self.functions.get_buffer_memory_requirements)(self.device, buffer, plain);
                },
                // SAFETY: the caller's promise: the resource is live, of this device, and not disjoint.
                BufferOrImage::Image(image) => unsafe {
                    (self.functions.get_image_memory_requirements)(self.device, image, plain);
                },
            }
        }
        Self::with_dedicated(requirements.memory_requirements, &dedicated)
    }

    /// Returns the `..Requirements2` function if the version or an extension allows its use.
    #[inline]
    fn asks_dedicated<F>(&self, function: Option<F>) -> Option<F> {
        function.filter(|_| self.settings.dedicated_allocation)
    }

    #[inline]
    fn with_dedicated(
        requirements: vk::MemoryRequirements,
        dedicated: &vk::MemoryDedicatedRequirements<'_>,
    ) -> ResourceRequirements {
        ResourceRequirements {
            prefers_dedicated: dedicated.prefers_dedicated_allocation != vk::FALSE,
            requires_dedicated: dedicated.requires_dedicated_allocation != vk::FALSE,
            ..ResourceRequirements::from(&requirements)
        }
    }

    /// Returns the requirements of a buffer that `info` describes: by a direct query if the driver has one, otherwise
    /// with a temporary buffer.
    ///
    /// # Safety
    /// `info` is valid for this device.
    #[inline]
    pub(crate) unsafe fn requirements_for_buffer(
        &self,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Result<ResourceRequirements, DriverError> {
        if let (true, Some(query)) =
            (self.settings.maintenance4, self.functions.get_device_buffer_memory_requirements)
        {
            let info = vk::DeviceBufferMemoryRequirements::default().create_info(info);
            let mut dedicated = vk::MemoryDedicatedRequirements::default();
            let mut requirements = vk::MemoryRequirements2::default().push_next(&mut dedicated);
            // SAFETY: the caller promises a valid `info`, and maintenance4 is enabled.
            unsafe { query(self.device, &info, &mut requirements) };
            return Ok(Self::with_dedicated(requirements.memory_requirements, &dedicated));
        }
        // SAFETY: the caller's promise: `info` is valid for this device.
        let buffer = unsafe { self.create_buffer(info) }?;
        // SAFETY: the buffer was just created.
        let requirements = unsafe { self.requirements(BufferOrImage::Buffer(buffer)) };
        // SAFETY: nobody else has the handle of the buffer.
        unsafe { self.destroy_buffer(buffer) };
        Ok(requirements)
    }

    /// Returns the requirements of an image that `info` describes: by a direct query if the driver has one, otherwise
    /// with a temporary image.
    ///
    /// # Safety
    /// `info` is valid for this device and not disjoint.
    #[inline]
    pub(crate) unsafe fn requirements_for_image(
        &self,
        info: &vk::ImageCreateInfo<'_>,
    ) -> Result<ResourceRequirements, DriverError> {
        if let (true, Some(query)) =
            (self.settings.maintenance4, self.functions.get_device_image_memory_requirements)
        {
            let info = vk::DeviceImageMemoryRequirements::default().create_info(info);
            let mut dedicated = vk::MemoryDedicatedRequirements::default();
            let mut requirements = vk::MemoryRequirements2::default().push_next(&mut dedicated);
            // SAFETY: the caller promises a valid `info` that is not disjoint, and maintenance4 is enabled.
            unsafe { query(self.device, &info, &mut requirements) };
            return Ok(Self::with_dedicated(requirements.memory_requirements, &dedicated));
        }
        // SAFETY: the caller's promise: `info` is valid for this device and not disjoint.
        let image = unsafe { self.create_image(info) }?;
        // SAFETY: the image was just created.
        let requirements = unsafe { self.requirements(BufferOrImage::Image(image)) };
        // SAFETY: nobody else has the handle of the image.
        unsafe { self.destroy_image(image) };
        Ok(requirements)
    }

    /// Returns true if [`Self::bind`] accepts a chain.
    pub(crate) fn binds_chains(&self) -> bool {
        let Functions { bind_buffer_memory2, bind_image_memory2, .. } = &self.functions;
        self.settings.bind_memory2 && bind_buffer_memory2.is_some() && bind_image_memory2.is_some()
    }

    /// Binds a buffer or image. A non-null `next` chain needs `vkBind*Memory2`.
    ///
    /// # Safety
    /// The resource is live and unbound, the memory is live, offset and type meet the resource's requirements
    /// (VUID-vkBindBufferMemory-memory-01035, -memoryOffset-01036, -size-01037 and their image twins), and the chain is
    /// valid.
    #[inline]
    pub(crate) unsafe fn bind(
        &self,
        resource: BufferOrImage,
        memory: vk::DeviceMemory,
        offset: u64,
        next: *const c_void,
    ) -> Result<(), DriverError> {
        if next.is_null() {
            return match resource {
                BufferOrImage::Buffer(buffer) => {
                    // SAFETY: the caller's promise: the resource is live and unbound, the memory is live, offset and
                    // type meet the resource's requirements, and the chain is valid.
                    let result =
                        unsafe { (self.functions.bind_buffer_memory)(self.device, buffer, memory, offset) };
                    DriverError::check("vkBindBufferMemory", result)
                }
                BufferOrImage::Image(image) => {
                    // SAFETY: the caller's promise: the resource is live and unbound, the memory is live, offset and
                    // type meet the resource's requirements, and the chain is valid.
                    let result =
                        unsafe { (self.functions.bind_image_memory)(self.device, image, memory, offset) };
                    DriverError::check("vkBindImageMemory", result)
                }
            };
        }
        match resource {
            BufferOrImage::Buffer(buffer) => {
                const CALL: &str = "vkBindBufferMemory2";
                let bind = self.functions.bind_buffer_memory2.filter(|_| self.settings.bind_memory2);
                let bind =
                    bind.ok_or(DriverError { call: CALL, result: vk::Result::ERROR_EXTENSION_NOT_PRESENT })?;
                let mut info =
                    vk::BindBufferMemoryInfo::default().buffer(buffer).memory(memory).memory_offset(offset);
                info.p_next = next;
                // SAFETY: the caller promises a live, unbound buffer, live memory that meets its requirements there,
                // and a valid chain; one structure is given and one is counted.
                let result = unsafe { bind(self.device, 1, &info) };
                DriverError::check(CALL, result)
            }
            BufferOrImage::Image(image) => {
                const CALL: &str = "vkBindImageMemory2";
                let bind = self.functions.bind_image_memory2.filter(|_| self.settings.bind_memory2);
                let bind =
                    bind.ok_or(DriverError { call: CALL, result: vk::Result::ERROR_EXTENSION_NOT_PRESENT })?;
                let mut info =
                    vk::BindImageMemoryInfo::default().image(image).memory(memory).memory_offset(offset);
                info.p_next = next;
                // SAFETY: the caller promises a live, unbound image, live memory that meets its requirements there, and
                // a valid chain; one structure is given and one is counted.
                let result = unsafe { bind(self.device, 1, &info) };
                DriverError::check(CALL, result)
            }
        }
    }
}
