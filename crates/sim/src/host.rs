//! The host memory behind an object: the driver needs none of the program's, but asks for some where the program gave
//! it callbacks, so that a test can count them.

use std::ffi::c_void;

use ash::vk;

/// What an object takes. Real drivers take something like it.
const BYTES: usize = 64;
const ALIGNMENT: usize = 16;

/// Host memory of one object: where it is, if the program gave callbacks; 0 if they had no function for it. It goes
/// back through [`give_back`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HostBytes(Option<usize>);

impl HostBytes {
    /// Whether the object was created with callbacks: then it has to be destroyed with some.
    pub(super) fn is_some(self) -> bool {
        self.0.is_some()
    }
}

/// Takes host memory for an object.
///
/// # Safety
///
/// `callbacks` is NULL or valid. No lock of the driver is held: a callback is code of the program.
pub(super) unsafe fn take(callbacks: *const vk::AllocationCallbacks<'_>) -> Result<HostBytes, vk::Result> {
    // SAFETY: the caller's promise.
    let Some(callbacks) = (unsafe { callbacks.as_ref() }) else {
        return Ok(HostBytes::default());
    };
    let Some(allocate) = callbacks.pfn_allocation else {
        return Ok(HostBytes(Some(0)));
    };
    let scope = vk::SystemAllocationScope::OBJECT;
    // SAFETY: the function is what Vulkan says that it is (VUID-VkAllocationCallbacks-pfnAllocation-00632).
    let bytes = unsafe { allocate(callbacks.p_user_data, BYTES, ALIGNMENT, scope) };
    if bytes.is_null() {
        return Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    }
    Ok(HostBytes(Some(bytes.expose_provenance())))
}

/// Gives host memory back through the callbacks of the object's destruction.
///
/// # Safety
///
/// As for [`take`]; `bytes` came from it, through compatible callbacks, and is given back once.
pub(super) unsafe fn give_back(callbacks: *const vk::AllocationCallbacks<'_>, bytes: HostBytes) {
    // SAFETY: the caller's promise.
    let Some(callbacks) = (unsafe { callbacks.as_ref() }) else { return };
    if let (Some(bytes @ 1..), Some(free)) = (bytes.0, callbacks.pfn_free) {
        let bytes = std::ptr::with_exposed_provenance_mut::<c_void>(bytes);
        // SAFETY: as in `take` (VUID-VkAllocationCallbacks-pfnFree-00634).
        unsafe { free(callbacks.p_user_data, bytes) };
    }
}
