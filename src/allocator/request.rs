//! Requests to an allocator: a resource, and the options of a create-info. Each is validated once.

use std::panic::Location;

use ash::vk;

use crate::allocation::{ResourceKind, allocation_flags};
use crate::blocks::{VectorRequest, needs_whole_pages, tag_of, with_alignment};
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo};
use crate::device::{BufferOrImage, MemoryAllocateNext, ResourceRequirements};
use crate::error::{AllocationError, Contradiction};
use crate::memory_type;
use crate::pool::VectorFacts;
use sublet_engines::Alignment;
use sublet_engines::{Strategy, Tag};

/// The resource that memory is for.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Resource {
    pub(super) requirements: ResourceRequirements,
    /// True if the device does more with it than copy; `None` if unknown.
    pub(super) device_access: Option<bool>,
    /// True if dedicated memory needs a device address.
    pub(super) device_address: bool,
    pub(super) handle: Option<BufferOrImage>,
    /// The kind and the usage.
    pub(super) tag: Tag,
}

impl Resource {
    /// A resource with known requirements only.
    pub fn unknown(requirements: ResourceRequirements) -> Self {
        Self::of_kind(requirements, ResourceKind::Unknown)
    }

    /// A resource with known requirements and kind.
    pub(crate) fn of_kind(requirements: ResourceRequirements, kind: ResourceKind) -> Self {
        Self {
            requirements,
            device_access: None,
            device_address: true,
            handle: None,
            tag: tag_of(kind.number(), 0),
        }
    }

    /// A resource from a recording.
    #[cfg(feature = "trace")]
    pub(crate) fn recorded(
        requirements: ResourceRequirements,
        kind: ResourceKind,
        usage: u32,
        device_access: Option<bool>,
        device_address: bool,
    ) -> Self {
        Self { requirements, device_access, device_address, handle: None, tag: tag_of(kind.number(), usage) }
    }

    pub(super) fn kind(&self) -> ResourceKind {
        ResourceKind::of(self.tag)
    }

    pub(crate) fn requirements(&self) -> ResourceRequirements {
        self.requirements
    }

    /// A buffer, null if it does not exist yet. `usage` is `None` if unknown.
    #[inline(always)]
    pub(crate) fn buffer(
        requirements: ResourceRequirements,
        buffer: vk::Buffer,
        usage: Option<vk::BufferUsageFlags2KHR>,
    ) -> Self {
        let address = vk::BufferUsageFlags2KHR::SHADER_DEVICE_ADDRESS;
        // The tag has no bits for usages above bit 25; they are only informative.
        let shown = usage.map_or(0, |usage| usage.as_raw() & u64::from(u32::MAX));
        Self {
            requirements,
            device_access: usage.and_then(|usage| memory_type::device_access(usage.as_raw())),
            device_address: usage.is_none_or(|usage| usage.contains(address)),
            handle: Some(BufferOrImage::Buffer(buffer)),
            tag: tag_of(ResourceKind::Buffer.number(), u32::try_from(shown).unwrap_or(0)),
        }
    }

    /// An image, null if it does not exist yet. Usage and tiling are `None` if unknown.
    #[inline(always)]
    pub(crate) fn image(
        requirements: ResourceRequirements,
        image: vk::Image,
        tiled: Option<(vk::ImageUsageFlags, vk::ImageTiling)>,
    ) -> Self {
        let kind = match tiled {
            Some((_, vk::ImageTiling::OPTIMAL)) => ResourceKind::ImageOptimal,
            Some((_, vk::ImageTiling::LINEAR)) => ResourceKind::ImageLinear,
            // An image with a DRM modifier may be linear or not, depending on the modifier. The driver may have chosen
            // it.
            _ => ResourceKind::ImageUnknown,
        };
        let usage = tiled.map(|(usage, _)| usage);
        Self {
            requirements,
            device_access: usage.and_then(|usage| memory_type::device_access(u64::from(usage.as_raw()))),
            device_address: false,
            handle: Some(BufferOrImage::Image(image)),
            tag: tag_of(kind.number(), usage.map_or(0, vk::ImageUsageFlags::as_raw)),
        }
    }
}

/// Returns true if host access needs a host-access flag: with the `Auto` usages. In a pool the program chose the memory
/// type, so the usage does not count.
#[inline]
pub(super) fn needs_host_access_flag(info: &AllocationCreateInfo<'_>) -> bool {
    info.usage.is_auto() && info.pool.is_none()
}

/// Rejects flags that exclude each other.
#[inline]
pub(super) fn check_flags(info: &AllocationCreateInfo<'_>) -> Result<(), Contradiction> {
    let flags = info.flags;
    let strategies = flags.intersection(Flags::STRATEGY_MASK).bits();
    if strategies & strategies.wrapping_sub(1) != 0 {
        return Err(Contradiction::SeveralStrategies);
    }
    let host_access = flags.intersection(Flags::HOST_ACCESS_MASK);
    if host_access == Flags::HOST_ACCESS_MASK {
        return Err(Contradiction::TwoHostAccesses);
    }
    if host_access.is_empty() {
        if flags.contains(Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD) {
            return Err(Contradiction::TransferInsteadOfNothing);
        }
        if flags.contains(Flags::MAPPED) && needs_host_access_flag(info) {
            return Err(Contradiction::MappedWithoutHostAccess);
        }
    }
    if flags.contains(Flags::DEDICATED_MEMORY) {
        if flags.contains(Flags::NEVER_ALLOCATE) {
            return Err(Contradiction::DedicatedNeverAllocate);
        }
        if flags.contains(Flags::UPPER_ADDRESS) {
            return Err(Contradiction::DedicatedUpperAddress);
        }
    }
    Ok(())
}

/// The flags that the fast path accepts.
pub(super) const ORDINARY: Flags = Flags::MAPPED
    .union(Flags::HOST_ACCESS_MASK)
    .union(Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD)
    .union(Flags::CAN_ALIAS)
    .union(Flags::NEVER_ALLOCATE)
    .union(Flags::WITHIN_BUDGET)
    .union(FOUND_SLOWLY);

/// The flags among them that need a slower search for a place.
pub(super) const FOUND_SLOWLY: Flags = Flags::STRATEGY_MASK.union(Flags::UPPER_ADDRESS);

/// The distance between the bits of `Flags::MAPPED` and `allocation_flags::HOST_VISIBLE`.
const MAPPED_TO_HOST_VISIBLE: u32 = 1;
const _: () =
    assert!(Flags::MAPPED.bits() == 4 && allocation_flags::HOST_VISIBLE == 4 << MAPPED_TO_HOST_VISIBLE);

/// The flags of an allocation that shares a block.
#[inline(always)]
pub(super) fn flags_of(info: &AllocationCreateInfo<'_>, facts: &VectorFacts, mapped: bool) -> u8 {
    let mut flags = facts.host;
    flags |= u8::from(mapped) * allocation_flags::MAPPED;
    if !needs_host_access_flag(info) || info.flags.intersects(Flags::HOST_ACCESS_MASK) {
        flags |= allocation_flags::HOST_ACCESS;
    }
    flags
}

/// A request: a resource and options.
pub(super) struct AllocationRequest<'a> {
    pub(super) resource: &'a Resource,
    pub(super) info: &'a AllocationCreateInfo<'a>,
    pub(super) alignment: Alignment,
    /// The calling code location, if it may be kept.
    pub(super) caller: Option<&'static Location<'static>>,
    /// A chain for dedicated memory, if the caller has one.
    pub(super) next: MemoryAllocateNext,
    /// The vector that already failed to allocate from its existing blocks.
    pub(super) tried: Option<u32>,
}

impl<'a> AllocationRequest<'a> {
    /// Builds a request that was validated before.
    ///
    /// # Panics
    /// Panics if an alignment is not a power of two. The compiler removes this check if the validation is inlined too.
    #[inline(always)]
    pub(super) fn new(resource: &'a Resource, info: &'a AllocationCreateInfo<'a>) -> Self {
        let alignment = Alignment::of_both(resource.requirements.alignment, info.min_alignment)
            .expect("P4: the alignments of a checked request are powers of two");
        Self { resource, info, alignment, caller: None, next: MemoryAllocateNext::NONE, tried: None }
    }

    /// Validates the request, independently of available memory.
    pub(super) fn checked(
        resource: &'a Resource,
        info: &'a AllocationCreateInfo<'a>,
    ) -> Result<Self, AllocationError> {
        if resource.requirements.size == 0 {
            return Err(AllocationError::ZeroSize);
        }
        // Zero means one.
        for alignment in [resource.requirements.alignment, info.min_alignment] {
            if Alignment::of_both(alignment, 0).is_none() {
                return Err(AllocationError::Alignment { alignment });
            }
        }
        if !(0.0..=1.0).contains(&info.priority) {
            return Err(AllocationError::Priority { priority: info.priority });
        }
        check_flags(info)?;
        if info.pool.is_some() && info.scope.is_some() {
            return Err(Contradiction::PoolAndScope.into());
        }
        Ok(Self::new(resource, info))
    }

    /// The request to a vector.
    #[inline(always)]
    pub(super) fn of_vector(&self, facts: &VectorFacts) -> VectorRequest {
        let Self { resource, info, alignment, .. } = *self;
        // Combines both flags at once: their bits are adjacent.
        let mapped = u32::from(facts.host & allocation_flags::HOST_VISIBLE)
            & info.flags.bits() << MAPPED_TO_HOST_VISIBLE;
        VectorRequest {
            size: resource.requirements.size,
            alignment,
            tag: with_alignment(resource.tag, alignment),
            whole_pages: needs_whole_pages(resource.tag),
            mapped: mapped != 0,
            strategy: match info.flags.intersection(Flags::STRATEGY_MASK) {
                Flags::STRATEGY_MIN_MEMORY => Strategy::MinMemory,
                Flags::STRATEGY_MIN_TIME => Strategy::MinTime,
                Flags::STRATEGY_MIN_OFFSET => Strategy::MinOffset,
                _ => Strategy::Balanced,
            },
            upper: info.flags.contains(Flags::UPPER_ADDRESS),
            never_allocate: info.flags.contains(Flags::NEVER_ALLOCATE),
            within_budget: info.flags.contains(Flags::WITHIN_BUDGET),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Images with a DRM modifier must not share a granularity page unless the modifier is linear.
    #[test]
    fn an_image_with_a_drm_modifier_may_be_tiled() {
        for (tiling, kind, whole_pages) in [
            (vk::ImageTiling::DRM_FORMAT_MODIFIER_EXT, ResourceKind::ImageUnknown, true),
            (vk::ImageTiling::OPTIMAL, ResourceKind::ImageOptimal, true),
            (vk::ImageTiling::LINEAR, ResourceKind::ImageLinear, false),
        ] {
            let tiled = Some((vk::ImageUsageFlags::SAMPLED, tiling));
            let resource = Resource::image(ResourceRequirements::default(), vk::Image::null(), tiled);
            assert_eq!((resource.kind(), needs_whole_pages(resource.tag)), (kind, whole_pages));
        }
    }
}
