//! What VMA decides with macros: who hears of mistakes, what becomes of them, and help in finding them.

use std::ffi::c_void;

use ash::vk;

use crate::guard::exported;
use crate::log::LogFunction;
use crate::types::{Pointer, SubletDebugSettings};
use crate::{log, settings};
use sublet::DebugSettings;

exported! {
    /// Sets who hears what the library has to say.
    fn subletSetLogCallback(function: Option<LogFunction>, level: u32, user_data: *mut c_void) {
        log::set_callback(function, level, Pointer(user_data));
    }

    /// Sets whether a mistake of the program ends it.
    fn subletSetAssertions(wanted: vk::Bool32) {
        log::set_assertions(wanted != vk::FALSE);
    }

    /// Sets what helps to find faults, for the allocators that are made from now on.
    fn subletSetDebugSettings(told: *const SubletDebugSettings) {
        // SAFETY: C3.
        settings::set(unsafe { told.as_ref() }.map(DebugSettings::from));
    }
}
