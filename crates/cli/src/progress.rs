//! A progress bar on standard error, if it is a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

/// Number of events between two reads of the clock.
const STRIDE: u64 = 512;

/// The bar. Without a terminal it does nothing.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    events: std::cell::Cell<u64>,
}

impl Progress {
    pub(crate) fn new(wanted: bool) -> Self {
        let wanted = wanted && std::io::stderr().is_terminal();
        Self { bar: wanted.then(|| ProgressBar::new(0)), events: std::cell::Cell::new(0) }
    }

    pub(crate) fn begin(&self, events: usize) {
        if let Some(bar) = &self.bar {
            let template = "replaying {wide_bar} {human_pos} of {human_len} events, {eta} left";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_length(events.try_into().unwrap_or(u64::MAX));
        }
    }

    pub(crate) fn tick(&self) {
        let events = self.events.get() + 1;
        self.events.set(events);
        if let Some(bar) = self.bar.as_ref().filter(|_| events % STRIDE == 0) {
            bar.set_position(events);
        }
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
