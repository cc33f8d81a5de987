//! Texel buffers.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ops::Range;

use ash::vk;
use sublet_descriptors::{BindPoint, Descriptor, DescriptorKind, TexelBufferDescriptor};

use super::bind::storage;
use super::bound::BindingTarget;
use super::error::{check_multiple, check_range};
use super::{CommandList, ListError, StorageAccess, buffers};
use crate::device::binds_buffers;
use crate::resource::{Buffer, format_layout};
use crate::track::Use;

impl CommandList {
    /// Binds bytes of a buffer as a uniform or storage texel buffer, depending on the binding. The view of each format
    /// and range is created once and destroyed with the buffer. With descriptor buffers, the buffer needs the usage
    /// `SHADER_DEVICE_ADDRESS`.
    ///
    /// ```no_run
    /// use ash::vk;
    /// use sublet_descriptors::BindPoint;
    /// use sublet_frame::{Buffer, CommandList, ListError, StorageAccess};
    ///
    /// fn bind(list: &mut CommandList, table: &Buffer) -> Result<(), ListError> {
    ///     let (format, access) = (vk::Format::R32_SFLOAT, StorageAccess::Read);
    ///     list.bind_texel_buffer(BindPoint::Compute, (0, 1, 0), table, format, 0..4096, access)
    /// }
    /// ```
    ///
    /// # Errors
    /// See [`ListError`]; nothing was changed. [`ListError::FormatFeatures`] if the device does not support such texel
    /// buffers.
    #[doc(alias = "vkCreateBufferView")]
    pub fn bind_texel_buffer(
        &mut self,
        point: BindPoint,
        (set, binding, element): (u32, u32, u32),
        buffer: &Buffer,
        format: vk::Format,
        range: Range<u64>,
        access: StorageAccess,
    ) -> Result<(), ListError> {
        let (kind, stages) = self.binding(point, set, binding)?;
        // For bindings of other kinds, the binder returns an error.
        let stored = kind == DescriptorKind::StorageTexelBuffer;
        let (usage, needs) = if stored {
            (vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER, vk::FormatFeatureFlags::STORAGE_TEXEL_BUFFER)
        } else {
            (vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER, vk::FormatFeatureFlags::UNIFORM_TEXEL_BUFFER)
        };
        let end = range.end.min(buffer.size());
        check_range("bytes", range.start, end, buffer.size())?;
        let (size, limits) = (end - range.start, &self.core.allocator.physical_device_properties().limits);
        let aspect = vk::ImageAspectFlags::COLOR;
        let texel = format_layout(format, aspect).filter(|texel| texel.block_width == 1);
        let texel = texel.ok_or(ListError::Format { format, aspect })?;
        check_multiple("the offset", range.start, limits.min_texel_buffer_offset_alignment.max(1))?;
        check_multiple("the number of bytes", size, texel.block_bytes)?;
        check_range("texels", 0, size / texel.block_bytes, limits.max_texel_buffer_elements.into())?;
        // SAFETY: the physical device belongs to the instance, and both outlive the core.
        let properties = unsafe {
            self.core.instance.get_physical_device_format_properties(self.core.physical_device, format)
        };
        let has = properties.buffer_features;
        if !has.contains(needs) {
            return Err(ListError::FormatFeatures { format, needs, has });
        }
        let by_address = binds_buffers(self.core.info.descriptors.as_ref());
        let addressed = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        buffers::needs(buffer, if by_address { usage | addressed } else { usage })?;
        self.keep_buffer(buffer)?;
        // SAFETY: usage, format and range were checked, and the buffer is bound: it is not sparse.
        let view = unsafe { buffer.texel_view(format, range.start..end) }.map_err(ListError::View)?;
        let mut described = TexelBufferDescriptor::new(view);
        if by_address {
            // SAFETY: the list keeps the buffer, which has the address usage and is bound.
            let address = unsafe { self.core.allocator.buffer_address(buffer.handle()) };
            described = address
                .map_or(described, |address| described.with_range(address + range.start, size, format));
        }
        let (descriptor, usage) = if stored {
            (Descriptor::StorageTexelBuffer(described), storage(stages, access))
        } else {
            let layout = vk::ImageLayout::UNDEFINED;
            (Descriptor::UniformTexelBuffer(described), Use { layout, ..Use::sampled(stages) })
        };
        let target = BindingTarget::Buffer(buffer.id(), range.start..end);
        self.stage(point, (set, binding, element), descriptor, Some((target, usage)))
    }
}
