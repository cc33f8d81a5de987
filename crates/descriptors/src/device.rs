//! The descriptor capabilities of a device, shared by all allocators of the device.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use super::features::DescriptorFeatures;
use super::models::BindingModel;
use super::quirks::DescriptorQuirks;
use crate::driver::{DescriptorDriver, DescriptorExtensions};
use sublet::device::{MissingFunction, VulkanFunctions};

/// The parameters of a [`DescriptorDevice`].
///
/// ```
/// # use sublet::sim; use sublet_descriptors::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// let info = DescriptorDeviceCreateInfo {
///     features: DescriptorFeatures::PUSH_DESCRIPTOR,
///     ..DescriptorDeviceCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version())
/// };
/// assert_eq!(info.model, BindingModel::Auto);
/// ```
#[derive(Clone, Debug)]
pub struct DescriptorDeviceCreateInfo {
    /// The instance.
    pub instance: vk::Instance,
    /// The physical device of [`Self::device`].
    pub physical_device: vk::PhysicalDevice,
    /// The device.
    pub device: vk::Device,
    /// The Vulkan version that the program uses, as in `VkApplicationInfo::apiVersion`.
    pub api_version: u32,
    /// The features and extensions that are enabled on the device.
    pub features: DescriptorFeatures,
    /// The binding model. [`BindingModel::Auto`] selects the best model for the driver.
    pub model: BindingModel,
    /// Driver faults to work around; `None` for the known faults of the driver.
    pub quirks: Option<DescriptorQuirks>,
    /// Functions that the program provides. The library looks up the others.
    pub functions: VulkanFunctions,
}

impl DescriptorDeviceCreateInfo {
    /// Returns the parameters for a program that uses `ash`. `api_version` is the version that the **instance** was
    /// created for.
    #[must_use]
    pub fn new(
        instance: &ash::Instance,
        device: &ash::Device,
        physical_device: vk::PhysicalDevice,
        api_version: u32,
    ) -> Self {
        Self {
            instance: instance.handle(),
            physical_device,
            device: device.handle(),
            api_version,
            features: DescriptorFeatures::empty(),
            model: BindingModel::Auto,
            quirks: None,
            functions: VulkanFunctions::from_ash(instance, api_version),
        }
    }

    /// Returns the parameters for a simulated GPU, with everything that it has enabled.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn for_gpu(gpu: &sublet_sim::Gpu) -> Self {
        let info = Self::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
        let feature_of = |name: &str| match name {
            "VK_KHR_maintenance1" => DescriptorFeatures::MAINTENANCE1,
            "VK_KHR_descriptor_update_template" => DescriptorFeatures::UPDATE_TEMPLATE,
            "VK_KHR_push_descriptor" => DescriptorFeatures::PUSH_DESCRIPTOR,
            "VK_EXT_inline_uniform_block" => DescriptorFeatures::INLINE_UNIFORM_BLOCK,
            "VK_EXT_mutable_descriptor_type" => DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE,
            "VK_KHR_buffer_device_address" => DescriptorFeatures::BUFFER_DEVICE_ADDRESS,
            "VK_EXT_descriptor_buffer" => {
                DescriptorFeatures::DESCRIPTOR_BUFFER | DescriptorFeatures::DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS
            }
            "VK_EXT_descriptor_heap" => DescriptorFeatures::DESCRIPTOR_HEAP,
            "VK_EXT_descriptor_indexing" => DescriptorFeatures::UPDATE_AFTER_BIND,
            _ => DescriptorFeatures::empty(),
        };
        let features = gpu.extensions().iter().map(|name| feature_of(name)).collect::<DescriptorFeatures>();
        let functions = info.functions.with_entry(gpu.entry());
        Self { features: features | DescriptorFeatures::DEBUG_UTILS, functions, ..info }
    }
}

#[derive(Debug)]
struct DescriptorDeviceInner {
    driver: DescriptorDriver,
    api_version: u32,
    features: DescriptorFeatures,
    quirks: DescriptorQuirks,
    model: BindingModel,
    /// The number of descriptors in update-after-bind pools, over all objects of this value.
    update_after_bind: AtomicU64,
}

/// The capabilities of a device for descriptors: its functions, limits, enabled features and faults. It is cheap to
/// clone; all objects that are created from it share it.
///
/// ```
/// use sublet::sim;
/// use sublet_descriptors::*;
/// let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// // SAFETY: instance and device are live, and outlive everything that is created from the value.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// assert_ne!(device.model(), BindingModel::Auto);
/// # Ok::<(), CreateDescriptorDeviceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DescriptorDevice {
    inner: Arc<DescriptorDeviceInner>,
}

impl DescriptorDevice {
    /// Queries the descriptor limits of the device, and looks up the functions.
    ///
    /// # Errors
    /// [`CreateDescriptorDeviceError`] if a required function is missing, or the model needs an extension that is not
    /// enabled.
    ///
    /// # Safety
    /// 1. Instance, physical device and device are live, belong together, and outlive everything that is created from
    ///    the value.
    /// 2. `info.functions` belong to them.
    /// 3. `info.api_version` is at most the version of the instance, and everything in `info.features` is enabled.
    pub unsafe fn new(info: &DescriptorDeviceCreateInfo) -> Result<Self, CreateDescriptorDeviceError> {
        let &DescriptorDeviceCreateInfo { instance, physical_device, device, .. } = info;
        let enabled = DescriptorExtensions {
            push_descriptor: info.features.contains(DescriptorFeatures::PUSH_DESCRIPTOR),
            descriptor_buffer: info.features.contains(DescriptorFeatures::DESCRIPTOR_BUFFER),
            descriptor_heap: info.features.contains(DescriptorFeatures::DESCRIPTOR_HEAP),
        };
        // SAFETY: clauses 1 and 2: the handles are live and belong together, and the functions belong to them; clause
        // 3: the given features are enabled.
        let driver =
            unsafe { DescriptorDriver::new(&info.functions, instance, physical_device, device, enabled) }?;
        let api_version = info.api_version.min(driver.facts.properties.api_version);
        let features = info.features | DescriptorFeatures::of_version(api_version);
        let has_buffers = features.contains(DescriptorFeatures::DESCRIPTOR_BUFFER);
        let model = match info.model {
            BindingModel::Auto if has_buffers => {
                let properties = &driver.facts.properties;
                BindingModel::of_driver(driver.facts.driver_id, properties.device_id)
            }
            BindingModel::Auto => BindingModel::Sets,
            BindingModel::Buffer if !has_buffers => {
                return Err(CreateDescriptorDeviceError::NoDescriptorBuffer);
            }
            BindingModel::Heap if !features.contains(DescriptorFeatures::DESCRIPTOR_HEAP) => {
                return Err(CreateDescriptorDeviceError::NoDescriptorHeap);
            }
            chosen => chosen,
        };
        if let (true, Some(missing)) = (has_buffers, driver.missing_for_descriptor_buffer()) {
            return Err(missing.into());
        }
        if features.contains(DescriptorFeatures::PUSH_DESCRIPTOR) && !driver.has_push_descriptors() {
            return Err(MissingFunction { name: "vkCmdPushDescriptorSetKHR" }.into());
        }
        if features.contains(DescriptorFeatures::UPDATE_TEMPLATE) && !driver.has_templates() {
            return Err(MissingFunction { name: "vkCreateDescriptorUpdateTemplate" }.into());
        }
        let facts = &driver.facts;
        let quirks = info
            .quirks
            .unwrap_or_else(|| DescriptorQuirks::of_driver(facts.driver_id, facts.properties.driver_version));
        let update_after_bind = AtomicU64::new(0);
        let inner = DescriptorDeviceInner { driver, api_version, features, quirks, model, update_after_bind };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the Vulkan version in use: the lower of the program's and the device's.
    #[must_use]
    pub fn api_version(&self) -> u32 {
        self.inner.api_version
    }

    /// Returns the enabled features, including those of the version.
    #[must_use]
    pub fn features(&self) -> DescriptorFeatures {
        self.inner.features
    }

    /// Returns the driver faults that the library works around.
    #[must_use]
    pub fn quirks(&self) -> DescriptorQuirks {
        self.inner.quirks
    }

    /// Returns the binding model: never [`BindingModel::Auto`].
    #[must_use]
    pub fn model(&self) -> BindingModel {
        self.inner.model
    }

    /// Returns the device's limits.
    pub fn limits(&self) -> &vk::PhysicalDeviceLimits {
        &self.inner.driver.facts.properties.limits
    }

    /// Returns `maxUpdateAfterBindDescriptorsInAllPools`; 0 if the device has no update-after-bind. A driver may, but
    /// need not, reject a pool that exceeds it.
    #[must_use]
    pub fn max_update_after_bind(&self) -> u64 {
        self.inner.driver.facts.indexing.max_update_after_bind_descriptors_in_all_pools.into()
    }

    /// Returns the number of descriptors in the update-after-bind pools of everything that was created from this value.
    /// An inline uniform block counts as one.
    #[must_use]
    pub fn update_after_bind_used(&self) -> u64 {
        self.inner.update_after_bind.load(Ordering::Relaxed)
    }

    /// Returns the remaining descriptors for update-after-bind pools.
    pub(crate) fn update_after_bind_left(&self) -> u64 {
        self.max_update_after_bind().saturating_sub(self.update_after_bind_used())
    }

    /// Adds the descriptors of an update-after-bind pool to the count.
    pub(crate) fn take_update_after_bind(&self, descriptors: u64) {
        self.inner.update_after_bind.fetch_add(descriptors, Ordering::Relaxed);
    }

    /// Subtracts descriptors that [`Self::take_update_after_bind`] added.
    pub(crate) fn release_update_after_bind(&self, descriptors: u64) {
        self.inner.update_after_bind.fetch_sub(descriptors, Ordering::Relaxed);
    }

    /// Returns `maxPushDataSize` in bytes; 0 if [`DescriptorFeatures::DESCRIPTOR_HEAP`] is not enabled.
    #[must_use]
    pub fn max_push_data_size(&self) -> u64 {
        self.inner.driver.facts.heap.max_push_data_size
    }

    /// Sets bytes from `offset` on that shaders read as push constants in pipelines with descriptor heaps
    /// (`vkCmdPushDataEXT`). This needs no pipeline layout. Does nothing if `VK_EXT_descriptor_heap` is not enabled.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone. `offset` and the length are multiples of 4, the
    /// length is not zero, and the end is within [`Self::max_push_data_size`] (VUID-VkPushDataInfoEXT-offset-11243,
    /// -offset-11418, -data-11419).
    pub unsafe fn cmd_push_data(&self, commands: vk::CommandBuffer, offset: u32, data: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.inner.driver.cmd_push_data(commands, offset, data) };
    }

    /// Returns true if both are clones of the same value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the driver calls.
    #[inline]
    pub(crate) fn driver(&self) -> &DescriptorDriver {
        &self.inner.driver
    }
}

/// The [`DescriptorDevice`] could not be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateDescriptorDeviceError {
    /// A function was neither provided nor found: the handles do not belong together, or a feature is not enabled.
    Missing(MissingFunction),
    /// [`BindingModel::Buffer`] without [`DescriptorFeatures::DESCRIPTOR_BUFFER`].
    NoDescriptorBuffer,
    /// [`BindingModel::Heap`] without [`DescriptorFeatures::DESCRIPTOR_HEAP`].
    NoDescriptorHeap,
}

sublet_engines::errors! { CreateDescriptorDeviceError:
    Missing(error: MissingFunction) => "the device does not have what descriptors need: {error}";
    NoDescriptorHeap => "the model is descriptor heaps, and the program has not enabled them";
    NoDescriptorBuffer => "descriptor buffers are asked for, and the feature is not enabled";
}
