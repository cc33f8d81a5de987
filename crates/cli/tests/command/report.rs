//! `sublet report`.

use serde_json::Value;
use sublet_report::Snapshot;

use super::files;

#[test]
fn a_map_becomes_each_kind_of_file_by_its_name_or_by_order() {
    let folder = files::folder();
    for (file, begins) in
        [("out.html", "<!"), ("out.svg", "<svg"), ("out.txt", "Memory map"), ("out.json", "{")]
    {
        let said = folder.run(&format!("report map.json -o {file}")).expect(0);
        assert!(said.out.starts_with(&format!("{file}: ")), "{}", said.out);
        let text = folder.read(file);
        assert!(
            text.trim_start_matches("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
                .to_lowercase()
                .starts_with(&begins.to_lowercase()),
            "{file}: {}",
            &text[..60]
        );
    }
    folder.run("report map.json --format perfetto -o out.bin").expect(0);
    let trace: Value = serde_json::from_str(&folder.read("out.bin")).unwrap();
    assert!(trace.get("traceEvents").is_some() || trace.is_array());
    let read = |name| Snapshot::from_json(&folder.read(name)).unwrap();
    assert_eq!(read("out.json"), read("map.json"));
}

/// Pipes get the unchanged file, even if a picture has direction marks that tables replace.
#[test]
fn what_goes_into_a_pipe_is_the_file() {
    let folder = files::folder();
    for format in ["html", "svg"] {
        folder.run(&format!("report map.json --format {format} -o file")).expect(0);
        let piped = folder.run(&format!("report map.json --format {format}")).expect(0);
        assert_eq!(piped.out, folder.read("file"), "{format}");
    }
    assert!(folder.read("file").contains('\u{2068}'));
}

#[test]
fn the_text_says_what_is_reserved_and_by_whom() {
    let folder = files::folder();
    let found = folder.run("report map.json").expect(0);
    for text in ["305 MiB used (allocations: 6)", "mesh", "atlas", "NVIDIA H200", "The largest"] {
        assert!(found.out.contains(text), "{text}: {}", found.out);
    }
    let found = folder.run("report map.json --before before.json --title Level").expect(0);
    for text in ["Level", "Since the earlier map", "New: 2 allocations of 2 MiB"] {
        assert!(found.out.contains(text), "{text}: {}", found.out);
    }
}

#[test]
fn the_document_has_figures_and_the_comparison() {
    let folder = files::folder();
    let document = folder.run("report map.json --before before.json --json -o page.html").expect(0).json();
    assert_eq!((&document["format"], &document["kind"]), (&"sublet-report".into(), &"html".into()));
    assert_eq!(document["total"]["allocation_count"], 6);
    assert_eq!(document["comparison"]["new"].as_array().unwrap().len(), 2);
    assert!(folder.read("page.html").contains("mesh"));
    // The map itself, in Sublet's schema.
    let map = folder.run("report vma.json --format json --json").expect(0).json();
    assert_eq!(map["format"], "sublet-memory-map");
}

#[test]
fn maps_of_vma_are_maps() {
    let folder = files::folder();
    let found = folder.run("report vma.json").expect(0);
    assert!(found.out.contains("1 MiB used (allocations: 1)"), "{}", found.out);
}

#[test]
fn a_recording_is_reported_on_at_any_moment() {
    let folder = files::folder();
    for (at, allocations) in [("peak", 32), ("end", 30), ("0", 40), ("3", 37), ("100%", 30), ("50%", 30)] {
        let document = folder.run(&format!("report --trace frames.trace --at {at} --json")).expect(0).json();
        let found = document["total"]["allocation_count"].as_u64().unwrap();
        match at {
            // When the last block was created, and after half of the events.
            "peak" | "50%" => assert!((1..=40).contains(&found), "{at}: {found}"),
            _ => assert_eq!(found, allocations, "{at}"),
        }
    }
    let found = folder.run("report --trace frames.trace --at 99").expect(3);
    assert!(found.err.contains("no frame 99"), "{}", found.err);
}

#[test]
fn a_recording_becomes_a_page_of_all_its_moments() {
    let folder = files::folder();
    let said = folder.run("report frames.trace -o memory.html").expect(0);
    assert!(said.out.contains("memory.html: html"), "{}", said.out);
    let page = folder.read("memory.html");
    assert!(page.contains("<title>frames.trace</title>") && page.contains(r#""history":{"#));
    let document = folder.run("report frames.trace --format html -o memory.html --json").expect(0).json();
    assert_eq!((&document["kind"], &document["recording"]), (&"html".into(), &"frames.trace".into()));
    assert_eq!(document["allocations"], 40, "{document}");
    let path = folder.path("frames.trace");
    let whole = folder.run(&format!("report {} --format html", path.display())).expect(0);
    assert!(whole.out.contains("<title>frames.trace</title>"), "without its folder");
    let piped = folder.run("report frames.trace --format html --title Frames").expect(0);
    assert!(piped.out.contains("<title>Frames</title>"));
    // With a moment, and in other formats, the recording is a map.
    folder.run("report frames.trace --at end -o end.html").expect(0);
    assert!(!folder.read("end.html").contains(r#""history":{"#));
    let found = folder.run("report frames.trace --at end").expect(0);
    assert!(found.out.contains("frames.trace at end"), "{}", found.out);
}

/// Each moment is of another replay, and ids are the numbers of the recording.
#[test]
fn two_moments_of_a_recording_match_by_their_numbers() {
    let folder = files::folder();
    folder.run("report frames.trace --at 0 -o start.json").expect(0);
    let document = folder.run("report frames.trace --at end --before start.json --json").expect(0).json();
    assert_eq!(document["comparison"]["matching"], "ids");
    let start = Snapshot::from_json(&folder.read("start.json")).unwrap();
    assert!(start.allocations().all(|found| found.entry.id.as_deref().is_some_and(|id| id.starts_with('#'))));
}

/// The content of a pipe can be read only once.
#[test]
#[cfg(target_os = "linux")]
fn maps_and_recordings_come_from_pipes() {
    use std::io::Write as _;
    use std::process::Stdio;

    let folder = files::folder();
    for name in ["map.json", "frames.trace", "watched.trace"] {
        let mut command = folder.command("report /dev/stdin --json");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let content = std::fs::read(folder.path(name)).unwrap();
        child.stdin.take().unwrap().write_all(&content).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{name}");
        let piped: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let named = folder.run(&format!("report {name} --json")).expect(0).json();
        assert_eq!(piped["total"], named["total"], "{name}");
    }
}

#[test]
fn what_is_no_map_is_refused_in_words() {
    let folder = files::folder();
    for (name, bytes, says) in [
        ("empty.json", &b""[..], "line 1"),
        ("text.json", b"hello", "line 1"),
        ("binary.json", b"\xff\xfe\x00", "is no text"),
        ("other.json", b"{\"format\": \"something\"}", "not a memory map"),
        ("later.json", b"{\"format\": \"sublet-memory-map\", \"version\": 77}", "version 77"),
    ] {
        folder.write(name, bytes);
        let found = folder.run(&format!("report {name}")).expect(3);
        assert!(found.err.contains(name) && found.err.contains(says), "{}", found.err);
    }
    let half = folder.read("map.json");
    folder.write("half.json", &half[..half.len() / 2]);
    folder.run("report half.json").expect(3);
    folder.run("report nothing.json").expect(3);
    folder.run("report .").expect(3);
    folder.write("deep.json", "[".repeat(100_000));
    folder.run("report deep.json").expect(3);
}

/// A recording cannot be made again, and its name may be a slip.
#[test]
fn a_recording_is_not_overwritten() {
    let folder = files::folder();
    let before = std::fs::read(folder.path("frames.trace")).unwrap();
    for arguments in [
        "report map.json --format html -o frames.trace",
        "replay frames.trace --no-progress --map frames.trace",
        "profile --device sim:nvidia-h200 -o frames.trace",
    ] {
        let found = folder.run(arguments).expect(3);
        assert!(found.err.contains("frames.trace cannot be written: it is a recording"), "{}", found.err);
    }
    assert_eq!(std::fs::read(folder.path("frames.trace")).unwrap(), before);
}
