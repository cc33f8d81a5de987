//! Errors of subcommands, and the exit codes.

use std::error::Error;

/// An expectation failed: `compare --fail-above`, `replay --expect`.
pub(crate) const DIFFERS: u8 = 1;
/// Wrong usage. clap has the same code.
pub(crate) const USAGE: u8 = 2;
/// A file cannot be read or written, is damaged, or has another format.
pub(crate) const FILE: u8 = 3;
/// The device does not exist, or there is no Vulkan.
pub(crate) const NO_DEVICE: u8 = 4;
/// The driver rejected a request.
pub(crate) const DRIVER: u8 = 5;

/// Their description in the help.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  fine
  1  what was expected does not hold (compare --fail-above, replay --expect)
  2  wrong arguments
  3  a file cannot be read or written, is damaged, or is of another kind
  4  no such device, or no Vulkan at all
  5  the device's driver refuses what is asked of it";

/// An error with its exit code.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub(crate) what: String,
    pub(crate) source: Option<Box<dyn Error>>,
    pub(crate) code: u8,
    /// Advice for the user.
    hint: Option<String>,
}

impl CommandFailure {
    fn new(code: u8, what: impl Into<String>, source: Option<Box<dyn Error>>) -> Self {
        Self { what: what.into(), source, code, hint: None }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(USAGE, what, None)
    }

    pub(crate) fn file(what: impl Into<String>, source: impl Into<Box<dyn Error>>) -> Self {
        Self::new(FILE, what, Some(source.into()))
    }

    pub(crate) fn no_device(what: impl Into<String>) -> Self {
        Self::new(NO_DEVICE, what, None)
    }

    pub(crate) fn no_vulkan(source: impl Into<Box<dyn Error>>) -> Self {
        Self::new(NO_DEVICE, "no Vulkan device can be had", Some(source.into()))
    }

    pub(crate) fn driver(what: impl Into<String>, source: impl Into<Box<dyn Error>>) -> Self {
        Self::new(DRIVER, what, Some(source.into()))
    }

    /// Adds advice for the user.
    pub(crate) fn hint(self, hint: String) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// Returns the causes, the nearest first.
    pub(crate) fn causes(&self) -> Vec<String> {
        let first = self.source.as_deref();
        std::iter::successors(first, |&cause| cause.source()).map(ToString::to_string).collect()
    }

    /// Returns the whole message in one line.
    pub(crate) fn chain(&self) -> String {
        let mut chain = self.what.clone();
        for cause in self.causes() {
            chain += ": ";
            chain += &cause;
        }
        if let Some(hint) = &self.hint {
            chain += "; ";
            chain += hint;
        }
        chain
    }
}
