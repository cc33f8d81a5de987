//! What the library has to say, for programs that cannot hear `tracing`: a function of the program's, or standard
//! error.

use std::ffi::{CString, OsStr, c_char, c_void};
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

/// The variable with the most detailed level for standard error.
const LOG: &str = "SUBLET_LOG";
/// The variable that switches assertions on.
const ASSERT: &str = "SUBLET_ASSERT";

/// The targets of errors where VMA would have asserted: wrong calls, what is left when something is destroyed, damaged
/// margins.
const ABOUT_THE_PROGRAM: [&str; 2] = ["sublet::capi", "sublet::corruption"];

/// The function of the program that hears of everything.
struct Callback {
    function: LogFunction,
    user_data: Pointer,
}

// SAFETY: the program promises that any thread may call the function with the user data (the header says so).
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

/// Read while the function runs, so that it is not called any more when another has taken its place.
static CALLBACK: RwLock<Option<Callback>> = RwLock::new(None);
/// The most detailed level that the program wants to hear, 0 for none.
static LEVEL: AtomicU32 = AtomicU32::new(0);
/// The most detailed level for standard error while there is no function.
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

/// The level of a name or a number. Of anything else that is set: warnings.
fn level_of(named: &OsStr) -> u32 {
    match named.to_string_lossy().to_ascii_lowercase().as_str() {
        "" | "0" | "off" => 0,
        "1" | "error" => ERROR,
        "3" | "info" => 3,
        "4" | "debug" => 4,
        "5" | "trace" => 5,
        _ => WARN,
    }
}

/// Looks at the environment, once, and listens if it or the build says so. To be called before anything can be said.
pub(super) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let usual = if cfg!(debug_assertions) { WARN } else { 0 };
        STANDARD_ERROR
            .store(std::env::var_os(LOG).map_or(usual, |named| level_of(&named)), Ordering::Relaxed);
        let asserts = std::env::var_os(ASSERT).is_some_and(|set| level_of(&set) != 0);
        ASSERTIONS.store(asserts, Ordering::Relaxed);
    });
    listen();
}

/// Becomes the subscriber of the process, if there is anything to be heard and nobody else is: what embeds this library
/// in Rust has its own.
fn listen() {
    static LISTENING: Once = Once::new();
    let wanted = [&LEVEL, &STANDARD_ERROR].into_iter().any(|level| level.load(Ordering::Relaxed) != 0);
    if (wanted || ASSERTIONS.load(Ordering::Relaxed)) && !tracing::dispatcher::has_been_set() {
        LISTENING.call_once(|| {
            // Another thread of the program may have been first; then that one hears of everything.
            let _ = tracing::subscriber::set_global_default(Listener);
        });
    }
}

/// Sets the function that hears of everything up to a level, or none.
pub(super) fn set_callback(function: Option<LogFunction>, level: u32, user_data: Pointer) {
    start();
    *CALLBACK.write() = function.map(|function| Callback { function, user_data });
    LEVEL.store(if function.is_some() { level } else { 0 }, Ordering::Relaxed);
    listen();
}

/// Whether what VMA asserts ends the program.
pub(super) fn set_assertions(wanted: bool) {
    start();
    ASSERTIONS.store(wanted, Ordering::Relaxed);
    listen();
}

/// Hands events to the program.
struct Listener;

impl Subscriber for Listener {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // What is heard may change at any time.
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
        // A function of the program's may call something that has something to say.
        let callback = CALLBACK.read_recursive();
        match &*callback {
            Some(callback) if level <= LEVEL.load(Ordering::Relaxed) => {
                let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
                // SAFETY: the program has given the function for this; the text lives until it returns.
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

/// To standard error, which may be closed.
fn print(level: Level, text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "sublet: {level}: {text}");
}

/// An event as one line: function, what happened, and the rest.
#[derive(Default)]
struct Text {
    function: String,
    message: String,
    rest: String,
}

impl Text {
    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = match field.name() {
            "message" => self.message.write_fmt(value),
            "function" => self.function.write_fmt(value),
            name => {
                let comma = if self.rest.is_empty() { "" } else { ", " };
                write!(self.rest, "{comma}{name}: {value}")
            }
        };
    }

    fn finish(self) -> String {
        let Self { function, message, rest } = self;
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
