//! Runs the built command as users and scripts do, and checks output, files and exit codes.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../report/tests/report_page/browser.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of pages")]
mod browser;
mod compare;
mod devices;
#[cfg(target_os = "linux")]
mod driver;
mod files;
mod help;
mod live;
mod names;
mod profile;
mod progress;
mod replay;
mod report;
#[cfg(target_os = "linux")]
mod watch;
mod watched;

#[path = "../../../report/tests/example/watched.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of reports")]
mod program;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// Returns the repository. The tests read its recordings and its guide.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The result of a run of the command.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    /// Returns the one document on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?}, {}", self.out, self.err))
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        // Every error has a message, and none is a panic.
        assert!(!self.err.contains("panicked") && !self.err.contains("RUST_BACKTRACE"), "{}", self.err);
        self
    }
}

/// A temporary folder in which the command runs.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("command-{}-{number}", std::process::id()));
        // A killed process with the same number may have left it.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sublet"));
        command.args(arguments.split_whitespace()).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> Outcome {
        outcome(&mut self.command(arguments))
    }

    /// Runs the command without any Vulkan driver.
    pub(crate) fn run_without_vulkan(&self, arguments: &str) -> Outcome {
        let mut command = self.command(arguments);
        // An empty list of drivers, under the names for older and newer Vulkan loaders.
        outcome(command.env("VK_ICD_FILENAMES", "/nonexistent").env("VK_DRIVER_FILES", "/nonexistent"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn outcome(command: &mut Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns true if this machine has a Vulkan driver. Panics if a driver is required and missing.
pub(crate) fn has_vulkan() -> bool {
    let found = Folder::new().run("devices --json");
    if found.code == 4 {
        let required = std::env::var_os("SUBLET_REQUIRE_VULKAN").is_some_and(|value| value == "1");
        assert!(!required, "SUBLET_REQUIRE_VULKAN=1, and there is none: {}", found.err);
        println!("SKIPPED: {}", found.err);
        return false;
    }
    found.expect(0);
    true
}
