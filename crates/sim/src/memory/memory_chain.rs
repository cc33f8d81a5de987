//! The `pNext` chain of a `VkMemoryAllocateInfo`: the rules about what may stand in it beside what.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::memory::MemoryInfo;
use crate::objects::state::DeviceObject;

/// The facts of a chain that rules need and [`MemoryInfo`] does not have.
#[derive(Debug, Default)]
pub(crate) struct ChainFacts {
    /// `allocationSize`, as the program gave it.
    size: u64,
    /// The count of structures that define an import operation.
    imports: u32,
    host_pointer: bool,
    /// `VkExportMemoryAllocateInfoNV` or `VkExportMemoryWin32HandleInfoNV`.
    exports_as_nv: bool,
    /// `VkExportMemoryAllocateInfo`.
    exports: bool,
    exports_as_win32: bool,
    both_win32_imports: bool,
    /// A buffer or an image in `VkDedicatedAllocationMemoryAllocateInfoNV`.
    dedicated_as_nv: bool,
    /// `VkMemoryOpaqueCaptureAddressAllocateInfo`.
    pub(crate) replayed_address: u64,
    /// A structure that stands there twice.
    repeated: Option<vk::StructureType>,
}

impl ChainFacts {
    /// # Safety
    ///
    /// The chain is valid.
    pub(crate) unsafe fn read(size: u64, next: *const c_void) -> Self {
        macro_rules! found {
            ($structure:ident) => {
                // SAFETY: the promise of `read`: the chain is valid.
                unsafe { chain::find::<vk::$structure<'_>>(next) }
            };
        }
        // A structure whose handle type is 0 is ignored, says the specification.
        let host_pointer =
            found!(ImportMemoryHostPointerInfoEXT).is_some_and(|it| !it.handle_type.is_empty());
        let win32 = found!(ImportMemoryWin32HandleInfoKHR).map(|it| !it.handle_type.is_empty());
        let win32_nv = found!(ImportMemoryWin32HandleInfoNV).map(|it| !it.handle_type.is_empty());
        let imports = [
            host_pointer,
            win32 == Some(true),
            win32_nv == Some(true),
            found!(ImportMemoryFdInfoKHR).is_some_and(|it| !it.handle_type.is_empty()),
            found!(ImportMemoryZirconHandleInfoFUCHSIA).is_some_and(|it| !it.handle_type.is_empty()),
            found!(ImportAndroidHardwareBufferInfoANDROID).is_some_and(|it| !it.buffer.is_null()),
            found!(ImportScreenBufferInfoQNX).is_some_and(|it| !it.buffer.is_null()),
            found!(ImportMemoryBufferCollectionFUCHSIA).is_some(),
            found!(ImportMetalBufferInfoEXT).is_some(),
        ];
        // SAFETY: the promise of `read`.
        let types = unsafe { chain::types(next) };
        let is_repeated = |(at, kind): (usize, &vk::StructureType)| {
            let twice = types.iter().take(at).any(|before| before == kind);
            let may_be = *kind == vk::StructureType::EXPORT_METAL_OBJECT_CREATE_INFO_EXT;
            (twice && !may_be).then_some(*kind)
        };
        let dedicated_as_nv = found!(DedicatedAllocationMemoryAllocateInfoNV);
        Self {
            size,
            imports: imports.into_iter().map(u32::from).sum(),
            host_pointer,
            exports_as_nv: found!(ExportMemoryAllocateInfoNV).is_some()
                || found!(ExportMemoryWin32HandleInfoNV).is_some(),
            exports: found!(ExportMemoryAllocateInfo).is_some(),
            exports_as_win32: found!(ExportMemoryWin32HandleInfoKHR).is_some(),
            both_win32_imports: win32.is_some() && win32_nv.is_some(),
            dedicated_as_nv: dedicated_as_nv.is_some_and(|it| !it.image.is_null() || !it.buffer.is_null()),
            replayed_address: found!(MemoryOpaqueCaptureAddressAllocateInfo)
                .map_or(0, |it| it.opaque_capture_address),
            repeated: types.iter().enumerate().find_map(is_repeated),
        }
    }

    /// Returns whether the parameters define an import operation.
    pub(crate) fn is_import(&self) -> bool {
        self.imports > 0
    }

    /// Returns whether the driver decides on the size: an Android hardware buffer is made for one image.
    pub(crate) fn leaves_size(&self, asked: &MemoryInfo) -> bool {
        let is_android = exported(asked).contains(ANDROID);
        is_android && !asked.dedicated_image.is_null() && !self.is_import()
    }

    /// Finds the rule that the chain breaks.
    pub(crate) fn check(&self, device: &DeviceObject, asked: &MemoryInfo) -> Result<(), Broken> {
        if let Some(kind) = self.repeated {
            return Err(("VUID-VkMemoryAllocateInfo-sType-unique", format!("{kind:?} is there twice")));
        }
        refuse_if!(self.both_win32_imports => "VUID-VkMemoryAllocateInfo-pNext-00641",
            "two structures import a Windows handle");
        refuse_if!(self.imports > 1 => "VUID-VkMemoryAllocateInfo-None-06657",
            "{} import operations are defined", self.imports);
        refuse_if!(self.exports && self.exports_as_nv => "VUID-VkMemoryAllocateInfo-pNext-00640",
            "VkExportMemoryAllocateInfo is there, and a structure of VK_NV_external_memory");
        refuse_if!(self.exports_as_win32 && !exported(asked).intersects(WIN32)
            => "VUID-VkExportMemoryWin32HandleInfoKHR-handleType-00657",
            "handleTypes is {:#x}, which is no Windows handle", asked.export_handle_types);
        refuse_if!(self.host_pointer && self.dedicated_as_nv => "VUID-VkMemoryAllocateInfo-pNext-02805",
            "a host pointer is imported, and the memory is to be dedicated");
        refuse_if!(self.host_pointer && asked.dedicated_kind() != vk::ObjectType::UNKNOWN
            => "VUID-VkMemoryAllocateInfo-pNext-02806",
            "a host pointer is imported, and the memory is to be dedicated");
        self.check_size(asked)?;
        self.check_flags(device, asked)
    }

    /// The size is 0 exactly if the driver decides on it.
    fn check_size(&self, asked: &MemoryInfo) -> Result<(), Broken> {
        let Self { size, .. } = *self;
        if self.leaves_size(asked) {
            refuse_if!(size != 0 => "VUID-VkMemoryAllocateInfo-pNext-01874",
                "allocationSize is {size}, and an image is exported as an Android hardware buffer");
        } else if size == 0 && self.exports && !self.is_import() {
            let rule = match (exported(asked).contains(ANDROID), asked.dedicated_buffer.is_null()) {
                (false, _) => "VUID-VkMemoryAllocateInfo-allocationSize-07899",
                (true, true) => "VUID-VkMemoryAllocateInfo-pNext-07900",
                (true, false) => "VUID-VkMemoryAllocateInfo-pNext-07901",
            };
            return Err((rule, "allocationSize is 0".to_owned()));
        }
        Ok(())
    }

    fn check_flags(&self, device: &DeviceObject, asked: &MemoryInfo) -> Result<(), Broken> {
        let (flags, mask) = (vk::MemoryAllocateFlags::from_raw(asked.flags), asked.device_mask);
        let replays = flags.contains(vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY);
        refuse_if!(replays && !device.features.buffer_device_address_capture_replay
            => "VUID-VkMemoryAllocateInfo-flags-03330",
            "DEVICE_ADDRESS_CAPTURE_REPLAY is set, and the feature bufferDeviceAddressCaptureReplay is not enabled");
        let address = self.replayed_address;
        if address != 0 {
            refuse_if!(!replays => "VUID-VkMemoryAllocateInfo-opaqueCaptureAddress-03329",
                "opaqueCaptureAddress is {address:#x}, and DEVICE_ADDRESS_CAPTURE_REPLAY is not set");
            refuse_if!(self.host_pointer => "VUID-VkMemoryAllocateInfo-pNext-03332",
                "opaqueCaptureAddress is {address:#x}, and a host pointer is imported");
            refuse_if!(self.is_import() => "VUID-VkMemoryAllocateInfo-opaqueCaptureAddress-03333",
                "opaqueCaptureAddress is {address:#x}, and memory is imported");
        }
        if flags.contains(vk::MemoryAllocateFlags::DEVICE_MASK) {
            refuse_if!(mask == 0 => "VUID-VkMemoryAllocateFlagsInfo-deviceMask-00676", "deviceMask is 0");
            refuse_if!(mask != 1 => "VUID-VkMemoryAllocateFlagsInfo-deviceMask-00675",
                "deviceMask is {mask:#b}, and the logical device has one physical device");
        }
        Ok(())
    }
}

const ANDROID: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::ANDROID_HARDWARE_BUFFER_ANDROID;

/// The handle types that attributes of a Windows handle are for.
const WIN32: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::from_raw(
    vk::ExternalMemoryHandleTypeFlags::OPAQUE_WIN32.as_raw()
        | vk::ExternalMemoryHandleTypeFlags::D3D11_TEXTURE.as_raw()
        | vk::ExternalMemoryHandleTypeFlags::D3D12_HEAP.as_raw()
        | vk::ExternalMemoryHandleTypeFlags::D3D12_RESOURCE.as_raw(),
);

fn exported(asked: &MemoryInfo) -> vk::ExternalMemoryHandleTypeFlags {
    vk::ExternalMemoryHandleTypeFlags::from_raw(asked.export_handle_types)
}

/// The handle type that a chain imports, as a bit; 0 if it imports nothing, or something without one.
///
/// # Safety
///
/// The chain is valid.
pub(crate) unsafe fn imported_type(next: *const c_void) -> u32 {
    macro_rules! found {
        ($structure:ident) => {
            // SAFETY: the promise of `imported_type`: the chain is valid.
            unsafe { chain::find::<vk::$structure<'_>>(next) }
        };
    }
    let android = found!(ImportAndroidHardwareBufferInfoANDROID).filter(|it| !it.buffer.is_null());
    let screen = found!(ImportScreenBufferInfoQNX).filter(|it| !it.buffer.is_null());
    found!(ImportMemoryFdInfoKHR).map_or(0, |it| it.handle_type.as_raw())
        | found!(ImportMemoryHostPointerInfoEXT).map_or(0, |it| it.handle_type.as_raw())
        | found!(ImportMemoryWin32HandleInfoKHR).map_or(0, |it| it.handle_type.as_raw())
        | found!(ImportMemoryZirconHandleInfoFUCHSIA).map_or(0, |it| it.handle_type.as_raw())
        | android.map_or(0, |_| ANDROID.as_raw())
        | screen.map_or(0, |_| vk::ExternalMemoryHandleTypeFlags::SCREEN_BUFFER_QNX.as_raw())
}
