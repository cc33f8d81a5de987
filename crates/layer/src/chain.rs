//! Walks `pNext` chains.
#![expect(unsafe_code, reason = "reads the program's structures")]

use std::ffi::c_void;

use ash::vk::{self, TaggedStructure};

/// Iterates over the structures of a chain.
///
/// # Safety
/// V1 holds for `start` as long as the items are used.
pub(crate) unsafe fn structures(
    start: *const c_void,
) -> impl Iterator<Item = *const vk::BaseInStructure<'static>> {
    let mut at = start.cast::<vk::BaseInStructure<'static>>();
    std::iter::from_fn(move || {
        // SAFETY: V1: null, or a structure that begins with `sType` and `pNext`, which live as long as the chain.
        let structure = unsafe { at.as_ref() }?;
        let found = at;
        at = structure.p_next;
        Some(found)
    })
}

/// Returns the types of the structures of a chain.
///
/// # Safety
/// V1 holds for `start` as long as the items are used.
pub(crate) unsafe fn types(start: *const c_void) -> impl Iterator<Item = vk::StructureType> {
    // SAFETY: the caller's.
    let all = unsafe { structures(start) };
    // SAFETY: V1: the items are valid structures.
    all.map(|structure| unsafe { (*structure).s_type })
}

/// Iterates over the structures of type `T`.
///
/// # Safety
/// V1 holds for `start` as long as the items are used.
pub(crate) unsafe fn of_type<T: TaggedStructure>(start: *const c_void) -> impl Iterator<Item = *const T> {
    // SAFETY: the caller's.
    let all = unsafe { structures(start) };
    // SAFETY: V1: the items are valid structures.
    all.filter(|&structure| unsafe { (*structure).s_type } == T::STRUCTURE_TYPE).map(<*const _>::cast)
}

/// Returns the first structure of type `T`.
///
/// # Safety
/// V1 holds for `start` during `'a`.
pub(crate) unsafe fn find<'a, T: TaggedStructure + 'a>(start: *const c_void) -> Option<&'a T> {
    // SAFETY: the caller's.
    let first = unsafe { of_type::<T>(start) }.next()?;
    // SAFETY: V1: the type of the structure is the one that `sType` states.
    unsafe { first.as_ref() }
}
