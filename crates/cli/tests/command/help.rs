//! The help, and wrong usage of the command.

use super::files;
use super::{Folder, has_vulkan, repository};

const COMMANDS: [&str; 5] = ["devices", "report", "replay", "compare", "profile"];

/// Returns the commands in the help of a subcommand.
fn examples(folder: &Folder, command: &str) -> Vec<String> {
    let help = folder.run(&format!("{command} --help")).expect(0);
    let (_, examples) = help.out.split_once("Examples:\n").unwrap();
    let lines = examples.lines().take_while(|line| line.starts_with("  sublet "));
    lines.map(|line| line.trim().trim_start_matches("sublet ").to_owned()).collect()
}

#[test]
fn every_example_of_the_help_does_what_it_says() {
    let with_vulkan = has_vulkan();
    let folder = files::folder();
    for command in COMMANDS {
        let examples = examples(&folder, command);
        assert!(examples.len() >= 3, "{command}: {examples:?}");
        for example in examples {
            assert!(example.starts_with(command), "{example}");
            let needs_driver = matches!(command, "devices" | "profile")
                && !example.contains("sim:")
                && !example.contains(".json") | example.contains("--device 0");
            if needs_driver && !with_vulkan {
                continue;
            }
            let found = folder.run(&example).expect(0);
            assert!(!found.out.is_empty(), "{example}");
            if let Some((_, file)) = example.split_once("-o ") {
                assert!(folder.path(file).is_file(), "{example}");
            }
        }
    }
}

#[test]
fn the_help_lists_the_subcommands_and_the_exit_codes() {
    let folder = Folder::new();
    let help = folder.run("--help").expect(0);
    for word in COMMANDS.iter().chain(&["watch", "layer", "Exit codes:", "  4  no such device"]) {
        assert!(help.out.contains(word), "{word}: {}", help.out);
    }
    let version = folder.run("--version").expect(0);
    assert_eq!(version.out.trim(), concat!("sublet ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_help_says_which_device_is_taken_where_none_is_named() {
    let folder = Folder::new();
    for (command, otherwise) in [
        ("devices", "a file with a profile; else all that drivers have"),
        ("replay", "a file with a profile; else the one of the trace, simulated"),
        ("profile", "a file with a profile; else the best one"),
    ] {
        let help = folder.run(&format!("{command} --help")).expect(0);
        // Removes line breaks, which depend on the width.
        let help = help.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(otherwise), "{command}: {help}");
    }
}

#[test]
fn wrong_arguments_end_with_2_and_a_word_on_what_is_wrong() {
    let folder = files::folder();
    for (arguments, says) in [
        ("", "Usage"),
        ("nonsense", "nonsense"),
        ("devices --colour", "--colour"),
        ("devices --sim --device 0", "--sim"),
        ("report", "MAP"),
        ("report map.json --at peak", "a recording"),
        ("report map.json --partial", "a recording"),
        ("report map.json --before before.json --format svg", "--before is for"),
        ("report map.json --before before.json --format perfetto", "--before is for"),
        ("report map.json --before before.json -o out.json", "--before is for"),
        ("report map.json --before nothing.json -o out.svg", "--before is for"),
        ("report map.json --format pdf", "pdf"),
        ("report --trace frames.trace --at later", "later"),
        ("report --trace frames.trace --at 101%", "101%"),
        ("report nothing.trace --at later", "later"),
        ("compare map.json", "NOW"),
        ("watch", "PROGRAM"),
        ("watch --limit much -- true", "much"),
        ("compare map.json map.json --fail-above much", "much"),
        ("compare map.json map.json --fail-above=-1", "percent"),
        ("compare map.json map.json --fail-above NaN", "percent"),
    ] {
        let found = folder.run(arguments).expect(2);
        assert!(found.out.is_empty() && found.err.contains(says), "{arguments}: {}", found.err);
    }
}

#[test]
fn errors_are_documents_where_documents_are_asked_for() {
    let folder = files::folder();
    for (arguments, code) in [
        ("devices --json --colour", 2),
        ("compare map.json map.json --fail-above NaN --json", 2),
        ("report nothing.json --json", 3),
        ("replay map.json --json", 3),
        ("devices --device sim:voodoo-2 --json", 4),
    ] {
        let found = folder.run(arguments).expect(code);
        let error = found.json();
        assert_eq!((&error["format"], &error["version"]), (&"sublet-error".into(), &1.into()));
        assert_eq!(error["error"]["exit_code"], code, "{arguments}");
        assert!(!error["error"]["what"].as_str().unwrap().is_empty());
        assert!(!found.err.is_empty(), "people read standard error");
    }
}

/// Simulates `sublet devices | head -1`.
#[test]
fn a_reader_who_has_had_enough_is_no_error() {
    let folder = files::folder();
    for arguments in ["devices --sim --json", "devices --device sim:nvidia-h200", "--help", "report map.json"]
    {
        let mut child = folder
            .command(arguments)
            .env("VK_ICD_FILENAMES", "/nonexistent")
            .env("VK_DRIVER_FILES", "/nonexistent")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{arguments}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_below_standard_output_is_an_error() {
    let folder = files::folder();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = folder.command("devices --device sim:nvidia-h200").stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    assert!(String::from_utf8(ended.stderr).unwrap().contains("standard output cannot be written"));
}

#[test]
fn without_a_driver_there_is_an_error_and_the_simulated_devices_still_work() {
    let folder = files::folder();
    for arguments in [
        "devices",
        "profile",
        "devices --device 0",
        "devices --device geforce",
        "replay frames.trace --device 0",
    ] {
        let found = folder.run_without_vulkan(arguments).expect(4);
        assert!(found.err.starts_with("sublet: ") && found.out.is_empty(), "{arguments}: {}", found.err);
    }
    for arguments in ["devices --sim", "devices --device sim:lavapipe", "replay frames.trace"] {
        folder.run_without_vulkan(arguments).expect(0);
    }
}

/// Puts an invalid library with the loader's name into the search path.
#[cfg(target_os = "linux")]
#[test]
fn without_a_vulkan_loader_there_is_an_error_that_says_so() {
    let folder = Folder::new();
    for name in ["libvulkan.so.1", "libvulkan.so"] {
        folder.write(name, "");
    }
    let found = super::outcome(folder.command("devices").env("LD_LIBRARY_PATH", folder.path(""))).expect(4);
    assert!(found.err.starts_with("sublet: no Vulkan device can be had: "), "{}", found.err);
}

/// Returns the command lines in README.md and the guide.
fn shown() -> Vec<String> {
    let root = repository();
    let mut pages = vec![root.join("README.md")];
    let book = std::fs::read_dir(root.join("src/guide")).unwrap();
    pages.extend(
        book.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "md")),
    );
    let mut shown = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(page).unwrap();
        let spans = text.split('`').skip(1).step_by(2);
        let commands = spans.filter_map(|span| span.strip_prefix("sublet "));
        shown.extend(commands.filter(|command| command.contains(' ')).map(str::to_owned));
    }
    shown.sort();
    shown.dedup();
    shown
}

#[test]
fn every_command_of_the_readme_and_the_book_works() {
    let with_vulkan = has_vulkan();
    let folder = files::folder();
    folder.write("game.trace", std::fs::read(folder.path("frames.trace")).unwrap());
    folder.write("after.json", std::fs::read(folder.path("map.json")).unwrap());
    let commands = shown();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        // Recordings of the repository.
        for name in command.split_whitespace().filter(|word| word.starts_with("tests/traces/")) {
            std::fs::create_dir_all(folder.path("tests/traces")).unwrap();
            let source = repository().join(name);
            folder.write(name, std::fs::read(source).unwrap());
        }
        // `watch.rs` runs programs.
        if command.starts_with("watch ") || command.starts_with("profile") && !with_vulkan {
            continue;
        }
        let found = folder.run(&command).expect(0);
        assert!(!found.out.is_empty(), "{command}");
        if let Some((_, file)) = command.split_once("-o ") {
            assert!(folder.path(file).is_file(), "{command}");
        }
    }
}
