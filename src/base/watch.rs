//! A watch for what is told of calls of the driver.
#![forbid(unsafe_code)]

use std::time::Instant;

use super::cast::nanoseconds;

/// Measures a call of the driver, if somebody wants to know.
#[derive(Debug)]
pub(crate) struct Watch(Option<Instant>);

impl Watch {
    /// A look at the clock is not for nothing.
    pub(crate) fn start(is_heard: bool) -> Self {
        Self(is_heard.then(Instant::now))
    }

    /// Since the start; `None` if nobody wanted to know.
    pub(crate) fn nanoseconds(&self) -> Option<u64> {
        self.0.map(|started| nanoseconds(started.elapsed()))
    }
}
