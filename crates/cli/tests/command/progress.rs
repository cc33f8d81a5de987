//! The progress bar, on the pseudo-terminal of util-linux's `script`.

use std::process::{Command, Stdio};

use sublet::trace::Trace;

use super::{Folder, outcome, repository};

/// The start of a cleared line.
const CLEARED: &str = "\r\u{1b}[2K";

/// Returns the terminal output of a replay with thousands of events, and the number of events. `None` without `script`.
fn shown(options: &str) -> Option<(String, usize)> {
    let has_script = Command::new("script").arg("--version").stdout(Stdio::null()).status();
    if !has_script.is_ok_and(|status| status.success()) {
        println!("SKIPPED: there is no `script`, which makes up a terminal");
        return None;
    }
    let folder = Folder::new();
    let trace = repository().join("tests/traces/tour.trace");
    let bytes = std::fs::read(trace).unwrap();
    let events = Trace::read(&bytes).unwrap().records.len();
    folder.write("tour.trace", bytes);
    let command = format!("'{}' replay tour.trace {options}", env!("CARGO_BIN_EXE_sublet"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    script.current_dir(folder.path("")).stdin(Stdio::null()).env("SHELL", "/bin/sh").env("TERM", "xterm");
    Some((outcome(&mut script).expect(0).out, events))
}

#[test]
fn on_a_terminal_a_bar_shows_how_far_a_replay_is_and_goes_away() {
    let Some((shown, events)) = shown("") else { return };
    assert!(events > 5_000, "{events}");
    let thousands = format!(" of {},{:03} events, ", events / 1000, events % 1000);
    assert!(shown.starts_with("\rreplaying ") || shown.starts_with("replaying "), "{shown:?}");
    assert!(shown.contains(&format!(" 0{thousands}")), "{shown:?}");
    assert!(shown.matches(&thousands).count() > 1, "it moves: {shown:?}");
    // The text that remains on the terminal.
    let (_, left) = shown.rsplit_once(CLEARED).unwrap();
    assert!(left.starts_with("tour.trace: ") && left.contains("Placements: 0x"), "{left:?}");
    assert!(!left.contains("replaying"), "{left:?}");
}

#[test]
fn there_is_no_bar_for_those_who_want_none() {
    let Some((shown, _)) = shown("--no-progress") else { return };
    assert!(shown.starts_with("tour.trace: ") && shown.contains("Placements: 0x"), "{shown:?}");
    assert!(!shown.contains("replaying") && !shown.contains('\u{1b}'), "{shown:?}");
}
