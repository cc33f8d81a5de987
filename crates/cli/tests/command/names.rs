//! Names are untrusted, and some contain terminal commands.

use sublet_report::Snapshot;

use super::files;
use super::{Folder, outcome};

/// Colours, a window title, the same with eight-bit controls, and right-to-left writing.
const EVIL: &str = "\u{1b}[31mred\u{9b}0m\u{1b}]0;title\u{7}\u{7f}\u{202e}txt.\u{2066}exe\u{200f}";

/// Asserts that a text contains no terminal command and no direction change.
#[track_caller]
fn assert_harmless(text: &str) {
    let turns =
        |it| matches!(it, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let found = text.chars().find(|&it| it.is_control() && it != '\n' || turns(it));
    assert_eq!(found, None, "{text:?}");
}

/// Writes a map with an allocation of that name.
fn map_of_evil(folder: &Folder) {
    let name = serde_json::to_string(EVIL).unwrap();
    folder.write("evil.json", folder.read("map.json").replace("\"atlas\"", &name));
    assert!(folder.read("evil.json").contains("\\u001b[31mred\u{9b}0m"));
}

#[test]
fn tables_and_errors_hold_no_commands_for_the_terminal() {
    let folder = files::folder();
    map_of_evil(&folder);
    for arguments in ["report evil.json", "compare map.json evil.json", "report map.json --before evil.json"]
    {
        let found = outcome(&mut folder.command(arguments)).expect(0);
        assert!(found.out.contains("red") && found.err.is_empty(), "{arguments}: {}", found.err);
        assert_harmless(&found.out);
    }
    let found = outcome(folder.command("report map.json --title").arg(EVIL)).expect(0);
    assert!(found.out.contains("[31mred"), "{}", found.out);
    assert_harmless(&found.out);
}

#[test]
fn complaints_hold_no_commands_for_the_terminal() {
    let folder = files::folder();
    let member = format!("{{\n{}: 1,", serde_json::to_string(EVIL).unwrap());
    folder.write("evil.json", folder.read("profile.json").replacen('{', &member, 1));
    for (arguments, code) in [("devices --device evil.json", 3), ("replay frames.trace", 2), ("report", 3)] {
        let mut command = folder.command(arguments);
        if !arguments.ends_with(".json") {
            command.arg(EVIL);
        }
        let found = outcome(&mut command).expect(code);
        assert!(found.err.contains("[31mred") && found.out.is_empty(), "{arguments}: {}", found.err);
        assert_harmless(&found.err);
    }
}

/// JSON escapes these characters, so that scripts read the original name.
#[test]
fn documents_hold_names_as_they_are_and_no_commands_for_the_terminal() {
    let folder = files::folder();
    map_of_evil(&folder);
    for arguments in ["report evil.json --format json", "report evil.json --format json --json"] {
        let found = folder.run(arguments).expect(0);
        assert!(found.out.ends_with("}\n"), "{arguments}");
        assert_harmless(&found.out);
        assert_eq!(
            Snapshot::from_json(&found.out).unwrap(),
            Snapshot::from_json(&folder.read("evil.json")).unwrap()
        );
    }
    let found = folder.run("report evil.json --format perfetto").expect(0);
    assert_harmless(&found.out);
    found.json();
    let found = folder.run("compare map.json evil.json --json").expect(0);
    assert_harmless(&found.out);
    let names = found.json()["comparison"]["names"].clone();
    assert!(names.as_array().unwrap().iter().any(|change| change["name"] == EVIL), "{names}");
}
