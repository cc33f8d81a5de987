//! The arguments of a C function: structures with chains behind them, and arrays that are filled in two calls.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::facts::arithmetic::{index, narrow};
use crate::facts::broken::Broken;

/// No chain is longer. A chain that is, bites its own tail.
const LONGEST: usize = 256;

/// The structures of a chain, from `next` on.
///
/// # Safety
///
/// 1. `next` is NULL or points to a structure that begins as `VkBaseInStructure` does, and so on along the chain.
/// 2. All of them live as long as the iterator is used.
unsafe fn links(next: *const c_void) -> impl Iterator<Item = *const vk::BaseInStructure<'static>> {
    let mut link = next.cast::<vk::BaseInStructure<'static>>();
    std::iter::from_fn(move || {
        if link.is_null() {
            return None;
        }
        let this = link;
        // SAFETY: 1 and 2 of `links`: not NULL, and so a live structure of the chain.
        link = unsafe { (*this).p_next };
        Some(this)
    })
    .take(LONGEST)
}

/// The types of the structures of a chain, in order.
///
/// # Safety
///
/// 1 and 2 of [`links`].
pub(crate) unsafe fn types(next: *const c_void) -> Vec<vk::StructureType> {
    // SAFETY: 1 and 2 of `types` are those of `links`.
    let links = unsafe { links(next) };
    links
        .map(|link| {
            // SAFETY: a structure of the chain: `links` has just read its other field.
            unsafe { (*link).s_type }
        })
        .collect()
}

/// The first structure of type `T` in a chain.
///
/// # Safety
///
/// 1. 1 and 2 of [`links`].
/// 2. A structure with the type tag of `T` is a `T`, and lives as long as the result is used.
pub(crate) unsafe fn find<'a, T: vk::TaggedStructure>(next: *const c_void) -> Option<&'a T> {
    // SAFETY: 1 of `find`. Nothing is written through the pointer.
    let found = unsafe { find_raw::<T>(next.cast_mut()) }?;
    // SAFETY: 2 of `find`: it has the tag.
    Some(unsafe { &*found })
}

/// The address of the first structure of type `T` in a chain.
///
/// # Safety
///
/// 1 and 2 of [`links`].
pub(crate) unsafe fn find_raw<T: vk::TaggedStructure>(next: *mut c_void) -> Option<*mut T> {
    // SAFETY: 1 and 2 of `find_raw` are those of `links`.
    let mut links = unsafe { links(next) };
    let link = links.find(|&link| {
        // SAFETY: a structure of the chain: `links` has just read its other field.
        unsafe { (*link).s_type == T::STRUCTURE_TYPE }
    })?;
    Some(link.cast_mut().cast())
}

/// The first structure of type `T` in a chain that the driver fills.
///
/// # Safety
///
/// 1. 1 and 2 of [`links`].
/// 2. A structure with the type tag of `T` is a `T`, and lives as long as the result is used.
/// 3. It is valid for writes, and nobody else uses it meanwhile.
pub(crate) unsafe fn find_mut<'a, T: vk::TaggedStructure>(next: *mut c_void) -> Option<&'a mut T> {
    // SAFETY: 1 of `find_mut`.
    let found = unsafe { find_raw::<T>(next) }?;
    // SAFETY: 2 and 3 of `find_mut`: it has the tag.
    Some(unsafe { &mut *found })
}

/// The structure at `pointer`, if there is one.
///
/// # Safety
///
/// `pointer` is NULL, or valid for reads as long as the result is used.
pub(crate) unsafe fn input<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the promise of `input`: NULL, or valid for reads.
    unsafe { pointer.as_ref() }
}

/// As [`input`], of a structure that has to be there: `rule`, a `VUID-...-pName-parameter`, says so.
///
/// # Safety
///
/// As for [`input`].
pub(crate) unsafe fn given<'a, T>(pointer: *const T, rule: &'static str) -> Result<&'a T, Broken> {
    // SAFETY: the promise of `given` is that of `input`.
    unsafe { input(pointer) }
        .ok_or_else(|| (rule, format!("{} is NULL", rule.split('-').nth(2).unwrap_or("the pointer"))))
}

/// The array of `count` elements at `pointer`; empty if there is none.
///
/// # Safety
///
/// `pointer` is NULL, or valid for reads of `count` elements as long as the result is used.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, count: u32) -> &'a [T] {
    if pointer.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the promise of `array`: not NULL, and so valid for reads of `count` elements.
    unsafe { std::slice::from_raw_parts(pointer, index(count)) }
}

/// Writes `value`, unless `pointer` is NULL.
///
/// # Safety
///
/// `pointer` is NULL, or valid for a write.
pub(crate) unsafe fn output<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: the promise of `output`: not NULL, and so valid for a write.
        unsafe { pointer.write(value) };
    }
}

/// Answers a query that is called twice: without `out` it writes the number of items, and with it as many as fit.
///
/// # Safety
///
/// 1. `count` is NULL or valid.
/// 2. `out` is NULL, or valid for writes of `*count` items.
pub(crate) unsafe fn list<T: Clone>(items: &[T], count: *mut u32, out: *mut T) -> vk::Result {
    // SAFETY: 1 of `list`.
    let Some(count) = (unsafe { count.as_mut() }) else {
        return vk::Result::ERROR_VALIDATION_FAILED_EXT;
    };
    if out.is_null() {
        *count = narrow(items.len());
        return vk::Result::SUCCESS;
    }
    let fits = items.len().min(index(*count));
    for (position, item) in items[..fits].iter().enumerate() {
        // SAFETY: 2 of `list`: `position` < `*count`.
        let slot = unsafe { out.add(position) };
        // SAFETY: as above.
        unsafe { slot.write(item.clone()) };
    }
    *count = narrow(fits);
    if fits < items.len() { vk::Result::INCOMPLETE } else { vk::Result::SUCCESS }
}
