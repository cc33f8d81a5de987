//! Functions for settings that VMA has as macros (logs, assertions, debug settings) or not at all.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::guard::exported;
use crate::log::LogFunction;
use crate::types::{Pointer, SubletDebugSettings};
use crate::{log, settings};
use sublet::DebugSettings;

exported! {
    /// Sets the log callback.
    fn subletSetLogCallback(function: Option<LogFunction>, level: u32, user_data: *mut c_void) {
        log::set_callback(function, level, Pointer(user_data));
    }

    /// Sets whether an error of the program aborts it.
    fn subletSetAssertions(wanted: vk::Bool32) {
        log::set_assertions(wanted != vk::FALSE);
    }

    /// Sets the debug settings of allocators that are created later.
    fn subletSetDebugSettings(wanted: *const SubletDebugSettings) {
        // SAFETY: C3.
        settings::set(unsafe { wanted.as_ref() }.map(DebugSettings::from));
    }

    /// Sets the limit of mapped bytes of allocators that are created later.
    fn subletSetMaxMappedSize(size: vk::DeviceSize) {
        settings::set_max_mapped_size(size);
    }
}
