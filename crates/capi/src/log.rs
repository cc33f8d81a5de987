//! Log output for programs without a `tracing` subscriber: a callback of the program, or standard error.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{CString, c_char, c_void};
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::RwLock;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use super::types::Pointer;

/// `PFN_subletLog`.
pub type LogFunction = unsafe extern "system" fn(level: u32, message: *const c_char, user_data: *mut c_void);

/// `SUBLET_LOG_LEVEL_ERROR`.
const ERROR: u32 = 1;
/// `SUBLET_LOG_LEVEL_WARN`.
const WARN: u32 = 2;

/// The environment variable that sets the most detailed level on standard error.
const LOG: &str = "SUBLET_LOG";
/// The environment variable that turns assertions on.
const ASSERT: &str = "SUBLET_ASSERT";

/// The targets of errors on which VMA asserts: wrong calls, leaks at destruction, damaged margins.
const ABOUT_THE_PROGRAM: [&str; 2] = ["sublet::capi", "sublet::corruption"];

/// The program's log callback.
struct LogCallback {
    function: LogFunction,
    user_data: Pointer,
}

// SAFETY: the program promises that any thread may call the function with the user data (the header says so).
unsafe impl Send for LogCallback {}
// SAFETY: as above.
unsafe impl Sync for LogCallback {}

/// Locked for reading while the callback runs, so that no thread calls a callback that has been replaced.
static CALLBACK: RwLock<Option<LogCallback>> = RwLock::new(None);
/// The most detailed level that the callback receives, 0 for none.
static LEVEL: AtomicU32 = AtomicU32::new(0);
/// The most detailed level on standard error while there is no callback.
static STANDARD_ERROR: AtomicU32 = AtomicU32::new(0);
static ASSERTIONS: AtomicBool = AtomicBool::new(false);

fn number(level: Level) -> u32 {
    match level {
        Level::ERROR => ERROR,
        Level::WARN => WARN,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

/// Parses a level, as a name or a number.
fn level_of(named: &str) -> Option<u32> {
    Some(match named {
        "" | "0" | "off" => 0,
        "1" | "error" => ERROR,
        "2" | "warn" => WARN,
        "3" | "info" => 3,
        "4" | "debug" => 4,
        "5" | "trace" => 5,
        _ => return None,
    })
}

/// Parses a switch.
fn switch_of(named: &str) -> Option<bool> {
    Some(match named {
        "" | "0" | "off" | "no" | "false" => false,
        "1" | "on" | "yes" | "true" => true,
        _ => return None,
    })
}

/// An environment variable. The value is `usual` if it is not set, and `otherwise` if `read` cannot parse it. [`start`]
/// reports the latter.
struct Variable<V> {
    value: V,
    /// The raw value, if it cannot be parsed.
    strange: Option<String>,
}

impl<V> Variable<V> {
    fn read(name: &str, read: fn(&str) -> Option<V>, usual: V, otherwise: V) -> Self {
        let Some(set) = std::env::var_os(name) else { return Self { value: usual, strange: None } };
        let set = set.to_string_lossy();
        match read(set.to_ascii_lowercase().trim()) {
            Some(value) => Self { value, strange: None },
            None => Self { value: otherwise, strange: Some(set.into_owned()) },
        }
    }
}

/// Reads the environment once, and subscribes if the environment or the build asks for it. Must run before the first
/// event.
pub(super) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let usual = if cfg!(debug_assertions) { WARN } else { 0 };
        let level = Variable::read(LOG, level_of, usual, WARN);
        let asserts = Variable::read(ASSERT, switch_of, false, true);
        STANDARD_ERROR.store(level.value, Ordering::Relaxed);
        ASSERTIONS.store(asserts.value, Ordering::Relaxed);
        listen();
        if let Some(value) = level.strange {
            not_understood(
                LOG,
                &value,
                "warnings and errors are logged: give off, error, warn, info, debug or trace",
            );
        }
        if let Some(value) = asserts.strange {
            not_understood(ASSERT, &value, "mistakes end the program: give 1 or 0");
        }
    });
    listen();
}

/// Reports an environment variable with an unknown value, and the value `instead` that applies. Without a subscriber,
/// the report goes to standard error.
pub(super) fn not_understood(variable: &'static str, value: &str, instead: &str) {
    const TEXT: &str = "the environment variable is not understood";
    if tracing::enabled!(target: "sublet::capi", Level::WARN) {
        tracing::warn!(name: "variable_not_understood", target: "sublet::capi", variable, value, instead, "{TEXT}");
    } else {
        print(
            Level::WARN,
            &format!("{TEXT} (variable: {variable}, value: {}, instead: {instead})", value.escape_debug()),
        );
    }
}

/// Becomes the process's subscriber, if some output is wanted and there is no other. A Rust program that embeds this
/// library has its own.
fn listen() {
    static LISTENING: Once = Once::new();
    let wanted = [&LEVEL, &STANDARD_ERROR].into_iter().any(|level| level.load(Ordering::Relaxed) != 0);
    if (wanted || ASSERTIONS.load(Ordering::Relaxed)) && !tracing::dispatcher::has_been_set() {
        LISTENING.call_once(|| {
            // Another thread may have been first. Its subscriber then gets all events.
            let _ = tracing::subscriber::set_global_default(Listener);
        });
    }
}

/// Sets the callback that gets all events up to a level, or removes it.
pub(super) fn set_callback(function: Option<LogFunction>, level: u32, user_data: Pointer) {
    *CALLBACK.write() = function.map(|function| LogCallback { function, user_data });
    LEVEL.store(if function.is_some() { level } else { 0 }, Ordering::Relaxed);
    // Called here so that the callback gets reports of unknown variables.
    start();
}

/// Sets whether a failed VMA assertion aborts the program.
pub(super) fn set_assertions(wanted: bool) {
    start();
    ASSERTIONS.store(wanted, Ordering::Relaxed);
    listen();
}

/// The subscriber that passes events to the program.
struct Listener;

impl Subscriber for Listener {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // The level may change at any time.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let level = number(*metadata.level());
        level <= LEVEL.load(Ordering::Relaxed)
            || level <= STANDARD_ERROR.load(Ordering::Relaxed)
            || (level == ERROR && ASSERTIONS.load(Ordering::Relaxed))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let level = number(*metadata.level());
        let mut text = Text::default();
        event.record(&mut text);
        let text = text.finish();
        let asserted = level == ERROR
            && ASSERTIONS.load(Ordering::Relaxed)
            && ABOUT_THE_PROGRAM.contains(&metadata.target());
        // Recursive, because the callback may call a function that logs.
        let callback = CALLBACK.read_recursive();
        match &*callback {
            Some(callback) if level <= LEVEL.load(Ordering::Relaxed) => {
                // Control characters are escaped, so the text has no zero byte.
                let text = CString::new(text).unwrap_or_default();
                // SAFETY: the program provided the function for this purpose; the text lives until it returns.
                unsafe { (callback.function)(level, text.as_ptr(), callback.user_data.0) };
            }
            None if level <= STANDARD_ERROR.load(Ordering::Relaxed) || asserted => {
                print(*metadata.level(), &text)
            }
            _ if asserted => print(*metadata.level(), &text),
            _ => {}
        }
        if asserted {
            std::process::abort();
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Prints to standard error, which may be closed.
fn print(level: Level, text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "sublet: {level}: {text}");
}

/// Text of one line. Control characters are escaped, so that a name with a line break cannot forge a line of the log.
#[derive(Default)]
struct LogLine(String);

impl fmt::Write for LogLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            // Unicode treats these two separators as line breaks.
            if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
                self.0.extend(character.escape_default());
            } else {
                self.0.push(character);
            }
        }
        Ok(())
    }
}

/// An event as one line: function, message, and the other fields.
#[derive(Default)]
struct Text {
    function: LogLine,
    message: LogLine,
    rest: LogLine,
}

impl Text {
    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = match field.name() {
            "message" => self.message.write_fmt(value),
            "function" => self.function.write_fmt(value),
            // The caller is a line of this library's source, because C passes no location.
            "caller" => Ok(()),
            name => {
                let comma = if self.rest.0.is_empty() { "" } else { ", " };
                write!(self.rest, "{comma}{name}: {value}")
            }
        };
    }

    fn finish(self) -> String {
        let Self { function: LogLine(function), message: LogLine(message), rest: LogLine(rest) } = self;
        let colon = if function.is_empty() { "" } else { ": " };
        if rest.is_empty() {
            format!("{function}{colon}{message}")
        } else {
            format!("{function}{colon}{message} ({rest})")
        }
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if !value.is_empty() {
            self.add(field, format_args!("{value}"));
        }
    }
}
