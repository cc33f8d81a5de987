//! The events that the library emits through `tracing`.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::Level;

/// Runs `work` and writes the events of this thread, from `level` up, as text.
pub fn listening<W: Write + 'static>(
    level: Level,
    writer: impl Fn() -> W + Send + Sync + 'static,
    work: impl FnOnce(),
) {
    let subscriber =
        tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(writer).finish();
    // With a single subscriber, `tracing` may cache a callsite as disabled if another thread reaches it first. The
    // second dispatcher prevents this.
    let quiet = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::sink).finish();
    let _second = tracing::Dispatch::new(quiet);
    tracing::subscriber::with_default(subscriber, || {
        // Another test may have cached the callsites as disabled.
        tracing::callsite::rebuild_interest_cache();
        work();
    });
}

/// Returns the events emitted during `work`, one per line.
pub fn said(level: Level, work: impl FnOnce()) -> String {
    struct Text(Arc<Mutex<Vec<u8>>>);
    impl Write for Text {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(text)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let text = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&text);
    listening(level, move || Text(Arc::clone(&writer)), work);
    let text = text.lock().unwrap().clone();
    String::from_utf8(text).unwrap()
}
