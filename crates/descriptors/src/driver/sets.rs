//! Layouts, pools and sets: one method for each call, which checks the result.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::facts::{DescriptorExtensions, DescriptorFacts};
use super::functions::{DescriptorFunctions, FunctionLookup, HeapFunctions, check};
use sublet::device::{DriverError, MissingFunction, VulkanFunctions};

/// A live device, with the functions for descriptors.
#[derive(Debug)]
pub(crate) struct DescriptorDriver {
    pub(super) functions: DescriptorFunctions,
    /// The functions of VK_EXT_descriptor_heap, if it is enabled.
    pub(super) heap: Option<HeapFunctions>,
    pub(super) device: vk::Device,
    pub(crate) facts: DescriptorFacts,
}

/// The parameters of a descriptor pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewDescriptorPool<'a> {
    pub(crate) max_sets: u32,
    /// Non-zero counts; bytes for inline uniform blocks.
    pub(crate) sizes: &'a [vk::DescriptorPoolSize],
    pub(crate) flags: vk::DescriptorPoolCreateFlags,
    /// Bindings of inline uniform blocks; 0 needs no structure.
    pub(crate) inline_uniform_bindings: u32,
    /// For each entry of `sizes`, the types that its mutable descriptors may take; empty without mutable descriptors.
    pub(crate) mutable_types: &'a [vk::MutableDescriptorTypeListEXT<'a>],
}

impl DescriptorDriver {
    /// # Safety
    /// The handles are live and belong together, and the given functions belong to them. This holds until this value
    /// and everything created through it is gone.
    pub(crate) unsafe fn new(
        given: &VulkanFunctions,
        instance: vk::Instance,
        physical_device: vk::PhysicalDevice,
        device: vk::Device,
        enabled: DescriptorExtensions,
    ) -> Result<Self, MissingFunction> {
        // SAFETY: the caller promises live handles that belong together, and functions that are theirs.
        let lookup = unsafe { FunctionLookup::new(given, instance, device) };
        let mut functions = DescriptorFunctions::resolve(&lookup)?;
        functions.get_buffer_device_address =
            given.get_buffer_device_address.or(functions.get_buffer_device_address);
        let heap = enabled.descriptor_heap.then(|| HeapFunctions::resolve(&lookup)).transpose()?;
        let queries = lookup.queries(given)?;
        // SAFETY: the caller promises a live physical device of the instance whose functions these are.
        let facts = unsafe { DescriptorFacts::read(&queries, physical_device, enabled) };
        Ok(Self { functions, heap, device, facts })
    }

    /// `vkCreateDescriptorSetLayout`.
    ///
    /// # Safety
    /// The create-info is valid (VUID-vkCreateDescriptorSetLayout-pCreateInfo-parameter).
    pub(crate) unsafe fn create_set_layout(
        &self,
        info: &vk::DescriptorSetLayoutCreateInfo<'_>,
    ) -> Result<vk::DescriptorSetLayout, DriverError> {
        let mut layout = vk::DescriptorSetLayout::null();
        // SAFETY: the device is live; the caller promises a valid create-info.
        let result = unsafe {
            (self.functions.create_descriptor_set_layout)(self.device, info, std::ptr::null(), &mut layout)
        };
        check("vkCreateDescriptorSetLayout", result)?;
        Ok(layout)
    }

    /// `vkGetDescriptorSetLayoutSupport`: returns true if the device supports the layout, and the maximum count of its
    /// variable binding. `None` if the function is missing.
    ///
    /// # Safety
    /// The create-info is valid (VUID-vkGetDescriptorSetLayoutSupport-pCreateInfo-parameter).
    pub(crate) unsafe fn set_layout_support(
        &self,
        info: &vk::DescriptorSetLayoutCreateInfo<'_>,
    ) -> Option<(bool, u32)> {
        let query = self.functions.get_descriptor_set_layout_support?;
        let mut variable = vk::DescriptorSetVariableDescriptorCountLayoutSupport::default();
        let mut support = vk::DescriptorSetLayoutSupport::default().push_next(&mut variable);
        // SAFETY: the device is live; the caller promises a valid create-info. The chain's one structure extends
        // VkDescriptorSetLayoutSupport, and a driver that does not know it skips it.
        unsafe { query(self.device, info, &mut support) };
        let supported = support.supported != vk::FALSE;
        Some((supported, variable.max_variable_descriptor_count))
    }

    /// `vkDestroyDescriptorSetLayout`.
    ///
    /// # Safety
    /// The layout came from [`Self::create_set_layout`] and is destroyed once.
    pub(crate) unsafe fn destroy_set_layout(&self, layout: vk::DescriptorSetLayout) {
        // SAFETY: the caller promises a layout of this device that is destroyed once
        // (VUID-vkDestroyDescriptorSetLayout-descriptorSetLayout-parameter).
        unsafe { (self.functions.destroy_descriptor_set_layout)(self.device, layout, std::ptr::null()) };
    }

    /// `vkCreateDescriptorPool`.
    pub(crate) fn create_pool(&self, new: &NewDescriptorPool<'_>) -> Result<vk::DescriptorPool, DriverError> {
        let mut info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(new.max_sets)
            .pool_sizes(new.sizes)
            .flags(new.flags);
        let mut inline = vk::DescriptorPoolInlineUniformBlockCreateInfo::default()
            .max_inline_uniform_block_bindings(new.inline_uniform_bindings);
        if new.inline_uniform_bindings != 0 {
            info = info.push_next(&mut inline);
        }
        let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default()
            .mutable_descriptor_type_lists(new.mutable_types);
        if !new.mutable_types.is_empty() {
            info = info.push_next(&mut mutable);
        }
        let mut pool = vk::DescriptorPool::null();
        // SAFETY: the device is live. The callers give non-zero sets and sizes
        // (VUID-VkDescriptorPoolCreateInfo-descriptorPoolOverallocation-09227,
        // VUID-VkDescriptorPoolSize-descriptorCount-00302), and structures of extensions only if the program enabled
        // them.
        let result = unsafe {
            (self.functions.create_descriptor_pool)(self.device, &info, std::ptr::null(), &mut pool)
        };
        check("vkCreateDescriptorPool", result)?;
        Ok(pool)
    }

    /// `vkDestroyDescriptorPool`.
    ///
    /// # Safety
    /// The pool came from [`Self::create_pool`], is destroyed once, and no set of it is in use by the device
    /// (VUID-vkDestroyDescriptorPool-descriptorPool-00303).
    pub(crate) unsafe fn destroy_pool(&self, pool: vk::DescriptorPool) {
        // SAFETY: the caller promises a pool of this device that is destroyed once, and whose sets the device does not
        // use.
        unsafe { (self.functions.destroy_descriptor_pool)(self.device, pool, std::ptr::null()) };
    }

    /// `vkResetDescriptorPool`. Frees all its sets.
    ///
    /// # Safety
    /// The pool is live, nobody else uses it, and no set of it is in use by the device
    /// (VUID-vkResetDescriptorPool-descriptorPool-00313).
    pub(crate) unsafe fn reset_pool(&self, pool: vk::DescriptorPool) -> Result<(), DriverError> {
        let flags = vk::DescriptorPoolResetFlags::empty();
        // SAFETY: the caller promises a live pool that nobody else uses, and whose sets the device does not use.
        let result = unsafe { (self.functions.reset_descriptor_pool)(self.device, pool, flags) };
        check("vkResetDescriptorPool", result)
    }

    /// `vkAllocateDescriptorSets` of one set.
    ///
    /// # Safety
    /// Pool and layout are live and compatible (VUID-VkDescriptorSetAllocateInfo-pSetLayouts-03044), the layout is not
    /// for push descriptors or descriptor buffers (-00308, -08009), and nobody else uses the pool.
    #[inline]
    pub(crate) unsafe fn allocate_set(
        &self,
        pool: vk::DescriptorPool,
        layout: vk::DescriptorSetLayout,
    ) -> Result<vk::DescriptorSet, DriverError> {
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: the caller promises a live pool and a live layout that are compatible, a layout of ordinary sets, and
        // that nobody else uses the pool.
        unsafe { self.allocate_one(&info) }
    }

    /// `vkAllocateDescriptorSets` of one set for each of `layouts`; all or none. Makes no call if `layouts` is empty.
    ///
    /// # Safety
    /// Same as [`Self::allocate_set`], for all layouts.
    pub(crate) unsafe fn allocate_sets(
        &self,
        pool: vk::DescriptorPool,
        layouts: &[vk::DescriptorSetLayout],
        sets: &mut Vec<vk::DescriptorSet>,
    ) -> Result<(), DriverError> {
        sets.clear();
        if layouts.is_empty() {
            return Ok(());
        }
        sets.resize(layouts.len(), vk::DescriptorSet::null());
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(layouts);
        // SAFETY: the device is live, and there is room for a set of each layout; the caller promises a live pool that
        // nobody else uses, and live layouts that go with it (VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter,
        // -descriptorSetCount-arraylength).
        let result =
            unsafe { (self.functions.allocate_descriptor_sets)(self.device, &info, sets.as_mut_ptr()) };
        check("vkAllocateDescriptorSets", result).inspect_err(|_| sets.clear())
    }

    /// [`Self::allocate_set`] for a layout whose last binding has a variable descriptor count.
    ///
    /// # Safety
    /// Same as [`Self::allocate_set`], and `count` does not exceed the maximum of the layout
    /// (VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-pSetLayouts-03046).
    pub(crate) unsafe fn allocate_variable_set(
        &self,
        pool: vk::DescriptorPool,
        layout: vk::DescriptorSetLayout,
        count: u32,
    ) -> Result<vk::DescriptorSet, DriverError> {
        let layouts = [layout];
        let counts = [count];
        let mut variable =
            vk::DescriptorSetVariableDescriptorCountAllocateInfo::default().descriptor_counts(&counts);
        let info = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(pool)
            .set_layouts(&layouts)
            .push_next(&mut variable);
        // SAFETY: the caller promises a live pool that nobody else uses, a live layout that goes with it, and a count
        // that the layout allows; the info asks for one set.
        unsafe { self.allocate_one(&info) }
    }

    /// # Safety
    /// The info is valid and requests one set.
    #[inline]
    unsafe fn allocate_one(
        &self,
        info: &vk::DescriptorSetAllocateInfo<'_>,
    ) -> Result<vk::DescriptorSet, DriverError> {
        let mut set = vk::DescriptorSet::null();
        // SAFETY: the device is live, and there is room for the one set; the caller promises a valid info for one set
        // (VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter).
        let result = unsafe { (self.functions.allocate_descriptor_sets)(self.device, info, &mut set) };
        check("vkAllocateDescriptorSets", result)?;
        Ok(set)
    }

    /// `vkFreeDescriptorSets` of some sets of a pool.
    ///
    /// # Safety
    /// The sets came from this pool, which has VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT
    /// (VUID-vkFreeDescriptorSets-descriptorPool-00312), they are freed once, the device does not use them (-00309),
    /// and nobody else uses the pool.
    pub(crate) unsafe fn free_sets(
        &self,
        pool: vk::DescriptorPool,
        sets: &[vk::DescriptorSet],
    ) -> Result<(), DriverError> {
        let count = sublet_engines::cast::narrow(sets.len());
        // SAFETY: the caller promises sets of this pool, which may free them, that are freed once and that the device
        // does not use, and that nobody else uses the pool; `count` is the slice's length.
        let result =
            unsafe { (self.functions.free_descriptor_sets)(self.device, pool, count, sets.as_ptr()) };
        check("vkFreeDescriptorSets", result)
    }

    /// Names an object for debuggers if VK_EXT_debug_utils is enabled. Errors are ignored.
    ///
    /// # Safety
    /// The object is live, nobody else uses it, and VK_EXT_debug_utils is enabled.
    pub(crate) unsafe fn set_name<H: vk::Handle>(&self, object: H, name: &std::ffi::CStr) {
        let Some(set_name) = self.functions.set_debug_utils_object_name else { return };
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(name);
        // SAFETY: the caller promises a live object that nobody else uses, and that the extension is enabled
        // (VUID-vkSetDebugUtilsObjectNameEXT-pNameInfo-02587).
        let _ = unsafe { set_name(self.device, &info) };
    }
}
