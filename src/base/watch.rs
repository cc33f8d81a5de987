//! A stopwatch for events that report driver calls.

use std::time::Instant;

use sublet_engines::cast::nanoseconds;

/// Measures a driver call, if an event will report it.
#[derive(Debug)]
pub(crate) struct Watch(Option<Instant>);

impl Watch {
    /// Reads the clock only if `is_heard`, because reading it costs time.
    pub(crate) fn start(is_heard: bool) -> Self {
        Self(is_heard.then(Instant::now))
    }

    /// Nanoseconds since the start; `None` if no event will report them.
    pub(crate) fn nanoseconds(&self) -> Option<u64> {
        self.0.map(|started| nanoseconds(started.elapsed()))
    }
}
