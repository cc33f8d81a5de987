//! The boundary to C: no panic crosses it, and wrong calls are logged.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ash::vk;

/// The result of a function whose body panicked.
pub(super) trait OnPanic {
    /// Returns that result.
    fn on_panic() -> Self;
}

impl OnPanic for () {
    fn on_panic() -> Self {}
}

impl OnPanic for vk::Result {
    fn on_panic() -> Self {
        Self::ERROR_UNKNOWN
    }
}

impl OnPanic for vk::Bool32 {
    fn on_panic() -> Self {
        vk::FALSE
    }
}

/// Runs the body of an exported function. A panic is a bug in this library: it is logged, and becomes
/// `VK_ERROR_UNKNOWN` if the function has a result. Locks are released, but the state behind them may be incomplete.
#[inline(always)]
pub(super) fn guard<R: OnPanic>(function: &'static str, body: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(answer) => answer,
        Err(payload) => panicked(function, &*payload),
    }
}

#[cold]
#[inline(never)]
fn panicked<R: OnPanic>(function: &'static str, payload: &(dyn std::any::Any + Send)) -> R {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)");
    // A panicking subscriber would abort the program.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        tracing::error!(name: "panic_stopped", target: "sublet::capi", function, panic = text, "a panic was stopped");
    }));
    R::on_panic()
}

/// Logs that a call breaks a rule. VMA asserts in these cases.
#[cold]
#[inline(never)]
pub(super) fn misused(function: &'static str, rule: &str) {
    tracing::error!(name: "rule_broken", target: "sublet::capi", function, rule, "wrong call");
}

/// Logs why a call fails, and returns the matching result in C. `misuse` is true if the caller broke a rule.
#[cold]
#[inline(never)]
pub(super) fn refused(
    function: &'static str,
    error: &dyn Error,
    misuse: bool,
    result: vk::Result,
) -> vk::Result {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    if misuse {
        tracing::error!(name: "call_misused", target: "sublet::capi", function, %error, cause, ?result, "wrong call");
    } else {
        tracing::debug!(name: "call_refused", target: "sublet::capi", function, %error, cause, ?result, "refused");
    }
    result
}

/// Logs that a call without a result got a handle that is not valid here.
#[cold]
#[inline(never)]
pub(super) fn foreign(function: &'static str, error: &dyn Error) {
    let _ = refused(function, error, true, vk::Result::ERROR_UNKNOWN);
}

/// Logs how many objects were left when their owner is destroyed.
#[cold]
#[inline(never)]
pub(super) fn leaked(function: &'static str, what: &'static str, holds: &'static str, count: u64) {
    tracing::error!(
        name: "destroyed_in_use", target: "sublet::capi", function, what, holds, count,
        "leak: what it holds was not given back before"
    );
}

/// Defines exported functions under their own names, with a guard. The body owns the arguments, because borrowed ones
/// would have to be in memory.
macro_rules! exported {
    ($( $(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block )*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        /// C1 to C3 of [`capi`](crate).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            $crate::guard::guard(stringify!($name), move || $body)
        }
    )*};
}
pub(super) use exported;

/// Returns what a pointer of C refers to. Logs and returns `None` if it is null.
///
/// # Safety
/// `pointer` is null, or valid for reads while the result is used.
#[inline(always)]
pub(super) unsafe fn given<'a, V>(function: &'static str, pointer: *const V) -> Option<&'a V> {
    if is_missing(function, pointer) {
        return None;
    }
    // SAFETY: the caller's promise: the pointer is null or valid for reads.
    unsafe { pointer.as_ref() }
}

/// Returns true and logs if a pointer is null that must not be.
#[inline(always)]
pub(super) fn is_missing<V>(function: &'static str, pointer: *const V) -> bool {
    if pointer.is_null() {
        misused(function, "a pointer that must not be null is");
    }
    pointer.is_null()
}

/// Writes a result to a pointer of C, unless it is null.
///
/// # Safety
/// `pointer` is null, or valid for writes.
#[inline(always)]
pub(super) unsafe fn answer<V>(pointer: *mut V, value: V) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise: the pointer is valid for writes.
        unsafe { pointer.write(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_no_panic_is_what_the_body_says() {
        assert_eq!(guard("test", || -> vk::Result { panic!("on purpose") }), vk::Result::ERROR_UNKNOWN);
        assert_eq!(guard("test", || -> vk::Bool32 { panic!("{}", "on purpose") }), vk::FALSE);
        guard("test", || -> () { std::panic::panic_any(7) });
        assert_eq!(guard("test", || vk::Result::INCOMPLETE), vk::Result::INCOMPLETE);
        assert_eq!(guard("test", || vk::TRUE), vk::TRUE);
    }

    #[test]
    fn nothing_is_read_or_written_where_there_is_nothing() {
        // SAFETY: null, or a result of this function.
        unsafe {
            assert_eq!(given::<u32>("test", std::ptr::null()), None);
        }
        assert!(is_missing::<u32>("test", std::ptr::null()));
        let mut value = 7;
        assert!(!is_missing("test", &raw const value));
        // SAFETY: as above.
        unsafe { answer(std::ptr::null_mut(), 8) };
        // SAFETY: as above.
        unsafe { answer(&raw mut value, 8) };
        // SAFETY: as above.
        assert_eq!(unsafe { given("test", &raw const value) }, Some(&8));
    }
}
