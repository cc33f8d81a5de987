//! Descriptor heaps: bindings, mappings, and the contents of descriptors.

use ash::vk;
use ash::vk::DescriptorType as Type;

/// The fields of a sampler's create-info without its chain, as words in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SamplerState([i32; 16]);

impl SamplerState {
    pub(crate) fn new(info: &vk::SamplerCreateInfo<'_>) -> Self {
        let float = |value: f32| i32::from_ne_bytes(value.to_ne_bytes());
        let boolean = |value: vk::Bool32| i32::from(value != vk::FALSE);
        Self([
            i32::from_ne_bytes(info.flags.as_raw().to_ne_bytes()),
            info.mag_filter.as_raw(),
            info.min_filter.as_raw(),
            info.mipmap_mode.as_raw(),
            info.address_mode_u.as_raw(),
            info.address_mode_v.as_raw(),
            info.address_mode_w.as_raw(),
            float(info.mip_lod_bias),
            boolean(info.anisotropy_enable),
            float(info.max_anisotropy),
            boolean(info.compare_enable),
            info.compare_op.as_raw(),
            float(info.min_lod),
            float(info.max_lod),
            info.border_color.as_raw(),
            boolean(info.unnormalized_coordinates),
        ])
    }

    pub(crate) fn info(&self) -> vk::SamplerCreateInfo<'static> {
        let [
            flags,
            mag,
            min,
            mipmap,
            u,
            v,
            w,
            bias,
            anisotropic,
            anisotropy,
            compares,
            compare,
            from,
            to,
            border,
            plain,
        ] = self.0;
        let float = |value: i32| f32::from_ne_bytes(value.to_ne_bytes());
        vk::SamplerCreateInfo::default()
            .flags(vk::SamplerCreateFlags::from_raw(u32::from_ne_bytes(flags.to_ne_bytes())))
            .mag_filter(vk::Filter::from_raw(mag))
            .min_filter(vk::Filter::from_raw(min))
            .mipmap_mode(vk::SamplerMipmapMode::from_raw(mipmap))
            .address_mode_u(vk::SamplerAddressMode::from_raw(u))
            .address_mode_v(vk::SamplerAddressMode::from_raw(v))
            .address_mode_w(vk::SamplerAddressMode::from_raw(w))
            .mip_lod_bias(float(bias))
            .anisotropy_enable(anisotropic != 0)
            .max_anisotropy(float(anisotropy))
            .compare_enable(compares != 0)
            .compare_op(vk::CompareOp::from_raw(compare))
            .min_lod(float(from))
            .max_lod(float(to))
            .border_color(vk::BorderColor::from_raw(border))
            .unnormalized_coordinates(plain != 0)
    }

    /// Returns whether its border is a color of the program's own.
    pub(crate) fn has_custom_border(&self) -> bool {
        let custom = [vk::BorderColor::FLOAT_CUSTOM_EXT, vk::BorderColor::INT_CUSTOM_EXT];
        custom.iter().any(|border| border.as_raw() == self.0[14])
    }
}

/// The create-info of an image's view without its chain, and the layout that shaders find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeapImage {
    pub(crate) kind: Type,
    pub(crate) image: vk::Image,
    pub(crate) layout: vk::ImageLayout,
    pub(crate) view_type: vk::ImageViewType,
    pub(crate) format: vk::Format,
    pub(crate) aspects: vk::ImageAspectFlags,
    pub(crate) levels: (u32, u32),
    pub(crate) layers: (u32, u32),
}

/// A heap that is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeapBinding {
    pub(crate) sampler: bool,
    pub(crate) buffer: vk::Buffer,
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// The start and the end of the reserved range, in bytes from the start of the heap.
    pub(crate) reserved: (u64, u64),
}

impl HeapBinding {
    /// Addresses of the reserved range.
    pub(crate) fn reserved_addresses(&self) -> (u64, u64) {
        (self.address.saturating_add(self.reserved.0), self.address.saturating_add(self.reserved.1))
    }
}

/// The mapping of some bindings of a set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetMapping {
    pub(crate) set: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) mask: u32,
    pub(crate) source: MappedSource,
}

/// The source of descriptors or data. Offsets are in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MappedSource {
    Heap {
        /// Of the descriptor, or of a combined one's image.
        place: HeapAddress,
        /// Of a combined descriptor's sampler.
        sampler: HeapAddress,
        embedded: Option<SamplerState>,
        /// True if both indices are in one word.
        combined: bool,
    },
    HeapData {
        heap: u32,
        push: u32,
    },
    PushData(u32),
    PushAddress(u32),
    IndirectAddress {
        push: u32,
        address: u32,
    },
    RecordData(u32),
    RecordAddress(u32),
}

/// An offset in a heap: `offset + index * index_stride + element * array_stride`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeapAddress {
    pub(crate) offset: u32,
    pub(crate) index: Index,
    pub(crate) index_stride: u32,
    pub(crate) array_stride: u32,
}

/// The source of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Index {
    Zero,
    Push(u32),
    /// In memory, at an offset to the address in push data; with a flag for one index for each element of an array.
    Indirect {
        push: u32,
        address: u32,
        each: bool,
    },
    /// In the shader's record, which compute shaders have none of.
    Record(u32),
}

impl SetMapping {
    /// Returns whether it is for a variable of a type, at this set and binding.
    pub(crate) fn fits(&self, set: u32, binding: u32, mask: u32) -> bool {
        let bindings = self.first..self.first.saturating_add(self.count);
        self.set == set && bindings.contains(&binding) && self.mask & mask != 0
    }
}
