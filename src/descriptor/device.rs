//! The descriptor abilities of a device, shared by everything that is made for it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use super::features::DescriptorFeatures;
use super::models::BindingModel;
use super::quirks::DescriptorQuirks;
use crate::device::descriptors::{DescriptorDriver, DescriptorExtensions};
use crate::device::{MissingFunction, VulkanFunctions};

/// How a [`DescriptorDevice`] is made.
///
/// ```
/// # use sublet::{descriptor::*, sim};
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
    /// The physical device that [`Self::device`] was made from.
    pub physical_device: vk::PhysicalDevice,
    /// The device.
    pub device: vk::Device,
    /// The Vulkan version that the program uses, as in `VkApplicationInfo::apiVersion`.
    pub api_version: u32,
    /// What was enabled on the device.
    pub features: DescriptorFeatures,
    /// How shaders get at descriptors. [`BindingModel::Auto`] takes what the driver is known to be best at.
    pub model: BindingModel,
    /// Faults of the driver to work around; `None` for those that are known of it.
    pub quirks: Option<DescriptorQuirks>,
    /// Functions of the program's own; those that it leaves out are looked up.
    pub functions: VulkanFunctions,
}

impl DescriptorDeviceCreateInfo {
    /// For a program that uses `ash`. `api_version` is the version that the **instance** was made for.
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

    /// For a simulated GPU, with everything that it has enabled.
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
struct Inner {
    driver: DescriptorDriver,
    api_version: u32,
    features: DescriptorFeatures,
    quirks: DescriptorQuirks,
    model: BindingModel,
    /// Descriptors in all pools that are updated after they are bound, of everything made from this value.
    update_after_bind: AtomicU64,
}

/// What a device can do with descriptors: its functions, limits, enabled features and faults. Cheap to clone, and
/// shared by everything that is made from it.
///
/// ```
/// use sublet::{descriptor::*, sim};
/// let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// // SAFETY: instance and device are live, and outlive everything that is made from the value.
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// assert_ne!(device.model(), BindingModel::Auto);
/// # Ok::<(), CreateDescriptorDeviceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DescriptorDevice {
    inner: Arc<Inner>,
}

impl DescriptorDevice {
    /// Asks the device for its descriptor limits, and looks up the functions.
    ///
    /// # Errors
    /// [`CreateDescriptorDeviceError`] if a function that is needed is missing, or descriptor buffers are to be used
    /// and are not enabled.
    ///
    /// # Safety
    /// 1. Instance, physical device and device are live, belong together, and outlive everything that is made from the
    ///    value.
    /// 2. `info.functions` are theirs.
    /// 3. `info.api_version` is not above the version that the instance was made for, and what `info.features` says is
    ///    enabled.
    pub unsafe fn new(info: &DescriptorDeviceCreateInfo) -> Result<Self, CreateDescriptorDeviceError> {
        let &DescriptorDeviceCreateInfo { instance, physical_device, device, .. } = info;
        let enabled = DescriptorExtensions {
            push_descriptor: info.features.contains(DescriptorFeatures::PUSH_DESCRIPTOR),
            descriptor_buffer: info.features.contains(DescriptorFeatures::DESCRIPTOR_BUFFER),
            descriptor_heap: info.features.contains(DescriptorFeatures::DESCRIPTOR_HEAP),
        };
        // SAFETY: clauses 1 and 2: the handles are live and belong together, and the functions are theirs; clause 3: what
        // is said to be enabled is.
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
        let inner = Inner { driver, api_version, features, quirks, model, update_after_bind };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The Vulkan version in use: the program's, as far as the device has it.
    #[must_use]
    pub fn api_version(&self) -> u32 {
        self.inner.api_version
    }

    /// What is enabled, and what came with the version.
    #[must_use]
    pub fn features(&self) -> DescriptorFeatures {
        self.inner.features
    }

    /// Faults of the driver that the library works around.
    #[must_use]
    pub fn quirks(&self) -> DescriptorQuirks {
        self.inner.quirks
    }

    /// How shaders get at descriptors: never [`BindingModel::Auto`].
    #[must_use]
    pub fn model(&self) -> BindingModel {
        self.inner.model
    }

    /// The device's limits.
    pub fn limits(&self) -> &vk::PhysicalDeviceLimits {
        &self.inner.driver.facts.properties.limits
    }

    /// `maxUpdateAfterBindDescriptorsInAllPools`; 0 where sets cannot be updated after they are bound. Beyond it the
    /// driver may refuse a pool, and need not.
    #[must_use]
    pub fn max_update_after_bind(&self) -> u64 {
        self.inner.driver.facts.indexing.max_update_after_bind_descriptors_in_all_pools.into()
    }

    /// Descriptors in the update-after-bind pools of everything that was made from this value. An inline uniform block
    /// is one, whatever its bytes.
    #[must_use]
    pub fn update_after_bind_used(&self) -> u64 {
        self.inner.update_after_bind.load(Ordering::Relaxed)
    }

    /// What the limit leaves for update-after-bind pools.
    pub(crate) fn update_after_bind_left(&self) -> u64 {
        self.max_update_after_bind().saturating_sub(self.update_after_bind_used())
    }

    /// Counts the descriptors of a pool with update after bind.
    pub(crate) fn take_update_after_bind(&self, descriptors: u64) {
        self.inner.update_after_bind.fetch_add(descriptors, Ordering::Relaxed);
    }

    /// Ends what [`Self::take_update_after_bind`] began.
    pub(crate) fn release_update_after_bind(&self, descriptors: u64) {
        self.inner.update_after_bind.fetch_sub(descriptors, Ordering::Relaxed);
    }

    /// `maxPushDataSize`, in bytes; 0 where [`DescriptorFeatures::DESCRIPTOR_HEAP`] is not enabled.
    #[must_use]
    pub fn max_push_data_size(&self) -> u64 {
        self.inner.driver.facts.heap.max_push_data_size
    }

    /// Sets bytes that shaders of pipelines with descriptor heaps read as push constants (`vkCmdPushDataEXT`), from
    /// byte `offset` on. They need no pipeline layout. Nothing happens where `VK_EXT_descriptor_heap` is not enabled.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone. `offset` and the length are multiples of 4, not
    /// zero, and end within [`Self::max_push_data_size`] (VUID-VkPushDataInfoEXT-offset-11243, -offset-11418,
    /// -data-11419).
    pub unsafe fn cmd_push_data(&self, commands: vk::CommandBuffer, offset: u32, data: &[u8]) {
        // SAFETY: the caller's own promise.
        unsafe { self.inner.driver.cmd_push_data(commands, offset, data) };
    }

    /// Whether it is a clone of the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The calls.
    #[inline]
    pub(crate) fn driver(&self) -> &DescriptorDriver {
        &self.inner.driver
    }
}

/// Why there is no [`DescriptorDevice`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateDescriptorDeviceError {
    /// A function is neither given nor found: the handles are not of one device, or a feature is not enabled.
    Missing(MissingFunction),
    /// [`BindingModel::Buffer`] without [`DescriptorFeatures::DESCRIPTOR_BUFFER`].
    NoDescriptorBuffer,
    /// The program asked for [`BindingModel::Heap`] without [`DescriptorFeatures::DESCRIPTOR_HEAP`].
    NoDescriptorHeap,
}

impl From<MissingFunction> for CreateDescriptorDeviceError {
    fn from(missing: MissingFunction) -> Self {
        Self::Missing(missing)
    }
}

impl fmt::Display for CreateDescriptorDeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(error) => write!(f, "the device does not have what descriptors need: {error}"),
            Self::NoDescriptorHeap => {
                f.write_str("the model is descriptor heaps, and the program has not enabled them")
            }
            Self::NoDescriptorBuffer => {
                f.write_str("descriptor buffers are asked for, and the feature is not enabled")
            }
        }
    }
}

impl Error for CreateDescriptorDeviceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Missing(missing) => missing.source(),
            Self::NoDescriptorBuffer | Self::NoDescriptorHeap => None,
        }
    }
}
