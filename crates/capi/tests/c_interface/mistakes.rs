//! Programs that make mistakes: their messages, and the assertions that stop them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::{Language, can_compile, client, library};

/// Runs a program that makes a mistake and has no log callback. Returns true if it continues, and its lines on standard
/// error.
fn with_mistake(which: &str, variables: &[(&str, &str)]) -> (bool, Vec<String>) {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let flags = ["-DCLIENT_WITH_SIM"];
    let program = PROGRAM.get_or_init(|| client("client-mistakes", Language::C11, &[], &flags, library()));
    let mut command = Command::new(program);
    command.args(["sim", "table", which]).env("SUBLET_SIM_PROFILE", "lavapipe");
    for variable in ["SUBLET_LOG", "SUBLET_ASSERT", "SUBLET_DEBUG"] {
        command.env_remove(variable);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{which} {variables:?}");
    let lines = String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    (output.status.success(), lines)
}

/// Warnings and errors go to standard error if the environment asks for it or in a debug build, as here. Assertions
/// stop the program if they are on.
#[test]
fn what_is_wrong_is_said_on_standard_error_and_stops_who_wants_it() {
    if !can_compile() {
        return;
    }
    let (went_on, lines) = with_mistake("leak", &[]);
    assert!(went_on);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("sublet: WARN: allocation was never freed (allocation: left behind"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("sublet: ERROR: vmaDestroyAllocator: leak")
            && lines[1].ends_with("holds: allocations, count: 1)"),
        "{lines:?}"
    );
    let last = vec![lines[1].clone()];
    assert_eq!(with_mistake("leak", &[("SUBLET_LOG", "error")]), (true, last.clone()));
    assert_eq!(with_mistake("leak", &[("SUBLET_LOG", "off")]), (true, Vec::new()));
    // A program that stops prints the reason at any log level.
    assert_eq!(with_mistake("leak", &[("SUBLET_LOG", "off"), ("SUBLET_ASSERT", "1")]), (false, last));
    assert_eq!(with_mistake("leak", &[("SUBLET_ASSERT", "0")]), (true, lines));
}

/// A failed VMA assertion stops a program with assertions on. Otherwise it is logged as an error.
#[test]
fn wrong_usages_are_errors_and_stop_who_wants_it() {
    if !can_compile() {
        return;
    }
    let mistakes = [
        ("auto", "sublet: ERROR: vmaAllocateMemory: wrong call"),
        ("find-auto", "sublet: ERROR: vmaFindMemoryTypeIndex: wrong call"),
        ("usage", "sublet: ERROR: vmaAllocateMemory: wrong call"),
    ];
    for (which, begins) in mistakes {
        let (went_on, lines) = with_mistake(which, &[]);
        assert!(went_on && lines.len() == 1 && lines[0].starts_with(begins), "{which}: {lines:?}");
        assert_eq!(with_mistake(which, &[("SUBLET_ASSERT", "yes")]), (false, lines.clone()));
        // `subletSetAssertions` overrides the environment.
        let asserted = format!("asserted-{which}");
        assert_eq!(with_mistake(&asserted, &[("SUBLET_LOG", "off")]), (false, lines.clone()));
        assert_eq!(with_mistake(&asserted, &[("SUBLET_ASSERT", "0")]), (false, lines));
    }
    assert_eq!(with_mistake("asserted-none", &[]), (true, Vec::new()));
}

/// Damaged margins also stop the program. Errors of other targets do not.
#[test]
fn damage_stops_who_wants_it_and_errors_of_others_do_not() {
    if !can_compile() {
        return;
    }
    let damage = [
        ("damage", "sublet: ERROR: something wrote beyond the end"),
        ("checked-damage", "sublet: ERROR: vmaCheckCorruption: memory is damaged"),
    ];
    for (which, begins) in damage {
        let (went_on, lines) = with_mistake(which, &[]);
        assert!(went_on && lines.len() == 1 && lines[0].starts_with(begins), "{which}: {lines:?}");
        let asserted = [("SUBLET_ASSERT", "1"), ("SUBLET_LOG", "off")];
        assert_eq!(with_mistake(which, &asserted), (false, lines.clone()));
        // A callback that receives nothing suppresses log lines, but not the reason for a stop.
        assert_eq!(with_mistake(&format!("deaf-{which}"), &[]), (true, Vec::new()));
        assert_eq!(with_mistake(&format!("asserted-deaf-{which}"), &[]), (false, lines));
    }
    let (went_on, lines) = with_mistake("vulkan", &[("SUBLET_ASSERT", "1")]);
    assert!(went_on && lines.iter().any(|line| line.starts_with("sublet: ERROR: ")), "{lines:?}");
}

/// An unknown value of a variable is reported on standard error at any level.
#[test]
fn variables_that_are_not_understood_are_named() {
    if !can_compile() {
        return;
    }
    let strange = [
        ("SUBLET_LOG", "loud"),
        ("SUBLET_LOG", "9"),
        ("SUBLET_ASSERT", "perhaps"),
        ("SUBLET_DEBUG", "margins=64"),
        ("SUBLET_DEBUG", "fill=much"),
    ];
    for (variable, value) in strange {
        for quiet in [false, true] {
            let mut variables = vec![(variable, value)];
            if quiet && variable != "SUBLET_LOG" {
                variables.push(("SUBLET_LOG", "off"));
            }
            let (went_on, lines) = with_mistake("none", &variables);
            assert!(went_on && lines.len() == 1, "{variables:?}: {lines:?}");
            let named =
                format!("sublet: WARN: the environment variable is not understood (variable: {variable}, ");
            assert!(lines[0].starts_with(&named) && lines[0].contains(value), "{variables:?}: {lines:?}");
        }
    }
    // A value with a line break is printed as one line.
    let (_, lines) =
        with_mistake("none", &[("SUBLET_ASSERT", "a\nsublet: ERROR: forged"), ("SUBLET_LOG", "off")]);
    assert!(lines.len() == 1 && lines[0].contains("a\\nsublet"), "{lines:?}");
    // These values are valid.
    let plain = [
        ("SUBLET_LOG", "WARN"),
        ("SUBLET_LOG", "2"),
        ("SUBLET_ASSERT", "False"),
        ("SUBLET_DEBUG", " fill, "),
    ];
    for one in plain {
        assert_eq!(with_mistake("none", &[one]), (true, Vec::new()), "{one:?}");
    }
}
