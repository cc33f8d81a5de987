//! The `pNext` chain of a `VkMemoryAllocateInfo`: the program's own structures, and those that the allocator adds.
//!
//! A structure that the program gave is not added again (VUID-VkMemoryAllocateInfo-sType-unique), and none is added that
//! the specification forbids beside what the program gave.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use ash::vk::{self, Handle as _};

/// The first structure of type `T` in a chain.
///
/// # Safety
/// 1. The chain is valid, or null: each link begins with its type and a pointer to the next one.
/// 2. A structure with the type tag of `T` is a `T`.
/// 3. The chain lives as long as the result is used, and nobody writes to it.
pub(crate) unsafe fn find<'a, T: vk::TaggedStructure>(next: *const c_void) -> Option<&'a T> {
    let mut next = next.cast::<vk::BaseInStructure<'a>>();
    while !next.is_null() {
        // SAFETY: 1 and 3 of `find`.
        let link = unsafe { &*next };
        if link.s_type == T::STRUCTURE_TYPE {
            // SAFETY: 2 and 3 of `find`.
            return Some(unsafe { &*next.cast::<T>() });
        }
        next = link.p_next.cast();
    }
    None
}

/// What the program's own chain says. Field by field, an absent structure is as one that says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnChain {
    next: Option<*const c_void>,
    /// `VkMemoryAllocateFlagsInfo`: its flags and its device mask.
    flags: Option<(vk::MemoryAllocateFlags, u32)>,
    /// It names an address to replay.
    replays_address: bool,
    /// The memory comes from somewhere else.
    imports: bool,
    imports_host_pointer: bool,
    /// The handle types of its `VkExportMemoryAllocateInfo`, or none where an older structure says what is exported.
    exports: Option<vk::ExternalMemoryHandleTypeFlags>,
    /// The image that it dedicates the memory to, null if that is a buffer, or nothing.
    dedicates: Option<vk::Image>,
    prioritises: bool,
}

impl OwnChain {
    /// Reads a chain.
    ///
    /// # Safety
    /// As for [`find`], of all structures that Vulkan allows in this chain; the chain lives as long as the result.
    pub(super) unsafe fn read(next: *const c_void) -> Self {
        if next.is_null() {
            return Self::default();
        }
        macro_rules! found {
            ($structure:ident) => {
                // SAFETY: the promise of `read`.
                unsafe { find::<vk::$structure<'_>>(next) }
            };
        }
        // A handle type of zero is no import: the structure is ignored.
        let host_pointer =
            found!(ImportMemoryHostPointerInfoEXT).is_some_and(|it| !it.handle_type.is_empty());
        let imports = host_pointer
            || found!(ImportMemoryFdInfoKHR).is_some_and(|it| !it.handle_type.is_empty())
            || found!(ImportMemoryWin32HandleInfoKHR).is_some_and(|it| !it.handle_type.is_empty())
            || found!(ImportMemoryWin32HandleInfoNV).is_some_and(|it| !it.handle_type.is_empty())
            || found!(ImportMemoryZirconHandleInfoFUCHSIA).is_some_and(|it| !it.handle_type.is_empty())
            || found!(ImportAndroidHardwareBufferInfoANDROID).is_some_and(|it| !it.buffer.is_null())
            || found!(ImportScreenBufferInfoQNX).is_some_and(|it| !it.buffer.is_null())
            || found!(ImportMemoryBufferCollectionFUCHSIA).is_some()
            || found!(ImportMetalBufferInfoEXT).is_some();
        let exports_as_nv =
            found!(ExportMemoryAllocateInfoNV).is_some() || found!(ExportMemoryWin32HandleInfoNV).is_some();
        let nothing = || exports_as_nv.then(vk::ExternalMemoryHandleTypeFlags::empty);
        let dedicated_as_nv = found!(DedicatedAllocationMemoryAllocateInfoNV).map(|it| it.image);
        Self {
            next: Some(next),
            flags: found!(MemoryAllocateFlagsInfo).map(|it| (it.flags, it.device_mask)),
            replays_address: found!(MemoryOpaqueCaptureAddressAllocateInfo)
                .is_some_and(|it| it.opaque_capture_address != 0),
            imports,
            imports_host_pointer: host_pointer,
            exports: found!(ExportMemoryAllocateInfo).map(|it| it.handle_types).or_else(nothing),
            dedicates: found!(MemoryDedicatedAllocateInfo).map(|it| it.image).or(dedicated_as_nv),
            prioritises: found!(MemoryPriorityAllocateInfoEXT).is_some(),
        }
    }

    /// Whether the allocator may dedicate the memory to a resource: the chain does not say what it is dedicated to, and
    /// does not import a host pointer (VUID-VkMemoryAllocateInfo-pNext-02806).
    pub(super) fn leaves_dedication(&self) -> bool {
        self.dedicates.is_none() && !self.imports_host_pointer
    }

    /// Whether the allocator may set a priority.
    pub(super) fn leaves_priority(&self) -> bool {
        !self.prioritises
    }

    /// Whether the allocator may say what the memory is exported as: the chain does not say it in one way or another
    /// (VUID-VkMemoryAllocateInfo-pNext-00640), and does not import. What is imported is bound to resources of the
    /// imported type, which need not be one of the exported types (VUID-vkBindImageMemory-memory-02728).
    pub(super) fn leaves_export(&self) -> bool {
        self.exports.is_none() && !self.imports
    }

    /// Whether the driver decides on the size, and has to be told zero: memory for one image that is exported as an
    /// Android hardware buffer (VUID-VkMemoryAllocateInfo-pNext-01874). `exported` and `image` are what the allocator
    /// adds.
    pub(super) fn leaves_size(&self, exported: vk::ExternalMemoryHandleTypeFlags, image: vk::Image) -> bool {
        let android = vk::ExternalMemoryHandleTypeFlags::ANDROID_HARDWARE_BUFFER_ANDROID;
        let exported = exported | self.exports.unwrap_or_default();
        let is_for_image = !image.is_null() || self.dedicates.is_some_and(|image| !image.is_null());
        exported.contains(android) && is_for_image && !self.imports
    }

    /// The `VkMemoryAllocateFlagsInfo` that the allocator adds if the memory is to have the flags `wanted`, and the
    /// chain that follows. That of the program's chain, if it has one, is merged into it; `copies` holds the copies of
    /// what stands before it there.
    ///
    /// # Safety
    /// The chain that was read still lives.
    pub(super) unsafe fn with_flags(
        &self,
        mut wanted: vk::MemoryAllocateFlags,
        copies: &mut Vec<Copied>,
    ) -> (Option<vk::MemoryAllocateFlagsInfo<'static>>, *const c_void) {
        let next = self.next.unwrap_or(std::ptr::null());
        if self.replays_address {
            // VUID-VkMemoryAllocateInfo-opaqueCaptureAddress-03329
            wanted |= vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY;
        }
        let (own, device_mask) = self.flags.unwrap_or_default();
        if own.contains(wanted) {
            return (None, next);
        }
        let info = vk::MemoryAllocateFlagsInfo::default().flags(own | wanted).device_mask(device_mask);
        if self.flags.is_none() {
            return (Some(info), next);
        }
        // SAFETY: the caller's promise; the chain has these flags, as was read.
        match unsafe { without_flags(next, copies) } {
            Some(rest) => (Some(info), rest),
            None => (None, next),
        }
    }
}

/// A copy of a structure of the program's chain, whose `pNext` is another.
#[repr(transparent)]
pub(super) struct Copied([MaybeUninit<u64>; COPIED_WORDS]);

const COPIED_WORDS: usize = 6;

/// The structures that may be copied, with their sizes: all that may stand in the chain of a `VkMemoryAllocateInfo`.
const KNOWN: [(vk::StructureType, usize); 18] = [
    of::<vk::DedicatedAllocationMemoryAllocateInfoNV<'_>>(),
    of::<vk::ExportMemoryAllocateInfo<'_>>(),
    of::<vk::ExportMemoryAllocateInfoNV<'_>>(),
    of::<vk::ExportMemoryWin32HandleInfoKHR<'_>>(),
    of::<vk::ExportMemoryWin32HandleInfoNV<'_>>(),
    of::<vk::ExportMetalObjectCreateInfoEXT<'_>>(),
    of::<vk::ImportAndroidHardwareBufferInfoANDROID<'_>>(),
    of::<vk::ImportMemoryBufferCollectionFUCHSIA<'_>>(),
    of::<vk::ImportMemoryFdInfoKHR<'_>>(),
    of::<vk::ImportMemoryHostPointerInfoEXT<'_>>(),
    of::<vk::ImportMemoryWin32HandleInfoKHR<'_>>(),
    of::<vk::ImportMemoryWin32HandleInfoNV<'_>>(),
    of::<vk::ImportMemoryZirconHandleInfoFUCHSIA<'_>>(),
    of::<vk::ImportMetalBufferInfoEXT<'_>>(),
    of::<vk::ImportScreenBufferInfoQNX<'_>>(),
    of::<vk::MemoryDedicatedAllocateInfo<'_>>(),
    of::<vk::MemoryOpaqueCaptureAddressAllocateInfo<'_>>(),
    of::<vk::MemoryPriorityAllocateInfoEXT<'_>>(),
];

const fn of<T: vk::TaggedStructure>() -> (vk::StructureType, usize) {
    assert!(size_of::<T>() <= size_of::<Copied>() && align_of::<T>() <= align_of::<Copied>());
    (T::STRUCTURE_TYPE, size_of::<T>())
}

/// A chain without its `VkMemoryAllocateFlagsInfo`: what stands before it is copied, and what follows is shared. `None`
/// if a structure stands before it whose size is not known.
///
/// # Safety
/// The chain is valid, and has such a structure.
unsafe fn without_flags(next: *const c_void, copies: &mut Vec<Copied>) -> Option<*const c_void> {
    let mut next = next.cast::<vk::BaseInStructure<'_>>();
    let mut rest = loop {
        // SAFETY: the caller's promise: valid up to the structure that is looked for, and it was not found yet.
        let link = unsafe { &*next };
        if link.s_type == vk::StructureType::MEMORY_ALLOCATE_FLAGS_INFO {
            break link.p_next;
        }
        let (_, size) = KNOWN.into_iter().find(|(kind, _)| *kind == link.s_type)?;
        let mut copied = Copied([MaybeUninit::uninit(); COPIED_WORDS]);
        let to = copied.0.as_mut_ptr().cast::<u8>();
        // SAFETY: its type says that the structure has `size` bytes, and no structure in `KNOWN` is larger than a copy.
        unsafe { std::ptr::copy_nonoverlapping(next.cast::<u8>(), to, size) };
        copies.push(copied);
        next = link.p_next;
    };
    // From the last one on. The vector does not grow from here on, so that the copies stay where they are.
    for copied in copies.iter_mut().rev() {
        let copied = std::ptr::from_mut(copied).cast::<vk::BaseInStructure<'_>>();
        // SAFETY: it begins as the structure that it is a copy of, is aligned for it, and is written to here alone.
        unsafe { (*copied).p_next = rest };
        rest = copied;
    }
    Some(rest.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(next: *const c_void) -> Vec<vk::StructureType> {
        let mut types = Vec::new();
        let mut next = next.cast::<vk::BaseInStructure<'_>>();
        while !next.is_null() {
            // SAFETY: the tests' chains are valid.
            let link = unsafe { &*next };
            types.push(link.s_type);
            next = link.p_next;
        }
        types
    }

    /// Wherever the flags stand, the rest of the chain is as it was, and the program's own is not written to.
    #[test]
    fn flags_are_taken_out_of_a_chain() {
        let address = vk::MemoryAllocateFlags::DEVICE_ADDRESS;
        for place in 0..3 {
            let mut fd = vk::ImportMemoryFdInfoKHR::default()
                .handle_type(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD)
                .fd(7);
            let mut priority = vk::MemoryPriorityAllocateInfoEXT::default().priority(0.75);
            let mut flags = vk::MemoryAllocateFlagsInfo::default()
                .flags(vk::MemoryAllocateFlags::DEVICE_MASK)
                .device_mask(1);
            let info = vk::MemoryAllocateInfo::default();
            // The last one that is pushed stands first.
            let info = match place {
                0 => info.push_next(&mut priority).push_next(&mut fd).push_next(&mut flags),
                1 => info.push_next(&mut priority).push_next(&mut flags).push_next(&mut fd),
                _ => info.push_next(&mut flags).push_next(&mut priority).push_next(&mut fd),
            };
            let before = types(info.p_next);
            // SAFETY: the chain is valid, here and below.
            let own = unsafe { OwnChain::read(info.p_next) };
            let mut copies = Vec::new();
            // SAFETY: as above.
            let (added, rest) = unsafe { own.with_flags(address, &mut copies) };
            let added = added.unwrap();
            assert_eq!(added.flags, vk::MemoryAllocateFlags::DEVICE_MASK | address);
            assert_eq!((added.device_mask, copies.len()), (1, place));
            let expected: Vec<_> = before
                .iter()
                .copied()
                .filter(|&it| it != vk::StructureType::MEMORY_ALLOCATE_FLAGS_INFO)
                .collect();
            assert_eq!((types(rest), types(info.p_next)), (expected, before));
            // SAFETY: as above.
            let fd = unsafe { find::<vk::ImportMemoryFdInfoKHR<'_>>(rest) }.unwrap();
            assert_eq!((fd.fd, fd.handle_type), (7, vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD));
            // SAFETY: as above.
            let priority = unsafe { find::<vk::MemoryPriorityAllocateInfoEXT<'_>>(rest) }.unwrap();
            assert_eq!(priority.priority.to_bits(), 0.75_f32.to_bits());
        }
    }

    /// Nobody knows how long it is, so that it cannot be copied: the program's flags stay as they are.
    #[test]
    fn an_unknown_structure_before_the_flags_stays() {
        let flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_MASK);
        let unknown = vk::BaseInStructure {
            s_type: vk::StructureType::from_raw(1_000_999_000),
            p_next: std::ptr::from_ref(&flags).cast(),
            ..Default::default()
        };
        let next = std::ptr::from_ref(&unknown).cast();
        // SAFETY: the chain is valid.
        let own = unsafe { OwnChain::read(next) };
        // SAFETY: as above.
        let (added, rest) =
            unsafe { own.with_flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS, &mut Vec::new()) };
        assert!(added.is_none() && rest == next);
    }
}
