//! One descriptor: written into a set, or as bytes into a descriptor buffer.

use std::ptr;

use ash::vk::{self, Handle};

use super::counts::DescriptorKind;

/// A range of a buffer that shaders read or write.
///
/// Sets need the buffer, descriptor buffers its address. Code that provides both works with either.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::BufferDescriptor;
/// # let buffer = vk::Buffer::null();
/// let range = BufferDescriptor::new(buffer, 256, 64).with_buffer_address(0x1_0000);
/// assert_eq!(range.address, Some(0x1_0100));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BufferDescriptor {
    /// The buffer. Sets need it; descriptor buffers ignore it.
    pub buffer: vk::Buffer,
    /// The start of the range in the buffer, in bytes.
    pub offset: vk::DeviceSize,
    /// The size of the range in bytes. `VK_WHOLE_SIZE` means the rest of the buffer, in sets only.
    pub range: vk::DeviceSize,
    /// The device address of the range's first byte: that of the buffer plus `offset`. Descriptor buffers need it.
    pub address: Option<vk::DeviceAddress>,
}

impl BufferDescriptor {
    /// Creates a range without an address, for sets.
    #[must_use]
    pub const fn new(buffer: vk::Buffer, offset: vk::DeviceSize, range: vk::DeviceSize) -> Self {
        Self { buffer, offset, range, address: None }
    }

    /// Adds the address of the range, given the address of the buffer's first byte (`vkGetBufferDeviceAddress`). Sets
    /// no address if the sum overflows.
    #[must_use]
    pub const fn with_buffer_address(mut self, buffer: vk::DeviceAddress) -> Self {
        self.address = buffer.checked_add(self.offset);
        self
    }

    /// Returns the null descriptor, from which reads return zeros. Requires `nullDescriptor`.
    #[must_use]
    pub const fn null() -> Self {
        Self::new(vk::Buffer::null(), 0, vk::WHOLE_SIZE)
    }
}

/// A texel buffer. Sets need the view, descriptor buffers the other fields.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::TexelBufferDescriptor;
/// # let view = vk::BufferView::null();
/// let texels = TexelBufferDescriptor::new(view).with_range(0x1_0000, 4_096, vk::Format::R32_UINT);
/// assert_eq!(texels.range, 4_096);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TexelBufferDescriptor {
    /// The view. Descriptor buffers ignore it.
    pub view: vk::BufferView,
    /// The device address of the first byte.
    pub address: Option<vk::DeviceAddress>,
    /// The size in bytes, not `VK_WHOLE_SIZE`. Sets ignore it.
    pub range: vk::DeviceSize,
    /// The texel format. Sets ignore it.
    pub format: vk::Format,
}

impl TexelBufferDescriptor {
    /// Creates a texel buffer without an address, for sets.
    #[must_use]
    pub const fn new(view: vk::BufferView) -> Self {
        Self { view, address: None, range: 0, format: vk::Format::UNDEFINED }
    }

    /// Adds the data for descriptor buffers.
    #[must_use]
    pub const fn with_range(
        mut self,
        address: vk::DeviceAddress,
        range: vk::DeviceSize,
        format: vk::Format,
    ) -> Self {
        self.address = Some(address);
        self.range = range;
        self.format = format;
        self
    }
}

/// A view of an image, with the image layout at the time of access.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::ImageDescriptor;
/// # let view = vk::ImageView::null();
/// let image = ImageDescriptor::new(view, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
/// assert_eq!(image.layout, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageDescriptor {
    /// The view.
    pub view: vk::ImageView,
    /// The layout of the image when shaders access it.
    pub layout: vk::ImageLayout,
}

impl ImageDescriptor {
    /// Creates a descriptor from a view and a layout.
    #[must_use]
    pub const fn new(view: vk::ImageView, layout: vk::ImageLayout) -> Self {
        Self { view, layout }
    }

    fn with_sampler(self, sampler: vk::Sampler) -> vk::DescriptorImageInfo {
        vk::DescriptorImageInfo { sampler, image_view: self.view, image_layout: self.layout }
    }
}

/// An acceleration structure. Sets need the handle, descriptor buffers the address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AccelerationStructureDescriptor {
    /// The handle. Descriptor buffers ignore it.
    pub handle: vk::AccelerationStructureKHR,
    /// The result of `vkGetAccelerationStructureDeviceAddressKHR`.
    pub address: Option<vk::DeviceAddress>,
}

/// One descriptor: its type and its data.
///
/// It keeps no object alive. A null handle is the null descriptor, which requires `nullDescriptor`.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::{BufferDescriptor, Descriptor, DescriptorKind};
/// # let buffer = vk::Buffer::null();
/// let lights = Descriptor::StorageBuffer(BufferDescriptor::new(buffer, 0, 1_024));
/// assert_eq!(lights.kind(), DescriptorKind::StorageBuffer);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Descriptor {
    /// A sampler.
    Sampler(vk::Sampler),
    /// An image and the sampler for it.
    CombinedImageSampler {
        /// The sampler; ignored if the layout has immutable samplers.
        sampler: vk::Sampler,
        /// The image.
        image: ImageDescriptor,
    },
    /// A sampled image.
    SampledImage(ImageDescriptor),
    /// A storage image.
    StorageImage(ImageDescriptor),
    /// A read-only texel buffer.
    UniformTexelBuffer(TexelBufferDescriptor),
    /// A storage texel buffer.
    StorageTexelBuffer(TexelBufferDescriptor),
    /// A uniform buffer.
    UniformBuffer(BufferDescriptor),
    /// A storage buffer.
    StorageBuffer(BufferDescriptor),
    /// A uniform buffer with an offset that is given when the set is bound. In sets only.
    UniformBufferDynamic(BufferDescriptor),
    /// A storage buffer with an offset that is given when the set is bound. In sets only.
    StorageBufferDynamic(BufferDescriptor),
    /// An attachment that is read at the fragment's position.
    InputAttachment(ImageDescriptor),
    /// An acceleration structure.
    AccelerationStructure(AccelerationStructureDescriptor),
}

/// The data of a write into a set, by value. One of the pointers of `VkWriteDescriptorSet` refers to it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DescriptorWrite {
    Image(vk::DescriptorImageInfo),
    Buffer(vk::DescriptorBufferInfo),
    Texels(vk::BufferView),
    AccelerationStructure(vk::AccelerationStructureKHR),
}

impl Descriptor {
    /// Returns the type.
    #[must_use]
    pub const fn kind(&self) -> DescriptorKind {
        match self {
            Self::Sampler(_) => DescriptorKind::Sampler,
            Self::CombinedImageSampler { .. } => DescriptorKind::CombinedImageSampler,
            Self::SampledImage(_) => DescriptorKind::SampledImage,
            Self::StorageImage(_) => DescriptorKind::StorageImage,
            Self::UniformTexelBuffer(_) => DescriptorKind::UniformTexelBuffer,
            Self::StorageTexelBuffer(_) => DescriptorKind::StorageTexelBuffer,
            Self::UniformBuffer(_) => DescriptorKind::UniformBuffer,
            Self::StorageBuffer(_) => DescriptorKind::StorageBuffer,
            Self::UniformBufferDynamic(_) => DescriptorKind::UniformBufferDynamic,
            Self::StorageBufferDynamic(_) => DescriptorKind::StorageBufferDynamic,
            Self::InputAttachment(_) => DescriptorKind::InputAttachment,
            Self::AccelerationStructure(_) => DescriptorKind::AccelerationStructure,
        }
    }

    /// Returns the data of a write into a set.
    #[inline]
    pub(crate) fn write_data(&self) -> DescriptorWrite {
        match *self {
            Self::Sampler(sampler) => {
                let none = ImageDescriptor::new(vk::ImageView::null(), vk::ImageLayout::UNDEFINED);
                DescriptorWrite::Image(none.with_sampler(sampler))
            }
            Self::CombinedImageSampler { sampler, image } => {
                DescriptorWrite::Image(image.with_sampler(sampler))
            }
            Self::SampledImage(image) | Self::StorageImage(image) | Self::InputAttachment(image) => {
                DescriptorWrite::Image(image.with_sampler(vk::Sampler::null()))
            }
            Self::UniformTexelBuffer(texels) | Self::StorageTexelBuffer(texels) => {
                DescriptorWrite::Texels(texels.view)
            }
            Self::UniformBuffer(buffer)
            | Self::StorageBuffer(buffer)
            | Self::UniformBufferDynamic(buffer)
            | Self::StorageBufferDynamic(buffer) => DescriptorWrite::Buffer(vk::DescriptorBufferInfo {
                buffer: buffer.buffer,
                offset: buffer.offset,
                range: buffer.range,
            }),
            Self::AccelerationStructure(structure) => {
                DescriptorWrite::AccelerationStructure(structure.handle)
            }
        }
    }

    /// Calls `then` with the `VkWriteDescriptorSet` that writes this descriptor.
    #[inline]
    pub(crate) fn with_write<R>(
        &self,
        set: vk::DescriptorSet,
        binding: u32,
        element: u32,
        then: impl FnOnce(&vk::WriteDescriptorSet<'_>) -> R,
    ) -> R {
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set)
            .dst_binding(binding)
            .dst_array_element(element)
            .descriptor_type(self.kind().to_vk());
        match self.write_data() {
            DescriptorWrite::Image(image) => then(&write.image_info(&[image])),
            DescriptorWrite::Buffer(buffer) => then(&write.buffer_info(&[buffer])),
            DescriptorWrite::Texels(view) => then(&write.texel_buffer_view(&[view])),
            DescriptorWrite::AccelerationStructure(handle) => {
                let handles = [handle];
                let mut structures = vk::WriteDescriptorSetAccelerationStructureKHR::default()
                    .acceleration_structures(&handles);
                then(&write.descriptor_count(1).push_next(&mut structures))
            }
        }
    }

    /// Returns the address data of a buffer, a texel buffer or an acceleration structure. An address of 0 means the
    /// null descriptor. Only texel buffers have a format.
    ///
    /// # Errors
    /// [`DescriptorDataError`] if the required data is missing, or for other types.
    pub(crate) fn address(&self) -> Result<vk::DescriptorAddressInfoEXT<'static>, DescriptorDataError> {
        let kind = self.kind();
        match *self {
            Self::UniformTexelBuffer(texels) | Self::StorageTexelBuffer(texels) => {
                texel_address(&texels, kind)
            }
            Self::UniformBuffer(buffer) | Self::StorageBuffer(buffer) => buffer_address(&buffer, kind),
            Self::AccelerationStructure(AccelerationStructureDescriptor { handle, address }) => {
                let null = handle.is_null().then_some(0);
                let address = address.or(null).ok_or(DescriptorDataError::NoAddress { kind })?;
                Ok(vk::DescriptorAddressInfoEXT::default().address(address))
            }
            Self::UniformBufferDynamic(_) | Self::StorageBufferDynamic(_) => {
                Err(DescriptorDataError::Dynamic { kind })
            }
            _ => Err(DescriptorDataError::NoAddress { kind }),
        }
    }

    /// Calls `then` with the `VkDescriptorGetInfoEXT` that returns the bytes of this descriptor.
    ///
    /// # Errors
    /// [`DescriptorDataError`] if data for descriptor buffers is missing.
    #[inline]
    pub(crate) fn with_get_info<R>(
        &self,
        then: impl FnOnce(&vk::DescriptorGetInfoEXT<'_>) -> R,
    ) -> Result<R, DescriptorDataError> {
        let kind = self.kind();
        // Each pointer refers to a value that lives until `then` has returned.
        let (sampler, image, address);
        let data = match *self {
            Self::Sampler(handle) => {
                sampler = handle;
                vk::DescriptorDataEXT { p_sampler: &sampler }
            }
            Self::CombinedImageSampler { sampler, image: combined } => {
                image = combined.with_sampler(sampler);
                vk::DescriptorDataEXT { p_combined_image_sampler: &image }
            }
            Self::SampledImage(sampled) => {
                image = sampled.with_sampler(vk::Sampler::null());
                vk::DescriptorDataEXT { p_sampled_image: pointer(&image, sampled.view.is_null()) }
            }
            Self::StorageImage(storage) => {
                image = storage.with_sampler(vk::Sampler::null());
                vk::DescriptorDataEXT { p_storage_image: pointer(&image, storage.view.is_null()) }
            }
            Self::InputAttachment(attachment) => {
                image = attachment.with_sampler(vk::Sampler::null());
                vk::DescriptorDataEXT { p_input_attachment_image: &image }
            }
            Self::UniformTexelBuffer(_) => {
                address = self.address()?;
                vk::DescriptorDataEXT { p_uniform_texel_buffer: pointer(&address, address.address == 0) }
            }
            Self::StorageTexelBuffer(_) => {
                address = self.address()?;
                vk::DescriptorDataEXT { p_storage_texel_buffer: pointer(&address, address.address == 0) }
            }
            Self::UniformBuffer(_) => {
                address = self.address()?;
                vk::DescriptorDataEXT { p_uniform_buffer: pointer(&address, address.address == 0) }
            }
            Self::StorageBuffer(_) => {
                address = self.address()?;
                vk::DescriptorDataEXT { p_storage_buffer: pointer(&address, address.address == 0) }
            }
            Self::UniformBufferDynamic(_) | Self::StorageBufferDynamic(_) => {
                return Err(DescriptorDataError::Dynamic { kind });
            }
            Self::AccelerationStructure(_) => {
                vk::DescriptorDataEXT { acceleration_structure: self.address()?.address }
            }
        };
        let info = vk::DescriptorGetInfoEXT::default().ty(kind.to_vk()).data(data);
        Ok(then(&info))
    }
}

/// Returns a pointer to the value, or null for the null descriptor.
fn pointer<T>(value: &T, is_null: bool) -> *const T {
    if is_null { ptr::null() } else { value }
}

fn buffer_address(
    buffer: &BufferDescriptor,
    kind: DescriptorKind,
) -> Result<vk::DescriptorAddressInfoEXT<'static>, DescriptorDataError> {
    address_info(buffer.address, buffer.range, vk::Format::UNDEFINED, buffer.buffer.is_null(), kind)
}

fn texel_address(
    texels: &TexelBufferDescriptor,
    kind: DescriptorKind,
) -> Result<vk::DescriptorAddressInfoEXT<'static>, DescriptorDataError> {
    address_info(texels.address, texels.range, texels.format, texels.view.is_null(), kind)
}

fn address_info(
    address: Option<vk::DeviceAddress>,
    range: vk::DeviceSize,
    format: vk::Format,
    is_null: bool,
    kind: DescriptorKind,
) -> Result<vk::DescriptorAddressInfoEXT<'static>, DescriptorDataError> {
    match address {
        Some(address) if address != 0 => {
            if range == vk::WHOLE_SIZE || range == 0 {
                return Err(DescriptorDataError::Range { kind, range });
            }
            Ok(vk::DescriptorAddressInfoEXT::default().address(address).range(range).format(format))
        }
        _ if is_null => Ok(vk::DescriptorAddressInfoEXT::default()),
        _ => Err(DescriptorDataError::NoAddress { kind }),
    }
}

/// The descriptor lacks data for descriptor buffers. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DescriptorDataError {
    /// Descriptor buffers need device addresses: create the buffer with `VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT`,
    /// and provide its address.
    NoAddress {
        /// The type of the descriptor.
        kind: DescriptorKind,
    },
    /// Descriptor buffers need the range in bytes, which is neither 0 nor `VK_WHOLE_SIZE`.
    Range {
        /// The type of the descriptor.
        kind: DescriptorKind,
        /// The given range.
        range: vk::DeviceSize,
    },
    /// Heaps of `VK_EXT_descriptor_heap` need the create-info of the view or the sampler: write it with
    /// [`DescriptorHeap::write_source`](super::DescriptorHeap::write_source).
    NoCreateInfo {
        /// The type of the descriptor.
        kind: DescriptorKind,
    },
    /// Descriptor buffers have no dynamic offsets: pass the offset to the shader in push constants.
    Dynamic {
        /// The type of the descriptor.
        kind: DescriptorKind,
    },
}

sublet_engines::errors! { DescriptorDataError:
    NoAddress { kind } => "a {kind:?} for a descriptor buffer needs its device address";
    Range { kind, range } => "a {kind:?} for a descriptor buffer needs its size in bytes, which is not {range}";
    NoCreateInfo { kind } => "a {kind:?} for a heap of VK_EXT_descriptor_heap needs what it was created from";
    Dynamic { kind } => "there is no {kind:?} in descriptor buffers";
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    const IMAGE: ImageDescriptor = ImageDescriptor::new(vk::ImageView::null(), vk::ImageLayout::GENERAL);

    fn buffer() -> BufferDescriptor {
        BufferDescriptor::new(vk::Buffer::from_raw(5), 16, 64)
    }

    fn all() -> [Descriptor; 12] {
        let texels = TexelBufferDescriptor::new(vk::BufferView::from_raw(6));
        let handle = vk::AccelerationStructureKHR::from_raw(7);
        [
            Descriptor::Sampler(vk::Sampler::from_raw(8)),
            Descriptor::CombinedImageSampler { sampler: vk::Sampler::from_raw(8), image: IMAGE },
            Descriptor::SampledImage(IMAGE),
            Descriptor::StorageImage(IMAGE),
            Descriptor::UniformTexelBuffer(texels),
            Descriptor::StorageTexelBuffer(texels),
            Descriptor::UniformBuffer(buffer()),
            Descriptor::StorageBuffer(buffer()),
            Descriptor::UniformBufferDynamic(buffer()),
            Descriptor::StorageBufferDynamic(buffer()),
            Descriptor::InputAttachment(IMAGE),
            Descriptor::AccelerationStructure(AccelerationStructureDescriptor { handle, address: None }),
        ]
    }

    #[test]
    fn a_write_is_of_one_descriptor_of_its_type_in_its_place() {
        for descriptor in all() {
            descriptor.with_write(vk::DescriptorSet::from_raw(1), 2, 3, |write| {
                assert_eq!(write.descriptor_type, descriptor.kind().to_vk());
                assert_eq!((write.dst_set.as_raw(), write.dst_binding, write.dst_array_element), (1, 2, 3));
                assert_eq!(write.descriptor_count, 1);
                let is_structure = descriptor.kind() == DescriptorKind::AccelerationStructure;
                let given = [
                    !write.p_image_info.is_null(),
                    !write.p_buffer_info.is_null(),
                    !write.p_texel_buffer_view.is_null(),
                    !write.p_next.is_null(),
                ];
                assert_eq!(given.iter().filter(|&&given| given).count(), 1, "{descriptor:?}");
                assert_eq!(given[3], is_structure);
            });
        }
    }

    #[test]
    fn what_has_no_address_has_no_bytes() {
        for descriptor in all() {
            let kind = descriptor.kind();
            let result = descriptor.with_get_info(|info| assert_eq!(info.ty, kind.to_vk()));
            let expected = match kind {
                DescriptorKind::UniformBufferDynamic | DescriptorKind::StorageBufferDynamic => {
                    Err(DescriptorDataError::Dynamic { kind })
                }
                DescriptorKind::UniformTexelBuffer
                | DescriptorKind::StorageTexelBuffer
                | DescriptorKind::UniformBuffer
                | DescriptorKind::StorageBuffer
                | DescriptorKind::AccelerationStructure => Err(DescriptorDataError::NoAddress { kind }),
                _ => Ok(()),
            };
            assert_eq!(result, expected);
        }
    }

    #[test]
    fn null_is_a_descriptor_and_a_whole_buffer_is_not() {
        let null = Descriptor::StorageBuffer(BufferDescriptor::null());
        assert_eq!(null.with_get_info(|_| ()), Ok(()));
        for range in [vk::WHOLE_SIZE, 0] {
            let rest = BufferDescriptor::new(vk::Buffer::from_raw(5), 16, range).with_buffer_address(256);
            assert_eq!(
                Descriptor::UniformBuffer(rest).with_get_info(|_| ()),
                Err(DescriptorDataError::Range { kind: DescriptorKind::UniformBuffer, range })
            );
        }
        let some = Descriptor::UniformBuffer(buffer().with_buffer_address(256));
        assert_eq!(some.with_get_info(|_| ()), Ok(()));
        assert_eq!(buffer().with_buffer_address(u64::MAX).address, None);
    }
}
