//! The `pNext` chain of a `VkMemoryAllocateInfo`: the program's structures and the allocator's.
//!
//! The allocator never adds a structure that the program has in its chain (VUID-VkMemoryAllocateInfo-sType-unique), nor
//! one that the specification forbids in combination with the program's structures.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use ash::vk::{self, Handle as _};

/// Returns the first structure of type `T` in a chain.
///
/// # Safety
/// 1. The chain is valid, or null: each link begins with its type and a pointer to the next one.
/// 2. A structure with the type tag of `T` is a `T`.
/// 3. The chain lives and is not written to while the result is used.
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

/// The content of the program's chain. An absent structure counts as one with default values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnChain {
    next: Option<*const c_void>,
    /// `VkMemoryAllocateFlagsInfo`: its flags and its device mask.
    flags: Option<(vk::MemoryAllocateFlags, u32)>,
    /// True if the chain gives an address to replay.
    replays_address: bool,
    /// True if the chain imports memory.
    imports: bool,
    imports_host_pointer: bool,
    /// The handle types of `VkExportMemoryAllocateInfo`, or empty if an older structure requests the export.
    exports: Option<vk::ExternalMemoryHandleTypeFlags>,
    /// The image that the chain dedicates the memory to; null for a buffer or for no resource.
    dedicates: Option<vk::Image>,
    prioritises: bool,
}

impl OwnChain {
    /// Reads a chain.
    ///
    /// # Safety
    /// Same as [`find`], for all structures that Vulkan allows in this chain; the chain outlives the result.
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
        // A handle type of zero is no import: Vulkan ignores the structure.
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

    /// Returns true if the allocator may dedicate the memory to a resource: the chain does not dedicate it, and does
    /// not import a host pointer (VUID-VkMemoryAllocateInfo-pNext-02806).
    pub(super) fn leaves_dedication(&self) -> bool {
        self.dedicates.is_none() && !self.imports_host_pointer
    }

    /// Returns true if the allocator may set a priority.
    pub(super) fn leaves_priority(&self) -> bool {
        !self.prioritises
    }

    /// Returns true if the allocator may set the export handle types: the chain does not set them
    /// (VUID-VkMemoryAllocateInfo-pNext-00640), and does not import. Imported memory is bound to resources of the
    /// imported type, which may differ from the exported types (VUID-vkBindImageMemory-memory-02728).
    pub(super) fn leaves_export(&self) -> bool {
        self.exports.is_none() && !self.imports
    }

    /// Returns true if the driver determines the size, so that zero must be passed: memory for one image that is
    /// exported as an Android hardware buffer (VUID-VkMemoryAllocateInfo-pNext-01874). `exported` and `image` are the
    /// values that the allocator adds.
    pub(super) fn leaves_size(&self, exported: vk::ExternalMemoryHandleTypeFlags, image: vk::Image) -> bool {
        let android = vk::ExternalMemoryHandleTypeFlags::ANDROID_HARDWARE_BUFFER_ANDROID;
        let exported = exported | self.exports.unwrap_or_default();
        let is_for_image = !image.is_null() || self.dedicates.is_some_and(|image| !image.is_null());
        exported.contains(android) && is_for_image && !self.imports
    }

    /// Returns the `VkMemoryAllocateFlagsInfo` to add for the flags `wanted`, and the chain that follows it. Merges the
    /// program's own structure into it; `copies` then holds copies of the structures before it.
    ///
    /// # Safety
    /// The chain that was read is still live.
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
        // SAFETY: the caller's promise; `read` found flags in the chain.
        match unsafe { without_flags(next, copies) } {
            Some(rest) => (Some(info), rest),
            None => (None, next),
        }
    }
}

/// A copy of a structure of the program's chain, with a different `pNext`.
#[repr(transparent)]
pub(super) struct Copied([MaybeUninit<u64>; COPIED_WORDS]);

const COPIED_WORDS: usize = 6;

/// The structures that may be copied, with their sizes: everything that Vulkan allows in this chain.
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

/// Returns the chain without its `VkMemoryAllocateFlagsInfo`. Structures before it are copied; structures after it are
/// shared. Returns `None` if the size of a structure before it is unknown.
///
/// # Safety
/// The chain is valid and contains such a structure.
unsafe fn without_flags(next: *const c_void, copies: &mut Vec<Copied>) -> Option<*const c_void> {
    let mut next = next.cast::<vk::BaseInStructure<'_>>();
    let mut rest = loop {
        // SAFETY: the caller's promise: the chain is valid up to the structure, which was not reached yet.
        let link = unsafe { &*next };
        if link.s_type == vk::StructureType::MEMORY_ALLOCATE_FLAGS_INFO {
            break link.p_next;
        }
        let (_, size) = KNOWN.into_iter().find(|(kind, _)| *kind == link.s_type)?;
        let mut copied = Copied([MaybeUninit::uninit(); COPIED_WORDS]);
        let to = copied.0.as_mut_ptr().cast::<u8>();
        // SAFETY: by its type the structure has `size` bytes, and no structure in `KNOWN` is larger than a copy.
        unsafe { std::ptr::copy_nonoverlapping(next.cast::<u8>(), to, size) };
        copies.push(copied);
        next = link.p_next;
    };
    // Links the copies from last to first. The vector no longer grows, so their addresses are stable.
    for copied in copies.iter_mut().rev() {
        let copied = std::ptr::from_mut(copied).cast::<vk::BaseInStructure<'_>>();
        // SAFETY: the copy begins with a valid header, has the alignment of the structure, and is only written here.
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

    /// At any position of the flags, the rest of the chain is preserved, and the program's chain is not modified.
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
            // `push_next` inserts at the front.
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

    /// The size of an unknown structure prevents copying, so the program's flags are used unchanged.
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
