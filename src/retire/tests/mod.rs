//! Guarantees of a clock and a queue, one by one; `model` tests them with random programs.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

mod clock;
mod frames;
mod model;
mod queue;

use super::{Clock, TimelineId};

fn clock_with_timeline() -> (Clock, TimelineId) {
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    (clock, timeline)
}

fn panics<R>(work: impl FnOnce() -> R) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
}

/// Runs `work` and returns the `tracing` events of `level` and above, as text.
fn events(level: tracing::Level, work: impl FnOnce()) -> String {
    use std::io::Write;
    use std::sync::Arc;

    use parking_lot::Mutex;

    struct Text(Arc<Mutex<Vec<u8>>>);
    impl Write for Text {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(text)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let text = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&text);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(move || Text(Arc::clone(&writer)))
        .finish();
    // With only one subscriber, `tracing` caches "disabled" for a callsite that another thread reaches first.
    let quiet = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::sink).finish();
    let _second = tracing::Dispatch::new(quiet);
    tracing::subscriber::with_default(subscriber, || {
        // Another test may have cached that no subscriber is active.
        tracing::callsite::rebuild_interest_cache();
        work();
    });
    let text = text.lock().clone();
    String::from_utf8(text).unwrap()
}
